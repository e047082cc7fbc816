"""Data pipes: datasets that are chained by methods, such as `pipe.shuffle().batch(4)`."""

from __future__ import annotations

from . import iter, map
from .pipe import (
    DataChunk,
    DFIterDataPipe,
    IterDataPipe,
    MapDataPipe,
    argument_validation,
    functional_datapipe,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)

__all__ = [
    "DFIterDataPipe",
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "argument_validation",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "iter",
    "map",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]
