"""`torch.distributed.optim`: optimizers of several processes."""

from .zero import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
