"""Tensors from what Python has: numbers, nested lists, NumPy arrays, buffers, JAX arrays.

What `from_numpy`, `as_tensor` and `asarray` take from NumPy shares its memory up to a size; everything else is copied.
"""

from __future__ import annotations

import operator
import weakref
from itertools import chain
from typing import Any

import jax
import numpy as np

from ... import checks, devices, dtypes, geometry
from ...copied_storage import watch
from ...engine import modes
from ...host.numbers import made_of
from ...lowering import host_float8
from ...operators.attach import attach_methods
from ...operators.options import (
    check_legacy_device,
    filled,
    finish,
    number_array,
    pick_device,
    pick_dtype,
    pick_sizes,
    placed,
    storing,
)
from ...operators.write import cast
from ...shared_storage import MOST, HostStorage, adopt, bytes_at, is_shared
from ...storage import MetaArray, Storage, UntypedStorage
from ...tensor import Size, Tensor, array_of, make_view, tensor_over, wrap, wrap_strided
from ...xla.x64 import call

__all__ = ["as_tensor", "asarray", "from_numpy", "frombuffer", "scalar_tensor", "tensor"]

NUMBERS = frozenset((bool, int, float, complex))
MAX_DIMS = 128


def tensor(
    data: Any,
    *,
    dtype: dtypes.dtype | None = None,
    device: devices.DeviceLike = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with a copy of `data`: a number, nested sequences, a NumPy array, a tensor.

    Without `dtype`, Python floats take the default dtype and integers int64; NumPy's and tensors' dtypes are kept.
    Raises ValueError where the nesting is ragged. `pin_memory` is accepted: host memory is not pinned.

    Shape: that of the nesting: `()` of a number, `(2, 3)` of two lists of three.

    Raises: ValueError for nested lists of differing lengths; TypeError for dtypes that are none.

    >>> xtensor.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> xtensor.tensor(1.5).shape, xtensor.tensor([1, 2], dtype=xtensor.float32).dtype
    (xtensor.Size([]), xtensor.float32)
    """
    if isinstance(data, Tensor):
        checks.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            f"sourceTensor.detach().clone().requires_grad_(True), rather than {checks.spelled('tensor')}(sourceTensor).",
            UserWarning,
        )
    return finish("tensor", ingest("tensor", data, dtype, device, copy=True), requires_grad)


def ingest(
    function: str, data: Any, dtype: Any, device: Any, copy: bool, default_device: Any = None
) -> Tensor:
    """A tensor with the values of `data` that no graph knows; without `copy`, a tensor of the right kind is itself."""
    chosen = None if dtype is None else pick_dtype(function, dtype)
    if isinstance(data, Tensor):
        place = data.device if device is None else pick_device(function, device)
        with modes.no_grad():
            made = data.detach().to(device=place, dtype=chosen or data.dtype)
            return made.clone() if copy and made._xt_storage is data._xt_storage else made
    place = default_device or devices.current() if device is None else pick_device(function, device)
    if isinstance(chosen, dtypes.stored_dtype):
        if chosen is not dtypes.complex32:
            raise RuntimeError("store_scalar: invalid type")
        return storing.converted(ingest(function, data, dtypes.complex64, place, True), chosen)
    if type(data) in NUMBERS:
        return from_number(data, chosen, place)
    if isinstance(data, jax.Array):
        return from_array(data, chosen, None if device is None else place)
    if hasattr(data, "untyped"):
        kind: Any = getattr(data, "dtype", chosen)
        if chosen is not None and kind is not chosen:
            raise RuntimeError(
                f"Expected a Storage of type {chosen.scalar_name} or an UntypedStorage, but got {kind.scalar_name}"
            )
        return row_over(data.untyped(), kind or dtypes.int64)
    if isinstance(data, np.ndarray):
        return from_host(data, chosen, place, share=not copy)
    if hasattr(data, "__dlpack__") and not isinstance(data, np.generic):
        return from_host(np.from_dlpack(data), chosen, place)
    return placed(host_array(data, chosen), place)


def row_over(storage: UntypedStorage, dtype: dtypes.dtype) -> Tensor:
    """All the bytes of a storage as a flat tensor of a dtype, which shares them."""
    memory: Storage = storage._xt_storage
    view = make_view(memory, memory, dtype, (storage.nbytes() // dtype.itemsize,), (1,), 0)
    return tensor_over(memory, view)


def from_number(value: Any, dtype: dtypes.dtype | None, place: devices.device) -> Tensor:
    if dtype is None:
        dtype = dtypes.scalar_dtype(value)
    check_stored(value, dtype)
    if modes.state.mode <= modes.NO_GRAD and not modes.state.transforms:
        made = made_of(value, dtype.numpy, place)
        if made is not None:
            return made
    if dtype.is_floating_point or dtype.is_complex:
        return filled((), dtype, place, host_cast(np.array(value), dtype)[()])
    return filled((), dtype, place, number_array(value, dtype, dtype.name))


def check_stored(value: Any, dtype: dtypes.dtype) -> None:
    """The errors that storing a Python number as an element of a dtype gives."""
    if dtype.is_integral:
        if isinstance(value, complex):
            raise TypeError("'complex' object cannot be interpreted as an integer")
        if isinstance(value, int) and not -(2**63) <= value < 2**63 and dtype is not dtypes.uint64:
            raise ValueError("Overflow when unpacking long long")
        if dtype is dtypes.uint64 and value < 0:
            raise OverflowError("can't convert negative int to unsigned")
    elif dtype.is_floating_point and isinstance(value, complex):
        raise TypeError("must be real number, not complex")
    elif isinstance(value, int):
        float(value)


def host_cast(array: np.ndarray[Any, Any], dtype: dtypes.dtype) -> np.ndarray[Any, Any]:
    """Conversion on the host, element by element, as PyTorch rounds (doubles through float to shorter types)."""
    target = dtype.numpy
    if array.dtype == target:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        if array.dtype.kind == "c" and target.kind != "c" and target.kind != "b":
            array = array.real
        if dtype in dtypes.FLOAT8:
            return host_float8(array, target)
        if dtype in (dtypes.float16, dtypes.bfloat16):
            array = array.astype(np.float32)
        elif array.dtype == object:
            array = array.astype(
                np.complex128 if target.kind == "c" else np.float64 if target.kind == "f" else target
            )
        return array.astype(target)


# ---- nested sequences ----------------------------------------------------------------------------------------------


def host_array(data: Any, dtype: dtypes.dtype | None) -> np.ndarray[Any, Any]:
    """Nested sequences as a NumPy array of `dtype`, or of the dtype that PyTorch infers."""
    flat, sizes = regular(data)
    if flat is None:
        if dtype is None:
            dtype = infer_dtype(data)
        elif isinstance(data, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
        sizes = sizes_in(data)
        flat = []
        if 0 not in sizes:
            gather(data, sizes, 0, flat, dtype)
    elif dtype is None:
        kinds = set(map(type, flat))
        if not flat or (float in kinds and complex not in kinds):
            dtype = dtypes.get_default_dtype()
        elif complex in kinds:
            dtype = dtypes.get_default_complex_dtype()
        else:
            dtype = dtypes.int64 if int in kinds else dtypes.bool
    return numbers_array(flat, dtype).reshape(sizes)


def regular(data: Any) -> tuple[list[Any] | None, tuple[int, ...]]:
    """The numbers and sizes of evenly nested lists and tuples of Python numbers; None for anything else."""
    level: Any = data if isinstance(data, (list, tuple)) else None
    if level is None:
        return None, ()
    sizes = [len(level)]
    while True:
        kinds = set(map(type, level))
        if kinds <= NUMBERS:
            return list(level), tuple(sizes)
        if not kinds <= {list, tuple} or len(sizes) > MAX_DIMS:
            return None, ()
        lengths = set(map(len, level))
        if len(lengths) != 1:
            return None, ()
        sizes.append(lengths.pop())
        level = list(chain.from_iterable(level))


def infer_dtype(data: Any) -> dtypes.dtype:
    """The dtype that PyTorch infers for numbers, tensors, arrays and sequences of them."""
    if isinstance(data, (np.ndarray, np.generic)):
        return dtypes.from_numpy(data.dtype)
    if isinstance(data, (int, float, complex)):
        return dtypes.scalar_dtype(data)
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, jax.Array):
        return dtypes.from_numpy(np.dtype(data.dtype))
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    found: dtypes.dtype | None = None
    for i in range(len(data)):
        try:
            item = data[i]
        except TypeError as error:
            raise ValueError(
                f"could not determine the shape of object type '{type(data).__name__}'"
            ) from error
        if item is data:
            raise TypeError("new(): self-referential lists are incompatible")
        if isinstance(item, str) and i == 0:
            raise ValueError("too many dimensions 'str'")
        inferred = infer_dtype(item)
        found = inferred if found is None else dtypes.promote_types(found, inferred)
    return found or dtypes.get_default_dtype()


def is_sequence(data: Any) -> bool:
    return (
        hasattr(type(data), "__getitem__")
        and hasattr(type(data), "__len__")
        and not isinstance(data, (dict, Tensor))
        and not (isinstance(data, (np.ndarray, jax.Array)) and data.ndim == 0)
    )


def sizes_in(data: Any) -> tuple[int, ...]:
    """The sizes that the first elements show."""
    sizes: list[int] = []
    while is_sequence(data):
        sizes.append(len(data))
        if isinstance(data, str) or len(sizes) > MAX_DIMS:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if sizes[-1] == 0:
            break
        data = data[0]
    return tuple(sizes)


def gather(data: Any, sizes: tuple[int, ...], dim: int, into: list[Any], dtype: dtypes.dtype) -> None:
    """Append the elements of `data` in order; ValueError where the nesting is ragged."""
    if dim == len(sizes):
        into.append(element(data, dtype))
        return
    if not is_sequence(data):
        raise TypeError("not a sequence")
    if len(data) != sizes[dim]:
        raise ValueError(f"expected sequence of length {sizes[dim]} at dim {dim} (got {len(data)})")
    if isinstance(data, np.ndarray) and data.ndim == len(sizes) - dim and data.shape == sizes[dim:]:
        into.extend(data.reshape(-1).tolist())
        return
    for i in range(len(data)):
        gather(data[i], sizes, dim + 1, into, dtype)


def element(value: Any, dtype: dtypes.dtype) -> Any:
    """One element as a Python number."""
    if type(value) in NUMBERS:
        return value
    if isinstance(value, Tensor):
        if value.requires_grad:
            checks.warn(
                "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
                "Consider using tensor.detach() first.",
                UserWarning,
            )
        if value.numel() != 1 and dtype.is_integral:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return value.item()
    if isinstance(value, (np.generic, np.ndarray, jax.Array)) and getattr(value, "ndim", 0) == 0:
        return value.item()
    if dtype is dtypes.bool:
        return bool(value)
    if dtype.is_complex:
        return complex(value)
    other: Any = value
    return float(other) if dtype.is_floating_point else operator.index(other)


def numbers_array(flat: list[Any], dtype: dtypes.dtype) -> np.ndarray[Any, Any]:
    """Python numbers as an array of `dtype`, with the errors of storing them one by one."""
    kinds = set(map(type, flat))
    if dtype is dtypes.bool:
        return np.array([bool(x) for x in flat], np.bool_) if kinds != {bool} else np.array(flat, np.bool_)
    if complex in kinds and not dtype.is_complex:
        for value in flat:
            check_stored(value, dtype)
    if not dtype.is_integral:
        return host_cast(np.array(flat, np.complex128 if dtype.is_complex else np.float64), dtype)
    if float in kinds:
        made = []
        for value in flat:
            check_stored(value, dtype)
            made.append(number_array(value, dtype, dtype.name))
        return np.array(made, dtype.numpy)
    wide = np.uint64 if dtype is dtypes.uint64 else np.int64
    try:
        array = np.array(flat, wide)
    except OverflowError:
        for value in flat:
            check_stored(value, dtype)
        raise
    if array.dtype == dtype.numpy or not flat:
        return array.astype(dtype.numpy)
    limits = dtypes.iinfo(dtype)
    low = limits.min if dtype.is_signed else -limits.max
    if int(array.min()) < low or int(array.max()) > limits.max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return array.astype(dtype.numpy)


# ---- arrays and buffers --------------------------------------------------------------------------------------------


def from_host(
    data: np.ndarray[Any, Any], dtype: dtypes.dtype | None, place: devices.device, share: bool = False
) -> Tensor:
    """A tensor with a copy of a NumPy array, its strides kept where they are a plain order of dimensions.

    To `share` is to see the array's own memory, strides and all, where that can be.
    """
    found = dtypes.from_numpy(data.dtype)
    if any(s < 0 for s in data.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    dtype = dtype or found
    if share and dtype is found and place.type == "cpu" and data.flags.writeable:
        made = over_memory(data)
        if made is not None:
            return made
        made = from_host(data, dtype, place)
        if data.size:
            watch(made._xt_storage, data)
        return made
    strides = tuple([s // data.itemsize for s in data.strides])
    if data.ndim > 1 and not data.flags.c_contiguous and 0 not in data.shape:
        if geometry.is_non_overlapping_and_dense(data.shape, strides):
            order = sorted(range(data.ndim), key=lambda d: (-strides[d], data.shape[d] != 1, d))
            stored = own_copy(data.transpose(order), dtype)
            if place.type == "meta":
                return wrap_strided(MetaArray(stored.shape, stored.dtype), data.shape, strides)
            return wrap_strided(placed(stored, place)._xt_storage.array, data.shape, strides)
    return placed(own_copy(data, dtype), place)


def in_place(data: np.ndarray[Any, Any]) -> Tensor | None:
    """A tensor over NumPy's memory which XLA takes in when a program first reads it; None where something is to be looked at before."""
    flags = data.flags
    if (
        type(data) is np.ndarray
        and flags.c_contiguous
        and flags.writeable
        and 0 < data.nbytes <= MOST
        and data.dtype in dtypes.FROM_NUMPY
        and devices.redirected("cpu") is None
    ):
        return tensor_over(HostStorage(data))
    return None


def over_memory(data: np.ndarray[Any, Any]) -> Tensor | None:
    """A tensor over the memory of a NumPy array that may be written; None where that cannot be shared."""
    if data.size == 0:
        return None
    made = in_place(data)
    if made is not None:
        return made
    item = data.itemsize
    checks.check_value(
        all(s % item == 0 for s in data.strides),
        "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory.",
    )
    nbytes = item + sum((n - 1) * s for n, s in zip(data.shape, data.strides))
    if nbytes > MOST:
        return None
    cpu = devices.device("cpu")
    if data.flags.c_contiguous:
        made = placed(own_copy(data, dtypes.from_numpy(data.dtype)), cpu)
    else:
        # The whole run from the first element to the last, as its own bytes: what lies between belongs to it too.
        run = bytes_at(data, nbytes).view(data.dtype)
        strides = tuple([s // item for s in data.strides])
        made = wrap_strided(placed(run.copy(), cpu)._xt_storage.array, data.shape, strides)
    adopt(made._xt_storage, data)
    return made


def own_copy(data: np.ndarray[Any, Any], dtype: dtypes.dtype) -> np.ndarray[Any, Any]:
    """A row-major copy of `dtype` that nobody else can write to."""
    if data.dtype == dtype.numpy:
        return np.array(data, order="C", copy=True, subok=False)
    return np.ascontiguousarray(host_cast(np.asarray(data), dtype)).reshape(data.shape)


def from_array(array: Any, dtype: dtypes.dtype | None, place: devices.device | None) -> Tensor:
    """A tensor over a JAX array, without a copy where dtype and device are right; the array stays the user's."""
    if array.weak_type:
        array = call(jax.lax.convert_element_type, array, array.dtype)
    made = wrap(committed(array), shared=True)
    if dtype is not None and dtype.numpy != array.dtype:
        made = wrap(cast(array_of(made), dtype))
    return made if place is None or place == made.device else made.to(place)


_committed: dict[int, tuple[weakref.ref[Any], Any]] = {}


def committed(array: Any) -> Any:
    """A user's array as one bound to its device, over the same buffer.

    The second array is held as long as the first lives: whoever counts its references sees that it is not alone.
    """
    if array.committed:
        return array
    key = id(array)
    found = _committed.get(key)
    if found is not None and found[0]() is array:
        return found[1]
    bound = call(jax.device_put, array, next(iter(array.devices())))
    _committed[key] = (weakref.ref(array, lambda _: _committed.pop(key, None)), bound)
    return bound


def as_tensor(data: Any, dtype: dtypes.dtype | None = None, device: devices.DeviceLike = None) -> Tensor:
    """`data` as a tensor: itself, with its history, where it is one of that dtype and device.

    A NumPy array of that dtype is taken as `from_numpy` takes it.

    Raises: ValueError for nested lists of differing lengths.

    >>> xtensor.as_tensor([1, 2])
    tensor([1, 2])
    """
    if isinstance(data, Tensor):
        place = data.device if device is None else pick_device("as_tensor", device)
        return data.to(device=place, dtype=data.dtype if dtype is None else pick_dtype("as_tensor", dtype))
    return ingest("as_tensor", data, dtype, device, copy=False)


class Capsule:
    """A bare capsule, which does not tell its device, as an object that speaks the protocol: the CPU's."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU


def asarray(
    obj: Any,
    *,
    dtype: dtypes.dtype | None = None,
    device: devices.DeviceLike = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """`obj` as a tensor; `copy=True` always copies, `copy=False` raises ValueError where that would be needed.

    Differs from PyTorch: arrays and buffers that `from_numpy` and `frombuffer` would copy cannot be shared: they are copied, or
    refused with `copy=False`.
    """
    if isinstance(obj, Tensor):
        wanted = obj.dtype if dtype is None else pick_dtype("asarray", dtype)
        place = obj.device if device is None else pick_device("asarray", device)
        if copy is False:
            if wanted is not obj.dtype:
                raise ValueError(
                    f"can't alias tensor with dtype '{obj.dtype.scalar_name}' into dtype '{wanted.scalar_name}'."
                )
            if place != obj.device:
                raise ValueError(f"can't alias tensor from device '{obj.device}' to '{place}'.")
        made = obj.clone() if copy and wanted is obj.dtype and place == obj.device else obj.to(place, wanted)
        if requires_grad is None:
            if obj.requires_grad:
                checks.warn_once(
                    f"{checks.spelled('asarray')}: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
                    "requires_grad=False explicitly to get the old behavior and silence this warning."
                )
            return made
        if made.requires_grad and not requires_grad:
            return made.requires_grad_(False) if made.is_leaf else made.detach()
        return made if made.requires_grad or not requires_grad else finish("asarray", made, True)
    if isinstance(obj, UntypedStorage):
        obj = obj.tobytes()
    elif type(obj).__name__ == "PyCapsule":
        obj = np.from_dlpack(Capsule(obj))
        if not obj.flags.writeable:  # NumPy says so of all that older producers give
            obj = obj if copy is False else obj.copy()
    foreign = isinstance(obj, (np.ndarray, bytes, bytearray, memoryview))
    if foreign and not isinstance(obj, np.ndarray):
        made = frombuffer(obj, dtype=pick_dtype("asarray", dtype))
    elif foreign and copy is False:
        made = ingest("asarray", obj, None, device, copy=False)
        if dtype is not None and made.dtype is not dtype:
            raise ValueError(
                f"can't alias tensor with dtype '{made.dtype.scalar_name}' into dtype '{dtype.scalar_name}'."
            )
    else:
        made = None
    if made is not None and (copy is not False or is_shared(made._xt_storage)):
        made = made.to(made.device if device is None else device, copy=bool(copy))
        return finish("asarray", made, bool(requires_grad))
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError(
            "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
        )
    if copy is False and not isinstance(obj, jax.Array):
        raise ValueError(f"can't alias arbitrary {'buffer' if foreign else 'sequence'} into a tensor.")
    return finish("asarray", ingest("asarray", obj, dtype, device, copy=bool(copy)), bool(requires_grad))


def from_numpy(ndarray: np.ndarray[Any, Any]) -> Tensor:
    """A tensor over the memory of a NumPy array, on the CPU: a write to the one shows in the other.

    Differs from PyTorch: it is a copy if the array has more than 1 MiB from its first element to its last, or is read-only. What a
    graph has saved keeps the values of the forward pass whatever NumPy writes.

    Shape: that of the array.

    Raises: TypeError for what is no array, and for dtypes without one here.

    >>> import numpy
    >>> xtensor.from_numpy(numpy.array([1.5, 2.5]))
    tensor([1.5000, 2.5000], dtype=xtensor.float64)
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {checks.type_name(ndarray)})")
    made = in_place(ndarray)
    if made is not None:
        return made
    return from_host(ndarray, None, devices.device("cpu"), share=True)


def frombuffer(
    buffer: Any, *, dtype: dtypes.dtype, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """A flat tensor with the bytes of a buffer from `offset` on, read as `count` elements (all, if it is negative).

    It is the buffer's own memory: a write to the one shows in the other.

    Differs from PyTorch: it is a copy if the buffer is read-only, or has more than 1 MiB there.
    """
    dtype = pick_dtype("frombuffer", dtype)
    try:
        data = memoryview(buffer).cast("B")
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length, size = data.nbytes, dtype.itemsize
    checks.check_value(
        length > 0 and count != 0, f"both buffer length ({length}) and count ({count}) must not be 0"
    )
    checks.check_value(
        0 <= offset < length,
        f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1",
    )
    if count < 0:
        checks.check_value(
            (length - offset) % size == 0,
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element "
            f"size ({size})",
        )
        count = (length - offset) // size
    checks.check_value(
        offset + count * size <= length,
        f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
        f"actual buffer length ({length} bytes)",
    )
    if data.readonly:
        checks.warn(READ_ONLY, UserWarning)
    values = np.frombuffer(data, dtype.numpy, count, offset)
    return finish("frombuffer", from_host(values, dtype, devices.device("cpu"), share=True), requires_grad)


READ_ONLY = (
    "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can write to the "
    "underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer to protect its data or make "
    "it writable before converting it to a tensor. This type of warning will be suppressed for the rest of this program."
)


def scalar_tensor(
    s: Any,
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of no dimensions with the value `s`, of the default dtype unless one is given."""
    if isinstance(s, Tensor):
        s = s.item()
    if not isinstance(s, (int, float, complex, np.generic)):
        raise checks.argument_error("scalar_tensor", "s", 1, "Number", s)
    chosen = pick_dtype("scalar_tensor", dtype)
    made = filled((), chosen, pick_device("scalar_tensor", device), number_array(s, chosen))
    return finish("scalar_tensor", made, requires_grad)


def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: dtypes.dtype | None = None,
    device: devices.DeviceLike = None,
    requires_grad: bool = False,
    layout: dtypes.layout | None = None,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf with a copy of `data`, of this tensor's dtype and device unless others are given.

    Shape: result that of `data`.

    Raises: ValueError for nested lists of differing lengths.

    >>> xtensor.ones(1).new_tensor([1, 2])
    tensor([1., 2.])
    """
    if isinstance(data, Tensor):
        checks.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than tensor.new_tensor(sourceTensor).",
            UserWarning,
        )
    place = self.device if device is None else device
    chosen = self.dtype if dtype is None else dtype
    return finish("new_tensor", ingest("new_tensor", data, chosen, place, copy=True), requires_grad)


def from_legacy(args: tuple[Any, ...], device: Any, dtype: dtypes.dtype | None = None) -> Tensor:
    """`Tensor(...)`: a tensor of the default dtype from sizes, from a sequence of values, or another tensor."""
    data = args[0] if args else (0,)
    if isinstance(data, Tensor) and len(args) == 1 and device is not None:
        raise RuntimeError(
            "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use "
            "torch.tensor(...) or torch.as_tensor(...) instead."
        )
    check_legacy_device(device, devices.current())
    place = devices.current() if device is None else pick_device("Tensor", device)
    if isinstance(data, Tensor) and len(args) == 1:
        if dtype is not None and data.dtype is not dtype:
            raise TypeError(
                f"expected xtensor.{dtype.scalar_name}Tensor (got xtensor.{data.dtype.scalar_name}Tensor)"
            )
        return data.view(data.shape)
    dtype = dtype or dtypes.get_default_dtype()
    if not args or isinstance(data, Size) or (isinstance(data, (int, np.integer)) and type(data) is not bool):
        return filled(pick_sizes("Tensor", args or (data,)), dtype, place, 0)
    if len(args) > 1:
        signatures = ("*, xtensor.device device = None", "Tensor other", "tuple of ints size", "object data")
        raise checks.combination_error("new", args, {}, signatures)
    if not is_sequence(data) and not isinstance(data, (np.ndarray, jax.Array)):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return ingest("Tensor", data, dtype, place, copy=True)


attach_methods(new_tensor)
Tensor._from_legacy = staticmethod(from_legacy)
