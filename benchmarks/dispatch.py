"""What an operator costs on the host: xtensor against the bare `jax.jit` call, eager `jnp`, and PyTorch.

    python benchmarks/dispatch.py                      every case
    python benchmarks/dispatch.py add select           some
    python benchmarks/dispatch.py --json figures.json  and write the figures

The contenders of a case take turns within one run, so that what else the machine does falls on all of them. A figure is
the median over turns of a call's mean time, on 4x4 float32 tensors: small enough that the host is what is measured.
Results are dropped as they come; the last of a turn is waited for.

The bare call is a jitted function of the arrays themselves: the floor for whatever runs on a device. A view runs
nothing, so it can lie below.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import xtensor

try:
    import torch
except ImportError:
    torch: Any = None

WARM = 0.5
"""Seconds of each contender before its first turn: programs are compiled beside the loop, and it is tried by the clock which way is the quicker."""
CONTENDERS = ("xtensor", "jit", "jnp", "torch")
Call = Callable[[], Any]


@dataclass(frozen=True)
class Case:
    """One operation as each contender says it; None where it cannot."""

    name: str
    xtensor: Call
    jit: Call | None
    jnp: Call | None
    torch: Call | None


def cases() -> list[Case]:
    """Every case, on tensors made once."""
    values = np.arange(16, dtype=np.float32).reshape(4, 4) / 16
    x, y = xtensor.tensor(values), xtensor.tensor(values + 1)
    g = xtensor.tensor(values, requires_grad=True)
    index = xtensor.tensor([2, 0])
    mask = x > y
    device = jax.devices()[0]
    a, b = jax.device_put(values, device), jax.device_put(values + 1, device)
    at, m = jax.device_put(np.array([2, 0]), device), jax.device_put(values > 0.5, device)
    found: list[Case] = []
    t: dict[str, Any] = {}
    if torch is not None:
        torch.set_num_threads(2)
        p, q = torch.tensor(values), torch.tensor(values + 1)
        t = dict(
            p=p, q=q, g=torch.tensor(values, requires_grad=True), i=torch.tensor([2, 0]), m=p > q, w=p.clone()
        )
    written = xtensor.tensor(values)
    state = {"w": a}

    def case(
        name: str, ours: Call, jitted: Callable[..., Any] | None, args: Any, eager: Call | None, theirs: Any
    ) -> None:
        program = jax.jit(jitted) if jitted is not None else None
        bare = None if program is None else (lambda: program(*args))
        found.append(Case(name, ours, bare, eager, None if torch is None else (lambda: theirs(**t))))

    case("add", lambda: x + y, lax.add, (a, b), lambda: a + b, lambda p, q, **_: p + q)
    case("add, grad", lambda: g + y, lax.add, (a, b), None, lambda g, q, **_: g + q)
    case("mul by 2.5", lambda: x * 2.5, lambda u, s: u * s, (a, 2.5), lambda: a * 2.5, lambda p, **_: p * 2.5)
    case("tanh", lambda: x.tanh(), jnp.tanh, (a,), lambda: jnp.tanh(a), lambda p, **_: p.tanh())
    case("sum", lambda: x.sum(), jnp.sum, (a,), lambda: a.sum(), lambda p, **_: p.sum())
    case("sum(0)", lambda: x.sum(0), lambda u: u.sum(0), (a,), lambda: a.sum(0), lambda p, **_: p.sum(0))
    case("matmul", lambda: x @ y, jnp.matmul, (a, b), lambda: a @ b, lambda p, q, **_: p @ q)
    case(
        "softmax",
        lambda: x.softmax(1),
        lambda u: jax.nn.softmax(u, 1),
        (a,),
        lambda: jax.nn.softmax(a, 1),
        lambda p, **_: p.softmax(1),
    )
    case(
        "where",
        lambda: xtensor.where(mask, x, y),
        jnp.where,
        (m, a, b),
        lambda: jnp.where(m, a, b),
        lambda p, q, m, **_: torch.where(m, p, q),
    )
    case(
        "cat",
        lambda: xtensor.cat([x, y]),
        lambda u, v: jnp.concatenate([u, v]),
        (a, b),
        lambda: jnp.concatenate([a, b]),
        lambda p, q, **_: torch.cat([p, q]),
    )
    case(
        "index_select",
        lambda: x.index_select(0, index),
        lambda u, i: u[i],
        (a, at),
        lambda: jnp.take(a, at, 0),
        lambda p, i, **_: p.index_select(0, i),
    )
    case("select", lambda: x.select(0, 1), lambda u: u[1], (a,), lambda: a[1], lambda p, **_: p.select(0, 1))
    case("x[1]", lambda: x[1], lambda u: u[1], (a,), lambda: a[1], lambda p, **_: p[1])
    case("x[1:3]", lambda: x[1:3], lambda u: u[1:3], (a,), lambda: a[1:3], lambda p, **_: p[1:3])
    case("x[:, 1]", lambda: x[:, 1], lambda u: u[:, 1], (a,), lambda: a[:, 1], lambda p, **_: p[:, 1])
    case("t", lambda: x.t(), jnp.transpose, (a,), lambda: a.T, lambda p, **_: p.t())
    case(
        "view",
        lambda: x.view(2, 8),
        lambda u: u.reshape(2, 8),
        (a,),
        lambda: a.reshape(2, 8),
        lambda p, **_: p.view(2, 8),
    )
    case(
        "reshape",
        lambda: x.reshape(2, 8),
        lambda u: u.reshape(2, 8),
        (a,),
        lambda: a.reshape(2, 8),
        lambda p, **_: p.reshape(2, 8),
    )
    case(
        "permute",
        lambda: x.permute(1, 0),
        jnp.transpose,
        (a,),
        lambda: jnp.permute_dims(a, (1, 0)),
        lambda p, **_: p.permute(1, 0),
    )
    case(
        "add_",
        lambda: written.add_(1e-6),
        lambda u, s: u + s,
        (a, 1e-6),
        lambda: a + 1e-6,
        lambda w, **_: w.add_(1e-6),
    )

    def assign() -> None:
        written[1] = 2.5

    def assign_functionally() -> None:
        state["w"] = state["w"].at[1].set(2.5)

    def assign_torch(w: Any, **_: Any) -> None:
        w[1] = 2.5

    case("x[1] = 2.5", assign, lambda u, s: u.at[1].set(s), (a, 2.5), assign_functionally, assign_torch)
    h = xtensor.tensor(values, requires_grad=True)
    gradient = jax.grad(lambda u, v: (u * v).sum())

    def backward() -> None:
        (h * y).sum().backward()
        h.grad = None

    def backward_torch(g: Any, q: Any, **_: Any) -> None:
        (g * q).sum().backward()
        g.grad = None

    case("(x*y).sum().backward()", backward, gradient, (a, b), lambda: gradient(a, b), backward_torch)
    return found


def wait(result: Any) -> None:
    if isinstance(result, xtensor.Tensor):
        result = result._xt_storage.array
    if hasattr(result, "block_until_ready"):
        result.block_until_ready()


def turn(call: Call, calls: int) -> float:
    """Microseconds per call over one turn."""
    result = None
    start = time.perf_counter()
    for _ in range(calls):
        result = call()
    wait(result)
    return (time.perf_counter() - start) / calls * 1e6


def measure(case: Case, turns: int, calls: int) -> dict[str, Any]:
    """The median over turns, of each contender that has the case."""
    contenders = {name: call for name in CONTENDERS if (call := getattr(case, name)) is not None}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        began = time.perf_counter()
        while time.perf_counter() - began < WARM:
            turn(call, calls)
    for i in range(turns):
        order = list(contenders) if i % 2 == 0 else list(reversed(contenders))
        for name in order:
            times[name].append(turn(contenders[name], calls))
    return {**{name: statistics.median(found) for name, found in times.items()}, "turns": times}


def ratio(figures: dict[str, Any], other: str) -> str:
    return f"{figures['xtensor'] / figures[other]:.2f}" if other in figures else "-"


def main(arguments: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="parts of case names; every case without any")
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(arguments)
    print(f"{'case':24} {'us':>8} {'/ jit':>8} {'/ jnp':>8} {'/ torch':>8}    us: jit, jnp, torch")
    found: dict[str, dict[str, Any]] = {}
    for case in cases():
        if options.cases and not any(part in case.name for part in options.cases):
            continue
        figures = found[case.name] = measure(case, options.turns, options.calls)
        ratios = " ".join(f"{ratio(figures, other):>8}" for other in CONTENDERS[1:])
        others = "  ".join(
            f"{figures[other]:7.2f}" if other in figures else f"{'-':>7}" for other in CONTENDERS[1:]
        )
        print(f"{case.name:24} {figures['xtensor']:8.2f} {ratios}    {others}", flush=True)
    if options.json:
        about = {
            "machine": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "jax": jax.__version__,
            "torch": getattr(torch, "__version__", None),
            "turns": options.turns,
            "calls": options.calls,
        }
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"about": about, "microseconds": found}, file, indent=1)
    return found


if __name__ == "__main__":
    main()
