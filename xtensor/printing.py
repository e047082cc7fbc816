"""Tensors as text, exactly as PyTorch prints them: a pure function of values on the host and of the print options."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import ml_dtypes
import numpy as np

from . import dtypes

# ---- options -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class PrintOptions:
    """How tensors are printed; `set_printoptions` explains the fields."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}
_options = PrintOptions()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors print; what is not given stays, but for `sci_mode`, which goes back to None (automatic).

    `precision` counts digits after the point, `threshold` is the number of elements above which only `edgeitems` at
    either end of each dimension are shown, `linewidth` counts characters. `profile` ("default", "short" or "full")
    sets all of these first.
    """
    if profile in _PROFILES:
        for name, value in asdict(_PROFILES[profile]).items():
            setattr(_options, name, value)
    if precision is not None:
        _options.precision = precision
    if threshold is not None:
        _options.threshold = threshold
    if edgeitems is not None:
        _options.edgeitems = edgeitems
    if linewidth is not None:
        _options.linewidth = linewidth
    _options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The current options, as keyword arguments for `set_printoptions`."""
    return asdict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """`set_printoptions` for the length of a `with` block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


# ---- elements ------------------------------------------------------------------------------------------------------


def _padded(texts: list[str], width: int) -> tuple[list[str], int]:
    return [text.rjust(width) for text in texts], width


def _float_cells(values: np.ndarray[Any, Any], options: PrintOptions) -> tuple[list[str], int]:
    """Every element as text, and the width of a column; zeros and non-finite elements do not count for either."""
    odd = values.dtype == ml_dtypes.float8_e8m0fnu
    with np.errstate(invalid="ignore"):  # a signalling NaN
        values = values.astype(np.float64)
    # PyTorch takes the NaN of float8_e8m0fnu for a finite number, and the least one, 2**-127, for zero.
    counts = values != 2.0**-127 if odd else np.isfinite(values) & (values != 0)
    whole, scientific = True, False
    if counts.any():
        sizes = np.abs(values[counts])
        least, most = float(sizes.min()), float(sizes.max())
        whole = bool((sizes == np.ceil(sizes)).all())
        if options.sci_mode is None:
            scientific = most / least > 1000.0 or most > 1.0e8 or least < 1.0e-4
        else:
            scientific = bool(options.sci_mode)
    if scientific:
        texts = [f"{value:.{options.precision}e}" for value in values.tolist()]
    elif whole:
        texts = [f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}" for value in values.tolist()]
    else:
        texts = [f"{value:.{options.precision}f}" for value in values.tolist()]
    width = max(
        (len(text) for text, counted in zip(texts, counts.tolist(), strict=True) if counted), default=1
    )
    return _padded(texts, width)


def _cells(values: np.ndarray[Any, Any], options: PrintOptions) -> tuple[list[str], int]:
    """The elements of a one-dimensional array as text, and how many characters of a line each takes."""
    if values.dtype.kind == "c":
        real, real_width = _float_cells(np.real(values), options)
        imaginary, imaginary_width = _float_cells(np.imag(values), options)
        signed = (part.lstrip() for part in imaginary)
        signed = (part if part[0] in "+-" else f"+{part}" for part in signed)
        texts = [f"{a}{b}j" for a, b in zip(real, signed, strict=True)]
        return texts, real_width + imaginary_width + 3
    if values.dtype.kind in "biu":
        texts = [str(value) for value in values.tolist()]
        texts, width = _padded(texts, max(len(text) for text in texts))
    else:
        texts, width = _float_cells(values, options)
    return texts, width + 2


def cells(values: np.ndarray[Any, Any], options: PrintOptions | None = None) -> list[str]:
    """The elements of an array one by one as text, in its order."""
    if values.size == 0:
        return []
    return [text.strip() for text in _cells(values.reshape(-1), options or _options)[0]]


# ---- nesting -------------------------------------------------------------------------------------------------------


def summary_indices(
    shape: Sequence[int], options: PrintOptions | None = None
) -> tuple[np.ndarray[Any, Any], ...] | None:
    """Which indices of each dimension are printed, or None for all: index arrays for `numpy.ix_`.

    A caller that gathers these on the device moves no more than that to the host, and hands it to `format_tensor` with
    the `shape` of the whole.
    """
    options = options or _options
    edge = options.edgeitems
    if math.prod(shape) <= options.threshold or not any(size > 2 * edge for size in shape):
        return None
    return tuple(np.arange(size) if size <= 2 * edge else np.r_[0:edge, size - edge : size] for size in shape)


def format_values(
    values: np.ndarray[Any, Any],
    indent: int = 0,
    *,
    shape: Sequence[int] | None = None,
    options: PrintOptions | None = None,
) -> str:
    """The nested brackets of an array that starts at column `indent`, summarised if it is long.

    `values` may be what `summary_indices` selects from an array of the given `shape`.
    """
    options = options or _options
    shape = tuple(values.shape if shape is None else shape)
    if 0 in shape:
        return "[]"
    if values.shape == shape and (indices := summary_indices(shape, options)) is not None:
        values = values[np.ix_(*indices)]
    if values.size == 0:  # nothing but the sign that something is left out
        return "[...]"
    cells, cell_length = _cells(values.reshape(-1), options)
    if not shape:
        return cells[0]
    edge, ndim, sizes = options.edgeitems, len(shape), values.shape

    def nest(depth: int, start: int) -> str:
        size, column = sizes[depth], indent + depth
        cut = size != shape[depth]
        margin = "\n" + " " * (column + 1)
        if depth == ndim - 1:
            row = cells[start : start + size]
            if cut:
                row = [*row[:edge], " ...", *row[edge:]]
            per_line = max(1, math.floor((options.linewidth - column) / cell_length))
            lines = [", ".join(row[i : i + per_line]) for i in range(0, len(row), per_line)]
            return "[" + ("," + margin).join(lines) + "]"
        step = math.prod(sizes[depth + 1 :])
        parts = [nest(depth + 1, start + i * step) for i in range(size)]
        if cut:
            parts.insert(edge, "...")
        return "[" + ("," + "\n" * (ndim - depth - 2) + margin).join(parts) + "]"

    return nest(0, 0)


# ---- the whole -----------------------------------------------------------------------------------------------------


def suffixes(
    dtype: dtypes.dtype,
    shape: Sequence[int],
    device: object = None,
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    *,
    meta: bool = False,
    tangent: str | None = None,
    options: PrintOptions | None = None,
) -> list[str]:
    """What follows the values: `device='cuda:0'`, `size=(0, 3)`, `dtype=xtensor.int32`, `grad_fn=<AddBackward0>`...

    `device` is None where it is the default one. A `meta` tensor has no values.
    """
    options = options or _options
    default = dtypes.get_default_dtype()
    known = dtype is default
    found: list[str] = []
    if device is not None:
        found.append(f"device='{device}'")
    if meta or (len(shape) != 1 if 0 in shape else not options.edgeitems):
        found.append(f"size={tuple(shape)}")
    if not (meta or 0 in shape):  # the values show that these are what they are
        known = known or dtype in (dtypes.int64, dtypes.bool, dtypes.get_default_complex_dtype())
    if not known:
        found.append(f"dtype={dtype}")
    if grad_fn_name is not None:
        found.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        found.append("requires_grad=True")
    if tangent is not None:
        found.append(f"tangent={tangent}")
    return found


def add_suffixes(
    text: str,
    suffixes: Sequence[str],
    indent: int,
    *,
    options: PrintOptions | None = None,
    apart: bool = False,
) -> str:
    """`text`, the suffixes (on new lines where they would not fit, the first if `apart`) and the closing parenthesis."""
    width = (options or _options).linewidth
    length = len(text) - text.rfind("\n") + 1
    for i, suffix in enumerate(suffixes):
        if length + len(suffix) + 2 > width or (apart and i == 0):
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text + ")"


def format_tensor(
    values: np.ndarray[Any, Any] | None,
    *,
    suffixes: Sequence[str] = (),
    prefix: str = "tensor(",
    shape: Sequence[int] | None = None,
    options: PrintOptions | None = None,
) -> str:
    """A tensor as PyTorch prints it: `tensor([0., 1.], requires_grad=True)`; without values, `tensor(..., ...)`.

    `values` may be what `summary_indices` selects from an array of the given `shape`.
    """
    text = "..." if values is None else format_values(values, len(prefix), shape=shape, options=options)
    return add_suffixes(prefix + text, suffixes, len(prefix), options=options)
