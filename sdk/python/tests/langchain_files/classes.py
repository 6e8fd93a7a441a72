"""Tools as classes, and made from functions."""

from typing import Optional

from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.tools import BaseTool, StructuredTool


class Shout(BaseTool):
    name: str = "shout"
    description: str = "Say it louder"

    def _run(self, text: str, marks: int = 1, run_manager: Optional[CallbackManagerForToolRun] = None) -> str:
        return text.upper() + "!" * marks


def whisper(text: str) -> str:
    """Say it quietly."""
    return text.lower()


async def whisper_later(text: str) -> str:
    """Say it quietly, later."""
    return text.lower() + "…"


shout = Shout()
quiet = StructuredTool.from_function(whisper)
later = StructuredTool.from_function(coroutine=whisper_later, name="later", description="Say it later")
