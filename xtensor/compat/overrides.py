"""`torch.overrides`: questions about tensor-like objects.

Differs from PyTorch: `__torch_function__` is not asked by any operator, so nothing overrides one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..tensor import Tensor

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
]


class DisableTorchFunctionSubclass:
    """A block in which `__torch_function__` is not asked: as everywhere here."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A block in which neither `__torch_function__` nor modes are asked: as everywhere here."""


def is_tensor_like(inp: Any) -> bool:
    """Whether this is a Tensor, or an object that could stand for one."""
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of these asks to override operators: none that is no tensor can here, and tensors do not."""
    return any(hasattr(a, "__torch_function__") and not isinstance(a, Tensor) for a in relevant_args)


def has_torch_function_unary(tensor: Any) -> bool:
    """`has_torch_function` of one object."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several objects."""
    return has_torch_function(args)


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the first object with a `__torch_function__` makes of the call; TypeError if none makes anything."""
    asked = [a for a in relevant_args if hasattr(a, "__torch_function__")]
    kinds = tuple(dict.fromkeys(type(a) for a in asked))
    for one in asked:
        made = one.__torch_function__(public_api, kinds, args, kwargs)
        if made is not NotImplemented:
            return made
    raise TypeError(
        f"no implementation found for '{public_api.__module__}.{public_api.__name__}' on types that implement "
        f"__torch_function__: {[kind.__name__ for kind in kinds]}"
    )


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function is one of Tensor's methods, or the getter of one of its properties."""
    return any(value is func for name in dir(Tensor) for value in (getattr(Tensor, name, None),)) or (
        getattr(func, "__name__", "") == "__get__"
    )


def resolve_name(f: Callable[..., Any]) -> str | None:
    """The public name of an operator."""
    name = getattr(f, "__name__", None)
    return None if name is None else f"{getattr(f, '__module__', 'torch')}.{name}"
