"""Operators of quantised tensors: views and copies, comparisons, joins, pooling, and functions of one number.

What only moves elements is done to the integers. What needs numbers is done to numbers, and the result is quantised as the
argument was.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from .. import checks, dtypes
from ..operators.attach import attach_methods
from ..ops.index.masks import where
from ..ops.shape.joining import cat, stack
from ..tensor import Tensor
from .construct import (
    int_repr,
    q_per_channel_axis,
    q_per_channel_scales,
    q_per_channel_zero_points,
    q_scale,
    q_zero_point,
    qscheme,
)
from .layout import (
    HANDLERS,
    QuantizedTensor,
    Quantizer,
    copied,
    dequantized,
    handles,
    integers,
    laid,
    per_tensor,
    quantised,
    refuse,
    seen_as,
)

__all__: list[str] = []

MOVED = (
    "contiguous detach detach_ alias view view_as reshape reshape_as flatten unflatten squeeze unsqueeze select narrow "
    "t transpose permute swapaxes swapdims movedim expand expand_as split chunk unbind unfold as_strided index_select flip repeat "
    "roll gather take masked_select diagonal tensor_split ravel pin_memory resize_ "
    "__getitem__ __iter__ cpu cuda pixel_shuffle pixel_unshuffle channel_shuffle unsafe_chunk unsafe_split".split()
)
"""What moves elements, or sees them elsewhere."""
STRIDED = frozenset("t transpose permute swapaxes swapdims movedim as_strided unfold diagonal".split())
KEEPS = frozenset("contiguous detach alias view reshape view_as reshape_as flatten cpu cuda".split())
"""Those of them that tensors with scales of channels have, too."""
COMPARED = "eq ne lt le gt ge __eq__ __ne__ __lt__ __le__ __gt__ __ge__ not_equal greater less greater_equal less_equal".split()
AVERAGED = (
    "avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d mean std interpolate upsample "
    "upsample_nearest upsample_bilinear clamp clip hardtanh relu6 leaky_relu elu hardswish threshold celu prelu"
).split()
"""What is computed from numbers, and quantised as the argument is."""
SELECTED = "max_pool1d max_pool2d max_pool3d adaptive_max_pool2d max min amax amin sort topk cummax".split()
"""What chooses among the elements by their size: integers are ordered as the numbers are."""
FIXED = {"sigmoid": (1 / 256, 0), "hardsigmoid": (1 / 256, 0), "tanh": (2 / 256, 128)}
"""Scale and zero point, of 8 bits without a sign, of functions whose values are bounded."""


def function_of(name: str) -> Callable[..., Any]:
    """A method of tensors, or a function."""
    library = __name__.partition(".")[0]
    found = getattr(Tensor, name, None) or getattr(importlib.import_module(library), name, None)
    return found or getattr(importlib.import_module(f"{library}.nn.functional"), name)


def each(made: Any, function: Callable[[Tensor], Any], dtype: dtypes.dtype) -> Any:
    """A result with a function applied to those of its tensors that have a dtype."""
    if isinstance(made, Tensor):
        return function(made) if made.dtype is dtype else made
    if isinstance(made, (tuple, list)):
        parts = [each(m, function, dtype) for m in made]
        return type(made)(parts) if type(made) in (tuple, list) else type(made)(*parts)
    return made


# ---- what moves ----------------------------------------------------------------------------------------------------


def moved(name: str) -> None:
    def move(self: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
        quantizer, held = self._quantizer, integers(self)
        if quantizer.axis is not None and name not in KEEPS:
            return per_channel_moved(name, self, args, kwargs)
        if name in ("view", "to") and args and isinstance(args[0], dtypes.dtype):
            raise refuse(f"{name}.dtype")
        args = tuple([integers(a) if isinstance(a, QuantizedTensor) else a for a in args])
        made = function_of(name)(held, *args, **kwargs)
        if made is held:
            return self
        return each(made, lambda t: seen_as(t, quantizer), held.dtype)

    HANDLERS[name] = move


def per_channel_moved(name: str, self: QuantizedTensor, args: Any, kwargs: Any) -> Any:
    """What moves elements of a tensor with scales of channels: as far as the channels stay what they are."""
    if name in STRIDED:
        raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")
    if name == "index_select":
        raise RuntimeError("Only per_tensor quantized quantized tensors are supported by index_select.")
    if name == "select":
        dim, index = (*args, *kwargs.values())
        items: list[Any] = [slice(None)] * (dim % self.dim()) + [index]
    elif name == "__getitem__":
        items = list(args[0]) if isinstance(args[0], tuple) else [args[0]]
        if any(type(i) not in (int, slice) for i in items):
            raise refuse("index.Tensor")
    else:
        raise refuse(name)
    quantizer = self._quantizer
    axis = quantizer.axis
    assert axis is not None
    if axis < len(items):
        quantizer = quantizer.select(items[axis])
    if quantizer.axis is not None:
        quantizer = quantizer._replace(axis=axis - sum(type(i) is int for i in items[:axis]))
    return seen_as(integers(self)[tuple(items)], quantizer)


for _name in MOVED:
    moved(_name)


@handles("to", "type")
def to(self: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
    """The tensor on another device; RuntimeError for another dtype."""
    given = (*args, *kwargs.values())
    if not given:
        return "torch.quantized." + self.dtype.scalar_name + "Tensor"
    if any(isinstance(a, dtypes.dtype) and a is not self.dtype for a in given):
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    args = tuple([a for a in args if not isinstance(a, dtypes.dtype)])
    kwargs.pop("dtype", None)
    held = integers(self)
    made = held.to(*args, **kwargs) if args or kwargs else held
    return self if made is held else seen_as(made, self._quantizer)


def refused(kind: type[Exception], message: str) -> Callable[..., Any]:
    def refuse(self: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
        raise kind(message.format(self.dtype.scalar_name))

    return refuse


for _name in ("float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool"):
    HANDLERS[_name] = refused(
        RuntimeError, "Creation of quantized tensor requires quantized dtype like torch.quint8"
    )
HANDLERS["numpy"] = HANDLERS["__array__"] = refused(TypeError, "Got unsupported ScalarType {}")
HANDLERS["tolist"] = refused(RuntimeError, "load_scalar: invalid type")
HANDLERS["is_signed"] = refused(RuntimeError, "isSignedType not supported for quantized types")
HANDLERS["requires_grad_"] = refused(
    RuntimeError, "only Tensors of floating point dtype can require gradients"
)


@handles("item")
def item(self: QuantizedTensor) -> float:
    """The number of a tensor with one element."""
    return dequantized(self).item()


@handles("clone")
def clone(self: QuantizedTensor, *, memory_format: Any = None) -> Any:
    """A copy in memory of its own, in order where no format is asked for."""
    if memory_format is dtypes.preserve_format:
        return seen_as(copied(self), self._quantizer)
    made = integers(self).clone(memory_format=memory_format or dtypes.contiguous_format)
    return seen_as(made, self._quantizer)


@handles("empty_like")
def empty_like(input: QuantizedTensor, **options: Any) -> Any:
    """A tensor quantised as another one, whose integers are 0."""
    return seen_as(function_of("zeros_like")(integers(input)), input._quantizer)


@handles("ones_like")
def ones_like(input: QuantizedTensor, **options: Any) -> Any:
    """A tensor quantised as another one, all 1."""
    return fill_(empty_like(input), 1.0)


@handles("__deepcopy__")
def deepcopied(self: QuantizedTensor, memo: dict[int, Any]) -> Any:
    """A copy with memory of its own."""
    if id(self) not in memo:
        memo[id(self)] = seen_as(integers(self).clone(), self._quantizer)
    return memo[id(self)]


QuantizedTensor.__deepcopy__ = deepcopied  # pyright: ignore[reportAttributeAccessIssue]


# ---- numbers -------------------------------------------------------------------------------------------------------


def requantised(values: Tensor, quantizer: Quantizer, dtype: dtypes.dtype) -> Any:
    checks.check(quantizer.axis is None, "quantized per channel: not supported by this operator")
    return quantised(values, quantizer, dtype)


def compared(name: str) -> None:
    def compare(self: Any, other: Any) -> Any:
        return function_of(name)(dequantized(self), dequantized(other))

    HANDLERS[name] = compare


def averaged(name: str) -> None:
    def average(input: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
        made = function_of(name)(dequantized(input), *args, **kwargs)
        return requantised(made, input._quantizer, input.dtype)

    HANDLERS[name] = average


def selected(name: str) -> None:
    def choose(input: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
        held, quantizer = integers(input), input._quantizer
        checks.check(quantizer.axis is None, "{}: only per-tensor quantization is supported", name)
        # Pooling is of floating values; 8 bits are exact in them.
        values = held.float() if held.dtype is not dtypes.int32 else held.double()
        made = function_of(name)(values, *args, **kwargs)
        return each(made, lambda t: seen_as(t.to(held.dtype), quantizer), values.dtype)

    HANDLERS[name] = choose


def fixed(name: str, scale: float, zero_point: int) -> None:
    def apply(input: QuantizedTensor, inplace: bool = False) -> Any:
        less = 128 if input.dtype is dtypes.qint8 else 0
        values = function_of(name)(dequantized(input))
        return requantised(values, per_tensor(scale, zero_point - less), input.dtype)

    HANDLERS[name] = apply


for _name in COMPARED:
    compared(_name)
for _name in AVERAGED:
    averaged(_name)
for _name in SELECTED:
    selected(_name)
for _name, (_scale, _point) in FIXED.items():
    fixed(_name, _scale, _point)


@handles("relu")
def relu(input: QuantizedTensor, inplace: bool = False) -> Any:
    """No number below zero: no integer below the zero point."""
    if inplace:
        return relu_(input)
    quantizer = input._quantizer
    checks.check(quantizer.axis is None, "relu: only per-tensor quantization is supported")
    return seen_as(laid(input).clamp(min=quantizer.zero_point), quantizer)


@handles("equal")
def equal(input: Any, other: Any) -> bool:
    """Whether two tensors are quantised alike and have the same integers."""
    if not (isinstance(input, QuantizedTensor) and isinstance(other, QuantizedTensor)):
        raise refuse("equal")
    same = input.dtype is other.dtype and input._quantizer.same(other._quantizer)
    return same and function_of("equal")(integers(input), integers(other))


def joined(name: str, function: Callable[..., Tensor]) -> Callable[..., Any]:
    def join(tensors: Sequence[Any], dim: int = 0) -> Any:
        first = next(t for t in tensors if isinstance(t, QuantizedTensor))
        quantizer, dtype = first._quantizer, first.dtype
        for t in tensors:
            if not isinstance(t, QuantizedTensor):
                raise refuse(name)
            if t._quantizer.axis is not None:
                raise RuntimeError(f"Only per-tensor quantization is supported in '{name}'!")
            checks.check(t.dtype is dtype, "All dtypes must be the same.")
        parts = [
            t if t._quantizer.same(quantizer) else quantised(dequantized(t), quantizer, dtype)
            for t in tensors
        ]
        return seen_as(function([integers(t) for t in parts], dim), quantizer)

    return join


HANDLERS["cat"] = HANDLERS["concat"] = HANDLERS["concatenate"] = joined("cat", cat)
HANDLERS["stack"] = joined("stack", stack)


@handles("masked_fill")
def masked_fill(self: QuantizedTensor, mask: Tensor, value: Any) -> Any:
    """The tensor with a number where a mask is True."""
    checks.check(self._quantizer.axis is None, "quantized per channel: not supported by this operator")
    return quantised(where(mask, value, dequantized(self)), self._quantizer, self.dtype, last=False)


# ---- writes --------------------------------------------------------------------------------------------------------


def like(target: QuantizedTensor, value: Any) -> Tensor:
    """The integers that numbers become in a tensor."""
    if isinstance(value, QuantizedTensor) and value._quantizer.same(target._quantizer):
        return integers(value)
    numbers = dequantized(value)
    if not isinstance(numbers, Tensor):
        numbers = function_of("tensor")(float(numbers), dtype=dtypes.float32)
    return integers(quantised(numbers, target._quantizer, target.dtype))


@handles("copy_")
def copy_(self: Any, src: Any, non_blocking: bool = False) -> Any:
    """Write numbers, quantised as the tensor is; of a quantised source its integers, scale and zero point."""
    if not isinstance(self, QuantizedTensor):
        raise RuntimeError(
            "Copying from quantized Tensor to non-quantized Tensor is not allowed, "
            "please use dequantize to get a float Tensor from a quantized Tensor"
        )
    if isinstance(src, QuantizedTensor):
        checks.check(
            self.dtype is src.dtype, "Quantized copy only works with Tensors with the same data type"
        )
        self._quantizer = src._quantizer
        integers(self).copy_(integers(src))
    else:
        if src.dtype is not dtypes.float32:
            raise RuntimeError("Quantized copy only works with kFloat as source Tensor")
        integers(self).copy_(like(self, src.expand(tuple(self.shape))))
    return self


@handles("fill_")
def fill_(self: QuantizedTensor, value: Any) -> Any:
    """Write one number everywhere."""
    shape = tuple(self.shape)
    full = function_of("full")(shape, float(value), dtype=dtypes.float32, device=self.device)
    return copy_(self, full)


@handles("__setitem__")
def set_item(self: QuantizedTensor, key: Any, value: Any) -> None:
    """Write numbers to a part."""
    checks.check(self._quantizer.axis is None, "index_put: only per-tensor quantization is supported")
    integers(self)[key] = like(self, value)


@handles("relu_")
def relu_(self: QuantizedTensor) -> Any:
    """`relu`, in place."""
    integers(self).copy_(integers(relu(self)))
    return self


@handles("clamp_", "clip_", "hardtanh_")
def clamp_(self: QuantizedTensor, *args: Any, **kwargs: Any) -> Any:
    """`clamp`, in place."""
    integers(self).copy_(integers(HANDLERS["clamp"](self, *args, **kwargs)))
    return self


attach_methods(
    int_repr,
    q_per_channel_axis,
    q_per_channel_scales,
    q_per_channel_zero_points,
    q_scale,
    q_zero_point,
    qscheme,
)
