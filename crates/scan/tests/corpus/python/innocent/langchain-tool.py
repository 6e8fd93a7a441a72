# an ordinary tool for LangChain
from langchain_core.tools import tool

@tool("search")
def search(query: str) -> str:
    """Searches for something."""
    return query
