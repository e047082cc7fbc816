"""Learning rates that change from epoch to epoch (or step to step): call `step()` after the optimizer's."""

from ..optimizer import Optimizer as Optimizer
from . import combined, cycles, formulas
from .combined import *
from .cycles import *
from .formulas import *
from .plateau import ReduceLROnPlateau
from .scheduler import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .scheduler import LRScheduler

__all__ = ["LRScheduler", "ReduceLROnPlateau"]
__all__ += combined.__all__
__all__ += cycles.__all__
__all__ += formulas.__all__

# The class's name before PyTorch 2.0, which many programs derive from.
_LRScheduler = LRScheduler
