"""A loop in PyTorch with several members: as the command of a job, or without Metronome by

torchrun --standalone --nproc_per_node 2 examples/pytorch.py

The tests run this file in both ways with PyTorch 1.13: as a job it leaves in the middle, goes on from its checkpoint, and ends
with the loss of the undisturbed run. It has been run with PyTorch 2.11, too.
"""

from __future__ import annotations

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import metronome

TOTAL = int(os.environ.get("ITERATIONS", "10000"))
SAVE_EVERY = 500

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

with metronome.training(total_iterations=TOTAL) as job:
    done = 0
    saved = job.checkpoint_dir / "model.pt" if job.checkpoint_dir else None
    if saved and saved.exists():
        state = torch.load(saved, map_location="cpu")
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["done"]

    # In every member, also where there is nothing to save: it is what makes a member end its iteration when it is asked
    # to leave.
    @job.on_checkpoint
    def save() -> None:
        if saved and rank == 0:
            aside = saved.with_suffix(".new")
            states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "done": job.iteration}
            torch.save(states, aside)
            aside.replace(saved)

    # Only where members have no common folder of checkpoints, by which they agree otherwise.
    if job.checkpoint_dir is None:

        @job.agree
        def anybody(asked: bool) -> bool:
            flag = torch.tensor(float(asked))
            dist.all_reduce(flag, op=dist.ReduceOp.MAX)
            return bool(flag)

    for step in job.iterations(start=done):
        if step > done and step % SAVE_EVERY == 0:
            save()  # for when a member or its node is lost
        # Samples depend on the iteration and the member: after a restart no member sees those that it has seen before.
        samples = torch.Generator().manual_seed(step * dist.get_world_size() + rank)
        inputs = torch.randn(64, 32, generator=samples)
        loss = (model(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step + 1 == TOTAL:
            # A number of a GPU is waited for when it is read: not in every iteration.
            job.report(loss=loss.item())
            if rank == 0:
                print(f"iteration {step}: loss {loss.item():.9f}", flush=True)

dist.destroy_process_group()
