"""Layers whose weights are rounded in training."""

from .conv import *
from .embedding_ops import *
from .linear import *
