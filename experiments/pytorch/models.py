"""Models that are trained on random samples, and one whose compute is sleep."""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

NAMES = ("sleep", "mlp", "conv", "transformer")

# Layers of a backward pass compute twice as long as those of a forward pass: they make two gradients.
FORWARD, BACKWARD = 1 / 3, 2 / 3


@dataclass
class Work:
    module: nn.Module
    loss: Callable[[nn.Module], torch.Tensor]
    # Waits for what the device has yet to do.
    finish: Callable[[], None] = lambda: None


class Sleep(torch.autograd.Function):
    """Passes values on, later: this is the compute of a layer."""

    @staticmethod
    def forward(context, values, forward, backward):
        context.backward = backward
        time.sleep(forward)
        return values.clone()

    @staticmethod
    def backward(context, gradient):
        time.sleep(context.backward)
        return gradient, None, None


class Sleeping(nn.Module):
    """Layers whose weights become ready one after the other during the backward pass."""

    def __init__(self, compute_ms: float, megabytes: float, layers: int) -> None:
        super().__init__()
        width = round((megabytes * 1e6 / 4 / layers) ** 0.5)
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))
        self.each = compute_ms / 1e3 / layers

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            values = Sleep.apply(layer(values), FORWARD * self.each, BACKWARD * self.each)
        return values


def mlp(width: int, layers: int) -> nn.Module:
    stack = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*stack)


def conv(width: int, layers: int) -> nn.Module:
    """Convolutions over 8 × 8 pixels, between a narrow and a wide end."""
    stack = [nn.Conv2d(16, width, 3, padding=1), nn.ReLU()]
    for _ in range(layers):
        stack += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*stack, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def transformer(width: int, layers: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(width, nhead=8, dim_feedforward=4 * width, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


def build(asked: argparse.Namespace) -> Work:
    if asked.model == "sleep":
        module = Sleeping(asked.compute_ms, asked.megabytes, asked.layers)
        sample = torch.randn(1, module.layers[0].in_features)
        return Work(module, lambda net: net(sample).square().mean())
    module = {"mlp": mlp, "conv": conv, "transformer": transformer}[asked.model](asked.width, asked.layers)
    shape = {"mlp": (asked.width,), "conv": (16, 8, 8), "transformer": (32, asked.width)}[asked.model]
    device = torch.device(asked.device)
    module.to(device)
    sample = torch.randn(asked.batch, *shape, device=device)
    finish = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    return Work(module, lambda net: net(sample).square().mean(), finish)
