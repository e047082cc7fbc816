"""What is in a checkpoint, told without reading its tensors: names, sizes, sharing, and the globals that are refused.

A refused global is not called: a stand-in takes its place, and what would have been put into the object is looked at.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pickle import UnpicklingError
from typing import Any

import numpy as np

from .. import devices, dtypes, geometry
from ..nn.parameter import Parameter
from ..ops.tensor.typed_storages import TypedStorage
from ..tensor import Tensor
from . import legacy, npz, safetensors
from .allowed import user_globals
from .archive import first_name, is_zip
from .loading import read_zip
from .pickles import Global
from .rebuild import Rebuilder, text
from .source import FileLike, Source
from .storages import FileStorage, LoadedStorage, named_by

__all__ = ["Contents", "Entry", "Refused", "describe", "get_unsafe_globals_in_checkpoint"]

DEEPEST = 200


@dataclass
class Entry:
    """A tensor of a file. storage: the key of the bytes it is made of; tensors with the same key share them."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    storage: str
    location: str = "cpu"
    stride: tuple[int, ...] | None = None  # where it is not contiguous
    offset: int = 0
    requires_grad: bool = False
    parameter: bool = False


@dataclass
class Refused:
    """A global that `load` refuses: its name, where it stands first, and how often it is named."""

    name: str
    where: str
    count: int = 1


@dataclass
class Contents:
    """What a file holds: its format, tensors, storages (key to bytes), refused globals and other values."""

    format: str
    size: int
    tensors: list[Entry] = field(default_factory=list)
    storages: dict[str, int] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)

    def shared(self) -> dict[str, list[str]]:
        """The names of the tensors of each storage that several tensors share."""
        names: dict[str, list[str]] = {}
        for entry in self.tensors:
            names.setdefault(entry.storage, []).append(entry.name)
        return {key: found for key, found in names.items() if len(found) > 1}

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {**asdict(self), "shared": self.shared()}


class StandIn:
    """What takes the place of a refused global, and of the objects it would have made."""

    def __init__(self, name: str, arguments: tuple[Any, ...] = ()) -> None:
        self.name = name
        self.arguments = arguments
        self.states: list[Any] = []
        self.items: list[Any] = []
        self.pairs: list[tuple[Any, Any]] = []

    def __setstate__(self, state: Any) -> None:
        self.states.append(state)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.pairs.append((key, value))

    def append(self, item: Any) -> None:
        self.items.append(item)

    add = append


class Inspector(Rebuilder):
    """The policy that refuses nothing and calls nothing: tensors stay unread, the rest becomes stand-ins."""

    def __init__(self, open_storage: Any) -> None:
        super().__init__(open_storage, devices.device("cpu"))
        self.trusted, self.trusted_types = {}, {StandIn}
        self.allowed = user_globals()
        self.refused: dict[str, Refused] = {}
        self.located: dict[int, tuple[str, str]] = {}

    def find(self, name: str, where: Callable[[], str]) -> Global:
        try:
            return super().find(name, where)
        except UnpicklingError:
            pass
        if name not in self.allowed:
            known = self.refused.get(name)
            if known is None:
                self.refused[name] = Refused(name, where())
            else:
                known.count += 1
        stand_in = StandIn(name)
        return Global(stand_in, lambda *arguments, **named: StandIn(name, (*arguments, named)))

    def from_type(self, function: Any, kind: Any, arguments: Any, state: Any) -> Tensor:
        return super().from_type(function, Tensor if isinstance(kind, StandIn) else kind, arguments, state)

    def persistent(self, saved: Any) -> LoadedStorage | TypedStorage:
        loaded = super().persistent(saved)
        self.located[id(named_by(loaded))] = text(saved[2]), text(saved[3])
        return loaded


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """The names in a checkpoint that `load` would refuse: neither on the closed list nor added to it."""
    with Source.open(f) as source:
        inspector, _ = unpickle(source)
        return sorted(inspector.refused)


def unpickle(source: Source) -> tuple[Inspector, Any]:
    """The object of a checkpoint with its tensors unread, and the inspector that knows of them."""

    def fetch() -> np.ndarray[Any, Any]:
        raise RuntimeError("an inspected tensor is not read")

    if not is_zip(source):
        stream = legacy.Stream(source)
        inspector = Inspector(
            lambda key, nbytes, dtype, device: FileStorage(fetch, nbytes, dtype, device, stream.swapped)
        )
        return inspector, stream.unpickle(inspector)
    checkpoint = read_zip(source)

    def open_storage(key: str, nbytes: int, dtype: dtypes.dtype, device: devices.device) -> FileStorage:
        checkpoint.record(key, nbytes)
        return FileStorage(fetch, nbytes, dtype, device, checkpoint.swapped)

    inspector = Inspector(open_storage)
    return inspector, checkpoint.unpickle(inspector)


def describe(path: str | os.PathLike[str]) -> Contents:
    """What a file holds: PyTorch's zip or older format, safetensors (or an index of shards), `.npz`."""
    name = os.fspath(path)
    if os.path.isdir(name) or name.endswith(".json"):
        return describe_shards(name)
    with Source.open(name) as source:
        start = source.read(0, min(source.size, 9))
        if is_zip(source):
            if first_name(source).endswith(".npy"):
                with npz.checked(name) as archive:
                    return describe_npz(archive, source.size)
            return describe_checkpoint(source, "PyTorch zip")
        if start[8:] == b"{":
            return describe_safetensors(name)
        return describe_checkpoint(source, "PyTorch before 1.6")


def describe_checkpoint(source: Source, kind: str) -> Contents:
    inspector, made = unpickle(source)
    contents = Contents(kind, source.size, refused=list(inspector.refused.values()))
    contents.storages = {key: nbytes for key, (nbytes, _) in inspector.storages.items()}
    for name, value in named_values(made):
        if isinstance(value, (dict, list, tuple, set)):
            continue
        if not isinstance(value, Tensor):
            contents.values[name] = value.name if isinstance(value, StandIn) else type(value).__name__
            continue
        key, location = inspector.located.get(id(value._xt_storage), ("", "meta"))
        sizes, stride = tuple(value.shape), tuple(value.stride())
        contents.tensors.append(
            Entry(
                name,
                value.dtype.name,
                sizes,
                value.nbytes,
                key,
                location,
                None if stride == geometry.contiguous_strides(sizes) else stride,
                value.storage_offset(),
                value.requires_grad,
                isinstance(value, Parameter),
            )
        )
    return contents


def named_values(root: Any) -> Iterator[tuple[str, Any]]:
    """The tensors and other leaves of nested containers, each with its path; what was seen is not entered again."""
    seen: set[int] = set()
    waiting: list[tuple[str, Any, int]] = [("", root, 0)]
    while waiting:
        name, value, depth = waiting.pop()
        inner = list(children(value))
        if isinstance(value, (Tensor, StandIn)) or not inner:
            yield name or "(the object)", value
        if not inner or id(value) in seen or depth > DEEPEST:
            continue
        seen.add(id(value))
        waiting += [(joined(name, key), item, depth + 1) for key, item in reversed(inner)]


def children(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, (list, tuple)):
        yield from enumerate(value)
    elif isinstance(value, StandIn):
        yield from (
            (None, item)
            for item in (*value.arguments, *value.states)
            if isinstance(item, (dict, list, tuple))
        )
        yield from (
            (i, item) for i, item in enumerate((*value.arguments, *value.items)) if isinstance(item, Tensor)
        )
        yield from value.pairs


def joined(name: str, key: Any) -> str:
    if key is None:
        return name
    if isinstance(key, str):
        return f"{name}.{key}" if name else key
    return f"{name}[{key if isinstance(key, (int, float, bool)) else type(key).__name__}]"


def describe_safetensors(path: str) -> Contents:
    with safetensors.safe_open(path) as file:
        contents = Contents("safetensors", file.source.size, metadata=file.metadata())
        for name, entry in file.entries.items():
            contents.tensors.append(Entry(name, entry.dtype.name, entry.shape, entry.nbytes, name))
            contents.storages[name] = entry.nbytes
    return contents


def describe_shards(path: str) -> Contents:
    if os.path.isdir(path):
        path = os.path.join(path, "model.safetensors.index.json")
    files = safetensors.read_index(path)
    contents = Contents("safetensors in shards", 0)
    for file in dict.fromkeys(files.values()):
        shard = describe_safetensors(os.path.join(os.path.dirname(os.path.abspath(path)), file))
        contents.size += shard.size
        for entry in shard.tensors:
            if files.get(entry.name) == file:
                entry.storage = f"{file}/{entry.name}"
                contents.tensors.append(entry)
                contents.storages[entry.storage] = entry.nbytes
    return contents


def describe_npz(archive: zipfile.ZipFile, size: int) -> Contents:
    contents = Contents(".npz", size)
    for entry in archive.infolist():
        with archive.open(entry) as stream:
            shape, _, dtype = npz.read_header(stream, entry.filename)
            nbytes = entry.file_size - stream.tell()
        name = entry.filename.removesuffix(".npy")
        if dtype.hasobject:
            contents.refused.append(Refused("pickled Python objects", f"in the array {name}"))
        contents.tensors.append(Entry(name, str(dtype), tuple(shape), nbytes, name))
        contents.storages[name] = nbytes
    return contents
