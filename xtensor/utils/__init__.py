"""What PyTorch keeps under `torch.utils`."""

from __future__ import annotations

from . import dlpack

__all__ = ["dlpack"]
