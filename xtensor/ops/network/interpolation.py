"""Resizing of images: every output element is a weighted sum of a few input elements along each spatial dimension.

Which elements, and with what weights, is known from sizes and scales alone: both are constants of the program. The
gradient gathers too, through the transposed table, so that no scatter runs and a NaN stays where it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.below.aten import CHOOSING
from ...operators.declare import general
from ...operators.schema import Array
from ...tensor import Tensor, sizes_of
from ...xla.number_arrays import size_as
from ...xla.symbolic import at_most, is_open
from .adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from .tables import NONE, combine, transposed

__all__ = ["interpolate", "upsample", "upsample_bilinear", "upsample_nearest"]


# ---- which elements, with what weights -----------------------------------------------------------------------------


def step(size: int, out: int, scale: float | None, align_corners: bool, wide: Any) -> Any:
    """How far apart in the input two neighbours of the output lie."""
    if align_corners:
        return wide(size - 1) / wide(out - 1) if out > 1 else wide(0)
    if scale is not None and scale > 0:
        return wide(1.0 / scale)
    return wide(size) / wide(out)


def cubic(x: Any, a: float, m: Any = np) -> Any:
    """Keys' convolution kernel; m: NumPy, or JAX's."""
    x = m.abs(x)
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return m.where(x < 1, near, m.where(x < 2, far, 0))


def triangle(x: Any) -> Any:
    return np.maximum(1 - np.abs(x), 0)


def lanczos(x: Any) -> Any:
    """A sinc of three lobes, windowed by a wider one."""
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


def nearest_taps(size: int, out: int, scale: float | None, exact: bool, wide: Any) -> tuple[Any, Any]:
    places = np.arange(out).astype(wide)
    if not exact and out == size:
        found = np.arange(out)
    elif not exact and out == 2 * size:
        found = np.arange(out) >> 1
    else:
        by = step(size, out, scale, False, wide)
        found = np.floor((places + wide(0.5)) * by if exact else places * by)
    return np.minimum(found.astype(np.int64), size - 1)[:, None], np.ones((out, 1), wide)


def linear_taps(size: int, out: int, scale: float | None, align: bool, wide: Any) -> tuple[Any, Any]:
    if out == size:
        return np.arange(out)[:, None], np.ones((out, 1), wide)
    by = step(size, out, scale, align, wide)
    places = np.arange(out).astype(wide)
    at = by * places if align else np.maximum(by * (places + wide(0.5)) - wide(0.5), wide(0))
    first = np.minimum(np.floor(at).astype(np.int64), size - 1)
    second = first + (first < size - 1)
    share = np.clip(at - first.astype(wide), 0, 1).astype(wide)
    return np.stack([first, second], 1), np.stack([wide(1) - share, share], 1)


def cubic_taps(size: int, out: int, scale: float | None, align: bool, wide: Any) -> tuple[Any, Any]:
    by = step(size, out, scale, align, wide)
    places = np.arange(out).astype(wide)
    at = by * places if align else by * (places + wide(0.5)) - wide(0.5)
    first = np.floor(at)
    share = (at - first)[:, None]
    offsets = np.arange(-1, 3)
    index = np.clip(first.astype(np.int64)[:, None] + offsets, 0, size - 1)
    return index, cubic(share - offsets.astype(wide), -0.75).astype(wide)


FILTERS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "bilinear": (triangle, 2),
    "bicubic": (lambda x: cubic(x, -0.5), 4),
    "lanczos": (lanczos, 6),
}


def antialiased_taps(
    mode: str, size: int, out: int, scale: float | None, align: bool, wide: Any
) -> tuple[Any, Any]:
    """A filter stretched to the step, so that every input element counts when an image shrinks."""
    if out == size:
        return np.arange(out)[:, None], np.ones((out, 1), wide)
    weigh, reach = FILTERS[mode]
    by = step(size, out, scale, align, wide)
    stretch = by if by >= 1 else wide(1)
    support = wide(reach * 0.5) * stretch
    half = wide(0.5)
    center = by * (np.arange(out).astype(wide) + half)
    low = np.maximum(np.trunc(center - support + half).astype(np.int64), 0)
    high = np.minimum(np.trunc(center + support + half).astype(np.int64), size)
    count = max(int((high - low).max()), 1)
    index = low[:, None] + np.arange(count)
    weight = weigh((index.astype(wide) - center[:, None] + half) / stretch).astype(wide)
    inside = index < high[:, None]
    weight = np.where(inside, weight, 0)
    total = weight.sum(axis=1, keepdims=True)
    weight = np.where(total != 0, weight / np.where(total != 0, total, 1), weight).astype(wide)
    return np.where(inside, index, NONE), weight


def taps(
    mode: str, size: int, out: int, scale: float | None, align: bool, antialias: bool, wide: Any
) -> tuple[Any, Any]:
    """Indices `(out, K)` of the input elements that make every output element, and their weights."""
    if mode in ("nearest", "nearest-exact"):
        return nearest_taps(size, out, scale, mode == "nearest-exact", wide)
    if antialias:
        return antialiased_taps(mode, size, out, scale, align, wide)
    return (cubic_taps if mode == "bicubic" else linear_taps)(size, out, scale, align, wide)


def open_taps(mode: str, size: Any, out: Any, scale: float | None, align: bool, wide: Any) -> tuple[Any, Any]:
    """`taps` of open sizes, as arrays of the program; a column of weights of None where each is one."""
    places = jnp.arange(out).astype(wide)
    half = wide(0.5)
    if align:
        by = size_as(size - 1, wide) / jnp.maximum(size_as(out - 1, wide), 1)
    else:
        by = wide(1.0 / scale) if scale else size_as(size, wide) / size_as(out, wide)
    last = size_as(size - 1, np.int64)
    if mode.startswith("nearest"):
        found = jnp.floor((places + half) * by if mode == "nearest-exact" else places * by).astype(np.int64)
        return jnp.minimum(found, last)[:, None], None
    at = by * places if align else by * (places + half) - half
    if mode == "bicubic":
        first = jnp.floor(at)
        offsets = np.arange(-1, 3)
        share = (at - first)[:, None] - offsets.astype(wide)
        index = jnp.clip(first.astype(np.int64)[:, None] + offsets, 0, last)
        return index, cubic(share, -0.75, jnp).astype(wide)
    at = jnp.maximum(at, wide(0))
    first = jnp.minimum(jnp.floor(at).astype(np.int64), last)
    share = jnp.clip(at - first.astype(wide), 0, 1).astype(wide)
    return jnp.stack([first, first + (first < last)], 1), jnp.stack([wide(1) - share, share], 1)


def combine_open(x: Any, axis: int, index: Any, weight: Any) -> Any:
    """`combine` by a table of open sizes."""
    if weight is None:
        return jnp.take(x, index[:, 0], axis=axis, mode="clip")
    tail = (1,) * (x.ndim - axis - 1)
    shares = weight.astype(x.dtype)
    parts = [
        jnp.take(x, index[:, k], axis=axis, mode="clip") * shares[:, k].reshape((-1, *tail))
        for k in range(weight.shape[1])
    ]
    return functools.reduce(jnp.add, parts)


def combine_whole(x: Any, axis: int, index: Any, weight: Any) -> Any:
    """`combine` for bytes: 16-bit weights in fixed point, as precise as the largest of them allows."""
    if index.shape[1] == 1:
        return combine(x, axis, index, weight)
    index, weight = merged(index, weight)
    bits = 1
    while bits < 22 and int(0.5 + weight.max() * 2 ** (bits + 1)) < 2**15:
        bits += 1
    fixed = np.trunc(weight * 2**bits + np.copysign(0.5, weight)).astype(np.int32)
    total = combine(x.astype(jnp.int32), axis, index, fixed)
    return jnp.clip((total + 2 ** (bits - 1)) >> bits, 0, 255)


def merged(index: Any, weight: Any) -> tuple[Any, Any]:
    """A table in which no row names an element twice."""
    index, weight = index.copy(), weight.copy()
    for k in range(1, index.shape[1]):
        for before in range(k):
            same = (index[:, k] == index[:, before]) & (index[:, k] != NONE)
            weight[same, before] += weight[same, k]
            index[same, k], weight[same, k] = NONE, 0
    return index, weight


# ---- operators -----------------------------------------------------------------------------------------------------


LETTERS = {1: "W", 2: "HW", 3: "DHW"}
KERNELS = {
    "nearest": "compute_indices_weights_nearest",
    "nearest-exact": "compute_indices_weights_nearest",
    "linear": "compute_indices_weights_linear",
    "bilinear": "compute_indices_weights_linear",
    "trilinear": "compute_indices_weights_linear",
    "bicubic": "compute_indices_weights_cubic",
}


def check_resize(n: int, shape: Sequence[int], size: Sequence[int]) -> None:
    """PyTorch's errors for the shapes of an image and of its resized self."""
    if len(size) != n:
        raise RuntimeError(f"It is expected output_size equals to {n}, but got size {len(size)}")
    if len(shape) != n + 2:
        raise RuntimeError(f"It is expected input_size equals to {n + 2}, but got size {len(shape)}")
    if any(at_most(s, 0) for s in (*shape[2:], *size)):
        told = [
            ", ".join(f"{a}: {s}" for a, s in zip(LETTERS[n], sizes, strict=True))
            for sizes in (shape[2:], size)
        ]
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({told[0]}) output ({told[1]})"
        )
    if 0 in shape[1:]:
        raise RuntimeError(
            f"Non-empty {n + 2}D data tensor expected but got a tensor with sizes {list(shape)}"
        )


def wide_type(own: dtypes.dtype) -> Any:
    return np.float64 if own is dtypes.float64 else np.float32


def make(mode: str, n: int, antialias: bool = False) -> Any:
    """Declare the resizing of `n` dimensions in one mode."""
    first = {"nearest-exact": "nearest_exact"}.get(mode, mode)
    name = f"upsample_{first}{n}d{'_aa' if antialias else ''}"
    title = "".join(part.capitalize() for part in name.split("_"))
    title = title.replace(f"{n}d", f"{n}D")

    def tables(sizes: Sequence[int], size: Any, scales: Any, align: bool, wide: Any) -> list[tuple[Any, Any]]:
        scales = scales or (None,) * n
        return [
            taps(mode, s, o, by, align, antialias, wide) for s, o, by in zip(sizes, size, scales, strict=True)
        ]

    def rule(
        grad: Array, input_shape: Any, output_size: Any, align_corners: bool, scale_factors: Any
    ) -> Array:
        wide = wide_type(dtype_of(grad))
        shape = tuple(input_shape)
        size, scales = resolved(name, n, shape, output_size, scale_factors)
        x = grad.astype(wide)
        for i, table in reversed(list(enumerate(tables(shape[2:], size, scales, align_corners, wide)))):
            x = combine(x, 2 + i, *transposed(*table, shape[2 + i]))
        return x.astype(grad.dtype)

    def resize(
        input: Array, output_size: Any, align_corners: bool = False, scale_factors: Any = None
    ) -> Array:
        size, scales = resolved(name, n, input.shape, output_size, scale_factors)
        check_resize(n, input.shape, size)
        own = dtype_of(input)
        if not (own.is_floating_point or (own is dtypes.uint8 and mode not in ("linear", "trilinear"))):
            raise checks.not_implemented_for(KERNELS.get(mode, name), own)
        whole = own is dtypes.uint8
        wide = np.float64 if whole and not mode.startswith("nearest") else wide_type(own)
        x = input if whole else input.astype(wide)
        if any(map(is_open, (*input.shape[2:], *size))):
            if antialias or (whole and not mode.startswith("nearest")):
                raise NotImplementedError(f"{name} of open sizes")
            for i in reversed(range(n)):
                own_size, scale = input.shape[2 + i], None if scales is None else scales[i]
                if own_size != size[i] or mode in ("bicubic", "nearest-exact"):
                    x = combine_open(
                        x, 2 + i, *open_taps(mode, own_size, size[i], scale, align_corners, wide)
                    )
            return x.astype(input.dtype)
        # The last dimension first, as PyTorch does: sums are rounded in the same order.
        for i, table in reversed(list(enumerate(tables(input.shape[2:], size, scales, align_corners, wide)))):
            x = (combine_whole if whole else combine)(x, 2 + i, *table)
        return x.astype(input.dtype)

    resize.__name__ = resize.__qualname__ = name
    resize.__doc__ = (
        f"An image of {n} spatial dimensions resized ({mode}{', antialiased' if antialias else ''})."
    )
    declared = general(
        formats=True,
        name=name,
        node=title,
        autocast=dict(accelerator="float32"),
        derivatives=dict(input=rule),
    )
    return declared(resize)


def resolved(name: str, n: int, shape: Sequence[int], size: Any, scales: Any) -> tuple[Any, Any]:
    """The sizes of the output, given or from the scale factors; with both, the factors say how the sampling steps."""
    if size is not None:
        if len(size) != n:
            raise RuntimeError(f"It is expected output_size equals to {n}, but got size {len(size)}")
        return tuple(size), None if scales is None else tuple(scales)
    if scales is None:
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if len(shape) != n + 2:
        raise RuntimeError(f"It is expected input_size equals to {n + 2}, but got size {len(shape)}")
    return tuple([scaled(s, by) for s, by in zip(shape[2:], scales, strict=True)]), tuple(scales)


def scaled(size: Any, by: float) -> Any:
    """A size times a factor, rounded down."""
    if not is_open(size):
        found = size * by
        if not abs(found) < 2**63:
            raise RuntimeError("value cannot be converted to type int64_t without overflow")
        return int(found)
    factor = Fraction(by).limit_denominator(1024)
    if factor != Fraction(by):
        raise NotImplementedError(f"an open size times {by}")
    return size * factor.numerator // factor.denominator


RESIZERS = {
    **{(mode, n): make(mode, n) for mode in ("nearest", "nearest-exact") for n in (1, 2, 3)},
    ("linear", 1): make("linear", 1),
    ("bilinear", 2): make("bilinear", 2),
    ("trilinear", 3): make("trilinear", 3),
    ("bicubic", 2): make("bicubic", 2),
}


def as_dispatched(resize: Any) -> Any:
    """A resizing with the arguments of PyTorch's dispatcher: after the sizes the flag, where there is one, and the factors, listed or one by one."""

    def run(input: Any, output_size: Any = None, *more: Any, **named: Any) -> Any:
        align = named.get("align_corners", next((m for m in more if type(m) is bool), False))
        by = [m for m in more if type(m) is not bool]
        by += [
            named[k] for k in ("scale_factors", "scales", "scales_d", "scales_h", "scales_w") if k in named
        ]
        listed = by[0] if by and isinstance(by[0], (list, tuple)) else tuple(by)
        factors = tuple(listed) if listed and None not in listed else None
        return resize(input, output_size, align, factors)

    return run


for (_mode, _n), _resize in RESIZERS.items():
    _name = f"upsample_{_mode.replace('-', '_')}{_n}d"
    CHOOSING[_name if "exact" not in _mode else f"_{_name}"] = as_dispatched(_resize)

SMOOTH = {mode: make(mode, 2, antialias=True) for mode in ("bilinear", "bicubic", "lanczos")}
AREAS = {1: adaptive_avg_pool1d, 2: adaptive_avg_pool2d, 3: adaptive_avg_pool3d}
NEEDED = {"linear": 3, "bilinear": 4, "trilinear": 5}


def interpolate(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """An image `(N, C, *)` resized to `size`, or by `scale_factor`.

    `mode`: nearest, nearest-exact, area, linear (one spatial dimension), bilinear, bicubic, lanczos (two), trilinear
    (three). `antialias` (bilinear, bicubic, lanczos) filters when shrinking.

    Shape: `input` `(N, C, *)`; result `(N, C, *size)`, or with every size times `scale_factor`, rounded down.

    Raises: NotImplementedError for complex, bool and integer tensors.

    >>> F.interpolate(xtensor.tensor([[[1.0, 2.0]]]), scale_factor=2)
    tensor([[[1., 1., 2., 2.]]])
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                "trilinear"
            )
    shape = tuple(sizes_of(input))
    dim = len(shape) - 2
    wanted, factors = sizes_or_scales(shape, size, scale_factor)
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if factors is not None and (recompute_scale_factor or mode == "area"):
        wanted = tuple([scaled(s, by) for s, by in zip(shape[2:], factors, strict=True)])
        factors = None
    if antialias and not (mode in SMOOTH and dim == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "area" and dim in AREAS:
        return AREAS[dim](input, wanted)
    if mode == "lanczos" and dim == 2:
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    resize = SMOOTH.get(mode) if antialias else RESIZERS.get((mode, dim))
    if resize is not None:
        return resize(input, wanted, bool(align_corners), factors)
    if mode in NEEDED and dim in AREAS:
        raise NotImplementedError(f"Got {dim + 2}D input, but {mode} mode needs {NEEDED[mode]}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dim + 2}D) for the modes: nearest | linear | "
        f"bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def sizes_or_scales(shape: tuple[int, ...], size: Any, scale_factor: Any) -> tuple[Any, Any]:
    """One size, or one scale factor, for every spatial dimension."""
    dim = len(shape) - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if not isinstance(size, (list, tuple)):
            return (size,) * dim, None
        if len(size) != dim:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions "
                f"of {list(shape[2:])} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
                "format and output size in (o1, o2, ...,oK) format."
            )
        if not all(isinstance(x, (int, np.integer)) or is_open(x) or is_whole_tensor(x) for x in size):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                f"with types {[type(x) for x in size]}"
            )
        return tuple([x if is_open(x) else int(x) for x in size]), None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if not isinstance(scale_factor, (list, tuple)):
        return None, (float(scale_factor),) * dim
    if len(scale_factor) != dim:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {list(shape[2:])} and scale_factor of shape {scale_factor}. Please provide input tensor in "
            "(N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    return None, tuple([float(x) for x in scale_factor])


def is_whole_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) and not (value.is_floating_point() or value.is_complex())


def upsample(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` by its old name.

    Shape: `input` `(N, C, *)`, result `(N, C, *size)`.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """`interpolate` in mode nearest, by its old name.

    Shape: `input` `(N, C, *)`, result `(N, C, *size)`.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(
    input: Tensor,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
) -> Tensor:
    """`interpolate` in mode bilinear with aligned corners, by its old name.

    Shape: `input` `(N, C, *)`, result `(N, C, *size)`.

    Raises: NotImplementedError for complex, bool and integer tensors.
    """
    deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def deprecated(name: str) -> None:
    checks.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")
