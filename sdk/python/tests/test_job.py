"""What a member is told, and what it counts."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, List

import pytest
from given import variables

from metronome import Environment, Job, Size, training

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_everything_may_be_missing() -> None:
    environment = Environment.read({})
    assert environment == Environment()
    assert environment.leads and environment.is_alone and not environment.is_heard


def test_variables_that_make_no_sense_are_as_if_missing() -> None:
    given = {"RANK": "first", "WORLD_SIZE": "", "METRONOME_ATTEMPT": "x", "METRONOME_SOCKET": ""}
    assert Environment.read(given) == Environment()


def test_what_is_given_is_read() -> None:
    environment = Environment.read(
        {
            "METRONOME_JOB": "team-a/bert",
            "METRONOME_MEMBER": "worker-3",
            "METRONOME_ATTEMPT": "2",
            "RANK": "3",
            "WORLD_SIZE": "4",
            "METRONOME_SOCKET": "/run/a",
            "METRONOME_TOKEN": "t",
            "METRONOME_DIR": "/run/m",
            "METRONOME_CHECKPOINT_DIR": "/run/c",
        }
    )
    assert environment == Environment(
        "team-a/bert", "worker-3", 2, 3, 4, Path("/run/a"), "t", Path("/run/m"), Path("/run/c")
    )


@pytest.mark.parametrize(
    "rank, world_size, leads", [(0, 4, True), (1, 4, False), (None, None, True), (None, 4, False), (0, None, True)]
)
def test_one_member_leads(rank: Any, world_size: Any, leads: bool) -> None:
    assert Environment(rank=rank, world_size=world_size).leads is leads


def test_iterations_are_counted_from_where_they_were(environment: Environment) -> None:
    job = Job(environment, total_iterations=7)
    assert list(job.iterations(start=4)) == [4, 5, 6]
    assert job.iteration == 7
    assert list(job.iterations()) == []
    assert list(job.iterations(8)) == [7]


def test_an_iteration_that_is_broken_off_is_not_counted(environment: Environment) -> None:
    job = Job(environment)
    for step in job.iterations():
        if step == 3:
            break
    assert job.iteration == 3


def test_without_anybody_an_iteration_costs_microseconds() -> None:
    job = Job(Environment())
    took: List[float] = []
    for _ in range(5):
        begun = time.perf_counter()
        for _ in job.iterations(job.iteration + 1000):
            job.report(loss=1.0)
        took.append((time.perf_counter() - begun) / 1000)
    print(f"{min(took) * 1e6:.1f} µs an iteration")
    assert min(took) < 200e-6


def write_size(environment: Environment, text: str) -> None:
    assert environment.directory is not None
    aside = environment.directory / "size.new"
    aside.write_text(text)
    aside.replace(environment.directory / "size.json")


def test_a_job_is_told_when_its_size_changes(environment: Environment) -> None:
    write_size(environment, json.dumps({"cpus": 1.5, "members": 4}))
    job = Job(environment)
    assert job.size == Size(1.5, 4)
    told: List[object] = []

    @job.on_resize
    def resized(size: Size) -> None:
        told.append((job.iteration, size))

    for step in job.iterations(8):
        if step == 2:
            write_size(environment, json.dumps({"cpus": 3, "members": 4}))
        if step == 4:
            write_size(environment, json.dumps({"members": 4, "cpus": 3.0}))
        if step == 6:
            write_size(environment, json.dumps({"cpus": 3, "members": 2}))
    assert told == [(3, Size(3.0, 4)), (7, Size(3.0, 2))]
    assert job.size == Size(3.0, 2)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "{}", '{"cpus": "many"}', '{"cpus": -1, "members": 0}', "\0\0"])
def test_a_size_that_makes_no_sense_changes_nothing(environment: Environment, text: str) -> None:
    write_size(environment, json.dumps({"cpus": 2, "members": 1}))
    job = Job(environment)
    told: List[Size] = []
    job.on_resize(told.append)
    for step in job.iterations(4):
        if step == 1:
            write_size(environment, text)
    assert told == []
    assert job.size == Size(2.0, 1)


def test_who_does_not_lead_never_waits(environment: Environment) -> None:
    assert environment.directory is not None
    word = {
        "generation": 1,
        "anchor": "2026-01-01T00:00:00Z",
        "periodNs": 3_600_000_000_000,
        "turnNs": 0,
        "holdNs": 300_000_000,
        "validUntil": "2999-01-01T00:00:00Z",
        "held": "everyIteration",
    }
    (environment.directory / "turn.json").write_text(json.dumps(word))
    for rank, held in ((0, 0.3), (1, 0.0)):
        job = Job(dataclasses.replace(environment, rank=rank, world_size=2))
        begun = time.monotonic()
        job.begin_iteration()
        assert held <= time.monotonic() - begun < held + 0.25


def test_a_training_is_made_of_what_the_process_was_given(
    monkeypatch: pytest.MonkeyPatch, environment: Environment
) -> None:
    for name, value in variables(environment).items():
        monkeypatch.setenv(name, value)
    with training(total_iterations=2) as job:
        assert list(job.iterations()) == [0, 1]
        assert job.environment == environment
        assert job.checkpoint_dir == environment.checkpoint_dir


def test_the_plain_example_runs_alone_and_is_resumed(environment: Environment) -> None:
    line = [sys.executable, str(EXAMPLES / "plain.py")]
    alone = {name: value for name, value in os.environ.items() if not name.startswith("METRONOME_")}
    alone["PYTHONPATH"] = variables(environment)["PYTHONPATH"]
    first = subprocess.run(line, env=alone, capture_output=True, text=True, check=True, timeout=60)
    assert first.stdout == "y = 3.000 x + 1.000\n"
    assert environment.checkpoint_dir is not None
    (environment.checkpoint_dir / "line.json").write_text("[7.0, 5.0, 2000]")
    resumed = subprocess.run(line, env=variables(environment), capture_output=True, text=True, check=True, timeout=60)
    assert resumed.stdout == "y = 7.000 x + 5.000\n"
