"""Primitives on every element, folds of dimensions, and programs within programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...xla.jax_internals import scan_counts
from .building import Builder, Untranslated, Value
from .kernels import Pair, Primitives, Result, primitive, real_type

__all__ = ["index_of", "not_nan"]


def plain(kind: str) -> Any:
    """A primitive that is one node, whose results are as large as it says."""

    def run(p: Primitives, params: Any, results: Sequence[Result], *values: Value) -> Value:
        return p.builder.op(kind, *values, dtype=results[0].dtype, shape=results[0].shape)

    return run


ONE_NODE = {
    "abs": "Abs", "neg": "Neg", "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "floor": "Floor", "ceil": "Ceil", "sin": "Sin", "cos": "Cos",
    "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "asin": "Asin", "acos": "Acos", "atan": "Atan", "asinh": "Asinh",
    "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf", "logistic": "Sigmoid", "mul": "Mul", "pow": "Pow",
}  # fmt: skip
for name, kind in ONE_NODE.items():
    primitive(name)(plain(kind))
COMPARED = {"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"}
SAME = (
    "copy", "copy_p", "stop_gradient", "device_put", "xla_metadata_value", "reduce_precision", "optimization_barrier", "pvary",
    "sharding_constraint", "name",
)  # fmt: skip


@primitive(*SAME, pairs=True)
def same(p: Primitives, params: Any, results: Any, *values: Any) -> Any:
    return list(values)


@primitive("add", "add_any", moves=True)
def add(p: Primitives, params: Any, results: Any, one: Any, two: Any) -> Value:
    return p.builder.op("Add", one, two, shape=results[0].shape)


primitive("sub", moves=True)(plain("Sub"))


def divisor(b: Builder, two: Value) -> tuple[Value, Value | None]:
    """A divisor that runtimes take, and where it is zero; None where it surely is not."""
    if two.dtype.is_floating_point or (two.name in b.constants and b.constants[two.name].all()):
        return two, None
    zero = b.op("Equal", two, b.zero_like(two), dtype=dtypes.bool)
    return b.op("Where", zero, b.constant(1, two.dtype), two, like=two), zero


@primitive("div")
def div(p: Primitives, params: Any, results: Any, one: Value, two: Value) -> Value:
    b = p.builder
    two, zero = divisor(b, two)
    found = b.op("Div", one, two, shape=results[0].shape)
    if zero is None:
        return found
    return b.op("Where", zero, b.cast(b.constant(-1), found.dtype), found, like=found)


@primitive("rem")
def rem(p: Primitives, params: Any, results: Any, one: Value, two: Value) -> Value:
    b = p.builder
    two, zero = divisor(b, two)
    found = b.op("Mod", one, two, fmod=1, shape=results[0].shape)
    return found if zero is None else b.op("Where", zero, one, found, like=found)


def comparison(name: str) -> Any:
    def run(p: Primitives, params: Any, results: Any, one: Any, two: Any) -> Value:
        b, shape = p.builder, results[0].shape
        if isinstance(one, Pair):
            parts = [run(p, params, results, x, y) for x, y in zip(one, two, strict=True)]
            return b.op("Or" if name == "ne" else "And", *parts)
        if one.dtype is dtypes.bool and name not in ("eq", "ne"):
            one, two = b.cast(one, dtypes.int32), b.cast(two, dtypes.int32)
        found = b.op(COMPARED.get(name[:2], "Equal"), one, two, dtype=dtypes.bool, shape=shape)
        if name == "ne":
            return b.op("Not", found)
        if name.endswith("_to") and one.dtype.is_floating_point:
            # In this order what is no number comes last.
            last = b.op("IsNaN", two, dtype=dtypes.bool)
            if name == "lt_to":
                last = b.op("And", last, not_nan(b, one))
            return b.op("Or", found, last, shape=shape)
        return found

    return run


for name in ("eq", "ne", "lt", "le", "gt", "ge", "le_to", "lt_to"):
    primitive(name, pairs=name in ("eq", "ne"))(comparison(name))


def not_nan(b: Builder, x: Value) -> Value:
    """Where there are numbers."""
    return b.op("Not", b.op("IsNaN", x, dtype=dtypes.bool))


def larger(kind: str) -> Any:
    def run(p: Primitives, params: Any, results: Any, one: Value, two: Value) -> Value:
        b, shape = p.builder, results[0].shape
        if one.dtype is dtypes.bool:
            return b.op("Or" if kind == "Max" else "And", one, two, shape=shape)
        return b.op(kind, one, two, shape=shape)

    return run


primitive("max")(larger("Max"))
primitive("min")(larger("Min"))


def bitwise(logical: str, bits: str) -> Any:
    def run(p: Primitives, params: Any, results: Any, *values: Value) -> Value:
        return p.builder.op(
            logical if values[0].dtype is dtypes.bool else bits, *values, shape=results[0].shape
        )

    return run


for name, logical in (("and", "And"), ("or", "Or"), ("xor", "Xor"), ("not", "Not")):
    primitive(name)(bitwise(logical, f"Bitwise{logical}"))


def shifted(name: str) -> Any:
    def run(p: Primitives, params: Any, results: Any, one: Value, two: Value) -> Value:
        b, dtype = p.builder, one.dtype
        bits = dtype.itemsize * 8
        unsigned = {8: dtypes.uint8, 16: dtypes.uint16, 32: dtypes.uint32, 64: dtypes.uint64}[bits]
        signed = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}[bits]
        amount = b.cast(two, unsigned)
        outside = b.op("GreaterOrEqual", amount, b.constant(bits, unsigned), dtype=dtypes.bool)
        within = b.op("Min", amount, b.constant(bits - 1, unsigned))
        left = "LEFT" if name == "shift_left" else "RIGHT"
        source = b.cast(one, unsigned)
        moved = b.op("BitShift", source, within, direction=left, shape=results[0].shape)
        if name == "shift_right_arithmetic":
            # Of a negative number ones come in: all bits turned round before and after.
            turned = b.op(
                "BitShift", b.op("BitwiseNot", source), within, direction=left, shape=results[0].shape
            )
            below = b.op("Less", b.cast(one, signed), b.constant(0, signed), dtype=dtypes.bool)
            found = b.op("Where", below, b.op("BitwiseNot", turned), moved, like=moved)
            return b.cast(found, dtype)
        return b.cast(b.op("Where", outside, b.constant(0, unsigned), moved, like=moved), dtype)

    return run


for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
    primitive(name)(shifted(name))


@primitive("sign")
def sign(p: Primitives, params: Any, results: Any, x: Value) -> Value:
    b = p.builder
    found = b.op("Sign", x)
    if not x.dtype.is_floating_point:
        return found
    return b.op("Where", b.op("IsNaN", x, dtype=dtypes.bool), x, found, like=x)


@primitive("rsqrt")
def rsqrt(p: Primitives, params: Any, results: Any, x: Value) -> Value:
    return p.builder.op("Reciprocal", p.builder.op("Sqrt", x))


@primitive("square")
def square(p: Primitives, params: Any, results: Any, x: Value) -> Value:
    return p.builder.op("Mul", x, x)


@primitive("integer_pow")
def integer_power(p: Primitives, params: Any, results: Any, x: Value) -> Value:
    return p.builder.op("Pow", x, p.builder.constant(params["y"], x.dtype))


@primitive("exp2")
def exp2(p: Primitives, params: Any, results: Any, x: Value) -> Value:
    return p.builder.op("Pow", p.builder.constant(2, x.dtype), x, like=x)


@primitive("round")
def rounded(p: Primitives, params: Any, results: Any, x: Value) -> Value:
    b = p.builder
    if int(params["rounding_method"]) == 1:
        return b.op("Round", x)
    away = b.op("Floor", b.op("Add", b.op("Abs", x), b.constant(0.5, x.dtype)))
    return b.op("Mul", b.op("Sign", x), away)


@primitive("is_finite", pairs=True)
def is_finite(p: Primitives, params: Any, results: Any, x: Any) -> Value:
    b = p.builder
    if isinstance(x, Pair):
        return b.op("And", *[is_finite(p, params, results, part) for part in x])
    odd = b.op("Or", b.op("IsNaN", x, dtype=dtypes.bool), b.op("IsInf", x, dtype=dtypes.bool))
    return b.op("Not", odd)


@primitive("clamp")
def clamp(p: Primitives, params: Any, results: Any, low: Value, x: Value, high: Value) -> Value:
    b = p.builder
    return b.op("Min", b.op("Max", x, low, shape=x.shape), high, shape=x.shape)


def choice(b: Builder, which: Value, cases: Sequence[Value]) -> Value:
    if which.dtype is dtypes.bool:
        return b.op("Where", which, cases[1], cases[0], like=cases[1])
    found = cases[-1]
    for at in range(len(cases) - 2, -1, -1):
        hit = b.op("Equal", which, b.constant(at, which.dtype), dtype=dtypes.bool)
        found = b.op("Where", hit, cases[at], found, like=found)
    return found


@primitive("select_n", moves=True)
def select(p: Primitives, params: Any, results: Any, which: Value, *cases: Value) -> Value:
    return choice(p.builder, which, cases)


@primitive("convert_element_type", pairs=True)
def convert(p: Primitives, params: Any, results: Any, x: Any) -> Any:
    b, dtype = p.builder, results[0].dtype
    if not isinstance(x, (Value, Pair)):
        return x
    if not dtype.is_complex:
        if isinstance(x, Pair) and dtype is dtypes.bool:
            return b.op("Or", *[b.cast(part, dtypes.bool) for part in x])
        return b.cast(x.real if isinstance(x, Pair) else x, dtype)
    kind = real_type(dtype)
    if isinstance(x, Pair):
        return Pair(*[b.cast(part, kind) for part in x])
    real = b.cast(x, kind)
    return Pair(real, b.expand(b.constant(0, kind), real.shape))


primitive("real", pairs=True)(lambda p, params, results, x: x.real)
primitive("imag", pairs=True)(lambda p, params, results, x: x.imag)


@primitive("complex", pairs=True)
def complex_of(p: Primitives, params: Any, results: Any, real: Value, imag: Value) -> Pair:
    return Pair(real, imag)


@primitive("conj", pairs=True)
def conj(p: Primitives, params: Any, results: Any, x: Any) -> Pair:
    b = p.builder
    if isinstance(x, Value):
        return Pair(x, b.expand(b.constant(0, x.dtype), x.shape))
    return Pair(x.real, b.op("Neg", x.imag))


# ---- folds


def of_nothing(kind: str, dtype: Any) -> Any:
    """What a fold of no elements gives."""
    if kind in ("ReduceSum", "ReduceProd"):
        return int(kind == "ReduceProd")
    lowest = kind == "ReduceMax"
    if dtype is dtypes.bool:
        return not lowest
    if dtype.is_floating_point:
        return -np.inf if lowest else np.inf
    limits = np.iinfo(dtype.numpy)
    return limits.min if lowest else limits.max


def folded(kind: str) -> Any:
    def run(p: Primitives, params: Any, results: Any, x: Value) -> Value:
        b, axes, shape = p.builder, list(params["axes"]), results[0].shape
        if not axes:
            return x
        if any(x.shape[axis] == 0 for axis in axes):
            return b.expand(b.constant(of_nothing(kind, x.dtype), x.dtype), shape)
        if x.dtype is dtypes.bool:
            found = b.op(kind, b.cast(x, dtypes.int32), b.constant(axes), keepdims=0, shape=shape)
            return b.cast(found, dtypes.bool)
        found = b.op(kind, x, b.constant(axes), keepdims=0, shape=shape)
        if kind not in ("ReduceMax", "ReduceMin") or not x.dtype.is_floating_point:
            return found
        return with_nan(b, x, found, axes, 0)

    return run


def with_nan(b: Builder, x: Value, found: Value, axes: Sequence[int], keepdims: int) -> Value:
    """An extreme value, which is no number where one of those is none."""
    odd = b.cast(b.op("IsNaN", x, dtype=dtypes.bool), dtypes.int32)
    some = b.cast(
        b.op("ReduceMax", odd, b.constant(list(axes)), keepdims=keepdims, shape=found.shape), dtypes.bool
    )
    return b.op("Where", some, b.constant(np.nan, x.dtype), found, like=found)


FOLDS = {
    "sum": "ReduceSum",
    "max": "ReduceMax",
    "min": "ReduceMin",
    "prod": "ReduceProd",
    "or": "ReduceMax",
    "and": "ReduceMin",
}
for name, kind in FOLDS.items():
    primitive(f"reduce_{name}", moves=name == "sum")(folded(kind))


def index_of(b: Builder, kind: str, x: Value, axis: int, keepdims: int, shape: Any) -> Value:
    """Where an extreme value stands, the first of several; what is no number is more extreme than all."""
    wish: dict[str, Any] = dict(axis=axis, keepdims=keepdims, dtype=dtypes.int64, shape=shape)
    found = b.op(kind, x, **wish)
    if not x.dtype.is_floating_point:
        return found
    odd = b.cast(b.op("IsNaN", x, dtype=dtypes.bool), dtypes.int32)
    some = b.op("ReduceMax", odd, b.constant([axis]), keepdims=keepdims, shape=shape)
    return b.op("Where", b.cast(some, dtypes.bool), b.op("ArgMax", odd, **wish), found, like=found)


def argument(kind: str) -> Any:
    def run(p: Primitives, params: Any, results: Any, x: Value) -> Value:
        (axis,) = params["axes"]
        return index_of(p.builder, kind, x, axis, 0, results[0].shape)

    return run


primitive("argmax")(argument("ArgMax"))
primitive("argmin")(argument("ArgMin"))


# ---- programs within programs


@primitive("platform_index")
def platform_index(p: Primitives, params: Any, results: Any, *values: Any) -> int:
    """The branch for processors, or the one for all others."""
    platforms = params["platforms"]
    return next(i for i, names in enumerate(platforms) if names is None or "cpu" in names)


def flat(values: Sequence[Any]) -> list[Value]:
    """Values with the parts of pairs, one after the other."""
    return [part for v in values for part in (v if isinstance(v, Pair) else (v,))]


def unflat(values: Sequence[Value], like: Sequence[bool]) -> list[Any]:
    """The values that were made flat; `like` says which are pairs."""
    rest = iter(values)
    return [Pair(next(rest), next(rest)) if pair else next(rest) for pair in like]


def fresh(b: Builder, values: Sequence[Value], wish: str) -> list[Value]:
    """Names for what a body is given."""
    return [v._replace(name=b.name(wish)) for v in values]


@primitive("cond", pairs=True)
def cond(p: Primitives, params: Any, results: Any, which: Any, *operands: Any) -> Any:
    b, branches = p.builder, params["branches"]
    if isinstance(which, int):
        return p.run(branches[which].jaxpr, branches[which].consts, operands)
    pairs = [r.dtype.is_complex for r in results]

    def chosen(first: int) -> list[Value]:
        def branch(at: int) -> list[Value]:
            return flat(p.run(branches[at].jaxpr, branches[at].consts, operands))

        if first == len(branches) - 1:
            return branch(first)
        last = first == len(branches) - 2
        hit = b.op("LessOrEqual", which, b.constant(first, which.dtype), dtype=dtypes.bool)
        # The last branch stands for all that are beyond it.
        then = p.body([], lambda: branch(first))
        other = p.body([], lambda: branch(first + 1) if last else chosen(first + 1))
        made = b.ops("If", hit, count=len(then.outputs), then_branch=then, else_branch=other)
        return [m._replace(dtype=v.dtype, shape=v.shape) for m, v in zip(made, then.outputs, strict=True)]

    return unflat(chosen(0), pairs)


def some(b: Builder, going: Value) -> Value:
    """Whether any of a batch goes on."""
    if not going.rank:
        return going
    found = b.op(
        "ReduceMax", b.cast(going, dtypes.int32), b.constant(list(range(going.rank))), keepdims=0, shape=()
    )
    return b.cast(found, dtypes.bool)


@primitive("while", pairs=True)
def repeated(p: Primitives, params: Any, results: Any, *values: Any) -> Any:
    b = p.builder
    counts = params["cond_nconsts"], params["body_nconsts"]
    of_test, of_body = values[: counts[0]], values[counts[0] : sum(counts)]
    state = values[sum(counts) :]
    pairs = [isinstance(v, Pair) for v in state]
    start = flat(state)

    def test(carried: Sequence[Any]) -> Value:
        inner = params["cond_jaxpr"]
        return p.run(inner.jaxpr, inner.consts, [*of_test, *carried])[0]

    inside = fresh(b, start, "carried")
    number, going = Value(b.name("iteration"), dtypes.int64, ()), Value(b.name("going"), dtypes.bool, ())

    def step() -> list[Value]:
        inner, before = params["body_jaxpr"], unflat(inside, pairs)
        made = flat(p.run(inner.jaxpr, inner.consts, [*of_body, *before]))
        going = test(before)
        if going.rank:  # of a batch, those that are done stay as they are
            made = [
                b.op(
                    "Where",
                    b.reshape(going, [*going.shape, *[1] * (new.rank - going.rank)]),
                    new,
                    old,
                    like=new,
                )
                for new, old in zip(made, inside, strict=True)
            ]
        return [some(b, test(unflat(made, pairs))), *made]

    body = p.body([number, going, *inside], step)
    made = b.ops("Loop", None, some(b, test(state)), *start, count=len(start), body=body)
    return unflat([m._replace(dtype=v.dtype, shape=v.shape) for m, v in zip(made, start, strict=True)], pairs)


@primitive("scan", pairs=True)
def scanned(p: Primitives, params: Any, results: Any, *values: Any) -> Any:
    b = p.builder
    (consts, carries), length = scan_counts(params), params["length"]
    if not isinstance(length, int):
        raise Untranslated("a loop of open length")
    fixed, state, rows = values[:consts], values[consts : consts + carries], values[consts + carries :]
    pairs = [isinstance(v, Pair) for v in state]
    start = flat(state)
    inside = fresh(b, start, "carried")
    number, going = Value(b.name("iteration"), dtypes.int64, ()), Value(b.name("going"), dtypes.bool, ())
    inner = params["jaxpr"]
    kinds = [r.dtype.is_complex for r in results]

    def row(value: Any, at: Value) -> Any:
        if isinstance(value, Pair):
            return Pair(*[row(part, at) for part in value])
        return b.op("Gather", value, at, axis=0, shape=value.shape[1:])

    def step() -> list[Value]:
        at = b.op("Sub", b.constant(length - 1), number) if params["reverse"] else number
        made = p.run(inner.jaxpr, inner.consts, [*fixed, *unflat(inside, pairs), *[row(v, at) for v in rows]])
        return [b.op("Identity", going), *flat(made)]

    body = p.body([number, going, *inside], step)
    made = b.ops("Loop", b.constant(length), b.constant(True), *start, count=len(body.outputs) - 1, body=body)
    for at, value in enumerate(body.outputs[1:]):
        shape = value.shape if at < len(start) else (length, *value.shape)
        made[at] = made[at]._replace(dtype=value.dtype, shape=shape)
        if at >= len(start) and params["reverse"]:
            ends = b.constant([-1]), b.constant([-(2**63)])
            made[at] = b.op("Slice", made[at], *ends, b.constant([0]), b.constant([-1]))
    return unflat(made, kinds)
