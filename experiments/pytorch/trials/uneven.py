"""Uneven inputs: rank 1 has fewer batches in each epoch, and `Join` lets it shadow the collectives of rank 0.

A member that shadows counts no iterations, so members cannot agree after which iteration they leave. This program
leaves between epochs, by an all-reduce of its own. With `--inside` it leaves as other programs do, by `on_checkpoint`.

A member that shadows does not step its optimizer either, so each rank has a momentum of its own, and a checkpoint.
"""

import metronome
import torch
import torch.distributed as dist
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

import harness

BATCHES = (10, 7)
"""Of rank 0 and of rank 1, in each epoch."""

options = harness.arguments(inside="leave inside an epoch")
harness.set_up()
rank = dist.get_rank()
net = DistributedDataParallel(harness.network(), bucket_cap_mb=harness.BUCKET_MB)
optimizer = harness.optimizer_of(net)
checkpoint = harness.Checkpoint({"net": net, "optimizer": optimizer}, of_each_rank=True)
record = harness.Record()


def train_epoch(job: metronome.Job, epoch: int) -> None:
    """`Join` divides gradients by the number of members that still have a batch."""
    with Join([net]):
        for part in range(BATCHES[rank]):
            job.begin_iteration()
            loss = harness.loss_of(net, *harness.batch(rank, epoch, part))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            record.iteration(epoch * BATCHES[0] + part, loss.item())
            job.report(loss=loss.item())
            job.end_iteration()


def is_anybody_asked(job: metronome.Job) -> bool:
    asked = torch.tensor(float(job.should_leave()))
    dist.all_reduce(asked, op=dist.ReduceOp.MAX)
    return bool(asked)


with metronome.training() as job:
    epochs_done = checkpoint.load(job)
    epochs = options.iterations // BATCHES[0]
    if options.inside:
        job.on_checkpoint(lambda: checkpoint.save(job, job.iteration // BATCHES[rank]))
    record.start(epochs_done * BATCHES[0], harness.ring_bytes(harness.gradient_bytes(net)))
    job.resume_at(epochs_done * BATCHES[rank])
    for epoch in range(epochs_done, epochs):
        train_epoch(job, epoch)
        if not options.inside and is_anybody_asked(job):
            checkpoint.save(job, epoch + 1)
            job.leave()
harness.tear_down()
