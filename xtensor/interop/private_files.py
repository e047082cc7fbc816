"""What plain pickles that PyTorch wrote name: how their storages are read, and tensors made over them."""

from __future__ import annotations

import io
from typing import Any, NoReturn

from .. import dtypes
from ..serialization.loading import load
from ..serialization.pickles import set_state
from ..serialization.rebuild import Rebuilder

__all__ = ["FILES"]


def no_storage(*args: Any) -> NoReturn:
    """Where such a pickle keeps its storages: in itself."""
    raise RuntimeError("a plain pickle holds its storages itself")


def load_from_bytes(b: bytes) -> Any:
    """The storage that a pickle holds as a file of its own; who unpickles it trusts the rest as well."""
    return load(io.BytesIO(b), weights_only=False)


# One for all pickles: a tensor with attributes is made by a function that it tells from others by identity.
_rebuilder = Rebuilder(no_storage, None, True)


def state_of(obj: Any) -> Any:
    """What pickle keeps of an object beside its class: its attributes, and those in slots."""
    return obj.__getstate__() if hasattr(obj, "__getstate__") else obj.__dict__


def with_state(obj: Any, state: Any) -> Any:
    """The object, with the state that `state_of` told of another."""
    set_state(obj, state)
    return obj


FILES: dict[str, Any] = {
    "_utils._get_obj_state": state_of,
    "_utils._set_obj_state": with_state,
    "serialization._get_layout": lambda name: getattr(dtypes, name.removeprefix("torch.")),
    "storage._load_from_bytes": load_from_bytes,
    **{
        path.removeprefix("torch."): known.call
        for path, known in _rebuilder.globals.items()
        if "._rebuild_" in path
    },
}
