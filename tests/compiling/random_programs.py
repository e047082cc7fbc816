"""Random programs of views, in-place writes, indexing and autograd, as functions over tensors that live on: compiled against eager.

The statements are those of `tests.fuzz`. What makes the first tensors stands outside of the function, all others within; it runs several
times, on what it left behind. Compared are results, states, gradients, versions and errors.
"""

from __future__ import annotations

import linecache
import random
import warnings
from typing import Any, NamedTuple

import numpy as np

import xtensor
from tests.fuzz import autograd, views

__all__ = ["Outcome", "compared", "text_of"]

CALLS = 4
OUTSIDE = ("leaf", "new:fresh")


class Outcome(NamedTuple):
    """Of one program: what differs (empty where nothing does), how many calls ran as programs, and whether it raised."""

    different: str
    calls: int
    raised: bool
    reasons: list[str]


def text_of(seed: int) -> str:
    """The tensors that are there before, and a function `f` over them."""
    program = (autograd if seed % 2 else views).generate(seed)
    dropped = {n for n, step in enumerate(program.steps) if "log" in step.source}
    program = running(program.without(dropped))
    steps = program.steps
    outside = [s for s in steps if s.kind in OUTSIDE]
    inside = [s for s in steps if s.kind not in OUTSIDE]
    names = [name for s in outside for name in s.makes]
    made = [name for s in inside for name in s.makes if name not in names]
    lines = [s.source for s in outside]
    lines.append("def f():")
    lines += ["    " + line for s in inside for line in s.source.split("\n")]
    rng = random.Random(seed)
    kept: list[str] = sorted({*made, *(names if rng.random() < 0.5 else [])})
    if rng.random() < 0.5:
        lines.append(
            f"    return [torch.as_tensor(v).detach().clone() for v in ({', '.join([*kept, '0'])},)]"
        )
    else:
        lines.append(f"    return [{', '.join(kept)}]")
    lines.append(f"state = [{', '.join(names)}]")
    return "\n".join(lines) + "\n"


def running(program: Any) -> Any:
    """A program without the statements that raise when it is run for the first time."""
    for _ in range(len(program.steps)):
        names: dict[str, Any] = {"torch": xtensor}
        for number, step in enumerate(program.steps):
            try:
                exec(step.source, names)
            except Exception:
                program = program.without({number})
                break
        else:
            break
    return program


def seen(value: Any) -> Any:
    """What a value shows: tensors' values, geometry, and whether they require grad."""
    if isinstance(value, xtensor.Tensor):
        values = value.detach().resolve_conj().resolve_neg()
        values = values.float() if values.dtype == xtensor.bfloat16 else values
        strides = tuple([s for s, n in zip(value.stride(), value.shape) if n > 1])
        told = (tuple(value.shape), strides, str(value.dtype), value.requires_grad)
        return values.numpy().copy(), told
    if isinstance(value, (list, tuple)):
        return [seen(v) for v in value]
    return None, repr(value)


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(alike, a, b))
    if not isinstance(a, tuple) or not isinstance(a[0], np.ndarray):
        return a == b
    if not isinstance(b, tuple) or not isinstance(b[0], np.ndarray) or a[1] != b[1]:
        return False
    if a[0].dtype.kind not in "fc":
        return bool(np.array_equal(a[0], b[0]))
    half = "float16" in a[1][2] or "bfloat16" in a[1][2]
    return bool(
        np.allclose(a[0], b[0], rtol=2e-2 if half else 1e-4, atol=2e-2 if half else 1e-5, equal_nan=True)
    )


def outcome(seed: int, text: str, compiled: bool) -> tuple[list[Any], Any]:
    """What calls give and leave, call by call, and what was compiled."""
    file = f"<random program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"torch": xtensor}
    xtensor.manual_seed(seed)
    exec(compile(text, file, "exec"), names)
    run = xtensor.compile(names["f"]) if compiled else names["f"]
    found: list[Any] = []
    for _ in range(CALLS):
        try:
            value: Any = seen(run())
        except Exception as error:
            value = (None, type(error).__name__)
        state = names["state"]
        grads = [None if t.grad is None else t.grad for t in state if t.is_leaf]
        found.append([value, seen(state), seen(grads), [(None, repr(t._version)) for t in state]])
        if value[0] is None and isinstance(value, tuple):
            break
    return found, getattr(run, "_xt_compiled", None)


def compared(seed: int) -> Outcome:
    """A program, compiled against eager."""
    text = text_of(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            eager, _ = outcome(seed, text, False)
        except Exception:
            return Outcome("", 0, True, [])  # its first tensors cannot be made
        fast, inner = outcome(seed, text, True)
    raised = isinstance(eager[-1][0], tuple)
    inners = [inner]
    for each in inners:
        if each.head is not None:
            inners.append(each.head)
    calls = sum(e.program.calls for each in inners for e in each.entries)
    reasons = [why for each in inners for why in each.reasons] + [each.cut for each in inners if each.cut]
    if len(eager) != len(fast):
        return Outcome(f"{len(eager)} calls, compiled {len(fast)}: {fast[-1][0]}", calls, raised, reasons)
    for number, (a, b) in enumerate(zip(eager, fast)):
        for what, p, q in zip(("results", "state", "gradients", "versions"), a, b):
            if not alike(p, q):
                return Outcome(f"{what} of call {number}: {p} but {q}", calls, raised, reasons)
    return Outcome("", calls, raised, reasons)
