"""The callback for `transformers.Trainer`, beside a stand-in of the `Trainer`: the real one is not installed here. The
stand-in calls the callbacks in the order in which `Trainer._inner_training_loop` does, with only those objects that
these tests need."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import types
from pathlib import Path
from typing import Any, Iterator, List

import pytest
from fake_agent import FakeAgent

from metronome import LEFT, Environment, Job


class TrainerCallback:
    """As in `transformers.trainer_callback`: every event there is does nothing."""

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None: ...
    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None: ...
    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None: ...
    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None: ...
    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None: ...
    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None: ...
    def on_log(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None: ...
    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None: ...


class Trainer:
    def __init__(self, callback: TrainerCallback, asked_in: int = -1) -> None:
        self.callback = callback
        self.state = types.SimpleNamespace(global_step=0)
        self.control = types.SimpleNamespace(should_save=False, should_training_stop=False)
        self.saved: List[int] = []
        self.asked_in = asked_in

    def tell(self, event: str, **kwargs: Any) -> None:
        getattr(self.callback, event)(None, self.state, self.control, model=None, **kwargs)

    def train(self, steps: int, resume_from: int = 0) -> None:
        self.state.global_step = resume_from
        self.control.should_training_stop = False
        self.tell("on_train_begin")
        self.tell("on_epoch_begin")
        while self.state.global_step < steps and not self.control.should_training_stop:
            self.tell("on_step_begin")
            if self.state.global_step == self.asked_in:
                os.kill(os.getpid(), signal.SIGTERM)
            self.state.global_step += 1
            self.control.should_save = False
            self.tell("on_step_end")
            self.tell("on_log", logs={"loss": 1 / self.state.global_step, "epoch": 0.5, "iteration": 3})
            self.save_if_asked()
        self.tell("on_epoch_end")
        self.save_if_asked()
        self.tell("on_train_end")

    def save_if_asked(self) -> None:
        """After every step and after every epoch. Only the next step takes back what was asked for."""
        if self.control.should_save:
            self.saved.append(self.state.global_step)
            self.tell("on_save")


@pytest.fixture
def huggingface(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module, beside the stand-in."""
    stand_in = types.ModuleType("transformers")
    stand_in.TrainerCallback = TrainerCallback  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", stand_in)
    before = signal.getsignal(signal.SIGTERM)
    yield importlib.import_module("metronome.huggingface")
    sys.modules.pop("metronome.huggingface")
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def callback_of(huggingface: Any) -> Any:
    return huggingface.MetronomeCallback


def test_steps_are_iterations_and_what_is_logged_is_reported(
    callback_of: Any, environment: Environment, listening: Any
) -> None:
    job = Job(environment)
    with FakeAgent(listening) as agent:
        Trainer(callback_of(job)).train(12, resume_from=10)
        job.close()
        reports = agent.reports
    assert job.iteration == 12
    logged = [(report["iteration"], report["metrics"]) for report in reports if report["metrics"]]
    assert logged == [(11, {"loss": 1 / 11, "epoch": 0.5}), (12, {"loss": 1 / 12, "epoch": 0.5})]


def test_asked_to_leave_it_has_the_trainer_save_once_and_goes(callback_of: Any, environment: Environment) -> None:
    trainer = Trainer(callback_of(Job(environment)), asked_in=4)
    with pytest.raises(SystemExit) as left:
        trainer.train(100)
    assert left.value.code == LEFT
    assert trainer.saved == [5]


def test_a_training_that_ends_by_itself_goes_on_behind_it(callback_of: Any, environment: Environment) -> None:
    trainer = Trainer(callback_of(Job(environment)))
    trainer.train(3)
    trainer.train(6, resume_from=3)
    assert trainer.saved == []
    assert trainer.callback.job.iteration == 6  # type: ignore[attr-defined]


def test_a_training_resumes_from_the_newest_complete_checkpoint(huggingface: Any, folder: Path) -> None:
    assert huggingface.last_checkpoint(folder) is None
    for name in ("checkpoint-9", "checkpoint-10", "checkpoint-best"):
        (folder / name).mkdir()
        (folder / name / "trainer_state.json").write_text("{}")
    (folder / "checkpoint-11").mkdir()
    (folder / "checkpoint-11" / "model.safetensors").write_text("")
    assert huggingface.last_checkpoint(folder) == str(folder / "checkpoint-10")
    assert huggingface.last_checkpoint(folder / "missing") is None


def test_the_package_itself_does_not_need_transformers() -> None:
    assert "transformers" not in sys.modules
    with pytest.raises(ModuleNotFoundError, match="transformers"):
        importlib.import_module("metronome.huggingface")
