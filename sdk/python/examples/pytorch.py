"""A loop in PyTorch with several members: `torchrun examples/pytorch.py`, or as the command of a job.

PyTorch is not installed where this package is tested: this file is compiled there, not run.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import metronome

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

with metronome.training(total_iterations=10_000) as job:
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
        if saved and job.rank == 0:
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
        inputs = torch.randn(64, 32)
        loss = (model(inputs) - inputs.sum(dim=1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            # A number of a GPU is waited for when it is read: not in every iteration.
            job.report(loss=loss.item())

dist.destroy_process_group()
