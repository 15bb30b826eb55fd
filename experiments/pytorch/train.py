"""One member of a data-parallel training job in plain PyTorch: DistributedDataParallel over gloo.

It knows nothing of Metronome. The options beside the model say when it begins and where it notes the end of each
iteration, so that an experiment can compare runs.
"""

import argparse
import json
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import calibrate
import models
import notes


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=models.NAMES)
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--batch", type=int, default=1, help="samples of a member in an iteration")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--bucket-mb", type=float, default=25.0, help="size of a bucket of gradients, in MB")
    parser.add_argument("--compute-ms", type=float, default=100.0, help="model `sleep`: compute of an iteration")
    parser.add_argument("--megabytes", type=float, default=1.0, help="model `sleep`: gradients of an iteration")
    parser.add_argument("--layers", type=int, default=6, help="layers of the model")
    parser.add_argument("--width", type=int, default=512, help="width of the model's layers")
    parser.add_argument("--notes", type=Path, help="folder for the end of each iteration")
    parser.add_argument("--jobs", type=int, default=1, help="training begins when this many jobs are ready")
    parser.add_argument("--delay-ms", type=float, default=0.0, help="and so much later")
    parser.add_argument("--trace", action="store_true", help="note when gradients are ready")
    parser.add_argument("--calibrate-ms", type=float, help="print the batch that computes for so long, and exit")
    return parser.parse_args()


def parallel(module: torch.nn.Module, bucket_mb: float) -> DistributedDataParallel:
    # Newer versions of PyTorch give the first bucket the size of the others by themselves.
    dist._DEFAULT_FIRST_BUCKET_BYTES = int(bucket_mb * 2**20)
    return DistributedDataParallel(module, bucket_cap_mb=bucket_mb)


def main() -> None:
    asked = options()
    torch.set_num_threads(asked.threads)
    torch.manual_seed(0)
    if asked.calibrate_ms is not None:
        print(calibrate.batch(asked), flush=True)
        return
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    work = models.build(asked)
    model = parallel(work.module, asked.bucket_mb)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    job = os.environ.get("METRONOME_JOB", "job").split("/")[-1]
    noted = notes.Notes(asked.notes, job, rank)
    trace = notes.Trace(work.module) if asked.trace else None

    noted.ready(asked.jobs, asked.delay_ms / 1e3)
    for iteration in range(asked.iterations):
        if trace:
            trace.begins(iteration)
        optimizer.zero_grad()
        loss = work.loss(model)
        loss.backward()  # gradients are averaged over all members here
        if trace:
            trace.synchronized()
        optimizer.step()
        work.finish()
        if trace:
            trace.ends()
        noted.iteration()

    facts = {
        "torch": torch.__version__,
        "members": dist.get_world_size(),
        "nodes": int(os.environ.get("GROUP_WORLD_SIZE", "1")),
        "threads": asked.threads,
        "batch": asked.batch,
        "bytes": sum(part.numel() * part.element_size() for part in model.parameters()),
    }
    if trace:
        facts["loop"] = trace.loop(model)
    noted.facts(json.dumps(facts))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
