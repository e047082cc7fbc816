"""Element types, their limits, and PyTorch's rules for combining them; also layouts and memory formats.

This module defines `bool`, `int` and `float` as dtypes, so inside it the Python types are `builtins.bool` and so on.
"""

import builtins
import math
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast

import ml_dtypes
import numpy as np

from .checks import argument_error, spelled


class _Named:
    """A module-level constant that prints as `xtensor.<name>` and survives copying and pickling as itself."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(f"cannot create 'xtensor.{cls.__name__}' instances")

    def __setattr__(self, attribute: str, value: object) -> NoReturn:
        raise AttributeError(f"'xtensor.{type(self).__name__}' object attribute '{attribute}' is read-only")

    def __repr__(self) -> str:
        return spelled(self.name)

    def __reduce__(self) -> str:
        return self.name


_T = TypeVar("_T", bound=_Named)


def _constant(cls: type[_T], **attributes: object) -> _T:
    """Make an instance of a class that users cannot instantiate."""
    self = object.__new__(cls)
    for attribute, value in attributes.items():
        object.__setattr__(self, attribute, value)
    return cast("_T", self)


class dtype(_Named):
    """The type of a tensor's elements: one object per type, compared with `is` or `==`."""

    __slots__ = (
        "abbr",
        "is_complex",
        "is_floating_point",
        "is_integral",
        "is_signed",
        "itemsize",
        "numpy",
        "scalar_name",
    )
    _xt_identity = ("scalar_name",)
    itemsize: builtins.int
    is_floating_point: builtins.bool
    is_complex: builtins.bool
    is_integral: builtins.bool  # bool is not integral
    is_signed: builtins.bool
    numpy: np.dtype[Any]
    scalar_name: str  # the name error messages use: "Float" for float32, "Long" for int64
    abbr: str

    def to_real(self) -> "dtype":
        """The type of the real part of this type."""
        return _REAL.get(self, self)

    def to_complex(self) -> "dtype":
        """The complex type whose real part has this type; RuntimeError where there is none.

        >>> xtensor.float16.to_complex()
        xtensor.complex32
        """
        if self.is_complex:
            return self
        if self is float16:
            return complex32
        found = _COMPLEX.get(self)
        if found is None:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return found


def _dtype(name: str, array_type: Any, scalar_name: str, abbr: str) -> dtype:
    numpy_dtype = np.dtype(array_type)
    is_complex = numpy_dtype.kind == "c"
    is_integral = numpy_dtype.kind in "iu"
    is_floating_point = not (is_complex or is_integral or numpy_dtype.kind == "b")
    return _constant(
        dtype,
        name=name,
        itemsize=numpy_dtype.itemsize,
        is_floating_point=is_floating_point,
        is_complex=is_complex,
        is_integral=is_integral,
        is_signed=numpy_dtype.kind not in "bu" and not name.startswith("float8_e8m0"),
        numpy=numpy_dtype,
        scalar_name=scalar_name,
        abbr=abbr,
    )


bool: dtype = _dtype("bool", np.bool_, "Bool", "b8")
uint8: dtype = _dtype("uint8", np.uint8, "Byte", "u8")
int8: dtype = _dtype("int8", np.int8, "Char", "i8")
int16: dtype = _dtype("int16", np.int16, "Short", "i16")
int32: dtype = _dtype("int32", np.int32, "Int", "i32")
int64: dtype = _dtype("int64", np.int64, "Long", "i64")
uint16: dtype = _dtype("uint16", np.uint16, "UInt16", "u16")
uint32: dtype = _dtype("uint32", np.uint32, "UInt32", "u32")
uint64: dtype = _dtype("uint64", np.uint64, "UInt64", "u64")
float16: dtype = _dtype("float16", np.float16, "Half", "f16")
bfloat16: dtype = _dtype("bfloat16", ml_dtypes.bfloat16, "BFloat16", "bf16")
float32: dtype = _dtype("float32", np.float32, "Float", "f32")
float64: dtype = _dtype("float64", np.float64, "Double", "f64")
complex64: dtype = _dtype("complex64", np.complex64, "ComplexFloat", "c64")
complex128: dtype = _dtype("complex128", np.complex128, "ComplexDouble", "c128")
float8_e5m2: dtype = _dtype("float8_e5m2", ml_dtypes.float8_e5m2, "Float8_e5m2", "f8e5m2")
float8_e4m3fn: dtype = _dtype("float8_e4m3fn", ml_dtypes.float8_e4m3fn, "Float8_e4m3fn", "f8e4m3fn")
float8_e5m2fnuz: dtype = _dtype("float8_e5m2fnuz", ml_dtypes.float8_e5m2fnuz, "Float8_e5m2fnuz", "f8e5m2fnuz")
float8_e4m3fnuz: dtype = _dtype("float8_e4m3fnuz", ml_dtypes.float8_e4m3fnuz, "Float8_e4m3fnuz", "f8e4m3fnuz")
float8_e8m0fnu: dtype = _dtype("float8_e8m0fnu", ml_dtypes.float8_e8m0fnu, "Float8_e8m0fnu", "f8e8m0fnu")


class stored_dtype(dtype):
    """A type whose elements no array has: tensors of it keep bytes, and a package of their own answers for them."""

    __slots__ = ()


class quantised_dtype(stored_dtype):
    """One whose integers stand for multiples of a scale."""

    __slots__ = ()

    @property
    def is_signed(self) -> builtins.bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise RuntimeError("isSignedType not supported for quantized types")


def _stored(
    name: str, scalar_name: str, bytes_type: Any, quantised: builtins.bool = False, **is_a: builtins.bool
) -> dtype:
    """A type of elements that no array has: kept as integers, `bytes_type`, that stand for something else."""
    signed = is_a.get("is_signed", np.dtype(bytes_type).kind == "i")
    return _constant(
        quantised_dtype if quantised else stored_dtype,
        name=name,
        itemsize=np.dtype(bytes_type).itemsize,
        is_floating_point=is_a.get("is_floating_point", False),
        is_complex=is_a.get("is_complex", False),
        is_integral=False,
        **({} if quantised else {"is_signed": signed}),
        numpy=np.dtype(bytes_type),
        scalar_name=scalar_name,
        abbr=name,
    )


qint8: dtype = _stored("qint8", "QInt8", np.int8, quantised=True)
quint8: dtype = _stored("quint8", "QUInt8", np.uint8, quantised=True)
qint32: dtype = _stored("qint32", "QInt32", np.int32, quantised=True)
quint4x2: dtype = _stored("quint4x2", "QUInt4x2", np.uint8, quantised=True)
quint2x4: dtype = _stored("quint2x4", "QUInt2x4", np.uint8, quantised=True)
QUANTISED: Final = {qint8: int8, quint8: uint8, qint32: int32}
"""The quantised types, each with that of its integers. No array has one of them, nor does `ALL` name them."""


def _void(name: str, scalar_name: str, size: builtins.int = 1, **is_a: builtins.bool) -> dtype:
    """A stored type whose bytes are never taken for numbers: NumPy's is a void, which no program reads."""
    return _stored(name, scalar_name, f"V{size}", **is_a)


complex32: dtype = _void("complex32", "ComplexHalf", 4, is_complex=True, is_signed=True)
bits1x8: dtype = _void("bits1x8", "Bits1x8")
bits2x4: dtype = _void("bits2x4", "Bits2x4")
bits4x2: dtype = _void("bits4x2", "Bits4x2")
bits8: dtype = _void("bits8", "Bits8")
bits16: dtype = _void("bits16", "Bits16", 2)
int1: dtype = _void("int1", "Int1", is_signed=True)
int2: dtype = _void("int2", "Int2", is_signed=True)
int3: dtype = _void("int3", "Int3", is_signed=True)
int4: dtype = _void("int4", "Int4", is_signed=True)
int5: dtype = _void("int5", "Int5", is_signed=True)
int6: dtype = _void("int6", "Int6", is_signed=True)
int7: dtype = _void("int7", "Int7", is_signed=True)
uint1: dtype = _void("uint1", "UInt1")
uint2: dtype = _void("uint2", "UInt2")
uint3: dtype = _void("uint3", "UInt3")
uint4: dtype = _void("uint4", "UInt4")
uint5: dtype = _void("uint5", "UInt5")
uint6: dtype = _void("uint6", "UInt6")
uint7: dtype = _void("uint7", "UInt7")
float4_e2m1fn_x2: dtype = _void(
    "float4_e2m1fn_x2", "Float4_e2m1fn_x2", is_floating_point=True, is_signed=True
)
STORED: Final = {
    complex32: uint32,
    **dict.fromkeys((bits1x8, bits2x4, bits4x2, bits8), uint8),
    bits16: uint16,
    **dict.fromkeys((int1, int2, int3, int4, int5, int6, int7), uint8),
    **dict.fromkeys((uint1, uint2, uint3, uint4, uint5, uint6, uint7), uint8),
    float4_e2m1fn_x2: uint8,
}
"""The types that only store, each with that of the integers of its bytes. No array has one of them, nor does `ALL` name them."""

half = float16
float = float32
double = float64
short = int16
int = int32
long = int64
cfloat = complex64
cdouble = complex128
chalf = complex32

ALL: Final[tuple[dtype, ...]] = (
    *(bool, uint8, int8, int16, int32, int64, uint16, uint32, uint64),
    *(float16, bfloat16, float32, float64, complex64, complex128),
    *(float8_e5m2, float8_e4m3fn, float8_e5m2fnuz, float8_e4m3fnuz, float8_e8m0fnu),
)
FLOAT8: Final = frozenset(d for d in ALL if d.is_floating_point and d.itemsize == 1)
_WIDE_UNSIGNED: Final = frozenset({uint16, uint32, uint64})  # PyTorch stores these but does not promote them
_REAL: Final = {complex32: float16, complex64: float32, complex128: float64}
_COMPLEX: Final = {float16: complex64, bfloat16: complex64, float32: complex64, float64: complex128}
"""The complex type in which operators answer for a real one; of float16 not complex32, in which none computes."""

FROM_NUMPY: Final[dict[np.dtype[Any], dtype]] = {d.numpy: d for d in ALL}
"""The dtype of each NumPy dtype that has one (native byte order)."""


TYPED: Final = (
    *(bool, uint8, int8, int16, int32, int64),
    *(float16, bfloat16, float32, float64, complex64, complex128),
)
"""The dtypes that PyTorch has typed storages for, such as `FloatStorage`."""

_C_NAMES: Final = {
    **{bool: "bool", uint8: "unsigned char", int8: "signed char", float32: "float", float64: "double"},
    **{int16: "short int", int32: "int", int64: "long int"},
    **{uint16: "short unsigned int", uint32: "unsigned int", uint64: "long unsigned int"},
    **{complex64: "c10::complex<float>", complex128: "c10::complex<double>"},
}


def c_name(d: dtype, sized: builtins.bool = False) -> str:
    """The C++ type of the elements, as messages of PyTorch's name it: `long int`, or where `sized` `int64_t`."""
    if sized and d.numpy.kind in "iu" and d is not int32:
        return f"{d.name}_t"
    return _C_NAMES.get(d, f"c10::{d.scalar_name}")


def dtype_of(array: Any) -> dtype:
    """The dtype of an array's elements."""
    return FROM_NUMPY[array.dtype]


def from_numpy(numpy_dtype: np.dtype[Any]) -> dtype:
    """The dtype that corresponds to a NumPy dtype; TypeError or ValueError with PyTorch's words if none does."""
    found = FROM_NUMPY.get(numpy_dtype)
    if found is not None:
        return found
    if FROM_NUMPY.get(numpy_dtype.newbyteorder("=")) is not None:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. "
            "Conversion between byte orders is currently not supported."
        )
    raise TypeError(
        f"can't convert np.ndarray of type numpy.{numpy_dtype.type.__name__}. The only supported types are: "
        "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
        "uint64, uint32, uint16, uint8, and bool."
    )


# ---- the default dtype ---------------------------------------------------------------------------------------------

on_default_dtype_change: Final[list[Callable[[], object]]] = []
"""Called, without arguments, after the default dtype has changed."""

_default: dtype = float32
_scalars: Final[dict[type, dtype]] = {
    builtins.bool: bool,
    builtins.int: int64,
    builtins.float: float32,
    complex: complex64,
}


def get_default_dtype() -> dtype:
    """The dtype of Python floats in new tensors, and of the quotient of integers."""
    return _default


def set_default_dtype(d: dtype, /) -> None:
    """Choose the default dtype among float16, bfloat16, float32 and float64; TypeError for anything else.

    Raises: TypeError for dtypes of integers.

    >>> xtensor.set_default_dtype(xtensor.float64)
    >>> xtensor.ones(1).dtype
    xtensor.float64
    >>> xtensor.set_default_dtype(xtensor.float32)
    """
    global _default
    if not isinstance(d, dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    if d in FLOAT8 or d in STORED:
        raise TypeError(f"couldn't find storage object {d.scalar_name}Storage")
    if d is _default:
        return
    _default = d
    _scalars[builtins.float] = d
    _scalars[complex] = _COMPLEX[d]
    for callback in on_default_dtype_change:
        callback()


def get_default_complex_dtype() -> dtype:
    """The dtype of Python complex numbers in new tensors, which follows the default dtype.

    Differs from PyTorch: it is complex64 under a float16 default (there: complex32) and under a bfloat16 default
    (there: an error in some functions).
    """
    return _COMPLEX[_default]


# ---- promotion -----------------------------------------------------------------------------------------------------


def _common(a: dtype, b: dtype) -> dtype | str:
    """The type that two types promote to, or what is refused."""
    if a is b:
        return a
    if a in FLOAT8 or b in FLOAT8:
        return "Float8 Types"
    if a in _WIDE_UNSIGNED or b in _WIDE_UNSIGNED:
        other = b if a in _WIDE_UNSIGNED else a
        return other if other.is_floating_point else "uint16, uint32, uint64 types"
    if a.is_complex or b.is_complex:
        if complex32 in (a, b) and not {a, b} - {complex32, float16, bool, uint8, int8, int16, int32, int64}:
            return complex32
        return complex128 if float64 in (a.to_real(), b.to_real()) else complex64
    if a.is_floating_point and b.is_floating_point:
        if a.itemsize == b.itemsize:  # float16 with bfloat16: neither holds the other
            return float32
        return a if a.itemsize > b.itemsize else b
    if a.is_floating_point or (a is not bool and b is bool):
        return a
    if b.is_floating_point or a is bool:
        return b
    if a.itemsize == b.itemsize:  # uint8 with int8
        return int16
    return a if a.itemsize > b.itemsize else b


_PROMOTIONS: Final = {(a, b): _common(a, b) for a in (*ALL, complex32) for b in (*ALL, complex32)}


def _promote(a: dtype, b: dtype) -> dtype:
    found = _PROMOTIONS.get((a, b))
    if found is None:  # of types that only store
        if a is not b:
            raise RuntimeError(f"Promotion from {a.scalar_name} and {b.scalar_name} is unsupported.")
        return a
    if isinstance(found, str):
        raise RuntimeError(
            f"Promotion for {found} is not supported, attempted to promote {a.scalar_name} and {b.scalar_name}"
        )
    return found


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type of at least the kind and size of both; RuntimeError where PyTorch defines none."""
    if not isinstance(type1, dtype):
        raise argument_error("promote_types", "type1", 1, "xtensor.dtype", type1)
    if not isinstance(type2, dtype):
        raise argument_error("promote_types", "type2", 2, "xtensor.dtype", type2)
    return _promote(type1, type2)


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Whether PyTorch allows a result of type `from_` to be stored as `to` (kinds may rise, never fall)."""
    if not isinstance(from_, dtype):
        raise argument_error("can_cast", "from_", 1, "xtensor.dtype", from_)
    if not isinstance(to, dtype):
        raise argument_error("can_cast", "to", 2, "xtensor.dtype", to)
    if from_.is_complex:
        return to.is_complex
    if from_.is_floating_point:
        return to.is_floating_point or to.is_complex
    return to is not bool or from_ is bool


DIM: Final = 0
"""The category of a tensor with at least one dimension."""
ZERO_DIM: Final = 1
"""The category of a tensor without dimensions."""
WRAPPED: Final = 2
"""The category of a Python number."""


def result_type_of(operands: Iterable[tuple[dtype, builtins.int]]) -> dtype:
    """The dtype in which an operation on these (dtype, category) operands computes.

    Within a category types promote pairwise. A lower category (DIM above ZERO_DIM above WRAPPED) counts only if it
    is of a higher kind: a float for integers, a complex for floats, anything for bool.
    """
    best: list[dtype | None] = [None, None, None]
    for current, category in operands:
        if category == WRAPPED:
            if current.is_complex:
                current = _COMPLEX[_default]
            elif current.is_floating_point:
                current = _default
        previous = best[category]
        best[category] = current if previous is None else _promote(previous, current)
    result = _outranks(best[DIM], _outranks(best[ZERO_DIM], best[WRAPPED]))
    if result is None:
        raise ValueError("result_type_of() needs at least one operand")
    return result


def _outranks(higher: dtype | None, lower: dtype | None) -> dtype | None:
    """Combine a category's type with that of the categories below it."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    if higher.is_complex:
        return higher
    if higher.is_floating_point:
        return complex_type(higher) if lower.is_complex else higher
    if lower.is_complex:  # no promotion: this combines even with the wide unsigned types
        return lower
    if higher is bool or lower.is_floating_point:
        return _promote(higher, lower)
    return higher


_NUMBER_KINDS: Final[tuple[tuple[Any, type], ...]] = (
    (np.bool_, builtins.bool),
    ((builtins.int, np.integer), builtins.int),
    ((builtins.float, np.floating), builtins.float),
    ((complex, np.complexfloating), complex),
)


def scalar_dtype(value: object) -> dtype:
    """The dtype of a Python or NumPy number as an operand: bool, int64, or the default float or complex type.

    Raises TypeError for anything else. Differs from PyTorch: `np.bool_` is a bool and `np.complex64` a complex number
    (there, both are read as floats).
    """
    found = _scalars.get(type(value))
    if found is not None:
        return found
    for kind, python_type in _NUMBER_KINDS:
        if isinstance(value, kind):
            return _scalars[python_type]
    raise TypeError(f"{type(value).__name__} is not a number")


def compute_type(d: dtype) -> dtype:
    """The type in which kernels compute on elements of type `d`: float32 for all floats shorter than that."""
    return float32 if d.is_floating_point and d.itemsize < 4 else d


def complex_type(d: dtype) -> dtype:
    """The complex type in which kernels answer for elements of type `d`: of float16 complex64, as none answers in complex32."""
    return complex64 if d is float16 else d.to_complex()


# ---- limits --------------------------------------------------------------------------------------------------------


_MANTISSA_BITS: Final = {
    float16: 10,
    bfloat16: 7,
    float32: 23,
    float64: 52,
    float8_e5m2: 2,
    float8_e4m3fn: 3,
    float8_e5m2fnuz: 2,
    float8_e4m3fnuz: 3,
    float8_e8m0fnu: 0,
}
_Dtype: TypeAlias = dtype  # the classes below have an attribute `dtype`
_DEFAULT: Final = cast("dtype", object())  # an argument that was not given


class _Limits:
    """What `finfo` and `iinfo` share: they are read-only, and equal when made from the same type."""

    __slots__ = ()

    def _set(self, **attributes: object) -> None:
        for attribute, value in attributes.items():
            object.__setattr__(self, attribute, value)

    def __setattr__(self, attribute: str, value: object) -> NoReturn:
        raise AttributeError(
            f"attribute '{attribute}' of 'xtensor.{type(self).__name__}' objects is not writable"
        )

    def __eq__(self, other: object) -> builtins.bool:
        if type(self) is not type(other):
            return NotImplemented
        return self.dtype == other.dtype  # type: ignore[attr-defined]

    def __hash__(self) -> builtins.int:
        return hash((type(self).__name__, self.dtype))  # type: ignore[attr-defined]

    def __reduce__(self) -> tuple[Any, ...]:
        return _limits_of, (type(self), self.dtype)  # type: ignore[attr-defined]


class finfo(_Limits):
    """The limits of a floating-point type, or of a complex type's parts; of the default dtype if none is given.

    Raises: TypeError for dtypes of integers.

    >>> xtensor.finfo(xtensor.float32).eps
    1.1920928955078125e-07
    """

    __slots__ = ("bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")
    bits: builtins.int
    dtype: str
    eps: builtins.float
    max: builtins.float
    min: builtins.float
    resolution: builtins.float
    smallest_normal: builtins.float
    tiny: builtins.float

    def __init__(self, type: "_Dtype" = _DEFAULT) -> None:
        d = _default if type is _DEFAULT else type
        if not isinstance(d, _Dtype):
            raise argument_error("finfo", "type", 1, "xtensor.dtype", d)
        d = d.to_real()
        if not d.is_floating_point or d in STORED:
            raise TypeError(
                "xtensor.finfo() requires a floating point input type. Use xtensor.iinfo to handle 'xtensor.finfo'"
            )
        limits = ml_dtypes.finfo(d.numpy)
        bits = _MANTISSA_BITS[d]
        # PyTorch's eps of the "fnuz" types follows e4m3; that of e5m2fnuz would be 0.25.
        eps = 0.125 if d is float8_e5m2fnuz else 2.0**-bits
        tiny = builtins.float(limits.smallest_normal)
        self._set(
            bits=8 * d.itemsize,
            dtype=d.name,
            eps=eps,
            max=builtins.float(limits.max),
            min=builtins.float(limits.min),
            resolution=builtins.float(f"1e-{math.floor(bits * math.log10(2))}"),
            smallest_normal=tiny,
            tiny=tiny,
        )

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """The limits of an integer type.

    Raises: TypeError for dtypes of floats.

    >>> xtensor.iinfo(xtensor.int8).max
    127
    """

    __slots__ = ("bits", "dtype", "max", "min")
    bits: builtins.int
    dtype: str
    max: builtins.int
    min: builtins.int

    def __init__(self, type: "_Dtype") -> None:
        if not isinstance(type, _Dtype):
            raise argument_error("iinfo", "type", 1, "xtensor.dtype", type)
        if type is bool:
            raise TypeError("xtensor.bool is not supported by xtensor.iinfo")
        if not type.is_integral:
            raise TypeError(
                "xtensor.iinfo() requires an integer input type. Use xtensor.finfo to handle 'xtensor.iinfo'"
            )
        bits = 8 * type.itemsize
        low = -(1 << bits - 1) if type.is_signed else 0
        self._set(bits=bits, dtype=type.name, max=low + (1 << bits) - 1, min=low)

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def _limits_of(kind: Callable[[dtype], _Limits], name: str) -> _Limits:
    """Rebuild a pickled `finfo` or `iinfo`."""
    return kind(next(d for d in ALL if d.name == name))


# ---- layouts and memory formats ------------------------------------------------------------------------------------


class layout(_Named):
    """How a tensor's elements are laid out: `strided`, or one of the sparse forms."""

    __slots__ = ()


strided: layout = _constant(layout, name="strided")
sparse_coo: layout = _constant(layout, name="sparse_coo")
sparse_csr: layout = _constant(layout, name="sparse_csr")
sparse_csc: layout = _constant(layout, name="sparse_csc")
sparse_bsr: layout = _constant(layout, name="sparse_bsr")
sparse_bsc: layout = _constant(layout, name="sparse_bsc")
jagged: layout = _constant(layout, name="jagged")
# That of oneDNN's tensors in PyTorch, which none has here.
mkldnn: layout = _constant(layout, name="_mkldnn")


class qscheme(_Named):
    """How the elements of a quantised tensor stand for real numbers."""

    __slots__ = ()


per_tensor_affine: qscheme = _constant(qscheme, name="per_tensor_affine")
per_tensor_symmetric: qscheme = _constant(qscheme, name="per_tensor_symmetric")
per_channel_affine: qscheme = _constant(qscheme, name="per_channel_affine")
per_channel_symmetric: qscheme = _constant(qscheme, name="per_channel_symmetric")
per_channel_affine_float_qparams: qscheme = _constant(qscheme, name="per_channel_affine_float_qparams")


class memory_format(_Named):
    """An order of strides."""

    __slots__ = ()


contiguous_format: memory_format = _constant(memory_format, name="contiguous_format")
channels_last: memory_format = _constant(memory_format, name="channels_last")
channels_last_3d: memory_format = _constant(memory_format, name="channels_last_3d")
preserve_format: memory_format = _constant(memory_format, name="preserve_format")
legacy_contiguous_format = contiguous_format
