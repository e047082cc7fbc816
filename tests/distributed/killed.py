"""The training of `kills.py`, in one of four processes: sharded parameters, a checkpoint after each step, and notes of what it did."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import xtensor
import xtensor.distributed as dist
from xtensor import nn
from xtensor.distributed import checkpoint
from xtensor.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from xtensor.distributed.fsdp import fully_shard

WORLD = 4


def train(folder: pathlib.Path, steps: int) -> None:
    """Make steps up to `steps`, or without end as long as the file `go` is there; a checkpoint after each."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    xtensor.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
    fully_shard(model)
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-2)
    done = 0
    saved = folder / "checkpoint"
    if (saved / ".metadata").exists():
        own, moments = get_state_dict(model, optimizer)
        state = {"model": own, "optimizer": moments, "done": 0}
        checkpoint.load(state, checkpoint_id=saved)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        done = state["done"]
    note(folder, rank, start=done)
    go = folder / "go"
    while True:
        more = [done < steps or go.exists()]
        dist.broadcast_object_list(more, 0)
        if not more[0]:
            break
        xtensor.manual_seed(1000 + done)
        x, y = xtensor.randn(8, 8).chunk(WORLD)[rank], xtensor.randint(0, 4, (8,)).chunk(WORLD)[rank]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        done += 1
        note(folder, rank, step=done, loss=loss.item().hex())
        own, moments = get_state_dict(model, optimizer)
        checkpoint.save({"model": own, "optimizer": moments, "done": done}, checkpoint_id=saved)
        note(folder, rank, saved=done)
    values = [p.full_tensor().detach().reshape(-1).tolist() for p in model.parameters()]
    note(folder, rank, end=done, values=[v.hex() for each in values for v in each])
    dist.barrier()
    dist.destroy_process_group()


def note(folder: pathlib.Path, rank: int, **what: Any) -> None:
    """Write a line in one piece; who is killed leaves whole lines."""
    line = os.open(folder / f"notes-{rank}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(line, (json.dumps(what) + "\n").encode())
    os.close(line)


def child(environment: dict[str, str], folder: pathlib.Path, steps: int) -> None:
    """What a forked process does."""
    os.environ.update(environment)
    said = os.open(folder / f"said-{environment['RANK']}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(said, 1)
    os.dup2(said, 2)
    train(folder, steps)
