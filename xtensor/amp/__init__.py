"""Mixed precision: `autocast` chooses each operator's dtype, `GradScaler` keeps short gradients from vanishing."""

from . import autocast_mode, grad_scaler
from .autocast_mode import *
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
