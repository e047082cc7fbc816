"""Sequences of different lengths, under PyTorch's name for the module."""

from __future__ import annotations

from ..packed_sequence import *  # noqa: F403
from ..packed_sequence import __all__  # noqa: F401
