"""Plain functions with LangChain's decorator."""

from langchain_core.tools import ToolException, tool


@tool
def multiply(first: int, second: int) -> int:
    """Multiply two whole numbers.

    Args:
        first: The number to start from.
        second: How many times it is taken.
    """
    return first * second


@tool(parse_docstring=True)
def divide(first: float, second: float = 2.0) -> float:
    """Divide one number by another.

    Args:
        first: What is divided.
        second: What it is divided by.
    """
    if second == 0:
        raise ToolException("nothing can be divided by zero")
    return first / second
