"""Optimizers, under PyTorch's names. A step is one compiled call over all parameters."""

from __future__ import annotations

from . import lr_scheduler
from .adam import Adam
from .adamw import AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "lr_scheduler"]
