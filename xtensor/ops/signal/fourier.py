"""Discrete Fourier transforms of tensors; `fourier_frames.py` has those of windows that move along a signal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...devices import DeviceLike
from ...dtypes import complex_type, dtype_of
from ...operators.attach import named
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import numpy_names, of_tensors
from ...operators.options import finish
from ...operators.promotion import is_complex
from ...operators.schema import Array
from ...tensor import Tensor, sizes_of
from ..create.ranges import arange
from ..shape.rearranging import roll

__all__: list[str] = []

NORMS = ("backward", "ortho", "forward")
# What XLA transforms at once.
RANK = 3


# ---- arguments -----------------------------------------------------------------------------------------------------


def check_int(name: str, argument: str, position: int, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise checks.argument_error(name, argument, position, "int", value)


def transformed(name: str, input: Array, *, complex: bool) -> Array:
    """The input in the float or complex type in which it is transformed; integers become the default float."""
    own = dtype_of(input)
    if not (own.is_floating_point or own.is_complex):
        own = dtypes.get_default_dtype()
    if own.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {own.scalar_name}")
    if not complex and own.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {own.scalar_name}")
    return input.astype((complex_type(own) if complex else own).numpy)


def factor(norm: Any, count: int, *, forward: bool) -> float:
    """What a bare sum over `count` points is multiplied with."""
    if norm is not None and norm not in NORMS:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    if norm == "ortho":
        return 1 / math.sqrt(count)
    return 1 / count if ((norm or "backward") == "backward") is not forward else 1.0


def check_points(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def one_axis(name: str, input: Array, n: Any, dim: Any, *, half: bool = False) -> tuple[int, int]:
    """The axis and the number of points; where the input is the half of a spectrum, twice its points less two."""
    check_int(name, "dim", 3, dim)
    axis = checks.wrap_dim(dim, input.ndim, wrap_scalar=False)
    if n is None:
        n = 2 * (input.shape[axis] - 1) if half else input.shape[axis]
    check_int(name, "n", 2, n)
    check_points(n)
    return axis, n


def many_axes(
    input: Array, s: Any, dim: Any, *, half: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes and the number of points along each; the last input axis may be the half of a spectrum."""
    s = (s,) if isinstance(s, int) else s
    dim = (dim,) if isinstance(dim, int) else dim
    ndim = input.ndim
    axes: tuple[int, ...] = ()
    if dim is not None:
        axes = tuple([checks.wrap_dim(d, ndim, wrap_scalar=False) for d in dim])
        if len(set(axes)) != len(axes):
            raise RuntimeError("FFT dims must be unique")
    if s is None:
        axes = tuple(range(ndim)) if dim is None else axes
        counts = [input.shape[a] for a in axes]
        if half and axes:
            counts[-1] = 2 * (counts[-1] - 1)
    else:
        if dim is not None and len(dim) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        axes = tuple(range(ndim - len(s), ndim)) if dim is None else axes
        counts = [input.shape[a] if n == -1 else n for a, n in zip(axes, s, strict=True)]
        if half and tuple(s[-1:]) == (-1,):
            counts[-1] = 2 * (input.shape[list(axes)[-1]] - 1)
    for n in counts:
        check_points(n)
    return axes, tuple(counts)


# ---- kernels -------------------------------------------------------------------------------------------------------


def fitted(x: Array, axes: Sequence[int], counts: Sequence[int]) -> Array:
    """The array cut, or filled with zeros at the end, to this many points along the axes."""
    for axis, count in zip(axes, counts, strict=True):
        have = x.shape[axis]
        if have > count:
            x = lax.slice_in_dim(x, 0, count, axis=axis)
        elif have < count:
            x = jnp.pad(x, [(0, count - have if a == axis else 0) for a in range(x.ndim)])
    return x


def bare(
    x: Array, kind: Any, axes: Sequence[int], lengths: Sequence[int], shape: Sequence[int], dtype: Any
) -> Array:
    """One of XLA's transforms over some axes; an empty batch has nothing to transform."""
    if x.size == 0:
        return jnp.zeros(shape, dtype)
    last = tuple(range(x.ndim - len(axes), x.ndim))
    moved = lax.fft(jnp.moveaxis(x, axes, last), kind, tuple(lengths))
    return jnp.moveaxis(moved, last, axes)


def complex_sum(x: Array, axes: Sequence[int], by: float, *, forward: bool) -> tuple[Array, float]:
    """XLA's transform over complex axes, and what it has yet to be multiplied with for the bare sums times `by`."""
    kind = lax.FftType.FFT if forward else lax.FftType.IFFT
    for start in range(0, len(axes), RANK):
        group = tuple(axes[start : start + RANK])
        lengths = [x.shape[a] for a in group]
        x = bare(x, kind, group, lengths, x.shape, x.dtype)
        if not forward:
            by *= math.prod(lengths)
    return x, by


def scaled(x: Array, by: float) -> Array:
    return x if math.isclose(by, 1, rel_tol=1e-15) else x * np.asarray(by, jnp.real(x).dtype)


def whole(input: Array, axes: Sequence[int], counts: Sequence[int], norm: Any, *, forward: bool) -> Array:
    """Complex to complex."""
    by = factor(norm, math.prod(counts), forward=forward)
    return scaled(*complex_sum(fitted(input, axes, counts), axes, by, forward=forward))


def to_half(input: Array, axes: Sequence[int], counts: Sequence[int], norm: Any, *, forward: bool) -> Array:
    """Real to the half of its spectrum along the last of the axes."""
    by = factor(norm, math.prod(counts), forward=forward)
    x = fitted(input, axes, counts)
    shape = list(x.shape)
    shape[axes[-1]] = counts[-1] // 2 + 1
    made = bare(x, lax.FftType.RFFT, axes[-1:], counts[-1:], shape, complex_type(dtype_of(x)).numpy)
    if not forward:
        made = jnp.conj(made)
    return scaled(*complex_sum(made, axes[:-1], by, forward=forward))


def from_half(input: Array, axes: Sequence[int], counts: Sequence[int], norm: Any, *, forward: bool) -> Array:
    """The half of a spectrum along the last of the axes to what is real."""
    by = factor(norm, math.prod(counts), forward=forward)
    held = (*counts[:-1], counts[-1] // 2 + 1)
    x, by = complex_sum(fitted(input, axes, held), axes[:-1], by, forward=forward)
    if forward:
        x = jnp.conj(x)
    shape = list(x.shape)
    shape[axes[-1]] = counts[-1]
    real = bare(x, lax.FftType.IRFFT, axes[-1:], counts[-1:], shape, jnp.real(x).dtype)
    return scaled(real, by * counts[-1])


# ---- one dimension -------------------------------------------------------------------------------------------------


@general(autocast=dict(cpu="float32"), name="fft_fft", node="FftC2C", out=True, derivatives=FROM_KERNEL)
def fft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along `dim`, of `n` points (cut or filled with zeros).

    Shape: `input` `(*, m, *)`, result `(*, n, *)`; n is m where not given.
    norm: "backward" scales the inverse by 1/n, "forward" the transform itself, "ortho" both by 1/sqrt(n).

    >>> xtensor.fft.fft(xtensor.tensor([1.0, 0.0])).real
    tensor([1., 1.])
    """
    axis, count = one_axis("fft_fft", input, n, dim)
    return whole(transformed("fft", input, complex=True), (axis,), (count,), norm, forward=True)


@general(autocast=dict(cpu="float32"), name="fft_ifft", node="FftC2C", out=True, derivatives=FROM_KERNEL)
def ifft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The inverse discrete Fourier transform along `dim`.

    Shape: `input` `(*, m, *)`, result `(*, n, *)`; n is m where not given.

    >>> xtensor.fft.ifft(xtensor.tensor([2.0, 0.0])).real
    tensor([1., 1.])
    """
    axis, count = one_axis("fft_ifft", input, n, dim)
    return whole(transformed("ifft", input, complex=True), (axis,), (count,), norm, forward=False)


@general(autocast=dict(cpu="float32"), name="fft_rfft", node="FftR2C", out=True, derivatives=FROM_KERNEL)
def rfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The Fourier transform of a real signal: the `n // 2 + 1` points that the others mirror.

    Shape: `input` `(*, m, *)`, result `(*, n // 2 + 1, *)`; n is m where not given.

    Raises: RuntimeError for complex tensors.

    >>> xtensor.fft.rfft(xtensor.ones(4)).real
    tensor([4., 0., 0.])
    """
    x = transformed("rfft", input, complex=False)
    axis, count = one_axis("fft_rfft", input, n, dim)
    return to_half(x, (axis,), (count,), norm, forward=True)


@general(autocast=dict(cpu="float32"), name="fft_irfft", node="FftC2R", out=True, derivatives=FROM_KERNEL)
def irfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`: a real signal of `n` (even by default) points.

    Shape: `input` `(*, m, *)`, result `(*, n, *)`; n is `2 * (m - 1)` where not given.

    >>> xtensor.fft.irfft(xtensor.tensor([4.0, 0.0, 0.0]))
    tensor([1., 1., 1., 1.])
    """
    axis, count = one_axis("fft_irfft", input, n, dim, half=True)
    return from_half(transformed("irfft", input, complex=True), (axis,), (count,), norm, forward=False)


@general(autocast=dict(cpu="float32"), name="fft_hfft", node="FftC2R", out=True, derivatives=FROM_KERNEL)
def hfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The real Fourier transform of a Hermitian signal, of which one half is given.

    Shape: `input` `(*, m, *)`, result `(*, n, *)`; n is `2 * (m - 1)` where not given.
    """
    axis, count = one_axis("fft_hfft", input, n, dim, half=True)
    return from_half(transformed("hfft", input, complex=True), (axis,), (count,), norm, forward=True)


@general(autocast=dict(cpu="float32"), name="fft_ihfft", node="FftR2C", out=True, derivatives=FROM_KERNEL)
def ihfft(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: the half of a Hermitian signal whose transform is the real input.

    Shape: `input` `(*, m, *)`, result `(*, n // 2 + 1, *)`; n is m where not given.

    Raises: RuntimeError for complex tensors.
    """
    x = transformed("ihfft", input, complex=False)
    axis, count = one_axis("fft_ihfft", input, n, dim)
    return to_half(x, (axis,), (count,), norm, forward=False)


# ---- several dimensions --------------------------------------------------------------------------------------------


def check_any(name: str, axes: Sequence[int]) -> None:
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")


@general(autocast=dict(cpu="float32"), name="fft_fftn", node="FftC2C", out=True, derivatives=FROM_KERNEL)
def fftn(
    input: Array, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The Fourier transform over the dimensions `dim` (all, or the last `len(s)`), of `s` points along each.

    Shape: `input` `(*)`, result `(*)` with sizes `s` in the dimensions `dim`.
    """
    axes, counts = many_axes(input, s, dim)
    return whole(transformed("fftn", input, complex=True), axes, counts, norm, forward=True)


@general(autocast=dict(cpu="float32"), name="fft_ifftn", node="FftC2C", out=True, derivatives=FROM_KERNEL)
def ifftn(
    input: Array, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `fftn`.

    Shape: `input` `(*)`, result `(*)` with sizes `s` in the dimensions `dim`.
    """
    axes, counts = many_axes(input, s, dim)
    return whole(transformed("ifftn", input, complex=True), axes, counts, norm, forward=False)


def check_real(name: str, input: Array) -> None:
    if is_complex(input):
        raise RuntimeError(
            f"{name} expects a real-valued input tensor, but got {dtype_of(input).scalar_name}"
        )


@general(autocast=dict(cpu="float32"), name="fft_rfftn", node="FftR2C", out=True, derivatives=FROM_KERNEL)
def rfftn(
    input: Array, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The Fourier transform of a real signal over several dimensions, the last cut to its half.

    Shape: `input` `(*)`, result `(*)` with sizes `s` in the dimensions `dim`, the last of them `n // 2 + 1`.

    Raises: RuntimeError for complex tensors.
    """
    check_real("rfftn", input)
    axes, counts = many_axes(input, s, dim)
    x = transformed("rfftn", input, complex=False)
    check_any("rfftn", axes)
    return to_half(x, axes, counts, norm, forward=True)


@general(autocast=dict(cpu="float32"), name="fft_irfftn", node="FftC2R", out=True, derivatives=FROM_KERNEL)
def irfftn(
    input: Array, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `rfftn`.

    Shape: `input` `(*)`, result `(*)` with sizes `s` in the dimensions `dim`, the last `2 * (m - 1)` where
    not given.
    """
    axes, counts = many_axes(input, s, dim, half=True)
    check_any("irfftn", axes)
    return from_half(transformed("irfftn", input, complex=True), axes, counts, norm, forward=False)


@general(name="fft_hfftn", node="FftC2R", out=True, derivatives=FROM_KERNEL)
def hfftn(
    input: Array, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The real Fourier transform, over several dimensions, of a signal that is Hermitian in the last.

    Shape: `input` `(*)`, result `(*)` with sizes `s` in the dimensions `dim`, the last `2 * (m - 1)` where
    not given.
    """
    axes, counts = many_axes(input, s, dim, half=True)
    check_any("hfftn", axes)
    return from_half(transformed("hfftn", input, complex=True), axes, counts, norm, forward=True)


@general(name="fft_ihfftn", node="FftR2C", out=True, derivatives=FROM_KERNEL)
def ihfftn(
    input: Array, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None
) -> Array:
    """The inverse of `hfftn`.

    Shape: `input` `(*)`, result `(*)` with sizes `s` in the dimensions `dim`, the last of them `n // 2 + 1`.

    Raises: RuntimeError for complex tensors.
    """
    axes, counts = many_axes(input, s, dim)
    if is_complex(input):
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {dtype_of(input).scalar_name}")
    x = transformed("ihfftn", input, complex=False)
    check_any("ihfftn", axes)
    return to_half(x, axes, counts, norm, forward=False)


# ---- two dimensions ------------------------------------------------------------------------------------------------

PLANE = (-2, -1)


def over_plane(transform: Any) -> Any:
    """A transform over several dimensions as one over two: `fft2` from `fftn`."""

    def over(
        input: Tensor,
        s: Sequence[int] | None = None,
        dim: Sequence[int] = PLANE,
        norm: str | None = None,
        *,
        out: Tensor | None = None,
    ) -> Tensor:
        return transform(input, s, dim, norm, out=out)

    name = transform.__name__.removeprefix("fft_")
    last = {"r": ", the last `n // 2 + 1`", "h": ", the last `2 * (m - 1)` where not given"}
    key = {"rfftn": "r", "ihfftn": "r", "irfftn": "h", "hfftn": "h"}.get(name, "")
    doc = (
        f"`{name}` over the last two dimensions, or those in `dim`.\n\n"
        f"Shape: `input` `(*)`, result `(*)` with sizes `s` in the dimensions `dim`{last.get(key, '')}.\n\n"
        "Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range"
    )
    doc += "; RuntimeError for complex tensors." if key == "r" else "."
    return named(numpy_names(over), name.removesuffix("n") + "2", doc)


fft2, ifft2 = over_plane(fftn), over_plane(ifftn)
rfft2, irfft2 = over_plane(rfftn), over_plane(irfftn)
hfft2, ihfft2 = over_plane(hfftn), over_plane(ihfftn)


# ---- frequencies ---------------------------------------------------------------------------------------------------


def frequencies(name: str, half: bool) -> Any:
    """The function of the frequencies of a transform, or of the half that a real signal's has."""

    def made_frequencies(
        n: int,
        d: float = 1.0,
        *,
        dtype: dtypes.dtype | None = None,
        layout: dtypes.layout | None = None,
        device: DeviceLike = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        out: Tensor | None = None,
    ) -> Tensor:
        own = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
        if not (own.is_floating_point or own.is_complex):
            raise RuntimeError(f"{name} requires a floating point or complex dtype")
        count = int(n / 2) + 1 if half else n
        if count < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {count}: [{count}]")
        # A spacing of zero divides as IEEE numbers do.
        span = float(n) * d
        scale = 1 / span if span else math.copysign(math.inf, span)
        if out is not None:  # it keeps its shape where it has as many elements
            arange(count, dtype=dtype, device=device, out=out)
            if not half:
                out[(n + 1) // 2 :].sub_(n)
            return out.mul_(scale)
        steps = arange(count, dtype=own, device=device)
        if not half:
            steps = steps - (steps >= (n + 1) // 2).to(own) * n
        return finish(name, steps * scale, requires_grad)

    transform = name.removesuffix("freq")
    doc = f"The frequencies of the points of an `{transform}` of `n` points that lie `d` apart.\n\n"
    doc += f"Shape: result `({'n // 2 + 1' if half else 'n'})`.\n\nRaises: RuntimeError for dtypes of integers, and for a negative `n`."
    return named(made_frequencies, name, doc)


fftfreq, rfftfreq = frequencies("fftfreq", False), frequencies("rfftfreq", True)


def shifted(input: Tensor, dim: Any, backward: bool) -> Tensor:
    sizes = sizes_of(input)
    dims = tuple(range(len(sizes))) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    dims = tuple([checks.wrap_dim(d, len(sizes), wrap_scalar=False) for d in dims])
    if not dims:
        raise RuntimeError("`shifts` required")
    return roll(input, tuple([(sizes[d] + backward) // 2 for d in dims]), dims)


@of_tensors("fft_fftshift")
@numpy_names
def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The frequencies in ascending order: zero moves to the middle of the dimensions `dim` (all).

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    return shifted(input, dim, False)


@of_tensors("fft_ifftshift")
@numpy_names
def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range.
    """
    return shifted(input, dim, True)
