"""What nodes that are made now are told of their origin: the meta of the node that an interpreter runs."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

__all__ = [
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]


class Current:
    meta: dict[str, Any] = {}
    kept = False


def has_preserved_node_meta() -> bool:
    """Whether nodes made now get the meta of the node that is run."""
    return Current.kept


def get_current_meta() -> dict[str, Any]:
    """That meta."""
    return Current.meta


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A block in which nodes that an interpreter's run makes get the meta of the node that is run."""
    before, meta = Current.kept, dict(Current.meta)
    Current.kept = enable
    try:
        yield
    finally:
        Current.kept, Current.meta = before, meta


@contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """A block that belongs to a node."""
    before = Current.meta
    if Current.kept and node.meta:
        Current.meta = dict(node.meta)
    try:
        yield
    finally:
        Current.meta = before


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A block whose nodes get these entries in `meta["custom"]`, where meta is preserved."""
    before = Current.meta
    Current.meta = {**before, "custom": {**before.get("custom", {}), **annotation_dict}}
    try:
        yield
    finally:
        Current.meta = before


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the function's calls stand in such a block."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def annotated(*args: Any, **kwargs: Any) -> Any:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return annotated

    return decorate


def set_stack_trace(stack: list[str]) -> None:
    """Say where the nodes that are made now are from."""
    if Current.kept and stack:
        Current.meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Where nodes that are made now are from."""
    if Current.kept:
        return [Current.meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])
