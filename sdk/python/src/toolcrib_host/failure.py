"""What an exception becomes: words for the agent, and a traceback of the user's own frames."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Optional

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
MOST_FRAMES = 20
LONGEST = 20_000

# Their own words say enough; of all others the type helps.
SPEAKING = ("Exception", "RuntimeError", "ValueError", "ToolException", "AssertionError")


class Sources:
    """Which files are the user's own, and their texts."""

    def __init__(self, file: str = "", directory: str = "", texts: Optional[dict[str, str]] = None) -> None:
        self.file = file
        self.directory = directory.rstrip("/") + "/" if directory else ""
        self.texts = texts or {}

    def owns(self, file: str) -> bool:
        if file in self.texts:
            return True
        if not self.directory or not file.startswith(self.directory) or file.startswith(OURS):
            return False
        below = file[len(self.directory) :]
        return "site-packages" not in below and "/lib/python" not in below

    def line(self, file: str, number: int) -> str:
        text = self.texts.get(file)
        if text is None:
            import linecache

            return linecache.getline(file, number).strip()
        lines = text.split("\n")
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def words_of(error: BaseException) -> str:
    """What the exception says; never fails."""
    try:
        return str(error).strip()
    except Exception:
        return ""


def type_of(error: BaseException) -> str:
    kind = type(error)
    if kind.__module__ == "builtins" or kind.__module__.startswith("toolcrib_"):
        return kind.__qualname__
    return f"{kind.__module__}.{kind.__qualname__}"


def message_of(error: BaseException) -> str:
    """What the agent reads."""
    words = words_of(error)
    if isinstance(error, SystemExit):
        return f"the tool called sys.exit({'' if error.code is None else repr(error.code)})"
    if isinstance(error, RecursionError):
        return f"RecursionError: {words}"
    if isinstance(error, OSError) and error.strerror and not isinstance(error.strerror, BaseException):
        names = [repr(os.fspath(name)) for name in (error.filename, error.filename2) if is_path(name)]
        return str(error.strerror) + (": " + " -> ".join(names) if names else "")
    nested = getattr(error, "exceptions", None)
    if isinstance(nested, tuple):
        parts = [message_of(part) for part in nested[:10] if isinstance(part, BaseException)]
        return "\n- ".join([f"{type_of(error)}: {words}", *parts])
    if not words:
        return type_of(error)
    kind = type(error)
    if kind.__name__ in SPEAKING or kind.__module__.startswith("toolcrib_tools"):
        return words
    return f"{type_of(error)}: {words}"


def is_path(name: Any) -> bool:
    return isinstance(name, (str, bytes)) or hasattr(name, "__fspath__")


def chain_of(error: Optional[BaseException]) -> list[BaseException]:
    """The exception, then what led to it."""
    found: list[BaseException] = []
    while error is not None and error not in found and len(found) < 4:
        found.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


# Functions of the standard library, and what they try.
TRIES = {
    "run": "_execute_child _posix_spawn _fork_exec _execvpe execv execve posix_spawn posix_spawnp",
    "connect": "create_connection connect sendto getaddrinfo",
    "mkdir": "mkdir makedirs",
    "remove": "unlink remove rmdir rename replace rmtree",
    "write": "write_text write_bytes touch truncate symlink symlink_to link hardlink_to mkstemp",
    "read": "read_text read_bytes listdir scandir iterdir readlink stat lstat",
}


def tried_by(error: BaseException, sources: Sources) -> str:
    """What was tried: `read`, `write`, `mkdir`, `remove`, `run` or `connect`; empty where that can't be told."""
    frames: list[TracebackType] = []
    traceback = error.__traceback__
    while traceback is not None:
        frames.append(traceback)
        traceback = traceback.tb_next
    for frame in reversed(frames):
        code = frame.tb_frame.f_code
        if sources.owns(code.co_filename):
            return tried_in(sources.line(code.co_filename, frame.tb_lineno or 0))
        tried = next((tried for tried, names in TRIES.items() if code.co_name in names.split()), "")
        mode = frame.tb_frame.f_locals.get("mode") if code.co_name == "open" else None
        if not tried and isinstance(mode, str):
            tried = "write" if set(mode) & set("wax+") else "read"
        if tried:
            return tried
    return ""


def tried_in(line: str) -> str:
    """The same by the line of the user's own that failed."""
    from re import search, sub

    # A text has a `replace` of its own.
    line = sub(r"(?<!\bos)\.replace\(", "", line)
    for tried, names in TRIES.items():
        if search(rf"\b(?:{'|'.join(names.split())})\(", line):
            return tried
    opened = search(r"\bopen\(([^()]*)", line)
    if not opened:
        return ""
    mode = search(r"""(?:,\s*|mode\s*=\s*)["']([rwaxbt+U]+)["']""", opened[1])
    if mode:
        return "write" if set(mode[1]) & set("wax+") else "read"
    # What else stands there may be a mode, too.
    return "" if "," in opened[1] else "read"


def system_call(error: BaseException, sources: Sources) -> dict[str, str]:
    """Of a failed system call: the error's name, what was tried, and the path or host that it was about."""
    found: dict[str, str] = {}
    for part in chain_of(error):
        reason = getattr(part, "reason", None)
        candidates = [part, reason] if isinstance(reason, BaseException) else [part]
        for candidate in candidates:
            if isinstance(candidate, OSError) and isinstance(candidate.errno, int) and "errno" not in found:
                name = errno_name(candidate)
                if name:
                    found["errno"] = name
                if is_path(candidate.filename):
                    found["path"] = os.fsdecode(candidate.filename)
                tried = tried_by(candidate, sources)
                if tried:
                    found["tried"] = tried
        url = getattr(getattr(part, "request", None), "url", None)
        if url is not None and "host" not in found:
            from urllib.parse import urlsplit

            host = urlsplit(str(url)).hostname
            if host:
                found["host"] = host
    return found


def errno_name(error: OSError) -> str:
    from errno import errorcode

    if type(error).__name__ == "gaierror":
        import socket

        return next(
            (name for name in dir(socket) if name.startswith("EAI_") and getattr(socket, name) == error.errno),
            "",
        )
    return errorcode.get(error.errno or 0, "")


class Frame:
    """One line of a traceback."""

    __slots__ = ("file", "function", "line")

    def __init__(self, file: str, line: int, function: str) -> None:
        self.file = file
        self.line = line
        self.function = function

    def same(self, other: Frame) -> bool:
        return (self.file, self.line, self.function) == (other.file, other.line, other.function)


def frames_of(traceback: Optional[TracebackType], sources: Sources) -> list[Frame]:
    """The user's own frames; of others only those that come after the last of them."""
    found: list[Frame] = []
    after: list[Frame] = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        frame = Frame(code.co_filename, traceback.tb_lineno or 0, code.co_name)
        if sources.owns(frame.file):
            after = []
            if not (len(found) > 2 and found[-1].same(frame) and found[-2].same(frame) and found[-3].same(frame)):
                found.append(frame)
        elif not frame.file.startswith(OURS) and not frame.file.startswith("<frozen importlib"):
            after.append(frame)
        traceback = traceback.tb_next
    whole = found + after
    if len(whole) > MOST_FRAMES:
        whole = whole[: MOST_FRAMES // 2] + whole[-MOST_FRAMES // 2 :]
    return whole


def traceback_of(error: BaseException, sources: Sources) -> str:
    """The exception with its frames, and those that led to it before it."""
    parts: list[str] = []
    for place, part in enumerate(chain_of(error)):
        lines = []
        frames = frames_of(part.__traceback__, sources)
        if frames:
            lines.append("Traceback (most recent call last):")
        for frame in frames:
            lines.append(f'  File "{frame.file}", line {frame.line}, in {frame.function}')
            text = sources.line(frame.file, frame.line)
            if text:
                lines.append(f"    {text}")
        words = words_of(part)
        lines.append(f"{type_of(part)}: {words}" if words else type_of(part))
        if place > 0:
            led = parts_before(error, place)
            lines.append(f"\n{led}\n")
        parts.insert(0, "\n".join(lines))
    text = "\n".join(parts)
    return text if len(text) <= LONGEST else text[: LONGEST // 2] + "\n…\n" + text[-LONGEST // 2 :]


def parts_before(error: BaseException, place: int) -> str:
    later = chain_of(error)[place - 1]
    if later.__cause__ is not None:
        return "The above exception was the direct cause of the following exception:"
    return "During handling of the above exception, another exception occurred:"


def describe(error: BaseException, sources: Sources) -> tuple[str, dict[str, Any]]:
    """Message and data of a failed call."""
    try:
        return message_of(error), {"traceback": traceback_of(error, sources), **system_call(error, sources)}
    except Exception as trouble:  # an exception that breaks when it is looked at
        print(f"the exception can't be shown: {trouble!r}", file=sys.stderr)  # noqa: T201
        return type(error).__name__, {}


def line_in(error: BaseException, file: str) -> Optional[int]:
    """The last line of a file that the exception went through."""
    found = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            found = traceback.tb_lineno
        traceback = traceback.tb_next
    return found
