"""The older spelling of `sparse_coo_tensor`: `sparse.FloatTensor` and the like, whose instances are the COO tensors of one dtype."""

from __future__ import annotations

from typing import Any

from .. import checks, devices, dtypes
from ..ops.tensor.queries import TensorType
from ..tensor import Tensor
from .construct import empty_coo, sparse_coo_tensor

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

    def __call__(cls, *data: Any, device: devices.DeviceLike = None) -> Tensor:
        tensors = [isinstance(d, Tensor) for d in data]
        if tensors == [True, True]:
            deprecated("indices, values, ", "indices, values, dtype=, device=")
            return sparse_coo_tensor(*data, device=device)
        if tensors == [True, True, False] and isinstance(data[2], (tuple, list)):
            deprecated("indices, values, shape, ", "indices, values, shape, dtype=, device=")
            return sparse_coo_tensor(data[0], data[1], tuple(data[2]), device=device)
        if not data:
            deprecated("", "(0,), dtype=")
            return empty_coo((0,), cls.dtype, device)
        size = data[0] if len(data) == 1 and isinstance(data[0], (tuple, list)) else data
        if not all(type(n) is int for n in size):
            raise checks.combination_error("new", data, {}, SIGNATURES)
        deprecated("shape, ", "shape, dtype=, device=")
        return empty_coo(tuple(size), cls.dtype, device)


def deprecated(given: str, instead: str) -> None:
    """Warn of a spelling, once."""
    given = f"{given}*, device=" if given else ""
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
