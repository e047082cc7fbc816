"""`torch.distributed.algorithms.ddp_comm_hooks`: how buckets of gradients are reduced."""

from . import default_hooks

__all__ = ["default_hooks"]
