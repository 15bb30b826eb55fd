"""Parameters, gradients and optimizer state sharded over the members: `fully_shard`, or `FullyShardedDataParallel` with
`--wrapped`. Every member saves its own shard with torch.distributed.checkpoint."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import metronome
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import ModuleWrapPolicy

import harness

options = harness.arguments(wrapped="FullyShardedDataParallel in place of fully_shard")


def sharded(net: torch.nn.Sequential) -> torch.nn.Module:
    if options.wrapped:
        return FullyShardedDataParallel(
            net, auto_wrap_policy=ModuleWrapPolicy({harness.Block}), device_id=torch.device("cpu")
        )
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in net:
        fully_shard(block, mesh=mesh)
    return fully_shard(net, mesh=mesh)


@dataclass
class ShardedCheckpoint:
    """A folder for each checkpoint. The file `newest` names the one to resume from: rank 0 replaces it when all shards
    are written."""

    net: torch.nn.Module
    optimizer: torch.optim.Optimizer

    def load(self, job: metronome.Job) -> int:
        newest = job.checkpoint_dir and job.checkpoint_dir / "newest"
        if not newest or not newest.exists():
            return 0
        folder = job.checkpoint_dir / newest.read_text()
        net, optimizer = get_state_dict(self.net, self.optimizer)
        states = {"net": net, "optimizer": optimizer}
        dcp.load(states, checkpoint_id=folder)
        set_state_dict(self.net, self.optimizer, model_state_dict=states["net"], optim_state_dict=states["optimizer"])
        return int(folder.name)

    def save(self, job: metronome.Job, done: int) -> None:
        if not job.checkpoint_dir:
            return
        folder: Path = job.checkpoint_dir / str(done)
        net, optimizer = get_state_dict(self.net, self.optimizer)
        dcp.save({"net": net, "optimizer": optimizer}, checkpoint_id=folder)
        if job.rank == 0:
            self._name_newest(folder)

    def _name_newest(self, folder: Path) -> None:
        aside, newest = folder.parent / "newest.new", folder.parent / "newest"
        before = newest.read_text() if newest.exists() else None
        aside.write_text(folder.name)
        aside.replace(newest)
        if before and before != folder.name:
            shutil.rmtree(folder.parent / before)


harness.set_up()
whole = harness.network()
parameters = harness.gradient_bytes(whole)
net = sharded(whole)
optimizer = harness.optimizer_of(net)


def step(iteration: int) -> float:
    loss = harness.loss_of(net, *harness.batch(dist.get_rank(), iteration))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# Parameters are gathered for the forward and for the backward pass. To scatter gradients, gloo sends as much as for an
# all-reduce.
gathered = 2 * parameters * (dist.get_world_size() - 1) // dist.get_world_size()
sent = gathered + harness.ring_bytes(parameters)
harness.train(options.iterations, ShardedCheckpoint(net, optimizer), sent, step)
harness.tear_down()
