"""Two process groups used in one iteration: two towers, each DistributedDataParallel over a group of its own, and
embeddings gathered over a third group for a contrastive loss."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import harness

options = harness.arguments()
harness.set_up()
left_group, right_group, gather_group = (dist.new_group([0, 1]) for _ in range(3))


def tower(group: dist.ProcessGroup, seed: int) -> DistributedDataParallel:
    net = harness.network(harness.COMPUTE_S / 2, harness.LAYERS // 2, seed)
    return DistributedDataParallel(net, process_group=group, bucket_cap_mb=harness.BUCKET_MB)


left, right = tower(left_group, 1), tower(right_group, 2)
optimizer = torch.optim.SGD([*left.parameters(), *right.parameters()], lr=0.1, momentum=0.9)


def everyones(embeddings: torch.Tensor) -> torch.Tensor:
    """The embeddings of all ranks; gradients flow to this rank's own."""
    gathered = [torch.empty_like(embeddings) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, embeddings.detach(), group=gather_group)
    gathered[dist.get_rank()] = embeddings
    return torch.cat(gathered)


def step(iteration: int) -> float:
    inputs, targets = harness.batch(dist.get_rank(), iteration)
    near, far = torch.nn.functional.normalize(left(inputs)), torch.nn.functional.normalize(right(targets))
    similar = near @ everyones(far).T
    loss = torch.nn.functional.cross_entropy(
        similar / 0.1, torch.arange(harness.BATCH) + dist.get_rank() * harness.BATCH
    )
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


parts = {"left": left, "right": right, "optimizer": optimizer}
gathered = harness.BATCH * harness.WIDTH * 4 * (dist.get_world_size() - 1)
sent = harness.ring_bytes(harness.gradient_bytes(left)) + harness.ring_bytes(harness.gradient_bytes(right)) + gathered
harness.train(options.iterations, harness.Checkpoint(parts), sent, step)
harness.tear_down()
