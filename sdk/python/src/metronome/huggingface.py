"""For `transformers.Trainer`:

    trainer = Trainer(..., callbacks=[MetronomeCallback()])
    trainer.train(resume_from_checkpoint=last_checkpoint)

Needs `transformers`; nothing else of this package does.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

from transformers import TrainerCallback

from .job import Job


class MetronomeCallback(TrainerCallback):
    """Steps of the optimizer are the iterations. Asked to leave, it has the `Trainer` save a checkpoint by its own
    means and stop, and then leaves."""

    def __init__(self, job: Optional[Job] = None) -> None:
        self.job = job or Job.from_environment()
        self._leaves = False

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._leaves = False
        self.job.resume_at(state.global_step)
        self.job.leave_by(self._note)

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.job.begin_iteration()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.job.end_iteration()
        if self._leaves:
            control.should_save = True
            control.should_training_stop = True

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Optional[Mapping[str, Any]] = None, **kwargs: Any
    ) -> None:
        if logs:
            metrics = {name: value for name, value in logs.items() if name not in ("iteration", "throughput")}
            self.job.report(state.global_step, **metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._leaves:
            self.job.leave()

    def _note(self) -> None:
        self._leaves = True
