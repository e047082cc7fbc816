"""`torch.functional`: operators on several tensors, by the module that PyTorch keeps them in."""

from ..ops.create.ranges import meshgrid
from ..ops.index.indices import broadcast_shapes, unravel_index
from ..ops.linalg.einsum import einsum, tensordot
from ..ops.linalg.low_rank import pca_lowrank, svd_lowrank
from ..ops.linalg.lu_factors import lu
from ..ops.linalg.matmul import chain_matmul
from ..ops.reduce.distances import cdist
from ..ops.reduce.norms import norm
from ..ops.reduce.statistics import unique, unique_consecutive
from ..ops.shape.joining import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    broadcast_tensors,
    cartesian_prod,
)
from ..ops.shape.shapes import split
from ..ops.signal.fourier_frames import istft, stft

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
