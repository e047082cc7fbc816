"""How neighbouring layers become one: norms are folded into weights, or in training stay beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....nn.modules import activation, batchnorm, conv, linear
from ....nn.modules.module import Module
from ....nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from ..nn import intrinsic

__all__ = [
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_convtranspose_bn",
    "fuse_linear_bn",
    "get_fuser_method",
    "get_fuser_method_new",
]

SPACES = (1, 2, 3)
CONVOLUTIONS = {getattr(conv, f"Conv{n}d"): n for n in SPACES}


def check_modes(what: str, *layers: Module) -> None:
    if len({layer.training for layer in layers}) > 1:
        raise AssertionError(f"{what} and BN both must be in the same mode (train or eval).")


def check_norm(bn: Any, count: int, channels: str, kind: str) -> None:
    if bn.num_features != count:
        raise AssertionError(f"Output {channels} must match num_features of {kind}")
    if not bn.affine:
        raise AssertionError(f"Only support fusing {kind.rstrip('.')} with affine set to True")
    if not bn.track_running_stats:
        raise AssertionError(
            f"Only support fusing {kind.rstrip('.')} with tracking_running_stats set to True"
        )


def fuse_conv_bn(is_qat: bool, conv: Any, bn: Any) -> Module:
    """A convolution and a norm as one; AssertionError where they do not fit, NotImplementedError for other kinds."""
    check_modes("Conv", conv, bn)
    if not is_qat:
        return fuse_conv_bn_eval(conv, bn)
    check_norm(bn, conv.out_channels, "channel of Conv2d", "BatchNorm2d.")
    if type(conv) not in CONVOLUTIONS:
        raise NotImplementedError(f"Cannot fuse train modules: {(conv, bn)}")
    return getattr(intrinsic, f"ConvBn{CONVOLUTIONS[type(conv)]}d")(conv, bn)


def fuse_conv_bn_relu(is_qat: bool, conv: Any, bn: Any, relu: Any) -> Module:
    """A convolution, a norm and ReLU as one; AssertionError where they do not fit, NotImplementedError for other kinds."""
    check_modes("Conv", conv, bn, relu)
    if is_qat:
        check_norm(bn, conv.out_channels, "channel of Conv2d", "BatchNorm2d")
    space = CONVOLUTIONS.get(type(conv))
    if space is None:
        raise NotImplementedError(f"Cannot fuse {'train' if is_qat else 'eval'} modules: {(conv, bn, relu)}")
    if is_qat:
        return getattr(intrinsic, f"ConvBnReLU{space}d")(conv, bn, relu)
    return getattr(intrinsic, f"ConvReLU{space}d")(fuse_conv_bn_eval(conv, bn), relu)


def fuse_linear_bn(is_qat: bool, linear: Any, bn: Any) -> Module:
    """A linear layer and a norm as one; AssertionError where they do not fit."""
    check_modes("Linear", linear, bn)
    if not is_qat:
        return fuse_linear_bn_eval(linear, bn)
    check_norm(bn, linear.out_features, "features of Linear", "BatchNorm1d")
    return intrinsic.LinearBn1d(linear, bn)


def fuse_convtranspose_bn(is_qat: bool, convt: Any, bn: Any) -> Module:
    """A transposed convolution and a norm as one; Exception in training."""
    check_modes("ConvTranspose", convt, bn)
    if is_qat:
        raise Exception("Fusing ConvTranspose+BatchNorm not yet supported in QAT.")
    return fuse_conv_bn_eval(convt, bn, transpose=True)


def together(kind: Any) -> Callable[..., Module]:
    """Two layers as a sequence of a class."""

    def fuse(is_qat: bool, first: Any, second: Any) -> Module:
        return kind(first, second)

    return fuse


METHODS: dict[Any, Any] = {
    (linear.Linear, batchnorm.BatchNorm1d): fuse_linear_bn,
    (linear.Linear, activation.ReLU): together(intrinsic.LinearReLU),
    (batchnorm.BatchNorm2d, activation.ReLU): together(intrinsic.BNReLU2d),
    (batchnorm.BatchNorm3d, activation.ReLU): together(intrinsic.BNReLU3d),
}
for _space in SPACES:
    _conv, _norm = getattr(conv, f"Conv{_space}d"), getattr(batchnorm, f"BatchNorm{_space}d")
    METHODS[_conv, _norm] = fuse_conv_bn
    METHODS[_conv, _norm, activation.ReLU] = fuse_conv_bn_relu
    METHODS[_conv, activation.ReLU] = together(getattr(intrinsic, f"ConvReLU{_space}d"))
    METHODS[getattr(conv, f"ConvTranspose{_space}d"), _norm] = fuse_convtranspose_bn


def get_fuser_method(op_list: Any, additional_fuser_method_mapping: Any = None) -> Any:
    """What makes one of layers of these kinds; AssertionError where there is nothing."""
    found = (METHODS | (additional_fuser_method_mapping or {})).get(op_list)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_list} ")
    return found


def get_fuser_method_new(op_pattern: Any, fuser_method_mapping: Any) -> Any:
    """What makes one of layers of these kinds, by a table; AssertionError where there is nothing."""
    found = fuser_method_mapping.get(op_pattern)
    if found is None:
        raise AssertionError(f"did not find fuser method for: {op_pattern} ")
    return found
