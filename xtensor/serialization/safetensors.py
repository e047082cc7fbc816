"""safetensors files, through the safetensors package: whole, one tensor at a time, lazily, and in shards.

The package checks the header; the bytes are mapped and read when a tensor is touched.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from .. import devices, dtypes
from ..devices.extras import missing
from ..storage import LazyStorage, Storage
from ..tensor import Tensor, host_array, make_view, tensor_over
from .atomic import replacing_path
from .errors import FileFormatError
from .source import MappedSource
from .storages import FileStorage, fill

__all__ = ["Entry", "load_file", "load_sharded", "safe_open", "save_file"]

LARGEST_INDEX = 1 << 28

DTYPES: dict[str, dtypes.dtype] = {
    "BOOL": dtypes.bool,
    "U8": dtypes.uint8,
    "I8": dtypes.int8,
    "U16": dtypes.uint16,
    "I16": dtypes.int16,
    "U32": dtypes.uint32,
    "I32": dtypes.int32,
    "U64": dtypes.uint64,
    "I64": dtypes.int64,
    "F16": dtypes.float16,
    "BF16": dtypes.bfloat16,
    "F32": dtypes.float32,
    "F64": dtypes.float64,
    "C64": dtypes.complex64,
    "F8_E4M3": dtypes.float8_e4m3fn,
    "F8_E5M2": dtypes.float8_e5m2,
    "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz,
    "F8_E8M0": dtypes.float8_e8m0fnu,
}


def package() -> Any:
    """The safetensors package; ImportError says how to get it."""
    try:
        import safetensors
    except ImportError as error:
        raise missing("a safetensors file", "safetensors", "safetensors") from error
    return safetensors


class Entry(NamedTuple):
    """A tensor of a file: its type and sizes, and where its bytes are."""

    dtype: dtypes.dtype
    shape: tuple[int, ...]
    start: int
    nbytes: int


class safe_open:
    """A safetensors file whose tensors are read one at a time: `with safe_open(path) as file: file.get_tensor(name)`.

    Tensors stay good after the file is closed.
    """

    def __init__(
        self, filename: str | os.PathLike[str], framework: str = "xtensor", device: devices.DeviceLike = None
    ) -> None:
        if framework not in ("xtensor", "xt", "pt"):
            raise ValueError(f"this safe_open gives tensors of xtensor, not of {framework!r}")
        self.device = devices.resolve(device)
        library = package()
        try:
            handle = library.safe_open(os.fspath(filename), framework="numpy")
        except library.SafetensorError as error:
            raise FileFormatError(f"{os.fspath(filename)} is no safetensors file: {error}") from error
        with handle:
            self._metadata = dict(handle.metadata() or {})
            kinds = {name: handle.get_slice(name) for name in handle.offset_keys()}
            described = [(name, kind.get_dtype(), tuple(kind.get_shape())) for name, kind in kinds.items()]
        self.source = MappedSource(filename)
        self.entries = self.locate(described)

    def locate(self, described: list[tuple[str, str, tuple[int, ...]]]) -> dict[str, Entry]:
        """Where each tensor lies: one behind the other, behind the header."""
        at = 8 + int.from_bytes(self.source.read(0, 8), "little")
        entries: dict[str, Entry] = {}
        for name, kind, shape in described:
            dtype = DTYPES.get(kind)
            if dtype is None:
                raise FileFormatError(f"the tensor {name!r} has the type {kind}, which xtensor does not have")
            nbytes = math.prod(shape) * dtype.itemsize
            self.source.check(at, nbytes)
            entries[name] = Entry(dtype, shape, at, nbytes)
            at += nbytes
        return entries

    def __enter__(self) -> safe_open:
        return self

    def __exit__(self, *_: object) -> None:
        self.source.__exit__()

    def keys(self) -> list[str]:
        """The names of the tensors."""
        return sorted(self.entries)

    def offset_keys(self) -> list[str]:
        """The names of the tensors, as they lie in the file."""
        return list(self.entries)

    def metadata(self) -> dict[str, str]:
        """What the file says of itself."""
        return dict(self._metadata)

    def entry(self, name: str) -> Entry:
        """What is known of a tensor without reading it."""
        found = self.entries.get(name)
        if found is None:
            raise KeyError(f"the file has no tensor {name!r}")
        return found

    def get_tensor(self, name: str, lazy: bool = False) -> Tensor:
        """A tensor of the file; if `lazy`, its bytes are read when it is touched."""
        entry = self.entry(name)
        source = self.source

        def fetch() -> np.ndarray[Any, Any]:
            return source.read_array(entry.start, entry.nbytes)

        unread = FileStorage(fetch, entry.nbytes, entry.dtype, self.device, mapped=True)
        storage = LazyStorage(unread)
        made = covering(storage, entry)
        unread.claim(made, entry.shape)
        if not lazy:
            fill(storage)
        return made

    def get_slice(self, name: str) -> Slice:
        """A tensor to be indexed before it is read: `file.get_slice(name)[:, 3:5]` reads those bytes only."""
        return Slice(self, name)


class Slice:
    """A tensor in a file, of which only what is indexed is read."""

    def __init__(self, file: safe_open, name: str) -> None:
        self.file, self.found = file, file.entry(name)

    def get_shape(self) -> list[int]:
        return list(self.found.shape)

    def get_dtype(self) -> str:
        return next(kind for kind, dtype in DTYPES.items() if dtype is self.found.dtype)

    def __getitem__(self, index: Any) -> Tensor:
        entry = self.found
        raw = self.file.source.read_array(entry.start, entry.nbytes)
        values = np.array(raw.view(entry.dtype.numpy).reshape(entry.shape)[index])
        whole = Entry(entry.dtype, values.shape, 0, values.nbytes)
        return covering(Storage(devices.put(values, self.file.device)), whole)


def covering(storage: Storage, entry: Entry) -> Tensor:
    strides = tuple(math.prod(entry.shape[axis + 1 :]) for axis in range(len(entry.shape)))
    return tensor_over(storage, make_view(storage, storage, entry.dtype, entry.shape, strides, 0))


def load_file(
    filename: str | os.PathLike[str], device: devices.DeviceLike = None, *, lazy: bool = False
) -> dict[str, Tensor]:
    """The tensors of a file by name; if `lazy`, the bytes of each are read when it is touched."""
    with safe_open(filename, device=device) as file:
        return {name: file.get_tensor(name, lazy) for name in file.entries}


def load_sharded(
    index: str | os.PathLike[str], device: devices.DeviceLike = None, *, lazy: bool = False
) -> dict[str, Tensor]:
    """The tensors of a checkpoint in several files, by its `model.safetensors.index.json` (or the folder it is in).

    The index maps names to files next to it; a file that leads elsewhere is refused.
    """
    path = os.fspath(index)
    if os.path.isdir(path):
        path = os.path.join(path, "model.safetensors.index.json")
    folder = os.path.dirname(os.path.abspath(path))
    files: dict[str, safe_open] = {}
    try:
        found: dict[str, Tensor] = {}
        for name, file in read_index(path).items():
            if file not in files:
                files[file] = safe_open(os.path.join(folder, file), device=device)
            if name not in files[file].entries:
                raise FileFormatError(f"{file} has no tensor {name!r}, which the index promises")
            found[name] = files[file].get_tensor(name, lazy)
        return found
    finally:
        for opened in files.values():
            opened.__exit__()


def read_index(path: str) -> dict[str, str]:
    """The map from names to files of an index, each file one in its folder."""
    if os.path.getsize(path) > LARGEST_INDEX:
        raise FileFormatError(f"{path} is too large for an index")
    with open(path, "rb") as stream:
        try:
            index = json.load(stream)
            names = index["weight_map"]
            pairs = {str(name): str(file) for name, file in names.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FileFormatError(f"{path} is no index of a sharded checkpoint: {error!r}") from error
    for file in pairs.values():
        if file != os.path.basename(file) or file in ("", ".", "..") or "\\" in file or "\0" in file:
            raise FileFormatError(f"the index names a file outside its folder: {file[:80]!r}")
    return pairs


def save_file(
    tensors: Mapping[str, Tensor], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Write tensors by name to a file, which is replaced only once it is whole.

    The format knows neither strides nor shared memory: views are written as they read, and tensors that share memory
    are refused (RuntimeError), for they would come back apart.
    """
    library = package()
    owners: dict[int, str] = {}
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected xtensor.Tensor but received {type(tensor)}")
        other = owners.setdefault(id(tensor._xt_storage), name)
        if other != name and tensor.numel():
            raise RuntimeError(
                f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when "
                f"loading them again: {other!r}, {name!r}. Clone one of them, or use xtensor.save, which keeps the sharing."
            )
        if tensor.dtype not in DTYPES.values():
            raise ValueError(f"safetensors has no type for {tensor.dtype} (tensor {name!r})")
        arrays[name] = np.ascontiguousarray(host_array(tensor.detach())).reshape(tuple(tensor.shape))
    specs = {
        name: library.TensorSpec(
            dtype=array.dtype.name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
        )
        for name, array in arrays.items()
    }
    with replacing_path(filename) as aside:
        library.serialize_file(specs, aside, metadata=None if metadata is None else dict(metadata))
