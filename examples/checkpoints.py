"""Checkpoints of a run: nested dictionaries, lists, numbers and tensors in one `.npz` file, never half-written.

The file is NumPy's own format and runs nothing when it is read: arrays, and a JSON text that says how they nest.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import numpy as np

import xtensor

STRUCTURE = "structure"


def save(state: Any, path: str | os.PathLike[str]) -> None:
    """Write `state` to `path`; a crash at any moment leaves either the old file or the new one, whole."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, np.ndarray] = {}
    text = json.dumps(packed(state, arrays))
    arrays[STRUCTURE] = np.frombuffer(text.encode(), np.uint8)
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(aside, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if hasattr(os, "O_DIRECTORY"):  # where directories can be synchronised, make the new name last too
        directory = os.open(path.parent, os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def load(path: str | os.PathLike[str]) -> Any:
    """What `save` wrote, with tensors on the CPU."""
    with np.load(path, allow_pickle=False) as arrays:
        return unpacked(json.loads(arrays[STRUCTURE].tobytes().decode()), arrays)


def tidy(path: str | os.PathLike[str]) -> None:
    """Delete what runs that were killed while they wrote to `path` left beside it; none may be writing now."""
    path = pathlib.Path(path)
    for left in path.parent.glob(f".{path.name}.*"):
        left.unlink(missing_ok=True)


def packed(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """`value` as JSON: each container and tensor a list of a tag and its content."""
    if isinstance(value, dict):
        return ["dict", [[packed(k, arrays), packed(v, arrays)] for k, v in value.items()]]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [packed(v, arrays) for v in value]]
    if isinstance(value, xtensor.Tensor):
        name = f"tensor{len(arrays)}"
        arrays[name] = value.detach().cpu().numpy()
        return ["tensor", name]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a checkpoint holds no {type(value).__name__}")


def unpacked(value: Any, arrays: Any) -> Any:
    """What `packed` gave, back."""
    if not isinstance(value, list):
        return value
    kind, content = value
    if kind == "dict":
        return {unpacked(k, arrays): unpacked(v, arrays) for k, v in content}
    if kind == "tensor":
        return xtensor.tensor(arrays[content])
    return {"list": list, "tuple": tuple}[kind](unpacked(v, arrays) for v in content)
