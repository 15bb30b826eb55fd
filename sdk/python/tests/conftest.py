"""What several tests need."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Iterator

import pytest
from fake_agent import TOKEN

from metronome import Environment


@pytest.fixture
def folder() -> Iterator[Path]:
    """With a short name: the path of a socket has at most 107 bytes."""
    made = Path(tempfile.mkdtemp(prefix="mtr-"))
    yield made
    shutil.rmtree(made)


@pytest.fixture
def listening(folder: Path) -> Path:
    """Where the agent is to listen."""
    return folder / "socket"


@pytest.fixture
def environment(folder: Path, listening: Path) -> Environment:
    """Of a job with one member."""
    return Environment(
        job="team-a/bert",
        member="worker-0",
        socket=listening,
        token=TOKEN,
        directory=folder,
        checkpoint_dir=folder,
    )
