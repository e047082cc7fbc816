"""Programs within a program, each compiled as it is by itself.

XLA fuses what it can, across the borders of the functions that were traced, and then products and sums are contracted and rounded
otherwise. Where the results must not depend on how programs were put together, their calls are marked, so that XLA keeps each
as a computation of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental.xla_metadata import set_xla_metadata

from ..quick import PRODUCTS, inner, is_library, operations

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

    memory = Memory() if jax.devices()[0].platform == "cpu" else None
    for equation in jaxpr.eqns:
        primitive = equation.primitive
        given = [*map(value_of, equation.invars)]
        if memory is not None and primitive.name in CALLS:
            for at in memory.twice(equation):
                given[at] = set_xla_metadata(_fresh(given[at]), inlineable="false")
        results: Any = primitive.bind(*given, **equation.params)
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


CODELESS = frozenset(
    "broadcast_in_dim convert_element_type copy expand_dims reduce_max reduce_min reduce_prod reduce_sum reshape slice squeeze stop_gradient transpose".split()
).union(CALLS)
"""Operations of which XLA makes no code where they change neither size nor dtype."""
FEW = 1 << 12
"""Elements of an argument; the first addition of a sum of more is no part of what LLVM unrolls."""


class Memory:
    """Which values of a program XLA may find to be one: what is given twice, results without code, calls that came before.

    A program by itself has arguments that are apart. Within another LLVM may know that two of them are one, so that their products are squares:
    then it leaves out the `+ 0.0` that a sum begins with, and contracts other products with additions.
    """

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}
        self.of: dict[Any, int] = {}

    def number(self, key: Any) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def places(self, equation: Any) -> list[int]:
        return [
            self.number(id(v.val)) if hasattr(v, "val") else self.of.setdefault(v, self.number(v))
            for v in equation.invars
        ]

    def twice(self, equation: Any) -> list[int]:
        """The arguments of a call that sums up products and are another one's memory; its results are noted."""
        called = equation.params["jaxpr"].jaxpr
        places = self.places(equation)
        codeless = operations(called) <= CODELESS
        for at, out in enumerate(equation.outvars):
            alike = [
                p
                for v, p in zip(equation.invars, places, strict=True)
                if (v.aval.size, v.aval.dtype) == (out.aval.size, out.aval.dtype)
            ]
            self.of[out] = alike[0] if codeless and alike else self.number((id(called), *places, at))
        if len(set(places)) == len(places) or not sums_products(called):
            return []
        return [
            at
            for at, (v, place) in enumerate(zip(equation.invars, places, strict=True))
            if place in places[:at] and v.aval.dtype.name in ("float32", "float64") and 1 < v.aval.size <= FEW
        ]


def sums_products(jaxpr: Any) -> bool:
    """Whether products may be summed up in a loop of XLA's own."""
    names = operations(jaxpr)
    return ("reduce_sum" in names and not names.isdisjoint(PRODUCTS)) or multiplies_vectors(jaxpr)


def multiplies_vectors(jaxpr: Any) -> bool:
    """Whether there is a product of vectors, which no library makes."""
    return any(
        (e.primitive.name == "dot_general" and not is_library(e)) or any(map(multiplies_vectors, inner(e)))
        for e in jaxpr.eqns
    )


@jax.jit
def _fresh(values: Any) -> Any:
    """The same bits in other memory, by a loop that XLA does not see through."""
    bits = lax.bitcast_convert_type(values, np.dtype(f"uint{8 * values.dtype.itemsize}"))
    one = np.ones((), bits.dtype)
    return lax.bitcast_convert_type(bits ^ ((bits & one) & ~bits), values.dtype)


def convolves(equation: Any) -> bool:
    """Whether a program convolves, in any branch: XLA's fast convolutions are found in the outermost program only."""
    if equation.primitive.name == "conv_general_dilated":
        return True
    inner = jax.tree.leaves(list(equation.params.values()), is_leaf=is_program)
    return any(convolves(e) for p in inner if is_program(p) for e in p.eqns)


def is_program(value: Any) -> bool:
    return hasattr(value, "eqns")
