"""Convolutions over quantised numbers, of one to three dimensions of space, transposed too."""

from __future__ import annotations

from typing import Any

from ...... import dtypes
from ......nn.functional import pad
from ......nn.modules import conv as floating
from ......nn.modules.module import Module
from ......nn.utils.fusion import fuse_conv_bn_weights
from ......ops.create.creation import zeros
from ......quantized.construct import _empty_affine_quantized
from ......quantized.layout import integers, seen_as
from ......quantized.products import Window, convolved
from ......tensor import Tensor
from ...intrinsic.modules.fused import _FusedModule
from .utils import WeightedQuantizedModule, _quantize_weight, check_float, qparams, saved_state

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

PADDINGS = ("zeros", "reflect")


def each(value: Any, count: int) -> tuple[int, ...]:
    """A number for every dimension of space."""
    return (value,) * count if isinstance(value, int) else tuple(value)


class _ConvNd(WeightedQuantizedModule):
    """What convolutions have in common: the geometry, the weight and the bias, the scale and the zero point of results."""

    _space = 0
    _transposed = False
    _relu = False
    _FLOAT_MODULE: Any = None
    _weight: Any
    _bias: Tensor | None

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
        self._init(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
        )

    def _init(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        output_padding: Any,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any,
    ) -> None:
        Module.__init__(self)
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in PADDINGS:
            raise ValueError(f"'padding_mode' {padding_mode} is not supported by quantized convolution")
        space = self._space
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = each(kernel_size, space), each(stride, space)
        self.padding, self.dilation = each(padding, space), each(dilation, space)
        self.transposed, self.output_padding = self._transposed, each(output_padding, space)
        self.groups, self.padding_mode = groups, padding_mode
        pair = (in_channels, out_channels) if self._transposed else (out_channels, in_channels)
        size = (pair[0], pair[1] // groups, *self.kernel_size)
        weight = _empty_affine_quantized(*size, scale=1.0, zero_point=0, dtype=dtypes.qint8, device=device)
        self.set_weight_bias(weight, zeros(out_channels, device=device) if bias else None)
        self.scale, self.zero_point = 1.0, 0

    def set_weight_bias(self, w: Any, b: Tensor | None) -> None:
        """Hold a quantised weight and a real bias."""
        # Beside parameters and buffers: they belong to neither.
        self.__dict__["_weight"], self.__dict__["_bias"] = w, None if b is None else b.detach()

    def _weight_bias(self) -> tuple[Any, Tensor | None]:
        return self._weight, self._bias

    def _get_name(self) -> str:
        return f"Quantized{type(self).__name__}"

    def extra_repr(self) -> str:
        sizes = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        parts = [f"{sizes}, scale={self.scale}, zero_point={self.zero_point}"]
        parts += [f"padding={self.padding}"] if any(self.padding) else []
        parts += [f"dilation={self.dilation}"] if self.dilation != (1,) * len(self.dilation) else []
        parts += [f"output_padding={self.output_padding}"] if any(self.output_padding) else []
        parts += [f"groups={self.groups}"] if self.groups != 1 else []
        parts += ["bias=False"] if self._bias is None else []
        return ", ".join(parts)

    def _window(self) -> Window:
        padding = self.padding if self.padding_mode == "zeros" else (0,) * self._space
        return Window(self.stride, padding, self.dilation, self.groups, self._transposed, self.output_padding)

    def _checked(self, input: Any) -> Any:
        """The input, padded where that is not with zeros; ValueError for another number of dimensions."""
        if input.dim() != self._space + 2:
            letters = ", ".join("NCDHW"[:2] + "DHW"[3 - self._space :]) if self._space > 1 else "N, C, L"
            raise ValueError(f"Input shape must be `({letters})`!")
        if self.padding_mode == "zeros":
            return input
        sides = [p for padding in reversed(self.padding[: self._space]) for p in (padding, padding)]
        if not input.is_quantized:
            return pad(input, sides, mode=self.padding_mode)
        # Elements are moved: what their integers are does not matter.
        moved = pad(integers(input).float(), sides, mode=self.padding_mode)
        return seen_as(moved.to(dtypes.QUANTISED[input.dtype]), input._quantizer)

    def forward(self, input: Any) -> Tensor:
        """The convolution, quantised."""
        how = (self._window(), self.scale, self.zero_point, self._relu)
        return convolved(self._checked(input), self._weight, self._bias, *how)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"], destination[f"{prefix}bias"] = self._weight_bias()
        saved_state(self, destination, prefix)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        self.set_weight_bias(state_dict.pop(f"{prefix}weight"), state_dict.pop(f"{prefix}bias"))
        self.scale = float(state_dict.pop(f"{prefix}scale"))
        self.zero_point = int(state_dict.pop(f"{prefix}zero_point"))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    @classmethod
    def like(cls, mod: Any) -> Any:
        """A layer of the same geometry."""
        if isinstance(mod.padding, str):
            raise TypeError(f"a quantized convolution is padded by numbers, got {mod.padding!r}")
        made = cls.__new__(cls)
        made._init(
            mod.in_channels,
            mod.out_channels,
            mod.kernel_size,
            mod.stride,
            mod.padding,
            mod.dilation,
            getattr(mod, "output_padding", 0),
            mod.groups,
            mod.bias is not None,
            mod.padding_mode,
            None,
        )
        return made

    @classmethod
    def get_qconv(cls, mod: Any, activation_post_process: Any, weight_post_process: Any = None) -> Any:
        """Of a real convolution, an observer of its results and one of its weight."""
        if weight_post_process is None:
            weight_post_process = mod.qconfig.weight()
        weight_post_process(mod.weight)
        if weight_post_process.dtype is not dtypes.qint8:
            raise AssertionError("Weight observer must have a dtype of qint8")
        made = cls.like(mod)
        made.set_weight_bias(_quantize_weight(mod.weight.float(), weight_post_process), mod.bias)
        if activation_post_process is None or activation_post_process.dtype is dtypes.float32:
            return made  # quantised as it runs
        if activation_post_process.is_dynamic:
            return made
        made.scale, made.zero_point = qparams(activation_post_process)
        return made

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a layer whose results were seen, and whose weight was, in training."""
        check_float(cls, mod)
        seen = getattr(mod, "activation_post_process", None)
        bn = getattr(mod, "bn", None)
        if isinstance(bn, Module) and hasattr(mod, "weight_fake_quant"):
            mod.weight, mod.bias = fuse_conv_bn_weights(
                mod.weight, mod.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
            )
        if isinstance(mod, _FusedModule) and not hasattr(mod, "weight_fake_quant"):
            mod = mod[0]
        return cls.get_qconv(mod, seen, getattr(mod, "weight_fake_quant", None))


class Conv1d(_ConvNd):
    """A convolution of (N, C, L)."""

    _space = 1
    _FLOAT_MODULE = floating.Conv1d


class Conv2d(_ConvNd):
    """A convolution of (N, C, H, W)."""

    _space = 2
    _FLOAT_MODULE = floating.Conv2d


class Conv3d(_ConvNd):
    """A convolution of (N, C, D, H, W)."""

    _space = 3
    _FLOAT_MODULE = floating.Conv3d


class _ConvTransposeNd(_ConvNd):
    """What transposed convolutions have in common: weights (in, out / groups, ...), with one scale."""

    _transposed = True

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
        self._init(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
        )

    @classmethod
    def get_qconv(cls, mod: Any, activation_post_process: Any, weight_post_process: Any = None) -> Any:
        """Of a real convolution; RuntimeError where its weight has a scale for each channel."""
        if weight_post_process is None:
            weight_post_process = mod.qconfig.weight()
        if not weight_post_process.qscheme.name.startswith("per_tensor"):
            raise RuntimeError("Per Channel Quantization is currently disabled for transposed conv")
        return super().get_qconv(mod, activation_post_process, weight_post_process)


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution of (N, C, L)."""

    _space = 1
    _FLOAT_MODULE = floating.ConvTranspose1d


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution of (N, C, H, W)."""

    _space = 2
    _FLOAT_MODULE = floating.ConvTranspose2d


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution of (N, C, D, H, W)."""

    _space = 3
    _FLOAT_MODULE = floating.ConvTranspose3d
