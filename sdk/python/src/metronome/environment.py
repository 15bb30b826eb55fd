"""What a member of a job is told when it is started."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Mapping, Optional


@dataclass(frozen=True)
class Environment:
    """Everything may be missing: then nobody listens, or nothing is asked for."""

    job: Optional[str] = None
    member: Optional[str] = None
    attempt: int = 0
    rank: Optional[int] = None
    world_size: Optional[int] = None
    socket: Optional[Path] = None
    token: Optional[str] = None
    directory: Optional[Path] = None
    checkpoint_dir: Optional[Path] = None

    @classmethod
    def read(cls, variables: Optional[Mapping[str, str]] = None) -> Environment:
        given = os.environ if variables is None else variables
        return cls(
            job=given.get("METRONOME_JOB") or None,
            member=given.get("METRONOME_MEMBER") or None,
            attempt=_number(given, "METRONOME_ATTEMPT") or 0,
            rank=_number(given, "RANK"),
            world_size=_number(given, "WORLD_SIZE"),
            socket=_path(given, "METRONOME_SOCKET"),
            token=given.get("METRONOME_TOKEN") or None,
            directory=_path(given, "METRONOME_DIR"),
            checkpoint_dir=_path(given, "METRONOME_CHECKPOINT_DIR"),
        )

    @property
    def leads(self) -> bool:
        """Whether this is the member that waits for the job's turn. One with others around it but without a rank is a
        server, and follows."""
        if self.rank is not None:
            return self.rank == 0
        return self.world_size is None

    @property
    def is_heard(self) -> bool:
        """Whether somebody takes reports. Without a token nobody would know whose they are."""
        return self.socket is not None and self.token is not None

    @property
    def is_alone(self) -> bool:
        return self.world_size is None or self.world_size <= 1


def _number(given: Mapping[str, str], name: str) -> Optional[int]:
    try:
        return int(given[name])
    except (KeyError, ValueError):
        return None


def _path(given: Mapping[str, str], name: str) -> Optional[Path]:
    text = given.get(name)
    return Path(text) if text else None
