"""Nested tensors as text."""

from __future__ import annotations

import textwrap
from typing import Any

from .layout import JAGGED, STRIDED, NestedTensor
from .pieces import parts

__all__ = ["told"]


def told(nested: NestedTensor) -> str:
    """What autograd knows of a tensor, as the end of its text."""
    if nested.grad_fn is not None:
        return f", grad_fn=<{nested.grad_fn.name()}>"
    return ", requires_grad=True" if nested.requires_grad else ""


def jagged(nested: Any) -> str:
    sizes = tuple(nested.shape)
    return f"NestedTensor(size={sizes}, offsets={nested.offsets()}{told(nested)}, contiguous={nested.is_contiguous()})"


def shown(nested: Any) -> list[Any]:
    """The rows, each of which says whether a gradient is asked for."""
    rows = [row.detach() for row in parts(nested)]
    return [row.requires_grad_() for row in rows] if nested.requires_grad else rows


def strided(nested: Any) -> str:
    rows = ",\n".join(textwrap.indent(str(row), "  ") for row in shown(nested))
    return f"nested_tensor([\n{rows}\n]{told(nested)})"


JAGGED["text"], STRIDED["text"] = jagged, strided
JAGGED["__repr__"] = lambda func, self, **kwargs: jagged(self)
STRIDED["__repr__"] = lambda func, self, **kwargs: strided(self)
