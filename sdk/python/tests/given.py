"""What processes that tests start are given."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict

from metronome import Environment

SOURCE = Path(__file__).parent.parent / "src"


def variables(environment: Environment) -> Dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "METRONOME_JOB": str(environment.job),
        "METRONOME_MEMBER": str(environment.member),
        "METRONOME_SOCKET": str(environment.socket),
        "METRONOME_TOKEN": str(environment.token),
        "METRONOME_DIR": str(environment.directory),
        "METRONOME_CHECKPOINT_DIR": str(environment.checkpoint_dir),
    }
