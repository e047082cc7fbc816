"""Tensors of dtypes that only store as text: complex32 by its numbers, others by their bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes, printing
from ..ops.tensor.display import grad_fn_name
from ..sparse.layout import host
from .layout import StoredTensor, handles, held, is_complex32, widened

__all__: list[str] = []


@handles("__repr__", "__str__")
def represent(self: StoredTensor, *, tensor_contents: str | None = None) -> str:
    """The tensor as text.

    Differs from PyTorch: the bytes of types without numbers are shown, where it raises.
    """
    shape, device = tuple(self.shape), self.device
    place = None if str(device) == "cpu" else device
    edge = grad_fn_name(self)
    ends = printing.suffixes(self.dtype, shape, place, self.requires_grad, edge, meta=self.is_meta)
    if self.is_meta:
        return printing.format_tensor(None, suffixes=ends, shape=shape)
    values: Any = host(widened(self.detach()) if is_complex32(self) else held(self))
    if self.dtype is dtypes.float4_e2m1fn_x2:
        values = values.astype(np.float32)
    indices = printing.summary_indices(shape)
    shown = values if indices is None else values[np.ix_(*indices)]
    return printing.format_tensor(shown, suffixes=ends, shape=shape)


StoredTensor.__repr__ = represent
