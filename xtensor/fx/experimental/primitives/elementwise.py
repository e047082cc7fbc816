"""Primitives on every element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....dtypes import FROM_NUMPY
from ....tensor import Tensor
from .table import Rule, asked, op, rule, scalar, single

__all__: list[str] = []


SAME = (
    "copy copy_p stop_gradient device_put xla_metadata_value reduce_precision optimization_barrier pvary sharding_constraint name"
).split()
UNARY = {
    name: name
    for name in (
        "abs neg exp log sqrt floor ceil sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh erf erfc expm1 log1p rsqrt "
        "square lgamma digamma exp2"
    ).split()
} | {
    "logistic": "sigmoid", "is_finite": "isfinite", "erf_inv": "erfinv", "sign": "sgn", "not": "bitwise_not", "conj": "conj_physical",
    "bessel_i0e": "special_i0e", "bessel_i1e": "special_i1e",
}  # fmt: skip
BINARY = {
    "pow": "pow", "atan2": "atan2", "rem": "fmod", "nextafter": "nextafter", "igamma": "special_gammainc", "igammac": "special_gammaincc",
    "shift_left": "bitwise_left_shift", "shift_right_arithmetic": "bitwise_right_shift", "complex": "complex", "zeta": "special_zeta",
}  # fmt: skip
SWAPPED = {
    "add": ("add", "add"), "add_any": ("add", "add"), "mul": ("mul", "mul"), "sub": ("sub", "rsub"), "and": ("bitwise_and",) * 2,
    "or": ("bitwise_or",) * 2, "xor": ("bitwise_xor",) * 2, "eq": ("eq", "eq"), "ne": ("ne", "ne"), "lt": ("lt", "gt"),
    "le": ("le", "ge"), "gt": ("gt", "lt"), "ge": ("ge", "le"), "max": ("maximum",) * 2, "min": ("minimum",) * 2,
    "lt_to": ("lt", "gt"), "le_to": ("le", "ge"),
}  # fmt: skip
"""Primitives of two operands: the operator, and the one for them the other way round."""


def unary(name: str) -> Rule:
    return lambda equation, x: op(name, x)


def binary(name: str) -> Rule:
    return lambda equation, x, y: op(name, single(equation, x), single(equation, y))


def swapped(name: str, other: str) -> Rule:
    bounds = {"maximum": "clamp_min", "minimum": "clamp_max"}

    def run(equation: Any, x: Any, y: Any) -> Any:
        if isinstance(x, Tensor) and isinstance(y, Tensor):
            return op(name, x, y)
        tensor, number, which = (x, y, name) if isinstance(x, Tensor) else (y, x, other)
        if which in bounds and (tensor.dtype.is_complex or tensor.dtype is FROM_NUMPY[np.dtype(bool)]):
            return op(name, tensor, single(equation, number))
        return op(bounds.get(which, which), tensor, number.item())

    return run


for primitive, name in UNARY.items():
    rule(primitive, elementwise=True)(unary(name))
for primitive, name in BINARY.items():
    rule(primitive, elementwise=True)(binary(name))
for primitive, names in SWAPPED.items():
    rule(primitive, elementwise=True)(swapped(*names))


@rule(*SAME, elementwise=True)
def same(equation: Any, *values: Any) -> Any:
    return list(values)


@rule("div", elementwise=True)
def div(equation: Any, x: Any, y: Any) -> Any:
    if np.dtype(equation.outvars[0].aval.dtype).kind in "iu":
        return op("div", single(equation, x), scalar(y), rounding_mode="trunc")
    return op("div", single(equation, x), scalar(y))


@rule("convert_element_type", elementwise=True)
def convert(equation: Any, x: Any, *rest: Any) -> Any:
    return x  # what every result is fitted to


@rule("integer_pow", elementwise=True)
def integer_pow(equation: Any, x: Any) -> Any:
    return op("pow", x, equation.params["y"])


@rule("polygamma", elementwise=True)
def polygamma(equation: Any, order: Any, x: Any) -> Any:
    if isinstance(order, Tensor):
        raise NotImplementedError(
            "make_fx: the primitive polygamma of an order that is computed is no operator"
        )
    return op("polygamma", int(order), x)


@rule("cbrt", elementwise=True)
def cbrt(equation: Any, x: Any) -> Any:
    return op("mul", op("sign", x), op("pow", op("abs", x), 1 / 3))


@rule("round", elementwise=True)
def rounded(equation: Any, x: Any) -> Any:
    if int(equation.params["rounding_method"]) == 1:
        return op("round", x)
    return op("mul", op("sign", x), op("floor", op("add", op("abs", x), 0.5)))


@rule("clamp", elementwise=True)
def clamp(equation: Any, low: Any, x: Any, high: Any) -> Any:
    x = single(equation, x)
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        return op("clamp", x, single(equation, low), single(equation, high))
    return op("clamp", x, low.item(), high.item())


@rule("select_n", elementwise=True)
def select(equation: Any, which: Any, *cases: Any) -> Any:
    if not isinstance(which, Tensor):
        return cases[int(which)]
    if which.dtype is FROM_NUMPY[np.dtype(bool)]:
        return op("where", which, single(equation, cases[1]), single(equation, cases[0]))
    found = cases[-1]
    for at in range(len(cases) - 2, -1, -1):
        found = op("where", op("eq", which, at), single(equation, cases[at]), single(equation, found))
    return found


@rule("real", "imag", elementwise=True)
def part(equation: Any, x: Tensor) -> Tensor:
    return op("select", asked("view_as_real", "default", x), -1, int(equation.primitive.name == "imag"))


@rule("bitcast_convert_type")
def bitcast(equation: Any, x: Tensor) -> Tensor:
    return asked("view", "dtype", x, FROM_NUMPY[equation.outvars[0].aval.dtype])


@rule("shift_right_logical", elementwise=True)
def shift_right_logical(equation: Any, x: Any, y: Any) -> Any:
    if equation.outvars[0].aval.dtype.kind != "u":
        raise NotImplementedError(
            "make_fx: the primitive shift_right_logical of signed integers is no operator"
        )
    return op("bitwise_right_shift", single(equation, x), single(equation, y))
