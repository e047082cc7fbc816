"""Sequences of different lengths, under PyTorch's name for the module."""

from ..packed_sequence import *  # noqa: F403
from ..packed_sequence import __all__  # noqa: F401
