"""Python functions as tools for AI agents: decorate a function with `tool`, and put its file into a tools folder."""

from __future__ import annotations

from .context import Cancelled, Context, NoopContext, noop_context
from .decorator import tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .results import Attachment, Result

__all__ = ["Attachment", "Cancelled", "Context", "NoopContext", "Result", "noop_context", "tool"]


def __getattr__(name: str) -> object:
    # `Result` and `Attachment` are dataclasses, and that module is slow to import: it waits until it is wanted.
    if name in ("Attachment", "Result"):
        from . import results

        return getattr(results, name)
    raise AttributeError(f"module 'toolcrib' has no attribute {name!r}")
