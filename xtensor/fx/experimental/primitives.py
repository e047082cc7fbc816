"""Programs of JAX said by operators: each primitive is one operator on tensors, or a few."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal
from jax.lax import GatherScatterMode

from ...dtypes import FROM_NUMPY
from ...operators.below.aten import packet
from ...operators.below.dispatching import dispatched
from ...tensor import Tensor
from ...xla.x64 import x64

__all__ = ["as_tensor", "evaluated", "filled", "held"]

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
"""By primitive, `rule(equation, *operands)`: tensors, or of numbers that all elements have, NumPy scalars."""
PLACED: set[str] = set()
"""The primitives whose rules take places that are known, as NumPy arrays."""
SMALL = 16
"""How many elements an array may have that is known while a program is read."""
ELEMENTWISE: set[str] = set()
"""The primitives on every element, whose rules take numbers for tensors that are filled with them."""
MOVES: set[str] = set()
"""The primitives that change sizes and places alone, whose rules leave such numbers as they are."""
INNER = frozenset(
    "jit pjit closed_call core_call remat2 checkpoint custom_jvp_call custom_vjp_call custom_lin".split()
)
SAME = (
    "copy copy_p stop_gradient device_put xla_metadata_value reduce_precision optimization_barrier pvary sharding_constraint name"
).split()


def op(name: str, *args: Any, **kwargs: Any) -> Any:
    """The value of PyTorch's operator of that name."""
    return packet(name)(*map(plain, args), **kwargs)


def plain(value: Any) -> Any:
    """NumPy's integers as Python's, also within lists."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    return int(value) if isinstance(value, np.integer) else value


def asked(name: str, overload: str, *args: Any) -> Any:
    """The value of an operator whose function asks nobody below autograd, or does so about another one."""
    return dispatched(packet(name).overload(overload), [], tuple(map(plain, args)), {})


def rule(
    *names: str, elementwise: bool = False, moves: bool = False, placed: bool = False
) -> Callable[[Rule], Rule]:
    """A decorator that puts a rule into the table."""

    def put(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        if elementwise:
            ELEMENTWISE.update(names)
        if moves:
            MOVES.update(names)
        if placed:
            PLACED.update(names)
        return function

    return put


# ---- programs


def evaluated(program: Any, consts: Sequence[Any], values: Sequence[Any], constant: Any) -> list[Any]:
    """The results of a program of JAX for tensors, and numbers as NumPy scalars. constant: makes a tensor of one of its arrays."""
    known: dict[Any, Any] = {}

    def read(variable: Any) -> Any:
        return held(variable.val, constant) if isinstance(variable, Literal) else known[variable]

    for variable, value in zip(program.constvars, consts, strict=True):
        known[variable] = held(value, constant)
    known.update(zip(program.invars, values, strict=True))
    for equation in program.eqns:
        given = [read(v) for v in equation.invars]
        made = result_of(equation, given, constant)
        made = made if isinstance(made, (list, tuple)) else [made]
        for variable, value in zip(equation.outvars, made, strict=True):
            known[variable] = fitted(value, variable.aval)
    return [read(v) for v in program.outvars]


def held(value: Any, constant: Any) -> Any:
    """What a program holds: a number where all elements are one, a small array as it is, else a tensor."""
    if isinstance(value, Tensor):
        return value
    array = np.asarray(value)
    if not array.size:
        return array.dtype.type(0)
    same = array.ndim == 0 or bool((array == array.flat[0]).all())
    return array.flat[0] if same else array if is_small(array) else constant(array)


def result_of(equation: Any, given: list[Any], constant: Any) -> Any:
    """What one equation gives."""
    name, params = equation.primitive.name, equation.params
    if name in INNER:
        inner = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))
        return evaluated(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), given, constant)
    if name in LOOPS:
        return LOOPS[name](equation, given, constant)
    if given and not any(isinstance(value, Tensor) for value in given):
        found = folded(equation, given)
        if found is not None:
            return [held(array, constant) for array in found]
    if name not in RULES:
        raise NotImplementedError(f"make_fx: the primitive {name} within a transform is no operator")
    if name in PLACED:
        return RULES[name](equation, *given, constant)
    given = [constant(v) if isinstance(v, np.ndarray) else v for v in given]
    if name not in ELEMENTWISE | MOVES:
        given = [filled(value, v.aval, constant) for value, v in zip(given, equation.invars, strict=True)]
    return RULES[name](equation, *given)


def folded(equation: Any, given: list[Any]) -> list[Any] | None:
    """The results of a primitive of numbers and small arrays; None where they are large."""
    name, params = equation.primitive.name, equation.params
    if name in ELEMENTWISE and not any(isinstance(value, np.ndarray) for value in given):
        operands: list[Any] = given
    elif all(is_small(v.aval) for v in (*equation.invars, *equation.outvars)):
        operands = [np.broadcast_to(x, v.aval.shape) for x, v in zip(given, equation.invars, strict=True)]
    else:
        return None
    with x64(), jax.ensure_compile_time_eval():
        made: Any = equation.primitive.bind(*operands, **params)
    return list(made) if equation.primitive.multiple_results else [made]


def is_small(aval: Any) -> bool:
    """Whether an array is known while a program is read, if its elements are."""
    return all(isinstance(n, int) for n in aval.shape) and aval.size <= SMALL


def fitted(value: Any, aval: Any) -> Any:
    """A result of the dtype and sizes that the program says."""
    if not isinstance(value, Tensor):
        return value
    if value.dtype is not FROM_NUMPY[aval.dtype]:
        value = value.to(FROM_NUMPY[aval.dtype])
    return value if tuple(value.shape) == tuple(aval.shape) else value.expand(tuple(aval.shape))


def filled(value: Any, aval: Any, constant: Any = None) -> Any:
    """A tensor, for a number one that is filled with it, for an array one that holds it."""
    if isinstance(value, Tensor) or not hasattr(aval, "shape"):
        return value
    if isinstance(value, np.ndarray):
        return constant(value)
    return op("full", list(aval.shape), value.item(), dtype=FROM_NUMPY[aval.dtype])


def scalar(value: Any) -> Any:
    """A tensor as it is, a number as Python's."""
    return value if isinstance(value, Tensor) else value.item()


def single(equation: Any, value: Any) -> Any:
    """A tensor as it is, a number as a tensor without dimensions."""
    if isinstance(value, Tensor):
        return value
    return op("full", [], value.item(), dtype=FROM_NUMPY[value.dtype])


# ---- on every element

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


# ---- sizes and orders


@rule("broadcast_in_dim", moves=True)
def broadcast(equation: Any, x: Any, *sizes: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    shape, dims = equation.params["shape"], equation.params["broadcast_dimensions"]
    first = dims[0] if dims else len(shape)
    for dim in range(first, len(shape)):
        if dim not in dims and dims:
            x = op("unsqueeze", x, dim - first)
    return op("expand", x, list(shape))


@rule("reshape", moves=True)
def reshape(equation: Any, x: Any, *sizes: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    order = equation.params["dimensions"]
    return op("reshape", x if order is None else permuted(x, order), list(equation.params["new_sizes"]))


@rule("squeeze", moves=True)
def squeeze(equation: Any, x: Any) -> Any:
    return op("squeeze", x, list(equation.params["dimensions"])) if isinstance(x, Tensor) else x


@rule("expand_dims", moves=True)
def expand_dims(equation: Any, x: Any) -> Any:
    for dim in sorted(equation.params["dimensions"]) if isinstance(x, Tensor) else ():
        x = op("unsqueeze", x, dim)
    return x


@rule("transpose", moves=True)
def transpose(equation: Any, x: Any) -> Any:
    return op("permute", x, list(equation.params["permutation"])) if isinstance(x, Tensor) else x


@rule("rev", moves=True)
def reverse(equation: Any, x: Any) -> Any:
    return op("flip", x, list(equation.params["dimensions"])) if isinstance(x, Tensor) else x


@rule("concatenate")
def concatenate(equation: Any, *parts: Tensor) -> Tensor:
    return op("cat", list(parts), equation.params["dimension"])


@rule("stack")
def stack(equation: Any, *parts: Tensor) -> Tensor:
    return op("stack", list(parts), equation.params["axis"])


@rule("split")
def split(equation: Any, x: Tensor) -> Any:
    return op("split_with_sizes", x, list(equation.params["sizes"]), equation.params["axis"])


@rule("unstack")
def unstack(equation: Any, x: Tensor) -> Any:
    return list(op("unbind", x, equation.params["axis"]))


@rule("slice", moves=True)
def slice_(equation: Any, x: Any) -> Any:
    params = equation.params
    starts, ends = params["start_indices"], params["limit_indices"]
    steps = params["strides"] or [1] * len(starts)
    for dim, (start, end, step) in enumerate(zip(starts, ends, steps, strict=True)):
        if isinstance(x, Tensor):
            x = cut(x, dim, start, end, step)
    return x


def cut(x: Tensor, dim: int, start: Any, end: Any, step: int = 1) -> Tensor:
    """A part of one dimension."""
    whole = start == 0 and end == x.shape[dim] and step == 1
    return x if whole else op("slice", x, dim, start, end, step)


@rule("pad")
def pad(equation: Any, x: Tensor, value: Tensor) -> Tensor:
    filler = equation.invars[1]
    if not isinstance(filler, Literal):
        return padded_with(equation, x, value)
    return padded(x, equation.params["padding_config"], np.asarray(filler.val).item())


def padded_with(equation: Any, x: Tensor, value: Tensor) -> Tensor:
    """A tensor with elements around it that a tensor holds."""
    config = equation.params["padding_config"]
    inside = padded(op("ones_like", x, dtype=FROM_NUMPY[np.dtype(bool)]), config, False)
    return op("where", inside, padded(x, config, 0), value)


def padded(x: Tensor, config: Sequence[tuple[Any, Any, Any]], value: Any) -> Tensor:
    """A tensor with elements around it and between; with fewer, where a width is negative."""
    for dim, (_, _, between) in enumerate(config):
        if between and x.shape[dim] > 1:
            sizes = list(x.shape)
            sizes[dim] = (sizes[dim] - 1) * (between + 1) + 1
            wide = op("full", sizes, value, dtype=x.dtype)
            x = asked("slice_scatter", "default", wide, x, dim, 0, sizes[dim], between + 1)
    for dim, (low, high, _) in enumerate(config):
        x = cut(x, dim, max(-low, 0), x.shape[dim] - max(-high, 0))
    widths = [max(w, 0) for low, high, _ in reversed(config) for w in (low, high)]
    return op("constant_pad_nd", x, widths, value) if any(widths) else x


@rule("empty2", moves=True)
def empty(equation: Any) -> Any:
    return np.dtype(equation.params["dtype"]).type(0)


@rule("iota", moves=True)
def iota(equation: Any, *sizes: Any) -> Any:
    params = equation.params
    shape, dim = params["shape"], params["dimension"]
    found = op("arange", shape[dim], dtype=FROM_NUMPY[params["dtype"]])
    for _ in range(len(shape) - dim - 1):
        found = op("unsqueeze", found, -1)
    return op("expand", found, list(shape)) if len(shape) > 1 else found


@rule("dim_as_value")
def dim_as_value(equation: Any) -> Any:
    return as_tensor(equation.params["dim"])


# ---- parts at places that are operands


def start_of(start: Any, size: Any, taken: Any) -> Any:
    """Where a part begins, so that it lies within."""
    if isinstance(start, Tensor):
        return clamped(start, size - taken)
    return max(0, min(int(start), size - taken))


def as_tensor(size: Any) -> Tensor:
    """A size as a tensor."""
    return op("add", op("full", [], 0, dtype=FROM_NUMPY[np.dtype(np.int64)]), size)


def clamped(start: Tensor, last: Any) -> Tensor:
    """Places that are within, the last one included."""
    if isinstance(last, int):
        return op("clamp", start, 0, last)
    return op("minimum", op("clamp_min", start, 0), as_tensor(last).to(start.dtype))


def places(start: Any, taken: Any) -> Tensor:
    """The numbers of the elements of a part."""
    return op("add", op("arange", taken), start)


@rule("dynamic_slice", moves=True)
def dynamic_slice(equation: Any, x: Any, *starts: Any) -> Any:
    if not isinstance(x, Tensor):
        return x
    for dim, taken in enumerate(equation.params["slice_sizes"]):
        size = x.shape[dim]
        if taken == size:
            continue
        start = start_of(starts[dim], size, taken)
        if isinstance(start, Tensor):
            x = op("index_select", x, dim, places(start, taken))
        else:
            x = cut(x, dim, start, start + taken)
    return x


@rule("dynamic_update_slice", moves=True)
def dynamic_update_slice(equation: Any, x: Any, update: Any, *starts: Any) -> Any:
    x = filled(x, equation.invars[0].aval)
    update = filled(update, equation.invars[1].aval)
    found = [start_of(s, a, b) for s, a, b in zip(starts, x.shape, update.shape, strict=True)]
    if any(isinstance(s, Tensor) for s in found):
        rank = len(found)
        grid = [
            op("reshape", places(s, n), [n if d == dim else 1 for d in range(rank)])
            for dim, (s, n) in enumerate(zip(found, update.shape, strict=True))
        ]
        return asked("index_put", "default", x, grid, update)
    return put(x, update, found)


def put(x: Tensor, update: Tensor, starts: Sequence[Any]) -> Tensor:
    """A tensor with another one in its place from some elements on."""
    sizes = enumerate(zip(starts, update.shape, strict=True))
    parts = [(d, s, s + n) for d, (s, n) in sizes if n != x.shape[d]]
    bases = [x]
    for dim, start, end in parts:
        bases.append(cut(bases[-1], dim, start, end))
    for base, (dim, start, end) in zip(bases[-2::-1], reversed(parts), strict=True):
        update = asked("slice_scatter", "default", base, update, dim, start, end, 1)
    return update


def linear(
    indices: Tensor, dims: Any, shape: Any, sizes: Any, batching: Any, clip: bool
) -> tuple[Tensor, Any]:
    """The places of parts' first elements among all, and whether the parts lie within; None where they are made to."""
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    lead = list(indices.shape)[:-1]
    where = op("full", lead, 0, dtype=FROM_NUMPY[np.dtype(np.int64)])
    inside = None
    for at, dim in enumerate(dims):
        column = op("select", indices, -1, at).to(where.dtype)
        within = clamped(column, shape[dim] - sizes[dim])
        if not clip:
            hit = op("eq", within, column)
            inside = hit if inside is None else op("logical_and", inside, hit)
        where = op("add", where, op("mul", within, strides[dim]))
    for dim, batch in batching:
        numbers = op("mul", op("arange", lead[batch]), strides[dim])
        where = op("add", where, op("reshape", numbers, [-1] + [1] * (len(lead) - batch - 1)))
    return where, inside


def spread(where: Tensor, inside: Any, shape: Any, sizes: Any, left: Sequence[int]) -> tuple[Tensor, Any]:
    """The places of all elements of parts; the dimensions of the parts come last."""
    lead, rank = list(where.shape), len(left)
    found = op("reshape", where, [*lead, *[1] * rank])
    for at, dim in enumerate(left):
        steps = op("mul", op("arange", sizes[dim]), math.prod(shape[dim + 1 :]))
        found = op("add", found, op("reshape", steps, [-1] + [1] * (rank - at - 1)))
    return found, None if inside is None else op("reshape", inside, [*lead, *[1] * rank])


def ordered(rank: int, offset_dims: Sequence[int], lead: int) -> list[int]:
    """The order that puts the dimensions of parts, which come last, where they belong."""
    batch, part = iter(range(lead)), iter(range(lead, rank))
    return [next(part) if d in offset_dims else next(batch) for d in range(rank)]


def permuted(x: Tensor, order: Sequence[int]) -> Tensor:
    """The dimensions in another order."""
    return x if list(order) == list(range(len(order))) else op("permute", x, list(order))


def is_fill(mode: Any) -> bool:
    return mode is None or GatherScatterMode.from_any(mode) is GatherScatterMode.FILL_OR_DROP


def filler_of(dtype: Any, value: Any) -> Any:
    """What stands for an element that is not there."""
    if value is not None:
        return np.asarray(value).item()
    if dtype.is_floating_point or dtype.is_complex:
        return math.nan
    kind = np.dtype(dtype.numpy)
    if kind.kind == "b":
        return True
    return int(np.iinfo(kind).max if kind.kind == "u" else np.iinfo(kind).min)


def starts_of(indices: Any, shape: Any, dims: Sequence[int], sizes: Any, fill: bool) -> list[int] | None:
    """Where the only part begins that known indices name, so that it lies within; None where that is not so."""
    if isinstance(indices, Tensor) or any(n != 1 for n in indices.shape[:-1]):
        return None
    starts = [0] * len(shape)
    for dim, start in zip(dims, indices.reshape(-1), strict=True):
        starts[dim] = start_of(start, shape[dim], sizes[dim])
        if fill and starts[dim] != start:
            return None
    return starts


@rule("gather", placed=True)
def gather(equation: Any, x: Any, indices: Any, constant: Any) -> Tensor:
    params = equation.params
    x = filled(x, equation.invars[0].aval, constant)
    if not isinstance(indices, Tensor):
        indices = np.broadcast_to(indices, equation.invars[1].aval.shape)
    numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
    fill = is_fill(params["mode"])
    shape, dims, collapsed = list(x.shape), numbers.start_index_map, numbers.collapsed_slice_dims
    batching = list(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    starts = None if batching else starts_of(indices, shape, dims, sizes, fill)
    if starts is not None:
        for dim, start in enumerate(starts):
            x = cut(x, dim, start, start + sizes[dim])
        return op("reshape", x, list(equation.outvars[0].aval.shape))
    indices = filled(indices, equation.invars[1].aval, constant)
    where, inside = linear(indices, dims, shape, sizes, batching, not fill)
    rank = len(equation.outvars[0].aval.shape)
    left = [d for d in range(len(shape)) if d not in {*collapsed, *numbers.operand_batching_dims}]
    order = ordered(rank, numbers.offset_dims, len(where.shape))
    if (
        len(dims) == 1
        and list(collapsed) == list(dims)
        and not batching
        and all(sizes[d] == shape[d] for d in left)
    ):
        dim = dims[0]
        column = clamped(op("select", indices, -1, 0), shape[dim] - 1)
        moved = permuted(x, [dim, *left])
        found = moved[column]
        if inside is not None:
            inside = op("reshape", inside, [*where.shape, *[1] * len(left)])
    else:
        at, inside = spread(where, inside, shape, sizes, left)
        found = op("reshape", x, [-1])[at]
    if inside is not None:
        found = op("where", inside, found, filler_of(x.dtype, params.get("fill_value")))
    return permuted(found, order)


REDUCED = {"mul": "prod", "min": "amin", "max": "amax"}


def scatterer(how: str) -> Rule:
    def run(equation: Any, x: Any, indices: Any, updates: Any, constant: Any) -> Tensor:
        params = equation.params
        x = filled(x, equation.invars[0].aval, constant)
        updates = filled(updates, equation.invars[2].aval, constant)
        if not isinstance(indices, Tensor):
            indices = np.broadcast_to(indices, equation.invars[1].aval.shape)
        numbers, shape = params["dimension_numbers"], list(x.shape)
        left = [
            d
            for d in range(len(shape))
            if d not in {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        ]
        window = list(numbers.update_window_dims)
        sizes = [1] * len(shape)
        for dim, of_update in zip(left, window, strict=True):
            sizes[dim] = updates.shape[of_update]
        batching = list(
            zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
        )
        clip = not is_fill(params["mode"])
        dims = numbers.scatter_dims_to_operand_dims
        starts = None if batching or how else starts_of(indices, shape, dims, sizes, not clip)
        if starts is not None:
            return put(x, op("reshape", updates, sizes), starts)
        indices = filled(indices, equation.invars[1].aval, constant)
        where, inside = linear(indices, dims, shape, sizes, batching, clip)
        at, inside = spread(where, inside, shape, sizes, left)
        count = math.prod(shape)
        flat = op("reshape", x, [-1])
        if inside is not None:  # what lies outside goes behind the last element, which is cut off
            flat = op("constant_pad_nd", flat, [0, 1], 0)
            at = op("where", inside, at, count)
        order = [*[d for d in range(len(updates.shape)) if d not in window], *window]
        rows = op("reshape", permuted(updates, order), [-1])
        at = op("reshape", op("expand", at, [updates.shape[d] for d in order]), [-1])
        if how in REDUCED:
            found = op("scatter_reduce", flat, 0, at, rows, REDUCED[how])
        else:
            found = asked("index_put", "default", flat, [at], rows, how == "add")
        return op("reshape", cut(found, 0, 0, count), shape)

    return run


for name, how in (("", ""), ("-add", "add"), ("_add", "add"), ("-mul", "mul"), ("_mul", "mul"), ("-min", "min"), ("_min", "min"),
                  ("-max", "max"), ("_max", "max")):  # fmt: skip
    rule(f"scatter{name}", placed=True)(scatterer(how))


# ---- folds, scans, orders


def fold(name: str, params: Any, x: Tensor) -> Any:
    axes = list(params["axes"])
    if not axes:
        return x
    if name in ("prod", "all", "any"):
        for axis in sorted(axes, reverse=True):
            x = op(name, x, axis)
        return x
    return op(name, x, axes)


@rule("reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "reduce_and", "reduce_or")
def reduced(equation: Any, x: Tensor) -> Any:
    kind = equation.primitive.name.removeprefix("reduce_")
    if kind in ("and", "or") and x.dtype is not FROM_NUMPY[np.dtype(bool)]:
        raise NotImplementedError(
            f"make_fx: the primitive {equation.primitive.name} of integers is no operator"
        )
    names = {"max": "amax", "min": "amin", "and": "all", "or": "any"}
    return fold(names.get(kind, kind), equation.params, x)


@rule("argmax", "argmin")
def argument(equation: Any, x: Tensor) -> Tensor:
    (axis,) = equation.params["axes"]
    if x.dtype is FROM_NUMPY[np.dtype(bool)]:
        x = x.to(FROM_NUMPY[np.dtype(np.uint8)])
    return op(equation.primitive.name, x, axis)


def scan_of(name: str) -> Rule:
    def run(equation: Any, x: Tensor) -> Any:
        axis, turned = equation.params["axis"], equation.params["reverse"]
        found = op(name, op("flip", x, [axis]) if turned else x, axis)
        found = found if isinstance(found, Tensor) else found[0]
        return op("flip", found, [axis]) if turned else found

    return run


for name in ("cumsum", "cumprod", "cummax", "cummin"):
    rule(name)(scan_of(name))
rule("cumlogsumexp")(scan_of("logcumsumexp"))


@rule("sort")
def sort(equation: Any, *values: Tensor) -> list[Tensor]:
    params = equation.params
    dim, count = params["dimension"], params["num_keys"]
    if len(values) == 1:
        return [op("sort", values[0], dim=dim, stable=True)[0]]
    order: Any = None
    for key in values[:count][::-1]:
        key = key if order is None else op("gather", key, dim, order)
        found = op("sort", key, dim=dim, stable=True)[1]
        order = found if order is None else op("gather", order, dim, found)
    return [op("gather", value, dim, order) for value in values]


@rule("top_k")
def top(equation: Any, x: Tensor) -> Any:
    return list(op("topk", x, equation.params["k"], equation.params.get("axis", -1)))


# ---- products


@rule("dot_general")
def dot_general(equation: Any, x: Tensor, y: Tensor) -> Tensor:
    (left, right), (batch_left, batch_right) = equation.params["dimension_numbers"]
    aval = equation.outvars[0].aval
    dtype = FROM_NUMPY[aval.dtype]
    x, y = x.to(dtype), y.to(dtype)
    own = [d for d in range(x.dim()) if d not in left and d not in batch_left]
    others = [d for d in range(y.dim()) if d not in right and d not in batch_right]
    sizes = [x.shape[d] for d in batch_left]
    inner = math.prod([x.shape[d] for d in left])
    count, columns = math.prod([x.shape[d] for d in own]), math.prod([y.shape[d] for d in others])

    def shaped(t: Tensor, order: list[int], shape: list[Any]) -> Tensor:
        t = permuted(t, order)
        return t if list(t.shape) == shape else op("reshape", t, shape)

    if batch_left:
        batch = math.prod(sizes)
        one = shaped(x, [*batch_left, *own, *left], [batch, count, inner])
        two = shaped(y, [*batch_right, *right, *others], [batch, inner, columns])
        found = op("bmm", one, two)
    else:
        one = shaped(x, [*own, *left], [count, inner])
        two = shaped(y, [*right, *others], [inner, columns])
        found = op("mm", one, two)
    shape = list(aval.shape)
    return found if list(found.shape) == shape else op("reshape", found, shape)


@rule("conv_general_dilated")
def convolution(equation: Any, x: Tensor, weight: Tensor) -> Tensor:
    params = equation.params
    numbers, groups = params["dimension_numbers"], params["feature_group_count"]
    dtype = FROM_NUMPY[equation.outvars[0].aval.dtype]
    x, weight = permuted(x.to(dtype), numbers.lhs_spec), permuted(weight.to(dtype), numbers.rhs_spec)
    apart = params["batch_group_count"]
    if apart != 1:  # groups of samples are groups of features of fewer samples
        n, c, *rest = x.shape
        x = op("reshape", x, [apart, n // apart, c, *rest])
        x = op("reshape", op("transpose", x, 0, 1), [n // apart, apart * c, *rest])
        groups = apart
    edges = params["padding"]
    config = [(0, 0, 0), (0, 0, 0), *[(low, high, d - 1) for (low, high), d in zip(edges, params["lhs_dilation"], strict=True)]]  # fmt: skip
    plain = all(low == high >= 0 and not between for low, high, between in config)
    if not plain:
        x = padded(x, config, 0)
    padding = [low if plain else 0 for low, _ in edges]
    steps, dilation = list(params["window_strides"]), list(params["rhs_dilation"])
    found = op("convolution", x, weight, None, steps, padding, dilation, False, [0] * len(steps), groups)
    spec = numbers.out_spec
    return permuted(found, [spec.index(d) for d in range(len(spec))])


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def window(equation: Any, x: Tensor) -> Tensor:
    params, kind = equation.params, equation.primitive.name.removeprefix("reduce_window_")
    first: Any = 0
    if kind != "sum":
        dtype = np.dtype(x.dtype.numpy)
        lowest, highest = (-math.inf, math.inf) if x.dtype.is_floating_point else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))  # fmt: skip
        first = lowest if kind == "max" else highest
    edges = zip(params["padding"], params["base_dilation"], strict=True)
    x = padded(x, [(low, high, d - 1) for (low, high), d in edges], first)
    fold = {"sum": "add", "max": "maximum", "min": "minimum"}[kind]
    widths = zip(
        params["window_dimensions"], params["window_strides"], params["window_dilation"], strict=True
    )
    for dim, (length, step, apart) in enumerate(widths):  # the elements of a window are slices
        if length == 1 and step == 1:
            continue
        count = equation.outvars[0].aval.shape[dim]
        parts = [cut(x, dim, at * apart, at * apart + (count - 1) * step + 1, step) for at in range(length)]
        x = parts[0]
        for each in parts[1:]:
            x = op(fold, x, each)
    return x


@rule("fft")
def fourier(equation: Any, x: Tensor) -> Tensor:
    params = equation.params
    name = ("fftn", "ifftn", "rfftn", "irfftn")[int(params["fft_type"])]
    lengths = list(params["fft_lengths"])
    return op(f"fft_{name}", x, lengths, list(range(-len(lengths), 0)))


@rule("cholesky")
def cholesky(equation: Any, x: Tensor) -> Tensor:
    return op("linalg_cholesky", x)


@rule("triangular_solve")
def triangular_solve(equation: Any, a: Tensor, b: Tensor) -> Tensor:
    params = equation.params
    upper = not params["lower"]
    if params["transpose_a"]:
        a, upper = op("transpose", op("conj_physical", a) if params["conjugate_a"] else a, -2, -1), not upper
    return op("linalg_solve_triangular", a, b, upper=upper, left=params["left_side"], unitriangular=params["unit_diagonal"])  # fmt: skip


@rule("lu")
def lu(equation: Any, x: Tensor) -> Any:
    found, pivots = op("linalg_lu_factor_ex", x)[:2]
    return [found, op("sub", pivots, 1), order_of_rows(found, pivots)]


def order_of_rows(factors: Tensor, pivots: Tensor) -> Tensor:
    """Which row of a matrix is in each place, after the exchanges that its factors tell of."""
    return op("argmax", op("lu_unpack", factors, pivots, False, True)[0], -2)


@rule("lu_pivots_to_permutation")
def permutation(equation: Any, pivots: Tensor) -> Tensor:
    size = equation.params["permutation_size"]
    factors = op("full", [*pivots.shape[:-1], size, pivots.shape[-1]], 0.0)
    return order_of_rows(factors, op("add", pivots, 1))


@rule("qr")
def qr(equation: Any, x: Tensor) -> Any:
    return list(op("linalg_qr", x, "complete" if equation.params["full_matrices"] else "reduced"))


@rule("eigh")
def eigh(equation: Any, x: Tensor) -> Any:
    values, vectors = op("linalg_eigh", x, "L" if equation.params["lower"] else "U")
    return [vectors, values]


@rule("svd")
def svd(equation: Any, x: Tensor) -> Any:
    if not equation.params["compute_uv"]:
        return [op("linalg_svdvals", x)]
    u, s, vh = op("linalg_svd", x, full_matrices=equation.params["full_matrices"])
    return [s, u, vh]


# ---- programs within programs

LOOPS: dict[str, Callable[..., Any]] = {}


def looped(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        LOOPS[name] = function
        return function

    return put


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
    consts, carries, length = params["num_consts"], params["num_carry"], params["length"]
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
