"""Quantised tensors: integers that stand for real numbers. Written through `__torch_function__`, as any extension could be.

A tensor of this class lies over the memory of its integers: the same storage, seen with a dtype that no array has, and with a
`Quantizer`. Its views are views of the integers, and a write to one shows in all. `integers` and `seen_as` lead between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import checks, dtypes
from ..geometry import channels_last_order, contiguous_strides
from ..operators.overriding import answering_in, arm
from ..ops.create.ingest import from_numpy
from ..sparse.layout import UNANSWERED, by_table, host
from ..tensor import (
    Tensor,
    array_of,
    counter_of,
    make_view,
    sizes_of,
    strides_of,
    tensor_over,
    wrap,
    wrap_strided,
)
from ..xla.cache import bounded
from ..xla.x64 import call
from . import kernels

__all__ = [
    "HANDLERS",
    "QuantizedTensor",
    "Quantizer",
    "channels_first",
    "channels_last",
    "copied",
    "dequantized",
    "handles",
    "integers",
    "laid",
    "per_channel",
    "per_tensor",
    "quantised",
    "refuse",
    "seen_as",
]

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}
"""What answers for an operator when a quantised tensor is among its arguments, by the operator's name."""


class Quantizer(NamedTuple):
    """How integers stand for real numbers, `(q - zero_point) * scale`: numbers, or per channel tensors along an axis."""

    scheme: dtypes.qscheme
    scale: Any
    zero_point: Any
    axis: int | None = None

    def same(self, other: Quantizer) -> bool:
        """Whether equal integers mean equal numbers."""
        if self.scheme is not other.scheme or self.axis != other.axis:
            return False
        if self.axis is None:
            return self.scale == other.scale and self.zero_point == other.zero_point
        return np.array_equal(host(self.scale), host(other.scale)) and np.array_equal(
            host(self.zero_point), host(other.zero_point)
        )

    def select(self, keep: Any) -> Quantizer:
        """The channel, or channels, at an index."""
        scales, points = host(self.scale)[keep], host(self.zero_point)[keep]
        if np.ndim(scales) == 0 and self.scheme is dtypes.per_channel_affine:
            return per_tensor(float(scales), int(points))
        return self._replace(
            scale=from_numpy(np.atleast_1d(scales).copy()),
            zero_point=from_numpy(np.atleast_1d(points).copy()),
        )


def per_tensor(scale: float, zero_point: int) -> Quantizer:
    """One scale and one zero point for all elements."""
    return Quantizer(dtypes.per_tensor_affine, float(scale), int(zero_point))


def per_channel(scales: Tensor, zero_points: Tensor, axis: int) -> Quantizer:
    """A scale and a zero point for each index of an axis: float64 and int64, or float32 where the zero points are floating."""
    if zero_points.is_floating_point():
        scheme = dtypes.per_channel_affine_float_qparams
        return Quantizer(scheme, scales.detach().float(), zero_points.detach().float(), int(axis))
    return Quantizer(
        dtypes.per_channel_affine, scales.detach().double(), zero_points.detach().long(), int(axis)
    )


class QuantizedTensor(Tensor):
    """A tensor of integers that stand for real numbers.

    >>> x = xtensor.quantize_per_tensor(xtensor.tensor([-1.0, 0.26, 3.0]), 0.1, 10, xtensor.quint8)
    >>> x.int_repr()
    tensor([ 0, 13, 40], dtype=xtensor.uint8)
    >>> x.dequantize()
    tensor([-1.0000,  0.3000,  3.0000])
    """

    _xt_arms_late = True
    _prints_as = "tensor"
    is_quantized = True
    _quantizer: Quantizer

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        composite = getattr(func, "composite", None)
        if composite is not None:  # of `torch.ops.quantized`
            return composite(*args, **(kwargs or {}))
        made = by_table(HANDLERS, KEPT, func, args, kwargs or {})
        if made is UNANSWERED:
            raise refuse(getattr(func, "__name__", ""))
        return made

    @property
    def T(self) -> Any:
        return HANDLERS["t"](self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return seen_as, (integers(self), self._quantizer)


def data_of(self: QuantizedTensor) -> Any:
    """The same integers, another tensor."""
    return seen_as(integers(self), self._quantizer)


def set_data(self: QuantizedTensor, source: Any) -> None:
    """Hold what another quantised tensor does."""
    self._xt_storage, self._xt_view, self._quantizer = source._xt_storage, source._xt_view, source._quantizer


QuantizedTensor.data = property(data_of, set_data)  # pyright: ignore[reportAttributeAccessIssue]


KEPT = frozenset(
    "__get__ __set__ __delete__ is_contiguous storage_offset stride data_ptr untyped_storage storage _is_view const_data_ptr "
    "is_set_to nbytes".split()
)
"""What is answered by the memory."""


handles = answering_in(HANDLERS)
"""Has a function answer for operators of these names."""


def refuse(name: str) -> NotImplementedError:
    """The error of an operator that quantised tensors have not."""
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'QuantizedCPU' backend. This could be because the operator "
        "doesn't exist for this backend, or was omitted during the selective/custom build process (if using custom build)."
    )


# ---- between integers and quantised tensors ------------------------------------------------------------------------


def integers(quantised: QuantizedTensor) -> Tensor:
    """The integers themselves, in the same memory."""
    storage, sizes, strides = quantised._xt_storage, sizes_of(quantised), strides_of(quantised)
    offset = quantised._xt_view.offset if quantised._xt_view is not None else 0
    if offset == 0 and storage.array.shape == sizes and strides == contiguous_strides(sizes):
        return tensor_over(storage)
    dtype = dtypes.QUANTISED[quantised.dtype]
    return tensor_over(storage, make_view(storage, counter_of(quantised), dtype, sizes, strides, offset))


@bounded(8)
def quantised_dtype(integer: dtypes.dtype) -> dtypes.dtype:
    for quantised, found in dtypes.QUANTISED.items():
        if found is integer:
            return quantised
    raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")


def seen_as(made: Tensor, quantizer: Quantizer) -> QuantizedTensor:
    """A tensor of integers as numbers, in the same memory; RuntimeError where there are not as many channels as scales."""
    dtype, sizes = quantised_dtype(made.dtype), sizes_of(made)
    if quantizer.axis is not None:
        check_channels(sizes, quantizer)
    arm(QuantizedTensor)
    storage = made._xt_storage
    offset = made._xt_view.offset if made._xt_view is not None else 0
    view = make_view(storage, counter_of(made), dtype, sizes, strides_of(made), offset)
    found: Any = tensor_over(storage, None, kind=QuantizedTensor)
    found._xt_view = view
    found._quantizer = quantizer
    return found


def check_channels(sizes: tuple[int, ...], quantizer: Quantizer, doing: str = "quantization") -> None:
    """Refuse parameters that are not one for each channel."""
    axis, scales, points = quantizer.axis, quantizer.scale, quantizer.zero_point
    assert axis is not None
    checks.check(scales.dim() == 1, "scale tensor must have dimension 1")
    checks.check(points.dim() == 1, "zero_points tensor must have dimension 1")
    same = scales.numel() == points.numel()
    checks.check(same, "number of elements in scales and zero_points must match")
    if not 0 <= axis < len(sizes):
        raise RuntimeError(
            f"Channel axis out of range in per channel affine {doing}. Got: {axis}Expected: [0, {len(sizes)})"
        )
    if scales.numel() != sizes[axis]:
        raise RuntimeError(
            f"length of scales must equal to channel, expected {sizes[axis]} got, {scales.numel()}"
        )


def operands(quantizer: Quantizer) -> tuple[Any, Any]:
    if quantizer.axis is None:
        return np.float32(quantizer.scale), np.float32(quantizer.zero_point)
    return array_of(quantizer.scale), array_of(quantizer.zero_point)


# ---- channels in memory --------------------------------------------------------------------------------------------


def channels_last(tensor: Tensor) -> Tensor:
    """A view of (N, C, ...) as (N, ..., C)."""
    return tensor.permute((0, *range(2, tensor.dim()), 1))


def channels_first(array: Any) -> Tensor:
    """An array (N, ..., C) as a tensor (N, C, ...), whose channels lie last."""
    batch, *space, channels = array.shape
    first, *steps, step = contiguous_strides(array.shape)
    return wrap_strided(array, (batch, channels, *space), (first, step, *steps))


def lies_last(tensor: Tensor) -> bool:
    """Whether results made of a tensor have their channels last in memory: where it has, images and volumes alone."""
    return channels_last_order(sizes_of(tensor), strides_of(tensor)) is not None


def laid(source: QuantizedTensor) -> Tensor:
    """The integers as results made of them lie: in order, but for channels that are last."""
    held = integers(source)
    return held if lies_last(held) else held.contiguous()


def copied(source: QuantizedTensor) -> Tensor:
    """A copy of the integers, as results lie."""
    made = laid(source)
    return made.clone() if made._xt_storage is source._xt_storage else made


def quantised(
    values: Tensor, quantizer: Quantizer, dtype: dtypes.dtype, last: bool | None = None
) -> QuantizedTensor:
    """Real numbers, quantised: rounded half to even, and kept within what the integers can be.

    last: whether channels lie last in memory; as in the numbers where it is None, but not where each has a scale.
    """
    values, axis = values.detach(), quantizer.axis
    last = axis is None and lies_last(values) if last is None else last
    program = kernels.quantising(dtypes.QUANTISED[dtype].name, axis)
    made = call(program, array_of(channels_last(values) if last else values), *operands(quantizer))
    return seen_as(channels_first(made) if last else wrap(made), quantizer)


def dequantized(source: Any) -> Any:
    """The real numbers, float32, of a quantised tensor; any other value itself."""
    if not isinstance(source, QuantizedTensor):
        return source
    quantizer, held = source._quantizer, integers(source)
    last = quantizer.axis is None and lies_last(held)
    program = kernels.dequantising(quantizer.axis)
    made = call(program, array_of(channels_last(held) if last else held), *operands(quantizer))
    return channels_first(made) if last else wrap(made)
