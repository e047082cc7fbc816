"""A linear layer whose weight is rounded in training, and whose input will be quantised as it comes."""

from __future__ import annotations

from typing import Any

from ...modules import linear as static

__all__ = ["Linear"]


class Linear(static.Linear):
    """A linear layer with a rounded weight; ValueError where results are observed before they are quantised."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        if not qconfig.activation().is_dynamic:
            raise ValueError("Dynamic QAT requires a memoryless observer.")
