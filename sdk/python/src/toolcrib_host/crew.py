"""The threads that read calls and run them.

Whoever reads a call runs it: a lone call then costs no change of threads, which would take longer than the rest of it.
The main thread reads first. A watcher looks every few milliseconds whether whoever reads has been busy with one call
since the last look. Then another thread reads in its place, so that other calls, `health` and `cancel` are served
meanwhile. When nothing happens for a while, the watcher sleeps.
"""

from __future__ import annotations

import os
import time
from collections import deque
from queue import SimpleQueue
from threading import Event, Lock, Thread, get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any, Callable, Optional

    from toolcrib.context import Context

    from .wire import Wire

# How often the watcher looks, and how often it finds nothing before it sleeps.
TICK_SECONDS = 0.005
TICKS_AWAKE = 40
# How long running calls may take to end once stdin has.
GRACE_SECONDS = 2.0

NOBODY = object()


class Hand:
    """A thread that reads calls and runs them."""

    __slots__ = ("begun", "bell", "busy", "context", "ident", "loop", "main", "running")

    def __init__(self, main: bool) -> None:
        self.main = main
        self.ident = get_ident() if main else 0
        self.bell: SimpleQueue[None] = SimpleQueue()
        #: Whether it has a call, and how many it has had.
        self.busy = False
        self.begun = 0
        #: The id of the call that may be cancelled here, and its context.
        self.running: Any = NOBODY
        self.context: Optional[Context] = None
        #: Where it waits for something async, once it had to.
        self.loop: Optional[AbstractEventLoop] = None


class Crew:
    """Hands out calls; every other message is dealt with by `take`, which gives None for it."""

    def __init__(self, wire: Wire, take: Callable[[bytes], Any], work: Callable[[Hand, Any], None]) -> None:
        self.wire = wire
        self.take = take
        self.work = work
        self.ready: deque[Any] = deque()
        #: How many calls may run at once: one until the file is loaded.
        self.most = 1
        self.running = 0
        #: Held while it is settled who does what.
        self.turn = Lock()
        self.main = Hand(True)
        self.hands = [self.main]
        self.idle: list[Hand] = []
        self.reader = self.main
        #: Whether the main thread has something else to do than calls, and hears of the end that way.
        self.on_end: Optional[Callable[[], None]] = None
        #: What the watcher does at every look, as long as there is something.
        self.nudge: Optional[Callable[[], None]] = None
        self.ended = False
        self.asleep = False
        self.alarm = Event()
        Thread(target=self.watch, name="toolcrib-watcher", daemon=True).start()

    def next(self, hand: Hand) -> Any:
        """The next call for this thread; None once stdin has ended and the others are done."""
        while True:
            with self.turn:
                if self.ended:
                    if self.running == 0 and self.main in self.idle:
                        self.main.bell.put(None)
                    if hand.main and self.running == 0:
                        return None
                    self.idle.append(hand)
                    reads = False
                elif self.ready and self.running < self.most and self.may_run(hand):
                    job = self.ready.popleft()
                    self.running += 1
                    hand.busy = True
                    hand.begun += 1
                    break
                else:
                    reads = self.reader is hand
                    if not reads:
                        self.idle.append(hand)
            if not reads or not self.fill(hand):
                hand.bell.get()
        if self.asleep:
            self.wake()
        return job

    def done(self, hand: Hand) -> None:
        """The call is over. Told before it is answered, so that what is asked next finds the main thread free."""
        with self.turn:
            hand.busy = False
            self.running -= 1

    def may_run(self, hand: Hand) -> bool:
        """The main thread goes first: some things work there only."""
        return hand.main or self.main.busy or self.on_end is not None

    def fill(self, hand: Hand) -> bool:
        """Reads once; False where this thread is not the one to go on."""
        lines = self.wire.read()
        if lines is None:
            with self.turn:
                self.ended = True
                for idle in self.idle:
                    idle.bell.put(None)
                self.idle.clear()
            if self.on_end is not None:
                self.on_end()
            self.wake()
            return True
        for line in lines:
            job = self.take(line)
            if job is not None:
                self.ready.append(job)
        if not hand.main and self.ready:
            with self.turn:
                if self.main in self.idle:
                    self.idle.remove(self.main)
                    self.idle.append(hand)
                    self.reader = self.main
                    self.main.bell.put(None)
                    return False
        return True

    def without_main(self, on_end: Callable[[], None]) -> None:
        """The main thread has other things to do from now on."""
        with self.turn:
            self.on_end = on_end
            if self.reader is self.main:
                self.promote()
        self.wake()

    def promote(self, reads: bool = True) -> None:
        """Others run what has been read, and one of them reads. Called with `turn` held."""
        wanted = int(reads) + min(len(self.ready), self.most - self.running)
        others = [hand for hand in self.idle if hand.main] + [hand for hand in self.idle if not hand.main]
        chosen = others[:wanted]
        for hand in chosen:
            self.idle.remove(hand)
            hand.bell.put(None)
        # One more than there may be calls, or nobody would read while all of them run.
        most = self.most + (1 if self.on_end is None else 2)
        while len(chosen) < wanted and len(self.hands) < most:
            hand = Hand(False)
            try:
                Thread(target=self.live, args=(hand,), name="toolcrib-calls", daemon=True).start()
            except RuntimeError:
                break  # no more threads for now; the next look tries again
            self.hands.append(hand)
            chosen.append(hand)
        if chosen and reads:
            self.reader = chosen[0]

    def live(self, hand: Hand) -> None:
        """The life of every thread but the main one."""
        hand.ident = get_ident()
        while True:
            self.work(hand, self.next(hand))

    def wake(self) -> None:
        self.asleep = False
        self.alarm.set()

    def watch(self) -> None:
        """The watcher's life: no call, and no message, waits for another call for longer than two looks."""
        seen: Any = None
        waits: Any = None
        quiet = 0
        while True:
            if self.ended:
                # A call may hang, or a thread that a tool left behind.
                time.sleep(GRACE_SECONDS)
                os._exit(0)
            with self.turn:
                first = self.ready[0] if self.ready else None
                if self.reader.busy and (self.reader, self.reader.begun) == seen:
                    self.promote()
                elif first is not None and first is waits:
                    self.promote(reads=False)
                now = (self.reader, self.reader.begun)
                quiet = quiet + 1 if now == seen and first is None and not self.reader.busy else 0
                seen, waits = now, first
            nudge = self.nudge
            if nudge is not None:
                nudge()
                quiet = 0
            if quiet < TICKS_AWAKE:
                time.sleep(TICK_SECONDS)
                continue
            quiet = 0
            self.alarm.clear()
            self.asleep = True
            # Asked after it is said: whoever begins meanwhile either sees it asleep or is seen here.
            if not (self.reader.busy or self.ready or self.ended or self.nudge is not None):
                self.alarm.wait()
            self.asleep = False
