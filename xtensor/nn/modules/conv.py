"""Convolutions and transposed convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import register_empty
from .module import Module
from .utils import _pair, _reverse_repeat_tuple, _single, _triple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

PADDINGS = {"same", "valid"}
MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """What all convolutions share: sizes, checks, weight and bias."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in PADDINGS:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {PADDINGS}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in MODES:
            raise ValueError(f"padding_mode must be one of {MODES}, but got padding_mode='{padding_mode}'")
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pads()
        if transposed:
            shape = (in_channels, out_channels // groups, *kernel_size)
        else:
            shape = (out_channels, in_channels // groups, *kernel_size)
        register_empty(self, device, dtype, weight=shape, bias=out_channels if bias else None)
        self.reset_parameters()

    def _pads(self) -> Sequence[int]:
        """The padding as `pad` takes it: before and after, from the last dimension."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        pads = []
        for d, k in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = d * (k - 1) if self.padding == "same" else 0
            pads += [total // 2, total - total // 2]
        return pads

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly within 1/sqrt(number of inputs to one output)."""
        init.draw_by_inputs(self.weight, self.bias)

    def extra_repr(self) -> str:
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Forward(_ConvNd):
    """A convolution that is not transposed, by its function's name (programs that count calls replace it in `functional`) and the parser of its sizes."""

    parse: Any
    convolve: str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        parse = type(self).parse
        super().__init__(
            in_channels,
            out_channels,
            parse(kernel_size),
            parse(stride),
            padding if isinstance(padding, str) else parse(padding),
            parse(dilation),
            False,
            parse(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = type(self).parse(0)
        return getattr(F, self.convolve)(
            input, weight, bias, self.stride, padding, self.dilation, self.groups
        )

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Forward):
    """Convolution of sequences: (N, C_in, L) or (C_in, L).

    Shape: input `(N, C_in, L)` or `(C_in, L)`, output `(N, C_out, L_out)` or `(C_out, L_out)` with
    `L_out = (L + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`. Weight
    `(C_out, C_in / groups, *kernel_size)`.

    Raises: RuntimeError for another number of channels, or an input smaller than the kernel; ValueError where
    `groups` does not divide the channels.

    >>> nn.Conv1d(16, 32, kernel_size=3, stride=2)(xtensor.zeros(4, 16, 50)).shape
    xtensor.Size([4, 32, 24])
    """

    parse = staticmethod(_single)
    convolve = "conv1d"


class Conv2d(_Forward):
    """Convolution of images: (N, C_in, H, W) or (C_in, H, W).

    Shape: input `(N, C_in, H, W)` or `(C_in, H, W)`, output `(N, C_out, H_out, W_out)` or
    `(C_out, H_out, W_out)` with `H_out = (H + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`,
    and so for W. Weight `(C_out, C_in / groups, *kernel_size)`.

    Raises: RuntimeError for another number of channels, or an input smaller than the kernel; ValueError where
    `groups` does not divide the channels.

    >>> nn.Conv2d(3, 8, kernel_size=3, padding=1)(xtensor.zeros(2, 3, 16, 16)).shape
    xtensor.Size([2, 8, 16, 16])
    >>> nn.Conv2d(3, 8, kernel_size=(3, 5), stride=2)(xtensor.zeros(2, 3, 16, 16)).shape
    xtensor.Size([2, 8, 7, 6])
    """

    parse = staticmethod(_pair)
    convolve = "conv2d"


class Conv3d(_Forward):
    """Convolution of volumes: (N, C_in, D, H, W) or (C_in, D, H, W).

    Shape: input `(N, C_in, D, H, W)` or `(C_in, D, H, W)`, output `(N, C_out, D_out, H_out, W_out)` or
    `(C_out, D_out, H_out, W_out)` with
    `D_out = (D + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1`, and so for H and W. Weight
    `(C_out, C_in / groups, *kernel_size)`.

    Raises: RuntimeError for another number of channels; ValueError where `groups` does not divide the
    channels.

    >>> nn.Conv3d(1, 4, kernel_size=3)(xtensor.zeros(1, 1, 5, 8, 8)).shape
    xtensor.Size([1, 4, 3, 6, 6])
    """

    parse = staticmethod(_triple)
    convolve = "conv3d"


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution, by its function's name and the parser of its sizes."""

    parse: Any
    convolve: str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        parse = type(self).parse
        super().__init__(
            in_channels,
            out_channels,
            parse(kernel_size),
            parse(stride),
            parse(padding),
            parse(dilation),
            True,
            parse(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: Sequence[int] | None,
        stride: Sequence[int],
        padding: Sequence[int],
        kernel_size: Sequence[int],
        num_spatial_dims: int,
        dilation: Sequence[int] | None = None,
    ) -> Sequence[int]:
        """The output padding that gives the output size asked for; ValueError where none does."""
        if output_size is None:
            return self.output_padding
        n = num_spatial_dims
        lead = 2 if input.dim() == n + 2 else 1
        if len(output_size) == lead + n:
            output_size = output_size[lead:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {lead + n} elements "
                f"(got {len(output_size)})"
            )
        spread = [1] * n if dilation is None else dilation
        least = [
            (input.size(d + lead) - 1) * stride[d] - 2 * padding[d] + spread[d] * (kernel_size[d] - 1) + 1
            for d in range(n)
        ]
        most = [size + stride[d] - 1 for d, size in enumerate(least)]
        for wanted, low, high in zip(output_size, least, most, strict=True):
            if not low <= wanted <= high:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from {least} to {most} (for an "
                    f"input of {input.size()[2:]})"
                )
        return [wanted - low for wanted, low in zip(output_size, least, strict=True)]

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        padding: Any = self.padding
        extra = self._output_padding(
            input, output_size, self.stride, padding, self.kernel_size, len(self.kernel_size), self.dilation
        )
        return getattr(F, self.convolve)(
            input, self.weight, self.bias, self.stride, padding, extra, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    """The gradient of Conv1d with respect to its input, as a layer (Zeiler et al., 2010).

    Shape: input `(N, C_in, L)` or `(C_in, L)`, output `(N, C_out, L_out)` or `(C_out, L_out)` with
    `L_out = (L - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`. Weight
    `(C_in, C_out / groups, *kernel_size)`.

    Raises: RuntimeError for another number of channels; ValueError where `groups` does not divide the
    channels.

    >>> nn.ConvTranspose1d(16, 8, kernel_size=4, stride=2)(xtensor.zeros(4, 16, 10)).shape
    xtensor.Size([4, 8, 22])
    """

    parse = staticmethod(_single)
    convolve = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """The gradient of Conv2d with respect to its input, as a layer (Zeiler et al., 2010).

    Shape: input `(N, C_in, H, W)` or `(C_in, H, W)`, output `(N, C_out, H_out, W_out)` or
    `(C_out, H_out, W_out)` with
    `H_out = (H - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`, and so for
    W. Weight `(C_in, C_out / groups, *kernel_size)`.

    Raises: RuntimeError for another number of channels; ValueError where `groups` does not divide the
    channels.

    >>> nn.ConvTranspose2d(8, 3, kernel_size=2, stride=2)(xtensor.zeros(2, 8, 5, 5)).shape
    xtensor.Size([2, 3, 10, 10])
    """

    parse = staticmethod(_pair)
    convolve = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """The gradient of Conv3d with respect to its input, as a layer (Zeiler et al., 2010).

    Shape: input `(N, C_in, D, H, W)` or `(C_in, D, H, W)`, output `(N, C_out, D_out, H_out, W_out)` or
    `(C_out, D_out, H_out, W_out)` with
    `D_out = (D - 1) * stride - 2 * padding + dilation * (kernel_size - 1) + output_padding + 1`, and so for H
    and W. Weight `(C_in, C_out / groups, *kernel_size)`.

    Raises: RuntimeError for another number of channels; ValueError where `groups` does not divide the
    channels.

    >>> nn.ConvTranspose3d(4, 1, kernel_size=3)(xtensor.zeros(1, 4, 3, 6, 6)).shape
    xtensor.Size([1, 1, 5, 8, 8])
    """

    parse = staticmethod(_triple)
    convolve = "conv_transpose3d"
