"""Quantised tensors as PyTorch prints them: their numbers, and how they are quantised."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import printing
from ..sparse.layout import host
from .layout import QuantizedTensor, dequantized, handles

__all__: list[str] = []


@handles("__repr__", "__str__")
def represent(self: QuantizedTensor, *, tensor_contents: str | None = None) -> str:
    """The tensor as text."""
    quantizer, shape = self._quantizer, tuple(self.shape)
    ends = [] if str(self.device) == "cpu" else [f"device='{self.device}'"]
    ends += [f"size={shape}", f"dtype={self.dtype}", f"quantization_scheme={quantizer.scheme}"]
    ends += [f"scale={quantizer.scale}", f"zero_point={quantizer.zero_point}"]
    if quantizer.axis is not None:
        ends.append(f"axis={quantizer.axis}")
    values: Any = host(dequantized(self))
    indices = printing.summary_indices(shape)
    shown = values if indices is None else values[np.ix_(*indices)]
    return printing.format_tensor(shown, suffixes=ends, shape=shape)


QuantizedTensor.__repr__ = represent
