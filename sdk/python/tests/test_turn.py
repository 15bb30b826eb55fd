"""Words about turns, also those that make no sense."""

from __future__ import annotations

import json
from typing import Any, Dict

import pytest

from metronome.progress import format_time
from metronome.turn import Held, Turn, parse_time

WORD: Dict[str, Any] = json.loads(
    """{"generation": 12884901890, "anchor": "2026-11-16T12:00:00.123456789Z", "periodNs": 214000000,
        "turnNs": 90000000, "class": 2, "holdNs": 214000000, "validUntil": "2026-11-16T12:15:00.123456789Z",
        "held": "everyIteration", "follows": "bytesSent"}"""
)


def test_a_word_is_read_to_the_nanosecond() -> None:
    turn = Turn.parse(WORD)
    assert turn is not None
    assert turn.anchor == 1794830400_123456789
    assert turn.valid_until - turn.anchor == 15 * 60 * 10**9
    assert (turn.period_ns, turn.turn_ns, turn.held) == (214_000_000, 90_000_000, Held.EVERY_ITERATION)
    assert (turn.tolerance_ns, turn.pause_ns) == (None, None)


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("1970-01-01T00:00:01Z", 1.0),
        ("1970-01-01T01:00:01.5+01:00", 1.5),
        ("1969-12-31T23:30:01-00:30", 1.0),
    ],
)
def test_times_are_read_wherever_they_were_written(text: str, seconds: float) -> None:
    assert parse_time(text) == int(seconds * 10**9)


def test_a_time_that_is_written_is_the_one_that_is_read() -> None:
    assert format_time(parse_time(WORD["anchor"])) == WORD["anchor"]


@pytest.mark.parametrize(
    "change",
    [
        {"held": None},
        {"held": "twice"},
        {"holdNs": 0},
        {"periodNs": 0},
        {"periodNs": -5},
        {"periodNs": 1.5},
        {"periodNs": True},
        {"generation": "7"},
        {"anchor": "yesterday"},
        {"anchor": 5},
        {"validUntil": None},
        {"toleranceNs": "much"},
    ],
)
def test_what_makes_no_sense_holds_nobody(change: Dict[str, Any]) -> None:
    assert Turn.parse(WORD) is not None
    assert Turn.parse({**WORD, **change}) is None


@pytest.mark.parametrize("word", [None, 7, [], "turn", {}])
def test_what_is_no_word_holds_nobody(word: Any) -> None:
    assert Turn.parse(word) is None


def test_places_are_a_period_apart() -> None:
    turn = Turn.parse({**WORD, "anchor": "1970-01-01T00:00:00Z", "periodNs": 100, "turnNs": 130})
    assert turn is not None
    assert [turn.next_place(at) for at in (0, 30, 31, 130, 131)] == [30, 30, 130, 130, 230]
    assert [turn.distance(at) for at in (30, 40, 79, 80, 81, 120)] == [0, 10, 49, 50, 49, 10]
