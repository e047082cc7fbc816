"""The operators of torchvision's extension, `torch.ops.torchvision.*`, as XLA programs: what its layers call.

Its own compiled file needs PyTorch's libraries; `torch.ops.load_library` of it gives these.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import checks, devices
from ..autograd.function import Function, once_differentiable
from ..ops.create.ingest import from_numpy
from ..tensor import Tensor, array_of, host_array, wrap
from ..xla.cache import bounded
from ..xla.segments import SINGLE, waiter
from ..xla.x64 import call, jit

__all__ = ["OPERATORS", "deform_conv2d", "nms", "ps_roi_align", "ps_roi_pool", "roi_align", "roi_pool"]

AT_ONCE = 64
"""How many regions are cut out together: the cuts of all would be many times their maps."""


def _suppressed(boxes: Any, scores: Any, threshold: Any, count: Any) -> tuple[Any, Any]:
    """Which boxes are kept, in the order of falling scores, and that order; those from `count` on are padding."""
    places = jnp.arange(boxes.shape[0])
    order = jnp.argsort(jnp.where(places < count, -scores, jnp.inf), stable=True)
    boxes = boxes[order]
    left, top, right, bottom = boxes.T
    areas = (right - left) * (bottom - top)

    def one(i: Any, keep: Any) -> Any:
        width = jnp.maximum(jnp.minimum(right, right[i]) - jnp.maximum(left, left[i]), 0)
        height = jnp.maximum(jnp.minimum(bottom, bottom[i]) - jnp.maximum(top, top[i]), 0)
        common = width * height
        over = common / (areas + areas[i] - common) > threshold
        return keep & ~(keep[i] & over & (places > i))

    return lax.fori_loop(0, count, one, places < count), order


_suppress = jit(_suppressed)


def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """The boxes that no box of a higher score covers by more than a threshold, by falling scores.

    dets: `(n, 4)`, left, top, right, bottom; scores: `(n,)`. The result: int64 indices.
    """
    checks.check(dets.dim() == 2, f"boxes should be a 2d tensor, got {dets.dim()}D")
    checks.check(dets.shape[1] == 4, f"boxes should have 4 elements in dimension 1, got {dets.shape[1]}")
    checks.check(scores.dim() == 1, f"scores should be a 1d tensor, got {scores.dim()}D")
    count = dets.shape[0]
    checks.check(
        count == scores.shape[0],
        "boxes and scores should have same number of elements in dimension 0, "
        f"got {count} and {scores.shape[0]}",
    )
    if not count:
        return from_numpy(np.zeros(0, np.int64)).to(dets.device)
    # A power of two rows: a program serves many numbers of boxes.
    more = 2 ** max(count - 1, 1).bit_length() - count
    wide = np.float64 if array_of(dets).dtype == np.float64 else np.float32
    boxes = np.pad(host_array(dets.detach()).astype(wide), ((0, more), (0, 0)))
    marks = np.pad(host_array(scores.detach()).astype(wide), (0, more))
    keep, order = call(
        _suppress, jnp.asarray(boxes), jnp.asarray(marks), wide(iou_threshold), np.int32(count)
    )
    return from_numpy(np.asarray(order)[np.asarray(keep)].astype(np.int64)).to(dets.device)


def _corners(at: Any, size: int) -> tuple[Any, Any, Any, Any]:
    """The two places around each coordinate and their weights; both weights are 0 outside the map."""
    outside = (at < -1) | (at > size)
    at = jnp.maximum(at, 0)
    low = jnp.minimum(at.astype(jnp.int32), size - 1)
    at = jnp.where(low >= size - 1, low.astype(at.dtype), at)
    high = jnp.minimum(low + 1, size - 1)
    weight = at - low
    return low, high, jnp.where(outside, 0, 1 - weight), jnp.where(outside, 0, weight)


def _samples(first: Any, extent: Any, bins: int, most: int, ratio: int, length: int) -> tuple[Any, ...]:
    """What `_corners` says of all samples along an axis, the weights of those that a bin does not have being 0; and how many it has."""
    step = extent / bins
    number = jnp.asarray(ratio, step.dtype) if ratio > 0 else jnp.ceil(step)
    places = jnp.arange(most, dtype=step.dtype)
    at = (
        first
        + jnp.arange(bins, dtype=step.dtype)[:, None] * step
        + (places + 0.5) * step / jnp.maximum(number, 1)
    )
    low, high, near, far = _corners(at.reshape(-1), length)
    taken = jnp.tile(places < number, bins)
    return low, high, near * taken, far * taken, jnp.maximum(number, 1)


def _aligned(
    maps: Any,
    rois: Any,
    scale: Any,
    *,
    size: tuple[int, int],
    grid: tuple[int, int],
    ratio: int,
    aligned: bool,
) -> Any:
    """Averages of bilinear samples `(k, c, *size)`; grid: the most samples of a bin in each direction."""
    wide = jnp.promote_types(maps.dtype, jnp.float32)
    shift = 0.5 if aligned else 0.0

    def axis(start: Any, end: Any, bins: int, most: int, length: int) -> Any:
        first, last = start * scale - shift, end * scale - shift
        extent = last - first if aligned else jnp.maximum(last - first, 1.0)
        return _samples(first, extent, bins, most, ratio, length)

    def one(roi: Any) -> Any:
        roi = roi.astype(wide)
        image = maps[roi[0].astype(jnp.int32)].astype(wide)
        up, down, upper, lower, rows = axis(roi[2], roi[4], size[0], grid[0], image.shape[1])
        west, east, nearer, farther, columns = axis(roi[1], roi[3], size[1], grid[1], image.shape[2])
        across = image[:, :, west] * nearer + image[:, :, east] * farther
        found = across[:, up] * upper[:, None] + across[:, down] * lower[:, None]
        found = found.reshape(-1, size[0], grid[0], size[1], grid[1]).sum((2, 4))
        return found / (rows * columns)

    return lax.map(one, rois, batch_size=AT_ONCE).astype(maps.dtype)


def _pooled(maps: Any, rois: Any, scale: Any, *, size: tuple[int, int]) -> Any:
    """The largest value of every bin `(k, c, *size)`, 0 of an empty one."""

    def axis(start: Any, end: Any, bins: int, length: int) -> Any:
        first, last = (jnp.floor(jnp.abs(x * scale) + 0.5) * jnp.sign(x) for x in (start, end))
        step = jnp.maximum(last - first + 1, 1.0) / bins
        number = jnp.arange(bins, dtype=jnp.float32)
        low = jnp.clip(jnp.floor(number * step) + first, 0, length)
        high = jnp.clip(jnp.ceil((number + 1) * step) + first, 0, length)
        places = jnp.arange(length)
        return (places >= low[:, None]) & (places < high[:, None])

    def one(roi: Any) -> Any:
        image = maps[roi[0].astype(jnp.int32)]
        rows = axis(roi[2], roi[4], size[0], image.shape[1])
        columns = axis(roi[1], roi[3], size[1], image.shape[2])
        least = jnp.asarray(-jnp.inf, image.dtype)
        across = jnp.where(columns[None, None], image[:, :, None], least).max(-1)
        found = jnp.where(rows[None, :, :, None], across[:, None], least).max(2)
        return jnp.where(jnp.isneginf(found), 0, found)

    return lax.map(one, rois.astype(jnp.float32), batch_size=AT_ONCE)


def _own(image: Any, size: tuple[int, int]) -> Any:
    """The maps `(c, *size, h, w)` of an image whose every bin has channels of its own."""
    return image.reshape(-1, *size, *image.shape[1:])


def _own_aligned(
    maps: Any, rois: Any, scale: Any, *, size: tuple[int, int], grid: tuple[int, int], ratio: int
) -> Any:
    """`_aligned` where every bin has channels of its own: sums with a matrix of weights along each axis."""
    wide = jnp.promote_types(maps.dtype, jnp.float32)

    def axis(start: Any, end: Any, bins: int, most: int, length: int) -> Any:
        first = start * scale - 0.5
        low, high, near, far, number = _samples(first, end * scale - 0.5 - first, bins, most, ratio, length)
        places = jnp.arange(length)
        weights = jnp.where(places == low[:, None], near[:, None], 0) + jnp.where(
            places == high[:, None], far[:, None], 0
        )
        return weights.reshape(bins, most, length).sum(1) / number

    def one(roi: Any) -> Any:
        roi = roi.astype(wide)
        image = maps[roi[0].astype(jnp.int32)].astype(wide)
        rows = axis(roi[2], roi[4], size[0], grid[0], image.shape[1])
        columns = axis(roi[1], roi[3], size[1], grid[1], image.shape[2])
        return jnp.einsum("cijhw,ih,jw->cij", _own(image, size), rows, columns)

    return lax.map(one, rois, batch_size=AT_ONCE).astype(maps.dtype)


def _own_pooled(maps: Any, rois: Any, scale: Any, *, size: tuple[int, int]) -> Any:
    """The average of every bin, which has channels of its own; 0 of an empty one."""

    def axis(start: Any, end: Any, bins: int, length: int) -> Any:
        first, last = (jnp.floor(jnp.abs(x * scale) + 0.5) * jnp.sign(x) for x in (start, end))
        step = jnp.maximum(last - first, 1.0) / bins
        number = jnp.arange(bins, dtype=jnp.float32)
        low = jnp.clip(jnp.floor(number * step) + first, 0, length - 1)
        high = jnp.clip(jnp.ceil((number + 1) * step) + first, 0, length - 1)
        places = jnp.arange(length)
        inside = (places >= low[:, None]) & (places < high[:, None])
        return inside / jnp.maximum(high - low, 1)[:, None]

    def one(roi: Any) -> Any:
        image = maps[roi[0].astype(jnp.int32)]
        rows = axis(roi[2], roi[4], size[0], image.shape[1]).astype(image.dtype)
        columns = axis(roi[1], roi[3], size[1], image.shape[2]).astype(image.dtype)
        return jnp.einsum("cijhw,ih,jw->cij", _own(image, size), rows, columns)

    return lax.map(one, rois.astype(jnp.float32), batch_size=AT_ONCE)


def _deformed(
    input: Any,
    weight: Any,
    offset: Any,
    mask: Any,
    bias: Any,
    *,
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    groups: int,
    masked: bool,
) -> Any:
    """A convolution whose every tap reads where an offset leads it (Dai et al., Deformable Convolutional Networks, 2017)."""
    n, channels, height, width = input.shape
    kernel = weight.shape[2:]
    taps = kernel[0] * kernel[1]
    out = offset.shape[2:]
    parts = offset.shape[1] // (2 * taps)
    moved = offset.reshape(n, parts, taps, 2, *out)

    def axis(at: int, size: int) -> Any:
        tap = jnp.asarray(np.indices(kernel)[at].reshape(-1, 1, 1) * dilation[at], input.dtype)
        start = np.arange(out[at]) * stride[at] - padding[at]
        place = jnp.asarray(start.reshape((-1, 1) if at == 0 else (1, -1)), input.dtype)
        found = place + tap + moved[:, :, :, at]
        low = jnp.floor(found)
        far = found - low
        for near, weights in ((low, 1 - far), (low + 1, far)):
            inside = (near >= 0) & (near <= size - 1)
            yield jnp.clip(near, 0, size - 1).astype(jnp.int32), jnp.where(inside, weights, 0)

    values = input.reshape(n, parts, channels // parts, height * width)
    columns: Any = 0
    sides = list(axis(1, width))
    for row, upper in axis(0, height):
        for column, nearer in sides:
            at = (row * width + column).reshape(n, parts, 1, -1)
            read = jnp.take_along_axis(values, at, axis=3).reshape(n, parts, -1, taps, *out)
            columns += read * (upper * nearer)[:, :, None]
    if masked:
        columns *= mask.reshape(n, parts, 1, taps, *out)
    columns = columns.reshape(n, groups, channels // groups, taps, *out)
    weights = weight.reshape(groups, -1, channels // groups, taps)
    return jnp.einsum("ngctyx,goct->ngoyx", columns, weights).reshape(n, -1, *out) + bias[:, None, None]


@bounded(256)
def _deforming(options: tuple[tuple[str, Any], ...]) -> tuple[Any, Any]:
    """`_deformed` with options, and its derivative."""

    def forward(*given: Any) -> Any:
        return _deformed(*given, **dict(options))

    def backward(grad: Any, *given: Any) -> Any:
        return jax.vjp(forward, *given)[1](grad)

    return jit(forward), jit(backward)


class _Deforming(Function):
    """A deformable convolution, with gradients for all its arguments."""

    @staticmethod
    def forward(ctx: Any, programs: Any, *given: Tensor) -> Tensor:
        ctx.save_for_backward(*given)
        ctx.programs = programs
        return wrap(call(programs[0], *map(array_of, given)))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        found = call(ctx.programs[1], array_of(grad), *map(array_of, ctx.saved_tensors))
        return (None, *map(wrap, found))


@bounded(256)
def _programs(kernel: Any, options: tuple[tuple[str, Any], ...]) -> tuple[Any, Any]:
    """A kernel with its options, and its derivative for the maps; their calls may wait."""

    def forward(maps: Any, rois: Any, scale: Any) -> Any:
        return kernel(maps, rois, scale, **dict(options))

    def backward(maps: Any, rois: Any, scale: Any, grad: Any) -> Any:
        return jax.vjp(lambda x: forward(x, rois, scale), maps)[1](grad)[0]

    return waiter(jit(forward), 3, SINGLE), waiter(jit(backward), 4, SINGLE)


@bounded(256)
def _scale(scale: float, place: devices.device) -> Any:
    return devices.put(np.float32(scale), place)


def _operand(tensor: Tensor) -> Any:
    """A tensor's array, or what it is pending as."""
    return tensor._xt_storage.operand if tensor._xt_view is None else array_of(tensor)


class _Regions(Function):
    """A kernel over regions of maps, with a gradient for the maps."""

    @staticmethod
    def forward(ctx: Any, maps: Tensor, rois: Tensor, scale: float, programs: Any) -> Tensor:
        ctx.save_for_backward(maps, rois)
        ctx.scale, ctx.programs = _scale(float(scale), maps.device), programs
        return wrap(call(programs[0], _operand(maps), _operand(rois), ctx.scale))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> Any:
        maps, rois = ctx.saved_tensors
        found = call(ctx.programs[1], _operand(maps), _operand(rois), ctx.scale, _operand(grad))
        return wrap(found), None, None, None


def roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Tensor:
    """Regions of maps, each as `pooled_height` by `pooled_width` averages of bilinear samples.

    input: `(n, c, h, w)`; rois: `(k, 5)`, the map's number and left, top, right, bottom. The result: `(k, c, ...)`.
    """
    _check_regions(input, rois)
    size = (pooled_height, pooled_width)
    grid = _grid(rois, spatial_scale, size, sampling_ratio, 0.0 if aligned else 1.0)
    options = (("size", size), ("grid", grid), ("ratio", sampling_ratio), ("aligned", bool(aligned)))
    return _of_regions(input, rois, spatial_scale, size, _programs(_aligned, options))


def _grid(rois: Tensor, scale: float, size: tuple[int, int], ratio: int, least: float) -> tuple[int, int]:
    """The most samples of a bin in each direction; least: the least extent of a region."""
    if ratio > 0 or not rois.shape[0]:
        return ratio, ratio
    values = host_array(rois.detach()).astype(np.float32) * np.float32(scale)
    extents = values[:, 4] - values[:, 2], values[:, 3] - values[:, 1]
    most = [max(float(e.max()), least) / n for e, n in zip(extents, size)]
    # Rounded up to a power of two: programs are compiled for few grids.
    rows, columns = (2 ** max(math.ceil(m) - 1, 0).bit_length() for m in most)
    return rows, columns


def ps_roi_align(
    input: Tensor,
    rois: Tensor,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
) -> tuple[Tensor, Tensor]:
    """`roi_align` with `aligned`, where every bin has channels of its own (Dai et al., R-FCN, 2016).

    input: `(n, c * pooled_height * pooled_width, h, w)`. The result: `(k, c, pooled_height, pooled_width)`.
    Differs from PyTorch: the second result, which channels were read, is empty: the gradient does not need it.
    """
    size = (pooled_height, pooled_width)
    _check_own(input, rois, size)
    grid = _grid(rois, spatial_scale, size, sampling_ratio, 0.0)
    options = (("size", size), ("grid", grid), ("ratio", sampling_ratio))
    return _of_own(input, rois, spatial_scale, size, _programs(_own_aligned, options))


def ps_roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """The averages of bins, each of which has channels of its own (Dai et al., R-FCN, 2016).

    input: `(n, c * pooled_height * pooled_width, h, w)`. The result: `(k, c, pooled_height, pooled_width)`.
    Differs from PyTorch: the second result, which channels were read, is empty: the gradient does not need it.
    """
    size = (pooled_height, pooled_width)
    _check_own(input, rois, size)
    return _of_own(input, rois, spatial_scale, size, _programs(_own_pooled, (("size", size),)))


def deform_conv2d(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    groups: int,
    offset_groups: int,
    use_mask: bool,
) -> Tensor:
    """A convolution whose taps read where offsets lead them, between places by bilinear interpolation.

    input: `(n, c, h, w)`; weight: `(o, c / groups, kh, kw)`; offset: `(n, 2 * offset_groups * kh * kw, oh, ow)`, rows before columns;
    mask: `(n, offset_groups * kh * kw, oh, ow)`. The result: `(n, o, oh, ow)`.
    """
    checks.check(input.dim() == 4, f"Expected 4D tensor for input, got {input.dim()}D")
    taps = weight.shape[2] * weight.shape[3]
    checks.check(
        offset.shape[1] == offset_groups * 2 * taps,
        f"offset.shape[1] is not valid: got: {offset.shape[1]} expected: {offset_groups * 2 * taps}",
    )
    checks.check(
        not use_mask or mask.shape[1] == offset_groups * taps,
        f"mask.shape[1] is not valid: got: {mask.shape[1] if use_mask else 0} expected: {offset_groups * taps}",
    )
    options = (
        ("stride", (stride_h, stride_w)),
        ("padding", (pad_h, pad_w)),
        ("dilation", (dilation_h, dilation_w)),
        ("groups", groups),
        ("masked", bool(use_mask)),
    )
    return _Deforming.apply(_deforming(options), input, weight, offset, mask, bias)


def roi_pool(
    input: Tensor, rois: Tensor, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Tensor, Tensor]:
    """Regions of maps, each as `pooled_height` by `pooled_width` largest values.

    Differs from PyTorch: the second result, where the largest values stand, is empty: the gradient needs no places.
    """
    _check_regions(input, rois)
    size = (pooled_height, pooled_width)
    found = _of_regions(input, rois, spatial_scale, size, _programs(_pooled, (("size", size),)))
    return found, from_numpy(np.zeros(0, np.int32)).to(input.device)


def _check_regions(input: Tensor, rois: Tensor) -> None:
    checks.check(rois.dim() == 2 and rois.shape[1] == 5, "rois must have shape as Tensor[K, 5]")
    checks.check(
        input.dtype is rois.dtype,
        f"Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; "
        f"but type {input.dtype} does not equal {rois.dtype}",
    )


def _check_own(input: Tensor, rois: Tensor, size: tuple[int, int]) -> None:
    _check_regions(input, rois)
    checks.check(
        input.shape[1] % (size[0] * size[1]) == 0,
        "input channels must be a multiple of pooling height * pooling width",
    )


def _of_own(
    input: Tensor, rois: Tensor, scale: float, size: tuple[int, int], programs: Any
) -> tuple[Tensor, Tensor]:
    nothing = from_numpy(np.zeros(0, np.int32)).to(input.device)
    if not rois.shape[0]:
        return input.new_zeros((0, input.shape[1] // (size[0] * size[1]), *size)) + 0 * input.sum(), nothing
    return _Regions.apply(input, rois, scale, programs), nothing


def _of_regions(input: Tensor, rois: Tensor, scale: float, size: tuple[int, int], programs: Any) -> Tensor:
    if not rois.shape[0]:
        return input.new_zeros((0, input.shape[1], *size)) + 0 * input.sum()
    return _Regions.apply(input, rois, scale, programs)


# Those without a kernel here are named, for the tables that torchvision keeps; a call of one raises.
OPERATORS: dict[str, Any] = {
    **dict.fromkeys(
        "_deform_conv2d_backward _ps_roi_align_backward _ps_roi_pool_backward _roi_align_backward _roi_pool_backward "
        "qnms qroi_align".split()
    ),
    "deform_conv2d": deform_conv2d,
    "nms": nms,
    "ps_roi_align": ps_roi_align,
    "ps_roi_pool": ps_roi_pool,
    "roi_align": roi_align,
    "roi_pool": roi_pool,
    "_cuda_version": lambda: -1,
}
