"""DistributedDataParallel: one communicator, a bucket of gradients for each layer."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import harness

options = harness.arguments(compile="compile the model with torch.compile")
harness.set_up()
# torch.compile splits the graph at buckets, and refuses buckets below 1 MB.
net = DistributedDataParallel(harness.network(), bucket_cap_mb=1 if options.compile else harness.BUCKET_MB)
optimizer = harness.optimizer_of(net)
model = torch.compile(net) if options.compile else net


def step(iteration: int) -> float:
    loss = harness.loss_of(model, *harness.batch(dist.get_rank(), iteration))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


harness.train(
    options.iterations,
    harness.Checkpoint({"net": net, "optimizer": optimizer}),
    harness.ring_bytes(harness.gradient_bytes(net)),
    step,
)
harness.tear_down()
