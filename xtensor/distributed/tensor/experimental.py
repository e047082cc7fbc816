"""`torch.distributed.tensor.experimental`: what PyTorch keeps there."""

from .mapping import implicit_replication, local_map
from .ring import context_parallel, ring_attention

__all__ = ["context_parallel", "implicit_replication", "local_map", "ring_attention"]
