"""Tensors out of what a checkpoint's pickle says of them: the closed list of names, and what each makes.

The names are PyTorch's, for the files are; what they stand for is here, and nothing else can be named.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from .. import devices, dtypes, geometry
from ..nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter, share
from ..operators.below.dispatching import wrapper
from ..ops.create.creation import empty_strided
from ..ops.tensor.typed_storages import TypedStorage
from ..quantized.layout import per_channel, per_tensor, seen_as
from ..quantized.packed import ScriptObject
from ..sparse.construct import rebuilt_sparse
from ..storage import LazyStorage, Storage, UntypedStorage
from ..stored.layout import seen_as as stored_as
from ..tensor import Size, Tensor, make_view, tensor_over
from . import nested_parts
from .allowed import blocked, refusal, user_globals
from .errors import FileFormatError
from .importable import importable
from .pickles import Global, checked_key, set_state
from .places import MapLocation, place_of, restored
from .storages import FileStorage, LoadedStorage, fill, named, named_by, unread_of

__all__ = ["STORAGE_TYPES", "Rebuilder", "StorageType"]

MAX_DIMS = 64

# What a key's storage is read by: number of bytes and element type -> the storage, still unread, on a device.
Opener = Callable[[str, int, dtypes.dtype, devices.device], FileStorage]


class StorageType:
    """PyTorch's class of a storage, as files name it."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: dtypes.dtype | None) -> None:
        self.dtype = dtype


STORAGE_TYPES: dict[str, dtypes.dtype] = {
    f"{d.scalar_name}Storage": d for d in (*dtypes.TYPED, *dtypes.QUANTISED)
}
SCHEMES = (dtypes.per_tensor_affine, dtypes.per_channel_affine, dtypes.per_channel_affine_float_qparams)

UNSUPPORTED = {
    "torch._utils._rebuild_device_tensor_from_numpy": "tensors that an XLA device of PyTorch wrote as NumPy arrays",
    "torch._utils._rebuild_xla_tensor": "tensors that an XLA device of PyTorch wrote as NumPy arrays",
}


# ---- values that are no tensors -----------------------------------------------------------------------------------


def ordered_dict(items: Any = ()) -> OrderedDict[Any, Any]:
    return OrderedDict([(checked_key(key), value) for key, value in items])


def counter(items: Any = None) -> Counter[Any]:
    made: Counter[Any] = Counter()
    dict.update(made, {checked_key(key): value for key, value in dict(items or {}).items()})
    return made


def set_of(items: Any = ()) -> set[Any]:
    return set(map(checked_key, list_of(items)))


def frozenset_of(items: Any = ()) -> frozenset[Any]:
    return frozenset(map(checked_key, list_of(items)))


def list_of(items: Any) -> Any:
    if type(items) not in (list, tuple):
        raise TypeError(f"expected a list, got {type(items).__name__}")
    return items


def encode(text: str, encoding: str = "latin1") -> bytes:
    if encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise ValueError(f"unexpected encoding {encoding[:40]!r}")
    return text.encode(encoding)


def bytearray_of(data: Any = b"", encoding: str | None = None) -> bytearray:
    if type(data) is bytes:
        return bytearray(data)
    if type(data) is str and encoding is not None:
        return bytearray(encode(data, encoding))
    raise TypeError(f"expected bytes, got {type(data).__name__}")


def complex_of(real: float, imaginary: float) -> complex:
    return complex(float(real), float(imaginary))


def size_of(items: Any = ()) -> Size:
    return Size(whole_numbers(items))


def device_of(kind: Any, index: Any = None) -> devices.device:
    if type(kind) is not str or not (index is None or type(index) is int):
        raise TypeError("a device is a str and an int")
    try:
        return devices.device(kind, index)
    except RuntimeError as error:
        raise ValueError(str(error)) from error


def uninitialized(kind: type[Tensor]) -> Global:
    """A parameter or buffer without sizes, by whether it wants a gradient, its device and its dtype."""

    def make(requires_grad: Any = False, device: Any = None, dtype: Any = None) -> Any:
        for value, wanted in ((requires_grad, bool), (device or device_of("cpu"), devices.device)):
            if not isinstance(value, wanted):
                raise TypeError(f"expected a {wanted.__name__}, got {type(value).__name__}")
        if dtype is not None and not (isinstance(dtype, dtypes.dtype) and dtype.is_floating_point):
            raise TypeError("expected a floating point dtype")
        return kind(requires_grad, device, dtype)

    return Global(kind, make)


def layout_of(name: Any) -> dtypes.layout:
    found = getattr(dtypes, str(name).removeprefix("torch."), None)
    if not isinstance(found, dtypes.layout):
        raise ValueError(f"unknown layout {str(name)[:40]}")
    return found


def whole_numbers(items: Any) -> tuple[int, ...]:
    numbers = tuple(items) if isinstance(items, (tuple, list)) else None
    if numbers is None or any(type(n) is not int for n in numbers):
        raise TypeError("sizes and strides are tuples of ints")
    return numbers


def _constants() -> dict[str, Global]:
    """The names that mean the same in every file."""
    table: dict[str, Global] = {
        "collections.OrderedDict": Global(OrderedDict, ordered_dict),
        "collections.Counter": Global(Counter, counter),
        "builtins.set": Global(set, set_of),
        "builtins.frozenset": Global(frozenset, frozenset_of),
        "builtins.bytearray": Global(bytearray, bytearray_of),
        "builtins.complex": Global(complex, complex_of),
        "_codecs.encode": Global(encode, encode),
        "torch.Size": Global(Size, size_of),
        "torch.device": Global(devices.device, device_of),
        "torch.serialization._get_layout": Global(layout_of, layout_of),
        "torch.Tensor": Global(Tensor),
        "torch.ScriptObject": Global(ScriptObject, ScriptObject),
        "torch.storage.UntypedStorage": Global(StorageType(None)),
        "torch.UntypedStorage": Global(StorageType(None)),
        "torch.nn.parameter.UninitializedParameter": uninitialized(UninitializedParameter),
        "torch.nn.parameter.UninitializedBuffer": uninitialized(UninitializedBuffer),
    }
    for scheme in SCHEMES:
        table[f"torch.{scheme.name}"] = Global(scheme)
    for dtype in (*dtypes.ALL, *dtypes.QUANTISED, *dtypes.STORED):
        table[f"torch.{dtype.name}"] = Global(dtype)
    for name in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format"):
        table[f"torch.{name}"] = Global(getattr(dtypes, name))
    for name, dtype in STORAGE_TYPES.items():
        for module in ("torch", "torch.cuda", "torch.storage"):
            table[f"{module}.{name}"] = Global(StorageType(dtype))
    return table


CONSTANTS = _constants()


# ---- tensors -------------------------------------------------------------------------------------------------------


JAGGED = "torch.nested._internal.nested_tensor"


class Rebuilder:
    """The policy of one load: storages by key, tensors over them; what a name means here."""

    def __init__(self, open_storage: Opener, map_location: MapLocation, trusting: bool = False) -> None:
        self.trusting = trusting
        self.open_storage = open_storage
        self.map_location = map_location
        self.storages: dict[str, tuple[int, Storage]] = {}
        self.trusted = user_globals()
        self.trusted_types = {value for value in self.trusted.values() if isinstance(value, type)}
        builders = {
            "_rebuild_tensor": self.tensor_v1,
            "_rebuild_tensor_v2": self.tensor_v2,
            "_rebuild_tensor_v3": self.tensor_v3,
            "_rebuild_parameter": self.parameter,
            "_rebuild_parameter_with_state": self.parameter_with_state,
            "_rebuild_meta_tensor_no_storage": self.meta_tensor,
            "_rebuild_device_tensor_from_cpu_tensor": self.device_tensor,
            "_rebuild_sparse_tensor": self.sparse_tensor,
            "_rebuild_qtensor": self.quantized_tensor,
            "_rebuild_nested_tensor": nested_parts.strided_of,
            "_rebuild_wrapper_subclass": self.wrapper_tensor,
        }
        self.builders = {id(f): f for f in (*builders.values(), nested_parts.jagged_of)}
        self.globals = {
            **{f"torch._utils.{name}": Global(function, function) for name, function in builders.items()},
            "torch.nn.parameter.Parameter": Global(Parameter, self.new_parameter),
            f"{JAGGED}._rebuild_njt": Global(nested_parts.jagged_of, nested_parts.jagged_of),
            f"{JAGGED}.NestedTensor": Global(nested_parts.NestedTensor),
            "torch._dynamo.decorators._DimRange": Global(nested_parts.Ignored, nested_parts.Ignored),
        }
        for name in ("_rebuild_from_type_v2", "_rebuild_from_type"):
            for module in ("torch._tensor", "torch.tensor"):
                self.globals[f"{module}.{name}"] = Global(self.from_type, self.from_type)

    # -- the policy

    def find(self, name: str, where: Callable[[], str]) -> Global:
        """The closed list, then what the user allowed; UnpicklingError for everything else."""
        found = self.globals.get(name) or CONSTANTS.get(name)
        if found is not None:
            return found
        if name in self.trusted and not blocked(name):
            value = self.trusted[name]
            return Global(value, value if callable(value) else None)
        if self.trusting and name not in UNSUPPORTED:
            return importable(name, where)
        if name in UNSUPPORTED:
            raise UnpicklingError(f"xtensor has no {UNSUPPORTED[name]}: cannot load {name} ({where()})")
        raise refusal(name, where())

    def trusts(self, kind: type[Any]) -> bool:
        own = kind is nested_parts.Ignored or kind is ScriptObject
        return self.trusting or own or kind in self.trusted_types

    def persistent(self, saved: Any) -> LoadedStorage | TypedStorage:
        """The storage that a pickle names; the same for the same key."""
        if type(saved) is not tuple or len(saved) not in (5, 6) or text(saved[0]) != "storage":
            raise UnpicklingError("Only persistent_load of storage is allowed")
        _, kind, key, location, count = saved[:5]
        if len(saved) == 6 and saved[5] is not None:
            raise UnpicklingError("xtensor does not read views of storages, which PyTorch wrote before 0.4")
        key, location = text(key), text(location)
        if type(kind) is not StorageType or type(count) is not int or count < 0:
            raise UnpicklingError("a storage is named by its type, key, location and size")
        dtype = kind.dtype or dtypes.uint8
        nbytes = count * dtype.itemsize
        size, storage = self.storages.get(key, (nbytes, None))
        if size != nbytes:
            raise FileFormatError(f"the storage {key!r} is named with {nbytes} bytes and with {size}")
        if storage is None:
            storage = self.open(key, nbytes, dtype, location)
            self.storages[key] = nbytes, storage
        return named(storage, kind.dtype)

    def open(self, key: str, nbytes: int, dtype: dtypes.dtype, location: str) -> Storage:
        host = devices.device("cpu")
        where = restored(
            self.map_location,
            location,
            lambda: UntypedStorage(LazyStorage(self.open_storage(key, nbytes, dtype, host))),
        )
        if isinstance(where, UntypedStorage):
            return where._xt_storage
        return LazyStorage(self.open_storage(key, nbytes, dtype, where))

    def finish(self) -> None:
        """Read everything that is still unread."""
        for _, storage in self.storages.values():
            fill(storage)

    # -- what the names make

    def tensor_v1(self, storage: Any, offset: Any, size: Any, stride: Any) -> Tensor:
        return self.tensor(storage, None, offset, size, stride)

    def tensor_v2(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        backward_hooks: Any,
        metadata: Any = None,
    ) -> Tensor:
        return self.tensor(storage, None, offset, size, stride, requires_grad, metadata)

    def tensor_v3(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any,
        backward_hooks: Any,
        dtype: Any,
        metadata: Any = None,
    ) -> Tensor:
        return self.tensor(storage, dtype, offset, size, stride, requires_grad, metadata)

    def tensor(
        self,
        loaded: Any,
        dtype: Any,
        offset: Any,
        size: Any,
        stride: Any,
        requires_grad: Any = False,
        metadata: Any = None,
    ) -> Tensor:
        """A leaf over (part of) a storage, its geometry checked."""
        if not isinstance(loaded, (LoadedStorage, TypedStorage)):
            raise TypeError("a tensor is rebuilt from a storage")
        dtype = dtype if dtype is not None else loaded.dtype
        if not isinstance(dtype, dtypes.dtype):
            raise TypeError("a tensor is rebuilt with a dtype")
        storage = named_by(loaded)
        if dtype in dtypes.STORED:
            made = self.tensor(loaded, dtypes.STORED[dtype], offset, size, stride)
            return wanting(stored_as(made, dtype), requires_grad)
        sizes, strides = whole_numbers(size), whole_numbers(stride)
        check_geometry(sizes, strides, offset, dtype, storage.nbytes())
        conj, neg = bits_of(metadata)
        unread = unread_of(storage)
        if unread is not None and unread.dtype != dtype.numpy:
            unread.retype(dtype)
        made = tensor_over(storage, make_view(storage, storage, dtype, sizes, strides, offset, conj, neg))
        if unread is not None and unread.dtype == dtype.numpy and not (conj or neg or offset):
            whole = math.prod(sizes) == math.prod(unread.shape)
            if whole and strides == geometry.contiguous_strides(sizes):
                unread.claim(made, sizes)
        return wanting(made, requires_grad)

    def parameter(self, data: Any, requires_grad: Any, backward_hooks: Any) -> Any:
        if not isinstance(data, Tensor) or type(requires_grad) is not bool:
            raise TypeError("a Parameter is rebuilt from a Tensor and a bool")
        check_differentiable(data, requires_grad)
        made = Parameter(data, requires_grad)
        unread = unread_of(data._xt_storage)
        if unread is not None and any(reference() is data for reference in unread.tensors):
            unread.claim(made, tuple(made.shape))
        return made

    def new_parameter(self, data: Any = None, requires_grad: Any = True) -> Any:
        return self.parameter(data, requires_grad, None)

    def parameter_with_state(self, data: Any, requires_grad: Any, backward_hooks: Any, state: Any) -> Any:
        made = self.parameter(data, requires_grad, backward_hooks)
        self.set_attributes(made, state)
        return made

    def from_type(self, function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
        """A tensor with Python attributes, or of a class that the user allowed."""
        build = self.builders.get(id(function))
        if build is None or type(arguments) is not tuple:
            raise TypeError("a tensor is rebuilt by one of the functions that rebuild tensors")
        made = build(*arguments)
        if build is nested_parts.jagged_of:
            return made  # its attributes repeat its parts
        if kind not in (Tensor, Parameter, type(made)):
            if not (isinstance(kind, type) and issubclass(kind, Tensor) and self.trusts(kind)):
                raise TypeError("a tensor is rebuilt as a Tensor, a Parameter or a class that was allowed")
            asked = made.requires_grad
            made = wanting(share(kind, made), asked)
        if isinstance(made, Tensor) and "__setstate__" in dir(type(made)):
            made.__setstate__(state)  # type: ignore[attr-defined]
        else:
            self.set_attributes(made, state)
        return made

    def set_attributes(self, tensor: Any, state: Any) -> None:
        attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
        if attributes is not None and type(attributes) is not dict:
            raise TypeError("the attributes of a tensor are a dict")
        if slots and not self.trusts(type(tensor)):
            raise TypeError("slots are set only in classes that were allowed")
        set_state(tensor, (attributes, slots))

    def meta_tensor(self, dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Tensor:
        if not isinstance(dtype, dtypes.dtype):
            raise TypeError("a meta tensor is rebuilt with a dtype")
        sizes, strides = whole_numbers(size), whole_numbers(stride)
        check_geometry(sizes, strides, 0, dtype, None)
        return wanting(empty_strided(sizes, strides, dtype=dtype, device="meta"), requires_grad)

    def sparse_tensor(self, layout: Any, data: Any) -> Tensor:
        if not isinstance(layout, dtypes.layout) or not isinstance(data, tuple):
            raise TypeError("a sparse tensor is rebuilt from a layout and its parts")
        count = 2 if layout is dtypes.sparse_coo else 3
        held, size, rest = data[:count], data[count : count + 1], data[count + 1 :]
        if len(held) < count or not size or not all(isinstance(t, Tensor) for t in held):
            raise TypeError("a sparse tensor is rebuilt from tensors and sizes")
        return rebuilt_sparse(layout, held, whole_numbers(size[0]), bool(rest and rest[0] is True))

    def quantized_tensor(
        self,
        storage: Any,
        offset: Any,
        size: Any,
        stride: Any,
        parameters: Any,
        requires_grad: Any = False,
        backward_hooks: Any = None,
    ) -> Tensor:
        if not isinstance(storage, TypedStorage) or storage.dtype not in dtypes.QUANTISED:
            raise TypeError("a quantized tensor is rebuilt from a storage of quantized elements")
        held = self.tensor(storage, dtypes.QUANTISED[storage.dtype], offset, size, stride)
        if type(parameters) is not tuple or not parameters:
            raise TypeError("a quantized tensor is rebuilt with a scheme and its parameters")
        scheme, *rest = parameters
        if scheme is dtypes.per_tensor_affine and [type(p) for p in rest] == [float, int]:
            return seen_as(held, per_tensor(*rest))
        kinds = [isinstance(p, Tensor) for p in rest]
        if scheme not in SCHEMES[1:] or kinds != [True, True, False] or type(rest[2]) is not int:
            raise TypeError("a quantized tensor is rebuilt with a scheme and its parameters")
        return seen_as(held, per_channel(*rest))

    def device_tensor(self, data: Any, dtype: Any, device: Any, requires_grad: Any) -> Tensor:
        if not isinstance(data, Tensor) or not isinstance(dtype, dtypes.dtype):
            raise TypeError("a tensor of another device is rebuilt from a Tensor and a dtype")
        where = restored(self.map_location, text(device), data.untyped_storage)
        place = where.device if isinstance(where, UntypedStorage) else where or place_of(text(device))
        return wanting(data.detach().to(device=place, dtype=dtype), requires_grad)

    def wrapper_tensor(
        self,
        kind: Any,
        dtype: Any,
        size: Any,
        stride: Any,
        offset: Any,
        layout: Any,
        device: Any,
        requires_grad: Any,
    ) -> Tensor:
        """A tensor whose class keeps its values elsewhere, among its attributes."""
        if not (isinstance(kind, type) and issubclass(kind, Tensor) and self.trusts(kind)):
            raise TypeError("a tensor without memory of its own is rebuilt as a class that was allowed")
        if (
            not isinstance(dtype, dtypes.dtype)
            or type(offset) is not int
            or not isinstance(device, devices.device)
        ):
            raise TypeError(
                "a tensor without memory of its own is rebuilt from sizes, an offset, a dtype and a device"
            )
        if callable(self.map_location):
            raise RuntimeError("Callable map_location not supported with _rebuild_wrapper_subclass")
        place = restored(self.map_location, str(device), UntypedStorage)
        made = wrapper(kind, whole_numbers(size), whole_numbers(stride), offset, dtype, place)
        return wanting(made, requires_grad)


def wanting(tensor: Tensor, requires_grad: Any) -> Tensor:
    if type(requires_grad) is not bool:
        raise TypeError("requires_grad is a bool")
    check_differentiable(tensor, requires_grad)
    return tensor.requires_grad_() if requires_grad else tensor


def check_differentiable(tensor: Tensor, requires_grad: bool) -> None:
    if requires_grad and not (tensor.dtype.is_floating_point or tensor.dtype.is_complex):
        raise TypeError(f"a tensor of {tensor.dtype} can require no gradient")


def text(value: Any) -> str:
    """A str of a pickle, which Python 2 may have written as bytes."""
    if type(value) is bytes:
        try:
            return value.decode("ascii")
        except UnicodeDecodeError:
            raise UnpicklingError("expected a str of ASCII") from None
    if type(value) is not str:
        raise UnpicklingError(f"expected a str, got {type(value).__name__}")
    return value


def bits_of(metadata: Any) -> tuple[bool, bool]:
    if metadata is None:
        return False, False
    if type(metadata) is not dict or not set(metadata) <= {"conj", "neg"}:
        raise TypeError("the metadata of a tensor are its conj and neg bits")
    return bool(metadata.get("conj")), bool(metadata.get("neg"))


def check_geometry(
    sizes: tuple[int, ...], strides: tuple[int, ...], offset: Any, dtype: dtypes.dtype, nbytes: int | None
) -> None:
    """Refuse a geometry that leaves its storage."""
    if type(offset) is not int or offset < 0 or len(sizes) != len(strides) or len(sizes) > MAX_DIMS:
        raise FileFormatError(f"a tensor has sizes {shown(sizes)}, strides {shown(strides)}")
    if min(sizes, default=0) < 0 or min(strides, default=0) < 0:
        raise FileFormatError(f"a tensor has negative sizes or strides: {shown(sizes)}, {shown(strides)}")
    if math.prod(sizes) * dtype.itemsize >= 1 << 62:
        raise FileFormatError(f"a tensor of sizes {shown(sizes)} is too large")
    last = sum((n - 1) * step for n, step in zip(sizes, strides)) + 1 if math.prod(sizes) else 0
    needed = (offset + last) * dtype.itemsize if last else 0
    if nbytes is not None and needed > nbytes:
        raise FileFormatError(
            f"setStorage: sizes {shown(sizes)}, strides {shown(strides)}, storage offset {offset}, and itemsize "
            f"{dtype.itemsize} requiring a storage size of {needed} are out of bounds for storage of size {nbytes}"
        )


def shown(numbers: tuple[int, ...]) -> str:
    listed = [str(n) if abs(n) < 1 << 64 else "..." for n in numbers[:16]]
    return f"[{', '.join(listed)}{', ...' if len(numbers) > 16 else ''}]"
