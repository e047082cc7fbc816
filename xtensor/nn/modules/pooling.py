"""Pooling."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .module import Module
from .utils import _pair, _single, _triple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    """The largest value of each window; the stride is the window's size unless given."""

    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]
    _pool: str

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._pool)(
            input,
            kernel_size=self.kernel_size,
            stride=self.stride,
            padding=self.padding,
            dilation=self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    """The largest value of each window of sequences.

    Shape: input `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)` with
    `L_out = (L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`; rounded up with `ceil_mode`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.MaxPool1d(2)(xtensor.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[5., 3.]])
    """

    _pool = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    """The largest value of each window of images.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, H_out, W_out)` or `(C, H_out, W_out)` with
    `H_out = (H + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`, and so for W; rounded up
    with `ceil_mode`.

    Raises: RuntimeError for an input of other than 3 or 4 dimensions.

    >>> nn.MaxPool2d(3, stride=2, padding=1)(xtensor.zeros(1, 8, 32, 32)).shape
    xtensor.Size([1, 8, 16, 16])
    >>> nn.MaxPool2d(2)(xtensor.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    """

    _pool = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    """The largest value of each window of volumes.

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, D_out, H_out, W_out)` or
    `(C, D_out, H_out, W_out)` with
    `D_out = (D + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`, and so for H and W; rounded
    up with `ceil_mode`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.MaxPool3d(2)(xtensor.zeros(1, 2, 4, 6, 8)).shape
    xtensor.Size([1, 2, 2, 3, 4])
    """

    _pool = "max_pool3d"


class _WindowsNd(Module):
    """Windows of a size; the stride is that size unless given."""

    parse: Any = staticmethod(lambda sizes: sizes)

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        parse = type(self).parse
        self.kernel_size = parse(kernel_size)
        self.stride = parse(stride if stride is not None else kernel_size)
        self.padding = parse(padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxUnpoolNd(_WindowsNd):
    """The values of a max pooling back where they came from, zeros elsewhere."""

    _unpool: str

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return getattr(F, self._unpool)(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool1d(_MaxUnpoolNd):
    """The inverse of MaxPool1d, as far as there is one.

    Shape: input and indices `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)` with
    `L_out = (L - 1) * stride - 2 * padding + kernel_size`, or the `output_size` given in the call.

    Raises: RuntimeError where sizes do not fit.

    >>> values, indices = nn.MaxPool1d(2, return_indices=True)(xtensor.tensor([[1.0, 5.0, 2.0, 3.0]]))
    >>> nn.MaxUnpool1d(2)(values, indices)
    tensor([[0., 5., 0., 3.]])
    """

    parse = staticmethod(_single)
    _unpool = "max_unpool1d"


class MaxUnpool2d(_MaxUnpoolNd):
    """The inverse of MaxPool2d, as far as there is one.

    Shape: input and indices `(N, C, H, W)` or `(C, H, W)`, output `(N, C, H_out, W_out)` or
    `(C, H_out, W_out)` with `H_out = (H - 1) * stride - 2 * padding + kernel_size`, and so for W, or the
    `output_size` given in the call.

    Raises: RuntimeError where sizes do not fit.

    >>> values, indices = nn.MaxPool2d(2, return_indices=True)(xtensor.arange(16.0).reshape(1, 4, 4))
    >>> nn.MaxUnpool2d(2)(values, indices)
    tensor([[[ 0.,  0.,  0.,  0.],
             [ 0.,  5.,  0.,  7.],
             [ 0.,  0.,  0.,  0.],
             [ 0., 13.,  0., 15.]]])
    """

    parse = staticmethod(_pair)
    _unpool = "max_unpool2d"


class MaxUnpool3d(_MaxUnpoolNd):
    """The inverse of MaxPool3d, as far as there is one.

    Shape: input and indices `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, D_out, H_out, W_out)` or
    `(C, D_out, H_out, W_out)` with `D_out = (D - 1) * stride - 2 * padding + kernel_size`, and so for H and
    W, or the `output_size` given in the call.

    Raises: RuntimeError where sizes do not fit.

    >>> values, indices = nn.MaxPool3d(2, return_indices=True)(xtensor.zeros(1, 2, 4, 6, 8))
    >>> nn.MaxUnpool3d(2)(values, indices).shape
    xtensor.Size([1, 2, 4, 6, 8])
    """

    parse = staticmethod(_triple)
    _unpool = "max_unpool3d"


class _AvgPoolNd(_WindowsNd):
    """The mean of each window."""

    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of sequences.

    Shape: input `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)` with
    `L_out = (L + 2 * padding - kernel_size) // stride + 1`; rounded up with `ceil_mode`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.AvgPool1d(2)(xtensor.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[3.0000, 2.5000]])
    """

    parse = staticmethod(_single)

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class _DividedAvgPoolNd(_AvgPoolNd):
    """The mean of each window, or its sum over `divisor_override`."""

    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]
    _pool: str

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._pool)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_DividedAvgPoolNd):
    """The mean of each window of images.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, H_out, W_out)` or `(C, H_out, W_out)` with
    `H_out = (H + 2 * padding - kernel_size) // stride + 1`, and so for W; rounded up with `ceil_mode`.

    Raises: RuntimeError for an input of other than 3 or 4 dimensions.

    >>> nn.AvgPool2d(2)(xtensor.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    _pool = "avg_pool2d"


class AvgPool3d(_DividedAvgPoolNd):
    """The mean of each window of volumes.

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, D_out, H_out, W_out)` or
    `(C, D_out, H_out, W_out)` with `D_out = (D + 2 * padding - kernel_size) // stride + 1`, and so for H and
    W; rounded up with `ceil_mode`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.AvgPool3d(2)(xtensor.zeros(1, 2, 4, 6, 8)).shape
    xtensor.Size([1, 2, 2, 3, 4])
    """

    _pool = "avg_pool3d"


class _LPPoolNd(Module):
    """The p-norm of each window."""

    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]
    _pool: str

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        norm_type = float(self.norm_type)
        return getattr(F, self._pool)(input, norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of sequences.

    Shape: input `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)` with
    `L_out = (L - kernel_size) // stride + 1`; rounded up with `ceil_mode`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.LPPool1d(2, 2)(xtensor.tensor([[1.0, 1.0, 2.0, 2.0]]))
    tensor([[1.4142, 2.8284]])
    """

    _pool = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of images.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, H_out, W_out)` or `(C, H_out, W_out)` with
    `H_out = (H - kernel_size) // stride + 1`, and so for W; rounded up with `ceil_mode`.

    Raises: RuntimeError for an input of other dimensions, or smaller than the kernel.

    >>> nn.LPPool2d(2, (1, 2))(xtensor.ones(1, 2, 4))
    tensor([[[1.4142, 1.4142],
             [1.4142, 1.4142]]])
    """

    _pool = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of volumes.

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, D_out, H_out, W_out)` or
    `(C, D_out, H_out, W_out)` with `D_out = (D - kernel_size) // stride + 1`, and so for H and W; rounded up
    with `ceil_mode`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.LPPool3d(2, 2)(xtensor.ones(1, 2, 4, 6, 8)).shape
    xtensor.Size([1, 2, 2, 3, 4])
    """

    _pool = "lp_pool3d"


class _AdaptiveAvgPoolNd(Module):
    """The means of as many windows as the output has places."""

    __constants__ = ["output_size"]
    _pool: str

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._pool)(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMaxPoolNd(_AdaptiveAvgPoolNd):
    """The largest values of as many windows as the output has places."""

    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._pool)(input, self.output_size, self.return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Adaptive max pooling of sequences.

    Shape: input `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)`; `L_out` is `output_size`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.AdaptiveMaxPool1d(2)(xtensor.tensor([[1.0, 5.0, 2.0, 4.0]]))
    tensor([[5., 4.]])
    """

    _pool = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Adaptive max pooling of images; a size of None keeps the input's.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, *output_size)` or `(C, *output_size)`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.AdaptiveMaxPool2d((5, None))(xtensor.zeros(1, 8, 10, 9)).shape
    xtensor.Size([1, 8, 5, 9])
    """

    _pool = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Adaptive max pooling of volumes; a size of None keeps the input's.

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, *output_size)` or `(C, *output_size)`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.AdaptiveMaxPool3d(2)(xtensor.zeros(1, 8, 4, 6, 8)).shape
    xtensor.Size([1, 8, 2, 2, 2])
    """

    _pool = "adaptive_max_pool3d"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Adaptive average pooling of sequences.

    Shape: input `(N, C, L)` or `(C, L)`, output `(N, C, L_out)` or `(C, L_out)`; `L_out` is `output_size`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.AdaptiveAvgPool1d(2)(xtensor.tensor([[1.0, 5.0, 2.0, 4.0]]))
    tensor([[3., 3.]])
    """

    _pool = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Adaptive average pooling of images; a size of None keeps the input's.

    Shape: input `(N, C, H, W)` or `(C, H, W)`, output `(N, C, *output_size)` or `(C, *output_size)`.

    Raises: RuntimeError for an input of other than 3 or 4 dimensions.

    >>> nn.AdaptiveAvgPool2d((5, None))(xtensor.zeros(1, 8, 10, 9)).shape
    xtensor.Size([1, 8, 5, 9])
    """

    _pool = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Adaptive average pooling of volumes; a size of None keeps the input's.

    Shape: input `(N, C, D, H, W)` or `(C, D, H, W)`, output `(N, C, *output_size)` or `(C, *output_size)`.

    Raises: RuntimeError for an input of other dimensions.

    >>> nn.AdaptiveAvgPool3d(2)(xtensor.zeros(1, 8, 4, 6, 8)).shape
    xtensor.Size([1, 8, 2, 2, 2])
    """

    _pool = "adaptive_avg_pool3d"
