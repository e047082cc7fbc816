"""Rows at sizes that are larger than a vector loop and no multiple of one, against NumPy in more than their precision.

A kernel's loop over whole vectors, and what XLA and LLVM put into it, begins where the samples of the other facets end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import special

from xtensor.tensor import Tensor, array_of
from xtensor.ulps import is_floating, largest_ulps

from . import Row
from .bridge import OURS, declared, flat, operator_named
from .facets import key_of, showing
from .samples import Sample, T

LONG, TALL = 1031, (7, 149)
FLOATS = ("float32", "float64", "bfloat16")
INTEGERS = ("int64", "int32")
USUAL, HALF = 4.0, 1.0
KINDS = ("pointwise", "reduction")
# Composites whose own arithmetic is pointwise, a reduction or a scan; all others call operators that have a row here.
# Composites whose own arithmetic is pointwise, a reduction or a scan; all others call operators that have a row here.
POINTWISE_COMPOSITES = ("conj", "double", "equal", "imag", "positive", "real", "rrelu", "true_divide")
COMPOSITES = (
    *POINTWISE_COMPOSITES,
    *"argsort cumulative_trapezoid diff log_softmax msort nanquantile quantile softmax trapezoid".split(),
)

# Where the row's samples do not say what a long one is: sizes that depend on each other, values that must repeat.
SAMPLES: dict[str, list[Sample]] = {
    "clamp": [
        Sample(T(LONG), -0.5, 0.5),
        Sample(T(LONG), min=0),
        Sample(T(LONG), max=0.5),
        Sample(T(LONG), T(LONG), T(LONG)),
    ],
    "cross": [Sample(T(347, 3), T(347, 3)), Sample(T(3, 347), T(3, 347), 0)],
    "cumulative_trapezoid": [Sample(T(*TALL, low=0.25)), Sample(T(*TALL, low=0.25), dx=0.5, dim=0)],
    "diff": [Sample(T(*TALL)), Sample(T(*TALL), 2), Sample(T(*TALL), dim=0), Sample(T(LONG))],
    "gelu": [Sample(T(LONG)), Sample(T(LONG), approximate="tanh")],
    "heaviside": [Sample(T(LONG), T(LONG)), Sample(T(values=np.arange(LONG) % 3 - 1.0), T(LONG))],
    "isclose": [
        Sample(T(LONG), T(LONG)),
        Sample(T(values=np.arange(LONG) % 7), T(values=np.arange(LONG) % 5)),
    ],
    "ldexp": [Sample(T(LONG), T(LONG, dtype="int32"))],
    "lerp": [Sample(T(LONG), T(LONG), 0.3), Sample(T(LONG), T(LONG), T(LONG, low=0.0, high=1.0))],
    "mode": [Sample(T(values=np.arange(7 * 149).reshape(TALL) % 7 % 3), dim) for dim in (0, 1)],
    "polygamma": [Sample(n, T(LONG, low=0.5, high=4.0)) for n in (1, 2, 5)],
    "pow": [
        *(Sample(T(LONG, low=0.2), other) for other in (T(LONG), 1.5, 2, 0.5)),
        Sample(2.5, T(LONG)),
        Sample(T(LONG), 3),
    ],
    "prelu": [Sample(T(LONG), T(1)), Sample(T(*TALL), T(149))],
    "trapezoid": [Sample(T(*TALL, low=0.25)), Sample(T(*TALL, low=0.25), dx=0.5, dim=0)],
}
for name in ("eq", "ne", "lt", "le", "gt", "ge", "equal"):  # random numbers are never the same
    SAMPLES[name] = [
        Sample(T(values=np.arange(LONG) % 7), T(values=np.arange(LONG) % 5)),
        Sample(T(LONG), T(LONG)),
    ]
POSITIVE = dict(low=0.25, high=2.0)
SUMS = "sum nansum mean nanmean cumsum std_mean var_mean".split()
# Domains that keep a long result from cancelling or overflowing, where the row's own does not.
DOMAINS: dict[str, dict[str, float]] = {
    **dict.fromkeys(SUMS, POSITIVE),
    **{name: dict(low=0.98, high=1.02) for name in ("prod", "cumprod")},
}
POLYNOMIALS = [
    f"special_{family}_polynomial_{kind}"
    for family, kinds in {
        "chebyshev": "tuvw",
        "shifted_chebyshev": "tuvw",
        "hermite": ("h", "he"),
        "laguerre": "l",
        "legendre": "p",
    }.items()
    for kind in kinds
]
# Results that cancel have no digits of their own: the error is measured at the largest value of the result, not at each.
CANCELLING = (
    "addcdiv addcmul lerp add sub rsub frac special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 "
    "special_bessel_y1 special_spherical_bessel_j0 lgamma digamma mvlgamma "
    "logaddexp logaddexp2 logit sinc"
).split() + POLYNOMIALS
FACTORS = "a product of a thousand factors rounds a thousand times"
SERIES = "a series whose terms round, in argument or result, where ours has no more digits to work with"
TAIL = "a small result of a large argument, whose own rounding an exponential multiplies"
# What more than the usual units is allowed, by row, for float32 and float64, and why. Of half types only one is, always:
# they compute in float32.
BOUNDS: dict[str, tuple[float, float, str]] = {
    **dict.fromkeys(("prod", "cumprod"), (32, 32, FACTORS)),
    "gelu": (64, 64, "1 + erf of a negative argument cancels, as PyTorch's does"),
    "sinh": (8, 8, "a difference of exponentials"),
    "special_ndtr": (32, 64, TAIL),
    "special_log_ndtr": (32, 64, TAIL),
    "erfc": (16, 16, TAIL),
    "erfinv": (8, 8, SERIES),
    "special_erfcx": (4, 16, SERIES),
    "special_ndtri": (8, 8, SERIES),
    "special_i0e": (8, 8, SERIES),
    "special_i1": (8, 8, SERIES),
    "special_i1e": (8, 16, SERIES),
    "special_airy_ai": (64, 128, "an oscillation whose phase is the argument to the power of 3/2"),
    "special_bessel_j0": (16, 32, SERIES),
    "special_bessel_j1": (8, 8, SERIES),
    "special_bessel_y0": (16, 16, SERIES),
    "special_bessel_y1": (8, 16, SERIES),
    **dict.fromkeys(
        [
            f"special_{k}"
            for k in "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1".split()
        ],
        (24, 24, SERIES),
    ),
    **dict.fromkeys([f"special_scaled_modified_bessel_{k}" for k in ("k0", "k1")], (24, 24, SERIES)),
    "special_hermite_polynomial_h": (4, 16, SERIES),
    "special_laguerre_polynomial_l": (8, 16, SERIES),
    "special_legendre_polynomial_p": (4, 24, "SciPy's own rounding: it takes the hypergeometric series"),
    "special_zeta": (8, 8, SERIES),
    "igamma": (4, 64, SERIES),
    "igammac": (4, 128, SERIES),
    "lgamma": (32, 32, SERIES),
    "mvlgamma": (32, 32, SERIES),
    "digamma": (16, 24, SERIES),
    "polygamma": (32, 24, SERIES),
}
# Dtypes that PyTorch has no kernel for, nor have we.
REFUSED: dict[str, list[str]] = {
    "bfloat16": "complex polar quantile nanquantile".split()
    + [
        f"special_{name}"
        for name in (
            "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 spherical_bessel_j0 modified_bessel_i0 modified_bessel_i1 "
            "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 zeta erfcx log_ndtr "
            "ndtri"
        ).split()
    ]
    + POLYNOMIALS
}
REFUSALS = "not implemented for|Expected both|must be either float or double"
# Rows without a reference here, and why.
WITHOUT: dict[str, str] = {
    "hash_tensor": "the bits of the values are what it adds: the other facets compare them exactly",
}


def running(function: Any, later: Any) -> Callable[..., Any]:
    """Running extrema with the index of the last that is as large."""

    def scan(a: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
        values = function.accumulate(a, axis=dim)
        places = np.moveaxis(np.broadcast_to(np.arange(a.shape[dim]), np.moveaxis(a, dim, -1).shape), -1, dim)
        return values, np.maximum.accumulate(np.where(later(a, values), places, 0), axis=dim)

    return scan


def middle(a: np.ndarray, dim: Any = None, keepdim: bool = False) -> np.ndarray:
    """The lower of two medians, as PyTorch has it."""
    a, dim = (a.reshape(-1), 0) if dim is None else (a, dim)
    return np.take(np.sort(a, axis=dim), (a.shape[dim] - 1) // 2, axis=dim)


def norm(a: np.ndarray, p: Any = 2, dim: Any = None, keepdim: bool = False, **_: Any) -> np.ndarray:
    p = 2 if p == "fro" else p
    a, dim = (a.reshape(-1), 0) if dim is None else (a, dim)
    if isinstance(dim, tuple):
        a, dim = a.reshape(-1), 0
    size = np.abs(a)
    if p == 0:
        return np.count_nonzero(size, axis=dim, keepdims=keepdim).astype(a.dtype)
    if np.isinf(p):
        return (np.max if p > 0 else np.min)(size, axis=dim, keepdims=keepdim)
    return np.sum(size**p, axis=dim, keepdims=keepdim) ** (1 / np.asarray(p, a.dtype))


def trapezoid(a: np.ndarray, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> np.ndarray:
    return np.trapezoid(a, x, dx=dx, axis=dim)


def cumulative_trapezoid(a: np.ndarray, x: Any = None, *, dx: float = 1.0, dim: int = -1) -> np.ndarray:
    a = np.moveaxis(a, dim, -1)
    steps = dx if x is None else np.diff(x)
    return np.moveaxis(np.cumsum((a[..., 1:] + a[..., :-1]) / 2 * steps, -1), -1, dim)


def quantile(
    a: np.ndarray, q: Any, dim: Any = None, keepdim: bool = False, interpolation: str = "linear"
) -> Any:
    return np.quantile(a, q, axis=dim, keepdims=keepdim, method=interpolation)


# NumPy's functions for rows that have none.
REFERENCES: dict[str, Callable[..., Any]] = {
    "cummax": running(np.maximum, lambda a, top: a >= top),
    "cummin": running(np.minimum, lambda a, top: a <= top),
    "cumulative_trapezoid": cumulative_trapezoid,
    "double": lambda a: a,
    "igamma": special.gammainc,
    "igammac": special.gammaincc,
    "kthvalue": lambda a, k, dim=-1, keepdim=False: np.take(np.sort(a, dim), k - 1, dim),
    "median": middle,
    "mode": lambda a, dim=-1, keepdim=False: stat_mode(a, dim),
    "nanmedian": middle,
    "nanquantile": quantile,
    "norm": norm,
    "quantile": quantile,
    "topk": lambda a, k, dim=-1, largest=True: top(a, k, dim, largest),
    "trapezoid": trapezoid,
}
# Of equal elements any index is right: indices are judged by what they point to.
BY_INDEX = ("kthvalue", "median", "mode", "nanmedian", "topk")


def stat_mode(a: np.ndarray, dim: int) -> np.ndarray:
    def one(row: np.ndarray) -> Any:
        values, counts = np.unique(row, return_counts=True)
        return values[counts.argmax()]

    return np.apply_along_axis(one, dim, a)


def top(a: np.ndarray, k: int, dim: int, largest: bool) -> np.ndarray:
    ordered = np.sort(a, axis=dim)
    return np.take(np.flip(ordered, dim) if largest else ordered, range(k), axis=dim)


# -- the samples


def concerned(row: Row) -> bool:
    """Whether a row is of an operator that is pointwise, a reduction or a scan."""
    names = (row.name.rpartition(".")[2], *row.covers)
    return row.name in COMPOSITES or any((op := declared(n)) is not None and op.kind in KINDS for n in names)


def is_pointwise(row: Row) -> bool:
    op = declared(row.name.rpartition(".")[2])
    return row.name in POINTWISE_COMPOSITES or getattr(op, "kind", "") == "pointwise"


def dtypes_of(row: Row) -> tuple[str, ...]:
    """The dtypes to try, by the one that the row is of."""
    return (
        INTEGERS if row.dtype.startswith("int") else FLOATS if row.dtype.startswith("float") else (row.dtype,)
    )


def long_samples(row: Row) -> list[Sample]:
    """The row's calls, each kind once, with long tensors for its small ones."""
    if row.name in SAMPLES:
        return SAMPLES[row.name]
    domain = DOMAINS.get(row.name, {})
    found: dict[str, Sample] = {}

    def lengthened(sample: Sample, *shape: int) -> Sample:
        return sample.map(lambda t: t.but(shape=t.shape if t.shape in ((), (1,)) else shape, **domain))

    for sample in row.samples:
        tensors = sample.tensors
        if any(t.values is not None or 0 in t.shape for t in tensors) or not any(t.shape for t in tensors):
            continue
        if is_pointwise(row):
            if all(t.shape in ((), (1,), (2, 3)) for t in tensors):
                made = lengthened(sample, LONG)
                found[repr(made)] = made
        elif len({t.shape for t in tensors}) == 1 and len(tensors[0].shape) == 2:
            for made in (tall := lengthened(sample, *TALL), *other_dims(tall)):
                found[repr(made)] = made
    return list(found.values())


def other_dims(sample: Sample) -> Iterator[Sample]:
    """The same call along the other dimension, and of one long one."""
    dims = [i for i, value in enumerate(sample.args) if type(value) is int and value in (0, 1)]
    if dims:
        place = dims[-1]
        before, after = sample.args[:place], sample.args[place + 1 :]
        yield Sample(*before, 1 - sample.args[place], *after, **sample.kwargs)
        yield Sample(*before, 0, *after, **sample.kwargs).map(lambda t: t.but(shape=(LONG,)))


# -- the comparison


def wide(array: np.ndarray) -> np.ndarray:
    """The same values in the precision of the reference: a step above what is judged, where NumPy has one."""
    if array.dtype.kind == "c":
        return array.astype(np.clongdouble if array.dtype == np.complex128 else np.complex128)
    if not is_floating(array.dtype):
        return array
    return array.astype(np.longdouble if array.dtype == np.float64 else np.float64)


def narrow(array: np.ndarray) -> np.ndarray:
    """The same values in float64 or complex128, for functions that know nothing wider."""
    made = wide(array)
    return made.astype({"g": np.float64, "G": np.complex128}.get(made.dtype.char, made.dtype))


def for_numpy(value: Any, convert: Callable[[np.ndarray], np.ndarray]) -> Any:
    """An argument as NumPy takes it; `dtype=` changes what is judged, not what is right."""
    if isinstance(value, Tensor):
        return convert(np.asarray(array_of(value)))
    return type(value)([for_numpy(v, convert) for v in value]) if type(value) in (list, tuple) else value


def expected(row: Row, args: Any, kwargs: Any) -> list[Any]:
    """NumPy's results in a wider dtype; those of SciPy's functions, which know no wider one, in float64."""
    function = REFERENCES.get(row.name) or row.numpy
    assert function is not None, f"{row.name} has no NumPy function: add one to REFERENCES, or say why not"
    kwargs = {k: v for k, v in kwargs.items() if k != "dtype"}

    def called(convert: Callable[[np.ndarray], np.ndarray]) -> list[Any]:
        named = {k: for_numpy(v, convert) for k, v in kwargs.items()}
        return flat(function(*[for_numpy(a, convert) for a in args], **named))

    with np.errstate(all="ignore"):
        try:
            return called(wide)
        except TypeError:
            return called(narrow)


def points_to(array: np.ndarray, index: np.ndarray, values: np.ndarray) -> bool:
    """Whether the elements at these indices, along one of the dimensions, are these values."""
    if index.ndim == 0 or array.ndim == 1:
        return bool(np.all(array.reshape(-1)[index] == values))
    for dim in range(array.ndim):
        full = index.ndim == array.ndim
        places, wanted = (
            (index, values) if full else (np.expand_dims(index, dim), np.expand_dims(values, dim))
        )
        fits = all(p == n or d == dim for d, (p, n) in enumerate(zip(places.shape, array.shape, strict=True)))
        if fits and places.max() < array.shape[dim]:
            if np.array_equal(np.take_along_axis(array, places, dim), wanted):
                return True
    return False


def errors(row: Row, dtype: str) -> Iterator[tuple[Sample, np.dtype, float]]:
    """The result's dtype and error in ulps of each long call: at every element where the row is pointwise, else at the largest of a result."""
    function = operator_named(row.name)
    norm = row.name in CANCELLING or not is_pointwise(row)
    for sample in long_samples(row):
        args, kwargs, _ = OURS.arguments(sample, key_of(row, sample), dtype)
        ours = [
            np.asarray(array_of(a) if isinstance(a, Tensor) else a) for a in flat(function(*args, **kwargs))
        ]
        if row.name in BY_INDEX and len(ours) == 2:
            values, index = ours
            assert points_to(np.asarray(array_of(args[0])), index, values), f"indices of {row.name}{sample}"
            del ours[1]
        for got, right in zip(ours, expected(row, args, kwargs), strict=True):
            right = np.asarray(right).reshape(got.shape)
            if is_floating(got.dtype) and right.dtype.kind not in "fc":
                right = right.astype(np.float64)
            yield sample, got.dtype, largest_ulps(got, right, norm)


def long_arrays(row: Row, dtype: str) -> None:
    """The values of the row's long calls in one dtype, within the bound of its operator."""
    refused = row.name in REFUSED.get(dtype, ())
    for sample in long_samples(row)[: 1 if refused else None]:
        if refused:
            args, kwargs, _ = OURS.arguments(sample, key_of(row, sample), dtype)
            with pytest.raises((NotImplementedError, RuntimeError), match=REFUSALS):
                operator_named(row.name)(*args, **kwargs)
    if refused:
        return
    for sample, got, error in errors(row, dtype):
        with showing(row, sample, dtype, "long arrays"):
            bound = bound_of(row.name, got)
            assert error <= bound, f"{error:.4g} units in the last place, allowed are {bound:g}"


def bound_of(name: str, dtype: np.dtype) -> float:
    """How many units in the last place a result of this dtype may be off."""
    if dtype.itemsize == 2:
        return HALF
    return BOUNDS[name][dtype in (np.float64, np.complex128)] if name in BOUNDS else USUAL
