"""What a tool prints: whole lines, each told as one of the call that printed it. All else goes to stderr."""

from __future__ import annotations

import io
import os
import sys
from contextvars import ContextVar

from . import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextvars import Token
    from typing import Any, Optional

NOBODY = object()
# The most that one message carries.
LONGEST = 1 << 16

#: The call whose code runs here.
current: ContextVar[Any] = ContextVar("toolcrib_call", default=NOBODY)
#: Lines that calls have begun.
begun: dict[Any, str] = {}
out: Optional[wire.Wire] = None


def begin(asked: Any) -> Token[Any]:
    return current.set(asked)


def end(token: Token[Any]) -> None:
    if begun and current.get() in begun:
        tell(current.get(), begun.pop(current.get()))
    current.reset(token)


def tell(asked: Any, text: str) -> None:
    assert out is not None
    for at in range(0, max(len(text), 1), LONGEST):
        out.send(wire.notice_line("log", {"id": asked, "message": text[at : at + LONGEST]}))


class Printed(io.TextIOWrapper):
    """`sys.stdout` of tools."""

    def write(self, text: str, /) -> int:
        asked = current.get()
        if asked is NOBODY or out is None or not isinstance(text, str):
            return super().write(text)
        whole, newline, rest = text.rpartition("\n")
        if newline:
            tell(asked, begun.pop(asked, "") + whole)
        if rest:
            begun[asked] = rest = begun.get(asked, "") + rest
            if len(rest) > LONGEST:
                tell(asked, begun.pop(asked))
        return len(text)

    def flush(self) -> None:
        if begun and current.get() in begun and out is not None:
            tell(current.get(), begun.pop(current.get()))
        super().flush()


def take_over(line: wire.Wire) -> None:
    """Leads what is printed during calls to the protocol; descriptor 1 leads to stderr by now."""
    global out
    out = line
    sys.stdout = Printed(
        os.fdopen(1, "wb", closefd=False), encoding="utf-8", errors="backslashreplace", line_buffering=True
    )


def leave_to_stderr() -> None:
    """In a forked child, which has nobody to tell."""
    global out
    out = None
