"""Learning rates that change from epoch to epoch (or step to step): call `step()` after the optimizer's."""

from __future__ import annotations

from ..optimizer import Optimizer as Optimizer
from .combined import ChainedScheduler, SequentialLR
from .cycles import CyclicLR, OneCycleLR
from .formulas import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .plateau import ReduceLROnPlateau
from .scheduler import LRScheduler

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

# The class's name before PyTorch 2.0, which many programs derive from.
_LRScheduler = LRScheduler
