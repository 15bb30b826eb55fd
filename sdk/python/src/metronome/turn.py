"""The word about a job's turn, as `turn.json` says it."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Optional

from .clock import SECOND

_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?(?:[Zz]|([+-])(\d\d):(\d\d))")


class Held(Enum):
    ONCE = "once"
    EVERY_ITERATION = "everyIteration"


@dataclass(frozen=True)
class Turn:
    """Iterations are to begin `turn_ns` after the anchor, and every `period_ns` from there. All in nanoseconds."""

    generation: int
    anchor: int
    period_ns: int
    turn_ns: int
    hold_ns: int
    valid_until: int
    held: Held
    tolerance_ns: Optional[int] = None
    pause_ns: Optional[int] = None

    @classmethod
    def parse(cls, word: Any) -> Optional[Turn]:
        """`None` where nobody is held, and where the word makes no sense: a job never fails by it."""
        try:
            turn = cls(
                generation=_whole(word["generation"]),
                anchor=parse_time(word["anchor"]),
                period_ns=_whole(word["periodNs"]),
                turn_ns=_whole(word["turnNs"]),
                hold_ns=_whole(word["holdNs"]),
                valid_until=parse_time(word["validUntil"]),
                held=Held(word["held"]),
                tolerance_ns=_maybe(word.get("toleranceNs")),
                pause_ns=_maybe(word.get("pauseNs")),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
        return turn if turn.period_ns > 0 and turn.hold_ns > 0 else None

    @property
    def phase(self) -> int:
        """Where on the period its places are: two words with the same period and phase say the same places."""
        return (self.anchor + self.turn_ns) % self.period_ns

    def next_place(self, at: int) -> int:
        """The first place that is not before `at`."""
        return at + (self.phase - at) % self.period_ns

    def distance(self, at: int) -> int:
        """How far it is to the nearest place, before or after."""
        ahead = self.next_place(at) - at
        return min(ahead, self.period_ns - ahead)


def parse_time(text: str) -> int:
    """RFC 3339 to nanoseconds since 1970. The standard library drops what is below a microsecond."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no time")
    year, month, day, hour, minute, second = (int(part) for part in match.group(1, 2, 3, 4, 5, 6))
    fraction = (match.group(7) or "").ljust(9, "0")
    whole = calendar.timegm((year, month, day, hour, minute, second))
    if match.group(8):
        away = (int(match.group(9)) * 60 + int(match.group(10))) * 60
        whole -= away if match.group(8) == "+" else -away
    return whole * SECOND + int(fraction)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is no whole number from 0 on")
    return value


def _maybe(value: object) -> Optional[int]:
    return None if value is None else _whole(value)
