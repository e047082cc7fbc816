"""Instance normalisation (Ulyanov et al., 2016)."""

from __future__ import annotations

from typing import Any

from ... import checks
from ...tensor import Tensor
from .. import functional as F
from .batchnorm import _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """Normalisation of every channel of every sample by itself; scale, shift and running statistics on request."""

    unbatched: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _get_no_batch_dim(self) -> int:
        return self.unbatched

    def _check_input_dim(self, input: Tensor) -> None:
        least = self._get_no_batch_dim()
        if input.dim() not in (least, least + 1):
            raise ValueError(f"expected {least}D or {least + 1}D input (got {input.dim()}D input)")

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
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
        # States without a version were saved when running statistics were tracked by default.
        if local_metadata.get("version") is None and not self.track_running_stats:
            keys = [prefix + n for n in ("running_mean", "running_var") if prefix + n in state_dict]
            if keys:
                names, kind = " and ".join(f'"{key}"' for key in keys), type(self).__name__
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {kind} with track_running_stats=False. If "
                    "state_dict is a checkpoint saved before 0.4.0, this may be expected because "
                    f"{kind} does not track running stats by default since 0.4.0. Please remove these keys from "
                    "state_dict. If the running stats are actually needed, instead set track_running_stats=True in "
                    f"{kind} to enable them. See the documentation of {kind} for details."
                )
                for key in keys:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        channels = input.dim() - self.unbatched
        if input.size(channels) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={channels} to match num_features ({self.num_features}), but got: "
                    f"{input.size(channels)}."
                )
            checks.warn(
                f"input's size at dim={channels} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
            )
        if input.dim() == self.unbatched:
            return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)
        return self._apply_instance_norm(input)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L) (Ulyanov et al., 2016).

    Shape: input `(N, C, L)` or `(C, L)`, output as the input.

    Raises: ValueError for an input of other dimensions.

    Source: Ulyanov, Vedaldi and Lempitsky 2016, arXiv:1607.08022.

    >>> nn.InstanceNorm1d(1)(xtensor.tensor([[[1.0, 3.0]]]))
    tensor([[[-1.0000,  1.0000]]])
    """

    unbatched = 2


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W) (Ulyanov et al., 2016).

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output as the input.

    Raises: ValueError for an input of other than 3 or 4 dimensions.

    Source: Ulyanov, Vedaldi and Lempitsky 2016, arXiv:1607.08022.

    >>> nn.InstanceNorm2d(3)(xtensor.ones(2, 3, 4, 4)).shape
    xtensor.Size([2, 3, 4, 4])
    """

    unbatched = 3


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W) (Ulyanov et al., 2016).

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output as the input.

    Raises: ValueError for an input of other dimensions.

    Source: Ulyanov, Vedaldi and Lempitsky 2016, arXiv:1607.08022.

    >>> nn.InstanceNorm3d(3)(xtensor.ones(2, 3, 4, 4, 4)).shape
    xtensor.Size([2, 3, 4, 4, 4])
    """

    unbatched = 4
