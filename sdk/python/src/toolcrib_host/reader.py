"""Who reads stdin.

While nothing runs, the main thread reads for itself: a call then costs no change of threads, which would take longer
than the rest of it. A second thread looks every few milliseconds whether the main thread has been busy since the last
time. If so, it reads in its place, so that `health` and `cancel` are served during a call, until the main thread is
free again. When nothing happens for a while, it sleeps.
"""

from __future__ import annotations

import os
import time
from collections import deque
from queue import SimpleQueue
from threading import Event, Lock, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from .wire import Wire

# How often the second thread looks, and how often it finds nothing before it sleeps.
TICK_SECONDS = 0.005
TICKS_AWAKE = 40
# How long a running call may take to end once stdin has.
GRACE_SECONDS = 2.0


class Reader:
    """Hands out jobs; everything that is none is dealt with by `take`, which gives None for it."""

    def __init__(self, wire: Wire, take: Callable[[bytes], Any]) -> None:
        self.wire = wire
        self.take = take
        self.ready: deque[Any] = deque()
        #: Whether the main thread has a job.
        self.busy = False
        #: How often the main thread has read.
        self.reads = 0
        #: Held while it is settled who reads.
        self.turn = Lock()
        #: Whether the second thread reads.
        self.watching = False
        self.bell: SimpleQueue[None] = SimpleQueue()
        self.asleep = False
        self.alarm = Event()
        #: Once it is set, the second thread reads for good, and calls it when there are jobs.
        self.notify: Optional[Callable[[], None]] = None
        self.ended = False
        Thread(target=self.watch, name="toolcrib-reader", daemon=True).start()

    def next(self) -> Any:
        """The next job, on the main thread; None once stdin has ended."""
        self.busy = False
        ready = self.ready
        while True:
            if ready:
                job = ready.popleft()
                self.busy = True
                if self.asleep:
                    self.wake()
                return job
            with self.turn:
                if ready:
                    continue
                watching = self.watching
            if watching:
                self.bell.get()
                continue
            self.reads += 1
            if not self.fill():
                self.ended = True
                self.wake()
                return None

    def fill(self) -> bool:
        """Reads once; False at the end of stdin."""
        lines = self.wire.read()
        if lines is None:
            return False
        for line in lines:
            job = self.take(line)
            if job is not None:
                self.ready.append(job)
        return True

    def stay(self, notify: Callable[[], None]) -> None:
        """From now on the second thread reads."""
        self.notify = notify
        self.wake()

    def wake(self) -> None:
        self.asleep = False
        self.alarm.set()

    def watch(self) -> None:
        """The second thread's life."""
        seen, quiet = -1, 0
        while True:
            if self.ended:
                self.leave()
            with self.turn:
                take_over = self.notify is not None or (self.busy and self.reads == seen)
                self.watching = take_over
            if take_over:
                self.stand_in()
                quiet = 0
            quiet = quiet + 1 if self.reads == seen and not self.busy else 0
            seen = self.reads
            if quiet >= TICKS_AWAKE:
                quiet = 0
                self.alarm.clear()
                self.asleep = True
                # Asked after it is said: whoever begins meanwhile either sees it asleep or is seen here.
                if not (self.busy or self.ended or self.notify is not None):
                    self.alarm.wait()
                self.asleep = False
            else:
                time.sleep(TICK_SECONDS)

    def stand_in(self) -> None:
        """Reads until the main thread can."""
        while True:
            if not self.fill():
                self.ended = True
                self.ready.append(None)
                self.bell.put(None)
                if self.notify is not None:
                    self.notify()
                self.leave()
            if self.notify is not None:
                self.notify()
                continue
            with self.turn:
                if self.busy or not self.ready:
                    continue
                self.watching = False
            self.bell.put(None)
            return

    def leave(self) -> None:
        """Ends the process if the main thread does not: a call may hang, or a thread that a tool left behind."""
        time.sleep(GRACE_SECONDS)
        os._exit(0)
