"""Questions about tensors, as functions; and the typed constructors of older programs (`LongTensor(...)`)."""

from __future__ import annotations

from typing import Any

from ... import checks, devices, dtypes
from ...operators.functions.overloads import overloads
from ...tensor import Tensor, sizes_of
from ..create.ingest import from_legacy
from .typed_storages import is_storage

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "is_complex",
    "is_floating_point",
    "is_inference",
    "is_same_size",
    "is_signed",
    "is_storage",
    "is_tensor",
    "numel",
    "result_type",
]


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor.

    Raises: nothing of its own.

    >>> xtensor.is_tensor([1, 2])
    False
    """
    return isinstance(obj, Tensor)


def checked(function: str, input: Any) -> Tensor:
    if not isinstance(input, Tensor):
        raise checks.argument_error(function, "input", 1, "Tensor", input)
    return input


def numel(input: Tensor) -> int:
    """The number of elements of `input`.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.numel(xtensor.ones(2, 3))
    6
    """
    return checked("numel", input).numel()


def is_floating_point(input: Tensor) -> bool:
    """Whether the elements are (real) floats.

    Raises: TypeError for arguments of other kinds.
    """
    return checked("is_floating_point", input).is_floating_point()


def is_complex(input: Tensor) -> bool:
    """Whether the elements are complex.

    Raises: TypeError for arguments of other kinds.
    """
    return checked("is_complex", input).is_complex()


def is_signed(input: Tensor) -> bool:
    """Whether the elements can be negative.

    Raises: TypeError for arguments of other kinds.
    """
    return checked("is_signed", input).is_signed()


def is_inference(input: Tensor) -> bool:
    """Whether `input` was made in inference mode.

    Raises: TypeError for arguments of other kinds.
    """
    return checked("is_inference", input).is_inference()


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether both have the same sizes.

    Raises: TypeError for arguments of other kinds.
    """
    checked("is_same_size", input)
    if not isinstance(other, Tensor):
        raise checks.argument_error("is_same_size", "other", 1, "Tensor", other)
    return tuple(sizes_of(input)) == tuple(sizes_of(other))


RESULT_TYPE = (
    "Tensor tensor, Tensor other",
    "Number scalar, Tensor tensor",
    "Tensor tensor, Number other",
    "Number scalar1, Number scalar2",
)


@overloads(
    "Tensor tensor, Tensor other",
    "Number scalar, Tensor tensor",
    "Tensor tensor, Number other",
    "Number scalar1, Number scalar2",
)
def result_type(tensor: Any, other: Any) -> dtypes.dtype:
    """The dtype in which an operation on two tensors or numbers computes.

    Raises: TypeError for arguments of other kinds.
    """
    operands = []
    for value in (tensor, other):
        if isinstance(value, Tensor):
            operands.append((value.dtype, dtypes.DIM if value.dim() else dtypes.ZERO_DIM))
        else:
            try:
                operands.append((dtypes.scalar_dtype(value), dtypes.WRAPPED))
            except TypeError:
                raise checks.combination_error("result_type", (tensor, other), {}, RESULT_TYPE) from None
    return dtypes.result_type_of(operands)


class TensorType(type):
    """The class of typed constructors: their instances are the tensors of one dtype."""

    dtype: dtypes.dtype
    place: str

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any]) -> TensorType:
        for base in bases:
            if isinstance(base, TensorType):
                shown = checks.spelled(f"{base.__module__}.{base.__name__}".partition(".")[2])
                raise TypeError(f"type '{shown}' is not an acceptable base type")
        return super().__new__(cls, name, bases, members)

    def __instancecheck__(cls, instance: Any) -> bool:
        if not isinstance(instance, Tensor) or instance.dtype is not cls.dtype:
            return False
        return instance.is_cpu if cls.place == "cpu" else instance.device == devices.resolve(cls.place)

    def __call__(cls, *data: Any, device: devices.DeviceLike = None) -> Tensor:
        return from_legacy(data, device or cls.place, cls.dtype)


def typed(dtype: dtypes.dtype, place: str = "cpu", module: str = "xtensor") -> TensorType:
    """The typed constructor of a dtype on a device."""
    name = f"{dtype.scalar_name}Tensor"
    where = place.upper()
    doc = (
        f"A {where} tensor of {dtype} from sizes or from values; the older spelling of `tensor` and `empty`."
    )
    return TensorType(name, (), {"dtype": dtype, "place": place, "__doc__": doc, "__module__": module})


BFloat16Tensor = typed(dtypes.bfloat16)
BoolTensor = typed(dtypes.bool)
ByteTensor = typed(dtypes.uint8)
CharTensor = typed(dtypes.int8)
DoubleTensor = typed(dtypes.float64)
FloatTensor = typed(dtypes.float32)
HalfTensor = typed(dtypes.float16)
IntTensor = typed(dtypes.int32)
LongTensor = typed(dtypes.int64)
ShortTensor = typed(dtypes.int16)
