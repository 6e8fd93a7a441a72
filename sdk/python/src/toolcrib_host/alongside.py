"""Calls side by side: async tools on one event loop on the main thread, plain ones after each other in one thread."""

from __future__ import annotations

import asyncio
import ctypes
from queue import SimpleQueue
from threading import Lock, Thread, get_ident
from typing import TYPE_CHECKING, Any, Optional

from toolcrib.context import Cancelled, Context
from toolcrib.convert import Mismatch

from . import wire
from .collect import Entry

if TYPE_CHECKING:
    from .serve import Host


class Alongside:
    """The host of a file that has async tools."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.loop = host.event_loop()
        self.tasks: dict[Any, tuple[asyncio.Task[None], Optional[Context]]] = {}
        self.side = Side(host)
        self.ended = False

    def serve(self) -> None:
        """Runs calls until stdin ends."""
        self.host.reader.stay(self.wake)
        self.loop.call_soon(self.drain)
        while not self.ended:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                continue  # a task of the tool's own ended so; the calls are not its business

    def wake(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self.drain)
        except RuntimeError:
            pass  # the loop is closed: this is the end

    def drain(self) -> None:
        """Starts what has come."""
        ready = self.host.reader.ready
        while ready:
            message = ready.popleft()
            if message is None:
                self.ended = True
                self.loop.stop()
                return
            if type(message) is tuple:
                self.cancel(message[1])
            elif message["method"] == "initialize":
                self.host.initialize(message)
            else:
                self.start(message)

    def start(self, message: dict[str, Any]) -> None:
        asked = message["id"]
        self.host.waiting.discard(asked)
        try:
            entry, given, known = self.host.find(message.get("params"))
        except Mismatch as mismatch:
            self.host.wire.send(wire.error_line(asked, wire.BAD_PARAMS, str(mismatch)))
            return
        context = self.host.context_for(asked, entry, known) if entry.wants_context else None
        if not entry.asynchronous:
            self.side.put(asked, entry, given, context)
            return
        task = self.loop.create_task(self.run(asked, entry, given, context))
        self.tasks[asked] = (task, context)

    async def run(self, asked: Any, entry: Entry, given: dict[str, Any], context: Optional[Context]) -> None:
        """One call of an async tool."""
        try:
            values, named = entry.bind(given, context)
            value = await entry.function(*values, **named)
            line = self.host.reply(asked, entry, value)
        except Mismatch as mismatch:
            line = wire.error_line(asked, wire.BAD_PARAMS, str(mismatch))
        except asyncio.CancelledError:
            line = wire.error_line(asked, wire.FAILED, "cancelled")
        except BaseException as error:
            line = self.host.failed(asked, error)
        self.tasks.pop(asked, None)
        self.host.answer(line)

    def cancel(self, asked: Any) -> None:
        if asked in self.tasks:
            task, context = self.tasks[asked]
            if context is not None:
                context.cancelled.set()
            task.cancel()
        else:
            self.side.cancel(asked)


class Side:
    """The thread for the plain tools of such a file."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.jobs: SimpleQueue[tuple[Any, Entry, dict[str, Any], Optional[Context]]] = SimpleQueue()
        self.thread: Optional[Thread] = None
        self.lock = Lock()
        self.contexts: dict[Any, Optional[Context]] = {}
        self.dropped: set[Any] = set()
        self.running: Any = None
        self.ident = 0

    def put(self, asked: Any, entry: Entry, given: dict[str, Any], context: Optional[Context]) -> None:
        self.contexts[asked] = context
        self.jobs.put((asked, entry, given, context))
        if self.thread is None:
            self.thread = Thread(target=self.work, name="toolcrib-calls", daemon=True)
            self.thread.start()

    def work(self) -> None:
        self.ident = get_ident()
        while True:
            asked, entry, given, context = self.jobs.get()
            try:
                line = self.call(asked, entry, given, context)
            except Cancelled:
                line = self.host.failed(asked, Cancelled())
            self.settle(asked)
            self.host.answer(line)

    def call(self, asked: Any, entry: Entry, given: dict[str, Any], context: Optional[Context]) -> bytes:
        try:
            with self.lock:
                self.running = asked
                if asked in self.dropped:
                    return self.host.failed(asked, Cancelled())
            values, named = entry.bind(given, context)
            value = entry.function(*values, **named)
            if hasattr(value, "__await__"):
                value = asyncio.run_coroutine_threadsafe(whole(value), self.host.event_loop()).result()
            return self.host.reply(asked, entry, value)
        except Mismatch as mismatch:
            return wire.error_line(asked, wire.BAD_PARAMS, str(mismatch))
        except BaseException as error:
            return self.host.failed(asked, error)

    def settle(self, asked: Any) -> None:
        """The call is over: what was raised for it and has not come yet is taken back."""
        while True:
            try:
                with self.lock:
                    self.running = None
                    if asked in self.dropped:
                        self.dropped.discard(asked)
                        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), None)
                    self.contexts.pop(asked, None)
                return
            except Cancelled:
                continue

    def cancel(self, asked: Any) -> None:
        with self.lock:
            if asked not in self.contexts:
                return
            context = self.contexts[asked]
            if context is not None:
                context.cancelled.set()
            self.dropped.add(asked)
            if self.running == asked:
                # Not while a line is being written: it would be torn.
                with self.host.wire.lock:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.ident), ctypes.py_object(Cancelled))


async def whole(awaitable: Any) -> Any:
    return await awaitable
