"""The GPT of `examples/gpt.py` as a pipeline of four processes, GPipe and 1F1B, against one process.

python -m xtensor.distributed.run --standalone --nproc-per-node 4 --with-torch tests/distributed/pipelined_gpt.py --steps 50

The first stage has the embeddings and the last one the head, whose weight is the same: after each backward pass these two processes add up its gradient.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time
from typing import Any

import xtensor
import xtensor.distributed as dist
from xtensor import nn
from xtensor.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

from gpt import GPT

LAYERS = PARTS = 4


class Stage(nn.Module):
    """A process's part of a GPT: its share of the blocks, and what comes before the first or behind the last."""

    def __init__(self, whole: GPT, rank: int, world: int) -> None:
        super().__init__()
        share = LAYERS // world
        self.blocks = nn.Sequential(*list(whole.blocks)[rank * share : (rank + 1) * share])
        self.first, self.last = rank == 0, rank == world - 1
        if self.first:
            self.characters, self.places = whole.characters, whole.places
        if self.last:
            self.norm, self.head = whole.norm, whole.head
        self.tied = whole.characters.weight if self.first else whole.head.weight if self.last else None

    def forward(self, x: xtensor.Tensor) -> xtensor.Tensor:
        if self.first:
            x = self.characters(x) + self.places.weight[: x.shape[1]]
        x = self.blocks(x)
        return self.head(self.norm(x)) if self.last else x


def made() -> tuple[GPT, Any, Any]:
    xtensor.manual_seed(0)
    model = GPT(64, 32, 64, 4, LAYERS, 0.0)
    x = xtensor.randint(0, 64, (8, 33))
    return model, x[:, :-1].contiguous(), x[:, 1:].contiguous()


def loss_of(scores: xtensor.Tensor, labels: xtensor.Tensor) -> xtensor.Tensor:
    return nn.functional.cross_entropy(scores.flatten(0, 1), labels.reshape(-1))


def alone(steps: int) -> list[float]:
    """The losses of one process."""
    model, x, y = made()
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-3)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def pipelined(kind: Any, steps: int, ends: Any) -> list[float]:
    """The losses, which the last stage knows."""
    rank, world = dist.get_rank(), dist.get_world_size()
    model, x, y = made()
    stage = Stage(model, rank, world)
    schedule = kind(PipelineStage(stage, rank, world), PARTS, loss_of)
    optimizer = xtensor.optim.AdamW(stage.parameters(), lr=1e-3)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        losses: list[Any] = []
        given = {"target": y, "losses": losses} if stage.last else {}
        schedule.step(*([x] if stage.first else []), **given)
        if stage.tied is not None:
            dist.all_reduce(stage.tied.grad, group=ends)
        optimizer.step()
        if losses:
            found.append(xtensor.stack(losses).mean().item())
    return found


def main() -> None:
    """Run it; an error where a curve is further than 1e-4 from that of one process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    dist.init_process_group("gloo")
    last = dist.get_world_size() - 1
    ends = dist.new_group([0, last])
    wanted = alone(options.steps) if dist.get_rank() == last else []
    for kind in (ScheduleGPipe, Schedule1F1B):
        began = time.perf_counter()
        found = pipelined(kind, options.steps, ends)
        if found:
            apart = max(abs(a - b) for a, b in zip(wanted, found, strict=True))
            print(
                f"{kind.__name__}: loss {found[0]:.4f} to {found[-1]:.4f}, furthest apart {apart:.1e}, {time.perf_counter() - began:.0f} s",
                flush=True,
            )
            assert apart < 1e-4
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
