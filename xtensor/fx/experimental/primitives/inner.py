"""Primitives that hold programs: branches, and loops, which are unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....tensor import Tensor
from ....xla.jax_internals import scan_counts
from .table import evaluated, filled, looped, op

__all__: list[str] = []


@looped("platform_index")
def platform_index(equation: Any, given: list[Any], constant: Any) -> Any:
    """The branch for all platforms that have none of their own: a graph may run anywhere."""
    return np.int32(len(equation.params["platforms"]) - 1)


@looped("cond")
def cond(equation: Any, given: list[Any], constant: Any) -> Any:
    which, *operands = given
    branches = equation.params["branches"]
    if not isinstance(which, Tensor):
        chosen = branches[min(max(int(which), 0), len(branches) - 1)]
        return evaluated(chosen.jaxpr, chosen.consts, operands, constant)
    found = [evaluated(b.jaxpr, b.consts, operands, constant) for b in branches]
    avals = [v.aval for v in equation.outvars]
    made = [filled(v, a, constant) for v, a in zip(found[-1], avals, strict=True)]
    for at in range(len(branches) - 2, -1, -1):
        hit = op("le", which, at)
        made = [
            op("where", hit, filled(v, a, constant), m)
            for v, m, a in zip(found[at], made, avals, strict=True)
        ]
    return made


@looped("custom_linear_solve")
def solved(equation: Any, given: list[Any], constant: Any) -> Any:
    lengths, programs = equation.params["const_lengths"], equation.params["jaxprs"]
    first = lengths.matvec + lengths.vecmat
    consts, operands = given[first : first + lengths.solve], given[sum(lengths) :]
    return evaluated(programs.solve.jaxpr, programs.solve.consts, [*consts, *operands], constant)


@looped("while")
def repeated(equation: Any, given: list[Any], constant: Any) -> Any:
    params = equation.params
    first, second = params["cond_nconsts"], params["body_nconsts"]
    of_test, of_body, state = given[:first], given[first : first + second], given[first + second :]
    test, body = params["cond_jaxpr"], params["body_jaxpr"]
    while True:
        (going,) = evaluated(test.jaxpr, test.consts, [*of_test, *state], constant)
        if isinstance(going, Tensor):
            raise NotImplementedError("make_fx: a loop within a transform that ends by values is no operator")
        if not going:
            return state
        state = evaluated(body.jaxpr, body.consts, [*of_body, *state], constant)


@looped("scan")
def scanned(equation: Any, given: list[Any], constant: Any) -> Any:
    params = equation.params
    (consts, carries), length = scan_counts(params), params["length"]
    body, fixed, state = params["jaxpr"], given[:consts], given[consts : consts + carries]
    variables = equation.invars[consts + carries :]
    rows = [filled(v, x.aval, constant) for v, x in zip(given[consts + carries :], variables, strict=True)]
    made: list[list[Any]] = []
    for at in range(length)[:: -1 if params["reverse"] else 1]:
        found = evaluated(
            body.jaxpr, body.consts, [*fixed, *state, *[op("select", r, 0, at) for r in rows]], constant
        )
        state = found[:carries]
        made.append(
            [
                filled(v, x.aval, constant)
                for v, x in zip(found[carries:], body.jaxpr.outvars[carries:], strict=True)
            ]
        )
    made = made[:: -1 if params["reverse"] else 1]
    return [*state, *[op("stack", list(each)) for each in zip(*made, strict=True)]]
