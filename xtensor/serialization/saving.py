"""`save`: an object as PyTorch's zip format, under PyTorch's names, without PyTorch."""

from __future__ import annotations

import io
import os
import pickle
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import IO, Any

import numpy as np

from .. import devices, dtypes
from ..nn.parameter import Parameter, UninitializedBuffer, UninitializedParameter
from ..operators.below.dispatching import slots_of
from ..ops.tensor.export import rebuild_tensor, rebuild_wrapper
from ..ops.tensor.typed_storages import TypedStorage
from ..quantized.layout import QuantizedTensor
from ..quantized.packed import ScriptObject
from ..sparse.layout import SparseTensor
from ..storage import Storage, UntypedStorage, WrapperStorage
from ..stored import StoredTensor
from ..tensor import Size, Tensor, sizes_of, strides_of
from . import nested_parts
from .archive_writer import ALIGNMENT, ArchiveWriter
from .atomic import replacing
from .legacy import MAGIC, PROTOCOL
from .places import tag_of
from .rebuild import SCHEMES, STORAGE_TYPES
from .source import FileLike

__all__ = ["save"]

# Of C, as files of the older format tell them.
TYPE_SIZES = {"short": 2, "int": 4, "long": 4}


def save(
    obj: Any,
    f: FileLike,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a path or a stream, in the format that `torch.load(f, weights_only=True)` reads.

    Tensors that share memory share it again after loading; a view takes its whole storage along. A path is replaced
    only once everything is written and on the disk: after a crash the file that was there is whole.

    With `_use_new_zipfile_serialization=False` the format is that of PyTorch before 1.6.

    Differs from PyTorch: there is one pickler.

    Raises: PicklingError for objects that pickle does not take.

    >>> import io
    >>> file = io.BytesIO()
    >>> xtensor.save({"weight": xtensor.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> xtensor.load(file)["weight"]
    tensor([1., 1.])
    """
    if pickle_module not in (None, pickle):
        raise ValueError("xtensor.save has its own pickler: pickle_module cannot be given")
    root = "archive"

    def put(stream: IO[bytes]) -> None:
        if _use_new_zipfile_serialization:
            write(obj, stream, root, pickle_protocol, not _disable_byteorder_record)
        else:
            write_older(obj, stream, pickle_protocol)

    if isinstance(f, (str, os.PathLike)):
        root = os.path.splitext(os.path.basename(os.fspath(f)))[0] or root
        with replacing(f) as stream:
            put(stream)
    elif not hasattr(f, "write"):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, but got {type(f)}"
        )
    else:
        put(f)
        if hasattr(f, "flush"):
            f.flush()


def write(obj: Any, stream: IO[bytes], root: str, protocol: int, tells_order: bool) -> None:
    pickled = io.BytesIO()
    pickler = Pickler(pickled, protocol)
    pickler.dump(obj)
    archive = ArchiveWriter(stream, root)
    archive.write("data.pkl", pickled.getbuffer())
    archive.write(".format_version", b"1")
    archive.write(".storage_alignment", str(ALIGNMENT).encode())
    if tells_order:
        archive.write("byteorder", sys.byteorder.encode())
    for key, storage in enumerate(pickler.storages):
        archive.write(f"data/{key}", bytes_of(storage))
    archive.write("version", b"3\n")
    archive.close()


def write_older(obj: Any, stream: IO[bytes], protocol: int) -> None:
    """The format before PyTorch 1.6, which `legacy` reads."""
    info = {
        "protocol_version": PROTOCOL,
        "little_endian": sys.byteorder == "little",
        "type_sizes": TYPE_SIZES,
    }
    for part in (MAGIC, PROTOCOL, info):
        pickle.dump(part, stream, protocol)
    pickler = OlderPickler(stream, protocol)
    pickler.dump(obj)
    keys = {pickler.keys[storage]: (storage, dtype) for storage, dtype in pickler.storages.items()}
    pickle.dump(sorted(keys), stream, protocol)
    for key in sorted(keys):
        storage, dtype = keys[key]
        stream.write(struct.pack("=q", storage.nbytes() // dtype.itemsize))
        stream.write(bytes_of(storage).data)


def bytes_of(storage: Storage) -> np.ndarray[Any, Any]:
    """A storage's bytes on the host, one storage at a time."""
    values = np.ascontiguousarray(np.asarray(storage.array))
    return values.reshape(-1).view(np.uint8)


class Name:
    """A global of PyTorch's, which need not be installed to be named."""

    __slots__ = ("module", "name")

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self) -> None:
        """Only so that pickle takes it for the function of a reduce value."""


def rebuilder(name: str) -> Name:
    return Name("torch._utils", name)


SIZE, DEVICE, UNTYPED = (
    Name("torch", "Size"),
    Name("torch", "device"),
    Name("torch.storage", "UntypedStorage"),
)
TENSOR_V2, TENSOR_V3 = rebuilder("_rebuild_tensor_v2"), rebuilder("_rebuild_tensor_v3")
PARAMETER, PARAMETER_WITH_STATE = rebuilder("_rebuild_parameter"), rebuilder("_rebuild_parameter_with_state")
WRAPPER = rebuilder("_rebuild_wrapper_subclass")
META = rebuilder("_rebuild_meta_tensor_no_storage")
SPARSE = rebuilder("_rebuild_sparse_tensor")
NESTED = rebuilder("_rebuild_nested_tensor")
JAGGED = Name("torch.nested._internal.nested_tensor", "_rebuild_njt")
JAGGED_CLASS = Name("torch.nested._internal.nested_tensor", "NestedTensor")
QUANTISED = rebuilder("_rebuild_qtensor")
FROM_TYPE = Name("torch._tensor", "_rebuild_from_type_v2")
LAYOUT = Name("torch.serialization", "_get_layout")
STORAGES = {dtype: Name("torch", name) for name, dtype in STORAGE_TYPES.items()}
# Classes and values that are named differently there.
NAMES: dict[int, Name] = {
    id(Tensor): Name("torch", "Tensor"),
    id(Parameter): Name("torch.nn.parameter", "Parameter"),
    id(UninitializedParameter): Name("torch.nn.parameter", "UninitializedParameter"),
    id(UninitializedBuffer): Name("torch.nn.parameter", "UninitializedBuffer"),
    id(Size): SIZE,
    id(ScriptObject): Name("torch", "ScriptObject"),
    id(devices.device): DEVICE,
    **{id(dtype): Name("torch", dtype.name) for dtype in (*dtypes.ALL, *dtypes.QUANTISED, *dtypes.STORED)},
    **{id(scheme): Name("torch", scheme.name) for scheme in SCHEMES},
    **{
        id(order): Name("torch", order.name)
        for order in (
            dtypes.contiguous_format,
            dtypes.channels_last,
            dtypes.channels_last_3d,
            dtypes.preserve_format,
        )
    },
}


class Pickler(pickle._Pickler):
    """Python's own pickler, with tensors as PyTorch pickles them and storages set aside."""

    # Not in the stubs of the standard library.
    write: Callable[[bytes], Any]
    memoize: Callable[[Any], None]
    proto: int

    def __init__(self, stream: IO[bytes], protocol: int) -> None:
        super().__init__(stream, protocol)
        self.storages: dict[Storage, dtypes.dtype] = {}
        self.keys: dict[Storage, str] = {}

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, StorageOf):
            return self.storage_id(obj.storage, obj.dtype)
        if isinstance(obj, UntypedStorage):
            return self.storage_id(obj._xt_storage, None)
        if isinstance(obj, TypedStorage):
            return self.storage_id(obj.untyped()._xt_storage, obj.dtype)
        return None

    def storage_id(self, storage: Storage, dtype: dtypes.dtype | None) -> Any:
        """How the pickle names a storage: its type, key, place and number of elements."""
        nbytes = storage.nbytes()
        element = dtype or dtypes.uint8
        if nbytes and self.storages.setdefault(storage, element) is not element:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        self.storages.setdefault(storage, element)
        key = self.keys.setdefault(storage, str(len(self.keys)))
        kind = UNTYPED if dtype is None else STORAGES[dtype]
        return "storage", kind, key, tag_of(storage.device), nbytes // element.itemsize

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind is Name:
            return obj.name
        if isinstance(obj, Tensor):
            return self.reduce_tensor(obj)
        found = NAMES.get(id(obj))
        if found is not None:
            return found.name
        if kind is Size:
            return SIZE, (tuple(obj),)
        if kind is devices.device:
            kind_name = "cuda" if obj.type == "rocm" else obj.type
            return DEVICE, (kind_name,) if obj.index is None else (kind_name, obj.index)
        if kind is dtypes.layout:
            return LAYOUT, (f"torch.{obj.name}",)
        return NotImplemented

    def save_global(self, obj: Any, name: Any = None) -> None:
        target = obj if type(obj) is Name else NAMES.get(id(obj))
        if target is None:
            super().save_global(obj, name)  # pyright: ignore[reportAttributeAccessIssue]
            return
        self.write(pickle.GLOBAL + f"{target.module}\n{target.name}\n".encode("ascii"))
        self.memoize(obj)

    def reduce_tensor(self, tensor: Tensor) -> Any:
        """A tensor as a call of one of PyTorch's functions that rebuild them."""
        kind = type(tensor)
        if isinstance(tensor, SparseTensor):
            coalesced = (tensor._coalesced,) if tensor.layout is dtypes.sparse_coo else ()
            return SPARSE, (tensor.layout, (*tensor._held, tensor.shape, *coalesced))
        if nested_parts.is_nested(tensor):
            if nested_parts.is_jagged(tensor):
                return FROM_TYPE, (JAGGED, JAGGED_CLASS, (nested_parts.jagged_parts(tensor),), {})
            return NESTED, nested_parts.strided_parts(tensor)
        if isinstance(tensor, QuantizedTensor):
            quantizer, geometry = tensor._quantizer, (tuple(tensor.shape), tuple(tensor.stride()))
            parameters = quantizer if quantizer.axis is not None else quantizer[:3]
            held = StorageOf(tensor._xt_storage, tensor.dtype)
            place = (held, tensor.storage_offset(), *geometry)
            return QUANTISED, (*place, tuple(parameters), False, OrderedDict())
        if kind is StoredTensor:
            return rebuilding(tensor)
        state = tensor.__dict__ or None
        if kind in (UninitializedParameter, UninitializedBuffer):
            return tensor.__reduce_ex__(self.proto)
        if kind is Parameter:
            arguments = (tensor.detach(), tensor.requires_grad, OrderedDict())
            return (PARAMETER, arguments) if state is None else (PARAMETER_WITH_STATE, (*arguments, state))
        if kind is not Tensor and overridden(kind):
            found = tensor.__reduce_ex__(self.proto)
            if not (isinstance(found, tuple) and found[0] in (rebuild_tensor, rebuild_wrapper)):
                return found
            # Which is what Tensor's own method says, to those who ask it.
        function, arguments = rebuilding(tensor)
        if state is None and kind is Tensor:
            return function, arguments
        slots = {name: getattr(tensor, name) for name in slots_of(kind) if hasattr(tensor, name)}
        return FROM_TYPE, (function, kind, arguments, (state or {}, slots) if slots else state or {})


class OlderPickler(Pickler):
    """As pickles were before PyTorch 1.6: every storage has a type, and its name says, too, that it is no part of another."""

    def storage_id(self, storage: Storage, dtype: dtypes.dtype | None) -> Any:
        return (*super().storage_id(storage, dtype or dtypes.uint8), None)


class StorageOf:
    """A storage as a tensor names it: with the type of its elements."""

    __slots__ = ("dtype", "storage")

    def __init__(self, storage: Storage, dtype: dtypes.dtype | None) -> None:
        self.storage, self.dtype = storage, dtype


def overridden(kind: type[Tensor]) -> bool:
    """Whether a class of tensors has a way of its own to be pickled."""
    return kind.__reduce_ex__ is not Tensor.__reduce_ex__ or kind.__reduce__ is not Tensor.__reduce__


def rebuilding(tensor: Tensor) -> tuple[Name, tuple[Any, ...]]:
    sizes, strides = tuple(map(int, sizes_of(tensor))), tuple(map(int, strides_of(tensor)))
    dtype, wants = tensor.dtype, tensor.requires_grad
    if isinstance(tensor._xt_storage, WrapperStorage):
        place = tensor.storage_offset(), tensor.layout, tensor.device
        return WRAPPER, (type(tensor), dtype, sizes, strides, *place, wants)
    if tensor.is_meta:
        return META, (dtype, sizes, strides, wants)
    bits = {name: True for name, is_set in (("conj", tensor.is_conj()), ("neg", tensor.is_neg())) if is_set}
    metadata = (bits,) if bits else ()
    common = (tensor.storage_offset(), sizes, strides, wants, OrderedDict())
    if dtype in STORAGES:
        return TENSOR_V2, (StorageOf(tensor._xt_storage, dtype), *common, *metadata)
    return TENSOR_V3, (StorageOf(tensor._xt_storage, None), *common, dtype, *metadata)
