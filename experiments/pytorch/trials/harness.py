"""What the trial programs share: a small network whose compute is asleep, seeded batches, a record of every iteration.

Two cores carry all members, so members sleep in the forward and the backward pass in place of computing. What sleeps is
a custom operator: `torch.compile` keeps it in its graphs, and gradients become ready layer by layer.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterator, TextIO

import metronome
import torch
import torch.distributed as dist

WIDTH = 288
LAYERS = 6
BATCH = 8
BUCKET_MB = 0.4
"""Each layer has 0.33 MB of gradients: a bucket for every layer."""
COMPUTE_S = 0.1
FORWARD_PART = 1 / 3


@torch.library.custom_op("trials::sleep", mutates_args=())
def sleep(values: torch.Tensor, seconds: float) -> torch.Tensor:
    time.sleep(seconds)
    return values.clone()


@sleep.register_fake
def _(values: torch.Tensor, seconds: float) -> torch.Tensor:
    return torch.empty_like(values)


@torch.library.custom_op("trials::compute", mutates_args=())
def compute(values: torch.Tensor, forward_s: float, backward_s: float) -> torch.Tensor:
    """The identity, which takes `forward_s` in the forward and `backward_s` in the backward pass."""
    time.sleep(forward_s)
    return values.clone()


@compute.register_fake
def _(values: torch.Tensor, forward_s: float, backward_s: float) -> torch.Tensor:
    return torch.empty_like(values)


def _keep_backward_seconds(ctx: Any, inputs: tuple[torch.Tensor, float, float], output: torch.Tensor) -> None:
    ctx.backward_s = inputs[2]


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None, None]:
    return sleep(gradient, ctx.backward_s), None, None


compute.register_autograd(_backward, setup_context=_keep_backward_seconds)


class Block(torch.nn.Module):
    """A residual layer."""

    def __init__(self, width: int, compute_s: float) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(width, width, bias=False)
        self.forward_s = compute_s * FORWARD_PART
        self.backward_s = compute_s - self.forward_s

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        return values + 0.1 * torch.tanh(compute(self.linear(values), self.forward_s, self.backward_s))


def network(compute_s: float = COMPUTE_S, layers: int = LAYERS, seed: int = 0) -> torch.nn.Sequential:
    """The same parameters on every rank."""
    torch.manual_seed(seed)
    return torch.nn.Sequential(*(Block(WIDTH, compute_s / layers) for _ in range(layers)))


def batch(*key: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets that depend on `key` only, such as rank and iteration: a resumed job sees the same batches."""
    seed = 0
    for part in key:
        seed = seed * 1_000_003 + part
    inputs = torch.randn(BATCH, WIDTH, generator=torch.Generator().manual_seed(seed))
    return inputs, inputs.roll(1, dims=1)


def loss_of(net: torch.nn.Module, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.mse_loss(net(inputs), targets)


def optimizer_of(net: torch.nn.Module) -> torch.optim.Optimizer:
    """With momentum: a checkpoint without the optimizer's state would change the losses."""
    return torch.optim.SGD(net.parameters(), lr=5.0, momentum=0.9)


def gradient_bytes(net: torch.nn.Module) -> int:
    return sum(parameter.numel() * parameter.element_size() for parameter in net.parameters())


def ring_bytes(gradients: int) -> int:
    """What a member sends to all-reduce so many bytes of gradients in a ring."""
    world = dist.get_world_size()
    return 2 * (world - 1) * gradients // world


class Record:
    """Rank 0 appends one line of JSON for every start and every iteration to `TRIAL_OUT/JOB.jsonl`, with the time and
    the bytes that its interface has sent so far, headers included."""

    def __init__(self) -> None:
        self.file: TextIO | None = None
        out, job = os.environ.get("TRIAL_OUT"), os.environ.get("METRONOME_JOB", "trial")
        if out and os.environ.get("RANK", "0") == "0":
            Path(out).mkdir(parents=True, exist_ok=True)
            self.file = open(Path(out) / f"{job.split('/')[-1]}.jsonl", "a", buffering=1)  # noqa: SIM115
        self.counter = Path("/sys/class/net", os.environ.get("GLOO_SOCKET_IFNAME", "lo"), "statistics/tx_bytes")

    def start(self, done: int, payload: int) -> None:
        """`payload`: the bytes that rank 0 sends in each iteration, as they follow from the model."""
        self._write({"start": done, "payload": payload})

    def iteration(self, iteration: int, loss: float) -> None:
        """The iteration is over. JSON keeps every digit of the loss."""
        self._write({"iteration": iteration, "loss": loss})

    def _write(self, line: dict[str, Any]) -> None:
        if self.file:
            now = {"at": time.time(), "sent": int(self.counter.read_text())}
            self.file.write(json.dumps({**line, **now}) + "\n")


def arguments(**variants: str) -> argparse.Namespace:
    """`--iterations`, and one flag for each of `variants`, a name with its help."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--iterations", type=int, default=20)
    for name, text in variants.items():
        parser.add_argument(f"--{name}", action="store_true", help=text)
    return parser.parse_args()


def set_up() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")


def tear_down() -> None:
    dist.barrier()
    dist.destroy_process_group()


@dataclass
class Checkpoint:
    """The states of `parts`, and how many iterations are done: one file that rank 0 writes, or one of each rank."""

    parts: dict[str, Any]
    of_each_rank: bool = False

    def load(self, job: metronome.Job) -> int:
        path = self._path(job)
        if path is None or not path.exists():
            return 0
        saved = torch.load(path)
        for name, part in self.parts.items():
            part.load_state_dict(saved[name])
        return int(saved["done"])

    def save(self, job: metronome.Job, done: int) -> None:
        path = self._path(job)
        if path is None or (job.rank != 0 and not self.of_each_rank):
            return
        aside = path.with_suffix(".new")
        torch.save({**{name: part.state_dict() for name, part in self.parts.items()}, "done": done}, aside)
        aside.replace(path)

    def _path(self, job: metronome.Job) -> Path | None:
        name = f"trial-{job.rank}.pt" if self.of_each_rank else "trial.pt"
        return job.checkpoint_dir / name if job.checkpoint_dir else None


def train(iterations: int, checkpoint: Checkpoint, payload: int, step: Callable[[int], float]) -> None:
    """The loop of most trials. `step` does the iteration of this number and returns the loss of this rank."""
    record = Record()
    with metronome.training(total_iterations=iterations) as job:
        done = checkpoint.load(job)
        job.on_checkpoint(lambda: checkpoint.save(job, job.iteration))
        record.start(done, payload)
        for iteration in job.iterations(start=done):
            loss = step(iteration)
            record.iteration(iteration, loss)
            job.report(loss=loss)


def micro_batches(iteration: int, count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    for part in range(count):
        yield batch(dist.get_rank(), iteration, part)
