"""Example modules and arguments, guessed for a class of which nothing but the class is given.

What a module's constructor and `forward` want is tried out: small numbers by the names of its parameters, then small
tensors of the usual shapes until one is taken. A class that knows better has a class method `_example()`.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

from ..dtypes import float32, int64
from ..engine import modes
from ..ops.create.creation import zeros
from ..tensor import Tensor

__all__ = ["example_of"]

CHANNELS = 4
# Constructor parameters without a default, by what their names have come to mean.
NUMBERS = {
    "d_model": CHANNELS,
    "dim_feedforward": CHANNELS,
    "embed_dim": CHANNELS,
    "embedding_dim": CHANNELS,
    "hidden_size": CHANNELS,
    "in1_features": CHANNELS,
    "in2_features": CHANNELS,
    "in_channels": CHANNELS,
    "in_features": CHANNELS,
    "input_size": CHANNELS,
    "kernel_size": 3,
    "lambd": 0.5,
    "nhead": 2,
    "norm_type": 2.0,
    "normalized_shape": CHANNELS,
    "num_channels": CHANNELS,
    "num_embeddings": 8,
    "num_features": CHANNELS,
    "num_groups": 2,
    "num_heads": 2,
    "num_layers": 1,
    "out_channels": CHANNELS,
    "out_features": CHANNELS,
    "output_size": 2,
    "padding": 1,
    "size": 2,
    "threshold": 0.5,
    "upscale_factor": 2,
    "value": 0.0,
}
SHAPES = (
    (2, CHANNELS, 6, 6),
    (2, CHANNELS, 6),
    (2, CHANNELS, 4, 4, 4),
    (2, CHANNELS),
    (2, 6, CHANNELS),
    (CHANNELS,),
)
REFUSALS = (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError, AttributeError)


def example_of(cls: type) -> tuple[Any, tuple[Any, ...]] | None:
    """A module of this class and arguments that its `forward` takes, or None where no guess is right."""
    known: Any = getattr(cls, "_example", None)
    if callable(known):
        found: Any = known()
        return found[0], tuple(found[1])
    with modes.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = cls(**numbers_for(cls))
        except (LookupError, *REFUSALS):
            return None
        for arguments in guesses(module):
            try:
                module(*arguments)
            except REFUSALS:
                continue
            return module, arguments
    return None


def numbers_for(cls: type) -> dict[str, Any]:
    """What the constructor must be given; LookupError for a parameter of an unknown name."""
    kinds = inspect.Parameter
    required = [
        p.name
        for p in inspect.signature(cls).parameters.values()
        if p.default is kinds.empty and p.kind in (kinds.POSITIONAL_OR_KEYWORD, kinds.KEYWORD_ONLY)
    ]
    return {name: NUMBERS[name] for name in required}


def guesses(module: Any) -> Iterator[tuple[Tensor, ...]]:
    """Arguments to try: as many tensors as `forward` has parameters without a default."""
    forward = inspect.signature(type(module).forward)
    count = (
        sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in forward.parameters.values())
        - 1
    )
    for shape in SHAPES:
        yield tuple(zeros(shape, dtype=float32) for _ in range(count))
    for shape in SHAPES[3:]:
        yield (*(zeros(shape, dtype=float32) for _ in range(count - 1)), zeros(shape[:1], dtype=int64))
