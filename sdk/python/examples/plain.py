"""A training in plain Python: a line through points, by gradient descent. Runs with and without Metronome:

python examples/plain.py
"""

from __future__ import annotations

import json
import random

import metronome

TOTAL = 2000

with metronome.training(total_iterations=TOTAL) as job:
    slope, offset, done = 0.0, 0.0, 0
    saved = job.checkpoint_dir / "line.json" if job.checkpoint_dir else None
    if saved and saved.exists():
        slope, offset, done = json.loads(saved.read_text())

    @job.on_checkpoint
    def save() -> None:
        if saved:
            aside = saved.with_suffix(".new")
            aside.write_text(json.dumps([slope, offset, job.iteration]))
            aside.replace(saved)

    for step in job.iterations(start=done):
        x = random.Random(step).uniform(-1, 1)
        error = slope * x + offset - (3 * x + 1)
        slope -= 0.1 * error * x
        offset -= 0.1 * error
        if step % 100 == 0:
            job.report(loss=error * error)

    print(f"y = {slope:.3f} x + {offset:.3f}")
