"""The tool TOOL_NAME. Change the function: its type hints and its docstring say what agents see."""

from toolcrib import tool


@tool("TOOL_NAME", read_only=True)
def say(text: str, times: int = 1) -> str:
    """Says a text, as often as asked.

    Args:
        text: What is said.
        times: How often.
    """
    if times > 100:
        raise ValueError("a hundred times is enough")
    return "\n".join([text] * times)
