"""Datasets, samplers and loaders, under PyTorch's names."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .collate import default_collate, default_convert
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from .workers import WorkerInfo, get_worker_info

if TYPE_CHECKING:
    from . import datapipes
    from .datapipes import (
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
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DFIterDataPipe",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "WorkerInfo",
    "argument_validation",
    "datapipes",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "random_split",
    "runtime_validation",
    "runtime_validation_disabled",
]

# Imported when first asked for.
_PIPES = frozenset(
    "DFIterDataPipe DataChunk IterDataPipe MapDataPipe argument_validation functional_datapipe "
    "guaranteed_datapipes_determinism non_deterministic runtime_validation runtime_validation_disabled".split()
)


def __getattr__(name: str) -> Any:
    if name == "datapipes":
        return import_module(f".{name}", __name__)
    if name in _PIPES:
        return getattr(__getattr__("datapipes"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
