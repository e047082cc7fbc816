"""Elementary functions of complex numbers where a part is infinite or NaN, as the standard has them.

Of finite numbers the operators' values stand. Of others XLA's formulas meet products of zero and infinity, so that the parts
come from a table: the first row whose condition holds gives them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..ops.create import ranges
from ..ops.create.creation import full_like
from ..ops.index.masks import where
from ..ops.shape import reinterpret
from ..tensor import Tensor

__all__ = ["CASES", "with_cases"]

INF, NAN, PI = math.inf, math.nan, math.pi


class Parts(NamedTuple):
    """The real and the imaginary part of the arguments."""

    x: Tensor
    y: Tensor


Case = tuple[Callable[[Parts], Tensor], Any, Any]
"""When it holds, and the result's parts: numbers, functions of the argument's parts, or None where the value stands."""


def is_(real: float | str, imag: float | str) -> Callable[[Parts], Tensor]:
    """Whether the parts are these numbers, or of these kinds."""

    def holds(z: Parts) -> Tensor:
        return part_is(z.x, real) & part_is(z.y, imag)

    return holds


def part_is(part: Tensor, what: float | str) -> Tensor:
    if what == "finite":
        return part.isfinite()
    if what == "not finite":
        return ~part.isfinite()
    if what == "infinite":
        return part.isinf()
    assert not isinstance(what, str)
    return part.isnan() if math.isnan(what) else part == what


CASES: dict[str, tuple[Case, ...]] = {
    "acos": (
        (is_(0.0, NAN), PI / 2, NAN),
        (is_("finite", NAN), NAN, NAN),
    ),
    "acosh": (
        (is_(0.0, NAN), NAN, PI / 2),
        (is_("finite", NAN), NAN, NAN),
    ),
    "asin": (
        (is_(0.0, NAN), lambda z: z.x, NAN),
        (is_("finite", NAN), NAN, NAN),
    ),
    "asinh": (
        (is_(NAN, 0.0), NAN, lambda z: z.y),
        (is_(NAN, "finite"), NAN, NAN),
    ),
    "atan": (
        (is_(NAN, 0.0), NAN, lambda z: z.y),
        (is_(NAN, "infinite"), NAN, lambda z: 1 / z.y),
        (is_(NAN, "finite"), NAN, NAN),
        (is_(NAN, NAN), NAN, NAN),
        (is_("finite", NAN), NAN, NAN),
    ),
    "atanh": (
        (is_(0.0, NAN), lambda z: z.x, NAN),
        (is_("infinite", NAN), lambda z: 1 / z.x, NAN),
        (is_("finite", NAN), NAN, NAN),
        (is_(NAN, "finite"), NAN, NAN),
        (is_(NAN, NAN), NAN, NAN),
    ),
    "cos": (
        (is_("not finite", 0.0), NAN, 0.0),
        (is_("not finite", "infinite"), INF, NAN),
    ),
    "cosh": (
        (is_(0.0, "not finite"), NAN, 0.0),
        (is_("infinite", "not finite"), INF, NAN),
    ),
    "exp": (
        (is_(-INF, "not finite"), 0.0, 0.0),
        (is_(INF, "not finite"), INF, NAN),
    ),
    "expm1": (
        (is_(-INF, "not finite"), -1.0, 0.0),
        (is_(INF, "not finite"), INF, NAN),
    ),
    "log": (
        (is_("infinite", NAN), INF, NAN),
        (is_(NAN, "infinite"), INF, NAN),
    ),
    "log1p": (
        (is_("infinite", NAN), INF, NAN),
        (is_(NAN, "infinite"), INF, NAN),
    ),
    "sin": (
        (is_("not finite", 0.0), NAN, lambda z: z.y),
        (is_("not finite", "infinite"), NAN, lambda z: z.y),
    ),
    "sinh": (
        (is_(0.0, "not finite"), lambda z: z.x, NAN),
        (is_("infinite", "not finite"), lambda z: z.x, NAN),
    ),
    "sqrt": (
        (is_(-INF, NAN), NAN, INF),
        (is_(INF, NAN), INF, NAN),
    ),
    "tan": ((is_("not finite", 0.0), NAN, lambda z: z.y),),
    "tanh": (
        (is_(0.0, "not finite"), lambda z: z.x, NAN),
        (is_(INF, "finite"), 1.0, lambda z: z.y * 0),
        (is_(-INF, "finite"), -1.0, lambda z: z.y * 0),
    ),
}
"""By function: what the standard demands and the operator has not."""


def part_of(z: Parts, given: float | Callable[[Parts], Tensor]) -> Tensor:
    """A part of a row of the table for every element."""
    return given(z) if callable(given) else full_like(z.x, given)


def with_cases(name: str, function: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    """The function, of complex arguments with the cases of its name."""
    cases = CASES.get(name)
    if cases is None:
        return function

    def run(x: Tensor) -> Tensor:
        result = function(x)
        if not x.dtype.is_complex:
            return result
        z = Parts(reinterpret.real(x).detach(), reinterpret.imag(x).detach())
        for holds, real, imag in reversed(cases):
            found = ranges.complex(part_of(z, real), part_of(z, imag))
            result = where(holds(z), found, result)
        return result

    return run
