"""PyTorch's own distributed checkpoints, read: an index that is a pickle, and files of saved tensors one behind the other."""

from __future__ import annotations

import io
import pathlib
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import numpy as np

from ... import dtypes
from ...serialization import load as load_file
from ...serialization.pickles import Global, Machine, Reader
from ...serialization.source import Source
from ...tensor import host_array
from .layout import name_of

__all__ = ["opened"]


class Record:
    """An object of the index: what it was given, and nothing that it could do."""

    def __init__(self, *given: Any) -> None:
        self.state: Any = given

    def __setstate__(self, state: Any) -> None:
        self.state = state
        if isinstance(state, dict):
            self.__dict__.update(state)


CALLED: dict[str, Callable[..., Any]] = {
    "torch.Size": lambda sizes=(): tuple(sizes),
    "torch.serialization._get_layout": lambda name: name,
    "pathlib.PosixPath": lambda *parts: "/".join(parts),
    "pathlib.WindowsPath": lambda *parts: "/".join(parts),
    "collections.OrderedDict": dict,
}
"""What the index calls, and what that gives."""


class _Index:
    """The policy of the index: `torch.distributed`'s classes are records, and little else may be named."""

    def find(self, name: str, where: Callable[[], str]) -> Global:
        """What a name stands for; UnpicklingError for what an index has no use for."""
        if name in CALLED:
            return Global(CALLED[name], CALLED[name])
        home, _, last = name.rpartition(".")
        if home == "torch" and isinstance(getattr(dtypes, last, None), dtypes.dtype):
            return Global(getattr(dtypes, last).numpy.name)
        if home.startswith("torch.distributed."):
            return Global(Record, Record)
        raise UnpicklingError(f"the index of a checkpoint names {name} ({where()})")

    def trusts(self, kind: type[Any]) -> bool:
        """Records alone have a state."""
        return kind is Record

    def persistent(self, saved: Any) -> Any:
        """An index holds no tensors."""
        raise UnpicklingError("the index of a checkpoint holds a storage")


def opened(path: pathlib.Path) -> tuple[dict[str, Any], dict[str, Any], Callable[..., Any]]:
    """Of a checkpoint whose index this is: its tensors as the library's own index says them, the other values with their paths by name, and what
    reads a part.
    """
    with Source.open(path) as source:
        index = Machine(Reader(source, 0, source.size, path.name), _Index()).load()
    paths = getattr(index, "planner_data", None) or {}
    places = {key: paths.get(key, (key,)) for key in index.state_dict_metadata}
    names = {key: name_of(path) for key, path in places.items()}
    lengths: dict[tuple[str, int], int] = {}
    where: dict[tuple[str, Any], Any] = {}
    for place, info in index.storage_data.items():
        lengths[info.relative_path, info.offset] = info.length
        where[place.fqn, getattr(place, "offset", None)] = info
    files: dict[str, Any] = {}

    def value(name: str, offset: int) -> Any:
        if name not in files:
            files[name] = np.memmap(path.parent / name, np.uint8, "r")
        return load_file(
            io.BytesIO(files[name][offset : offset + lengths[name, offset]].tobytes()), map_location="cpu"
        )

    def read(name: str, offset: int, count: int) -> np.ndarray[Any, Any]:
        if count == 0:
            return np.zeros(0, np.uint8)
        return np.ascontiguousarray(host_array(value(name, offset))).reshape(-1).view(np.uint8)

    tensors: dict[str, Any] = {}
    held: dict[str, Any] = {}
    for key, entry in index.state_dict_metadata.items():
        if not hasattr(entry, "chunks"):
            info = where[key, None]
            held[names[key]] = places[key], value(info.relative_path, info.offset)
            continue
        parts = []
        for chunk in entry.chunks:
            info = where[key, tuple(chunk.offsets)]
            parts.append(
                {
                    "file": info.relative_path,
                    "offset": info.offset,
                    "start": list(chunk.offsets),
                    "size": list(chunk.sizes),
                }
            )
        dtype = getattr(entry.properties, "dtype", None) or entry.properties.state[0]
        tensors[names[key]] = {
            "shape": list(entry.size),
            "dtype": dtype,
            "path": list(places[key]),
            "parts": parts,
        }
    return tensors, held, read
