"""Tensors to and from PyTorch, which need not be installed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import devices, dtypes
from ..ops.export import from_dlpack
from ..ops.ingest import from_numpy
from ..tensor import Tensor, array_of

__all__ = ["from_torch", "to_torch"]


def from_torch(tensor: Any, device: devices.DeviceLike = None) -> Tensor:
    """A tensor with a copy of the values of a `torch.Tensor`, without its graph; a leaf that wants a gradient too."""
    source = tensor.detach()
    if source.is_conj() or source.is_neg():
        source = source.resolve_conj().resolve_neg()
    if str(source.dtype) == "torch.bool" and source.device.type == "cpu":
        made = from_numpy(source.numpy())
    else:
        made = from_dlpack(source.contiguous(), copy=True)
    made = made if device is None else made.to(devices.resolve(device))
    return made.requires_grad_() if tensor.requires_grad else made


def to_torch(tensor: Tensor) -> Any:
    """A CPU `torch.Tensor` with a copy of the values, without the graph; it wants a gradient if `tensor` does."""
    import torch

    values = np.array(array_of(tensor.detach().cpu()))
    kind = getattr(torch, tensor.dtype.name)
    if tensor.dtype is dtypes.bfloat16:
        made = torch.from_numpy(values.view(np.int16)).view(kind)
    elif tensor.dtype in dtypes.FLOAT8:
        made = torch.from_numpy(values.view(np.uint8)).view(kind)
    else:
        made = torch.from_numpy(values)
    return (
        made.requires_grad_(tensor.requires_grad) if made.is_floating_point() or made.is_complex() else made
    )
