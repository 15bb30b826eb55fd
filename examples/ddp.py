"""Data-parallel training in plain PyTorch: a small network learns a function from noisy samples."""

import os
import socket

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
torch.manual_seed(0)
dist.init_process_group("gloo")  # reads MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE
rank = dist.get_rank()
print(f"rank {rank} of {dist.get_world_size()} on {socket.gethostname()}", flush=True)

layers = [torch.nn.Linear(16, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)]
model = DistributedDataParallel(torch.nn.Sequential(*layers))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
samples = torch.Generator().manual_seed(1 + rank)  # every rank trains on samples of its own

for iteration in range(int(os.environ.get("ITERATIONS", "200"))):
    inputs = torch.randn(64, 16, generator=samples)
    targets = inputs[:, :4].sum(dim=1, keepdim=True) + 0.1 * torch.randn(64, 1, generator=samples)
    loss = torch.nn.functional.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()  # gradients are averaged over all ranks here
    optimizer.step()
    if rank == 0 and iteration % 50 == 0:
        print(f"iteration {iteration}: loss {loss.item():.4f}", flush=True)

if rank == 0:
    print(f"done: loss {loss.item():.4f}", flush=True)
dist.destroy_process_group()
