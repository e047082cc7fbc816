"""Pointwise operators: where they are tried, and NumPy's or SciPy's function of the same values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from ..dtypes import float32
from .cases import FLOATS, INTEGERS, Case, Drawn, booleans, drawn, fixed

__all__ = ["CASES"]

# Above a vector loop's length, and no multiple of one.
LENGTH = 4_099
ANY = FLOATS + INTEGERS
SINGLES = ("float32", "float64")
CASES: dict[str, list[Case]] = {}
UNTYPED: Any = special  # not all of it is in SciPy's stubs

LAMBDA, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def add(
    names: str,
    numpy: Callable[..., Any],
    *args: Any,
    dtypes: tuple[str, ...] = ANY,
    bound: float = 32.0,
    norm: bool = False,
    same: bool = False,
    **kwargs: Any,
) -> None:
    """A case of each operator named; a pair of numbers stands for an array of values between them."""
    arrays = [drawn(LENGTH, low=a[0], high=a[1]) if type(a) is tuple else a for a in args]
    for name in names.split():
        CASES.setdefault(name, []).append(Case(tuple(arrays), kwargs, numpy, norm, bound, dtypes, same=same))


X: Any = (-2.0, 2.0)
WIDE: Any = (-30.0, 30.0)
POSITIVE: Any = (0.2, 3.0)
UNIT: Any = (-0.95, 0.95)
SHARE: Any = (0.05, 0.95)
FEW = drawn(LENGTH, low=0.0, high=1.0)

# -- arithmetic: sums of two may cancel, so their errors are measured at the largest
add("add", lambda a, b, alpha=1: a + alpha * b, X, X, norm=True)
add("add", lambda a, b, alpha=1: a + alpha * b, X, X, alpha=3, norm=True)
add("sub", lambda a, b, alpha=1: a - alpha * b, X, X, norm=True)
add("rsub", lambda a, b, alpha=1: b - alpha * a, X, X, norm=True)
add("mul", np.multiply, X, X)
add("div", np.true_divide, X, POSITIVE)
add("div", lambda a, b, rounding_mode: np.trunc(a / b), WIDE, POSITIVE, rounding_mode="trunc", dtypes=SINGLES)
add(
    "div",
    lambda a, b, rounding_mode: np.floor_divide(a, b),
    WIDE,
    POSITIVE,
    rounding_mode="floor",
    dtypes=SINGLES,
)
add("floor_divide", np.floor_divide, WIDE, POSITIVE, dtypes=(*SINGLES, *INTEGERS))
add("remainder", np.remainder, WIDE, POSITIVE, norm=True)
add("fmod", np.fmod, WIDE, POSITIVE, norm=True)
add("neg", np.negative, X)
add("abs", np.abs, X)
add("sign sgn", np.sign, X)
add("signbit", np.signbit, X)
add("addcmul", lambda a, b, c, value=1: a + value * b * c, X, X, X, value=2, norm=True)
add("addcdiv", lambda a, b, c, value=1: a + value * b / c, X, X, POSITIVE, value=2, norm=True, dtypes=FLOATS)
add("lerp", lambda a, b, w: a + w * (b - a), X, X, SHARE, norm=True, dtypes=FLOATS)
add("square", np.square, X)
add("gcd", np.gcd, WIDE, WIDE, dtypes=INTEGERS)
add("lcm", np.lcm, X, WIDE, dtypes=INTEGERS)
add("ldexp", np.ldexp, X, drawn(LENGTH, low=-9, high=9, dtype="int32"), dtypes=FLOATS)
add("copysign", np.copysign, X, X)
add("nextafter", np.nextafter, X, X, dtypes=SINGLES, same=True)
add("pow", np.power, POSITIVE, X, dtypes=FLOATS)
add("pow", lambda a, b: a**b, X, 3)
add("float_power", np.float_power, POSITIVE, X)
add("hypot", np.hypot, X, X, dtypes=FLOATS)
add("atan2", np.arctan2, X, X)

# -- elementary functions
add("sqrt", np.sqrt, POSITIVE)
add("rsqrt", lambda a: 1 / np.sqrt(a), POSITIVE)
add("reciprocal", lambda a: 1 / a, POSITIVE)
add("exp", np.exp, WIDE)
add("exp2", np.exp2, WIDE)
add("expm1", np.expm1, X)
add("log", np.log, (0.001, 30.0))
add("log2", np.log2, (0.001, 30.0))
add("log10", np.log10, (0.001, 30.0))
add("log1p", np.log1p, (-0.95, 30.0))
add("log1p", np.log1p, (-0.6, 0.6), dtypes=FLOATS)
add("sigmoid", special.expit, WIDE)
add("sin", np.sin, WIDE, norm=True)
add("cos", np.cos, WIDE, norm=True)
add("tan", np.tan, (-1.5, 1.5))
add("asin", np.arcsin, UNIT)
add("acos", np.arccos, UNIT)
add("atan", np.arctan, WIDE)
add("sinh", np.sinh, X)
add("cosh", np.cosh, X)
add("tanh", np.tanh, X)
add("asinh", np.arcsinh, WIDE)
add("acosh", np.arccosh, (1.1, 30.0), dtypes=FLOATS)
add("atanh", np.arctanh, UNIT, dtypes=FLOATS)
add("deg2rad", np.deg2rad, WIDE)
add("rad2deg", np.rad2deg, X)
add("sinc", np.sinc, X, norm=True)
add("floor", np.floor, WIDE)
add("ceil", np.ceil, WIDE)
add("trunc", np.trunc, WIDE)
add("frac", lambda a: a - np.trunc(a), WIDE, norm=True, dtypes=FLOATS)
add("round", np.round, WIDE)
add("round", lambda a, decimals: np.round(a, decimals), WIDE, decimals=1, dtypes=("float64",))

# -- activations
add("relu", lambda a: np.maximum(a, 0), X)
add("hardtanh", lambda a: np.clip(a, -1, 1), X)
add("leaky_relu", lambda a: np.where(a > 0, a, 0.01 * a), X, dtypes=FLOATS)
add("prelu_kernel", lambda a, w: np.where(a > 0, a, w * a), X, SHARE, dtypes=FLOATS)
add("threshold", lambda a, t, v: np.where(a <= t, v, a), X, 0.5, 2.0, dtypes=FLOATS)
add("hardsigmoid", lambda a: np.clip(a / 6 + 0.5, 0, 1), X, dtypes=FLOATS)
add("hardswish", lambda a: a * np.clip(a + 3, 0, 6) / 6, X, dtypes=FLOATS)
add("hardshrink", lambda a: np.where(np.abs(a) <= 0.5, 0, a), X, dtypes=FLOATS)
add("softshrink", lambda a: np.sign(a) * np.maximum(np.abs(a) - 0.5, 0), X, dtypes=FLOATS)
add("elu celu", lambda a: np.where(a > 0, a, np.expm1(np.minimum(a, 0))), X, dtypes=FLOATS)
add("selu", lambda a: LAMBDA * np.where(a > 0, a, ALPHA * np.expm1(np.minimum(a, 0))), X, dtypes=FLOATS)
add("silu", lambda a: a * special.expit(a), WIDE, dtypes=FLOATS)
add("mish", lambda a: a * np.tanh(np.logaddexp(0, a)), X, dtypes=FLOATS)
add("softplus", lambda a: np.where(a > 20, a, np.logaddexp(0, a)), X, dtypes=FLOATS)
add("logsigmoid", lambda a: -np.logaddexp(0, -a), X, dtypes=FLOATS)
add("gelu", lambda a: a * special.ndtr(a), WIDE, norm=True, dtypes=FLOATS)
add(
    "gelu",
    lambda a, approximate: 0.5 * a * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))),
    WIDE,
    approximate="tanh",
    norm=True,
    dtypes=FLOATS,
)

# -- choice and comparison
FEW_VALUES = (fixed(np.arange(LENGTH) % 7 - 3.0), fixed(np.arange(LENGTH) % 5 - 2.0))
for _name, _function in dict(
    eq=np.equal,
    ne=np.not_equal,
    lt=np.less,
    le=np.less_equal,
    gt=np.greater,
    ge=np.greater_equal,
    maximum=np.maximum,
    minimum=np.minimum,
    fmax=np.fmax,
    fmin=np.fmin,
    logical_and=np.logical_and,
    logical_or=np.logical_or,
    logical_xor=np.logical_xor,
    isclose=np.isclose,
).items():
    add(_name, _function, *FEW_VALUES)
add("heaviside", np.heaviside, FEW_VALUES[0], X)
add("logical_not", np.logical_not, FEW_VALUES[0])
SPECIAL = fixed(np.resize([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan], LENGTH))
for _name in "isnan isinf isfinite isposinf isneginf isreal".split():
    add(_name, getattr(np, _name), SPECIAL, dtypes=FLOATS)
add(
    "nan_to_num",
    lambda a, nan, posinf, neginf: np.nan_to_num(a, nan=nan, posinf=posinf, neginf=neginf),
    *(SPECIAL, 0.5, 3.0, -4.0),
    dtypes=FLOATS,
)
add("clamp", lambda a, low, high: np.clip(a, low, high), X, -1, 1)
add("clamp_min", np.maximum, X, 0)
add("clamp_max", np.minimum, X, 0)
add("where", np.where, booleans(LENGTH), X, X)
add("_to_copy", lambda a, dtype: a.astype(np.float32), X, dtype=float32)
add("clone", lambda a: a, X)
add("fill", lambda a, value: np.full_like(a, value), X, 2)
for _name in "bitwise_and bitwise_or bitwise_xor".split():
    add(_name, getattr(np, _name), WIDE, WIDE, dtypes=INTEGERS)
add("bitwise_not", np.bitwise_not, WIDE, dtypes=INTEGERS)
SHIFT = fixed(np.arange(LENGTH) % 9)
add("bitwise_left_shift", np.left_shift, (0.0, 9.0), Drawn((LENGTH,), 0.2, 2.0), dtypes=INTEGERS)
add("bitwise_right_shift", np.right_shift, WIDE, Drawn((LENGTH,), 0.2, 2.0), dtypes=INTEGERS)

# -- complex numbers
COMPLEX = ("complex64", "complex128")
add("complex", lambda a, b: a + 1j * b, X, X, dtypes=SINGLES)
add("polar", lambda a, b: a * np.exp(1j * b), POSITIVE, WIDE, dtypes=SINGLES)
add("angle", np.angle, X, dtypes=COMPLEX)
add("conj_physical", np.conj, X, dtypes=COMPLEX)
for _name, _function in dict(mul=np.multiply, abs=np.abs, sgn=np.sign, exp=np.exp, sqrt=np.sqrt).items():
    add(_name, _function, *(X,) * (2 if _name == "mul" else 1), dtypes=COMPLEX)

# -- special functions
add("erf", special.erf, X)
add("erfc", special.erfc, X)
add("erfinv", special.erfinv, UNIT, dtypes=FLOATS)
add("logit", special.logit, SHARE, norm=True, dtypes=FLOATS)
add("lgamma", special.gammaln, (0.5, 30.0), norm=True)
add("digamma", special.digamma, (0.5, 30.0), norm=True)
add("polygamma", special.polygamma, 1, (0.5, 30.0), dtypes=FLOATS)
add("mvlgamma", UNTYPED.multigammaln, (1.0, 30.0), 2, norm=True, dtypes=FLOATS)
add("i0", special.i0, X)
add("logaddexp", np.logaddexp, X, X, norm=True, dtypes=FLOATS)
add("logaddexp2", np.logaddexp2, X, X, norm=True, dtypes=FLOATS)
add("xlogy", special.xlogy, X, POSITIVE)
add("igamma", special.gammainc, (0.1, 6.0), (0.1, 6.0), dtypes=FLOATS, bound=128)
add("igammac", special.gammaincc, (0.1, 6.0), (0.1, 6.0), dtypes=FLOATS, bound=256)
add("special_zeta", special.zeta, (1.5, 6.0), (0.5, 6.0), dtypes=SINGLES)
add("special_erfcx", special.erfcx, (-2.0, 20.0), dtypes=SINGLES)
add("special_ndtr", special.ndtr, X, bound=64)
add("special_log_ndtr", special.log_ndtr, (-20.0, 4.0), norm=True, dtypes=SINGLES)
add("special_ndtri", special.ndtri, SHARE, norm=True, dtypes=SINGLES)
add("special_entr", special.entr, POSITIVE, norm=True)
add("special_xlog1py", special.xlog1py, X, (-0.9, 2.0), dtypes=FLOATS)
for _name, _function in {
    "bessel_j0": special.j0,
    "bessel_j1": special.j1,
    "bessel_y0": special.y0,
    "bessel_y1": special.y1,
    "spherical_bessel_j0": lambda x: special.spherical_jn(0, x),
    "modified_bessel_i0": special.i0,
    "modified_bessel_i1": special.i1,
    "modified_bessel_k0": special.k0,
    "modified_bessel_k1": special.k1,
    "scaled_modified_bessel_k0": special.k0e,
    "scaled_modified_bessel_k1": special.k1e,
    "i0e": special.i0e,
    "i1": special.i1,
    "i1e": special.i1e,
    "airy_ai": lambda x: special.airy(x)[0],
}.items():
    add(f"special_{_name}", _function, (0.1, 20.0), norm=True, dtypes=SINGLES, bound=128)
DEGREE = 4
for _name, _function in {
    "chebyshev_polynomial_t": special.eval_chebyt,
    "chebyshev_polynomial_u": special.eval_chebyu,
    "chebyshev_polynomial_v": lambda n, x: special.eval_chebyu(n, x) - special.eval_chebyu(n - 1, x),
    "chebyshev_polynomial_w": lambda n, x: special.eval_chebyu(n, x) + special.eval_chebyu(n - 1, x),
    "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": special.eval_sh_chebyu,
    "shifted_chebyshev_polynomial_v": lambda n, x: (
        special.eval_chebyu(n, 2 * x - 1) - special.eval_chebyu(n - 1, 2 * x - 1)
    ),
    "shifted_chebyshev_polynomial_w": lambda n, x: (
        special.eval_chebyu(n, 2 * x - 1) + special.eval_chebyu(n - 1, 2 * x - 1)
    ),
    "hermite_polynomial_h": special.eval_hermite,
    "hermite_polynomial_he": special.eval_hermitenorm,
    "laguerre_polynomial_l": special.eval_laguerre,
    "legendre_polynomial_p": special.eval_legendre,
}.items():
    add(
        f"special_{_name}",
        lambda x, n, function=_function: function(np.asarray(n, int), x),
        *(X, DEGREE),
        norm=True,
        dtypes=SINGLES,
    )
