"""Programs of JAX said by operators: each primitive is one operator on tensors, or a few."""

from . import elementwise, folding, inner, matrices, placing  # they fill the table
from .moving import as_tensor
from .table import evaluated, filled, held

__all__ = ["as_tensor", "evaluated", "filled", "held"]
