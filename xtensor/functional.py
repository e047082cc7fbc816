"""`torch.functional`: operators on several tensors, by the module that PyTorch keeps them in."""

from __future__ import annotations

from .ops.distances import cdist
from .ops.einsum import einsum, tensordot
from .ops.fourier_frames import istft, stft
from .ops.indices import broadcast_shapes, unravel_index
from .ops.joining import atleast_1d, atleast_2d, atleast_3d, block_diag, broadcast_tensors, cartesian_prod
from .ops.low_rank import pca_lowrank, svd_lowrank
from .ops.lu_factors import lu
from .ops.matmul import chain_matmul
from .ops.norms import norm
from .ops.ranges import meshgrid
from .ops.shapes import split
from .ops.statistics import unique, unique_consecutive

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "einsum",
    "istft",
    "lu",
    "meshgrid",
    "norm",
    "pca_lowrank",
    "split",
    "stft",
    "svd_lowrank",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
]
