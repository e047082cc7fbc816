"""The NumPy model under torch's names: `from tests.fuzz import model` in place of `import torch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.fuzz.strided import (
    DTYPES,
    DType,
    Storage,
    Strided,
    Undefined,
    contiguous_strides,
    fail,
    promote,
    result_type,
)
from tests.fuzz.strided_index import Indexing
from tests.fuzz.strided_writes import can_cast, need_defined, refuse_internal_overlap, refuse_overlap

Tensor = Indexing

bool = DTYPES["bool"]
uint8, int8, int16 = DTYPES["uint8"], DTYPES["int8"], DTYPES["int16"]
int32, int64 = DTYPES["int32"], DTYPES["int64"]
float16, bfloat16 = DTYPES["float16"], DTYPES["bfloat16"]
float32, float64 = DTYPES["float32"], DTYPES["float64"]
complex64, complex128 = DTYPES["complex64"], DTYPES["complex128"]
contiguous_format, channels_last, preserve_format = "contiguous_format", "channels_last", "preserve_format"


def _new(values: Any, dtype: DType) -> Tensor:
    array = np.asarray(values, dtype=dtype.np)
    blank = Tensor(Storage(np.zeros(0, np.uint8)), dtype, (0,), contiguous_strides((0,)))
    return blank.fresh(array)


def tensor(data: Any, dtype: DType | None = None) -> Tensor:
    array = np.asarray(data)
    if dtype is None:
        name = {"b": "bool", "i": "int64", "f": "float32", "c": "complex64"}[array.dtype.kind]
        dtype = DTYPES["float32" if not array.size else name]
    return _new(array, dtype)


def arange(end: int, dtype: DType = int64) -> Tensor:
    return _new(np.arange(end), dtype)


def zeros(*size: Any, dtype: DType = float32) -> Tensor:
    shape = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return _new(np.zeros(shape), dtype)


def complex(real: Tensor, imag: Tensor) -> Tensor:
    return _new(real.values() + 1j * imag.values(), complex64 if real.dtype is float32 else complex128)


def _method(name: str) -> Any:
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(x, name)(*args, **kwargs)

    call.__name__ = name
    return call


for _name in (
    "adjoint as_strided chunk conj diagonal dsplit flatten hsplit movedim narrow permute ravel reshape select split "
    "squeeze swapaxes swapdims t tensor_split transpose unbind unflatten unfold unsqueeze view_as_complex "
    "view_as_real vsplit masked_select take_along_dim clone maximum minimum eq ne detach"
).split():
    globals()[_name] = _method(_name)


def real(x: Tensor) -> Any:
    return x.real


def imag(x: Tensor) -> Any:
    return x.imag


def _binary(name: str) -> Any:
    def call(x: Tensor, other: Any, *, out: Tensor | None = None) -> Any:
        if out is None:
            return x._binary(name, other)
        values, dtype = x._combine(name, other)
        return x.into(out, values, dtype, x, other)

    return call


add, sub, mul = _binary("add"), _binary("sub"), _binary("mul")


def _unary(name: str) -> Any:
    def call(x: Tensor, *, out: Tensor | None = None) -> Any:
        if out is None:
            return getattr(x, name)()
        if x.dtype.category == 3 and name == "abs":
            raise Undefined("rounding of a complex absolute value")
        if out.dtype is not x.dtype and (x.dtype.category or name == "abs"):
            fail("RuntimeError", "Found dtype but expected another")
        refuse_internal_overlap(out)
        refuse_overlap(out, x)
        return x.into(out, x._unary(name), x.dtype, x)

    return call


neg, abs = _unary("neg"), _unary("abs")


def _deliver(out: Tensor, compute: Callable[[], Tensor], *inputs: Any) -> Tensor:
    """Copies the result of an operator that is not elementwise into an `out` of its dtype and shape."""
    refuse_internal_overlap(out)
    for x in inputs:
        refuse_overlap(out, x, full_too=True)
    need_defined(out, *inputs, aligned=False)
    result = compute()
    if out.sizes != result.sizes:
        raise Undefined("resizing of out=")
    out.store(result.values())
    return out


def _picking(name: str) -> Any:
    def call(x: Tensor, *args: Any, out: Tensor | None = None) -> Any:
        if out is None:
            return getattr(x, name)(*args)
        if out.dtype is not x.dtype:
            fail("RuntimeError", f"{name}(): self and result must have the same scalar type")
        return _deliver(out, lambda: getattr(x, name)(*args), x, args[-1])

    return call


index_select, gather, take = _picking("index_select"), _picking("gather"), _picking("take")


def cat(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Any:
    first = tensors[0]
    dtype = first.dtype
    for x in tensors[1:]:
        dtype = promote(dtype, x.dtype)
    if any(x.sizes == (0,) for x in tensors):
        raise Undefined("cat skips empty vectors")
    if not all(x.sizes for x in tensors):
        fail("RuntimeError", "zero-dimensional tensor cannot be concatenated")
    dim = first.dimension(dim)
    if first.dim() >= 4 and not all(x.strides == contiguous_strides(x.sizes) for x in tensors):
        raise Undefined("the memory format of a concatenation")
    rest = [(*x.sizes[:dim], *x.sizes[dim + 1 :]) for x in tensors]
    if len({x.dim() for x in tensors}) > 1 or len(set(rest)) > 1:
        fail("RuntimeError", "Sizes of tensors must match except in dimension")
    values = np.concatenate([_converted(x, dtype) for x in tensors], axis=dim)
    if out is None:
        return _new(values, dtype)
    if not can_cast(dtype, out.dtype):
        fail("TypeError", "torch.cat(): input types can't be cast to the desired output type")
    return _deliver(out, lambda: _new(values, dtype).to(out.dtype), *tensors)


def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Any:
    if len({x.sizes for x in tensors}) > 1:
        fail("RuntimeError", "stack expects each tensor to be equal size")
    tensors[0].dimension(dim, 1)
    return cat([x.unsqueeze(dim) for x in tensors], dim, out=out)


def _converted(x: Tensor, dtype: DType) -> np.ndarray:
    return x.to(dtype).values()


__all__ = ["Strided", "Tensor", "result_type"]
