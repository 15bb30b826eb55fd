"""Who waits for its turn, until when, and how exactly."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Callable, List, NamedTuple, Optional

import pytest

from metronome.clock import MILLISECOND, SECOND, RealClock
from metronome.gate import Gate
from metronome.progress import format_time

BEGIN = 1_800_000_000 * SECOND


class HandClock:
    """Time passes while somebody sleeps, and when it is told to."""

    def __init__(self) -> None:
        self.passed = 0
        self.set_by = 0
        self.while_asleep: Optional[Callable[[], None]] = None

    def now(self) -> int:
        return BEGIN + self.passed + self.set_by

    def steady(self) -> int:
        return self.passed

    def sleep(self, nanoseconds: int) -> None:
        assert nanoseconds > 0
        self.passed += nanoseconds
        if self.while_asleep is not None:
            self.while_asleep()


class World:
    """A gate, its file, and a clock; times in milliseconds since the beginning."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "turn.json"
        self.clock = HandClock()
        self.gate = Gate(self.path, self.clock)
        self.generation = 0

    def say(self, held: str, turn: int = 0, period: int = 100, **more: Any) -> None:
        self.generation += 1
        word = {
            "generation": self.generation,
            "anchor": format_time(BEGIN),
            "periodNs": period * MILLISECOND,
            "turnNs": turn * MILLISECOND,
            "class": 0,
            "holdNs": period * MILLISECOND,
            "validUntil": format_time(BEGIN + 900 * SECOND),
            "held": held,
            **more,
        }
        aside = self.path.with_suffix(".new")
        aside.write_text(json.dumps(word))
        aside.replace(self.path)

    def begin(self, interrupted: Callable[[], bool] = lambda: False) -> float:
        self.gate.wait(interrupted)
        return self.clock.passed / MILLISECOND

    def train(self, *lengths: int) -> List[float]:
        """When each iteration begins, of those that take so long."""
        begins = []
        for length in lengths:
            begins.append(self.begin())
            self.clock.passed += length * MILLISECOND
        return begins


@pytest.fixture
def world(folder: Path) -> World:
    return World(folder)


def test_without_a_word_nobody_waits(world: World) -> None:
    assert world.train(30, 30, 30) == [0, 30, 60]


def test_who_is_early_waits_for_its_place_each_time(world: World) -> None:
    world.say("everyIteration", turn=20)
    assert world.train(80, 95, 80) == [20, 120, 220]


def test_who_is_late_goes_at_once_and_catches_up(world: World) -> None:
    world.say("everyIteration", turn=0)
    assert world.train(140, 90, 90, 50, 50) == [0, 140, 230, 320, 400]


def test_who_is_late_by_more_than_half_a_period_waits_for_the_next_place(world: World) -> None:
    world.say("everyIteration", turn=0)
    assert world.train(151, 10) == [0, 200]
    world.clock.passed = 0


def test_an_iteration_shorter_than_half_a_period_has_one_place_all_the_same(world: World) -> None:
    world.say("everyIteration", turn=0)
    assert world.train(20, 20, 20) == [0, 100, 200]


def test_a_word_said_anew_with_the_same_places_changes_nothing(world: World) -> None:
    world.say("everyIteration", turn=0)
    assert world.train(140) == [0]
    world.say("everyIteration", turn=100)
    assert world.train(10) == [140]


def test_nobody_waits_longer_than_it_may_be_held(world: World) -> None:
    world.say("everyIteration", turn=90, holdNs=30 * MILLISECOND)
    assert world.begin() == 30


def test_who_is_held_once_is_then_left_alone(world: World) -> None:
    world.say("once", turn=70)
    assert world.train(90, 90, 90) == [70, 160, 250]
    world.say("once", turn=0)
    assert world.train(90, 90) == [400, 490]


def test_who_drifts_too_far_is_held_again_but_not_too_soon(world: World) -> None:
    world.say("once", turn=0, toleranceNs=15 * MILLISECOND, pauseNs=250 * MILLISECOND)
    # 90 is ten off. 180 and 270 are too far off; only at 270 it has rested long enough.
    assert world.train(90, 90, 90, 90) == [0, 90, 180, 300]


def test_a_word_lapses(world: World) -> None:
    world.say("everyIteration", turn=50, validUntil=format_time(BEGIN + 60 * MILLISECOND))
    assert world.train(20, 20, 20) == [50, 70, 90]


def test_an_older_word_in_place_of_a_newer_one_is_ignored(world: World) -> None:
    world.say("everyIteration", turn=30)
    world.say("everyIteration", turn=60)
    assert world.train(10) == [60]
    world.generation = 0
    world.say("everyIteration", turn=30)
    assert world.train(10) == [160]


def test_a_word_that_is_taken_back_holds_nobody_any_longer(world: World) -> None:
    world.say("everyIteration", turn=90)

    def take_back() -> None:
        world.path.unlink(missing_ok=True)

    world.clock.while_asleep = take_back
    assert world.begin() <= 21
    assert world.train(10, 10)[1] <= 31


def test_who_is_asked_to_leave_does_not_wait(world: World) -> None:
    world.say("everyIteration", turn=90)
    assert world.begin(lambda: world.clock.passed >= 30 * MILLISECOND) <= 50


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_costs_one_period_at_most(world: World, hours: int) -> None:
    world.say("everyIteration", turn=0, validUntil=format_time(BEGIN + 9000 * SECOND))
    assert world.train(80, 80) == [0, 100]
    world.clock.set_by = hours * 3600 * SECOND
    assert world.train(80, 80, 80) == [200, 300, 400]


def test_a_clock_that_is_set_back_meanwhile_holds_nobody_for_longer(world: World) -> None:
    world.say("everyIteration", turn=90)

    def set_back() -> None:
        world.clock.set_by -= 20 * MILLISECOND

    world.clock.while_asleep = set_back
    assert world.begin() == 100


@pytest.mark.parametrize("text", ["", "{", "[]", '{"generation": 1}', "\x00" * 100_000, "[" * 50_000])
def test_a_file_that_makes_no_sense_holds_nobody(world: World, text: str) -> None:
    world.path.write_text(text)
    assert world.train(10, 10) == [0, 10]


class Lateness(NamedTuple):
    """How late iterations began, and somebody beside them who does nothing but sleep; in milliseconds, sorted."""

    begins: List[float]
    sleeps: List[float]


def sleep_towards(moment: int) -> int:
    """Sleeps once for long and then in small pieces, as a gate does; how late it is, in nanoseconds."""
    time.sleep(max(0.0, (moment - time.monotonic_ns() - MILLISECOND) / SECOND))
    while time.monotonic_ns() < moment:
        time.sleep(50e-6)
    return time.monotonic_ns() - moment


def train_on_the_real_clock(folder: Path, iterations: int) -> Lateness:
    world = World(folder)
    period, pause = 10, 4
    gate = Gate(world.path, RealClock())
    world.say(
        "everyIteration",
        period=period,
        turn=3,
        validUntil=format_time(time.time_ns() + 900 * SECOND),
    )
    late = Lateness([], [])
    for _ in range(iterations):
        gate.wait(lambda: False)
        late.begins.append((time.time_ns() - BEGIN - 3 * MILLISECOND) % (period * MILLISECOND) / MILLISECOND)
        late.sleeps.append(sleep_towards(time.monotonic_ns() + pause * MILLISECOND) / MILLISECOND)
    return Lateness(sorted(late.begins), sorted(late.sleeps))


def test_on_the_real_clock_iterations_begin_at_their_places(folder: Path) -> None:
    iterations = 200
    middle, p99 = iterations // 2, iterations * 99 // 100 - 1
    judged_late = 0
    for _ in range(5):
        late = train_on_the_real_clock(folder, iterations)
        print(
            f"begins late by {late.begins[middle]:.3f} ms in the median, {late.begins[p99]:.3f} ms at p99; "
            f"who only sleeps, by {late.sleeps[middle]:.3f} and {late.sleeps[p99]:.3f} ms"
        )
        # Where others have the processor, single iterations begin as late as they like; half of them do not.
        assert late.begins[middle] < 2
        if late.begins[p99] < 2:
            return
        # Where sleeps are hardly late, it is not the machine.
        judged_late += late.sleeps[p99] < 1
        assert judged_late < 3, "late at p99 again and again, though the machine is not"
