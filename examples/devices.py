"""The same training step on every device there is: how long it takes, and how far the results are from the first's.

    python examples/devices.py

A machine's CPU counts as one device; this program asks XLA for two, by the variable that any program can set.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "2")

from absl import app, flags, logging

import xtensor
from xtensor import nn
from xtensor.nn import functional as F

FLAGS = flags.FLAGS
flags.DEFINE_integer("batch_size", 256, "Rows per step.", lower_bound=1)
flags.DEFINE_integer("width", 512, "Width of the network.", lower_bound=1)
flags.DEFINE_integer("steps", 20, "Steps to time.", lower_bound=1)


@dataclass
class Run:
    """What one device made of the steps."""

    device: xtensor.device
    first: float  # seconds of the first step, compilation included
    step: float  # seconds of a later step
    loss: float
    weights: list[xtensor.Tensor]


def run(device: xtensor.device) -> Run:
    """Train from the same values on one device."""
    xtensor.manual_seed(0)
    model = nn.Sequential(nn.Linear(FLAGS.width, FLAGS.width), nn.ReLU(), nn.Linear(FLAGS.width, 10)).to(
        device
    )
    images = xtensor.randn(FLAGS.batch_size, FLAGS.width).to(device)
    labels = xtensor.randint(0, 10, (FLAGS.batch_size,)).to(device)
    optimizer = xtensor.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step() -> xtensor.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    started = time.perf_counter()
    loss = step()
    xtensor.devices.synchronize(device)
    first = time.perf_counter() - started
    step()
    xtensor.devices.synchronize(device)
    started = time.perf_counter()
    for _ in range(FLAGS.steps):
        loss = step()
    xtensor.devices.synchronize(device)
    later = (time.perf_counter() - started) / FLAGS.steps
    return Run(device, first, later, loss.item(), [p.detach().cpu() for p in model.parameters()])


def distance(one: Run, other: Run) -> float:
    """The largest difference between the weights of two runs, relative to the largest weight."""
    pairs = zip(one.weights, other.weights, strict=True)
    return max((a - b).abs().max().item() / b.abs().max().item() for a, b in pairs)


def main(argv: list[str]) -> None:
    if len(argv) > 1:
        raise app.UsageError(f"unexpected arguments: {' '.join(argv[1:])}")
    runs = [run(device) for device in xtensor.devices.list()]
    print(f"{'device':<10}{'name':<22}{'first step':>12}{'step':>12}{'loss':>10}{'from the first':>17}")
    for found in runs:
        name = xtensor.devices.properties(found.device).name
        apart = distance(found, runs[0])
        print(
            f"{found.device!s:<10}{name:<22}{found.first * 1e3:>9.1f} ms{found.step * 1e3:>9.2f} ms"
            f"{found.loss:>10.4f}{apart:>17.1e}"
        )


if __name__ == "__main__":
    logging.set_verbosity(logging.WARNING)
    app.run(main)
