"""Batch normalisation (Ioffe and Szegedy, 2015)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...engine import no_grad
from ...ops.create.creation import ones, zeros
from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import register_empty
from .module import Module

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class _NormBase(Module):
    """What normalisations over a batch share: scale and shift, and running statistics."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        scale, shift = num_features if affine else None, num_features if affine and bias else None
        register_empty(self, device, dtype, weight=scale, bias=shift)
        if track_running_stats:
            self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype))
            self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype))
            self.register_buffer("num_batches_tracked", zeros((), device=device, dtype=dtypes.int64))
        else:
            self.register_buffer("running_mean", None)
            self.register_buffer("running_var", None)
            self.register_buffer("num_batches_tracked", None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            assert self.running_mean is not None and self.running_var is not None
            self.running_mean.zero_()
            self.running_var.fill_(1)
            if self.num_batches_tracked is not None:
                self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Scale 1, shift 0, and the running statistics anew."""
        self.reset_running_stats()
        if self.affine:
            assert self.weight is not None
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def _check_input_dim(self, input: Tensor) -> None:
        raise NotImplementedError

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats:
            # States of version 1 did not count batches.
            key = prefix + "num_batches_tracked"
            if key not in state_dict:
                own = self.num_batches_tracked
                known = own is not None and not own.is_meta
                state_dict[key] = own if known else zeros((), dtype=dtypes.int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """Normalisation by the mean and variance of the batch; in evaluation, by the running ones."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor: Any = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None and self.running_mean is not None:
                # A tensor: a program for each number of batches would be compiled otherwise.
                factor = 1.0 / self.num_batches_tracked.to(self.running_mean)
        from_batch = self.training or (self.running_mean is None and self.running_var is None)
        tracked = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if tracked else None,
            self.running_var if tracked else None,
            self.weight,
            self.bias,
            from_batch,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of (N, C) or (N, C, L) (Ioffe and Szegedy, 2015).

    Shape: input `(N, C)` or `(N, C, L)`, output as the input; C is `num_features`.

    Raises: ValueError for an input of other than 2 or 3 dimensions, and in training for one value a channel.

    Source: Ioffe and Szegedy 2015, arXiv:1502.03167.

    >>> nn.BatchNorm1d(2, affine=False)(xtensor.tensor([[1.0, 10.0], [3.0, 30.0]]))
    tensor([[-1.0000, -1.0000],
            [ 1.0000,  1.0000]])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of (N, C, H, W) (Ioffe and Szegedy, 2015).

    Shape: input `(N, C, H, W)`, output as the input; C is `num_features`.

    Raises: ValueError for an input of other than 4 dimensions; RuntimeError for another number of channels.

    Source: Ioffe and Szegedy 2015, arXiv:1502.03167.

    >>> norm = nn.BatchNorm2d(3)
    >>> norm(xtensor.ones(2, 3, 4, 4)).shape
    xtensor.Size([2, 3, 4, 4])
    >>> norm.running_mean
    tensor([0.1000, 0.1000, 0.1000])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of (N, C, D, H, W) (Ioffe and Szegedy, 2015).

    Shape: input `(N, C, D, H, W)`, output as the input; C is `num_features`.

    Raises: ValueError for an input of other dimensions.

    Source: Ioffe and Szegedy 2015, arXiv:1502.03167.

    >>> nn.BatchNorm3d(3)(xtensor.ones(2, 3, 4, 4, 4)).shape
    xtensor.Size([2, 3, 4, 4, 4])
    """

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


normalised_by_all: list[Callable[[Any, Tensor], Tensor | None]] = []
"""Set by `xtensor.distributed`: the input normalised by the batches of all processes; None where there is only one."""


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of any number of dimensions from two.

    In training, the mean and the variance are those of the batches of all processes of `process_group`, if
    `xtensor.distributed.init_process_group` was called; of a tensor that lies on a mesh they are those of the whole batch anyway.

    Shape: input `(N, C, *)`, output as the input; C is `num_features`.

    Raises: ValueError for an input of one dimension.

    Source: Ioffe and Szegedy 2015, arXiv:1502.03167.

    >>> model = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3)))
    >>> model
    Sequential(
      (0): SyncBatchNorm(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    )
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def forward(self, input: Tensor) -> Tensor:
        """The input normalised, in training by the batches of all processes."""
        for normalise in normalised_by_all:
            if self.training and (made := normalise(self, input)) is not None:
                return made
        return super().forward(input)

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """`module` with every batch normalisation in it replaced by a SyncBatchNorm of the same parameters."""
        made: Any = module
        if isinstance(module, _BatchNorm):
            made = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                with no_grad():
                    made.weight, made.bias = module.weight, module.bias
            made.running_mean, made.running_var = module.running_mean, module.running_var
            made.num_batches_tracked = module.num_batches_tracked
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made
