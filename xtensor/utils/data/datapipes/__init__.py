"""Data pipes: datasets that are chained by methods, such as `pipe.shuffle().batch(4)`."""

from . import iter, map, pipe
from .pipe import *

__all__ = ["iter", "map"]
__all__ += pipe.__all__
