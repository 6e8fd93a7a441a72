"""A Python function is a tool: its type hints are the schema, its docstring is what agents read."""

from dataclasses import dataclass
from typing import Annotated

from toolcrib import tool

PRICES = {"apple": 0.5, "bread": 3.2, "honey": 7.9}


@dataclass
class Line:
    item: Annotated[str, "What is bought: apple, bread or honey"]
    count: Annotated[int, "How many of it"] = 1


@tool("basket-total", read_only=True)
def basket_total(lines: list[Line]) -> dict:
    """Adds up what a basket costs.

    Args:
        lines: The items in the basket, and how many of each.
    """
    unknown = [line.item for line in lines if line.item not in PRICES]
    if unknown:
        raise ValueError(f"not sold here: {', '.join(unknown)}; there are {', '.join(PRICES)}")
    return {"total": round(sum(PRICES[line.item] * line.count for line in lines), 2)}
