"""`Variable`: what tensors with a gradient were called; any tensor is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import checks
from ..engine.task import is_complete, queue_callback
from ..ops.create.creation import zeros
from ..tensor import Tensor

__all__ = ["ImperativeEngine", "Variable"]


class ImperativeEngine:
    """`Variable._execution_engine`: the engine, as far as programs reach for it."""

    @staticmethod
    def queue_callback(callback: Callable[[], None]) -> None:
        """Call `callback()` when the backward pass that is running has finished."""
        queue_callback(callback)

    @staticmethod
    def is_checkpoint_valid() -> bool:
        """Whether a re-entrant checkpoint may run: not where only some gradients are asked for."""
        return is_complete()


class _VariableType(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(cls, data: Any = None, requires_grad: bool = False, **options: Any) -> Tensor:
        if options.pop("volatile", None) is not None:
            checks.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.")
        made = zeros(0) if data is None else data.detach() if isinstance(data, Tensor) else Tensor(data)
        return made.requires_grad_(requires_grad) if requires_grad else made


class Variable(metaclass=_VariableType):
    """`Variable(tensor, requires_grad=True)`: the same values as a tensor that wants a gradient."""

    _execution_engine = ImperativeEngine()


def volatile(self: Tensor) -> bool:
    """False, with a warning: what `no_grad` was before it.

    Raises: nothing of its own.
    """
    checks.warn("volatile was removed (Variable.volatile is always False)")
    return False


def listed(self: Tensor) -> list[str]:
    """What `dir` gives: without the name that only warns, and that of a protocol which the tensor has on a GPU alone."""
    absent = ("volatile",) if self.is_cuda else ("volatile", "__cuda_array_interface__")
    return [name for name in object.__dir__(self) if name not in absent]


def address(self: Tensor) -> int:
    """A number that no other tensor has while this one lives, by the name under which PyTorch's programs ask for it."""
    return id(self)


Tensor.__dir__ = listed
Tensor._cdata = property(address)  # pyright: ignore[reportAttributeAccessIssue]
Tensor.volatile = property(volatile)  # pyright: ignore[reportAttributeAccessIssue]
