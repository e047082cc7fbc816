"""`save`, `async_save` and `load`: each process writes and reads its own parts, and the index comes last."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import uuid
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from ... import devices
from ...engine.modes import no_grad
from ...serialization import load as load_file
from ...serialization import save as save_file
from ...tensor import Tensor, array_of, wrap
from .. import collectives, objects
from ..group import ProcessGroup, chosen, is_initialized
from ..store import another
from . import pytorch
from .layout import SEPARATOR, flattened, name_of, own_boxes, put_back, read_box, stateful

__all__ = ["async_save", "load", "save"]

INDEX = ".metadata"
ALIGNED = 64


class _Parts:
    """What one process writes: bytes one after the other, and where each box is."""

    def __init__(self, state: dict[str, Any], mark: str, rank: int) -> None:
        self.file = f"{mark}-{rank}.distcp"
        self.tensors: dict[str, dict[str, Any]] = {}
        self.objects: list[tuple[tuple[Any, ...], Any]] = []
        self.arrays: list[tuple[int, Any]] = []
        offset = 0
        for path, value in flattened(stateful(state)):
            if not isinstance(value, Tensor):
                self.objects.append((path, value))
                continue
            parts = []
            for (start, size), array in own_boxes(value, rank == 0):
                parts.append({"file": self.file, "offset": offset, "start": list(start), "size": list(size)})
                self.arrays.append((offset, array))
                offset += -(-array.nbytes // ALIGNED) * ALIGNED
            self.tensors[name_of(path)] = {
                "shape": list(value.shape),
                "dtype": value.dtype.numpy.name,
                "path": [key if isinstance(key, int) else str(key) for key in path],
                "parts": parts,
            }

    def on_host(self) -> None:
        """Copy the values, so that what is written next to the tensors does not reach them."""
        self.arrays = [(offset, np.array(array)) for offset, array in self.arrays]

    def write(self, folder: pathlib.Path) -> None:
        """Write the bytes, and have them on the disk."""
        with (folder / self.file).open("wb") as file:
            for offset, array in self.arrays:
                file.seek(offset)
                file.write(np.ascontiguousarray(np.asarray(array)).tobytes())
            finish(file)


def finish(file: Any) -> None:
    """Have a file's content on the disk."""
    file.flush()
    os.fsync(file.fileno())


def folder_of(checkpoint_id: Any, holder: Any) -> pathlib.Path:
    """The folder of a checkpoint."""
    path = checkpoint_id if checkpoint_id is not None else getattr(holder, "path", None)
    if path is None:
        raise ValueError("a checkpoint needs checkpoint_id=, the folder that it is in")
    return pathlib.Path(path)


def taking_part(group: Any, no_dist: bool) -> ProcessGroup | None:
    """The processes that save or load together; None for this one alone."""
    return chosen(group) if is_initialized() and not no_dist else None


def rank_in(group: ProcessGroup | None) -> int:
    """The rank of this process among those that take part."""
    return 0 if group is None else group.rank()


def together(parts: _Parts, group: ProcessGroup | None) -> list[dict[str, Any]]:
    """What all processes have to write."""
    found: list[Any] = [parts.tensors]
    if group is not None:
        objects.all_gather_object(found, parts.tensors, group)
    return found


def index_of(every: list[dict[str, Any]], mark: str) -> dict[str, Any]:
    """The index of a checkpoint."""
    tensors: dict[str, Any] = {}
    for each in every:
        for name, entry in each.items():
            known = tensors.setdefault(name, {**entry, "parts": []})
            known["parts"] += entry["parts"]
    return {"format": 1, "mark": mark, "tensors": tensors}


def conclude(folder: pathlib.Path, index: dict[str, Any], held: list[Any]) -> None:
    """Write all else and the index, which takes the place of the one before in one step; what only that named goes."""
    mark = index["mark"]
    buffer = io.BytesIO()
    save_file(held, buffer)
    with (folder / f"{mark}-objects.pt").open("wb") as file:
        file.write(buffer.getvalue())
        finish(file)
    new = folder / f"{mark}{INDEX}"
    with new.open("w") as file:
        json.dump(index, file)
        finish(file)
    os.replace(new, folder / INDEX)
    with contextlib.suppress(OSError):  # not every system lets a folder be opened
        line = os.open(folder, os.O_RDONLY)
        os.fsync(line)
        os.close(line)
    for old in folder.iterdir():
        if old.name != INDEX and not old.name.startswith(mark) and old.suffix in (".distcp", ".pt", INDEX):
            old.unlink(missing_ok=True)


def mark_of(group: ProcessGroup | None) -> str:
    """A name of this checkpoint's files, which no other has."""
    made = [uuid.uuid4().hex]
    if group is not None:
        objects.broadcast_object_list(made, group.ranks[0], group)
    return made[0]


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> dict[str, Any]:
    """Write a state (nested dictionaries, and what has a `state_dict`) to the folder `checkpoint_id`; all processes call this.

    Each process writes the parts that are in it, once. Until the index is replaced, in one step at the end, the folder holds the
    checkpoint before: who is killed meanwhile loses nothing. Gives the index.

    Differs from PyTorch: a format of its own, an index in JSON and files of plain bytes.
    """
    folder = folder_of(checkpoint_id, storage_writer)
    folder.mkdir(parents=True, exist_ok=True)
    group = taking_part(process_group, no_dist)
    mark = mark_of(group)
    parts = _Parts(state_dict, mark, rank_in(group))
    index = index_of(together(parts, group), mark)
    parts.write(folder)
    if group is not None:
        collectives.barrier(group)
    if rank_in(group) == 0:
        conclude(folder, index, parts.objects)
    if group is not None:
        collectives.barrier(group)
    return index


_writer = ThreadPoolExecutor(1, "xtensor checkpoint")


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_writer: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
    **_: Any,
) -> Future[dict[str, Any]]:
    """`save` whose writing goes on beside the program, of the values that the state has now; its future gives the index."""
    folder = folder_of(checkpoint_id, storage_writer)
    folder.mkdir(parents=True, exist_ok=True)
    found = taking_part(process_group, no_dist)
    mark = mark_of(found)
    parts = _Parts(state_dict, mark, rank_in(found))
    index = index_of(together(parts, found), mark)
    parts.on_host()
    store: Any = None if found is None else another(found.store)

    def write() -> dict[str, Any]:
        parts.write(folder)
        if found is not None:
            store.set(f"written/{mark}/{found.rank()}", b"")
        if rank_in(found) == 0:
            for rank in range(0 if found is None else found.size()):
                store.wait([f"written/{mark}/{rank}"])
            conclude(folder, index, parts.objects)
            if found is not None:
                store.set(f"written/{mark}/all", b"")
        elif found is not None:
            store.wait([f"written/{mark}/all"])
        return index

    return _writer.submit(write)


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: Any = None,
    storage_reader: Any = None,
    planner: Any = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Read a checkpoint into the tensors of a state, wherever they lie: on one device, or on any mesh; all else in the state is replaced.

    A process reads what it needs. Checkpoints that PyTorch wrote are read, too, and nothing in them is run. KeyError for a tensor that the checkpoint
    has not, ValueError for one of another shape.
    """
    folder = folder_of(checkpoint_id, storage_reader)
    tensors, held, read = index_in(folder)
    plain = stateful(state_dict)
    for path, value in list(flattened(plain)):
        name = name_of(path)
        if not isinstance(value, Tensor):
            if name in held:
                put_back(plain, path, held[name][1])
            continue
        entry = tensors.get(name)
        shown = ".".join(map(str, path))
        if entry is None:
            raise KeyError(f"the checkpoint has no tensor {shown}")
        if tuple(entry["shape"]) != tuple(value.shape):
            raise ValueError(
                f"{shown} has the shape {entry['shape']} in the checkpoint, and {list(value.shape)} in the state"
            )
        fill(value, entry, read)
    for key, owner in state_dict.items():
        if hasattr(owner, "load_state_dict"):
            owner.load_state_dict(plain[key])
        elif plain[key] is not owner:
            state_dict[key] = plain[key]


def whole(folder: pathlib.Path) -> Any:
    """All of a checkpoint, on the CPU: nested dictionaries, and lists where the keys are numbers."""
    tensors, held, read = index_in(folder)
    made: Any = {}
    for entry in tensors.values():
        shape = tuple(entry["shape"])
        values = read_box(entry, ((0,) * len(shape), shape), read)
        made = put_in(made, entry["path"], wrap(devices.put(values, devices.device("cpu"))))
    for path, value in held.values():
        made = put_in(made, path, value)
    return made


def put_in(state: Any, path: Sequence[Any], value: Any) -> Any:
    """Set a leaf of nested dictionaries and lists that may not be there yet; what holds it now."""
    if not path:
        return value
    key, *rest = path
    if state is None:
        state = [] if isinstance(key, int) else {}
    if isinstance(state, list):
        state.extend([None] * (key + 1 - len(state)))
        state[key] = put_in(state[key], rest, value)
    else:
        state[key] = put_in(state.get(key), rest, value)
    return state


def index_in(folder: pathlib.Path) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Of a checkpoint, PyTorch's or xtensor's: the entries of its tensors and its other values with their paths, by name, and what reads bytes."""
    with (folder / INDEX).open("rb") as file:
        own = file.read(1) == b"{"
    return opened(folder) if own else pytorch.opened(folder / INDEX)


def opened(folder: pathlib.Path) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """See `index_in`."""
    index = json.loads((folder / INDEX).read_text())
    held = {name_of(path): (path, value) for path, value in load_file(folder / f"{index['mark']}-objects.pt")}
    files: dict[str, Any] = {}

    def read(name: str, offset: int, count: int) -> np.ndarray[Any, Any]:
        if count == 0:
            return np.zeros(0, np.uint8)
        if name not in files:
            files[name] = np.memmap(folder / name, np.uint8, "r")
        return files[name][offset : offset + count]

    for name, entry in index["tensors"].items():  # what was written before paths were
        entry.setdefault("path", name.split(SEPARATOR))
    return index["tensors"], held, read


def fill(tensor: Tensor, entry: dict[str, Any], read: Any) -> None:
    """Write the values of a checkpoint to a tensor, in its own dtype and where it lies."""
    shape = tuple(entry["shape"])
    if tensor.device.sharding is None:
        values = read_box(entry, ((0,) * len(shape), shape), read)
        with no_grad():
            tensor.copy_(wrap(devices.put(values, devices.device("cpu"))))
        return
    sharding = array_of(tensor).sharding

    def part(index: Any) -> np.ndarray[Any, Any]:
        spans = [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
        return read_box(entry, (tuple([a for a, _ in spans]), tuple([b - a for a, b in spans])), read)

    with jax.enable_x64(True), no_grad():
        tensor.copy_(wrap(jax.make_array_from_callback(shape, sharding, part)))
