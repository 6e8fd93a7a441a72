"""The host's life: it takes messages, loads the file, and runs the calls."""

from __future__ import annotations

import os
import signal
import sys
from threading import get_ident

from toolcrib import decorator
from toolcrib.context import Cancelled, Context
from toolcrib.convert import Mismatch
from toolcrib.plain import result_of

from . import loading, wire
from .collect import Entry, collect
from .failure import Sources, describe, traceback_of
from .reader import Reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any, Optional

# How many calls of async tools run side by side.
CONCURRENCY = 16
# Wakes the main thread to cancel its call. One that hardly anybody uses for something else.
INTERRUPT = signal.SIGRTMIN + 9 if hasattr(signal, "SIGRTMIN") else signal.SIGUSR2

NOBODY = object()
NoneType = type(None)


class Host:
    """One file's tools, and who calls them."""

    def __init__(self, line: wire.Wire) -> None:
        self.wire = line
        self.reader = Reader(line, self.take)
        self.entries: dict[str, Entry] = {}
        self.sources = Sources()
        self.loaded = False
        self.loop: Optional[AbstractEventLoop] = None
        #: Whether calls run on an event loop, not one after the other.
        self.side_by_side = False
        self.main = get_ident()
        self.running: Any = NOBODY
        self.context: Optional[Context] = None
        self.target: Any = NOBODY
        #: Calls that have come and are not answered; those of them that were cancelled.
        self.waiting: set[Any] = set()
        self.dropped: set[Any] = set()
        self.forked = False

    # What whoever reads does.

    def take(self, line: bytes) -> Any:
        """One message: a job is given back, everything else is answered here."""
        if not line or line.isspace():
            return None
        try:
            message = wire.decode(line.decode())
        except (ValueError, RecursionError) as error:
            reason = "too deeply nested" if isinstance(error, RecursionError) else str(error)
            return self.wire.send(wire.error_line(None, wire.NOT_JSON, f"the line is not JSON: {reason}"))
        if type(message) is not dict:
            return self.wire.send(wire.error_line(None, wire.NO_REQUEST, "a message is an object"))
        method = message.get("method")
        if "id" not in message:
            if method == "cancel":
                return self.cancel(message.get("params"))
            return None
        asked = message["id"]
        if type(asked) not in (str, int, float, NoneType):
            return self.wire.send(wire.error_line(None, wire.NO_REQUEST, "an id is a string or a number"))
        if method == "execute":
            self.waiting.add(asked)
            return message
        if method == "initialize":
            return message
        if method == "health":
            return self.wire.send(wire.result_line(asked, {"status": "healthy"}))
        if isinstance(method, str):
            return self.wire.send(wire.error_line(asked, wire.NO_METHOD, f"there is no method {method!r}"))
        if "result" not in message and "error" not in message:
            self.wire.send(wire.error_line(asked, wire.NO_REQUEST, "a request has a method"))
        return None

    def cancel(self, params: Any) -> Any:
        asked = params.get("id") if isinstance(params, dict) else None
        if asked is None or not isinstance(asked, (str, int)):
            return None
        if self.side_by_side:
            return ("cancel", asked)
        if asked not in self.waiting:
            return None
        # Added before the look at what runs: the call may begin in between, and then finds it here.
        self.dropped.add(asked)
        if self.running == asked:
            self.target = asked
            if self.context is not None:
                self.context.cancelled.set()
            signal.pthread_kill(self.main, INTERRUPT)
        return None

    # What the main thread does.

    def interrupt(self, *_: Any) -> None:
        """The signal came: ends the call, if it still is the one that was meant."""
        if self.target is NOBODY or self.running != self.target:
            return
        self.target = NOBODY
        if self.wire.writer == self.main:
            self.wire.cut_off = self.main  # a line is being written: as soon as it is
            return
        raise Cancelled

    def serve(self) -> None:
        """Runs one call after the other, until stdin ends or the file turns out to have async tools."""
        while True:
            message = self.reader.next()
            if message is None:
                return
            if message["method"] == "initialize":
                self.initialize(message)
                if self.side_by_side:
                    with loading.OwnBytecode():
                        from .alongside import Alongside

                    Alongside(self).serve()
                    return
                continue
            try:
                self.call(message)
            except Cancelled:
                self.running = NOBODY
                self.wire.send(wire.error_line(message["id"], wire.FAILED, "cancelled"))

    def find(self, params: Any) -> tuple[Entry, dict[str, Any], dict[str, Any]]:
        """The tool that a call means, its arguments, and what is known about the call."""
        if not isinstance(params, dict):
            raise Mismatch("params is not an object")
        name, given, known = params.get("tool"), params.get("input"), params.get("context")
        if name is None and len(self.entries) == 1:
            name = next(iter(self.entries))
        entry = self.entries.get(name) if isinstance(name, str) else None
        if entry is None:
            there = ", ".join(self.entries) or "none"
            raise Mismatch(f"there is no tool {name!r} in this file; it has: {there}")
        if given is None:
            given = {}
        if type(given) is not dict:
            raise Mismatch("params.input is not an object")
        return entry, given, known if type(known) is dict else {}

    def context_for(self, asked: Any, entry: Entry, known: dict[str, Any]) -> Context:
        def tell(method: str, fields: dict[str, Any]) -> None:
            fields = {name: result_of(value) for name, value in fields.items()}
            if method == "progress":
                fields["id"] = asked
            self.wire.send(wire.notice_line(method, fields))

        return Context(known, tell, entry.init)

    def call(self, message: dict[str, Any]) -> None:
        """Runs one call on this thread, and answers it."""
        asked = message["id"]
        try:
            entry, given, known = self.find(message.get("params"))
            context = self.context_for(asked, entry, known) if entry.wants_context else None
            self.context = context
            self.running = asked
            if self.dropped and asked in self.dropped:
                raise Cancelled
            values, named = entry.bind(given, context)
            value = entry.function(*values, **named)
            line = (
                wire.result_line(asked, value)
                if type(value) is str and entry.finish is None
                else self.reply(asked, entry, value)
            )
            self.running = NOBODY
        except Mismatch as mismatch:
            self.running = NOBODY
            line = wire.error_line(asked, wire.BAD_PARAMS, str(mismatch))
        except BaseException as error:
            self.running = NOBODY
            line = self.failed(asked, error)
        self.waiting.discard(asked)
        if self.dropped:
            self.dropped.discard(asked)
        self.answer(line)

    def answer(self, line: bytes) -> None:
        """Sends the answer to a call; a forked child that came so far ends here."""
        if self.forked:
            os._exit(0)
        self.wire.send(line)

    def reply(self, asked: Any, entry: Entry, value: Any) -> bytes:
        """The answer with a result that is more than a text."""
        if hasattr(value, "__await__"):
            value = self.wait(value)  # a plain function around an async one
        if entry.finish is not None:
            value = entry.finish(value)
        try:
            return wire.result_line(asked, result_of(value))
        except RecursionError:
            raise TypeError("the result is too deeply nested, or holds itself") from None

    def failed(self, asked: Any, error: BaseException) -> bytes:
        """The answer to a call whose tool raised something."""
        if isinstance(error, Cancelled):
            return wire.error_line(asked, wire.FAILED, "cancelled")
        message, data = describe(error, self.sources)
        return wire.error_line(asked, wire.FAILED, message, data)

    def wait(self, awaitable: Any) -> Any:
        """Runs something async to its end, on the file's one event loop."""

        async def whole() -> Any:
            return await awaitable

        return self.event_loop().run_until_complete(whole())

    def event_loop(self) -> AbstractEventLoop:
        import asyncio

        if self.loop is None:
            # Before 3.10 locks and events belong to the loop that was there when they were made: maybe at import.
            older = sys.version_info < (3, 10)
            self.loop = asyncio.get_event_loop() if older else asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop

    def initialize(self, message: dict[str, Any]) -> None:
        """Loads the file, and tells what is in it."""
        asked, params = message["id"], message.get("params")
        script = params.get("script") if isinstance(params, dict) else None
        file = script.get("file") if isinstance(script, dict) else None
        texts = script.get("texts") if isinstance(script, dict) else None
        if self.loaded:
            return self.wire.send(
                wire.error_line(asked, wire.NO_REQUEST, "a file is loaded already; start another host")
            )
        if not isinstance(file, str) or not isinstance(texts, dict):
            return self.wire.send(wire.error_line(asked, wire.BAD_PARAMS, "params.script has no `file` or no `texts`"))
        assert isinstance(script, dict)
        self.sources = Sources(file, str(script.get("directory") or ""), texts)
        declarations: list[decorator.Declaration] = []
        decorator.declared = declarations
        try:
            module, _ = loading.load(file, texts, script.get("alone") is True, script.get("own"))
        except loading.NotLoaded as error:
            if error.__cause__ is not None and not isinstance(error.__cause__, SyntaxError):
                print(traceback_of(error.__cause__, self.sources), file=sys.stderr)  # noqa: T201
            return self.wire.send(wire.error_line(asked, wire.NOT_LOADED, str(error), error.data))
        finally:
            decorator.declared = None
        with loading.OwnBytecode():
            collection = collect(module, declarations, self.sources, self.wait)
        self.entries = collection.entries
        self.loaded = True
        self.side_by_side = any(entry.asynchronous for entry in self.entries.values())
        result = {
            "protocolVersion": "1.1",
            "concurrency": CONCURRENCY if self.side_by_side else 1,
            "tools": [entry.fields for entry in self.entries.values()],
            "problems": collection.problems,
        }
        return self.wire.send(wire.result_line(asked, result))

    def after_fork(self) -> None:
        self.forked = True
        self.wire.abandon()


def main() -> None:
    """Runs the host until stdin ends."""
    host = Host(wire.open_wire())
    signal.signal(INTERRUPT, host.interrupt)
    os.register_at_fork(after_in_child=host.after_fork)
    try:
        host.serve()
    except KeyboardInterrupt:
        os._exit(130)
