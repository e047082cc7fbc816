"""The GPT of `examples/gpt.py` on a mesh of eight simulated devices, each way against one device: `python -m tests.distributed.gpt --steps 50`.

The curve of one device is no more exact than the order in which it adds up. That is shown beside it: the same training on one device with the rows of the
batch in another order, whose losses and gradients are the same sums. A way is wrong where it is further from the curve than 1e-4 and than twice what
other orders of one device make.
"""

from __future__ import annotations

import os

os.environ["JAX_NUM_CPU_DEVICES"] = "8"

import argparse
import pathlib
import sys
import time

import xtensor
from xtensor import nn
from xtensor.distributed.device_mesh import init_device_mesh
from xtensor.distributed.fsdp import fully_shard
from xtensor.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor
from xtensor.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

from gpt import GPT

mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "model"))
line = init_device_mesh("cpu", (8,))
PLAN = {"blocks.*.mlp.0": ColwiseParallel(), "blocks.*.mlp.2": RowwiseParallel()}
BATCH = [Shard(0), Replicate()]


def split(model: nn.Module) -> None:
    parallelize_module(model, mesh["model"], PLAN)


def shard(model: nn.Module, over: object = None) -> None:
    for block in model.blocks:
        fully_shard(block, mesh=over or line)
    fully_shard(model, mesh=over or line)


def both(model: nn.Module) -> None:
    split(model)
    shard(model, mesh["data"])


WAYS = {
    "data parallel": (lambda m: distribute_module(m, mesh), lambda x: distribute_tensor(x, mesh, BATCH)),
    "tensor parallel": (split, lambda x: distribute_tensor(x, mesh, [Replicate(), Replicate()])),
    "fully sharded": (shard, lambda x: distribute_tensor(x, line, [Shard(0)])),
    "two dimensions": (both, lambda x: distribute_tensor(x, mesh, BATCH)),
}


def train(way: str | None, steps: int, turned: int = 0) -> list[float]:
    """The losses of some compiled steps. turned: by how many rows the batch is rolled."""
    xtensor.manual_seed(0)
    model = GPT(64, 32, 64, 4, 2, 0.0)
    x = xtensor.randint(0, 64, (8, 33)).roll(turned, 0)
    place = WAYS[way][1] if way else lambda t: t
    if way:
        WAYS[way][0](model)
    inputs, labels = place(x[:, :-1].contiguous()), place(x[:, 1:].contiguous())
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-3)

    @xtensor.compile
    def step() -> xtensor.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs).flatten(0, 1), labels.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    return [step().item() for _ in range(steps)]


def furthest(one: list[float], other: list[float]) -> float:
    """How far two curves are apart."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def main(argv: list[str] | None = None) -> int:
    """Run it; 1 where a way is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.distributed.gpt", description=__doc__)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument(
        "--double", action="store_true", help="in float64, where rounding does not grow into the figures"
    )
    options = parser.parse_args(argv)
    if options.double:
        xtensor.set_default_dtype(xtensor.float64)
    alone = train(None, options.steps)
    print(f"one device: loss {alone[0]:.4f} to {alone[-1]:.4f}")
    wrong = 0
    orders = [furthest(alone, train(None, options.steps, turned)) for turned in range(1, 8)]
    print(
        f"one device, rows in other orders: furthest apart {', '.join(f'{o:.1e}' for o in orders)}",
        flush=True,
    )
    for way in WAYS:
        began = time.perf_counter()
        apart = furthest(alone, train(way, options.steps))
        wrong += apart > max(1e-4, 2 * max(orders))
        print(f"{way}: furthest apart {apart:.1e}, {time.perf_counter() - began:.0f} s", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
