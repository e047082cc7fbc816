"""`torch.distributions.utils`: what programs that define distributions of their own take from it."""

from __future__ import annotations

from .. import dtypes
from ..nn.functional import pad
from ..tensor import Tensor
from .distribution import broadcast_all, lazy_property

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by a rounding error."""
    eps = dtypes.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log-odds, or from log-probabilities up to a constant."""
    return logits.sigmoid() if is_binary else logits.softmax(dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds of probabilities, or their logarithms."""
    kept = clamp_probs(probs)
    return kept.log() - (-kept).log1p() if is_binary else kept.log()


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles of matrices, row by row."""
    size = mat.shape[-1]
    if not isinstance(diag, int) or not -size <= diag < size:
        raise ValueError(f"diag ({diag}) provided is outside valid range [{-size}, {size - 1}].")
    places = [(i, j) for i in range(size) for j in range(min(size, i + diag + 1))]
    flat = mat.reshape(*mat.shape[:-2], size * size)
    return flat[..., [i * size + j for i, j in places]]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Vectors as the lower triangles of matrices, row by row, zeros elsewhere."""
    count = vec.shape[-1]
    size = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if not round(size) - size == 0:
        raise ValueError(f"The size of last dimension is {count} which cannot be expressed as a triangle")
    size = round(size)
    places = {
        (i, j): k
        for k, (i, j) in enumerate((i, j) for i in range(size) for j in range(min(size, i + diag + 1)))
    }
    wider = pad(vec, [0, 1])
    index = [places.get((i, j), count) for i in range(size) for j in range(size)]
    return wider[..., index].reshape(*vec.shape[:-1], size, size)
