"""Gradient accumulation over four micro-batches. Gradients are exchanged with the last one, or with `--sync` after each
of them, as in programs that leave out `no_sync`."""

import contextlib

from torch.nn.parallel import DistributedDataParallel

import harness

MICRO_BATCHES = 4
MICRO_BATCH_S = 0.05

options = harness.arguments(sync="exchange gradients after every micro-batch")
harness.set_up()
compute_s = MICRO_BATCH_S * (2 if options.sync else 1)
net = DistributedDataParallel(harness.network(compute_s), bucket_cap_mb=harness.BUCKET_MB)
optimizer = harness.optimizer_of(net)


def step(iteration: int) -> float:
    optimizer.zero_grad()
    total = 0.0
    for part, (inputs, targets) in enumerate(harness.micro_batches(iteration, MICRO_BATCHES)):
        exchanges = options.sync or part == MICRO_BATCHES - 1
        with contextlib.nullcontext() if exchanges else net.no_sync():
            loss = harness.loss_of(net, inputs, targets) / MICRO_BATCHES
            loss.backward()
        total += loss.item()
    optimizer.step()
    return total


exchanges = MICRO_BATCHES if options.sync else 1
sent = exchanges * harness.ring_bytes(harness.gradient_bytes(net))
harness.train(options.iterations, harness.Checkpoint({"net": net, "optimizer": optimizer}), sent, step)
harness.tear_down()
