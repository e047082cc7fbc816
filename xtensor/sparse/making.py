"""Sparse tensors like others, or of sizes: without elements, or with one value at all places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import checks, devices, dtypes
from ..engine.modes import no_grad
from ..ops.create import creation, ingest, random
from ..ops.create.creation import zeros
from ..ops.create.random import randn
from ..tensor import Tensor
from .construct import BLOCKS, ROWS, empty_coo
from .convert import compress
from .layout import SparseTensor, adopt, assembled, handles, is_coo, with_elements
from .parts import kind_of, of_pattern, sparse_dims
from .pattern import Pattern

__all__ = ["empty_of", "like_zeros"]


def empty_of(layout: Any, size: tuple[int, ...], dtype: Any, device: Any) -> Tensor:
    """A tensor of some sizes without elements, in a layout that needs no more to be said."""
    place = None if device is None else devices.resolve(device)
    if layout is dtypes.sparse_coo:
        return empty_coo(size, dtype, place)
    checks.check(
        layout not in BLOCKS,
        "empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got {}",
        kind_of(layout),
    )
    checks.check(
        len(size) >= 2,
        "torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {}",
        list(size),
    )
    batch, count = size[:-2], size[-2 if layout in ROWS else -1]
    shapes: Any = (((*batch, count + 1), dtypes.int64), ((*batch, 0), dtypes.int64), ((*batch, 0), dtype))
    return assembled(layout, [zeros(shape, dtype=kind, device=place) for shape, kind in shapes], size, True)


creation.empty_in_layout = empty_of


@handles("zero_")
def zero_(self: SparseTensor) -> Tensor:
    """Give up all elements, in place."""
    return adopt(self, like_zeros(self), "zero_")


@handles("fill_")
def fill_(self: SparseTensor, value: Any) -> Tensor:
    """Write a value over all elements of a tensor in a compressed layout; NotImplementedError for COO."""
    if is_coo(self):
        return like_filled(self)
    return adopt(self, with_elements(self, filled(self, value, self.dtype, self.device)), "fill_")


def filled(sparse: SparseTensor, value: Any, dtype: Any, device: Any) -> Tensor:
    """Elements of one value, as many as a tensor has."""
    with no_grad():
        return zeros(tuple(sparse._held[-1].shape), dtype=dtype, device=device).fill_(value)


@handles("zeros_like")
def like_zeros(
    input: SparseTensor,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    keep: bool = False,
    **more: Any,
) -> Tensor:
    """A tensor of the same sizes and layout without elements; dense if `layout` says so."""
    if layout is dtypes.strided:
        return zeros(tuple(input.shape), dtype=dtype or input.dtype, device=device or input.device)
    checks.check(
        not is_coo(input) or more.get("memory_format") is None,
        "memory format option is only supported by strided tensors",
    )
    if layout is not None and layout is not input._layout:
        return empty_in(layout, input, dtype or input.dtype)
    if not is_coo(input) and keep:
        values = zeros(
            tuple(input._held[-1].shape), dtype=dtype or input.dtype, device=device or input.device
        )
        held = [part.to(values.device) for part in input._held[:-1]]
        return assembled(input._layout, (*held, values), tuple(input.shape), True)
    held = input._held[-1]
    if is_coo(input):
        values = zeros((0, *held.shape[1:]), dtype=dtype or input.dtype, device=device or input.device)
        index = np.zeros((sparse_dims(input), 0), np.int64)
        made = of_pattern(
            Pattern(index, tuple(input.shape)[: sparse_dims(input)]), values, tuple(input.shape)
        )
    else:
        at = input._held[1].dim()
        shape = (*input._held[1].shape[:-1], 0, *held.shape[at:])
        values = zeros(shape, dtype=dtype or input.dtype, device=device or input.device)
        pointers = zeros(tuple(input._held[0].shape), dtype=input._held[0].dtype, device=values.device)
        plain = zeros((*input._held[1].shape[:-1], 0), dtype=input._held[1].dtype, device=values.device)
        made = assembled(input._layout, (pointers, plain, values), tuple(input.shape), True)
    return made.requires_grad_() if requires_grad else made


@handles("empty_like")
def empty_like(input: SparseTensor, **options: Any) -> Tensor:
    """A tensor of the same sizes and layout; of compressed layouts with elements at the same places."""
    return like_zeros(input, keep=True, **options)


def empty_in(layout: Any, like: SparseTensor, dtype: Any) -> Tensor:
    """A tensor of the same sizes without elements in another layout."""
    dims = sparse_dims(like)
    size = tuple(like.shape)
    values = zeros((0, *size[dims:]), dtype=dtype, device=like.device)
    coo = of_pattern(Pattern(np.zeros((dims, 0), np.int64), size[:dims]), values, size)
    if layout is dtypes.sparse_coo:
        return coo
    at = like._held[-2].dim()
    blocks = tuple(like._held[-1].shape[at : at + 2]) if like._layout in BLOCKS else (1, 1)
    return compress(coo, layout, blocks if layout in BLOCKS else None)


def like_filled(input: SparseTensor) -> Any:
    """NotImplementedError: a tensor without zeros is not sparse."""
    raise NotImplementedError(
        "Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend."
    )


def value_like(name: str, make: Callable[..., Tensor], doc: str) -> None:
    """Have a function answer that makes a tensor of as many elements, or a dense one."""

    def made_like(
        input: SparseTensor,
        *args: Any,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **more: Any,
    ) -> Tensor:
        options = dict(dtype=dtype or input.dtype, device=device or input.device)
        if layout is dtypes.strided:
            return make(tuple(input.shape), *args, **options, requires_grad=requires_grad)
        if is_coo(input):
            return like_filled(input)
        made = with_elements(input, make(tuple(input._held[-1].shape), *args, **options))
        return made.requires_grad_() if requires_grad else made

    made_like.__name__, made_like.__doc__ = name, doc
    handles(name)(made_like)


value_like("ones_like", creation.ones, "Ones at the places of a tensor in a compressed layout.")
value_like("full_like", creation.full, "One value at the places of a tensor in a compressed layout.")
value_like("rand_like", random.rand, "Random elements at the places of a tensor in a compressed layout.")
value_like("randn_like", randn, "Random elements at the places of a tensor in a compressed layout.")


@handles("new_zeros", "new_empty")
def new_zeros(self: SparseTensor, *size: Any, dtype: Any = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, **more: Any) -> Tensor:  # fmt: skip
    """A tensor of other sizes without elements, in the same layout."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    options: Any = dict(dtype=dtype or self.dtype, device=device or self.device)
    if layout is dtypes.strided:
        made = zeros(tuple(shape), **options)
    else:
        made = empty_of(layout or self._layout, tuple(map(int, shape)), options["dtype"], options["device"])
    return made.requires_grad_() if requires_grad else made


@handles("new_tensor")
def new_tensor(
    self: SparseTensor, data: Any, *, dtype: Any = None, device: Any = None, **more: Any
) -> Tensor:
    """A dense tensor of data, with this one's dtype and device."""
    return ingest.tensor(data, dtype=dtype or self.dtype, device=device or self.device, **more)
