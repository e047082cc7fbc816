"""`torch.utils.tensorboard`: SummaryWriter, over the tensorboard package."""

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
