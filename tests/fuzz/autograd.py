"""Random autograd programs, judged step by step: `python -m tests.fuzz.autograd --programs 2000`.

The judge is torch where it is installed. Elsewhere it is finite differences of the library under test itself, on
programs that are smooth and make no mistakes.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.fuzz.draw_autograd import AutogradDrawing
from tests.fuzz.judging import Difference, Outcome, Program, Verdict, judge, minimise, run

FALLBACK = FINITE_DIFFERENCES = SimpleNamespace(__name__="finite differences")
STEP = 1e-5
# Names that PyTorch gives to the kernels behind one operator, which a library that has one kernel need not repeat.
ONE_OPERATOR = {
    **dict.fromkeys(("Mm", "Mv", "Dot", "Bmm"), "Matmul"),
    "SplitWithSizes": "Split",
    "Rsub": "Sub",
    **dict.fromkeys(("ReshapeAlias", "UnsafeView"), "View"),
}
LEAF = re.compile(r"torch\.tensor\((?P<values>.*), dtype=torch\.float64")


def generate(seed: int, reference: Any = None) -> Program:
    """The program of a seed, one that finite differences can judge if they are the reference."""
    return AutogradDrawing(seed, smooth=reference is FINITE_DIFFERENCES).program()


def _tried(look: Callable[[], Any]) -> Any:
    """What a look gives, or the class of what it raises."""
    try:
        return look()
    except Exception as error:
        return f"raises {type(error).__name__}"


def _node_name(t: Any) -> str | None:
    """The node's name without its C++ namespace and without the number of PyTorch's overload."""
    node = t.grad_fn
    if node is None:
        return None
    name = node.name().rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")
    return ONE_OPERATOR.get(name, name)


def _values(t: Any) -> Any:
    return None if t is None else np.asarray(t.detach().tolist())


def observe(live: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Values, gradients, graph position, flags and versions of every live tensor, and the hooks' log."""
    seen: dict[str, dict[str, Any]] = {}
    for name, t in live.items():
        if isinstance(t, tuple):
            seen[name] = {"values": [_values(x) for x in t]}
        elif isinstance(t, list):
            seen[name] = {"entries": list(t)}
        elif name.startswith("d"):
            # The copy of a gradient: which node made it is the engine's own affair.
            seen[name] = {
                "values": _values(t),
                "size": tuple(t.shape),
                "gradient requires_grad": t.requires_grad,
            }
        elif type(t).__name__ == "Tensor":
            grad = _tried(lambda t=t: t.grad)
            seen[name] = {
                "values": _tried(lambda t=t: _values(t)),
                "size": tuple(t.shape),
                "requires_grad": _tried(lambda t=t: t.requires_grad),
                "is_leaf": _tried(lambda t=t: t.is_leaf),
                "grad_fn": _tried(lambda t=t: _node_name(t)),
                "output_nr": _tried(lambda t=t: (t.grad_fn, t.output_nr)[1]),
                "_version": t._version,
                "is a view": t._base is not None,
                "retains_grad": _tried(lambda t=t: t.retains_grad),
                "grad": grad if isinstance(grad, str) else _values(grad),
                "grad.requires_grad": None if grad is None or isinstance(grad, str) else grad.requires_grad,
            }
    return seen


def same(expected: Any, got: Any) -> bool:
    """Equality, for floating point values up to the rounding of a different summation order."""
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(same(a, b) for a, b in zip(expected, got, strict=True))
    if isinstance(expected, np.ndarray) and isinstance(got, np.ndarray):
        if expected.shape != got.shape:
            return False
        return bool(np.allclose(got, expected, rtol=1e-8, atol=1e-10, equal_nan=True))
    if isinstance(expected, np.ndarray) or isinstance(got, np.ndarray):
        return False
    return bool(expected == got)


def execute(program: Program, lib: Any) -> Iterator[Outcome]:
    return run(program, lib, observe)


def compare(program: Program, reference: Any, subject: Any, ignore: Container[str] = ()) -> Verdict:
    """Where `subject` parts from `reference` on a program, if it does, in aspects that are not ignored."""
    if reference is FINITE_DIFFERENCES:
        return differenced(program, subject)
    return judge(program, execute(program, reference), execute(program, subject), same, ignore=ignore)


def shrink(program: Program, reference: Any, subject: Any, ignore: Container[str] = ()) -> Program:
    """A smaller program on which the two still differ."""
    return minimise(program, lambda p: compare(p, reference, subject, ignore).difference is not None)


# Finite differences.


def _moved(program: Program, number: int, index: int, by: float) -> Program:
    """The program with one element of the leaf made in one step moved."""
    step = program.steps[number]
    found = LEAF.search(step.source)
    assert found
    values = np.asarray(ast.literal_eval(found["values"]), dtype=np.float64)
    values.reshape(-1)[index] += by
    source = step.source.replace(found["values"], str(values.tolist()), 1)
    steps = list(program.steps)
    steps[number] = replace(step, source=source)
    return replace(program, steps=tuple(steps))


def final(program: Program, lib: Any) -> dict[str, dict[str, Any]] | None:
    """What is seen at the end of a program, or None if a step raised."""
    last = None
    for outcome in run(program, lib, lambda live: live):  # type: ignore[arg-type]
        if outcome.error:
            return None
        last = outcome
    return last.seen if last else None


def differenced(program: Program, lib: Any) -> Verdict:
    """Compares the gradients that a smooth program computes with central differences of its own loss.

    A program in which a step raises says nothing and passes; `tests/plans/test_fuzz_autograd.py` counts them.
    """
    loss = next((step.makes[0] for step in program.steps if step.kind == "loss"), None)
    ends = final(program, lib)
    if loss is None or ends is None or "gradients" not in ends:
        return Verdict(None)
    gradients = iter(ends["gradients"])
    for number, step in enumerate(program.steps):
        if step.kind != "leaf" or "requires_grad" not in step.source:
            continue
        gradient = _values(next(gradients))
        count = int(np.prod(ends[step.makes[0]].shape, dtype=int))  # type: ignore[attr-defined]
        slopes = np.zeros(count)
        for index in range(count):
            sides = [final(_moved(program, number, index, by), lib) for by in (STEP, -STEP)]
            if sides[0] is None or sides[1] is None:
                return Verdict(None)
            up, down = (side[loss].item() for side in sides)  # type: ignore[attr-defined]
            slopes[index] = (up - down) / (2 * STEP)
        got = np.zeros(count) if gradient is None else gradient.reshape(-1)
        if not np.allclose(
            got, slopes, rtol=1e-4, atol=1e-6 * max(1.0, float(np.abs(slopes).max(initial=0)))
        ):
            found = Difference(number, step.kind, step.makes[0], "gradient", str(slopes), str(got))
            return Verdict(found)
    return Verdict(None)


if __name__ == "__main__":
    from tests.fuzz.runner import main

    sys.exit(main("tests.fuzz.autograd", "random autograd programs", 2_000))
