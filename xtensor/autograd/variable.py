"""`Variable`: what tensors with a gradient were called; any tensor is one."""

from __future__ import annotations

from typing import Any

from ..ops.create.creation import zeros
from ..tensor import Tensor

__all__ = ["Variable"]


class _VariableType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
        made = zeros(0) if data is None else data.detach() if isinstance(data, Tensor) else Tensor(data)
        return made.requires_grad_(requires_grad) if requires_grad else made


class Variable(metaclass=_VariableType):
    """`Variable(tensor, requires_grad=True)`: the same values as a tensor that wants a gradient."""
