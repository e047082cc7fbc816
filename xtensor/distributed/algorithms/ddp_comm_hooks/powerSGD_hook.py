"""PowerSGD: gradients of matrices are sent as products of two thin ones (Vogels, Karimireddy and Jaggi 2019, arXiv:1905.13727)."""

from __future__ import annotations

import math
from typing import Any

from ....linalg import qr
from ....nn.functional import pad
from ....operators.generator import Generator
from ....ops.create.creation import zeros_like
from ....ops.create.random import randn
from ....tensor import Tensor
from ... import collectives
from ...data_parallel.buckets import GradBucket, flat, spread
from ...group import chosen

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]


class PowerSGDState:
    """What the hook keeps between steps: the thin matrices, and what they did not tell.

    matrix_approximation_rank: the width of the thin matrices. start_powerSGD_iter: the steps before that are reduced as without the hook.
    min_compression_rate: matrices that would not shrink by this factor are sent whole. use_error_feedback: what was not told is added to the
    next gradient. warm_start: power iterations begin from those of the step before.

    Differs from PyTorch: the same options; random numbers are xtensor's, and matrices of one shape are not batched.
    """

    def __init__(
        self,
        process_group: Any = None,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1_000,
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can only be "
                "applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback = use_error_feedback
        self.warm_start = warm_start
        self.random_seed = random_seed
        self.iter = 0
        self.error_dict: dict[int, Tensor] = {}
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.total_numel_before_compression = self.total_numel_after_compression = 0

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer elements were sent than there are, and both numbers."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after


def mean(tensor: Tensor, group: Any) -> Tensor:
    """The mean over the processes."""
    tensor = tensor / group.size()
    collectives.all_reduce(tensor, group=group)
    return tensor


def matrix_of(state: PowerSGDState, gradient: Tensor) -> Tensor | None:
    """A gradient as a matrix, if thin matrices are worth their sending."""
    if gradient.dim() < 2:
        return None
    matrix = gradient.reshape(gradient.shape[0], -1)
    sent = sum(matrix.shape) * min(state.matrix_approximation_rank, *matrix.shape)
    return matrix if sent * state.min_compression_rate < matrix.numel() else None


def approximated(state: PowerSGDState, index: int, matrices: list[Tensor], group: Any) -> list[Tensor]:
    """The mean of matrices as products of thin ones: a power iteration, from where that of the step before ended."""
    right = state.q_memory_dict.get(index) if state.warm_start else None
    if right is None:
        seeded = Generator().manual_seed(state.random_seed + state.iter)
        widths = [min(state.matrix_approximation_rank, *m.shape) for m in matrices]
        right = [
            randn(m.shape[1], w, generator=seeded).to(m.device, m.dtype)
            for m, w in zip(matrices, widths, strict=True)
        ]
    right = [qr(q)[0] for q in right]
    left = together([m @ q for m, q in zip(matrices, right, strict=True)], group)
    left = [qr(p)[0] for p in left]
    right = together([m.t() @ p for m, p in zip(matrices, left, strict=True)], group)
    state.q_memory_dict[index] = right
    state.total_numel_after_compression += sum(t.numel() for t in (*left, *right))
    return [p @ q.t() for p, q in zip(left, right, strict=True)]


def together(tensors: list[Tensor], group: Any) -> list[Tensor]:
    """The means of several tensors, in one message."""
    return spread(mean(flat(tensors), group), tensors) if tensors else []


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Tensor:
    """The mean of a bucket, its matrices as products of thin ones: for `DistributedDataParallel.register_comm_hook`.

    Source: Vogels, Karimireddy and Jaggi 2019, arXiv:1905.13727.
    """
    return compressed(state, bucket, bucket.gradients())


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Tensor:
    """`powerSGD_hook` of the whole bucket as one square matrix: less to send, and less exact."""
    own = bucket.buffer()
    side = math.isqrt(own.numel() - 1) + 1
    square = pad(own, (0, side * side - own.numel())).reshape(side, side)
    return compressed(state, bucket, [square])[: own.numel()]


def compressed(state: PowerSGDState, bucket: GradBucket, gradients: list[Tensor]) -> Tensor:
    """The means of gradients, one after the other."""
    group, index = chosen(state.process_group), bucket.index()
    begun = state.iter >= state.start_powerSGD_iter
    if bucket.is_last():
        state.iter += 1
    if not begun:
        return mean(flat(gradients), group)
    known = state.error_dict.get(index)
    if known is not None:
        gradients = [g + e for g, e in zip(gradients, spread(known, gradients), strict=True)]
    matrices = {i: m for i, g in enumerate(gradients) if (m := matrix_of(state, g)) is not None}
    rest = [g for i, g in enumerate(gradients) if i not in matrices]
    state.total_numel_before_compression += sum(g.numel() for g in gradients)
    state.total_numel_after_compression += sum(g.numel() for g in rest)
    whole = iter(together(rest, group))
    near = iter(approximated(state, index, list(matrices.values()), group))
    made = [(next(near) if i in matrices else next(whole)).reshape(g.shape) for i, g in enumerate(gradients)]
    if state.use_error_feedback:
        state.error_dict[index] = flat(
            [
                g - m if i in matrices else zeros_like(g)
                for i, (g, m) in enumerate(zip(gradients, made, strict=True))
            ]
        )
    return flat(made)
