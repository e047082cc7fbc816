"""The older spelling of `sparse_coo_tensor`: `sparse.FloatTensor` and the like, whose instances are the COO tensors of one dtype."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from .. import checks, devices, dtypes
from ..ops.tensor.queries import TensorType
from ..tensor import Size, Tensor
from .construct import empty_coo, sparse_coo_tensor
from .layout import SparseTensor, handles, is_coo

__all__ = [
    "BFloat16Tensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
]

SIGNATURES = (
    "*, torch.device device = None",
    "Tensor indices, Tensor values, *, torch.device device = None",
    "Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None",
    "tuple of ints size, *, torch.device device = None",
)


class SparseType(TensorType):
    """The class of the typed constructors of sparse tensors."""

    layout = dtypes.sparse_coo
    is_sparse = True

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.layout is dtypes.sparse_coo
            and instance.dtype is cls.dtype
            and bool(instance.is_cpu)
        )

    def __call__(cls, *data: Any, cdata: Any = None, device: devices.DeviceLike = None) -> Tensor:
        if cdata is not None:
            deprecated("cdata=x._cdata", "x._indices(), x._values(), x.shape")
            return ASKED[cdata].detach()
        return from_legacy(checks.spelled("sparse.SparseTensor"), cls.dtype, data, device, deprecated)


ASKED: weakref.WeakValueDictionary[int, SparseTensor] = weakref.WeakValueDictionary()
"""The sparse tensors whose numbers programs have asked for."""


def number(self: SparseTensor) -> int:
    """A number that no other tensor has while this one lives, by which the older constructors find it."""
    ASKED[id(self)] = self
    return id(self)


SparseTensor._cdata = property(number)  # pyright: ignore[reportAttributeAccessIssue]


def from_legacy(
    name: str, dtype: Any, data: tuple[Any, ...], device: Any, warn: Callable[[str, str], None] | None = None
) -> Tensor:
    """A COO tensor from what the older constructors take: indices and values, sizes, or nothing."""
    place = None if device is None else devices.device(device)
    if place is not None and place.type != "cpu":
        raise RuntimeError(
            f"legacy constructor expects device type: cpu but device type: {place.type} was passed"
        )
    tensors = [isinstance(d, Tensor) for d in data]
    warn = warn or (lambda given, instead: None)
    if tensors == [True, True]:
        warn("indices, values, *, device=", "indices, values, dtype=, device=")
        return sparse_coo_tensor(*data)
    if tensors == [True, True, False] and isinstance(data[2], (tuple, list)):
        warn("indices, values, shape, *, device=", "indices, values, shape, dtype=, device=")
        return sparse_coo_tensor(data[0], data[1], tuple(data[2]))
    if not data:
        warn("", "(0,), dtype=")
        return empty_coo((0,), dtype)
    sequence = len(data) == 1 and isinstance(data[0], (tuple, list))
    if sequence and not isinstance(data[0], Size):
        raise TypeError(
            f"{name}(sequence) only accepts sizes.  Please use {checks.spelled('sparse_coo_tensor')}() "
            "or construct a strided tensor and convert it to sparse via to_sparse."
        )
    size = data[0] if sequence else data
    if not all(type(n) is int for n in size):
        raise checks.combination_error("new", data, {}, SIGNATURES)
    warn("shape, *, device=", "shape, dtype=, device=")
    return empty_coo(tuple(size), dtype)


@handles("new")
def new(self: SparseTensor, *data: Any, device: Any = None) -> Tensor:
    """A COO tensor of this one's dtype from indices and values, or from sizes."""
    checks.check(is_coo(self), "Cannot map DispatchKey SparseCsrCPU to a unique layout.")
    return from_legacy("SparseTensor.new", self.dtype, data, device)


def deprecated(given: str, instead: str) -> None:
    """Warn of a spelling, once."""
    checks.warn_once(
        f"{checks.spelled('sparse.SparseTensor')}({given}) is deprecated.  "
        f"Please use {checks.spelled('sparse_coo_tensor')}({instead})."
    )


def typed(dtype: dtypes.dtype) -> SparseType:
    """The typed constructor of a dtype."""
    doc = f"A COO tensor of {dtype} from indices and values, or from sizes; the older spelling of `sparse_coo_tensor`."
    members = {"dtype": dtype, "place": "cpu", "__doc__": doc, "__module__": "xtensor.sparse"}
    return SparseType(f"{dtype.scalar_name}Tensor", (), members)


BFloat16Tensor = typed(dtypes.bfloat16)
ByteTensor = typed(dtypes.uint8)
CharTensor = typed(dtypes.int8)
DoubleTensor = typed(dtypes.float64)
FloatTensor = typed(dtypes.float32)
HalfTensor = typed(dtypes.float16)
IntTensor = typed(dtypes.int32)
LongTensor = typed(dtypes.int64)
ShortTensor = typed(dtypes.int16)
