"""Waiting for one's turn at the beginning of an iteration.

Whoever takes a turn *every iteration* waits when it is early. When it is late it goes at once: the slack in the period
makes up for it. Who is late by more than half a period waits for the next place, or it would be early there. The rule,
and what is remembered for it, are those of the simulator, so that what was decided is what happens.

Who is held *once* waits for its first place after each new word and is then left alone, unless the word says how far it
may drift.
"""

from __future__ import annotations

from pathlib import Path
from typing import Callable, Optional, Tuple

from .clock import MILLISECOND, Clock
from .turn import Held, Turn
from .watched import WatchedFile

# While it waits it looks so often whether the word was taken back, or it is asked to leave.
_LOOK_EVERY = 20 * MILLISECOND
# A sleep may end late by about so much; the rest is slept in small pieces.
_COARSE = MILLISECOND
_FINE = MILLISECOND // 20


class Gate:
    def __init__(self, path: Optional[Path], clock: Clock) -> None:
        self._file = WatchedFile(path)
        self._clock = clock
        self._word: object = None
        self._turn: Optional[Turn] = None
        self._newest = -1
        # Of `everyIteration`: the place of the last iteration, and on which circle that is.
        self._slot: Optional[int] = None
        self._circle: Optional[Tuple[int, int]] = None
        # Of `once`: the last word that was followed, and when it was held for it.
        self._followed = -1
        self._held_at = 0

    def wait(self, interrupted: Callable[[], bool]) -> int:
        """Returns when the iteration may begin; the nanoseconds for which it was held."""
        begun = self._clock.steady()
        turn = self._in_force()
        if turn is None:
            self._slot = None
            return 0
        now = self._clock.now()
        place = self._place(turn, now)
        longest = begun + turn.hold_ns
        while self._clock.now() < place and self._clock.steady() < longest and not interrupted():
            self._sleep_towards(place, longest)
            if self._in_force() != turn:
                break
        return self._clock.steady() - begun

    def _in_force(self) -> Optional[Turn]:
        word = self._file.look()
        if word is not self._word:
            self._word = word
            self._take(Turn.parse(word))
        if self._turn is None or self._clock.now() >= self._turn.valid_until:
            return None
        return self._turn

    def _take(self, turn: Optional[Turn]) -> None:
        """A late writer may put an older word in place of a newer one: that changes nothing."""
        if turn is None or turn.generation >= self._newest:
            self._turn = turn
            self._newest = self._newest if turn is None else turn.generation

    def _place(self, turn: Turn, now: int) -> int:
        """When the iteration that could begin now is to begin."""
        if turn.held is Held.EVERY_ITERATION:
            return self._keep(turn, now)
        self._slot = None
        return self._once(turn, now)

    def _keep(self, turn: Turn, now: int) -> int:
        circle = (turn.period_ns, turn.phase)
        if circle != self._circle:
            self._circle, self._slot = circle, None
        due = None if self._slot is None else self._slot + turn.period_ns
        # More than a period ahead, or behind, is a clock that was set.
        if due is None or not due - turn.period_ns <= now <= due + turn.period_ns // 2:
            due = turn.next_place(now)
        self._slot = due
        return due

    def _once(self, turn: Turn, now: int) -> int:
        if turn.generation == self._followed and not self._has_drifted(turn, now):
            return now
        self._followed = turn.generation
        self._held_at = turn.next_place(now)
        return self._held_at

    def _has_drifted(self, turn: Turn, now: int) -> bool:
        if turn.tolerance_ns is None or turn.pause_ns is None:
            return False
        rested = abs(now - self._held_at) >= turn.pause_ns
        return rested and turn.distance(now) > turn.tolerance_ns

    def _sleep_towards(self, place: int, longest: int) -> None:
        left = min(place - self._clock.now(), longest - self._clock.steady())
        if left > _COARSE:
            self._clock.sleep(min(left - _COARSE, _LOOK_EVERY))
        elif left > 0:
            self._clock.sleep(min(left, _FINE))
