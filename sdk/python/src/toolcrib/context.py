"""What a tool knows about the call it serves, and what it can tell meanwhile."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from threading import Event
    from typing import Any, Callable, Optional

LEVELS = ("debug", "info", "warn", "error")


class Cancelled(BaseException):
    """Nobody waits for this call any more. It is raised inside the tool, and is no `Exception`."""


class Cancellation:
    """Whether the call was cancelled: true or false, and something to wait for."""

    __slots__ = ("_event", "_set")

    def __init__(self) -> None:
        self._set = False
        self._event: Optional[Event] = None

    def __bool__(self) -> bool:
        return self._set

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True
        if self._event is not None:
            self._event.set()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until the call is cancelled, at most `timeout` seconds; says whether it is."""
        if self._event is None:
            from threading import Event

            self._event = Event()
        # Asked after the event is there: whoever sets it either sees the event or is seen here.
        return self._set or self._event.wait(timeout)

    def __repr__(self) -> str:
        return f"<cancelled: {self._set}>"


class Context:
    """One call. A parameter with this type, or named `ctx`, gets it."""

    __slots__ = ("_fields", "_tell", "cancelled", "deadline", "init")

    def __init__(
        self,
        fields: Mapping[str, Any],
        tell: Callable[[str, dict[str, Any]], None],
        init: Optional[dict[str, Any]] = None,
    ) -> None:
        self._fields = fields
        self._tell = tell
        #: What the tool's `init` gave.
        self.init: dict[str, Any] = {} if init is None else init
        #: True once the call is cancelled; `ctx.cancelled.wait(seconds)` waits for it.
        self.cancelled = Cancellation()
        left = fields.get("timeout")
        #: When the call must have ended, in seconds as `time.time()` counts them; None if there is no limit.
        self.deadline: Optional[float] = None if left is None else time.time() + left / 1000

    def _text(self, name: str, other: str = "") -> str:
        value = self._fields.get(name)
        if value is None:
            value = self._fields.get(other)
        return "" if value is None else str(value)

    @property
    def call_id(self) -> str:
        """This call."""
        return self._text("callId", "executionId")

    @property
    def session_id(self) -> str:
        """The agent's session."""
        return self._text("sessionId", "runId")

    @property
    def message_id(self) -> str:
        """The agent's message that the call belongs to; empty where it is not known."""
        return self._text("messageId")

    @property
    def agent(self) -> str:
        """The program that asks, as people call it (`claude`, `codex`, `gemini`, …), or its own name."""
        return self._text("agent")

    @property
    def client(self) -> str:
        """The program that asks, as it calls itself, such as `claude-code`."""
        return self._text("client", "agent")

    @property
    def profile(self) -> str:
        """The profile of Toolcrib's settings that it uses."""
        return self._text("profile")

    @property
    def directory(self) -> str:
        """The project's folder."""
        return self._text("directory", "workingDir")

    def metadata(self, title: Optional[str] = None, **data: Any) -> None:
        """Tells what the call is doing: a title for people, and data of your own."""
        fields: dict[str, Any] = {}
        if title is not None:
            fields["title"] = str(title)
        if data:
            fields["data"] = data
        self._tell("progress", fields)

    def progress(
        self,
        progress: Optional[float] = None,
        total: Optional[float] = None,
        message: Optional[str] = None,
    ) -> None:
        """Tells how far the call is: a number that grows, how large it gets, and words."""
        fields: dict[str, Any] = {}
        if progress is not None:
            fields["progress"] = progress
        if total is not None:
            fields["total"] = total
        if message is not None:
            fields["message"] = str(message)
        self._tell("progress", fields)

    def log(self, level: str, message: object) -> None:
        """Writes a line to the tool's log; `level` is debug, info, warn or error."""
        level = "warn" if level == "warning" else level
        if level not in LEVELS:
            raise ValueError(f"there is no log level {level!r}: use one of {', '.join(LEVELS)}")
        self._tell("log", {"level": level, "message": str(message)})


class NoopContext(Context):
    """A context for tests: it records what was told to it."""

    __slots__ = ("told",)

    def __init__(self, fields: Mapping[str, Any], init: Optional[dict[str, Any]] = None) -> None:
        #: What was told, in order: `("progress", {"title": …})`, `("log", {"level": …, "message": …})`.
        self.told: list[tuple[str, dict[str, Any]]] = []
        super().__init__(fields, lambda kind, fields: self.told.append((kind, fields)), init)

    @property
    def titles(self) -> list[str]:
        """The titles that were told."""
        return [fields["title"] for _, fields in self.told if "title" in fields]


def noop_context(
    *,
    call_id: str = "call",
    session_id: str = "session",
    message_id: str = "message",
    agent: str = "test",
    profile: str = "default",
    directory: str = ".",
    timeout_ms: Optional[int] = None,
    init: Optional[dict[str, Any]] = None,
) -> NoopContext:
    """A context to test a tool with: `greet("Ada", ctx=noop_context())`."""
    fields = {
        "callId": call_id,
        "sessionId": session_id,
        "messageId": message_id,
        "agent": agent,
        "profile": profile,
        "directory": directory,
        "timeout": timeout_ms,
    }
    return NoopContext(fields, init)
