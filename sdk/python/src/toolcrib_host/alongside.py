"""Async tools: they run on one event loop on the main thread, while other threads read and run the plain ones."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Optional

from toolcrib.context import Context
from toolcrib.convert import Mismatch

from . import prints, wire

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from .collect import Entry
    from .serve import Host


class Alongside:
    """The event loop of a file that has async tools."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.loop = host.event_loop()
        self.tasks: dict[Any, tuple[asyncio.Task[None], Optional[Context]]] = {}
        self.ended = False

    def serve(self) -> None:
        """Runs calls until stdin ends."""
        while not self.ended:
            try:
                self.loop.run_forever()
            except (SystemExit, KeyboardInterrupt):
                continue  # a task of the tool's own ended so; the calls are not its business

    # What whoever reads does.

    def soon(self, what: Any, *given: Any) -> None:
        try:
            self.loop.call_soon_threadsafe(what, *given)
        except RuntimeError:
            pass  # the loop is closed: this is the end

    def end(self) -> None:
        self.ended = True
        self.soon(self.loop.stop)

    def takes(self, message: dict[str, Any]) -> bool:
        """Whether the call is one of an async tool; then it is started."""
        try:
            entry, given, known = self.host.find(message.get("params"))
        except Mismatch:
            return False
        if entry.asynchronous:
            self.soon(self.start, message["id"], entry, given, known)
        return entry.asynchronous

    def cancel(self, asked: Any) -> None:
        self.soon(self.stop, asked)

    def result(self, awaited: Coroutine[Any, Any, Any]) -> Any:
        """What something async gives, waited for on another thread."""
        return asyncio.run_coroutine_threadsafe(awaited, self.loop).result()

    # What the loop does.

    def start(self, asked: Any, entry: Entry, given: dict[str, Any], known: dict[str, Any]) -> None:
        context = self.host.context_for(asked, entry, known) if entry.wants_context else None
        task = self.loop.create_task(self.run(asked, entry, given, context))
        self.tasks[asked] = (task, context)

    async def run(self, asked: Any, entry: Entry, given: dict[str, Any], context: Optional[Context]) -> None:
        """One call of an async tool."""
        begun = prints.begin(asked)
        try:
            values, named = entry.bind(given, context)
            value = await entry.function(*values, **named)
            if hasattr(value, "__await__"):
                value = await value
            line = self.host.result(asked, entry, value)
        except Mismatch as mismatch:
            line = wire.error_line(asked, wire.BAD_PARAMS, str(mismatch))
        except asyncio.CancelledError:
            line = wire.error_line(asked, wire.FAILED, "cancelled")
        except BaseException as error:
            line = self.host.failed(asked, error)
        prints.end(begun)
        self.tasks.pop(asked, None)
        if self.host.forked:
            os._exit(0)  # a child that came so far
        self.host.wire.send(line)

    def stop(self, asked: Any) -> None:
        if asked in self.tasks:
            task, context = self.tasks[asked]
            if context is not None:
                context.cancelled.set()
            task.cancel()
