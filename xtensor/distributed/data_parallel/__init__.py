"""Data parallel training in several processes."""

from .buckets import GradBucket
from .module import DistributedDataParallel

__all__ = ["DistributedDataParallel", "GradBucket"]
