"""Random programs of views, in-place writes, indexing and autograd: compiled against eager."""

from __future__ import annotations

import linecache
import random
import warnings
from typing import Any

import numpy as np
import pytest

import xtensor

PROGRAMS, FULL, LINES = 12, 250, 9
VIEWS = [
    "{t}.t()",
    "{t}[1:]",
    "{t}[:, :2]",
    "{t}.reshape(-1)",
    "{t}.transpose(0, 1)",
    "{t}[::2]",
    "{t}.unsqueeze(0)",
]
READS = [
    "{t} * 2 + 1",
    "{t}.sin()",
    "{t}.sum(-1)",
    "{t}[k]",
    "xtensor.cat([{t}, {t}])",
    "{t} * scale",
    "{t}.clone()",
    "{t}.mean() + {t}",
    "xtensor.where({t} > 0, {t}, -{t})",
]
WRITES = [
    "{b}.add_(0.5)",
    "{b}[0] = {b}[1] * 2",
    "{b}.mul_(0.9)",
    "{b}.t()[1].sub_(1.0)",
    "{b}.copy_({b} * 1.1)",
    "{b}[k] = 3.0",
]


def text_of(seed: int) -> str:
    """A function of a tensor that reads and writes `state`, differentiates in `w`, and returns what it computed."""
    rng = random.Random(seed)
    lines = ["def f(x):", "    k = xtensor.tensor([0, 2])", "    t0 = x * w", "    v0 = state.detach()"]
    names, buffers = ["t0", "x", "state"], ["state", "v0"]
    for number in range(1, rng.randint(3, LINES)):
        kind = rng.random()
        if kind < 0.3:
            lines.append("    " + rng.choice(WRITES).format(b=rng.choice(buffers)))
            continue
        if kind < 0.4:
            lines.append(f"    c{number} = {rng.choice(names)}.detach().clone()")
            lines.append(f"    c{number}.add_({number})")
            names.append(f"c{number}")
            continue
        source = rng.choice(["t0", "x", "state"] if kind < 0.7 else names)
        lines.append(f"    t{number} = {rng.choice(VIEWS if kind < 0.7 else READS).format(t=source)}")
        if kind >= 0.7 or source != "state":
            names.append(
                f"t{number}"
                if kind >= 0.7 and "sum" not in lines[-1] and "reshape" not in lines[-1]
                else source
            )
    used = sorted(
        {line.split()[0] for line in lines[2:] if line.split()[1:2] == ["="] and line.split()[0][0] in "tc"}
    )
    lines.append(f"    loss = {' + '.join(f'({n} * 1.0).sum()' for n in used)}")
    lines.append("    if w.grad is not None and drop:")
    lines.append("        w.grad = None")
    lines.append("    loss.backward()")
    lines.append(f"    return [loss.detach(), {', '.join(f'{n}.detach().clone()' for n in used)}]")
    return "\n".join(lines) + "\n"


def made(seed: int) -> tuple[Any, Any, Any]:
    """The function of a text that Python knows as the source of a file, its state and its weight."""
    text = text_of(seed)
    file = f"<random program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    state = xtensor.arange(12.0).reshape(3, 4) * 0.1
    w = xtensor.full((3, 4), 0.5, requires_grad=True)
    names: dict[str, Any] = {"xtensor": xtensor, "state": state, "w": w, "scale": 1.5, "drop": seed % 2 == 0}
    exec(compile(text, file, "exec"), names)
    return names["f"], state, w


def outcome(seed: int, compiled: bool) -> Any:
    """What some calls give and leave, or the error that they raise."""
    f, state, w = made(seed)
    run = xtensor.compile(f) if compiled else f
    found: list[Any] = []
    for number in range(4):
        x = xtensor.arange(12.0).reshape(3, 4) * 0.3 - number
        try:
            values = run(x)
        except (RuntimeError, IndexError, TypeError) as error:
            return found, type(error).__name__
        grad = w.grad
        found.append([v.numpy().copy() for v in values] + [state.numpy().copy()])
        found.append([None if grad is None else grad.numpy().copy()])
        found.append([state._version, w._version])
    return found, getattr(run, "_xt_compiled", None)


@pytest.mark.parametrize("start", range(0, PROGRAMS, 6))
def test_random_programs(start: int, full: bool) -> None:
    captured = ended = 0
    for seed in range(start, start + (FULL if full else 6)):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "xtensor.compile")
            eager, stopped = outcome(seed, False)
            fast, inner = outcome(seed, True)
        told = f"seed {seed}:\n{text_of(seed)}"
        assert len(eager) == len(fast), told
        if isinstance(stopped, str):
            assert inner == stopped, told
            continue
        ended += 1
        captured += len(inner.entries) > 0
        for a, b in zip(eager, fast, strict=True):
            for p, q in zip(a, b, strict=True):
                if isinstance(p, np.ndarray):
                    np.testing.assert_allclose(q, p, rtol=2e-5, atol=1e-5, err_msg=told)
                else:
                    assert p == q, told
    assert ended > 0 and captured * 2 >= ended, (captured, ended)
