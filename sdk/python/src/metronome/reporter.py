"""Reports on their way: a short queue, and one thread that empties it.

Training never waits for it. When reports come faster than they are taken, or nobody takes them, the oldest are dropped:
what counts is how far the training is now.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from typing import Deque, Optional

from .environment import Environment
from .progress import Progress
from .wire import PATIENCE, Answer, Fate, Wire

MOST_WAITING = 16
# So far apart reports are at least. An agent takes fifty a second; nobody decides anything so often.
PACE = 0.05
# After a failure, and at most after many.
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 30.0
# So long the end of a training waits for what is still to be said.
LAST_WORDS = 1.0


class Reporter:
    def __init__(self, whose: Environment) -> None:
        self._whose = whose
        self._waiting: Deque[Progress] = deque(maxlen=MOST_WAITING)
        # Each is waited for by one thread. To wake the one that sends with every report would cost training more than
        # the report itself.
        lock = threading.Lock()
        self._arrived = threading.Condition(lock)
        self._ending = threading.Condition(lock)
        self._said = threading.Condition(lock)
        self._thread: Optional[threading.Thread] = None
        self._is_sending = False
        self._ends_at: Optional[float] = None
        self._pause = 0.0
        # A process that was forked off has a copy of the queue, but not the thread: it reports nothing.
        self._process = os.getpid()

    def put(self, progress: Progress) -> None:
        if not self._whose.is_heard or os.getpid() != self._process:
            return
        with self._arrived:
            if self._ends_at is not None:
                return
            self._waiting.append(progress)
            if self._thread is None:
                self._start()
            self._arrived.notify()

    def close(self) -> None:
        """Sends what is left, for a second at most."""
        if os.getpid() != self._process:
            return
        with self._said:
            if self._ends_at is None:
                self._ends_at = time.monotonic() + LAST_WORDS
                self._arrived.notify()
                self._ending.notify()
            is_done = self._said.wait_for(self._has_said_all, self._ends_at - time.monotonic())
            if not is_done:
                self._waiting.clear()

    def _start(self) -> None:
        # A daemon, so that one that waits for an agent does not keep the process from ending.
        thread = threading.Thread(target=self._work, name="metronome-reports", daemon=True)
        thread.start()
        self._thread = thread
        atexit.register(_close, weakref.ref(self))

    def _has_said_all(self) -> bool:
        return self._thread is None or not (self._waiting or self._is_sending)

    def _work(self) -> None:
        assert self._whose.socket is not None and self._whose.token is not None
        wire = Wire(self._whose.socket, self._whose.token)
        while True:
            progress = self._next()
            if progress is None:
                break
            answer = self._send(wire, progress)
            self._settle(progress, answer)
        wire.close()

    def _next(self) -> Optional[Progress]:
        """The next report, once it is time for it; `None` at the end."""
        with self._arrived:
            self._is_sending = False
            self._said.notify_all()
            if self._ends_at is None and self._pause > 0:
                self._ending.wait_for(lambda: self._ends_at is not None, self._pause)
            self._arrived.wait_for(lambda: self._waiting or self._ends_at is not None)
            if not self._waiting:
                return None
            self._is_sending = True
            return self._waiting.popleft()

    def _send(self, wire: Wire, progress: Progress) -> Answer:
        patience = PATIENCE
        if self._ends_at is not None:
            patience = min(patience, max(self._ends_at - time.monotonic(), 0.01))
        try:
            return wire.post(progress.body(self._whose), patience)
        except Exception:
            # Whatever it is, training goes on.
            wire.close()
            return Answer(Fate.LOST)

    def _settle(self, progress: Progress, answer: Answer) -> None:
        with self._said:
            if answer.fate in (Fate.TAKEN, Fate.REFUSED):
                self._pause = PACE
                return
            self._pause = min(max(self._pause, FIRST_PAUSE / 2) * 2, LONGEST_PAUSE)
            if answer.retry_after is not None:
                self._pause = min(max(answer.retry_after, PACE), LONGEST_PAUSE)
            if self._ends_at is not None:
                self._waiting.clear()
            elif len(self._waiting) < MOST_WAITING:
                self._waiting.appendleft(progress)


def _close(reporter: weakref.ReferenceType[Reporter]) -> None:
    found = reporter()
    if found is not None:
        found.close()
