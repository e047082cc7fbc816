"""What functions that make tensors share: sizes, dtype, device and `requires_grad` as arguments; constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from .. import checks, devices, dtypes, geometry
from ..host.numbers import stays
from ..lowering import host_float8
from ..storage import HostValues, MetaArray
from ..tensor import Tensor, sizes_of, strides_of, wrap, wrap_strided
from ..xla.cache import BoundedCache, bounded
from ..xla.memory import out_of_memory
from ..xla.symbolic import as_size, at_most, is_size
from ..xla.x64 import call, jit

__all__ = [
    "check_sizes",
    "filled",
    "finish",
    "format_name",
    "into_out",
    "like_strides",
    "number_array",
    "pick_device",
    "pick_dtype",
    "pick_sizes",
    "placed",
    "python_number",
    "repeated",
    "storing",
]

# Python's own types name a dtype too.
PYTHON_TYPES = {bool: dtypes.bool, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}


class Storing:
    """What makes tensors of the dtypes that only store; the package of them (`stored`) sets it.

    filled: one of one value. converted: a tensor in another dtype, where one of the two only stores. viewed: the bytes of a tensor as
    another dtype. as_complex: pairs of halves as complex32.
    """

    filled: Callable[..., Tensor]
    converted: Callable[[Tensor, dtypes.dtype], Tensor]
    viewed: Callable[[Tensor, dtypes.dtype], Tensor]
    as_complex: Callable[[Tensor], Tensor]


storing = Storing()
STORES = frozenset(
    "to type zeros ones empty full zeros_like ones_like empty_like full_like new_zeros new_ones new_empty new_full empty_strided "
    "new_empty_strided empty_permuted tensor as_tensor asarray new_tensor scalar_tensor rand randn rand_like randn_like".split()
)
"""The functions that make tensors of such a dtype."""
KERNELS = {"rand": "check_uniform_bounds", "randn": "normal_kernel_cpu", "eye": "eye"}
"""PyTorch's names of kernels that are not `<name>_cpu`."""


# ---- arguments -----------------------------------------------------------------------------------------------------


def pick_sizes(function: str, args: Sequence[Any], size: Any = None, position: int = 1) -> tuple[int, ...]:
    """Sizes given one by one, as one sequence, or by the keyword `size`."""
    if size is not None:
        if args:
            raise checks.repeated_error(function, "size")
        args = (size,)
    elif not args:
        raise checks.missing_error(function, ["size"])
    first = args[0]
    if isinstance(first, (list, tuple)):
        if len(args) > 1:
            raise checks.surplus_error(function, 1, 1, len(args))
        args = first
    elif not _is_index(first):
        raise checks.argument_error(function, "size", position, "tuple of ints", first)
    sizes = []
    for i, value in enumerate(args):
        if type(value) is not int:
            if not _is_index(value):
                raise checks.unpack_error(function, "size", "tuple of ints", i, value)
            value = as_size(value)
        sizes.append(value)
    check_sizes(function, sizes)
    return tuple(sizes)


def check_sizes(function: str, sizes: Sequence[int]) -> None:
    """Refuse negative sizes, and those whose product leaves 64 bits."""
    for value in sizes:
        if value < 0:
            if function == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(f"Trying to create tensor with negative dimension {value}: {list(sizes)}")
    if at_most(2**62 + 1, math.prod(sizes)):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(sizes)}")
    if 0 in sizes and math.prod([max(n, 1) for n in sizes[1:]]) >= 2**63:
        raise RuntimeError("Stride calculation overflowed")


def _is_index(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.dim() == 0 and not (value.dtype.is_floating_point or value.dtype.is_complex)
    return is_size(value)


def repeated(value: Any, n: int) -> tuple[Any, ...] | None:
    """One value for each of `n` dimensions out of a single one, or of a list of one or of `n`; None for other lists."""
    if isinstance(value, int):
        return (value,) * n
    if len(value) == 1:
        return tuple(value) * n
    return tuple(value) if len(value) == n else None


def pick_dtype(function: str, dtype: Any, default: dtypes.dtype | None = None) -> dtypes.dtype:
    """The dtype argument, or what stands for None."""
    if dtype is None:
        return default or dtypes.get_default_dtype()
    if type(dtype) is dtypes.dtype:
        return dtype
    try:
        return PYTHON_TYPES[dtype]
    except (KeyError, TypeError):
        if isinstance(dtype, dtypes.stored_dtype):
            if function in STORES:
                return dtype
            raise checks.not_implemented_for(KERNELS.get(function, f"{function}_cpu"), dtype) from None
        raise checks.argument_error(function, "dtype", None, "xtensor.dtype", dtype) from None


def check_legacy_device(device: Any, expected: devices.device) -> None:
    """RuntimeError where an older constructor is asked for another kind of device than its own."""
    if device is not None and (given := devices.device(device).type) != expected.type:
        raise RuntimeError(
            f"legacy constructor expects device type: {expected.type} but device type: {given} was passed"
        )


def pick_device(function: str, place: Any) -> devices.device:
    """The device argument; None is the current device."""
    if place is None:
        return devices.current()
    if isinstance(place, devices.device):
        return place
    if isinstance(place, (str, int)):
        return devices.resolve(place)
    raise checks.argument_error(function, "device", None, "xtensor.device", place)


def check_layout(function: str, layout: Any) -> None:
    """Only strided tensors are made here."""
    if layout is None or layout is dtypes.strided:
        return
    if not isinstance(layout, dtypes.layout):
        raise checks.argument_error(function, "layout", None, "xtensor.layout", layout)
    raise NotImplementedError(f"{function}(): only the strided layout is supported, got {layout}")


def format_name(memory_format: Any) -> Any:
    """A memory format by its name, as `geometry` knows it."""
    return getattr(memory_format, "name", memory_format)


def finish(function: str, tensor: Tensor, requires_grad: Any) -> Tensor:
    """A new tensor, which autograd follows from here on if asked."""
    if requires_grad is False:
        return tensor
    if not isinstance(requires_grad, bool):
        raise checks.argument_error(function, "requires_grad", None, "bool", requires_grad)
    dtype = tensor.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return tensor._ask_grad(True)


def into_out(function: str, out: Any, dtype: Any, device: Any) -> tuple[Any, Any]:
    """Dtype and device of a creation function's result: those of `out` where it is given, which must agree."""
    if out is None:
        return dtype, device
    if not isinstance(out, Tensor):
        raise checks.argument_error(function, "out", None, "Tensor", out)
    if dtype is not None and pick_dtype(function, dtype) is not out.dtype:
        wanted = pick_dtype(function, dtype).scalar_name
        raise RuntimeError(f"dtype {wanted} does not match dtype of out parameter ({out.dtype.scalar_name})")
    if device is not None and pick_device(function, device) is not out.device:
        given = pick_device(function, device).type
        raise RuntimeError(
            f"device type {given} does not match device type of out parameter ({out.device.type})"
        )
    return out.dtype, out.device


# ---- numbers -------------------------------------------------------------------------------------------------------


def python_number(function: str, name: str, position: int, value: Any) -> Any:
    """An argument that must be a number (or a tensor of no dimensions that autograd does not follow), and of 64 bits where it is an int."""
    kind = type(value)
    if kind is int:
        if not -(2**63) <= value < 2**64:
            raise checks.too_wide(value)
        return value
    if kind in (float, bool, complex):
        return value
    if isinstance(value, Tensor):
        if value.dim() == 0 and not value.requires_grad:
            return value.item()
    elif isinstance(value, np.generic) and not isinstance(value, (np.str_, np.bytes_)):
        return value.item()
    elif isinstance(value, (int, float, complex)):
        plain: Any = next(kind for kind in (int, float, complex) if isinstance(value, kind))
        return python_number(function, name, position, plain(value))
    raise checks.argument_error(function, name, position, "Number", value)


ORDINARY = 1e38
"""Below it no float32 overflows."""
_numbers: BoundedCache[tuple[Any, ...], np.ndarray[Any, Any]] = BoundedCache(4096)


def number_array(value: Any, dtype: dtypes.dtype, name: str | None = None) -> np.ndarray[Any, Any]:
    """A Python number as a 0-d array of `dtype`, which is kept; RuntimeError where it would overflow (negatives wrap round)."""
    if type(value) is complex:  # whose signs of zeros no key tells apart
        return _number_array(value, dtype, name)
    key = type(value), value or repr(value), dtype  # 0.0 and -0.0 are equal
    found = _numbers.get(key)
    if found is None:
        found = _number_array(value, dtype, name)
        found.flags.writeable = False
        _numbers[key] = found
    return found


def _number_array(value: Any, dtype: dtypes.dtype, name: str | None) -> np.ndarray[Any, Any]:
    d = dtype.numpy
    if dtype is dtypes.bool:
        return np.array(bool(value), d)
    if isinstance(dtype, dtypes.stored_dtype):
        return np.array(value)
    if isinstance(value, complex):
        if dtype.is_complex:
            with np.errstate(over="ignore"):
                made = np.array(value, np.complex128).astype(d)
            if not np.isfinite(made) and np.isfinite(value):
                raise _overflow(dtype, name)
            return made
        if value.imag != 0:
            raise _overflow(dtype, name)
        value = value.real
    if dtype.is_integral:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise _overflow(dtype, name)
            value = int(value)
        bits = 8 * dtype.itemsize
        top = (1 << bits) - 1 if not dtype.is_signed else (1 << bits - 1) - 1
        bottom = -top if not dtype.is_signed else -top - 1
        if not bottom <= value <= top:
            raise _overflow(dtype, name)
        return np.array(value % (1 << bits) if not dtype.is_signed else value, d)
    if (dtype is dtypes.float32 or dtype is dtypes.float64) and -ORDINARY < value < ORDINARY:
        return np.array(float(value), d)
    wide = np.array(value, np.complex128 if dtype.is_complex else np.float64)
    if dtype.itemsize < 4:
        # A double rounds to float on its way to a shorter type, as in PyTorch.
        with np.errstate(over="ignore"):
            made = host_float8(wide, d) if dtype in dtypes.FLOAT8 else wide.astype(np.float32).astype(d)
    else:
        with np.errstate(over="ignore"):
            made = wide.astype(d)
    if np.isfinite(wide) and (np.abs(wide) > ml_dtypes.finfo(dtype.to_real().numpy).max):
        raise _overflow(dtype, name)
    return made


def _overflow(dtype: dtypes.dtype, name: str | None) -> RuntimeError:
    return RuntimeError(
        f"value cannot be converted to type {name or dtypes.c_name(dtype, sized=True)} without overflow"
    )


# ---- constant arrays -----------------------------------------------------------------------------------------------

# Up to this many bytes equal constants share one array; up to the next, they are placed from the host. On the CPU larger ones are too, until
# so many bytes of a shape were.
_SHARED = 1 << 14
_HOST = 1 << 16
_WRITTEN = 1 << 25


@bounded(1024)
def _shared(shape: tuple[int, ...], dtype: dtypes.dtype, place: devices.device, value: int | bytes) -> Any:
    """That of 0, 1, or a number by its bits."""
    number = np.frombuffer(value, dtype.numpy)[0] if isinstance(value, bytes) else zero_or_one(value, dtype)
    return devices.put(np.full(shape, number, dtype.numpy), place)


def zero_or_one(value: int, dtype: dtypes.dtype) -> np.ndarray[Any, Any]:
    """0 or 1 as a 0-d array; of float8_e8m0fnu, which has no zero, as PyTorch writes it."""
    return number_array(value, dtype) if dtype is dtypes.float8_e8m0fnu else np.array(value, dtype.numpy)


# Placing a small array from the host takes some 9 us, a program that fills one 6, and 25,000 to compile.
_HOT = 256
_seen: BoundedCache[Any, int] = BoundedCache(4096)


def is_hot(key: Any, often: int = _HOT) -> bool:
    """Whether something came so often before that a compiled program for it pays, or keeping what it gives."""
    count = _seen.get(key, 0)
    if count >= often:
        return True
    _seen[key] = count + 1
    return False


@bounded(1024)
def _fill(shape: tuple[int, ...], place: devices.device) -> Any:
    def fill(value: Any) -> Any:
        return jnp.full(shape, value)

    return jit(fill, out_shardings=devices.sharding_of(place))


def constant(
    shape: tuple[int, ...], dtype: dtypes.dtype, place: devices.device, value: Any
) -> tuple[Any, bool]:
    """An array of one value (0, 1, or a 0-d NumPy array of the dtype), and whether others may hold it too."""
    if place.type == "meta":
        return MetaArray(shape, dtype.numpy), False
    nbytes = math.prod(shape) * dtype.itemsize
    if type(nbytes) is not int:  # of an open size
        return call(jnp.full, shape, np.asarray(value, dtype.numpy)), False
    if nbytes <= _SHARED:
        shared = type(value) is int
        told = value if shared else value.tobytes()
        if shared or is_hot(("value", shape, dtype, place, told), 1):
            return _shared(shape, dtype, place, told), True
    if type(value) is int:
        value = zero_or_one(value, dtype)
    often = _HOT if nbytes <= _HOST else _WRITTEN // nbytes if place.type == "cpu" else 0
    try:
        if shape and not is_hot(("fill", shape, dtype, place), often):
            return devices.put(np.full(shape, value, dtype.numpy), place), False
        return call(_fill(shape, place), value), False
    except jax.errors.JaxRuntimeError as error:
        raise out_of_memory(error) or error from None


def filled(
    sizes: tuple[int, ...],
    dtype: dtypes.dtype,
    place: devices.device,
    value: Any,
    strides: tuple[int, ...] | None = None,
) -> Tensor:
    """A new tensor of one value, with these strides or row-major ones."""
    if type(dtype) is not dtypes.dtype:
        return storing.filled(sizes, dtype, place, value, strides)
    if strides is None or strides == geometry.contiguous_strides(sizes):
        array, shared = constant(sizes, dtype, place, value)
        return wrap(array, shared)
    array, shared = constant(storage_shape(sizes, strides), dtype, place, value)
    tensor = wrap_strided(array, sizes, strides)
    tensor._xt_storage.shared = shared
    return tensor


def storage_shape(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an array that these sizes and strides fill, its dimensions in the order of memory."""
    if 0 not in sizes and geometry.is_non_overlapping_and_dense(sizes, strides):
        order = sorted(range(len(sizes)), key=lambda d: (-strides[d], sizes[d] != 1, d))
        return tuple([sizes[d] for d in order])
    return (geometry.storage_nbytes(sizes, strides, 1),)


def like_strides(input: Tensor, memory_format: Any) -> tuple[int, ...] | None:
    """The strides of a new tensor of `input`'s sizes; None stands for row-major ones."""
    if memory_format is None or memory_format is dtypes.preserve_format:
        if input._xt_view is None:
            return None
        return geometry.preserve_strides(tuple(sizes_of(input)), tuple(strides_of(input)))
    if memory_format is dtypes.contiguous_format:
        return None
    return geometry.format_strides(tuple(sizes_of(input)), format_name(memory_format))


def placed(data: np.ndarray[Any, Any], place: devices.device) -> Tensor:
    """A tensor over a host array that nobody else holds, on `place`; a small one of the CPU's waits there until a program takes it."""
    if place.type == "meta":
        return wrap(MetaArray(data.shape, data.dtype))
    if data.nbytes <= HostValues.FEW and stays(place):
        return wrap(HostValues(data, place))
    return wrap(devices.put(data, place, copy=False))
