"""Leaving when asked to: by `SIGTERM`, between two iterations, all members after the same one.

A member that left an iteration before the others would keep them waiting for it, and what they save would not fit
together. Members of one job are asked at nearly, but not exactly, the same moment, so they have to agree:

* *By the folder of checkpoints*, which all of them see. Whoever is asked leaves a note. The member with rank 0 looks
  for notes between iterations and writes after which iteration all leave: the one that it is about to begin. No other
  member can be done with that one before rank 0 has taken part in it, and by then the file is there. That holds for
  every training in which members exchange something in each iteration.
* *By the training's own means*: a function that says whether any member was asked, such as an all-reduce.
* *By hand*: `should_leave` and `leave_after`.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any, Callable, Optional, Protocol

from .environment import Environment


class Agreement(Protocol):
    def decide(self, iteration: int, asked: bool) -> bool:
        """Whether to leave, between iterations, when so many are done."""
        ...


class Alone:
    """Nobody to agree with, or no way to."""

    def decide(self, iteration: int, asked: bool) -> bool:
        return asked


class ByHand:
    """Others decide, and say so by `leave_after`."""

    def decide(self, iteration: int, asked: bool) -> bool:
        return False


class ByFunction:
    def __init__(self, anybody: Callable[[bool], object]) -> None:
        self._anybody = anybody

    def decide(self, iteration: int, asked: bool) -> bool:
        return bool(self._anybody(asked))


class ByFolder:
    """Files of an earlier start may still lie there. Rank 0 removes them before its first iteration, and so before any
    other member is done with one; what they say of iterations that were done before we began is ignored."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._note = folder / ".metronome-asked"
        self._verdict = folder / ".metronome-leave-after"
        self._rank = rank
        self._began_at: Optional[int] = None
        # Only rank 0 knows it without a look at the folder.
        self._announced: Optional[int] = None

    def decide(self, iteration: int, asked: bool) -> bool:
        if self._began_at is None:
            self._began_at = iteration
            if self._rank == 0:
                _remove(self._note)
                _remove(self._verdict)
        # Also again: rank 0 takes a note that was left before its first iteration for one of an earlier start.
        if asked and not os.path.exists(self._note):
            _write(self._note, "")
        last = self._announced if self._rank == 0 else _read(self._verdict)
        is_wanted = self._rank == 0 and last is None and (asked or os.path.exists(self._note))
        if is_wanted and _write(self._verdict, str(iteration + 1)):
            self._announced = iteration + 1
        return last is not None and self._began_at < last <= iteration


class Leaving:
    """Whether, and after which iteration, this member leaves."""

    def __init__(self, environment: Environment) -> None:
        self.is_asked = False
        self.agreement = _usual_agreement(environment)
        self._last: Optional[int] = None
        self._is_listening = False
        self._before: Any = None

    def listen(self) -> None:
        """From now on `SIGTERM` is a request. Only the main thread can say so; elsewhere all stays as it was."""
        if self._is_listening:
            return
        try:
            self._before = signal.signal(signal.SIGTERM, self._note)
            self._is_listening = True
        except ValueError:
            pass

    def stop_listening(self) -> None:
        if not self._is_listening:
            return
        try:
            # `None` is a handler that Python did not set and cannot set again.
            if signal.getsignal(signal.SIGTERM) == self._note and self._before is not None:
                signal.signal(signal.SIGTERM, self._before)
            self._is_listening = False
        except ValueError:
            pass

    def is_done(self) -> None:
        """From now on requests change nothing, to the very end: it leaves already."""
        if self._is_listening:
            self._is_listening = False
            # Not a function of ours: those are gone before the process is.
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def after(self, iteration: int) -> None:
        self._last = iteration if self._last is None else min(self._last, iteration)

    def is_due(self, iteration: int) -> bool:
        """Asked between iterations, once each time, by all members alike: to agree may mean to wait for each other."""
        agreed = self.agreement.decide(iteration, self.is_asked)
        return agreed or (self._last is not None and iteration >= self._last)

    def _note(self, _signal: int, _frame: Optional[FrameType]) -> None:
        self.is_asked = True


def _usual_agreement(environment: Environment) -> Agreement:
    folder, rank = environment.checkpoint_dir, environment.rank
    if environment.is_alone or folder is None or rank is None:
        return Alone()
    return ByFolder(folder, rank)


def _write(path: Path, text: str) -> bool:
    """Whole or not at all; a folder that cannot be written is no reason to fail."""
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        aside.write_text(text)
        aside.replace(path)
    except OSError:
        return False
    return True


def _read(path: Path) -> Optional[int]:
    # In nearly all iterations it is not there; to fail to open it takes longer than to look.
    if not os.path.exists(path):
        return None
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
