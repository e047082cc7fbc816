"""Layers whose weights are rounded in training."""

from .conv import *
from .embedding_ops import *
from .linear import *

__all__ = ["Conv1d", "Conv2d", "Conv3d", "Embedding", "EmbeddingBag", "Linear"]
