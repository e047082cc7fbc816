"""Programs within a program, each compiled as it is by itself.

XLA fuses what it can, across the borders of the functions that were traced, and then products and sums are contracted and rounded
otherwise. Where the results must not depend on how programs were put together, their calls are marked, so that XLA keeps each
as a computation of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.experimental.xla_metadata import set_xla_metadata

__all__ = ["apart"]


def apart(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The function's value, where each program that it calls stays one of its own within the program around it.

    So each is compiled as it is by itself, and rounds as it does by itself: XLA fuses nothing across their borders. On the CPU it calls
    them; elsewhere what one gives goes to the next behind a barrier.
    """
    closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
    jaxpr = closed.jaxpr
    values = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values.update(zip(jaxpr.invars, jax.tree.leaves(args), strict=True))

    def value_of(var: Any) -> Any:
        return var.val if hasattr(var, "val") else values[var]

    for equation in jaxpr.eqns:
        primitive = equation.primitive
        results: Any = primitive.bind(*map(value_of, equation.invars), **equation.params)
        results = list(results) if primitive.multiple_results else [results]
        if primitive.name in CALLS:
            results = kept_apart(equation, results)
        values.update(zip(equation.outvars, results, strict=True))
    return jax.tree.unflatten(jax.tree.structure(shape), map(value_of, jaxpr.outvars))


CALLS = ("jit", "pjit")


def kept_apart(equation: Any, results: list[Any]) -> Any:
    """What a program within another gave, marked."""
    if jax.devices()[0].platform != "cpu":
        return jax.lax.optimization_barrier(results)
    return results if convolves(equation) else set_xla_metadata(results, inlineable="false")


def convolves(equation: Any) -> bool:
    """Whether a program convolves, in any branch: XLA's fast convolutions are found in the outermost program only."""
    if equation.primitive.name == "conv_general_dilated":
        return True
    inner = jax.tree.leaves(list(equation.params.values()), is_leaf=is_program)
    return any(convolves(e) for p in inner if is_program(p) for e in p.eqns)


def is_program(value: Any) -> bool:
    return hasattr(value, "eqns")
