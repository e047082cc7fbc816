"""Channels moved into the places of an image and back, and shuffled between groups."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ...operators.declare import general
from ...operators.schema import Array

__all__ = ["channel_shuffle", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]


def spread(x: Any, factor: int) -> Any:
    """`(*, C * r * r, H, W)` to `(*, C, H * r, W * r)`."""
    *lead, channels, height, width = x.shape
    parts = x.reshape((*lead, channels // factor**2, factor, factor, height, width))
    n = len(lead) + 1
    parts = jnp.transpose(parts, (*range(n), n + 2, n, n + 3, n + 1))
    return parts.reshape((*lead, channels // factor**2, height * factor, width * factor))


def gather(x: Any, factor: int) -> Any:
    """The inverse of `spread`."""
    *lead, channels, height, width = x.shape
    parts = x.reshape((*lead, channels, height // factor, factor, width // factor, factor))
    n = len(lead) + 1
    parts = jnp.transpose(parts, (*range(n), n + 1, n + 3, n, n + 2))
    return parts.reshape((*lead, channels * factor**2, height // factor, width // factor))


@general(formats=True, derivatives=dict(input=lambda grad, upscale_factor: gather(grad, upscale_factor)))
def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """`(*, C * r * r, H, W)` as `(*, C, H * r, W * r)` for an upscale factor of r.

    Shape: `input` `(*, C * r * r, H, W)`, result `(*, C, H * r, W * r)`.

    Source: Shi et al. 2016, arXiv:1609.05158.

    >>> F.pixel_shuffle(xtensor.ones(1, 4, 2, 2), 2).shape
    xtensor.Size([1, 1, 4, 4])
    """
    if input.ndim < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s)"
        )
    if upscale_factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {upscale_factor}")
    if input.shape[-3] % upscale_factor**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={input.shape[-3]} is not divisible by {upscale_factor**2}"
        )
    return spread(input, upscale_factor)


@general(formats=True, derivatives=dict(input=lambda grad, downscale_factor: spread(grad, downscale_factor)))
def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """`(*, C, H * r, W * r)` as `(*, C * r * r, H, W)` for a downscale factor of r.

    Shape: `input` `(*, C, H * r, W * r)`, result `(*, C * r * r, H, W)`.
    Differs from PyTorch: an empty batch is given that shape too.

    >>> F.pixel_unshuffle(xtensor.ones(1, 1, 4, 4), 2).shape
    xtensor.Size([1, 4, 2, 2])
    """
    if input.ndim < 3:
        raise RuntimeError(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.ndim} dimension(s)"
        )
    if downscale_factor <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {downscale_factor}")
    for what, d in (("height", -2), ("width", -1)):
        if input.shape[d] % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but input.size({d})="
                f"{input.shape[d]} is not divisible by {downscale_factor}"
            )
    return gather(input, downscale_factor)


def regroup(x: Any, rows: int) -> Any:
    """Channels read as a table of so many rows, and written column by column."""
    n, channels, *rest = x.shape
    return jnp.swapaxes(x.reshape((n, rows, channels // rows, *rest)), 1, 2).reshape(x.shape)


def shuffled(input: Any, groups: int) -> Any:
    if input.ndim < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    if input.shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {input.shape[1]} channels and {groups} groups."
        )
    return regroup(input, groups)


def _shuffle_grad(grad: Array, groups: int) -> Array:
    return regroup(grad, grad.shape[1] // groups) if grad.size else grad


@general(formats=True, derivatives=dict(input=_shuffle_grad))
def channel_shuffle(input: Array, groups: int) -> Array:
    """The channels `(N, C, *)` of all groups interleaved: the first of every group, then the second, and so on.

    Shape: `input` `(N, C, *)`, result `(N, C, *)`.

    Source: Zhang et al. 2018, arXiv:1707.01083.
    """
    return shuffled(input, groups)


@general(formats=True, derivatives=dict(input=_shuffle_grad))
def native_channel_shuffle(input: Array, groups: int) -> Array:
    """`channel_shuffle` as PyTorch's kernel is called.

    Shape: `input` `(N, C, *)`, result `(N, C, *)`.
    """
    return shuffled(input, groups)
