"""Parameters as a module is made with them: of a shape, without values yet."""

from __future__ import annotations

from typing import Any

from ...ops.create.creation import empty
from ..parameter import Parameter

__all__ = ["register_empty"]


def register_empty(module: Any, device: Any, dtype: Any, **shapes: int | tuple[int, ...] | None) -> None:
    """Register parameters of these shapes, for `reset_parameters` to fill; None where there is none."""
    for name, shape in shapes.items():
        made = None if shape is None else Parameter(empty(shape, device=device, dtype=dtype))
        module.register_parameter(name, made)
