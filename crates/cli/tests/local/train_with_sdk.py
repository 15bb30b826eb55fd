"""DistributedDataParallel with the SDK, run by `sdk.rs`: train_with_sdk.py FOLDER ITERATIONS

All members of an iteration share one batch, which depends on the iteration alone: gangs of any size compute the same, but
for rounding. Each member notes the iterations that it has done in FOLDER/trace-RANK, rank 0 the end in FOLDER/result.json.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

import metronome

BATCH = 64
SAVE_EVERY = 25
COMPUTE_SECONDS = 0.005


def batch(step, rank, members):
    """This member's part of the batch."""
    inputs = torch.randn(BATCH, 32, generator=torch.Generator().manual_seed(step))
    targets = inputs[:, :4].sum(dim=1, keepdim=True) + inputs[:, 4:5].abs()
    return inputs[rank::members], targets[rank::members]


def main(folder, total):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank, members = dist.get_rank(), dist.get_world_size()
    network = torch.nn.Sequential(torch.nn.Linear(32, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    model = DistributedDataParallel(network)
    # Its momentum has to survive a checkpoint, too.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    with metronome.training(total_iterations=total) as job, open(folder / f"trace-{rank}", "a") as trace:
        saved, done = job.checkpoint_dir / "model.pt", 0
        if saved.exists():
            state = torch.load(saved, map_location="cpu")
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            done = state["done"]

        @job.on_checkpoint
        def save():
            if rank == 0:
                aside = saved.with_suffix(".new")
                states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "done": job.iteration}
                torch.save(states, aside)
                aside.replace(saved)

        for step in job.iterations(start=done):
            if step > done and step % SAVE_EVERY == 0:
                save()
            inputs, targets = batch(step, rank, members)
            time.sleep(COMPUTE_SECONDS)
            loss = mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = loss.detach() / members
            with job.waiting():
                dist.all_reduce(mean)
            job.report(loss=mean)
            entry = {"attempt": job.environment.attempt, "members": members, "step": step, "loss": mean.item()}
            print(json.dumps(entry), file=trace, flush=True)

        if rank == 0:
            parameters = torch.cat([part.detach().flatten() for part in network.parameters()]).tolist()
            (folder / "result.json").write_text(json.dumps({"loss": mean.item(), "parameters": parameters}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
