"""`torch.utils.tensorboard`: SummaryWriter, over the tensorboard package."""

from __future__ import annotations

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
