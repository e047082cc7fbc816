"""`torch.distributed.checkpoint`: states in parts, each process its own, to be read on any mesh."""

from . import state_dict
from .saving import async_save, load, save
from .stateful import FileSystemReader, FileSystemWriter, Stateful

__all__ = ["FileSystemReader", "FileSystemWriter", "Stateful", "async_save", "load", "save", "state_dict"]
