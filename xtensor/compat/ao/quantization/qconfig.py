"""`QConfig`: what observes, or rounds, a layer's results and its weight."""

from __future__ import annotations

from typing import Any, NamedTuple

from .... import dtypes
from .fake_quantize import default_fake_quant, default_per_channel_weight_fake_quant
from .observer import (
    MinMaxObserver,
    PlaceholderObserver,
    default_observer,
    default_per_channel_weight_observer,
    default_weight_observer,
)

__all__ = [
    "QConfig",
    "default_dynamic_qconfig",
    "default_per_channel_qconfig",
    "default_qconfig",
    "get_default_qat_qconfig",
    "get_default_qconfig",
]


class QConfig(NamedTuple):
    """Makers of the observer of a layer's results, and of that of its weight."""

    activation: Any
    weight: Any


default_qconfig = QConfig(default_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=dtypes.quint8, is_dynamic=True), default_weight_observer
)
BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


def checked(backend: str) -> bool:
    """Whether a back end keeps to 7 bits; AssertionError for one that there is not."""
    if backend not in BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {BACKENDS}")
    return backend in BACKENDS[:2]


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """What to quantise a trained model with.

    Differs from PyTorch: results are observed by their smallest and largest number, not by a histogram.
    """
    weight = default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    return QConfig(MinMaxObserver.with_args(reduce_range=checked(backend)), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """What to train a model with that is to be quantised."""
    checked(backend)
    return QConfig(default_fake_quant, default_per_channel_weight_fake_quant)
