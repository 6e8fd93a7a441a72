"""The host's life: it takes messages, loads the file, and runs the calls."""

from __future__ import annotations

import os
import signal
import sys
from threading import Lock

from toolcrib import decorator
from toolcrib.context import Cancelled, Context
from toolcrib.convert import Mismatch
from toolcrib.plain import result_of

from . import loading, prints, wire
from .collect import CONCURRENCY, Entry, collect
from .crew import NOBODY, Crew, Hand
from .failure import Sources, describe, traceback_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any, Optional

    from .alongside import Alongside

# Wakes the main thread to cancel its call. One that hardly anybody uses for something else.
INTERRUPT = signal.SIGRTMIN + 9 if hasattr(signal, "SIGRTMIN") else signal.SIGUSR2

NoneType = type(None)


class Host:
    """One file's tools, and who calls them."""

    def __init__(self, line: wire.Wire) -> None:
        self.wire = line
        self.entries: dict[str, Entry] = {}
        self.sources = Sources()
        self.loaded = False
        self.loop: Optional[AbstractEventLoop] = None
        #: Runs the async tools, where the file has some.
        self.alongside: Optional[Alongside] = None
        self.target: Any = NOBODY
        #: Calls that have come and are not answered; those of them that were cancelled.
        self.waiting: set[Any] = set()
        self.dropped: set[Any] = set()
        #: Held while a call on another thread than the main one is cancelled, or ends.
        self.lock = Lock()
        self.forked = False
        self.crew = Crew(line, self.take, self.work)

    # What whoever reads does.

    def take(self, line: bytes) -> Any:
        """One message: a call for a thread is given back, everything else is seen to here."""
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
                self.cancel(message.get("params"))
            return None
        asked = message["id"]
        if type(asked) not in (str, int, float, NoneType):
            return self.wire.send(wire.error_line(None, wire.NO_REQUEST, "an id is a string or a number"))
        if method == "execute":
            if self.alongside is not None and self.alongside.takes(message):
                return None
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

    def cancel(self, params: Any) -> None:
        asked = params.get("id") if isinstance(params, dict) else None
        if asked is None or not isinstance(asked, (str, int)):
            return
        if self.alongside is not None:
            self.alongside.cancel(asked)
        with self.lock:
            if asked not in self.waiting:
                return
            # Added before the look at what runs: the call may begin in between, and then finds it here.
            self.dropped.add(asked)
            for hand in self.crew.hands:
                if hand.running == asked:
                    self.interrupt(hand, asked)

    def interrupt(self, hand: Hand, asked: Any) -> None:
        """Has `Cancelled` raised in the thread that runs a call."""
        if hand.context is not None:
            hand.context.cancelled.set()
        if hand.main:
            self.target = asked
            # Again and again: a signal that comes just before a thread begins to wait does not wake it.
            self.crew.nudge = self.signal_main
            self.crew.wake()
            return
        # Not while a line is being written: it would be torn.
        with self.wire.lock:
            raise_in(hand.ident, Cancelled)

    def signal_main(self) -> None:
        """Has the main thread look whether its call was cancelled."""
        main = self.crew.main
        if self.target is NOBODY or main.running != self.target:
            self.target = NOBODY
            self.crew.nudge = None
        else:
            signal.pthread_kill(main.ident, INTERRUPT)

    # What the main thread does.

    def interrupted(self, *_: Any) -> None:
        """The signal came: ends the call, if it still is the one that was meant."""
        main = self.crew.main
        if self.target is NOBODY or main.running != self.target:
            return
        self.target = NOBODY
        if self.wire.writer == main.ident:
            self.wire.cut_off = main.ident  # a line is being written: as soon as it is
            return
        raise Cancelled

    def serve(self) -> None:
        """Takes its share of the calls until stdin ends, or the file turns out to have async tools."""
        main = self.crew.main
        while self.alongside is None:
            message = self.crew.next(main)
            if message is None:
                return
            self.work(main, message)
        self.alongside.serve()

    # What every thread does.

    def work(self, hand: Hand, message: dict[str, Any]) -> None:
        """Sees one message to its end."""
        asked = message["id"]
        if message["method"] == "initialize":
            line = self.initialize(message)
            self.crew.done(hand)
            return self.wire.send(line)
        begun = prints.begin(asked)
        try:
            line = self.call(hand, asked, message)
        except Cancelled:
            line = self.failed(asked, Cancelled())
        self.settle(hand, asked)
        prints.end(begun)
        if self.forked:
            os._exit(0)  # a child that came so far
        self.crew.done(hand)
        return self.wire.send(line)

    def settle(self, hand: Hand, asked: Any) -> None:
        """The call is over: what was raised for it and has not come yet is taken back."""
        while not hand.main:
            try:
                with self.lock:
                    hand.running = NOBODY
                    if asked in self.dropped:
                        raise_in(hand.ident, None)
                    break
            except Cancelled:
                continue
        hand.running = NOBODY
        hand.context = None
        self.waiting.discard(asked)
        if self.dropped:
            self.dropped.discard(asked)

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

    def call(self, hand: Hand, asked: Any, message: dict[str, Any]) -> bytes:
        """Runs one call on this thread; the line that answers it."""
        try:
            entry, given, known = self.find(message.get("params"))
            context = self.context_for(asked, entry, known) if entry.wants_context else None
            hand.context = context
            hand.running = asked
            if self.dropped and asked in self.dropped:
                raise Cancelled
            values, named = entry.bind(given, context)
            value = entry.function(*values, **named)
            line = (
                wire.result_line(asked, value)
                if type(value) is str and entry.finish is None
                else self.reply(hand, asked, entry, value)
            )
            if hand.main:
                hand.running = NOBODY
            return line
        except Mismatch as mismatch:
            return wire.error_line(asked, wire.BAD_PARAMS, str(mismatch))
        except BaseException as error:
            if hand.main:
                hand.running = NOBODY
            return self.failed(asked, error)

    def reply(self, hand: Hand, asked: Any, entry: Entry, value: Any) -> bytes:
        """The answer with a result that is more than a text."""
        if hasattr(value, "__await__"):
            value = self.wait(value, hand)  # a plain function around an async one
        return self.result(asked, entry, value)

    def result(self, asked: Any, entry: Entry, value: Any) -> bytes:
        """The answer with a result that is there."""
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

    def wait(self, awaitable: Any, hand: Hand) -> Any:
        """Runs something async to its end: on the file's event loop, or where that is not free on the thread's own."""

        async def whole() -> Any:
            return await awaitable

        if self.alongside is not None:
            return self.alongside.result(whole())
        if hand.main:
            return self.event_loop().run_until_complete(whole())
        if hand.loop is None:
            import asyncio

            hand.loop = asyncio.new_event_loop()
        return hand.loop.run_until_complete(whole())

    def event_loop(self) -> AbstractEventLoop:
        import asyncio

        if self.loop is None:
            # Before 3.10 locks and events belong to the loop that was there when they were made: maybe at import.
            older = sys.version_info < (3, 10)
            self.loop = asyncio.get_event_loop() if older else asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop

    def initialize(self, message: dict[str, Any]) -> bytes:
        """Loads the file; the line that tells what is in it."""
        asked, params = message["id"], message.get("params")
        script = params.get("script") if isinstance(params, dict) else None
        file = script.get("file") if isinstance(script, dict) else None
        texts = script.get("texts") if isinstance(script, dict) else None
        if self.loaded:
            return wire.error_line(asked, wire.NO_REQUEST, "a file is loaded already; start another host")
        if not isinstance(file, str) or not isinstance(texts, dict):
            return wire.error_line(asked, wire.BAD_PARAMS, "params.script has no `file` or no `texts`")
        assert isinstance(script, dict)
        self.sources = Sources(file, str(script.get("directory") or ""), texts)
        declarations: list[decorator.Declaration] = []
        decorator.declared = declarations
        try:
            module, _ = loading.load(file, texts, script.get("alone") is True, script.get("own"))
        except loading.NotLoaded as error:
            if error.__cause__ is not None and not isinstance(error.__cause__, SyntaxError):
                print(traceback_of(error.__cause__, self.sources), file=sys.stderr)  # noqa: T201
            return wire.error_line(asked, wire.NOT_LOADED, str(error), error.data)
        finally:
            decorator.declared = None
        with loading.OwnBytecode():
            collection = collect(module, declarations, self.sources, lambda given: self.wait(given, self.crew.main))
        self.entries = collection.entries
        self.loaded = True
        most = min((entry.concurrency for entry in self.entries.values()), default=CONCURRENCY)
        result = {
            "protocolVersion": "1.1",
            "concurrency": most,
            "tools": [entry.fields for entry in self.entries.values()],
            "problems": collection.problems,
        }
        self.crew.most = most
        if any(entry.asynchronous for entry in self.entries.values()):
            with loading.OwnBytecode():
                from .alongside import Alongside
            self.alongside = Alongside(self)
            self.crew.without_main(self.alongside.end)
        return wire.result_line(asked, result)

    def after_fork(self) -> None:
        """In a forked child: it has one thread, and must not speak for its parent."""
        self.forked = True
        self.lock = Lock()
        self.wire.abandon()
        prints.leave_to_stderr()


def raise_in(ident: int, error: Optional[type[BaseException]]) -> None:
    """Raises something in a thread as soon as it runs Python again, or takes back what has not been raised yet."""
    import ctypes

    given = None if error is None else ctypes.py_object(error)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), given)


def main() -> None:
    """Runs the host until stdin ends."""
    line = wire.open_wire()
    prints.take_over(line)
    host = Host(line)
    signal.signal(INTERRUPT, host.interrupted)
    os.register_at_fork(after_in_child=host.after_fork)
    try:
        host.serve()
    except KeyboardInterrupt:
        os._exit(130)
