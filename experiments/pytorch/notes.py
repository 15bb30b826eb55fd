"""What a member writes down: the end of each iteration and, if asked, when gradients were ready."""

import statistics
import time
from pathlib import Path

import torch

POLL_SECONDS = 0.005

# Buckets are rebuilt in the first iteration, and the second is the first with the new ones.
TRACED = range(2, 12)


class Notes:
    """The first member of a job writes one line per iteration to `FOLDER/JOB.times`: its end, in seconds since 1970.

    The first line is the beginning of the first iteration.
    """

    def __init__(self, folder: Path | None, job: str, rank: int) -> None:
        self.folder, self.job = folder, job
        self.times = None
        if folder and rank == 0:
            self.times = open(folder / f"{job}.times", "w", buffering=1)

    def ready(self, jobs: int, delay: float) -> None:
        """Waits until so many jobs can begin, and then for the delay."""
        if self.times:
            (self.folder / f"{self.job}.ready").touch()
        while self.folder and len(list(self.folder.glob("*.ready"))) < jobs:
            time.sleep(POLL_SECONDS)
        time.sleep(delay)
        self.iteration()

    def iteration(self) -> None:
        if self.times:
            self.times.write(f"{time.time():.6f}\n")

    def facts(self, text: str) -> None:
        if self.times:
            (self.folder / f"{self.job}.json").write_text(text)


class Trace:
    """When each gradient is ready, in milliseconds since the beginning of the iteration."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.parts = [part for part in module.parameters() if part.requires_grad]
        self.ready: list[list[float]] = [[] for _ in self.parts]
        self.step: list[float] = []
        self.is_counted = False
        for index, part in enumerate(self.parts):
            part.register_hook(self.hook(index))

    def hook(self, index: int):
        def is_ready(gradient: torch.Tensor) -> None:
            if self.is_counted:
                # A gradient on a device is ready when all kernels before it are done.
                if gradient.is_cuda:
                    torch.cuda.synchronize()
                self.ready[index].append(1e3 * (time.perf_counter() - self.began))

        return is_ready

    def begins(self, iteration: int) -> None:
        self.is_counted = iteration in TRACED
        self.began = time.perf_counter()

    def synchronized(self) -> None:
        self.reduced = time.perf_counter()

    def ends(self) -> None:
        if self.is_counted:
            self.step.append(1e3 * (time.perf_counter() - self.reduced))

    def loop(self, model: torch.nn.parallel.DistributedDataParallel) -> dict[str, object] | None:
        """An iteration as a simulator knows it; none if there were too few."""
        if not self.step:
            return None
        ready = sorted(
            (statistics.median(times), part.numel() * part.element_size())
            for times, part in zip(self.ready, self.parts)
            if times
        )
        return {
            "computeMs": round(ready[-1][0], 3),
            "finishMs": round(statistics.median(self.step), 3),
            "buckets": buckets(ready, bucket_sizes(model)),
        }


def bucket_sizes(model: torch.nn.parallel.DistributedDataParallel) -> list[int]:
    """As the reducer has rebuilt them, in the order in which they become ready."""
    logged = model._get_ddp_logging_data()
    text = logged.get("rebuilt_bucket_sizes") or logged.get("bucket_sizes", "")
    return [int(size) for size in text.split(",") if size.strip()]


def buckets(ready: list[tuple[float, int]], sizes: list[int]) -> list[list[float]]:
    """A bucket is ready when its last gradient is: pairs of milliseconds and bytes."""
    found, sent, at = [], 0, 0.0
    parts = iter(ready)
    for size in sizes:
        taken = 0
        while taken < size:
            try:
                at, part = next(parts)
            except StopIteration:
                break
            taken += part
        if taken:
            found.append([round(at, 3), taken])
            sent += taken
    rest = sum(part for _, part in ready) - sent
    if rest > 0:
        found.append([round(ready[-1][0], 3), rest])
    return found
