"""What the results of a traced function depend on: which arguments, and whether one is passed through as it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

__all__ = ["origin", "piece", "used"]

_CALLS = ("jit", "pjit")


def is_literal(var: Any) -> bool:
    return hasattr(var, "val")


def used(jaxpr: Any, wanted: Sequence[bool], smoothly: bool = False) -> list[bool]:
    """For each input whether any of the `wanted` outputs needs it.

    With `smoothly`, only where it matters through floating point values all the way: not through a comparison.
    """

    def counts(var: Any) -> bool:
        return not is_literal(var) and (not smoothly or jnp.issubdtype(var.aval.dtype, np.inexact))

    live = {v for v, w in zip(jaxpr.outvars, wanted, strict=True) if w and counts(v)}
    for eqn in reversed(jaxpr.eqns):
        needed = [v in live for v in eqn.outvars]
        if not any(needed):
            continue
        inputs = eqn.invars
        if eqn.primitive.name in _CALLS:
            inner = used(eqn.params["jaxpr"].jaxpr, needed, smoothly)
            inputs = [v for v, u in zip(inputs, inner, strict=True) if u]
        live.update(v for v in inputs if counts(v))
    return [v in live for v in jaxpr.invars]


def origin(jaxpr: Any, index: int) -> tuple[int, bool] | None:
    """The input that an output is, and whether it is one number spread over a shape; None where it is computed."""
    makers = {v: (eqn, i) for eqn in jaxpr.eqns for i, v in enumerate(eqn.outvars)}
    places = {v: i for i, v in enumerate(jaxpr.invars)}
    var, spread = jaxpr.outvars[index], False
    while not is_literal(var):
        if var in places:
            return places[var], spread
        if var not in makers:
            return None
        eqn, at = makers[var]
        name = eqn.primitive.name
        if name in _CALLS:
            inner = origin(eqn.params["jaxpr"].jaxpr, at)
            if inner is None:
                return None
            var, spread = eqn.invars[inner[0]], spread or inner[1]
        elif name == "broadcast_in_dim" and eqn.invars[0].aval.shape == ():
            var, spread = eqn.invars[0], True
        elif name == "convert_element_type" and eqn.invars[0].aval.dtype == var.aval.dtype:
            var = eqn.invars[0]
        else:
            return None
    return None


Piece = tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]


def piece(jaxpr: Any, index: int) -> Piece | None:
    """The input that an output is a part of, where the part begins in each dimension, its sizes there, and the dimensions (of size 1)
    that the output lacks; None where it is no part, or all.
    """
    makers = {v: (eqn, i) for eqn in jaxpr.eqns for i, v in enumerate(eqn.outvars)}
    places = {v: i for i, v in enumerate(jaxpr.invars)}
    var = jaxpr.outvars[index]
    without: tuple[int, ...] = ()
    part: Any = None
    while not is_literal(var):
        if var in places:
            return None if part is None else (places[var], part[0], part[1], without)
        if var not in makers:
            return None
        eqn, at = makers[var]
        name = eqn.primitive.name
        if name in _CALLS:
            inner = piece(eqn.params["jaxpr"].jaxpr, at)
            if inner is None or part is not None or without:
                return None
            var, part, without = eqn.invars[inner[0]], inner[1:3], inner[3]
        elif name == "squeeze" and part is None and not without:
            var, without = eqn.invars[0], tuple(eqn.params["dimensions"])
        elif name == "slice" and part is None and set(eqn.params["strides"] or (1,)) == {1}:
            starts, ends = eqn.params["start_indices"], eqn.params["limit_indices"]
            part = tuple(starts), tuple([e - s for s, e in zip(starts, ends, strict=True)])
            var = eqn.invars[0]
        else:
            return None
    return None
