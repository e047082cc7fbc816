"""`torch.nn.parallel`: one device at a time, so a parallel module passes everything through."""

from .data_parallel import DataParallel, DistributedDataParallel, data_parallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]
