"""One member of a training job, as its training code sees it."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Callable, Iterator, List, Mapping, NoReturn, Optional, TypeVar

from .clock import MILLISECOND, SECOND, Clock, RealClock
from .environment import Environment
from .gate import Gate
from .leaving import ByFunction, ByHand, Leaving
from .progress import Progress, amount, numbers
from .reporter import Reporter
from .size import Size, Sizes

# The exit code of a process that ended by `SIGTERM`: nobody takes it for the end of the training.
LEFT = 143

# An iteration of which nothing is to be told but that it is done is told at most so often.
_COUNT_EVERY = 200 * MILLISECOND

_Save = TypeVar("_Save", bound=Callable[[], object])
_Resized = TypeVar("_Resized", bound=Callable[[Size], object])
_Anybody = TypeVar("_Anybody", bound=Callable[[bool], object])


class Job:
    """Made by `training` or `Job.from_environment`. Where nobody asks for anything and nobody listens, all of it does
    nothing, at the cost of some microseconds an iteration. To be used by one thread; `report` by any."""

    def __init__(
        self,
        environment: Environment,
        total_iterations: Optional[int] = None,
        clock: Optional[Clock] = None,
    ) -> None:
        self.environment = environment
        self.total_iterations = total_iterations
        self.iteration = 0
        """How many iterations are done, those before a checkpoint included."""
        self._clock: Clock = clock or RealClock()
        folder = environment.directory
        self._gate = Gate(folder / "turn.json" if folder and environment.leads else None, self._clock)
        self._sizes = Sizes(folder / "size.json" if folder else None)
        self._reporter = Reporter(environment)
        self._leaving = Leaving(environment)
        self._savers: List[Callable[[], object]] = []
        self._resizers: List[Callable[[Size], object]] = []
        self._leave: Callable[[], object] = self._save_and_exit
        self._has_begun = False
        self._present: Optional[_Iteration] = None
        self._counted_at: Optional[int] = None

    @classmethod
    def from_environment(
        cls, total_iterations: Optional[int] = None, variables: Optional[Mapping[str, str]] = None
    ) -> Job:
        return cls(Environment.read(variables), total_iterations)

    @property
    def checkpoint_dir(self) -> Optional[Path]:
        """The folder of the job, the same for all its members and all its starts; `None` where there is none."""
        return self.environment.checkpoint_dir

    @property
    def rank(self) -> int:
        return self.environment.rank or 0

    @property
    def size(self) -> Size:
        return self._sizes.size

    # Iterations

    def iterations(self, total: Optional[int] = None, start: Optional[int] = None) -> Iterator[int]:
        """Counts from `start`, the iterations that are done already, to `total`. Each begins at its turn, and is over
        when the next is asked for."""
        total = self.total_iterations if total is None else total
        if start is not None:
            self.resume_at(start)
        while total is None or self.iteration < total:
            self.begin_iteration()
            try:
                yield self.iteration
            except GeneratorExit:
                self._give_up_iteration()
                raise
            self.end_iteration()

    def resume_at(self, iteration: int) -> None:
        """So many iterations are done already, as a checkpoint says."""
        self.iteration = iteration

    def begin_iteration(self) -> None:
        """Waits for the turn of this iteration, if it has one. `iterations` does it by itself."""
        if not self._has_begun:
            self._has_begun = True
            self._between_iterations()
        self._gate.wait(lambda: self._leaving.is_asked)
        self._present = _Iteration(self._clock.steady())

    def end_iteration(self) -> None:
        """Counts and reports it; saves and leaves, if that was asked for."""
        present, self._present = self._present, None
        self.iteration += 1
        if present is not None:
            self._tell(present)
        self._between_iterations()

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Around what waits for other members, such as an all-reduce: what is left of the iteration is this member's
        own work, and tells a slow node from a slow job."""
        begun = self._clock.steady()
        try:
            yield
        finally:
            if self._present is not None:
                waited = self._clock.steady() - begun
                self._present.waited = (self._present.waited or 0) + waited

    # Reports

    def report(
        self,
        iteration: Optional[int] = None,
        loss: object = None,
        throughput: object = None,
        **metrics: object,
    ) -> None:
        """Says how the training does. Never waits, never fails. Without `iteration` it belongs to the present one and
        is told when that is done."""
        # Nothing about a report is worth a training.
        with contextlib.suppress(Exception):
            found = numbers(metrics if loss is None else {"loss": loss, **metrics})
            present = self._present
            if iteration is None and present is not None:
                present.metrics.update(found)
                present.throughput = present.throughput if throughput is None else amount(throughput)
                return
            done = self.iteration if iteration is None else int(iteration)
            if done >= 0:
                self._reporter.put(Progress(done, self._clock.now(), found, throughput=amount(throughput)))

    # Being asked

    def on_checkpoint(self, save: _Save) -> _Save:
        """Called between iterations after `SIGTERM`; then the process leaves."""
        self._savers.append(save)
        self._leaving.listen()
        return save

    def on_resize(self, resized: _Resized) -> _Resized:
        """Called between iterations when the job's size is another one."""
        self._resizers.append(resized)
        return resized

    def agree(self, anybody: _Anybody) -> _Anybody:
        """All members leave after the same iteration. `anybody` is called by each of them between iterations, with
        whether it was asked to leave, and says whether any was."""
        self._leaving.agreement = ByFunction(anybody)
        return anybody

    def should_leave(self) -> bool:
        """Whether this member was asked to. Who looks decides: from the first call on, it leaves by `leave_after`
        only."""
        self._leaving.listen()
        self._leaving.agreement = ByHand()
        return self._leaving.is_asked

    def leave_after(self, iteration: int) -> None:
        """Saves and leaves when so many iterations are done."""
        self._leaving.after(iteration)

    def leave_by(self, leave: Callable[[], object]) -> None:
        """For loops that save and end in their own way: called in place of saving and leaving."""
        self._leave = leave
        self._leaving.listen()

    def leave(self) -> NoReturn:
        """Ends the process as one that was stopped and is to go on later. Saves nothing."""
        self._leaving.is_done()
        self._reporter.close()
        raise SystemExit(LEFT)

    def close(self) -> None:
        """Sends what is still to be reported, for a second at most, and leaves signals as they were."""
        self._leaving.stop_listening()
        self._reporter.close()

    # Between iterations

    def _between_iterations(self) -> None:
        if self._sizes.has_changed():
            for resized in self._resizers:
                resized(self.size)
        if self._leaving.is_due(self.iteration):
            self._leave()

    def _save_and_exit(self) -> NoReturn:
        for save in self._savers:
            save()
        self.leave()

    def _tell(self, present: _Iteration) -> None:
        at = self._clock.steady()
        compute = self._own_seconds(present, at)
        is_news = bool(present.metrics) or present.throughput is not None
        is_time = self._counted_at is None or at - self._counted_at >= _COUNT_EVERY
        if is_news or is_time:
            self._counted_at = at
            now = self._clock.now()
            told = Progress(self.iteration, now, present.metrics, compute, present.throughput)
            self._put(told)

    def _own_seconds(self, present: _Iteration, at: int) -> Optional[float]:
        """Of several members, only who says when it waits for the others knows what its own part takes."""
        if present.waited is None and not self.environment.is_alone:
            return None
        return max(at - present.begun - (present.waited or 0), 0) / SECOND

    def _give_up_iteration(self) -> None:
        present, self._present = self._present, None
        if present is not None and present.metrics:
            self._put(Progress(self.iteration, self._clock.now(), present.metrics))

    def _put(self, progress: Progress) -> None:
        with contextlib.suppress(Exception):
            self._reporter.put(progress)


class _Iteration:
    """The present one: since when, and what was said of it."""

    def __init__(self, begun: int) -> None:
        self.begun = begun
        self.waited: Optional[int] = None
        self.metrics: dict[str, float] = {}
        self.throughput: Optional[float] = None


@contextlib.contextmanager
def training(total_iterations: Optional[int] = None) -> Iterator[Job]:
    """A job for as long as it trains."""
    job = Job.from_environment(total_iterations)
    try:
        yield job
    finally:
        job.close()
