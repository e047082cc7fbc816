"""Sampling images at given places: affine grids and `grid_sample`.

A grid holds places in coordinates from -1 to 1, the last dimension first: `(x, y)` or `(x, y, z)`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import of_tensors
from ...operators.schema import Array
from ...tensor import Tensor, sizes_of

__all__ = [
    "affine_grid",
    "affine_grid_generator",
    "grid_sample",
    "grid_sampler",
    "grid_sampler_2d",
    "grid_sampler_3d",
]

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
CORNERS = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)


# ---- grids ---------------------------------------------------------------------------------------------------------


def spread(count: int, align_corners: bool, wide: Any) -> Any:
    """`count` coordinates from -1 to 1: of the corner pixels' centers, or of all pixels' centers."""
    if count <= 1:
        return np.zeros(max(count, 0), wide)
    found = np.linspace(-1, 1, count).astype(wide)
    return found if align_corners else found * wide((count - 1) / count)


def pixel_rows(size: Sequence[int], align_corners: bool, wide: Any) -> Any:
    """The places of pixels of images of `size` as rows: the last dimension's coordinate first, and a one for the translation last."""
    axes = [spread(s, align_corners, wide) for s in size[2:]]
    base = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(tuple(size[2:]), wide)], axis=-1)
    return base.reshape(1, -1, len(size) - 1)


def _affine_theta(grad: Array, size: Any, align_corners: bool) -> Array:
    wide = np.float64 if grad.dtype == np.float64 else np.float32
    base = pixel_rows(size, align_corners, wide)
    rows = grad.reshape((grad.shape[0], base.shape[1], grad.shape[-1])).astype(wide)
    return jnp.matmul(jnp.swapaxes(rows, 1, 2), base, precision=lax.Precision.HIGHEST)


@general(autocast="short", node="AffineGridGenerator", derivatives=dict(theta=_affine_theta))
def affine_grid_generator(theta: Array, size: Sequence[int], align_corners: bool) -> Array:
    """The places `(N, *sizes, n)` to which affine maps `theta` `(N, n, n + 1)` take the pixels of images of `size`."""
    n = len(size) - 2
    own = dtype_of(theta)
    if n not in (2, 3):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    if theta.ndim != 3 or theta.shape[1:] != (n, n + 1):
        raise RuntimeError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {list(size)}. Got "
            f"{list(theta.shape)}."
        )
    wide = np.float64 if own is dtypes.float64 else np.float32
    base = pixel_rows(size, align_corners, wide)
    found = jnp.matmul(base, jnp.swapaxes(theta, 1, 2).astype(wide), precision=lax.Precision.HIGHEST)
    return found.reshape((theta.shape[0], *size[2:], n)).astype(theta.dtype)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid `(N, H, W, 2)` or `(N, D, H, W, 3)` for `grid_sample` of affine maps `(N, 2, 3)` or `(N, 3, 4)`.

    Shape: `theta` `(N, 2, 3)` and `size` `(N, C, H, W)`: result `(N, H, W, 2)`; `(N, 3, 4)` and `(N, C, D, H,
    W)`: `(N, D, H, W, 3)`.

    Raises: ValueError for complex, bool and integer tensors.

    Source: Jaderberg et al. 2015, arXiv:1506.02025.
    """
    if align_corners is None:
        checks.warn(CORNERS)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = tuple(size)
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. "
            f"Got size {size}."
        )
    if theta.dim() != 3 or tuple(sizes_of(theta))[1:] != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        checks.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. This is "
            "not an intended use case of affine_grid. See the documentation of affine_grid for details.",
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return affine_grid_generator(theta, size, align_corners)


# ---- sampling ------------------------------------------------------------------------------------------------------


def clipped(at: Any, size: int) -> Any:
    """Coordinates brought into the image; no gradient passes from the border on."""
    top = jnp.asarray(size - 1, at.dtype)
    return jnp.where(at > 0, jnp.where(at >= top, top, at), jnp.zeros_like(at))


def reflected(at: Any, twice_low: int, twice_high: int) -> Any:
    """Coordinates mirrored, again and again, at the two ends."""
    if twice_low == twice_high:
        return jnp.zeros_like(at)
    low = jnp.asarray(twice_low / 2, at.dtype)
    span = jnp.asarray((twice_high - twice_low) / 2, at.dtype)
    away = at - low
    away = jnp.where(away < 0, -away, away)
    rest = lax.rem(away, span)
    even = lax.rem(jnp.floor(lax.stop_gradient(away) / span), jnp.asarray(2, at.dtype)) == 0
    return jnp.where(even, rest + low, span - rest + low)


def pixels(at: Any, size: int, align_corners: bool) -> Any:
    """Coordinates from -1 to 1 as indices of pixels."""
    if align_corners:
        return (at + 1) / 2 * (size - 1)
    return ((at + 1) * size - 1) / 2


def padded(at: Any, size: int, padding: int, align_corners: bool) -> Any:
    """Places outside the image as the padding mode has them."""
    if padding == 1:
        return clipped(at, size)
    if padding == 2:
        ends = (0, 2 * (size - 1)) if align_corners else (-1, 2 * size - 1)
        return clipped(reflected(at, *ends), size)
    return at


def whole(at: Any) -> Any:
    """Integral places as integers; what no image can hold, NaN included, lies outside."""
    usable = jnp.isfinite(at) & (jnp.abs(at) < 2**30)
    return jnp.where(usable, at, -100).astype(jnp.int32)


def values_at(x: Any, places: Sequence[Any]) -> Any:
    """`x` `(N, C, *)` at integral places `(N, P)` per dimension as `(N, C, P)`; zeros outside."""
    sizes = x.shape[2:]
    inside = jnp.asarray(True)
    flat = jnp.zeros((), jnp.int32 if math.prod(sizes) < 2**31 else jnp.int64)
    for at, size in zip(places, sizes, strict=True):
        inside = inside & (at >= 0) & (at < size)
        flat = flat * size + jnp.clip(at, 0, size - 1)
    lines = x.reshape((*x.shape[:2], math.prod(sizes)))
    found = jax.vmap(lambda line, index: line.at[:, index].get(mode="promise_in_bounds"))(lines, flat)
    return jnp.where(inside[:, None], found, jnp.zeros((), x.dtype))


def linear(x: Any, places: Sequence[Any]) -> Any:
    """Between the 2 neighbours along each dimension."""
    floors = [jnp.floor(lax.stop_gradient(at)) for at in places]
    total: Any = None
    for corner in itertools.product((0, 1), repeat=len(places)):
        weight = jnp.ones((), x.dtype)
        for at, floor, c in zip(reversed(places), reversed(floors), reversed(corner), strict=True):
            weight = weight * (at - floor if c else floor + 1 - at)
        found = values_at(x, [whole(floor + c) for floor, c in zip(floors, corner, strict=True)])
        part = found * weight[:, None]
        total = part if total is None else total + part
    return total


def cubic_weights(share: Any, a: float = -0.75) -> list[Any]:
    """Keys' weights of the 4 neighbours of a place `share` after the second."""

    def far(x: Any) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    def near(x: Any) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    return [far(share + 1), near(share), near(1 - share), far(2 - share)]


def cubic(x: Any, places: Sequence[Any], padding: int, align_corners: bool) -> Any:
    """Between the 4 neighbours along each dimension, each of which the padding mode places."""
    floors = [jnp.floor(lax.stop_gradient(at)) for at in places]
    weights = [cubic_weights(at - floor) for at, floor in zip(places, floors, strict=True)]
    sizes = x.shape[2:]
    total: Any = None
    for i in range(4):
        row: Any = None
        for j in range(4):
            spots = [
                whole(padded(floor + (k - 1), size, padding, align_corners))
                for floor, k, size in zip(floors, (i, j), sizes, strict=True)
            ]
            part = values_at(x, spots) * weights[1][j][:, None]
            row = part if row is None else row + part
        row = row * weights[0][i][:, None]
        total = row if total is None else total + row
    return total


def check_sampling(name: str, input: Any, grid: Any, mode: int, n: int | None) -> None:
    """PyTorch's errors for the shapes and dtypes of `grid_sampler`."""
    told = f"but got input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
    dims = f"{n + 2}D" if n else "4D or 5D"
    if input.shape[:1] != grid.shape[:1]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, {told}")
    if grid.shape[-1:] != (input.ndim - 2,):
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {input.ndim - 2} in last dimension, but got grid with sizes "
            f"{list(grid.shape)}"
        )
    for d in range(2, input.ndim):
        if input.shape[d] == 0:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(input.shape)} with dimension {d} being empty"
            )
    if input.ndim != grid.ndim or (input.ndim != n + 2 if n else input.ndim not in (4, 5)):
        raise RuntimeError(
            f"grid_sampler(): expected {dims} input and grid with same number of dimensions, {told}"
        )
    if input.ndim == 5 and mode == 2:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    a, b = dtype_of(input), dtype_of(grid)
    if not a.is_floating_point:
        raise checks.not_implemented_for(f"{name}_cpu", a)
    if a is not b:
        raise RuntimeError(f"expected scalar type {a.scalar_name} but found {b.scalar_name}")


def sample(
    name: str, n: int | None, input: Any, grid: Any, mode: int, padding: int, align_corners: bool
) -> Any:
    check_sampling(name, input, grid, mode, n)
    own = input.dtype
    wide = np.float64 if own == np.float64 else np.float32
    count = input.shape[0]
    places_of_one = math.prod(grid.shape[1:-1])
    x, at = input.astype(wide), grid.astype(wide).reshape((count, places_of_one, grid.shape[-1]))
    sizes = input.shape[2:]
    places = [pixels(at[..., len(sizes) - 1 - d], size, align_corners) for d, size in enumerate(sizes)]
    if mode == 2:
        found = cubic(x, places, padding, align_corners)
    else:
        places = [padded(p, s, padding, align_corners) for p, s in zip(places, sizes, strict=True)]
        if mode == 0:
            found = linear(x, places)
        else:
            found = values_at(x, [whole(jnp.round(lax.stop_gradient(p))) for p in places])
    return found.reshape((*input.shape[:2], *grid.shape[1:-1])).astype(own)


@general(autocast=dict(cpu="float32", accelerator="widest"), node="GridSampler2D", derivatives=FROM_KERNEL)
def grid_sampler_2d(
    input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """`grid_sample` of images `(N, C, H, W)`, its modes given by number.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for complex, bool and integer tensors.
    """
    return sample("grid_sampler_2d", 2, input, grid, interpolation_mode, padding_mode, align_corners)


@general(autocast=dict(cpu="float32", accelerator="widest"), node="GridSampler3D", derivatives=FROM_KERNEL)
def grid_sampler_3d(
    input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    """`grid_sample` of volumes `(N, C, D, H, W)`, its modes given by number.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for complex, bool and integer tensors.
    """
    return sample("grid_sampler_3d", 3, input, grid, interpolation_mode, padding_mode, align_corners)


@of_tensors()
def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`grid_sample`, its modes given by number.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.
    """
    chosen = grid_sampler_3d if input.dim() == 5 else grid_sampler_2d
    return chosen(input, grid, interpolation_mode, padding_mode, align_corners)


@of_tensors("grid_sampler")
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Images `(N, C, H, W)` at the places `grid` `(N, Ho, Wo, 2)`, or volumes with `(N, Do, Ho, Wo, 3)`.

    Shape: `input` `(N, C, H, W)`, `grid` `(N, Ho, Wo, 2)`, result `(N, C, Ho, Wo)`; of volumes one dimension
    more.
    `mode`: bilinear, nearest, bicubic (images only). `padding_mode` says what lies outside: zeros, border, reflection.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError for
    complex, bool and integer tensors.

    Source: Jaderberg et al. 2015, arXiv:1506.02025.

    >>> F.grid_sample(xtensor.ones(1, 1, 3, 3), xtensor.zeros(1, 1, 1, 2), align_corners=False)
    tensor([[[[1.]]]])
    """
    if mode not in MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: "
            f"'{mode}'"
        )
    if padding_mode not in PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        checks.warn(CORNERS)
        align_corners = False
    return grid_sampler(input, grid, MODES.index(mode), PADDINGS.index(padding_mode), align_corners)
