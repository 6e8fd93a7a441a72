"""A tool with a name of its own, and an async one that takes the configuration."""

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool

PAGES = {"crib": "A crib is where tools are kept.", "tool": "A tool is something to work with."}


@tool("web-search", return_direct=True)
def search_the_web(query: str) -> str:
    """Look a word up on the web."""
    return PAGES.get(query.lower(), "nothing was found")


@tool
async def slow_search(query: str, config: RunnableConfig, limit: int = 1) -> list:
    """Look a word up, slowly."""
    assert isinstance(config, dict)
    return [page for word, page in PAGES.items() if query in word][:limit]
