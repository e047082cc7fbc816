"""`torch.utils._python_dispatch`: modes that see every operator below autograd, and help for classes that wrap tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..engine.modes import state
from ..operators.below.dispatching import DispatchPushed, flat, without_modes
from ..operators.overriding import arm
from ..tensor import Tensor

__all__ = [
    "BaseTorchDispatchMode",
    "TorchDispatchMode",
    "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass",
    "return_and_correct_aliasing",
    "transform_subclass",
]


class TorchDispatchMode(DispatchPushed):
    """A block whose operators are answered by `__torch_dispatch__(func, types, args, kwargs)`, below autograd; to be subclassed.

    While it answers, only the modes around it are asked, and nothing is recorded. `func` is the operator as declared, with its
    name, overload and schema. Derivatives are operators `<name>_backward`, one for each gradient. Differs from PyTorch: an operator
    that is made of others there may be one here, and the other way round.

    >>> class Loud(xtensor.utils._python_dispatch.TorchDispatchMode):
    ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    ...         print(func)
    ...         return func(*args, **(kwargs or {}))
    >>> x = xtensor.ones(2, requires_grad=True)
    >>> with Loud():
    ...     (x * 2).sum()
    aten.mul.Tensor
    aten.sum.default
    tensor(4., grad_fn=<SumBackward0>)
    """

    def prepare(self) -> None:
        """Have functions written in Python ask."""
        arm(type(self))

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise NotImplementedError

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance, to be entered; an older spelling."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets every operator run."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether a mode is asked now."""
    return bool(state.dispatch_modes)


def _get_current_dispatch_mode() -> Any:
    return state.dispatch_modes[-1] if state.dispatch_modes else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    return list(state.dispatch_modes)


def _len_torch_dispatch_stack() -> int:
    return len(state.dispatch_modes)


@contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """A block in which no mode is asked; gives those that were."""
    before = list(state.dispatch_modes)
    with without_modes():
        yield before


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether this is a tensor of a class that says what it is made of, by `__tensor_flatten__` and `__tensor_unflatten__`."""
    kind = type(t)
    return (
        isinstance(t, Tensor)
        and kind is not Tensor
        and hasattr(kind, "__tensor_flatten__")
        and hasattr(kind, "__tensor_unflatten__")
    )


def transform_subclass(
    t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None
) -> Any:
    """The tensor with each of its inner tensors made anew by `callback(attribute, inner)`."""
    names, context = t.__tensor_flatten__()
    made = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(made, context, size, stride)


def return_and_correct_aliasing(func: Any, args: Any, kwargs: dict[str, Any], out: Any) -> Any:
    """What a wrapper class gives back of an operator: the argument itself where it was written, views over its memory.

    `out` is what the class made of the operator on its inner tensors.
    """
    if func._schema.is_mutable and func._schema.returns:
        written = kwargs["out"] if "out" in kwargs else args[0]
        return tuple(written) if isinstance(written, list) else written
    if func.is_view and args and isinstance(args[0], Tensor):
        for part in flat((out,)):
            if isinstance(part, Tensor) and part._xt_view is not None:
                part._xt_storage = args[0]._xt_storage
                part._xt_view.counter = args[0]._xt_storage
    return out
