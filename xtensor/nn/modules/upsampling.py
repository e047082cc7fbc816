"""Images and signals at another resolution."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .module import Module

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """(N, C, *) resampled to a size, or by a factor; modes as `interpolate`'s.

    Shape: input `(N, C, *)`, output `(N, C, *size)`, or with every size times `scale_factor`, rounded down.

    Raises: ValueError where neither `size` nor `scale_factor` is given.

    >>> nn.Upsample(scale_factor=2)(xtensor.tensor([[[1.0, 2.0]]]))
    tensor([[[1., 1., 2., 2.]]])
    >>> nn.Upsample(size=(8, 8), mode="bilinear")(xtensor.zeros(1, 3, 4, 4)).shape
    xtensor.Size([1, 3, 8, 8])
    """

    __constants__ = ["size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor"]

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def __setstate__(self, state: dict[str, Any]) -> None:
        state.setdefault("recompute_scale_factor", True)
        super().__setstate__(state)

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images (N, C, H, W) with every pixel repeated.

    Shape: input `(N, C, H, W)`, output `(N, C, *size)`, or with every size times `scale_factor`, rounded
    down.

    Raises: NotImplementedError for an input of other dimensions.

    >>> nn.UpsamplingNearest2d(scale_factor=2)(xtensor.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images (N, C, H, W) interpolated linearly, corners on corners.

    Shape: input `(N, C, H, W)`, output `(N, C, *size)`, or with every size times `scale_factor`, rounded
    down.

    Raises: NotImplementedError for an input of other dimensions.

    >>> nn.UpsamplingBilinear2d(size=(1, 3))(xtensor.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
