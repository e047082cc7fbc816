"""What plain pickles that PyTorch wrote name: how their storages are read, and tensors made over them."""

from __future__ import annotations

import io
from typing import Any, NoReturn

from .. import dtypes
from ..serialization.loading import load
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

FILES: dict[str, Any] = {
    "serialization._get_layout": lambda name: getattr(dtypes, name.removeprefix("torch.")),
    "storage._load_from_bytes": load_from_bytes,
    **{
        path.removeprefix("torch."): known.call
        for path, known in _rebuilder.globals.items()
        if "._rebuild_" in path
    },
}
