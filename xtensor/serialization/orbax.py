"""Orbax checkpoints, which JAX programs write, through the orbax-checkpoint package.

Values go through host memory in their own types, so 64-bit types come back whatever JAX is set to.
"""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np

from .. import devices
from ..devices.extras import missing
from ..ops.create.ingest import from_array
from ..tensor import Tensor, host_array, wrap
from .storages import place

__all__ = ["load", "save"]


def package() -> Any:
    """The orbax-checkpoint package; ImportError says how to get it."""
    try:
        import orbax.checkpoint
    except ImportError as error:
        raise missing("an Orbax checkpoint", "orbax-checkpoint", "orbax") from error
    return orbax.checkpoint


def is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor)


def on_host(tree: Any) -> Any:
    """The tree with NumPy arrays in the place of tensors and of JAX arrays."""

    def convert(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return np.array(host_array(leaf.detach()))
        return np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf

    return jax.tree_util.tree_map(convert, tree, is_leaf=is_tensor)


def save(path: str | os.PathLike[str], tree: Any, *, force: bool = False) -> None:
    """Write nested dicts, lists and tuples of tensors, numbers and strings to a folder, as JAX programs read it.

    force: replace what is there. Orbax writes aside and renames: an interrupted save leaves no half checkpoint.
    Tensors that share memory come back apart.
    """
    with package().PyTreeCheckpointer() as checkpointer:
        checkpointer.save(os.path.abspath(path), on_host(tree), force=force)


def load(path: str | os.PathLike[str], device: devices.DeviceLike = None, *, like: Any = None) -> Any:
    """What a folder of Orbax's holds, with tensors in the place of arrays.

    Orbax keeps no tuples, and no keys but strings: `like`, a tree of the structure that was saved, gives them back.
    """
    library = package()
    where = devices.resolve(device)

    def how(known: Any) -> Any:
        as_array = getattr(known, "storage", None) is not None
        return library.RestoreArgs(restore_type=np.ndarray) if as_array else library.RestoreArgs()

    with library.PyTreeCheckpointer() as checkpointer:
        known = checkpointer.metadata(os.path.abspath(path))
        tree = getattr(known, "item_metadata", known)
        arguments = jax.tree_util.tree_map(how, getattr(tree, "tree", tree))
        restored = checkpointer.restore(os.path.abspath(path), restore_args=arguments)
    made = jax.tree_util.tree_map(lambda leaf: tensor_of(leaf, where), restored)
    return made if like is None else shaped(made, like)


def tensor_of(leaf: Any, where: devices.device) -> Any:
    if isinstance(leaf, np.ndarray):
        return wrap(place(np.ascontiguousarray(leaf).reshape(leaf.shape), where))
    return from_array(leaf, None, where) if isinstance(leaf, jax.Array) else leaf


def shaped(made: Any, like: Any) -> Any:
    """`made` with the containers and keys of `like`; ValueError where they do not match."""
    if isinstance(like, dict):
        if not isinstance(made, dict) or sorted(map(str, like)) != sorted(made):
            raise ValueError(f"the checkpoint has other keys than {sorted(map(str, like))}")
        pairs = [(key, shaped(made[str(key)], value)) for key, value in like.items()]
        return type(like)(pairs)
    if isinstance(like, (list, tuple)):
        if not isinstance(made, (list, tuple)) or len(made) != len(like):
            raise ValueError(f"the checkpoint has no list of {len(like)} where one was expected")
        items = [shaped(item, other) for item, other in zip(made, like)]
        return type(like)(*items) if hasattr(like, "_fields") else type(like)(items)
    return made
