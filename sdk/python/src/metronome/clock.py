"""Time as an argument: the gate is tested with a clock that stands still until it is moved."""

from __future__ import annotations

import time
from typing import Protocol

MILLISECOND = 1_000_000
SECOND = 1_000_000_000


class Clock(Protocol):
    def now(self) -> int:
        """Nanoseconds since 1970, as all machines have them: turns are moments that jobs share."""
        ...

    def steady(self) -> int:
        """Nanoseconds since some moment. Nobody sets it, so that what is waited is bounded by it."""
        ...

    def sleep(self, nanoseconds: int) -> None: ...


class RealClock:
    def now(self) -> int:
        return time.time_ns()

    def steady(self) -> int:
        return time.monotonic_ns()

    def sleep(self, nanoseconds: int) -> None:
        time.sleep(nanoseconds / SECOND)
