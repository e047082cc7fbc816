"""xtensor: an eager tensor library with PyTorch's semantics whose kernels run on XLA."""

from __future__ import annotations

from .ops.arithmetic import *
from .ops.shapes import *
from . import gradients
from .tensor import Size, Tensor

__all__ = ["Size", "Tensor"]
