"""Methods of Tensor that run Python functions over its elements, or answer what programs ask of any tensor."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ... import checks, devices, dtypes
from ...operators.attach import attach_methods
from ...operators.below.dispatching import dispatches, wrapper
from ...operators.below.metadata import answers_metadata
from ...operators.overriding import SubclassesOff, by_default
from ...tensor import (
    Tensor,
    asks_grad,
    grad_dtype_of,
    meta_of,
    refuse_other_class,
    sizes_of,
    strides_of,
    tensor_over,
)
from ..create.ingest import from_numpy
from .export import host_values
from .queries import is_same_size

__all__: list[str] = []


def refuse_grad(name: str, argument: str, tensor: Any) -> None:
    """Raise for a tensor that requires grad, and for what is no tensor."""
    if not isinstance(tensor, Tensor):
        raise checks.argument_error(name, argument, None, "Tensor", tensor)
    if asks_grad(tensor):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
        )


def refuse_result(target: Tensor, found: Any) -> None:
    """Raise for what a callback gave that is no number."""
    if isinstance(found, numbers.Number) or hasattr(found, "__float__"):
        return
    kind = type(found).__name__
    if target.is_floating_point() or target.is_complex():
        raise TypeError(f"must be real number, not {kind}")
    raise TypeError(f"'{kind}' object cannot be interpreted as an integer")


def by_element(name: str, target: Tensor, function: Callable[..., Any], *others: Tensor) -> Tensor:
    """Write what a Python function gives for each element, and the others' elements in the same place."""
    refuse_grad(name, "input", target)
    if any(t.device.type != "cpu" for t in (target, *others)):
        raise TypeError(f"{name} is only implemented on CPU tensors")
    arrays = [host_values(t) for t in (target, *[o.expand(target.shape) for o in others])]
    made = np.empty(arrays[0].shape, arrays[0].dtype)
    for place in np.ndindex(made.shape):
        found = function(*[a[place].item() for a in arrays])
        refuse_result(target, found)
        made[place] = found
    return target.copy_(from_numpy(made))


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function gives for it; slow, on a CPU only.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a tensor that requires grad; TypeError on the meta device.
    """
    return by_element("apply_", self, callable)


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a Python function gives for it and the other tensor's; slow, on a CPU only.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for other sizes, and for a tensor that requires grad; TypeError for what is no tensor, and
    on the meta device.
    """
    refuse_grad("map_", "tensor", tensor)
    return by_element("map_", self, callable, tensor)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """`map_` with two other tensors.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for other sizes, and for a tensor that requires grad; TypeError for what is no tensor, and
    on the meta device.
    """
    refuse_grad("map2_", "x", x)
    refuse_grad("map2_", "y", y)
    return by_element("map2_", self, callable, x, y)


def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """The same tensor as an instance of a subclass: it shares memory and history.

    Shape: that of the tensor itself.

    Raises: TypeError for what is no subclass of Tensor.
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class "
            "inherits from Tensor."
        )
    refuse_other_class(cls, self)
    source = self.view(self.shape)
    made = tensor_over(source._xt_storage, source._xt_view, source._xt_edge, cls)
    made._xt_meta = source._xt_meta
    return made


def make_subclass(
    cls: type[Tensor],
    data: Tensor,
    require_grad: bool = False,
    *,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    device_for_backend_keys: Any = None,
) -> Tensor:
    """A leaf of a subclass over the memory of `data`, unknown to its history.

    dispatch_*: what the class's `__torch_dispatch__` is asked for, of all its tensors from now on.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    refuse_other_class(cls, data)
    answers_metadata(cls, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    with SubclassesOff():
        source = data.detach()
        made = tensor_over(source._xt_storage, source._xt_view, kind=cls)
        return made._ask_grad(True) if require_grad else made


def make_wrapper_subclass(
    cls: type[Tensor],
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    storage_offset: int | None = None,
    memory_format: dtypes.memory_format | None = None,
    dtype: dtypes.dtype | None = None,
    layout: Any = dtypes.strided,
    device: devices.DeviceLike | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None,
    storage_size: int | None = None,
) -> Tensor:
    """A tensor of a subclass that keeps its values elsewhere: sizes, strides, a dtype and a device, and no memory.

    dispatch_*: what the class's `__torch_dispatch__` is asked for, of all its tensors from now on.
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not dispatches(cls) and by_default(cls):
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    answers_metadata(cls, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    place = devices.current() if device is None else devices.resolve(device)
    sizes, steps = tuple(map(int, size)), None if strides is None else tuple(map(int, strides))
    made = wrapper(cls, sizes, steps, storage_offset or 0, dtype or dtypes.get_default_dtype(), place)
    return made.requires_grad_() if requires_grad else made


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the slowest in memory to the fastest.

    ambiguity_check: whether an order that the strides leave open is refused; a list of memory formats allows those orders.

    Raises: RuntimeError for dimensions of size 1, and equal strides side by side, where that is asked for; TypeError for another
    `ambiguity_check`.
    """
    formats = isinstance(ambiguity_check, list) and all(
        isinstance(f, dtypes.memory_format) for f in ambiguity_check
    )
    if not (isinstance(ambiguity_check, bool) or formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides, sizes = strides_of(self), sizes_of(self)
    allowed = ambiguity_check if isinstance(ambiguity_check, list) else []
    if ambiguity_check if isinstance(ambiguity_check, bool) else True:
        is_open = 1 in sizes or any(a == b for a, b in pairwise(strides))
        if is_open and sum(self.is_contiguous(memory_format=f) for f in allowed) != 1:
            raise RuntimeError(
                "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
            )
    return tuple(sorted(range(len(sizes)), key=lambda d: (-strides[d], d)))


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What a module swaps this parameter for when a state is loaded: a new tensor, never one of the two.

    Shape: `other` that of the tensor; result the same.

    Raises: RuntimeError where sizes do not fit.
    """
    return (other if assign else self.copy_(other)).detach()


def grad_dtype(self: Tensor) -> Any:
    """The dtype that gradients of this tensor have: its own, or what was set; None where they may have any.

    Of a leaf it can be set: what a backward pass brings is converted then. `autograd.grad` converts nothing.

    Raises: RuntimeError where it is set to what is no dtype, on a tensor that is no leaf, or beside a gradient of another dtype.

    >>> weight = xtensor.ones(2, dtype=xtensor.bfloat16, requires_grad=True)
    >>> weight.grad_dtype = xtensor.float32
    >>> (weight * 2).sum().backward()
    >>> weight.grad
    tensor([2., 2.])
    """
    return grad_dtype_of(self)


def set_grad_dtype(self: Tensor, value: Any) -> None:
    if value is not None and not isinstance(value, dtypes.dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    meta = meta_of(self)
    if meta.grad is not None and value is not None and meta.grad.dtype is not value:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value.scalar_name}' because there is already a gradient with dtype "
            f"'{dtypes.c_name(meta.grad.dtype)}'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure the new "
            "grad_dtype matches the existing gradient's dtype."
        )
    meta.grad_dtype = value
    edge = self._xt_edge
    if edge is not None and type(edge) is not tuple:
        edge.hooks()  # plans, which convert nothing, leave graphs with hooks to the interpreter


def _fix_weakref(self: Tensor) -> None:
    """Nothing: a tensor that is reached again through a weak reference is whole here."""


attach_methods(_fix_weakref)
attach_methods(
    _make_subclass=staticmethod(make_subclass), _make_wrapper_subclass=staticmethod(make_wrapper_subclass)
)
attach_methods(apply_, map_, map2_, as_subclass, dim_order, module_load, is_same_size)
attach_methods(
    grad_dtype=property(grad_dtype, set_grad_dtype),
    **dict.fromkeys(("is_ipu", "is_maia", "is_mps", "is_mtia", "is_vulkan", "is_xla", "is_xpu"), False),
)
