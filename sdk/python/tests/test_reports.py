"""Reports reach an agent, and an agent that is gone, slow or mad costs a training nothing."""

from __future__ import annotations

import dataclasses
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator, List

import pytest
from fake_agent import FakeAgent, Request, answer, take
from given import variables

from metronome import Environment, Job


@pytest.fixture
def job(environment: Environment) -> Iterator[Job]:
    made = Job(environment)
    yield made
    made.close()


def longest_report(job: Job, count: int = 300) -> float:
    """How long the slowest but two of so many reports took; a busy machine may hold up single ones."""
    took: List[float] = []
    for step in range(count):
        begun = time.perf_counter()
        job.report(iteration=step, loss=1.0 / (step + 1))
        took.append(time.perf_counter() - begun)
    return sorted(took)[-3]


def test_a_report_says_whose_it_is_and_what_was_measured(job: Job, listening: Path) -> None:
    with FakeAgent(listening) as agent:
        job.report(iteration=7, loss=0.41, throughput=1200, accuracy=0.9)
        [report] = agent.wait_for(1)
        headers, _ = agent.requests[0]
    assert headers["authorization"] == "Bearer secret"
    assert headers["content-type"] == "application/json"
    assert report.pop("time").endswith("Z")
    assert report == {
        "job": "team-a/bert",
        "member": "worker-0",
        "iteration": 7,
        "metrics": {"loss": 0.41, "accuracy": 0.9},
        "throughput": 1200.0,
    }


def test_what_is_no_number_is_left_out(job: Job, listening: Path) -> None:
    many: Any = {f"m{index}": index for index in range(1000)}
    with FakeAgent(listening) as agent:
        job.report(
            iteration=1,
            loss=float("nan"),
            name="bert",
            tensor=object(),
            rate="0.5",
            **{"x" * 500: 1, "ü" * 500: 2, "": 3},
        )
        job.report(iteration=-1, loss=1)
        job.report(iteration=2, throughput=-1, **many)
        job.report(iteration="soon")  # type: ignore[arg-type]
        reports = agent.wait_for(2)
    assert reports[0]["metrics"] == {"rate": 0.5, "x" * 64: 1.0, "ü" * 32: 2.0}
    assert len(reports[1]["metrics"]) == 32
    assert "throughput" not in reports[1]
    assert [report["iteration"] for report in reports] == [1, 2]


def test_an_iteration_is_told_with_what_was_said_in_it(job: Job, listening: Path) -> None:
    with FakeAgent(listening) as agent:
        for step in job.iterations(3):
            job.report(loss=3.0 - step)
            job.report(accuracy=0.5)
            time.sleep(0.01)
        reports = agent.wait_for(3)
    assert [report["iteration"] for report in reports] == [1, 2, 3]
    assert [report["metrics"] for report in reports] == [{"loss": loss, "accuracy": 0.5} for loss in (3.0, 2.0, 1.0)]
    assert all(0.01 <= report["computeSeconds"] < 1 for report in reports)


def test_iterations_of_which_nothing_is_said_are_told_now_and_then(job: Job, listening: Path) -> None:
    with FakeAgent(listening) as agent:
        for _ in job.iterations(100):
            time.sleep(0.005)
        job.close()
        told = [report["iteration"] for report in agent.reports]
    assert 2 <= len(told) <= 20
    assert told[-1] > 50


def test_what_a_member_waits_for_others_is_not_its_own_work(environment: Environment, listening: Path) -> None:
    job = Job(dataclasses.replace(environment, rank=1, world_size=2))
    with FakeAgent(listening) as agent:
        for step in job.iterations(2):
            job.report(loss=1)
            if step == 1:
                time.sleep(0.01)
                with job.waiting():
                    time.sleep(0.2)
        reports = agent.wait_for(2)
    # Nobody has said how much of the first iteration was spent waiting.
    assert "computeSeconds" not in reports[0]
    assert 0.01 <= reports[1]["computeSeconds"] < 0.2
    job.close()


def test_a_wrong_token_is_not_tried_again_and_again(environment: Environment, listening: Path) -> None:
    job = Job(dataclasses.replace(environment, token="wrong"))
    with FakeAgent(listening) as agent:
        for step in range(50):
            job.report(iteration=step)
            time.sleep(0.01)
        assert 1 <= len(agent.requests) <= 4
        job.close()


def test_who_reports_before_its_agent_has_heard_of_it_is_heard_soon_after(job: Job, listening: Path) -> None:
    def new_here(number: int, request: Request) -> bytes:
        return answer("401 Unauthorized") if number == 1 else take(number, request)

    with FakeAgent(listening, new_here) as agent:
        job.report(iteration=1)
        reports = agent.wait_for(2, seconds=3)
    assert [report["iteration"] for report in reports] == [1, 1]


def test_who_is_told_to_wait_waits_and_then_says_it_again(job: Job, listening: Path) -> None:

    def busy_once(number: int, request: Request) -> bytes:
        return answer("429 Too Many Requests", b"{}", "Retry-After: 1") if number == 1 else take(number, request)

    with FakeAgent(listening, busy_once) as agent:
        job.report(iteration=1, loss=0.5)
        reports = agent.wait_for(2)
        apart = agent.came_at[1] - agent.came_at[0]
    assert [report["iteration"] for report in reports] == [1, 1]
    assert 0.95 <= apart < 4


def test_when_reports_wait_for_long_the_newest_win(job: Job, listening: Path) -> None:
    for step in range(1000):
        job.report(iteration=step)
    time.sleep(0.15)
    with FakeAgent(listening) as agent:
        reports = agent.wait_until(lambda told: bool(told) and told[-1]["iteration"] == 999)
    iterations = [report["iteration"] for report in reports]
    assert len(iterations) <= 17
    assert iterations == sorted(iterations)


def test_an_agent_that_comes_back_is_found_again(job: Job, listening: Path) -> None:
    first = FakeAgent(listening)
    job.report(iteration=1)
    first.wait_for(1)
    first.go()
    job.report(iteration=2)
    time.sleep(0.05)
    listening.unlink()
    with FakeAgent(listening) as second:
        job.report(iteration=3)
        reports = second.wait_for(2)
    assert [report["iteration"] for report in reports] == [2, 3]


def test_an_agent_that_closed_an_unused_connection_loses_nothing(job: Job, listening: Path) -> None:
    with FakeAgent(listening) as agent:
        job.report(iteration=1)
        agent.wait_for(1)
        time.sleep(0.1)
        agent.hang_up()
        job.report(iteration=2)
        # Its last words, for which there is no second attempt later.
        job.close()
        assert [report["iteration"] for report in agent.reports] == [1, 2]


GARBAGE = [
    b"\x00\xff" * 5000,
    b"HTTP/1.1 nonsense\r\n\r\n",
    b"HTTP/1.1 202 Accepted\r\nContent-Length: minus\r\n\r\n",
    b"HTTP/1.1 202 Accepted\r\nContent-Length: 10\r\n\r\n{",
    b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 202 Accepted\r\nContent-Length: 900000\r\n\r\n" + b"x" * 900_000,
    b"HTTP/1.1 429 Later\r\nRetry-After: nan\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
    b"",
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
def test_an_agent_that_talks_nonsense_costs_nothing_and_may_recover(job: Job, listening: Path, garbage: bytes) -> None:
    first_answers = 2

    def mad(number: int, request: Request) -> Any:
        return (garbage or None) if number <= first_answers else take(number, request)

    with FakeAgent(listening, mad) as agent:
        assert longest_report(job) < 0.005
        agent.wait_until(lambda told: len(told) > first_answers and told[-1]["iteration"] == 299)


def test_an_agent_that_never_answers_costs_nothing_and_a_second_at_the_end(
    environment: Environment, listening: Path
) -> None:
    job = Job(environment)

    def hang(_number: int, _request: Request) -> bytes:
        time.sleep(60)
        return b""

    with FakeAgent(listening, hang):
        assert longest_report(job) < 0.005
        begun = time.monotonic()
        job.close()
        assert time.monotonic() - begun < 1.5
        job.report(iteration=1)


def test_a_socket_that_nobody_accepts_on_costs_nothing(environment: Environment, listening: Path) -> None:
    job = Job(environment)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(str(listening))
        deaf.listen(0)
        assert longest_report(job) < 0.005
        begun = time.monotonic()
        job.close()
        assert time.monotonic() - begun < 1.5


def test_without_an_agent_all_goes_on_and_ends_at_once(folder: Path) -> None:
    for missing in (Environment(), Environment(socket=folder / "no-such-socket", token="t")):
        job = Job(missing)
        assert longest_report(job) < 0.005
        assert list(job.iterations(5)) == [0, 1, 2, 3, 4]
        begun = time.monotonic()
        job.close()
        assert time.monotonic() - begun < 0.5


def test_a_process_that_ends_says_its_last_words(environment: Environment, listening: Path) -> None:
    code = "import metronome\njob = metronome.Job.from_environment()\nfor step in range(5): job.report(step, loss=1)"
    with FakeAgent(listening) as agent:
        subprocess.run([sys.executable, "-c", code], env=variables(environment), check=True, timeout=30)
        assert [report["iteration"] for report in agent.reports] == [0, 1, 2, 3, 4]


def test_a_process_that_was_forked_off_reports_nothing_and_ends(environment: Environment, listening: Path) -> None:
    code = """
import os, metronome
with metronome.training() as job:
    job.report(1)
    # The worst moment: whoever is forked off has a lock that nobody will ever open.
    job._reporter._arrived.acquire()
    child = os.fork()
    if child == 0:
        job.report(2)
        job.close()
        os._exit(0)
    job._reporter._arrived.release()
    assert os.waitpid(child, 0)[1] == 0
    job.report(3)
"""
    with FakeAgent(listening) as agent:
        # From 3.12 on Python warns of forks beside threads; that is what is tried here.
        line = [sys.executable, "-W", "ignore", "-c", code]
        subprocess.run(line, env=variables(environment), check=True, timeout=30)
        assert [report["iteration"] for report in agent.reports] == [1, 3]
