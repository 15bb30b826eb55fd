"""For `transformers.Trainer`:

    callback = MetronomeCallback()
    trainer = Trainer(..., callbacks=[callback])
    trainer.train(resume_from_checkpoint=last_checkpoint(trainer.args.output_dir))

Needs `transformers`; nothing else of this package does. Leave `TrainingArguments.enable_jit_checkpoint` off: it
installs another handler of `SIGTERM`, with which members leave after different steps.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from transformers import TrainerCallback

from .job import Job

# What a `Trainer` calls its checkpoints, and the file that it writes last into each.
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")
_WRITTEN_LAST = "trainer_state.json"


def last_checkpoint(folder: Union[str, os.PathLike[str]]) -> Optional[str]:
    """The newest complete checkpoint of a `Trainer` in `folder`; `None` where there is none.

    `transformers.trainer_utils.get_last_checkpoint` also returns a checkpoint that was cut off while it was written. A
    job that resumes from that one fails at every start.
    """
    steps = {}
    for path in Path(folder).glob("checkpoint-*"):
        named = _CHECKPOINT.fullmatch(path.name)
        if named and (path / _WRITTEN_LAST).exists():
            steps[int(named[1])] = str(path)
    return steps[max(steps)] if steps else None


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

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # A `Trainer` that stops ends its epoch, and would save the same checkpoint again there.
        if self._leaves:
            control.should_save = False

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
