"""Functions of every element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..ops.create.ranges import complex as complex_of
from ..ops.index import masks
from ..ops.pointwise import arithmetic, clamping, comparison, elementwise, powers, special
from ..ops.shape import reinterpret
from ..tensor import Tensor
from .array import Array, made, plain
from .promotion import Operand, check, combined, operands, with_scalar

__all__: list[str] = []


# ---- where the standard's values are not PyTorch's -----------------------------------------------------------------


def signed(x: Tensor) -> Tensor:
    """The sign, and of NaN NaN."""
    return masks.where(x.isnan(), x, arithmetic.sgn(x))


def rounded(x: Tensor) -> Tensor:
    """The nearest integer, of complex numbers of each part."""
    if not x.dtype.is_complex:
        return elementwise.round(x)
    return complex_of(elementwise.round(reinterpret.real(x)), elementwise.round(reinterpret.imag(x)))


def hyperbolic_tangent(x: Tensor) -> Tensor:
    """The hyperbolic tangent, which at a real infinity has a zero of the imaginary part's own sign."""
    found = elementwise.tanh(x)
    if not x.dtype.is_complex:
        return found
    real, imag = reinterpret.real(x), reinterpret.imag(x)
    return masks.where(real.isinf() & imag.isfinite(), complex_of(reinterpret.real(found), 0 * imag), found)


def floor_quotient(x1: Tensor, x2: Tensor) -> Tensor:
    """The quotient rounded down, which of infinite floats is that of the rounded quotient, not the one that fits the remainder."""
    found = arithmetic.floor_divide(x1, x2)
    if not x1.dtype.is_floating_point:
        return found
    return masks.where(x1.isfinite() & x2.isfinite(), found, arithmetic.div(x1, x2).floor())


def floor_remainder(x1: Tensor, x2: Tensor) -> Tensor:
    """The remainder, which of floats has the divisor's sign where it is 0, too."""
    found = arithmetic.remainder(x1, x2)
    return (
        masks.where(found == 0, clamping.copysign(found, x2), found) if x1.dtype.is_floating_point else found
    )


# ---- how a function is made ----------------------------------------------------------------------------------------

Unary = Callable[[Tensor], Array]
Binary = Callable[[Operand, Operand], Array]


def unary(name: str, allowed: str, function: Callable[..., Any], what: str) -> Unary:
    """A function of one array; `allowed` are the kinds of dtypes that it is for."""

    def run(x: Tensor, /) -> Array:
        check(name, allowed, x.dtype)
        return made(function(plain(x)))

    return published(run, name, f"{what}; TypeError for other than {allowed} dtypes.")


def whole(name: str, allowed: str, function: Callable[..., Any], what: str) -> Unary:
    """The same of a function that leaves integers as they are."""

    def run(x: Tensor, /) -> Array:
        check(name, allowed, x.dtype)
        return made(
            function(plain(x)) if x.dtype.is_floating_point or x.dtype.is_complex else plain(x).clone()
        )

    return published(run, name, f"{what}; TypeError for other than {allowed} dtypes.")


def binary(name: str, allowed: str, function: Callable[..., Any], what: str) -> Binary:
    """A function of two arrays, or an array and a Python number, in the dtype that they promote to."""

    def run(x1: Operand, x2: Operand, /) -> Array:
        return made(function(*operands(name, allowed, x1, x2)))

    return published(
        run, name, f"{what}; TypeError for other than {allowed} dtypes, and where they do not promote."
    )


def published(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    __all__.append(name)
    return function


abs = unary("abs", "numeric", arithmetic.abs, "The absolute value")
acos = unary("acos", "floating", elementwise.acos, "The inverse cosine")
acosh = unary("acosh", "floating", elementwise.acosh, "The inverse hyperbolic cosine")
asin = unary("asin", "floating", elementwise.asin, "The inverse sine")
asinh = unary("asinh", "floating", elementwise.asinh, "The inverse hyperbolic sine")
atan = unary("atan", "floating", elementwise.atan, "The inverse tangent")
atanh = unary("atanh", "floating", elementwise.atanh, "The inverse hyperbolic tangent")
bitwise_invert = unary("bitwise_invert", "bool or integral", comparison.bitwise_not, "Every bit turned")
ceil = whole("ceil", "real", elementwise.ceil, "The next integer above")
cos = unary("cos", "floating", elementwise.cos, "The cosine")
cosh = unary("cosh", "floating", elementwise.cosh, "The hyperbolic cosine")
exp = unary("exp", "floating", elementwise.exp, "The exponential")
expm1 = unary("expm1", "floating", elementwise.expm1, "`exp(x) - 1`, exact near 0")
floor = whole("floor", "real", elementwise.floor, "The next integer below")
isfinite = unary("isfinite", "numeric", comparison.isfinite, "Whether elements are finite")
isinf = unary("isinf", "numeric", comparison.isinf, "Whether elements are infinite")
isnan = unary("isnan", "numeric", comparison.isnan, "Whether elements are NaN")
log = unary("log", "floating", elementwise.log, "The natural logarithm")
log1p = unary("log1p", "floating", elementwise.log1p, "`log(1 + x)`, exact near 0")
log2 = unary("log2", "floating", elementwise.log2, "The logarithm to base 2")
log10 = unary("log10", "floating", elementwise.log10, "The logarithm to base 10")
logical_not = unary("logical_not", "bool", comparison.logical_not, "The other truth value")
negative = unary("negative", "numeric", arithmetic.neg, "The negative")
positive = unary("positive", "numeric", lambda x: x.clone(), "A copy")
reciprocal = unary("reciprocal", "floating", elementwise.reciprocal, "`1 / x`")
round = unary("round", "numeric", rounded, "The nearest integer, the even one of two")
sign = unary("sign", "numeric", signed, "-1, 0 or 1; of complex elements `x / abs(x)`")
signbit = unary("signbit", "real floating", arithmetic.signbit, "Whether the sign bit is set")
sin = unary("sin", "floating", elementwise.sin, "The sine")
sinh = unary("sinh", "floating", elementwise.sinh, "The hyperbolic sine")
square = unary("square", "numeric", elementwise.square, "`x * x`")
sqrt = unary("sqrt", "floating", elementwise.sqrt, "The square root")
tan = unary("tan", "floating", elementwise.tan, "The tangent")
tanh = unary("tanh", "floating", hyperbolic_tangent, "The hyperbolic tangent")
trunc = whole("trunc", "real", elementwise.trunc, "The next integer towards 0")

conj = unary(
    "conj", "numeric", lambda x: reinterpret.resolve_conj(reinterpret.conj(x)), "The complex conjugate"
)
imag = unary("imag", "complex floating", lambda x: reinterpret.imag(x).clone(), "The imaginary part")
real = unary(
    "real", "numeric", lambda x: reinterpret.real(x).clone(), "The real part, of real elements a copy"
)

add = binary("add", "numeric", arithmetic.add, "The sum")
atan2 = binary("atan2", "real floating", special.atan2, "The angle of the point (`x2`, `x1`)")
bitwise_and = binary("bitwise_and", "bool or integral", comparison.bitwise_and, "Bits that are set in both")
bitwise_left_shift = binary(
    "bitwise_left_shift", "integral", comparison.bitwise_left_shift, "The bits of `x1` moved up by `x2`"
)
bitwise_or = binary("bitwise_or", "bool or integral", comparison.bitwise_or, "Bits that are set in either")
bitwise_right_shift = binary(
    "bitwise_right_shift", "integral", comparison.bitwise_right_shift, "The bits of `x1` moved down by `x2`"
)
bitwise_xor = binary("bitwise_xor", "bool or integral", comparison.bitwise_xor, "Bits that are set in one")
copysign = binary(
    "copysign", "real floating", clamping.copysign, "The magnitude of `x1` with the sign of `x2`"
)
divide = binary("divide", "numeric", arithmetic.div, "The quotient, of integers in the default float dtype")
equal = binary("equal", "any", comparison.eq, "Whether elements are equal")
floor_divide = binary("floor_divide", "real", floor_quotient, "The quotient, rounded down")
greater = binary("greater", "real", comparison.gt, "Whether `x1 > x2`")
greater_equal = binary("greater_equal", "real", comparison.ge, "Whether `x1 >= x2`")
hypot = binary("hypot", "real floating", special.hypot, "`sqrt(x1 ** 2 + x2 ** 2)` without overflow")
less = binary("less", "real", comparison.lt, "Whether `x1 < x2`")
less_equal = binary("less_equal", "real", comparison.le, "Whether `x1 <= x2`")
logaddexp = binary(
    "logaddexp", "real floating", special.logaddexp, "`log(exp(x1) + exp(x2))` without overflow"
)
logical_and = binary("logical_and", "bool", comparison.logical_and, "Whether both are true")
logical_or = binary("logical_or", "bool", comparison.logical_or, "Whether one or both are true")
logical_xor = binary("logical_xor", "bool", comparison.logical_xor, "Whether one is true")
maximum = binary("maximum", "real", clamping.maximum, "The greater element")
minimum = binary("minimum", "real", clamping.minimum, "The smaller element")
multiply = binary("multiply", "numeric", arithmetic.mul, "The product")
nextafter = binary("nextafter", "real floating", clamping.nextafter, "The next float from `x1` towards `x2`")
not_equal = binary("not_equal", "any", comparison.ne, "Whether elements differ")
pow = binary("pow", "numeric", powers.pow, "`x1` to the power of `x2`")
remainder = binary("remainder", "real", floor_remainder, "The remainder of the quotient rounded down")
subtract = binary("subtract", "numeric", arithmetic.sub, "The difference")


def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Array:
    """Elements of `x` between bounds, in the dtype of `x`; TypeError for complex and bool, and for bounds of another kind."""
    check("clip", "real", x.dtype)
    source = plain(x)
    bounds: list[Tensor | None] = []
    for bound in (min, max):
        if isinstance(bound, Tensor):
            combined(x.dtype, bound.dtype)
            bounds.append(plain(bound).to(x.dtype))
        elif bound is None:
            bounds.append(None)
        else:
            with_scalar(x.dtype, bound)
            info: Any = dtypes.iinfo(x.dtype) if x.dtype.is_integral else None
            # A bound beyond what the dtype holds bounds nothing, or all.
            bound = (
                bound
                if info is None
                else (info.min if bound < info.min else info.max if bound > info.max else bound)
            )
            bounds.append(source.new_tensor(bound, dtype=x.dtype))
    if bounds == [None, None]:
        return made(source.clone())
    return made(clamping.clamp(source, *bounds))


__all__ += ["clip"]
