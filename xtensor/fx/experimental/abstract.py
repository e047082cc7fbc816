"""Functions traced without values: on arrays that are shapes and dtypes, whose sizes may be left open."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import export

from ... import trees
from ...export.dims import Range, Size, evaluate
from ...export.tracing import form
from ...jax.open_sizes import strict_sizes, undecided
from ...jax.pure import pure
from ...tensor import Tensor, wrap
from ...xla.symbolic import Inconclusive
from ...xla.x64 import x64
from .symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv, ShapeGuard

__all__ = ["Sized", "abstractly"]

COMPARED = re.compile(r"comparison '(.*)' (<=|>=|<|>) '(.*)' is inconclusive")
OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}
OFFSETS = {"<": ("<=", " - 1"), ">": (">=", " + 1"), "<=": ("<=", ""), ">=": (">=", "")}
HOLDS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
RETRIES = 256


class Sized(NamedTuple):
    """What a function traced without values gave, and what is known of the sizes left open; None where all are fixed."""

    found: Any
    shape_env: ShapeEnv | None


def abstractly(trace: Callable[[tuple[Any, ...]], Any], args: tuple[Any, ...], symbolic: bool) -> Sized:
    """What `trace` gives for arguments whose tensors have no values; symbolic: whether their sizes are left open, too.

    Sizes of 0 and 1 stay what they are, equal ones are one, and so stay those without which there is an error. A condition on sizes is
    what it is for these, and a guard from then on.
    """
    leaves, structure = trees.tree_flatten(args)
    sizes = [tuple(leaf.shape) for leaf in leaves if isinstance(leaf, Tensor)]
    found = list(dict.fromkeys(n for shape in sizes for n in shape if symbolic and n > 1))
    names = {size: f"s{number}" for number, size in enumerate(found)}

    def attempt(fixed: frozenset[int]) -> Sized:
        opened = {n: name for n, name in names.items() if n not in fixed}
        env = ShapeEnv()
        for n in fixed:
            env.guards.append(ShapeGuard(f"{names[n]} == {n}", ""))
        for n, name in opened.items():
            env.var_to_val[name], env.var_to_range[name] = n, Range(2, math.inf)
        shapes = [[opened.get(n, n) for n in shape] for shape in sizes]
        while True:
            try:
                return Sized(once(trace, leaves, structure, shapes, env), env if symbolic else None)
            except Inconclusive as error:
                if not learned(env, str(error)):
                    raise

    fixed: frozenset[int] = frozenset()
    while len(fixed) < len(names):
        try:
            return attempt(fixed)
        except (GuardOnDataDependentSymNode, AssertionError):
            raise
        except (
            Exception
        ):  # whatever a size that is open by itself may raise: one that must be the number that it is
            for n in reversed([n for n in names if n not in fixed]):
                with contextlib.suppress(Exception):
                    return attempt(fixed | {n})
            fixed |= {[n for n in names if n not in fixed][-1]}
    return attempt(fixed)


def once(trace: Any, leaves: list[Any], structure: Any, shapes: list[list[Any]], env: ShapeEnv) -> Any:
    """What `trace` gives for tensors of these sizes, numbers and names."""
    found: list[Any] = []

    def body(arrays: list[Any]) -> None:
        given = iter(arrays)

        def stands(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            return wrap(next(given), shared=True).requires_grad_(leaf.requires_grad)

        def alike(size: Any, other: Any) -> bool:
            """By the examples: where they are equal, a size stays what it is, else it is another from then on."""
            values = [evaluate(Size(str(each)), env.var_to_val) for each in (size, other)]
            if values[0] == values[1]:
                return undecided(size, other)
            guard = ShapeGuard(f"{size} != {other}", "")
            if guard not in env.guards:
                env.guards.append(guard)
            return False

        with pure("make_fx", lambda: (np.int64(0), np.int64(0))), strict_sizes(alike):
            found.append(trace(trees.tree_unflatten([stands(leaf) for leaf in leaves], structure)))

    with x64():
        known: dict[str, Any] = {}
        if env.var_to_val:
            constraints = [f"{name} >= 2" for name in env.var_to_val]
            constraints += [guard.constraint for guard in env.guards if guard.constraint]
            made = export.symbolic_shape(", ".join(env.var_to_val), constraints=constraints)
            known = dict(zip(env.var_to_val, made, strict=True))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        forms = [form([known.get(n, n) for n in shape], t.dtype) for shape, t in zip(shapes, tensors, strict=True)]  # fmt: skip
        jax.eval_shape(body, forms)
    return found[0]


def learned(env: ShapeEnv, message: str) -> bool:
    """Whether a condition on sizes could be decided by the examples' sizes, and is a guard now."""
    asked = COMPARED.search(message)
    if asked is None or len(env.guards) >= RETRIES:
        return False
    left, how, right = asked.groups()
    values = [evaluate(Size(text), env.var_to_val) for text in (left, right)]
    if not HOLDS[how](*values):
        how = OPPOSITE[how]
    sign, rest = OFFSETS[how]
    guard = ShapeGuard(f"{left} {how} {right}", f"{left} {sign} {right}{rest}")
    if guard in env.guards:
        return False
    env.guards.append(guard)
    narrow(env, left, how, right)
    return True


def narrow(env: ShapeEnv, left: str, how: str, right: str) -> None:
    """Have the range of a name know what a guard says of it and a number."""
    if left not in env.var_to_range or not right.isdigit():
        return
    low, high = env.var_to_range[left]
    bound = int(right) + {"<": -1, ">": 1}.get(how, 0)
    env.var_to_range[left] = Range(max(low, bound), high) if ">" in how else Range(low, min(high, bound))
