"""The batch with which a model computes for a given time on this machine, beside what else runs on it now."""

import argparse
import statistics
import time

import torch

import models

FIRST_BATCH = 8
MOST_SAMPLES = 4096
ROUNDS = 6
NEAR_ENOUGH = 0.03


def milliseconds(work: models.Work, iterations: int = 5) -> float:
    """Of one iteration without its exchange of gradients."""
    optimizer = torch.optim.SGD(work.module.parameters(), lr=1e-4)
    times = []
    for _ in range(2 + iterations):
        began = time.perf_counter()
        optimizer.zero_grad()
        work.loss(work.module).backward()
        optimizer.step()
        work.finish()
        times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times[2:])


def batch(asked: argparse.Namespace) -> int:
    """Follows the secant from batch to batch: weights cost time, too, whatever the number of samples."""
    size, before = FIRST_BATCH, (0, 0.0)
    for _ in range(ROUNDS):
        asked.batch = size
        took = milliseconds(models.build(asked))
        if abs(took / asked.calibrate_ms - 1) < NEAR_ENOUGH:
            return size
        slope = (took - before[1]) / (size - before[0]) if size != before[0] else 0.0
        before = (size, took)
        if slope <= 0:
            slope = took / size
        wanted = round(size + (asked.calibrate_ms - took) / slope)
        size = min(max(wanted, 1, size // 8), MOST_SAMPLES, size * 8)
        if size == before[0]:
            break
    return size
