"""Fourier transforms of windows that move along a signal: `stft`, and its inverse `istft`."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from ... import checks, dtypes
from ...dtypes import complex_type, dtype_of
from ...operators.attach import attach_methods
from ...operators.autocast import cast_for
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL
from ...operators.functions.overloads import of_tensors
from ...operators.index_bounds import check_values
from ...operators.promotion import promote
from ...operators.schema import Array
from ...tensor import Tensor, array_of, sizes_of
from ..shape.reinterpret import view_as_real
from .fourier import from_half, to_half, whole
from .padding import constant_pad_nd, pad

__all__ = ["istft", "stft"]


# ---- frames --------------------------------------------------------------------------------------------------------


def framed(x: Array, size: int, hop: int) -> Array:
    """The windows of `size` elements that start every `hop`, as rows: (..., frames, size)."""
    count = 1 + (x.shape[-1] - size) // hop
    if size % hop == 0:
        # Frames are runs of whole steps: slices, which no gather is needed for.
        parts = size // hop
        steps = x[..., : (count + parts - 1) * hop].reshape(*x.shape[:-1], count + parts - 1, hop)
        return jnp.concatenate([steps[..., k : k + count, :] for k in range(parts)], axis=-1)
    return jnp.take(x, np.arange(count)[:, None] * hop + np.arange(size), axis=-1)


def overlapped(frames: Array, hop: int) -> Array:
    """The sum of rows laid out every `hop` elements: the transpose of `framed`."""
    *lead, count, size = frames.shape
    length = size + hop * (count - 1)
    if size % hop == 0:
        parts = size // hop
        steps = frames.reshape(*lead, count, parts, hop)
        total = 0
        for k in range(parts):
            widths = [(0, 0)] * len(lead) + [(k, parts - 1 - k), (0, 0)]
            total = total + jnp.pad(steps[..., k, :], widths)
        return jnp.reshape(total, (*lead, length))
    places = np.arange(count)[:, None] * hop + np.arange(size)
    return jnp.zeros((*lead, length), frames.dtype).at[..., places].add(frames)


def centred(window: Array | None, length: int, size: int, dtype: Any) -> Array:
    """The window (ones where there is none) in the middle of `size` elements."""
    values = jnp.ones((length,), dtype) if window is None else window.astype(dtype)
    left = (size - length) // 2
    return jnp.pad(values, (left, size - length - left))


@general(name="stft_frames", node="Stft", derivatives=FROM_KERNEL)
def transforms(
    input: Array, window: Array | None, n_fft: int, hop: int, length: int, norm: str | None, onesided: bool
) -> Array:
    """The transforms of windowed frames: (..., frequencies, frames)."""
    x, w = promote(input, window)
    frames = framed(x, n_fft, hop)
    if w is not None or length < n_fft:
        frames = frames * centred(w, length, n_fft, x.dtype)
    frames = frames.astype(dtype_of(frames).numpy)
    axes = (frames.ndim - 1,)
    if onesided:
        made = to_half(frames, axes, (n_fft,), norm, forward=True)
    else:
        made = whole(frames.astype(complex_type(dtype_of(frames)).numpy), axes, (n_fft,), norm, forward=True)
    return jnp.swapaxes(made, -1, -2)


def described(name: str, head: str, options: dict[str, Any]) -> str:
    """The call, as PyTorch's messages show it."""

    def show(value: Any) -> str:
        if isinstance(value, Tensor):
            return f"xtensor.{value.dtype.scalar_name}Tensor{{{list(sizes_of(value))}}}"
        return str(int(value)) if isinstance(value, bool) else str(value)

    return f"{name}({head}, " + ", ".join(f"{k}={show(v)}" for k, v in options.items()) + ")"


def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """The Fourier transforms of windows of a signal: (batch?, frequencies, frames).

    Shape: `input` `(B, L)` or `(L)`, result `(B, frequencies, frames)` or without B; a 2 at the end where not
    complex.
    Frames of `n_fft` elements start every `hop_length` (n_fft // 4); with `center` the signal is padded so that frames
    are centred on multiples of it. A real signal gives `n_fft // 2 + 1` frequencies, unless `onesided=False`.

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool and integer tensors.
    """
    input, window = cast_for(input, window, cpu="float32")
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    x = input
    if center:
        sizes = tuple(sizes_of(x))
        lead = (1,) * (3 - len(sizes))
        x = pad(x.reshape((*lead, *sizes)), (n_fft // 2, n_fft // 2), pad_mode)
        x = x.reshape(tuple(sizes_of(x))[-len(sizes) :] if sizes else ())

    if window is None:
        checks.warn(
            "A window was not provided. A rectangular window will be applied, which is known to cause spectral "
            "leakage. Other windows such as xtensor.hann_window or xtensor.hamming_window are recommended to reduce "
            "spectral leakage. To suppress this warning and use a rectangular window, explicitly set "
            "`window=xtensor.ones(n_fft, device=<device>)`.",
            UserWarning,
        )
    own = input.dtype
    head = f"xtensor.{own.scalar_name}Tensor{list(sizes_of(x))}, n_fft={n_fft}"
    options = dict(
        hop_length=hop,
        win_length=length,
        window=window,
        normalized=normalized,
        onesided=onesided,
        return_complex=return_complex,
        align_to_window=align_to_window,
    )

    def refuse(what: str) -> None:
        raise RuntimeError(f"{described('stft', head, options)} : {what}")

    is_complex = own.is_complex or (window is not None and window.dtype.is_complex)
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further require that "
            "return_complex=True in a future PyTorch release."
        )
    if return_complex is False:
        checks.warn(
            "stft with return_complex=False is deprecated. In a future release, stft will return complex tensors for "
            "all inputs, and return_complex=False will raise an error. Note: view_as_real of the complex output is "
            "the old return format.",
            UserWarning,
        )
    if not (own.is_floating_point or own.is_complex):
        refuse("expected a tensor of floating point or complex values")
    if own.itemsize < 4:
        raise RuntimeError(f"FFT doesn't support tensors of type: {own.scalar_name}")
    if x.dim() not in (1, 2):
        refuse("expected a 1D or 2D tensor")
    if not center and align_to_window and 0 < length <= n_fft:
        short = n_fft - length
        x = constant_pad_nd(x, (short // 2, short - short // 2), 0)
    points = sizes_of(x)[-1]
    if not 0 < n_fft <= points:
        refuse(f"expected 0 < n_fft < {points}, but got n_fft={n_fft}")
    if hop <= 0:
        refuse(f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        refuse(f"expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and tuple(sizes_of(window)) != (length,):
        refuse(
            f"expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(sizes_of(window))}"
        )
    half = not is_complex if onesided is None else onesided
    if half and is_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    made = transforms(x, window, n_fft, hop, length, "ortho" if normalized else None, bool(half))
    return view_as_real(made) if return_complex is False else made


# ---- the inverse ---------------------------------------------------------------------------------------------------


@general(name="istft_signal", node="Istft", derivatives=FROM_KERNEL)
def signal_of(
    input: Array,
    window: Array | None,
    n_fft: int,
    hop: int,
    length: int,
    norm: str | None,
    complex: bool,
) -> tuple[Array, ...]:
    """The overlapped signals, and the overlapped squares of the window."""
    frames = jnp.swapaxes(input, -1, -2)
    axes, points = (frames.ndim - 1,), (n_fft,)
    if complex:
        frames = whole(frames, axes, points, norm, forward=False)
    else:
        # Half of a whole spectrum is enough for what is real.
        frames = from_half(frames, axes, points, norm, forward=False)
    kind = dtypes.promote_types(dtype_of(frames), dtype_of(window)) if window is not None else None
    kind = kind or dtype_of(jnp.real(frames))
    own = centred(window, length, n_fft, kind.numpy)
    total = overlapped(frames * own, hop)
    squares = jnp.broadcast_to(own * own, (input.shape[-1], n_fft))
    return total, overlapped(squares, hop)


@of_tensors()
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """The signal whose `stft` is the input, by least squares; `length` cuts it, or fills it with zeros.

    Shape: `input` `(B, frequencies, frames)` or without B, result `(B, length)` or `(length)`.
    RuntimeError where some element of the signal lies under no window, which is seen only where values can be read.

    Raises: TypeError for arguments of other kinds; RuntimeError for complex tensors.
    """
    hop = n_fft // 4 if hop_length is None else hop_length
    span = n_fft if win_length is None else win_length
    if window is None:
        checks.warn(
            "A window was not provided. A rectangular window will be applied. Please provide the same window used by "
            "stft to make the inversion lossless. To suppress this warning and use a rectangular window, explicitly "
            "set `window=xtensor.ones(n_fft, device=<device>)`.",
            UserWarning,
        )
    sizes = tuple(sizes_of(input))
    head = f"{input.device.type.upper()}{input.dtype.scalar_name}Type{list(sizes)}, n_fft={n_fft}"
    options = dict(
        hop_length=hop,
        win_length=span,
        window=window,
        center=center,
        normalized=normalized,
        onesided=onesided,
        length=length,
        return_complex=return_complex,
    )
    shown = described("istft", head, options)

    def refuse(what: str) -> None:
        raise RuntimeError(f"{shown} : {what}")

    if not input.dtype.is_complex:
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if math.prod(sizes) == 0:
        refuse("input tensor cannot be empty.")
    if len(sizes) < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-2, 1], but got -3)")
    if len(sizes) > 3:
        refuse(f"expected a tensor with 3 or 4 dimensions, but got {len(sizes) + 1}")
    points = sizes[-2]
    half = points != n_fft if onesided is None else onesided
    if half and n_fft // 2 + 1 != points:
        refuse(
            "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when "
            f"onesided=True, but got {points}"
        )
    if not half and n_fft != points:
        refuse(
            "expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when "
            f"onesided=False, but got {points}"
        )
    if not 0 < hop <= span:
        refuse("expected 0 < hop_length <= win_length")
    if not 0 < span <= n_fft:
        refuse("expected 0 < win_length <= n_fft")
    if window is not None and tuple(sizes_of(window)) != (span,):
        refuse("Invalid window shape. window has to be 1D and length of `win_length`")
    if return_complex and half:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window.dtype.is_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    total, squares = signal_of(
        input, window, n_fft, hop, span, "ortho" if normalized else None, return_complex
    )
    whole_length = n_fft + hop * (sizes[-1] - 1)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole_length - n_fft // 2 if center else whole_length
    end = min(end, whole_length)
    if end <= start:
        raise RuntimeError(
            "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
            "'dim' argument."
        )
    total, squares = total[..., start:end], squares[start:end]
    overlap = RuntimeError(f"{shown} window overlap add min: 1")
    check_values(array_of(squares), lambda values: overlap if np.abs(values).min() <= 1e-11 else None)
    made = total / squares
    if length is not None and length > end - start:
        checks.warn(
            "The length of signal is shorter than the length parameter. Result is being padded with zeros in the "
            "tail. Please check your center and hop_length settings.",
            UserWarning,
        )
        made = constant_pad_nd(made, (0, length - (end - start)), 0)
    return made


attach_methods(istft, stft)
