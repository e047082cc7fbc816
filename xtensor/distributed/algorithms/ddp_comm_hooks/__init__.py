"""`torch.distributed.algorithms.ddp_comm_hooks`: how buckets of gradients are reduced."""

from . import debugging_hooks, default_hooks, powerSGD_hook

__all__ = ["debugging_hooks", "default_hooks", "powerSGD_hook"]
