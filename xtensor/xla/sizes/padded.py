"""A program whose arrays are longer than their values: a jaxpr over symbolic sizes, run at one size for all below it.

A dimension whose size is symbolic is *open*. Its arrays are as long as the size's largest value; what lies behind the true size, an
operand of the program, is padding of any value. Each primitive keeps the padding apart from the values: element by element nothing is to be
done, sums and products over an open dimension mask it, what moves elements computes where they lie. One that has no
rule is `Refused`. `rules` has the primitives, this file what they share and those that run other jaxprs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from ..jax_internals import evaluate_dimension, scan_counts
from ..symbolic import is_open

__all__ = ["RULES", "Refused", "Sizes", "evaluate", "open_axes", "rule", "run"]

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
"""For each primitive by name `(sizes, equation, *arrays) -> array or arrays`."""


class Refused(Exception):
    """A program that cannot be run at a larger size."""


def rule(*names: str) -> Callable[[Rule], Rule]:
    """A decorator that gives primitives their rule."""

    def keep(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return keep


def evaluate(dim: Any, values: Mapping[str, Any]) -> Any:
    """A size, where variables have these values."""
    if isinstance(dim, (int, np.integer)):
        return int(dim)
    return evaluate_dimension(dim, values)


def open_axes(shape: Sequence[Any]) -> list[int]:
    """The dimensions of symbolic size."""
    return [axis for axis, dim in enumerate(shape) if is_open(dim)]


class Sizes:
    """The sizes that arrays have in a program, and the true ones.

    longest: the largest value of every variable. given: their true values, arrays of int32.
    """

    def __init__(self, longest: Mapping[str, int], given: Mapping[str, Any]) -> None:
        self.longest = longest
        self.given = given

    def shape(self, dims: Sequence[Any]) -> tuple[int, ...]:
        """The shape of an array in the program."""
        return tuple([int(evaluate(d, self.longest)) for d in dims])

    def true(self, dim: Any) -> Any:
        """A size as it is: an int, or an array of int32."""
        return evaluate(dim, self.given) if is_open(dim) else int(dim)

    def valid(self, shape: Sequence[Any], axes: Sequence[int] | None = None) -> Any:
        """Which places of an array hold values, looking at the open dimensions among `axes`; None where all do."""
        found = None
        for axis in open_axes(shape) if axes is None else axes:
            if is_open(shape[axis]):
                here = lax.broadcasted_iota(np.int32, self.shape(shape), axis) < self.true(shape[axis])
                found = here if found is None else found & here
        return found

    def masked(self, array: Any, shape: Sequence[Any], axes: Sequence[int] | None, fill: Any) -> Any:
        """The array with `fill` for its padding along the open dimensions among `axes`."""
        valid = self.valid(shape, axes)
        if valid is None:
            return array
        return lax.select(valid, array, jnp.full(array.shape, fill, array.dtype))


def shapes_in(equation: Any) -> list[Any]:
    """The shapes of an equation's operands."""
    return [v.aval.shape for v in equation.invars]


def touches(equation: Any) -> bool:
    """Whether an equation has to do with open dimensions."""
    if any(open_axes(v.aval.shape) for v in (*equation.invars, *equation.outvars)):
        return True
    return any(
        is_symbolic(leaf) for leaf in jax.tree.leaves(list(equation.params.values()), is_leaf=is_symbolic)
    )


def is_symbolic(value: Any) -> bool:
    """Whether a parameter of an equation is a symbolic size, or a program that may hold some."""
    return hasattr(value, "eqns") or type(value).__name__ == "_DimExpr"


def run(sizes: Sizes, jaxpr: Any, consts: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """The results of a jaxpr over arrays with padding."""
    values = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def value_of(var: Any) -> Any:
        return var.val if hasattr(var, "val") else values[var]

    for equation in jaxpr.eqns:
        name = equation.primitive.name
        given = list(map(value_of, equation.invars))
        if name in INNER:
            results: Any = INNER[name](sizes, equation, *given)
        elif not touches(equation):
            results = equation.primitive.bind(*given, **equation.params)
        elif name in RULES:
            results = RULES[name](sizes, equation, *given)
        else:
            raise Refused(f"no rule for {name}")
        if not equation.primitive.multiple_results:
            results = [results]
        for var, result in zip(equation.outvars, results, strict=True):
            if result.shape != sizes.shape(var.aval.shape) or result.dtype != var.aval.dtype:
                raise Refused(f"{name} gives {result.shape} for {var.aval}")
            values[var] = result
    return list(map(value_of, jaxpr.outvars))


# -- primitives that run other jaxprs

INNER: dict[str, Rule] = {}


def inner(*names: str) -> Callable[[Rule], Rule]:
    """A decorator that gives primitives which run other jaxprs their rule."""

    def keep(function: Rule) -> Rule:
        INNER.update(dict.fromkeys(names, function))
        return function

    return keep


def run_closed(sizes: Sizes, closed: Any, args: Sequence[Any]) -> list[Any]:
    """`run` of a jaxpr with or without its constants."""
    if hasattr(closed, "consts"):
        return run(sizes, closed.jaxpr, closed.consts, args)
    return run(sizes, closed, (), args)


@inner(
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "remat",
    "remat2",
    "checkpoint",
)
def called(sizes: Sizes, equation: Any, *args: Any) -> Any:
    """A function called: its equations."""
    params = equation.params
    closed = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))
    if closed is None:
        raise Refused(f"no jaxpr in {equation.primitive.name}")
    return run_closed(sizes, closed, args)


@inner("cond")
def chosen(sizes: Sizes, equation: Any, index: Any, *args: Any) -> Any:
    """One of several programs: where the platform chooses, that of the CPU."""
    branches = equation.params["branches"]
    platforms = equation.params.get("branches_platforms")
    if platforms is not None:
        here = [i for i, names in enumerate(platforms) if names is None or "cpu" in names]
        return run_closed(sizes, branches[here[0]], args)
    return lax.switch(index, [partial(run_closed, sizes, closed) for closed in branches], args)


@inner("while")
def repeated(sizes: Sizes, equation: Any, *args: Any) -> Any:
    """A loop while a condition holds, which sees no padding: what it is reduced from is masked."""
    params = equation.params
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    return lax.while_loop(
        lambda carry: run_closed(sizes, params["cond_jaxpr"], [*args[:first], *carry])[0],
        lambda carry: run_closed(sizes, params["body_jaxpr"], [*args[first:second], *carry]),
        list(args[second:]),
    )


@inner("scan")
def scanned(sizes: Sizes, equation: Any, *args: Any) -> Any:
    """A loop over the first dimension: as many turns as it truly has."""
    params = equation.params
    first, count = scan_counts(params)
    consts, carry, rows = args[:first], list(args[first : first + count]), args[first + count :]
    length, reverse = params["length"], params["reverse"]

    def turn(carry: Sequence[Any], row: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        found = run_closed(sizes, params["jaxpr"], [*consts, *carry, *row])
        return found[:count], found[count:]

    if not is_open(length):
        carry, out = lax.scan(
            turn, carry, list(rows), length=length, reverse=reverse, unroll=params["unroll"]
        )
        return [*carry, *out]
    stop = sizes.true(length)
    out = [jnp.zeros(sizes.shape(v.aval.shape), v.aval.dtype) for v in equation.outvars[count:]]

    def body(k: Any, state: Any) -> Any:
        carry, out = state
        at = stop - 1 - k if reverse else k
        carry, found = turn(carry, [lax.dynamic_index_in_dim(r, at, keepdims=False) for r in rows])
        return carry, [lax.dynamic_update_index_in_dim(o, f, at, 0) for o, f in zip(out, found, strict=True)]

    carry, out = lax.fori_loop(jnp.zeros((), stop.dtype), stop, body, (carry, out))
    return [*carry, *out]
