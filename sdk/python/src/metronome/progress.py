"""What is reported of a training, as the agent takes it."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional

from .clock import SECOND
from .environment import Environment

# A report with more metrics, or with names of more bytes, is not taken by the agent at all.
MOST_METRICS = 32
LONGEST_NAME = 64


@dataclass
class Progress:
    iteration: int
    at: int
    metrics: Dict[str, float] = field(default_factory=dict)
    compute_seconds: Optional[float] = None
    throughput: Optional[float] = None

    def body(self, whose: Environment) -> bytes:
        said: Dict[str, Any] = {
            "job": whose.job,
            "member": whose.member,
            "iteration": self.iteration,
            "time": format_time(self.at),
            "metrics": self.metrics,
            "computeSeconds": self.compute_seconds,
            "throughput": self.throughput,
        }
        present = {name: value for name, value in said.items() if value is not None}
        return json.dumps(present, allow_nan=False).encode()


def numbers(metrics: Mapping[str, object]) -> Dict[str, float]:
    """The metrics that are numbers. A loss that is none any more cannot be said in JSON."""
    found: Dict[str, float] = {}
    for name, value in metrics.items():
        read, short = number(value), _short(name)
        if read is not None and short and len(found) < MOST_METRICS:
            found[short] = read
    return found


def _short(name: str) -> str:
    return name.encode(errors="ignore")[:LONGEST_NAME].decode(errors="ignore")


def number(value: object) -> Optional[float]:
    """Also scalars of numpy and PyTorch, which know how to become a number."""
    try:
        read = float(value)  # type: ignore[arg-type]
    except Exception:
        return None
    return read if math.isfinite(read) else None


def amount(value: object) -> Optional[float]:
    """A number that cannot be below zero."""
    read = number(value)
    return read if read is not None and read >= 0 else None


def format_time(at: int) -> str:
    seconds, fraction = divmod(at, SECOND)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:09d}Z"
