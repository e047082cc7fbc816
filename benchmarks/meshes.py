"""A compiled training step over a mesh of eight simulated devices, against the same step by hand under `jax.jit` with shardings.

    python benchmarks/meshes.py                    every way
    python benchmarks/meshes.py "fully sharded"    one
    python benchmarks/meshes.py --width 256        a larger model

The model is that of `steps.py`'s `gpt-mid`. Of both programs the collectives of a device are counted in what XLA compiled, by kind, with the bytes
of their results, and the work; they do not depend on the machine. The times do: the contenders take turns, and eight devices share a
machine's cores. `with .grad` is the ratio to a step by hand that gives its gradients back as well, as a step has to whose `.grad`
stay visible.
"""

from __future__ import annotations

import os

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import argparse
import json
import statistics
import sys
from collections.abc import Callable
from typing import Any

import handwritten
import jax
import steps
from turns import measure, ratio

import xtensor
from xtensor.distributed.ahead import counted
from xtensor.distributed.device_mesh import init_device_mesh
from xtensor.distributed.fsdp import fully_shard
from xtensor.distributed.fsdp.shard import gathered
from xtensor.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor
from xtensor.distributed.tensor.dtensor import DTensor
from xtensor.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "model"))
line = init_device_mesh("cpu", (8,), mesh_dim_names=("data",))
PLAN = {"blocks.*.up": ColwiseParallel(), "blocks.*.down": RowwiseParallel()}


def whole(model: Any) -> None:
    distribute_module(model, line)


def split(model: Any) -> None:
    parallelize_module(model, mesh["model"], PLAN)


def shard(model: Any, over: Any = line) -> None:
    for block in model.blocks:
        fully_shard(block, mesh=over)
    fully_shard(model, mesh=over)


def both(model: Any) -> None:
    split(model)
    shard(model, mesh["data"])


WAYS: dict[str, tuple[Callable[[Any], None], Any, Any, str]] = {
    "data parallel": (whole, line, [Shard(0)], ""),
    "tensor parallel": (split, mesh, [Replicate(), Replicate()], ""),
    "data x tensor": (split, mesh, [Shard(0), Replicate()], ""),
    "fully sharded": (shard, line, [Shard(0)], "data"),
    "sharded x tensor": (both, mesh, [Shard(0), Replicate()], "data"),
}
"""How a model is placed, on which mesh, how the batch lies, and over which axis the parameters are gathered in use."""


def constrained(array: Any, sharding: Any) -> Any:
    return array if sharding is None else jax.lax.with_sharding_constraint(array, sharding)


def contenders(way: str, case: steps.Case) -> dict[str, Any]:
    """The step of the library and those by hand, from the same weights in the same places."""
    prepare, over, batch, gather = WAYS[way]
    xtensor.manual_seed(0)
    model = case.make(xtensor)
    weights = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    prepare(model)
    places = {k: p.detach()._xt_storage.array.sharding for k, p in model.named_parameters()}
    x, y = (distribute_tensor(xtensor.tensor(a), over, batch) for a in steps.data_of(case))
    assert isinstance(x, DTensor)
    places |= {"x": x._xt_storage.array.sharding, "y": y._xt_storage.array.sharding}
    optimizer = getattr(xtensor.optim, case.optimizer)(model.parameters(), lr=1e-3)
    cross_entropy, clip = xtensor.nn.functional.cross_entropy, xtensor.nn.utils.clip_grad_norm_

    def step() -> Any:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        if case.clip:
            clip(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    def by_hand(p: Any, x: Any) -> Any:
        whole = {k: constrained(a, gathered(places[k], frozenset([gather]))) for k, a in p.items()}
        return case.by_hand(whole, x)

    hand = by_hand, weights, steps.data_of(case), case.optimizer, case.clip
    put = lambda name, array: jax.device_put(array, places[name])
    return {
        "compiled": xtensor.compile(step, fullgraph=True),
        "jit": handwritten.step_of(*hand, place=put),
        "with .grad": handwritten.step_of(*hand, gradients=True, place=put),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ways", nargs="*", help=f"of {', '.join(WAYS)}; all without any")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a turn of one contender is")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--clip", action="store_true", help="with clip_grad_norm_")
    parser.add_argument("--counts", action="store_true", help="count the collectives, and measure no time")
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(argv)
    case = steps.Case(
        lambda lib: steps.gpt(lib, 4, options.width, 4, 65, 64),
        (options.batch, 64),
        65,
        "AdamW",
        0.0,
        handwritten.gpt(4, 4),
        True,
        options.clip,
    )
    figures: dict[str, Any] = {}
    for way in options.ways or WAYS:
        found = contenders(way, case)
        losses = {n: [float(s().item()) for _ in range(3)] for n, s in found.items()}
        for n, values in losses.items():
            if any(abs(a - b) > 1e-3 * abs(b) for a, b in zip(values, losses["jit"], strict=True)):
                raise SystemExit(f"{way}: the losses differ: {n} {losses}")
        programs = {"compiled": steps.compiled_program(found["compiled"])}
        programs |= {n: found[n].lowered() for n in ("jit", "with .grad")}
        compiled = {n: p.compile() for n, p in programs.items()}
        figures[way] = {"collectives": {n: counted(c.as_text()) for n, c in compiled.items()}}
        work = {n: c.cost_analysis() for n, c in compiled.items()}
        print(way)
        for n, kinds in figures[way]["collectives"].items():
            texts = [f"{count} {kind} of {size:,} bytes" for kind, (count, size) in sorted(kinds.items())]
            done = f"{work[n]['flops'] / 1e6:.1f} Mflop, {work[n]['bytes accessed'] / 1e6:.1f} MB read and written"
            print(f"  {n}: {', '.join(texts) or 'none'}; {steps.peak(programs[n]):,} bytes of memory; {done}")
        if not options.counts:
            times = measure({n: steps.waiting(s) for n, s in found.items()}, options.turns, options.seconds)
            figures[way] |= {n: statistics.median(v) for n, v in times.items()}
            for other in ("jit", "with .grad"):
                figures[way][f"ratio to {other}"] = ratio(times, "compiled", other)
            print(
                f"  compiled {figures[way]['compiled']:.0f} us, by hand {figures[way]['jit']:.0f}: {figures[way]['ratio to jit']:.3f}; "
                f"with .grad {figures[way]['ratio to with .grad']:.3f}"
            )
        sys.stdout.flush()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
