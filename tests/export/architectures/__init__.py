"""Whole models as public code writes them, small and with random weights: what is exported both ways by `python -m tests.export.models`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import xtensor as torch

MODELS: dict[str, Callable[[], Model]] = {}


class Model(NamedTuple):
    """A model to be exported: a module, its arguments, arguments of other sizes, and which sizes are open."""

    module: Any
    args: tuple[Any, ...]
    others: tuple[Any, ...]
    sizes: Any


def model(function: Callable[[], Model]) -> Callable[[], Model]:
    """A decorator that lists a model under its function's name."""
    MODELS[function.__name__] = function
    return function


def batch() -> Any:
    """An open batch size."""
    return torch.export.Dim("batch", min=2, max=4096)


def length(most: int = 4096) -> Any:
    """An open length of sequences."""
    return torch.export.Dim("length", min=2, max=most)


def images(module: Any, channels: int = 3, size: int = 32) -> Model:
    """A model of images, in batches of any size."""
    return Model(
        module,
        (torch.randn(2, channels, size, size),),
        (torch.randn(3, channels, size, size),),
        ({0: batch()},),
    )


from . import generators, sequences, vision  # noqa: E402
