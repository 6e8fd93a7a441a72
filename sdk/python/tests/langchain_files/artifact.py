"""Text for the model, and data beside it."""

import random
from typing import Annotated, List, Tuple

from langchain_core.tools import InjectedToolCallId, tool


@tool(response_format="content_and_artifact")
def draw(count: int, seed: int = 1) -> Tuple[str, List[int]]:
    """Draw some numbers."""
    dice = random.Random(seed)
    numbers = [dice.randint(1, 6) for _ in range(count)]
    return f"{count} numbers were drawn", numbers


@tool
def which_call(word: str, call: Annotated[str, InjectedToolCallId]) -> str:
    """Say which call this is."""
    return f"{word} {call}"
