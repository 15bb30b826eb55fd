"""Members that are asked to leave save between two iterations, all after the same one, and leave."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Iterator, List

import pytest
from given import variables

from metronome import LEFT, Environment, Job


def ask() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(autouse=True)
def signals_as_they_were() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def test_who_is_asked_ends_its_iteration_saves_and_leaves(environment: Environment) -> None:
    code = """
import metronome
with metronome.training(total_iterations=100000) as job:
    @job.on_checkpoint
    def save():
        (job.checkpoint_dir / "saved").write_text(str(job.iteration))
    for step in job.iterations():
        print("begins", step, flush=True)
        job.report(loss=1)
        print("ends", step, flush=True)
"""
    line = [sys.executable, "-c", code]
    with subprocess.Popen(line, env=variables(environment), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for said in process.stdout:
            lines.append(said.split())
            if len(lines) == 20:
                process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == LEFT == 143
    assert environment.checkpoint_dir is not None
    saved = int((environment.checkpoint_dir / "saved").read_text())
    assert lines[-1] == ["ends", str(saved - 1)]
    assert 10 <= saved < 100000


def test_who_saves_nothing_ends_by_the_signal_as_ever(environment: Environment) -> None:
    code = "import metronome, os, signal\nfor step in metronome.Job.from_environment().iterations(3):\n"
    code += "    os.kill(os.getpid(), signal.SIGTERM)"
    ended = subprocess.run([sys.executable, "-c", code], env=variables(environment), timeout=30)
    assert ended.returncode == -signal.SIGTERM


def test_a_checkpoint_that_fails_is_not_taken_for_one(environment: Environment) -> None:
    job = Job(environment)

    @job.on_checkpoint
    def save() -> None:
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        for _ in job.iterations(3):
            ask()
    job.close()


def leaves_after(job: Job, total: int = 10) -> int:
    with pytest.raises(SystemExit) as left:
        for _ in job.iterations(total):
            pass
    assert left.value.code == LEFT
    return job.iteration


def test_members_agree_by_their_own_means(environment: Environment) -> None:
    job = Job(dataclasses.replace(environment, rank=1, world_size=2))
    job.on_checkpoint(lambda: None)
    asked: List[bool] = []

    @job.agree
    def anybody(is_asked: bool) -> bool:
        asked.append(is_asked)
        if len(asked) == 3:
            ask()
        return len(asked) == 6

    assert leaves_after(job) == 5
    # Before the first iteration, and after each.
    assert asked == [False, False, False, True, True, True]


def test_who_looks_by_hand_leaves_when_it_says(environment: Environment) -> None:
    job = Job(environment)
    saved: List[int] = []
    job.on_checkpoint(lambda: saved.append(job.iteration))
    with pytest.raises(SystemExit):
        for step in job.iterations(10):
            if step == 2:
                ask()
            if job.should_leave() and step == 4:
                job.leave_after(step + 2)
    assert saved == [6]


def test_rank_0_says_when_and_nobody_leaves_before(environment: Environment) -> None:
    zero, one = (Job(dataclasses.replace(environment, rank=rank, world_size=2)) for rank in (0, 1))
    for job in (zero, one):
        job.begin_iteration()
    one.leave_by(lambda: left.append(("one", one.iteration)))
    zero.leave_by(lambda: left.append(("zero", zero.iteration)))
    left: List[object] = []
    # Only the one without a say is asked: handlers of both would hear a signal of this process.
    one._leaving.is_asked = True
    one.end_iteration()
    zero.end_iteration()
    assert left == []
    for job in (one, zero):
        job.begin_iteration()
        job.end_iteration()
    assert left == [("one", 2), ("zero", 2)]
    zero.close()
    one.close()


def test_a_member_that_is_asked_before_rank_0_begins_is_heard_all_the_same(environment: Environment) -> None:
    zero, one = (Job(dataclasses.replace(environment, rank=rank, world_size=2)) for rank in (0, 1))
    left: List[object] = []
    one.leave_by(lambda: left.append(("one", one.iteration)))
    zero.leave_by(lambda: left.append(("zero", zero.iteration)))
    one._leaving.is_asked = True
    for _ in range(2):
        for job in (one, zero):
            job.begin_iteration()
        for job in (one, zero):
            job.end_iteration()
    assert left == [("one", 2), ("zero", 2)]
    zero.close()
    one.close()


def test_a_folder_that_cannot_be_written_fails_nobody(environment: Environment, folder: Path) -> None:
    gone = folder / "gone"
    job = Job(dataclasses.replace(environment, rank=0, world_size=2, checkpoint_dir=gone))
    job.on_checkpoint(lambda: None)
    for step in job.iterations(4):
        if step == 1:
            ask()
    assert job.iteration == 4
    job.close()


def test_a_closed_job_leaves_signals_as_they_were(environment: Environment) -> None:
    heard: List[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    job = Job(environment)
    job.on_checkpoint(lambda: None)
    ask()
    assert heard == []
    job.close()
    ask()
    assert heard == [signal.SIGTERM]


def test_in_another_thread_nothing_is_heard_and_nothing_fails(environment: Environment) -> None:
    done: List[int] = []

    def train() -> None:
        job = Job(environment)
        job.on_checkpoint(lambda: None)
        done.extend(job.iterations(3))
        job.close()

    thread = threading.Thread(target=train)
    thread.start()
    thread.join(timeout=10)
    assert done == [0, 1, 2]
