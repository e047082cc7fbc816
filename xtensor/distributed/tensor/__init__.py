"""`torch.distributed.tensor`: tensors that lie on a mesh of devices."""

from . import experimental, parallel
from .dtensor import DTensor, distribute_tensor
from .factories import empty, full, ones, rand, randn, zeros
from .mapping import local_map
from .modules import distribute_module
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = [
    "DTensor",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "experimental",
    "full",
    "local_map",
    "ones",
    "parallel",
    "rand",
    "randn",
    "zeros",
]
