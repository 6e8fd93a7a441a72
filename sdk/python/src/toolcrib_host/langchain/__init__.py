"""A stand-in for `langchain_core`, so far as tool files use it. It is found only where the package is not installed."""

__version__ = "0"
