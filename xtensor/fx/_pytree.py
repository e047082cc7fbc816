"""Nested containers taken apart along a shape that is known: what generated code with containers calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..trees import TreeSpec
from ..xla.cache import bounded

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

_flatteners: dict[type, Callable[[Any, TreeSpec], list[Any]]] = {}


def register_pytree_flatten_spec(
    cls: type, flatten_fn_spec: Callable[[Any, TreeSpec], list[Any]], flatten_fn_exact_match_spec: Any = None
) -> None:
    """Say how a class's values are taken apart along a shape."""
    _flatteners[cls] = flatten_fn_spec


@bounded(256)
def by_key(kind: Any) -> bool:
    """Whether containers of a class are read by the keys of the shape."""
    return isinstance(kind, type) and issubclass(kind, dict)


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves that a shape has places for; what a value has beyond it is left out."""
    if spec.is_leaf():
        return [pytree]
    if spec.type in _flatteners:
        parts = _flatteners[spec.type](pytree, spec)
    elif by_key(spec.type):
        parts = [pytree[key] for key in spec.context]
    else:
        parts = [pytree[i] for i in range(spec.num_children)]
    return [
        leaf
        for part, child in zip(parts, spec.children(), strict=True)
        for leaf in tree_flatten_spec(part, child)
    ]
