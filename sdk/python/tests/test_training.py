"""A real training with two members, asked to leave or killed in the middle, goes on where it was."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterator, List

import pytest
from fake_agent import TOKEN, FakeAgent

from metronome.clock import MILLISECOND, SECOND
from metronome.progress import format_time

HERE = Path(__file__).parent
TOTAL = 120
SAVE_EVERY = 25
MEMBERS = 2


class Gang:
    """Two processes that train; ended when the test ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.members: List[subprocess.Popen[bytes]] = []
        (folder / "checkpoint").mkdir(parents=True)
        for rank in range(MEMBERS):
            (folder / f"member-{rank}").mkdir()

    def start(self) -> None:
        port = free_port()
        self.members = [self._start_member(rank, port) for rank in range(MEMBERS)]

    def _start_member(self, rank: int, port: int) -> subprocess.Popen[bytes]:
        given = {
            "PYTHONPATH": str(HERE.parent / "src"),
            # Two processes on few cores do not get faster by threads.
            "OPENBLAS_NUM_THREADS": "1",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
            "RANK": str(rank),
            "WORLD_SIZE": str(MEMBERS),
            "METRONOME_JOB": "default/circle",
            "METRONOME_MEMBER": f"worker-{rank}",
            "METRONOME_ATTEMPT": "1",
            "METRONOME_SOCKET": str(self.folder / "socket"),
            "METRONOME_TOKEN": TOKEN,
            "METRONOME_DIR": str(self.folder / f"member-{rank}"),
            "METRONOME_CHECKPOINT_DIR": str(self.folder / "checkpoint"),
        }
        line = [sys.executable, str(HERE / "two_layers.py"), str(self.folder)]
        return subprocess.Popen(line, env={**os.environ, **given})

    def trained(self, rank: int) -> List[int]:
        """The iterations that a member has computed, in all its starts."""
        return [int(line.split()[0]) for line in self._trace(rank)]

    def begins(self, rank: int) -> List[int]:
        return [int(line.split()[1]) for line in self._trace(rank)]

    def _trace(self, rank: int) -> List[str]:
        path = self.folder / f"trace-{rank}"
        return path.read_text().splitlines() if path.exists() else []

    def wait_for_iteration(self, iteration: int) -> None:
        ends = time.monotonic() + 60
        while iteration not in self.trained(0):
            assert time.monotonic() < ends and self.members[0].poll() is None
            time.sleep(0.01)

    def exit_codes(self) -> List[int]:
        return [member.wait(timeout=60) for member in self.members]

    def result(self) -> str:
        return (self.folder / "result").read_text()

    def end(self) -> None:
        for member in self.members:
            member.kill()
            member.wait()


@pytest.fixture
def gang(folder: Path) -> Iterator[Gang]:
    made = Gang(folder)
    yield made
    made.end()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What comes out when nobody asks for anything and no agent is there."""
    gang = Gang(tmp_path_factory.mktemp("undisturbed") / "run")
    try:
        gang.start()
        assert gang.exit_codes() == [0, 0]
        return gang.result()
    finally:
        gang.end()


def test_a_training_learns_and_its_agent_hears_of_it(gang: Gang, undisturbed: str) -> None:
    with FakeAgent(gang.folder / "socket") as agent:
        gang.start()
        assert gang.exit_codes() == [0, 0]
        reports = agent.reports
    assert gang.result() == undisturbed
    for member in ("worker-0", "worker-1"):
        told = [report for report in reports if report["member"] == member]
        assert told[-1]["iteration"] == TOTAL
        assert all(report["job"] == "default/circle" for report in told)
        assert all(0.005 <= report["computeSeconds"] < 1 for report in told)
        losses = [report["metrics"]["loss"] for report in told]
        assert losses[-1] < 0.75 * losses[0]
    assert float(undisturbed.split()[0]) == losses[-1]


@pytest.mark.parametrize("asked", [[0, 1], [1, 0], [0], [1]])
def test_whoever_is_asked_all_leave_after_the_same_iteration_and_go_on_from_there(
    gang: Gang, undisturbed: str, asked: List[int]
) -> None:
    with FakeAgent(gang.folder / "socket"):
        gang.start()
        gang.wait_for_iteration(40)
        for rank in asked:
            gang.members[rank].send_signal(signal.SIGTERM)
            time.sleep(0.03)
        assert gang.exit_codes() == [143, 143]
        left_after = len(gang.trained(0))
        assert 40 < left_after < 80
        assert gang.trained(0) == gang.trained(1) == list(range(left_after))

        gang.start()
        assert gang.exit_codes() == [0, 0]
    assert gang.trained(0) == gang.trained(1) == list(range(TOTAL))
    assert gang.result() == undisturbed


def test_who_is_asked_again_and_again_still_computes_each_iteration_once(gang: Gang, undisturbed: str) -> None:
    for iteration in (20, 50, 90):
        gang.start()
        gang.wait_for_iteration(iteration)
        for member in gang.members:
            member.send_signal(signal.SIGTERM)
        assert gang.exit_codes() == [143, 143]
    gang.start()
    assert gang.exit_codes() == [0, 0]
    assert gang.trained(0) == gang.trained(1) == list(range(TOTAL))
    assert gang.result() == undisturbed


def test_who_is_killed_loses_what_came_after_its_last_checkpoint(gang: Gang, undisturbed: str) -> None:
    gang.start()
    gang.wait_for_iteration(60)
    for member in gang.members:
        member.kill()
    gang.exit_codes()
    reached = len(gang.trained(0))
    saved = reached // SAVE_EVERY * SAVE_EVERY
    gang.start()
    assert gang.exit_codes() == [0, 0]
    again = gang.trained(0)[reached:]
    # Killed between an iteration's end and its checkpoint, it has the one before.
    assert again in [list(range(saved, TOTAL)), list(range(saved - SAVE_EVERY, TOTAL))]
    assert gang.result() == undisturbed


def test_notes_that_an_earlier_start_left_stop_nobody(gang: Gang, undisturbed: str) -> None:
    (gang.folder / "checkpoint" / ".metronome-asked").touch()
    (gang.folder / "checkpoint" / ".metronome-leave-after").write_text("1")
    gang.start()
    assert gang.exit_codes() == [0, 0]
    assert gang.result() == undisturbed


def test_one_member_waits_for_the_turn_and_the_others_follow(gang: Gang, undisturbed: str) -> None:
    period = 30 * MILLISECOND
    now = time.time_ns()
    word = {
        "generation": 1,
        "anchor": format_time(now),
        "periodNs": period,
        "turnNs": 10 * MILLISECOND,
        "class": 0,
        "holdNs": period,
        "validUntil": format_time(now + 600 * SECOND),
        "held": "everyIteration",
    }
    for rank in range(MEMBERS):
        (gang.folder / f"member-{rank}" / "turn.json").write_text(json.dumps(word))
    gang.start()
    assert gang.exit_codes() == [0, 0]
    assert gang.result() == undisturbed
    late = sorted((begin - now - 10 * MILLISECOND) % period for begin in gang.begins(0))
    # On a busy machine single iterations are late; most are not.
    assert late[len(late) // 2] < 5 * MILLISECOND
    apart = [after - before for before, after in zip(gang.begins(1), gang.begins(1)[1:])]
    assert sorted(apart)[len(apart) // 2] == pytest.approx(period, rel=0.2)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
