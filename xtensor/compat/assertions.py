"""`torch._assert` and `torch._check`: conditions that programs state, with PyTorch's errors where they fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..operators import overriding
from ..tensor import Tensor

__all__ = [
    "_assert",
    "_check",
    "_check_index",
    "_check_is_size",
    "_check_not_implemented",
    "_check_tensor_all",
    "_check_tensor_all_with",
    "_check_type",
    "_check_value",
    "_check_with",
]


def _assert(condition: Any, message: str) -> None:
    """`assert condition, message`."""
    if overriding.asks(type(condition)):
        overriding.answer(_assert, [condition], (condition, message), {})
    elif not condition:
        raise AssertionError(message)


def _check_with(error_type: type[Exception], cond: Any, message: Callable[[], Any] | None) -> None:
    """Raise `error_type(message())` where the condition does not hold."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(
        "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
        "enhancement request to PyTorch.)"
        if message is None
        else str(message())
    )


def _check(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """A RuntimeError where the condition does not hold."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """An IndexError where the condition does not hold."""
    _check_with(IndexError, cond, message)


def _check_value(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """A ValueError where the condition does not hold."""
    _check_with(ValueError, cond, message)


def _check_type(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """A TypeError where the condition does not hold."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """A NotImplementedError where the condition does not hold."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i: Any, message: Callable[[], Any] | None = None, *, max: Any = None) -> None:
    """A RuntimeError where a number is no size."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: Any, message: Callable[[], Any] | None = None
) -> None:
    """Raise `error_type(message())` where an element of a tensor of bools is False."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if str(cond.dtype).rpartition(".")[2] != "bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond: Any, message: Callable[[], Any] | None = None) -> None:
    """A RuntimeError where an element of a tensor of bools is False."""
    _check_tensor_all_with(RuntimeError, cond, message)
