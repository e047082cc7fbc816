"""xtensor: an eager tensor library with PyTorch's semantics whose kernels run on XLA."""

from __future__ import annotations

from .ops.arithmetic import *
from .ops.bounds import *
from .ops.comparison import *
from .ops.elementwise import *
from .ops.extrema import *
from .ops.joining import *
from .ops.matmul import *
from .ops.powers import *
from .ops.precision import *
from .ops.reductions import *
from .ops.shapes import *
from .ops.view_scatter import *
from . import gradients
from .tensor import Size, Tensor

__all__ = ["Size", "Tensor"]
