"""Tensors that follow a rule: `arange`, `linspace`, `eye`, index pairs, grids; and complex numbers from their parts."""

from __future__ import annotations

import builtins
import itertools
import math
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ... import checks, devices, dtypes
from ...operators.attach import named
from ...operators.declare import pointwise
from ...operators.functions.overloads import of_tensors, overloads
from ...operators.options import (
    check_layout,
    finish,
    into_out,
    number_array,
    pick_device,
    pick_dtype,
    placed,
    python_number,
)
from ...operators.schema import Array
from ...operators.write import write_out
from ...storage import MetaArray
from ...tensor import Tensor, wrap
from ...xla.cache import bounded
from ...xla.memory import check_sizes
from ...xla.number_arrays import size_as
from ...xla.symbolic import as_size, at_least, is_open, is_size
from ...xla.x64 import call, jit

__all__ = [
    "arange",
    "complex",
    "eye",
    "linspace",
    "logspace",
    "meshgrid",
    "polar",
    "range",
    "tril_indices",
    "triu_indices",
    "vander",
]

# Up to this many elements values are made on the host, and equal ones share an array; beyond, on the device.
_SHARED = 4096
_HOST = 1 << 15


# ---- steps ---------------------------------------------------------------------------------------------------------


def arithmetic_values(xp: Any, index: Any, start: Any, step: Any, dtype: dtypes.dtype) -> Any:
    """`start + index * step` in 64 bits, converted to `dtype`; `xp` is numpy or jax.numpy."""
    if dtype.is_integral:
        return (xp.asarray(start, np.int64) + index * xp.asarray(step, np.int64)).astype(dtype.numpy)
    wide = np.float32 if dtype.itemsize < 4 else np.float64
    values = xp.asarray(start, wide) + index.astype(wide) * xp.asarray(step, wide)
    return values.astype(dtype.numpy)


@bounded(512)
def shared_steps(start: Any, step: Any, count: int, dtype: dtypes.dtype, place: devices.device) -> Any:
    return devices.put(arithmetic_values(np, np.arange(count), start, step, dtype), place)


@bounded(256)
def steps_program(count: int, dtype: dtypes.dtype, place: devices.device) -> Any:
    def steps(start: Any, step: Any) -> Any:
        return arithmetic_values(jnp, jnp.arange(count, dtype=np.int64), start, step, dtype)

    return jit(steps, out_shardings=devices.sharding_of(place))


def steps_tensor(start: Any, step: Any, count: int, dtype: dtypes.dtype, place: devices.device) -> Tensor:
    if place.type == "meta":
        return wrap(MetaArray((count,), dtype.numpy))
    if count <= _SHARED:
        # -0.0 and 0.0 are equal keys, but not equal values.
        if start == 0 and isinstance(start, float) and math.copysign(1, start) < 0:
            return placed(arithmetic_values(np, np.arange(count), start, step, dtype), place)
        return wrap(shared_steps(start, step, count, dtype, place), shared=True)
    if count <= _HOST:
        return placed(arithmetic_values(np, np.arange(count), start, step, dtype), place)
    return wrap(call(steps_program(count, dtype, place), start, step))


def deliver(function: str, out: Tensor | None, made: Tensor, requires_grad: Any) -> Tensor:
    """A result, or `out` with it."""
    if out is None:
        return finish(function, made, requires_grad)
    # A sequence keeps the shape of a tensor that has as many elements.
    fits = made.dim() == 1 and out.numel() == made.numel()
    write_out(function, out, made.view(out.shape) if fits else made, [])
    return finish(function, out, requires_grad)


ARANGE_OPTIONS = (
    "xtensor.dtype dtype = None, xtensor.layout layout = None, xtensor.device device = None, "
    "bool pin_memory = False, bool requires_grad = False"
)
ARANGE_SIGNATURES = (
    f"Number end, *, Tensor out = None, {ARANGE_OPTIONS}",
    f"Number start, Number end, *, {ARANGE_OPTIONS}",
    f"Number start, Number end, Number step = 1, *, Tensor out = None, {ARANGE_OPTIONS}",
)


WHOLE = frozenset((int, type(None)))
INT64 = 2**63


@overloads(
    "Number end, *, Tensor out = None, {options}",
    "Number start, Number end, *, {options}",
    "Number start, Number end, Number step = 1, *, Tensor out = None, {options}",
)
def arange(
    *args: Any,
    start: Any = None,
    end: Any = None,
    step: Any = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The numbers from `start` (0) up to but without `end`, `step` (1) apart.

    `arange(end)`, `arange(start, end)` or `arange(start, end, step)`; int64 if all three are integers, else the
    default float.

    Shape: result `(n)` with `n = ceil((end - start) / step)`.

    Raises: RuntimeError where `step` is 0 or leads away from `end`.

    >>> xtensor.arange(4), xtensor.arange(1, 2, 0.25)
    (tensor([0, 1, 2, 3]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    if len(args) > 3:
        raise checks.combination_error("arange", args, {}, ARANGE_SIGNATURES)
    if len(args) == 1 and start is None and end is None:
        end = args[0]
    else:
        given: dict[str, Any] = dict(zip(("start", "end", "step"), args, strict=False))
        start, end, step = (given.get(n, v) for n, v in (("start", start), ("end", end), ("step", step)))
    if end is None:
        if start is not None or args:
            raise checks.missing_error("arange", ["end"])
        raise checks.combination_error("arange", args, {}, ARANGE_SIGNATURES)
    whole = type(end) is int and {type(start), type(step)} <= WHOLE and -INT64 <= end < INT64
    if not whole and any(map(is_open, (start, end, step))):
        made = open_steps(start or 0, end, step or 1, pick_dtype("arange", dtype, dtypes.int64))
        return deliver("arange", out, made, requires_grad)
    low, high, by = 0 if start is None else start, end, 1 if step is None else step
    if not whole:
        high = python_number("arange", "end", 1 if start is None else 2, high)
        low = 0 if start is None else python_number("arange", "start", 1, low)
        by = 1 if step is None else python_number("arange", "step", 3, by)
    check_layout("arange", layout)
    dtype, device = into_out("arange", out, dtype, device)
    integral = whole or all(isinstance(v, int) for v in (low, high, by))
    chosen = pick_dtype("arange", dtype, dtypes.int64 if integral else None)
    place = pick_device("arange", device)
    if whole and chosen is dtypes.int64 and by > 0 and high >= low:
        count = -((low - high) // by)
    else:
        count = check_steps("arange", low, high, by, chosen)
    if chosen.is_integral:
        low, by = int(low), int(by)
    return deliver("arange", out, steps_tensor(low, by, count, chosen, place), requires_grad)


def open_steps(low: Any, high: Any, by: Any, dtype: dtypes.dtype) -> Tensor:
    """Integers from `low` on, where an open size is among the bounds."""
    count = at_least((high - low + by - 1) // by, 0)

    def steps() -> Any:
        rising = jax.lax.iota(np.int64, count)
        return (rising * size_as(by, np.int64) + size_as(low, np.int64)).astype(dtype.numpy)

    return wrap(call(steps))


def check_steps(
    function: str, low: Any, high: Any, by: Any, dtype: dtypes.dtype, inclusive: bool = False
) -> int:
    """How many steps there are, or the error that PyTorch gives."""
    if any(isinstance(v, builtins.complex) for v in (low, high, by)):
        raise RuntimeError("value cannot be converted to type double without overflow")
    if dtype.is_complex or dtype is dtypes.bool:
        raise checks.not_implemented_for(f"{function}_cpu", dtype)
    exact = dtype is dtypes.int64
    a, b, s = (int(v) if exact and math.isfinite(v) else v for v in (low, high, by))
    if by == 0 or (dtype.is_integral and int(by) == 0):
        raise (
            ValueError("step must be nonzero") if exact and by != 0 else RuntimeError("step must be nonzero")
        )
    if not (math.isfinite(a) and math.isfinite(b)):
        raise RuntimeError(f"unsupported range: {shown(low)} -> {shown(high)}")
    if (s > 0 and b < a) or (s < 0 and b > a):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    if exact and any(not -INT64 <= v < INT64 for v in (a, b, s)):
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    if inclusive:
        return math.floor((float(b) - float(a)) / float(s)) + 1
    if exact:
        return -((a - b) // s) if s > 0 else -((b - a) // -s)
    return math.ceil((float(b) - float(a)) / float(s))


def shown(value: Any) -> str:
    return f"{float(value):g}"


def range(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """The numbers from `start` up to and with `end`; deprecated in favour of `arange`."""
    if end is None:
        raise checks.missing_error("range", ["end"])
    checks.warn(
        "xtensor.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use xtensor.arange, which produces values in [start, end).",
        UserWarning,
    )
    low, high = python_number("range", "start", 1, start), python_number("range", "end", 2, end)
    by = python_number("range", "step", 3, step)
    dtype, device = into_out("range", out, dtype, device)
    chosen, place = pick_dtype("range", dtype), pick_device("range", device)
    count = check_steps("range", low, high, by, chosen, inclusive=True)
    if chosen.is_integral:
        low, by = int(low), int(by)
    return deliver("range", out, steps_tensor(low, by, count, chosen, place), requires_grad)


# ---- spaces --------------------------------------------------------------------------------------------------------


def even_step(start: Any, end: Any, steps: int, dtype: dtypes.dtype) -> Any:
    """How far `steps` evenly spaced values are from each other, in the type in which they are found; a number of NumPy's.

    XLA divides by a constant as it multiplies by its reciprocal, and the whole numbers that are cut off here would show it.
    """
    if dtype.is_integral:
        kind: Any = np.float64
    else:
        kind = np.float32 if dtype.itemsize < 4 else dtype.numpy
    return (np.asarray(end).astype(kind) - np.asarray(start).astype(kind)) / np.dtype(kind).type(
        max(steps - 1, 1)
    )


def even_values(xp: Any, index: Any, start: Any, end: Any, by: Any, steps: int) -> Any:
    """`steps` evenly spaced values, measured from the nearer end."""
    kind = by.dtype
    low, high, index = xp.asarray(start).astype(kind), xp.asarray(end).astype(kind), index.astype(kind)
    up, down = low + by * index, high - by * (np.dtype(kind).type(steps - 1) - index)
    return xp.where(index.real < steps // 2, up, down) if steps > 1 else up


@bounded(256)
def space_program(steps: int, dtype: dtypes.dtype, base: Any, place: devices.device) -> Any:
    def space(start: Any, end: Any, by: Any) -> Any:
        return finished_space(jnp, jnp.arange(steps, dtype=np.int64), start, end, by, steps, dtype, base)

    return jit(space, out_shardings=devices.sharding_of(place))


def finished_space(
    xp: Any, index: Any, start: Any, end: Any, by: Any, steps: int, dtype: dtypes.dtype, base: Any
) -> Any:
    values = even_values(xp, index, start, end, by, steps)
    if base is not None:
        values = xp.asarray(base, values.dtype) ** values
    return values.astype(dtype.numpy)


def space(
    function: str,
    start: Any,
    end: Any,
    steps: Any,
    base: Any,
    out: Tensor | None,
    dtype: Any,
    device: Any,
    requires_grad: Any,
) -> Tensor:
    """The body of `linspace` and `logspace`."""
    ends = [(n, v) for n, v in (("start", start), ("end", end)) if isinstance(v, Tensor)]
    if any(v.dim() for _, v in ends):
        found = " and ".join([f"{n} with {v.dim()} dimension(s)" for n, v in ends])
        raise RuntimeError(f"{function} only supports 0-dimensional start and end tensors, but got {found}.")
    start, end = (
        v.detach() if isinstance(v, Tensor) else v for v in (start, end)
    )  # no graph is made of ends
    low, high = python_number(function, "start", 1, start), python_number(function, "end", 2, end)
    if not hasattr(steps, "__index__"):
        options = f"*, Tensor out = None, {ARANGE_OPTIONS}"
        middle = "int steps, " if base is None else "int steps, float base = 10.0, "
        given = (start, end) if steps is None else (start, end, steps)
        kinds = itertools.product(("Tensor", "Number"), repeat=2)
        signatures = [f"{b} start, {a} end, {middle}{options}" for a, b in kinds]
        raise checks.combination_error(function, given, {}, signatures)
    count = operator.index(steps)
    if count < 0:
        raise RuntimeError("number of steps must be non-negative")
    dtype, device = into_out(function, out, dtype, device)
    is_complex = isinstance(low, builtins.complex) or isinstance(high, builtins.complex)
    chosen = pick_dtype(function, dtype, dtypes.get_default_complex_dtype() if is_complex else None)
    if is_complex and not chosen.is_complex:
        raise RuntimeError(
            f"torch.{function}(): inferred dtype {dtypes.c_name(dtypes.get_default_complex_dtype())} can't be safely cast "
            f"to passed dtype {chosen.scalar_name}"
        )
    if chosen is dtypes.bool:
        raise checks.not_implemented_for(f"{function}_cpu", chosen)
    if chosen.is_integral:
        low, high = number_array(low, chosen)[()], number_array(high, chosen)[()]
    place = pick_device(function, device)
    if place.type == "meta":
        made = wrap(MetaArray((count,), chosen.numpy))
    else:
        with np.errstate(all="ignore"):
            by = even_step(low, high, count, chosen)
            if count <= _HOST:
                made = placed(finished_space(np, np.arange(count), low, high, by, count, chosen, base), place)
            else:
                made = wrap(call(space_program(count, chosen, base, place), low, high, by))
    return deliver(function, out, made, requires_grad)


@overloads(
    "Tensor start, Tensor end, int steps, *, Tensor out = None, {options}",
    "Number start, Tensor end, int steps, *, Tensor out = None, {options}",
    "Tensor start, Number end, int steps, *, Tensor out = None, {options}",
    "Number start, Number end, int steps, *, Tensor out = None, {options}",
)
def linspace(
    start: Any,
    end: Any,
    steps: Any = None,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, evenly spaced.

    Shape: result `(steps)`.

    Raises: RuntimeError for negative `steps`.

    >>> xtensor.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    check_layout("linspace", layout)
    return space("linspace", start, end, steps, None, out, dtype, device, requires_grad)


@overloads(
    "Tensor start, Tensor end, int steps, float base = 10.0, *, Tensor out = None, {options}",
    "Number start, Tensor end, int steps, float base = 10.0, *, Tensor out = None, {options}",
    "Tensor start, Number end, int steps, float base = 10.0, *, Tensor out = None, {options}",
    "Number start, Number end, int steps, float base = 10.0, *, Tensor out = None, {options}",
)
def logspace(
    start: Any,
    end: Any,
    steps: Any = None,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """`steps` powers of `base`, from `base**start` to `base**end`, whose exponents are evenly spaced.

    Raises: RuntimeError for negative `steps`.

    >>> xtensor.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    check_layout("logspace", layout)
    return space("logspace", start, end, steps, float(base), out, dtype, device, requires_grad)


# ---- the identity and index pairs ----------------------------------------------------------------------------------


@bounded(256)
def shared_eye(n: int, m: int, dtype: dtypes.dtype, place: devices.device) -> Any:
    return devices.put(np.eye(n, m, dtype=dtype.numpy), place)


@bounded(64)
def eye_program(n: int, m: int, dtype: dtypes.dtype, place: devices.device) -> Any:
    def identity() -> Any:
        return jnp.eye(n, m, dtype=dtype.numpy)

    return jit(identity, out_shardings=devices.sharding_of(place))


@overloads(
    "int n, *, Tensor out = None, {options}",
    "int n, int m, *, Tensor out = None, {options}",
)
def eye(
    n: Any,
    m: Any = None,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A matrix of `n` rows and `m` (`n`) columns with ones on the diagonal and zeros elsewhere.

    Shape: result `(n, m)`.

    Raises: RuntimeError for negative sizes.

    >>> xtensor.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    counts = []
    for position, (name, value) in enumerate((("n", n), ("m", n if m is None else m)), 1):
        if not is_size(value):
            raise checks.argument_error("eye", name, position, "int", value)
        value = as_size(value)
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
        counts.append(value)
    check_layout("eye", layout)
    dtype, device = into_out("eye", out, dtype, device)
    chosen, place = pick_dtype("eye", dtype), pick_device("eye", device)
    if place.type == "meta":
        made = wrap(MetaArray(tuple(counts), chosen.numpy))
    elif any(map(is_open, counts)):
        made = wrap(call(lambda: jnp.eye(*counts, dtype=chosen.numpy)))
    elif counts[0] * counts[1] <= _SHARED:
        made = wrap(shared_eye(counts[0], counts[1], chosen, place), shared=True)
    else:
        made = wrap(call(eye_program(counts[0], counts[1], chosen, place)))
    return deliver("eye", out, made, requires_grad)


def triangle(function: str, find: Any, which: str) -> Any:
    """The function of the indices of one triangle of a matrix."""

    def indices(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: dtypes.dtype | None = dtypes.int64,
        device: devices.DeviceLike = None,
        layout: dtypes.layout | None = None,
        pin_memory: bool = False,
    ) -> Tensor:
        for name, value in (("row", row), ("col", col)):
            if value < 0:
                raise RuntimeError(f"{name} must be non-negative, got{value}")
        check_layout(function, layout)
        chosen = pick_dtype(function, dtype, dtypes.int64)
        if chosen not in (dtypes.int64, dtypes.int32, dtypes.int16, dtypes.int8, dtypes.uint8):
            raise checks.not_implemented_for(function, chosen)
        check_sizes((row, col), 1)  # what finds them makes a mask
        pairs = np.stack(find(row, offset, col)).astype(chosen.numpy)
        return placed(pairs, pick_device(function, device))

    low, high = np.stack(find(2, 0, 2)).tolist()
    doc = (
        f"The row and column indices of the {which} the diagonal `offset`, as a 2-by-N tensor.\n\n"
        "Shape: result `(2, N)`, N the number of elements of the triangle.\n\n"
        "Raises: RuntimeError for negative sizes.\n\n"
        f">>> xtensor.{function}(2, 2)\ntensor([{low},\n        {high}])"
    )
    return named(indices, function, doc)


tril_indices = triangle("tril_indices", np.tril_indices, "lower triangle of a matrix, up to")
triu_indices = triangle("triu_indices", np.triu_indices, "upper triangle of a matrix, from")


# ---- grids ---------------------------------------------------------------------------------------------------------


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid with these axes: each of the (0-d or 1-d) tensors, expanded along the others.

    `indexing` is "ij" (the first tensor runs over the first dimension) or "xy" (over the second).

    Shape: tensors `(n)`, `(m)`, ...; as many results `(n, m, ...)`.

    Raises: TypeError for arguments of other kinds.

    >>> x, y = xtensor.meshgrid(xtensor.arange(2), xtensor.arange(3), indexing="ij")
    >>> x, y
    (tensor([[0, 0, 0],
            [1, 1, 1]]), tensor([[0, 1, 2],
            [0, 1, 2]]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if indexing is None:
        checks.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning,
        )
        indexing = "ij"
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for i, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {checks.type_name(tensor)}"
            )
        if tensor.dim() > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {tensor!r}"
            )
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if tensor.device != tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    axes = list(tensors)
    swap = indexing == "xy" and len(axes) > 1
    if swap:
        axes[:2] = axes[1], axes[0]
    shape = [t.numel() for t in axes]
    grids = []
    for i, tensor in enumerate(axes):
        sizes = [1] * len(axes)
        sizes[i] = shape[i]
        grids.append(tensor.view(sizes).expand(shape))
    if swap:
        grids[:2] = [grids[1], grids[0]]
    return tuple(grids)


@of_tensors("linalg_vander")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of the elements of a 1-d tensor as columns: a Vandermonde matrix, highest powers first by default.

    Raises: TypeError for arguments of other kinds.
    """
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.numel() if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    powers = arange(count, device=x.device) if increasing else arange(count - 1, -1, -1, device=x.device)
    whole = x.dtype.is_integral or x.dtype is dtypes.bool
    return (x.to(dtypes.int64) if whole else x).unsqueeze(-1) ** powers


# ---- complex numbers from their parts ------------------------------------------------------------------------------


def check_parts(function: str, first: Any, second: Any) -> None:
    a, b = (dtypes.FROM_NUMPY[np.dtype(v.dtype)] for v in (first, second))
    allowed = (dtypes.float16, dtypes.float32, dtypes.float64)
    if a not in allowed or b not in allowed:
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {a.scalar_name} and {b.scalar_name}"
        )
    if a is not b:
        raise RuntimeError(
            f"Expected object of scalar type {a.scalar_name} but got scalar type {b.scalar_name} for second argument"
        )


@pointwise(
    out="exact",
    name="complex",
    method=False,
    inplace=False,
    derivatives=dict(real=lambda grad: jnp.real(grad), imag=lambda grad: jnp.imag(grad)),
)
def complex(real: Array, imag: Array) -> Array:
    """Complex numbers from their real and imaginary parts.

    Differs from PyTorch: float16 parts give complex64.

    Raises: RuntimeError for complex, bool and integer tensors.

    >>> xtensor.complex(xtensor.tensor([1.0]), xtensor.tensor([2.0]))
    tensor([1.+2.j])
    """
    check_parts("complex", real, imag)
    if real.dtype == np.float16:
        real, imag = real.astype(np.float32), imag.astype(np.float32)
    real, imag = jnp.broadcast_arrays(real, imag)
    return jax.lax.complex(real, imag)


def direction(value: Any) -> Any:
    """`value / |value|`, and zero at zero."""
    zero = value == 0
    safe = jnp.where(zero, 1, value)
    return jnp.where(zero, 0, safe / jnp.abs(safe))


@pointwise(
    autocast=dict(cpu="float32"),
    out="exact",
    name="polar",
    method=False,
    inplace=False,
    derivatives=dict(
        abs=lambda grad, result: jnp.real(jnp.conj(grad) * direction(result)),
        angle=lambda grad, result: jnp.real(jnp.conj(grad) * result * 1j),
    ),
)
def polar(abs: Array, angle: Array) -> Array:
    """Complex numbers from their absolute values and angles.

    Raises: RuntimeError for complex, bool and integer tensors.
    """
    check_parts("polar", abs, angle)
    if abs.dtype == np.float16:
        raise checks.not_implemented_for("polar_cpu", dtypes.float16)
    abs, angle = jnp.broadcast_arrays(abs, angle)
    return jax.lax.complex(abs * jnp.cos(angle), abs * jnp.sin(angle))
