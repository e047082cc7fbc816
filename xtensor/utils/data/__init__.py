"""Datasets, samplers and loaders, under PyTorch's names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import dataset, sampler
from .collate import default_collate, default_convert
from .dataloader import DataLoader
from .dataset import *
from .distributed import DistributedSampler
from .sampler import *
from .workers import WorkerInfo, get_worker_info

if TYPE_CHECKING:
    from . import datapipes
    from .datapipes.pipe import *

__all__ = [
    "DataLoader",
    "DistributedSampler",
    "WorkerInfo",
    "default_collate",
    "default_convert",
    "get_worker_info",
]
__all__ += dataset.__all__
__all__ += sampler.__all__
__all__ += [
    "DFIterDataPipe",
    "DataChunk",
    "IterDataPipe",
    "MapDataPipe",
    "argument_validation",
    "datapipes",
    "functional_datapipe",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "runtime_validation",
    "runtime_validation_disabled",
]


def __getattr__(name: str) -> Any:
    # Data pipes, all that is listed and not imported above, are imported when first asked for.
    if name == "datapipes":
        return import_module(f".{name}", __name__)
    if name in __all__:
        return getattr(__getattr__("datapipes"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
