"""A stand-in for `langchain_core.runnables`: the type of the `config` that a tool may ask for."""

from __future__ import annotations

from typing import Any, Optional, TypedDict


class RunnableConfig(TypedDict, total=False):
    """What a call may be configured with."""

    tags: list[str]
    metadata: dict[str, Any]
    callbacks: Any
    run_name: str
    max_concurrency: Optional[int]
    recursion_limit: int
    configurable: dict[str, Any]
    run_id: Any
