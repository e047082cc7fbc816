"""`torch.distributed.tensor.experimental`: what PyTorch keeps there."""

from .mapping import implicit_replication, local_map

__all__ = ["implicit_replication", "local_map"]
