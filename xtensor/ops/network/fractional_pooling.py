"""Fractional max pooling (Graham, 2014): windows of one size at pseudorandom places, for any size of output."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.attach import named
from ...operators.declare import general
from ...operators.schema import Array
from ...tensor import Tensor, sizes_of
from ..create.random import rand
from .adaptive_pooling import maximum_rule
from .pooling import better, lowest

__all__ = [
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]


def starts(samples: Any, size: int, window: int, out: int) -> Any:
    """Where the `out` windows of one dimension begin, per plane: `(N, C)` samples in [0, 1) to `(N, C, out)`."""
    last = jnp.full((*samples.shape, 1), size - window, jnp.int32)
    if out == 1:
        return last
    alpha = np.asarray(size - window, samples.dtype) / np.asarray(out - 1, samples.dtype)
    number = jnp.arange(out - 1).astype(samples.dtype)
    at = jnp.trunc((number + samples[..., None]) * alpha) - jnp.trunc(samples[..., None] * alpha)
    return jnp.concatenate([at.astype(jnp.int32), last], axis=-1)


def check_pooling(
    n: int, shape: Sequence[int], kernel: Sequence[int], out: Sequence[int], samples: Any
) -> None:
    """PyTorch's errors for the shapes of fractional pooling."""
    called = f"fractional_max_pool{n}d"
    name = called if n == 2 else f"{called}_out"
    word = {2: "Ints", 3: "three Ints"}[n]
    for what, value in (("kernel_size", kernel), ("output_size", out)):
        if len(value) != n:
            raise RuntimeError(f"{called}: {what} must either be a single Int or tuple of {word}")
    if len(shape) not in (n + 1, n + 2):
        raise RuntimeError(f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got: {list(shape)}")
    for d in range(len(shape) - n - 1, len(shape)):
        if shape[d] == 0:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but got{list(shape)} with "
                f"dimension {d} being empty."
            )
    if min(kernel) <= 0 or min(out) < 0:
        raise RuntimeError(f"{name}(): kernel_size must be positive and output_size not negative")
    for size, k, o, what in zip(
        shape[-n:], kernel, out, ("height", "width") if n == 2 else ("time", "height", "width"), strict=True
    ):
        # Three dimensions leave no room for windows side by side: a strict bound, PyTorch's.
        if o + k - 1 > size - (n == 3):
            raise RuntimeError(f"{name}(): pool {what} {k} too large relative to input {what} {size}")
    if samples.ndim != 3 or samples.shape[-1] != n:
        raise RuntimeError(
            f"Expect _random_samples to have 3 dimensions with the last of size {n}, but got {list(samples.shape)}"
        )


def pooled(n: int, input: Any, kernel: Any, out: Any, samples: Any) -> tuple[Any, Any]:
    check_pooling(n, input.shape, kernel, out, samples)
    own = dtype_of(input)
    if not own.is_floating_point:
        raise checks.not_implemented_for(f"fractional_max_pool{n}d_out_frame", own)
    sizes = input.shape[-n:]
    if 0 in out:
        empty = (*input.shape[:-n], *out)
        return jnp.zeros(empty, input.dtype), jnp.zeros(empty, jnp.int64)
    planes = input if input.ndim == n + 2 else input[None]
    if samples.shape[0] < planes.shape[0] or samples.shape[1] < planes.shape[1]:
        raise RuntimeError("Expect _random_samples to hold a sample for every plane of the input")
    samples = samples[: planes.shape[0], : planes.shape[1]]
    if n == 2:  # in three dimensions PyTorch places windows in the samples' own precision
        samples = samples.astype(dtypes.compute_type(dtype_of(samples)).numpy)
    flat: Any = jnp.zeros((*planes.shape[:2], *(1,) * n), jnp.int32)
    # Samples are numbered from the last dimension in two dimensions, from the first in three.
    order = (1, 0) if n == 2 else (0, 1, 2)
    for d in range(n):
        at = starts(samples[..., order[d]], sizes[d], kernel[d], out[d])
        shape = (*planes.shape[:2], *[out[d] if i == d else 1 for i in range(n)])
        flat = flat * sizes[d] + at.reshape(shape)
    first = flat
    lines = planes.reshape((*planes.shape[:2], math.prod(sizes)))
    best = jnp.full(first.shape, lowest(input.dtype), input.dtype)
    found = first
    for place in itertools.product(*map(range, kernel)):
        index = first + int(np.ravel_multi_index(place, sizes))
        part = jnp.take_along_axis(lines, index.reshape((*lines.shape[:2], math.prod(out))), axis=2).reshape(
            index.shape
        )
        take = better(part, best)
        best, found = jnp.where(take, part, best), jnp.where(take, index, found)
    shape = (*input.shape[:-n], *out)
    return best.reshape(shape), found.astype(jnp.int64).reshape(shape)


@general(
    autocast=dict(cpu="float32"),
    name="fractional_max_pool2d",
    node="FractionalMaxPool2D",
    derivatives=maximum_rule(2),
)
def pool2d(
    input: Array, kernel_size: Sequence[int], output_size: Sequence[int], samples: Array
) -> tuple[Array, ...]:
    """`fractional_max_pool2d_with_indices` with its random samples."""
    return pooled(2, input, kernel_size, output_size, samples)


@general(
    autocast=dict(cpu="float32"),
    name="fractional_max_pool3d",
    node="FractionalMaxPool3D",
    derivatives=maximum_rule(3),
)
def pool3d(
    input: Array, kernel_size: Sequence[int], output_size: Sequence[int], samples: Array
) -> tuple[Array, ...]:
    """`fractional_max_pool3d_with_indices` with its random samples."""
    return pooled(3, input, kernel_size, output_size, samples)


def several(value: Any, n: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


def _fractional(
    n: int, input: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Tensor | None
) -> tuple[Tensor, Tensor]:
    name = f"fractional_max_pool{n}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    sizes = tuple(sizes_of(input))
    if len(sizes) < n + 1:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-len(sizes)}, {len(sizes) - 1}], but got {-n - 1})"
        )
    if output_size is None:
        if n == 2 and isinstance(output_ratio, (tuple, list)) and len(output_ratio) > n:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        ratios = several(output_ratio, n)[:n]
        output_size = tuple([int(s * r) for s, r in zip(sizes[-n:], ratios, strict=True)])
    if samples is None:
        batch = 1 if len(sizes) == n + 1 else sizes[0]
        samples = rand(batch, sizes[-n - 1], n, dtype=input.dtype, device=input.device)
    pool = pool2d if n == 2 else pool3d
    return pool(input, several(kernel_size, n), several(output_size, n), samples)


def fractional(n: int, dimensions: str) -> tuple[Any, Any]:
    """The functions over so many dimensions: with indices, and with them on request."""

    def with_indices(
        input: Tensor,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        return _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)

    def on_request(
        input: Tensor,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        found = _fractional(n, input, kernel_size, output_size, output_ratio, _random_samples)
        return found if return_indices else found[0]

    name, doc = (
        f"fractional_max_pool{n}d",
        f"Maxima of randomly placed windows over the last {dimensions} dimensions",
    )
    shapes = f"\n\nShape: `input` of {n + 1} or {n + 2} dimensions, result `output_size` in the last {n}."
    shapes += "\n\nRaises: NotImplementedError for complex, bool and integer tensors."
    return (
        named(with_indices, f"{name}_with_indices", f"{doc}, and their flat indices.{shapes}"),
        named(on_request, name, f"{doc}; with `return_indices` also where they lie.{shapes}"),
    )


fractional_max_pool2d_with_indices, fractional_max_pool2d = fractional(2, "two")
fractional_max_pool3d_with_indices, fractional_max_pool3d = fractional(3, "three")
