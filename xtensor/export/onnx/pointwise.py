"""Translations of what computes element by element: arithmetic, comparisons, elementary functions, activations, losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from .building import Builder, Untranslated, Value, dim_of, promoted, translation
from .reductions import mean

__all__ = ["unary_float"]

UNARY = {
    "abs": "Abs", "neg": "Neg", "ceil": "Ceil", "floor": "Floor", "relu": "Relu", "logical_not": "Not",
}  # fmt: skip
FLOATING = {
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "reciprocal": "Reciprocal", "sin": "Sin", "cos": "Cos", "tan": "Tan",
    "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "sigmoid": "Sigmoid",
}  # fmt: skip
BINARY = {"mul": "Mul", "maximum": "Max", "minimum": "Min"}
COMPARISONS = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
LOGICAL = {"logical_and": "And", "logical_or": "Or", "logical_xor": "Xor"}
BITWISE = {
    "bitwise_and": ("And", "BitwiseAnd"),
    "bitwise_or": ("Or", "BitwiseOr"),
    "bitwise_xor": ("Xor", "BitwiseXor"),
}


def unary_float(b: Builder, x: Value) -> Value:
    """An operand as a float: integers are computed in the default type."""
    return x if x.dtype.is_floating_point else b.cast(x, dtypes.get_default_dtype())


def register() -> None:
    """Put in the table what one node of ONNX says."""

    def plain(kind: str) -> Callable[..., Any]:
        return lambda b, input, **rest: b.op(kind, b.cast(input, dtypes.bool) if kind == "Not" else input)

    def floating(kind: str) -> Callable[..., Any]:
        return lambda b, input, **rest: b.op(kind, unary_float(b, input))

    def binary(kind: str) -> Callable[..., Any]:
        return lambda b, input, other, **rest: b.op(kind, *b.common(input, other), shape=b.result.shape)

    def comparison(kind: str) -> Callable[..., Any]:
        def compare(b: Builder, input: Any, other: Any, **rest: Any) -> Value:
            one, two = b.common(input, other)
            if one.dtype is dtypes.bool and kind != "Equal":
                one, two = b.cast(one, dtypes.int32), b.cast(two, dtypes.int32)
            return b.op(kind, one, two, dtype=dtypes.bool, shape=b.result.shape)

        return compare

    def logical(kind: str) -> Callable[..., Any]:
        return lambda b, input, other, **rest: b.op(
            kind, b.cast(input, dtypes.bool), b.cast(other, dtypes.bool), shape=b.result.shape
        )

    def bitwise(kinds: tuple[str, str]) -> Callable[..., Any]:
        def run(b: Builder, input: Any, other: Any, **rest: Any) -> Value:
            one, two = b.common(input, other)
            return b.op(kinds[one.dtype is not dtypes.bool], one, two, shape=b.result.shape)

        return run

    tables: list[tuple[dict[str, Any], Callable[[Any], Callable[..., Any]]]] = [
        (UNARY, plain), (FLOATING, floating), (BINARY, binary), (COMPARISONS, comparison), (LOGICAL, logical), (BITWISE, bitwise),
    ]  # fmt: skip
    for table, make in tables:
        for name, kind in table.items():
            translation(name)(make(kind))


register()


# ---- arithmetic


@translation("add", "sub", "rsub")
def add(b: Builder, input: Any, other: Any, *, alpha: Any = 1, **rest: Any) -> Value:
    one, two = b.common(input, other)
    name = b.operator
    if name == "rsub":
        one, two = two, one
    if alpha != 1:
        two = b.op("Mul", two, b.number(alpha, two))
    if one.dtype is dtypes.bool:
        return b.op("Or" if name == "add" else "Xor", one, two, shape=b.result.shape)
    return b.op("Add" if name == "add" else "Sub", one, two, shape=b.result.shape)


@translation("div")
def div(b: Builder, input: Any, other: Any, *, rounding_mode: Any = None, **rest: Any) -> Value:
    one, two = b.common(input, other)
    if rounding_mode is None:
        one, two = unary_float(b, one), unary_float(b, two)
        return b.op("Div", one, two, shape=b.result.shape)
    if not one.dtype.is_floating_point:
        if rounding_mode == "floor":
            return floor_divide(b, one, two)
        return b.op("Div", one, two, shape=b.result.shape)
    found = b.op("Div", one, two, shape=b.result.shape)
    return b.op("Floor", found) if rounding_mode == "floor" else trunc(b, found)


@translation("floor_divide")
def floor_divide(b: Builder, input: Any, other: Any, **rest: Any) -> Value:
    one, two = b.common(input, other)
    if one.dtype.is_floating_point:
        return b.op("Floor", b.op("Div", one, two, shape=b.result.shape))
    # The remainder has the divisor's sign.
    left = b.op("Mod", one, two, shape=b.result.shape)
    return b.op("Div", b.op("Sub", one, left, shape=b.result.shape), two, shape=b.result.shape)


@translation("remainder")
def remainder(b: Builder, input: Any, other: Any, **rest: Any) -> Value:
    one, two = b.common(input, other)
    if not one.dtype.is_floating_point:
        return b.op("Mod", one, two, shape=b.result.shape)
    whole = b.op("Floor", b.op("Div", one, two, shape=b.result.shape))
    return b.op("Sub", one, b.op("Mul", whole, two), shape=b.result.shape)


@translation("fmod")
def fmod(b: Builder, input: Any, other: Any, **rest: Any) -> Value:
    one, two = b.common(input, other)
    return b.op("Mod", one, two, fmod=1, shape=b.result.shape)


@translation("pow")
def power(b: Builder, input: Any, exponent: Any, **rest: Any) -> Value:
    if isinstance(exponent, (int, float)) and isinstance(input, Value) and exponent == 0.5:
        return b.op("Sqrt", unary_float(b, input))
    one, two = b.common(input, exponent)
    return b.op("Pow", one, two, shape=b.result.shape)


@translation("square")
def square(b: Builder, input: Value, **rest: Any) -> Value:
    return b.op("Mul", input, input)


@translation("rsqrt")
def rsqrt(b: Builder, input: Value, **rest: Any) -> Value:
    return b.op("Reciprocal", b.op("Sqrt", unary_float(b, input)))


@translation("addcmul", "addcdiv")
def addcmul(
    b: Builder, input: Value, tensor1: Value, tensor2: Value, *, value: Any = 1, **rest: Any
) -> Value:
    kind = "Mul" if b.operator == "addcmul" else "Div"
    part = b.op(kind, *b.common(tensor1, tensor2), shape=b.result.shape)
    if value != 1:
        part = b.op("Mul", part, b.number(value, part))
    return b.op("Add", input, part, shape=b.result.shape)


@translation("lerp")
def lerp(b: Builder, input: Value, end: Value, weight: Any, **rest: Any) -> Value:
    step = b.op(
        "Mul", b.op("Sub", end, input, shape=b.result.shape), b.number(weight, input), shape=b.result.shape
    )
    return b.op("Add", input, step, shape=b.result.shape)


@translation("ne")
def ne(b: Builder, input: Any, other: Any, **rest: Any) -> Value:
    return b.op("Not", b.op("Equal", *b.common(input, other), dtype=dtypes.bool, shape=b.result.shape))


@translation("isnan")
def isnan(b: Builder, input: Value) -> Value:
    return b.op("IsNaN", unary_float(b, input), dtype=dtypes.bool)


@translation("isinf", "isposinf", "isneginf")
def isinf(b: Builder, input: Value, **rest: Any) -> Value:
    signs: dict[str, Any] = {"isposinf": dict(detect_negative=0), "isneginf": dict(detect_positive=0)}.get(
        b.operator, {}
    )
    return b.op("IsInf", unary_float(b, input), dtype=dtypes.bool, **signs)


@translation("isfinite")
def isfinite(b: Builder, input: Value) -> Value:
    x = unary_float(b, input)
    odd = b.op("Or", b.op("IsNaN", x, dtype=dtypes.bool), b.op("IsInf", x, dtype=dtypes.bool))
    return b.op("Not", odd)


@translation("bitwise_not")
def bitwise_not(b: Builder, input: Value, **rest: Any) -> Value:
    return b.op("Not" if input.dtype is dtypes.bool else "BitwiseNot", input)


@translation("where")
def where(b: Builder, condition: Value, input: Any = None, other: Any = None, **rest: Any) -> Value:
    if input is None:
        raise Untranslated("where without values gives as many elements as there are")
    return b.op("Where", b.cast(condition, dtypes.bool), *b.common(input, other), like=b.result)


@translation("masked_fill")
def masked_fill(b: Builder, input: Value, mask: Value, value: Any) -> Value:
    return b.op("Where", b.cast(mask, dtypes.bool), b.number(value, input), input, like=b.result)


@translation("clamp")
def clamp(b: Builder, input: Value, min: Any = None, max: Any = None, **rest: Any) -> Value:
    wide = promoted([v for v in (input, min, max) if v is not None])
    found = b.cast(input, wide)
    if min is not None:
        found = b.op("Max", found, b.number(min, found), shape=b.result.shape)
    return found if max is None else b.op("Min", found, b.number(max, found), shape=b.result.shape)


@translation("clamp_min")
def clamp_min(b: Builder, input: Value, min: Any, **rest: Any) -> Value:
    return clamp(b, input, min)


@translation("clamp_max")
def clamp_max(b: Builder, input: Value, max: Any, **rest: Any) -> Value:
    return clamp(b, input, None, max)


@translation("hardtanh")
def hardtanh(
    b: Builder, input: Value, min_val: Any = -1.0, max_val: Any = 1.0, inplace: bool = False
) -> Value:
    return clamp(b, input, min_val, max_val)


@translation("relu6")
def relu6(b: Builder, input: Value, inplace: bool = False) -> Value:
    return clamp(b, input, 0.0, 6.0)


# ---- elementary functions


@translation("trunc")
def trunc(b: Builder, input: Value, **rest: Any) -> Value:
    if not input.dtype.is_floating_point:
        return input
    return b.op("Mul", b.op("Sign", input), b.op("Floor", b.op("Abs", input)))


@translation("frac")
def frac(b: Builder, input: Value, **rest: Any) -> Value:
    return b.op("Sub", input, trunc(b, input))


@translation("round")
def round_(b: Builder, input: Value, *, decimals: int = 0, **rest: Any) -> Value:
    if not input.dtype.is_floating_point:
        return input
    if not decimals:
        return b.op("Round", input)
    scale = b.number(10.0**decimals, input)
    return b.op("Div", b.op("Round", b.op("Mul", input, scale)), scale)


def scaled(b: Builder, kind: str, x: Value, factor: float, before: bool) -> Value:
    """A function of a multiple, or a multiple of a function."""
    x = unary_float(b, x)
    if before:
        return b.op(kind, b.op("Mul", x, b.number(factor, x)))
    return b.op("Mul", b.op(kind, x), b.number(factor, x))


@translation("exp2")
def exp2(b: Builder, input: Value, **rest: Any) -> Value:
    x = unary_float(b, input)
    return b.op("Pow", b.number(2.0, x), x, like=x)


@translation("log2", "log10")
def log2(b: Builder, input: Value, **rest: Any) -> Value:
    return scaled(b, "Log", input, 1 / math.log(2 if b.operator == "log2" else 10), False)


@translation("expm1")
def expm1(b: Builder, input: Value, **rest: Any) -> Value:
    # 2 * tanh(x/2) / (1 - tanh(x/2)): exact where exp(x) - 1 would cancel.
    x = unary_float(b, input)
    half = b.op("Tanh", b.op("Mul", x, b.number(0.5, x)))
    small = b.op("Div", b.op("Mul", half, b.number(2.0, x)), b.op("Sub", b.number(1.0, x), half, like=x))
    large = b.op("Sub", b.op("Exp", x), b.number(1.0, x))
    near = b.op("Less", b.op("Abs", x), b.number(1.0, x), dtype=dtypes.bool)
    return b.op("Where", near, small, large, like=x)


@translation("log1p")
def log1p(b: Builder, input: Value, **rest: Any) -> Value:
    # x * log(u) / (u - 1) with u = 1 + x, as rounded: exact for small x as well.
    x = unary_float(b, input)
    one = b.number(1.0, x)
    u = b.op("Add", x, one)
    less = b.op("Sub", u, one)
    flat = b.op("Equal", less, b.zero_like(x), dtype=dtypes.bool)
    infinite = b.op("IsInf", u, dtype=dtypes.bool)
    safe = b.op("Where", flat, one, less, like=x)
    ratio = b.op("Mul", b.op("Log", u), b.op("Div", x, safe))
    found = b.op("Where", flat, x, ratio, like=x)
    return b.op("Where", infinite, b.op("Log", u), found, like=x)


@translation("erfc")
def erfc(b: Builder, input: Value, **rest: Any) -> Value:
    x = unary_float(b, input)
    return b.op("Sub", b.number(1.0, x), b.op("Erf", x), like=x)


@translation("deg2rad", "rad2deg")
def deg2rad(b: Builder, input: Value, **rest: Any) -> Value:
    x = unary_float(b, input)
    return b.op("Mul", x, b.number(math.pi / 180 if b.operator == "deg2rad" else 180 / math.pi, x))


@translation("logit")
def logit(b: Builder, input: Value, eps: Any = None, **rest: Any) -> Value:
    x = unary_float(b, input)
    if eps is not None:
        x = clamp(b, x, eps, 1 - eps)
    return b.op("Log", b.op("Div", x, b.op("Sub", b.number(1.0, x), x, like=x)))


@translation("sinc")
def sinc(b: Builder, input: Value, **rest: Any) -> Value:
    x = b.op("Mul", unary_float(b, input), b.number(math.pi, unary_float(b, input)))
    zero = b.op("Equal", x, b.zero_like(x), dtype=dtypes.bool)
    safe = b.op("Where", zero, b.number(1.0, x), x, like=x)
    return b.op("Where", zero, b.number(1.0, x), b.op("Div", b.op("Sin", safe), safe), like=x)


@translation("nan_to_num")
def nan_to_num(
    b: Builder, input: Value, nan: Any = None, posinf: Any = None, neginf: Any = None, **rest: Any
) -> Value:
    limits = dtypes.finfo(input.dtype)
    found = b.op(
        "Where", b.op("IsNaN", input, dtype=dtypes.bool), b.number(nan or 0.0, input), input, like=input
    )
    ends: list[tuple[Any, dict[str, Any]]] = [
        (posinf, dict(detect_negative=0)),
        (neginf, dict(detect_positive=0)),
    ]
    for value, signs in ends:
        default = limits.max if "detect_negative" in signs else limits.min
        odd = b.op("IsInf", found, dtype=dtypes.bool, **signs)
        found = b.op("Where", odd, b.number(default if value is None else value, input), found, like=input)
    return found


@translation("copysign")
def copysign(b: Builder, input: Value, other: Any, **rest: Any) -> Value:
    one, two = b.common(input, other)
    below = b.op("Less", b.op("Where", b.op("Equal", two, b.zero_like(two), dtype=dtypes.bool), b.op("Reciprocal", two), two, like=two),
                 b.zero_like(two), dtype=dtypes.bool)  # fmt: skip
    size = b.op("Abs", one)
    return b.op("Where", below, b.op("Neg", size), size, like=b.result)


@translation("heaviside")
def heaviside(b: Builder, input: Value, values: Value, **rest: Any) -> Value:
    zero = b.zero_like(input)
    step = b.cast(b.op("Greater", input, zero, dtype=dtypes.bool), input.dtype)
    return b.op("Where", b.op("Equal", input, zero, dtype=dtypes.bool), values, step, like=b.result)


# ---- activations


@translation("gelu")
def gelu(b: Builder, input: Value, *, approximate: str = "none", **rest: Any) -> Value:
    x, half, one = input, b.number(0.5, input), b.number(1.0, input)
    if approximate == "tanh":
        cube = b.op("Mul", b.op("Mul", x, x), x)
        inner = b.op("Add", x, b.op("Mul", cube, b.number(0.044715, x)))
        inner = b.op("Tanh", b.op("Mul", inner, b.number(math.sqrt(2 / math.pi), x)))
    else:
        inner = b.op("Erf", b.op("Mul", x, b.number(math.sqrt(0.5), x)))
    return b.op("Mul", b.op("Mul", x, half), b.op("Add", inner, one))


@translation("silu")
def silu(b: Builder, input: Value, **rest: Any) -> Value:
    return b.op("Mul", input, b.op("Sigmoid", input))


@translation("mish")
def mish(b: Builder, input: Value, **rest: Any) -> Value:
    return b.op("Mul", input, b.op("Tanh", b.op("Softplus", input)))


@translation("softplus")
def softplus(b: Builder, input: Value, beta: Any = 1.0, threshold: Any = 20.0, **rest: Any) -> Value:
    scale = b.number(beta, input)
    x = b.op("Mul", input, scale)
    found = b.op("Div", b.op("Softplus", x), scale)
    return b.op(
        "Where", b.op("Greater", x, b.number(threshold, x), dtype=dtypes.bool), input, found, like=input
    )


@translation("softsign")
def softsign(b: Builder, input: Value) -> Value:
    return b.op("Softsign", input)


@translation("tanhshrink")
def tanhshrink(b: Builder, input: Value) -> Value:
    return b.op("Sub", input, b.op("Tanh", input))


@translation("logsigmoid")
def logsigmoid(b: Builder, input: Value, **rest: Any) -> Value:
    return b.op("Neg", b.op("Softplus", b.op("Neg", input)))


@translation("hardsigmoid")
def hardsigmoid(b: Builder, input: Value, **rest: Any) -> Value:
    return b.op("HardSigmoid", input, alpha=1 / 6, beta=0.5)


@translation("hardswish")
def hardswish(b: Builder, input: Value, **rest: Any) -> Value:
    return b.op("Mul", input, b.op("HardSigmoid", input, alpha=1 / 6, beta=0.5))


@translation("leaky_relu")
def leaky_relu(b: Builder, input: Value, negative_slope: float = 0.01, inplace: bool = False) -> Value:
    return b.op("LeakyRelu", input, alpha=float(negative_slope))


@translation("elu")
def elu(b: Builder, input: Value, alpha: float = 1.0, *rest: Any, **more: Any) -> Value:
    return b.op("Elu", input, alpha=float(alpha))


@translation("celu")
def celu(b: Builder, input: Value, alpha: float = 1.0, **rest: Any) -> Value:
    return b.op("Celu", input, alpha=float(alpha))


@translation("selu")
def selu(b: Builder, input: Value, **rest: Any) -> Value:
    return b.op("Selu", input)


@translation("prelu_kernel")
def prelu(b: Builder, input: Value, weight: Value) -> Value:
    return b.op("PRelu", input, weight)


@translation("threshold")
def threshold(b: Builder, input: Value, threshold: Any, value: Any, **rest: Any) -> Value:
    below = b.op("LessOrEqual", input, b.number(threshold, input), dtype=dtypes.bool)
    return b.op("Where", below, b.number(value, input), input, like=input)


@translation("hardshrink")
def hardshrink(b: Builder, input: Value, lambd: float = 0.5, **rest: Any) -> Value:
    near = b.op("LessOrEqual", b.op("Abs", input), b.number(lambd, input), dtype=dtypes.bool)
    return b.op("Where", near, b.zero_like(input), input, like=input)


@translation("softshrink")
def softshrink(b: Builder, input: Value, lambd: float = 0.5, **rest: Any) -> Value:
    less = b.op("Relu", b.op("Sub", b.op("Abs", input), b.number(lambd, input)))
    return b.op("Mul", b.op("Sign", input), less)


@translation("glu")
def glu(b: Builder, input: Value, dim: int = -1, **rest: Any) -> Value:
    one, two = b.ops(
        "Split", input, count=2, axis=dim_of(dim, input.rank), num_outputs=2, shape=b.result.shape
    )
    return b.op("Mul", one, b.op("Sigmoid", two))


# ---- losses


def reduced(b: Builder, x: Value, reduction: Any) -> Value:
    """A loss of every element, reduced as it is asked."""
    if reduction in ("none", 0):
        return x
    return mean(b, x) if reduction in ("mean", 1) else b.op("ReduceSum", x, keepdims=0, shape=())


@translation("mse_loss")
def mse_loss(b: Builder, input: Value, target: Value, reduction: Any = "mean", **rest: Any) -> Value:
    apart = b.op("Sub", *b.common(input, target))
    return reduced(b, b.op("Mul", apart, apart), reduction)


@translation("l1_loss")
def l1_loss(b: Builder, input: Value, target: Value, reduction: Any = "mean", **rest: Any) -> Value:
    return reduced(b, b.op("Abs", b.op("Sub", *b.common(input, target))), reduction)


@translation("smooth_l1_loss", "huber_loss")
def smooth_l1_loss(
    b: Builder, input: Value, target: Value, reduction: Any = "mean", beta: Any = 1.0, **rest: Any
) -> Value:
    beta = rest.get("delta", beta)
    apart = b.op("Abs", b.op("Sub", input, target))
    limit, half = b.number(beta, input), b.number(0.5, input)
    near = b.op("Mul", b.op("Mul", apart, apart), half)
    far = b.op("Sub", apart, b.op("Mul", limit, half))
    if b.operator == "huber_loss":
        far = b.op("Mul", far, limit)
    else:
        near = b.op("Div", near, limit)
    return reduced(
        b, b.op("Where", b.op("Less", apart, limit, dtype=dtypes.bool), near, far, like=apart), reduction
    )


@translation("binary_cross_entropy_with_logits")
def bce_with_logits(
    b: Builder,
    input: Value,
    target: Value,
    weight: Any = None,
    pos_weight: Any = None,
    reduction: Any = "mean",
    **rest: Any,
) -> Value:
    one = b.number(1.0, input)
    positive = b.op("Mul", target, b.op("Softplus", b.op("Neg", input)))
    if pos_weight is not None:
        positive = b.op("Mul", positive, pos_weight)
    found = b.op("Add", positive, b.op("Mul", b.op("Sub", one, target, like=input), b.op("Softplus", input)))
    return reduced(b, found if weight is None else b.op("Mul", found, weight), reduction)
