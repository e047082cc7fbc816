"""What PyTorch keeps under `torch.utils`."""

from __future__ import annotations

from . import data, dlpack

__all__ = ["data", "dlpack"]
