"""Quantising a model: observers put in, layers replaced, neighbours fused."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from .... import dtypes
from ....nn.modules.activation import ReLU
from ....nn.modules.batchnorm import BatchNorm2d
from ....nn.modules.conv import Conv2d
from ....nn.modules.linear import Identity, Linear, NonDynamicallyQuantizableLinear
from ....nn.modules.module import Module
from ....nn.utils.fusion import fuse_conv_bn_eval
from ..nn import intrinsic, qat, quantized
from .qconfig import QConfig, default_dynamic_qconfig
from .stubs import DeQuantStub, QuantStub

__all__ = [
    "convert",
    "fuse_modules",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
]

STATIC: dict[type[Module], Any] = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    Linear: quantized.Linear,
    NonDynamicallyQuantizableLinear: quantized.Linear,
    Conv2d: quantized.Conv2d,
    intrinsic.LinearReLU: quantized.Linear,
    intrinsic.ConvReLU2d: quantized.Conv2d,
    qat.Linear: quantized.Linear,
    qat.LinearReLU: quantized.Linear,
    qat.Conv2d: quantized.Conv2d,
    qat.ConvReLU2d: quantized.Conv2d,
}
TRAINED: dict[type[Module], Any] = {
    Linear: qat.Linear,
    NonDynamicallyQuantizableLinear: qat.Linear,
    Conv2d: qat.Conv2d,
    intrinsic.LinearReLU: qat.LinearReLU,
    intrinsic.ConvReLU2d: qat.ConvReLU2d,
}
DYNAMIC: dict[type[Module], Any] = {
    Linear: quantized.dynamic.Linear,
    NonDynamicallyQuantizableLinear: quantized.dynamic.Linear,
}


def propagate_qconfig_(module: Module, inherited: QConfig | None = None) -> None:
    """Give every module the `qconfig` of the one around it, where it has none of its own."""
    module.qconfig = getattr(module, "qconfig", inherited)
    for child in module.children():
        propagate_qconfig_(child, module.qconfig)


def replaced(module: Module, swap: Callable[[Module], Module]) -> Module:
    """A module with the parts of it exchanged that `swap` exchanges, and itself."""
    other = swap(module)
    if other is not module:
        return other
    for name, child in module.named_children():
        setattr(module, name, replaced(child, swap))
    return module


def observe(module: Module, *given: Any) -> Any:
    """Have a layer's results seen."""
    return module.activation_post_process(given[-1])


def prepared(module: Module) -> None:
    """Put an observer behind all that is to be quantised."""
    config = getattr(module, "qconfig", None)
    if type(module) in STATIC and config is not None:
        if not isinstance(module, DeQuantStub):
            module.activation_post_process = config.activation()
            module.register_forward_hook(observe)
        return
    for child in module.children():
        prepared(child)


def prepare(model: Module, inplace: bool = False) -> Module:
    """A model whose results are observed, layer by layer: run it on some inputs, then `convert` it."""
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    prepared(model)
    return model


def prepare_qat(model: Module, mapping: Any = None, inplace: bool = False) -> Module:
    """A model in training mode that rounds its weights and results as it will once it is quantised."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    kinds = mapping or TRAINED
    model = replaced(
        model,
        lambda m: kinds[type(m)].from_float(m) if type(m) in kinds and getattr(m, "qconfig", None) else m,
    )
    prepared(model)
    return model


def convert(module: Module, mapping: Any = None, inplace: bool = False) -> Module:
    """A prepared model with its layers quantised, by what their observers have seen."""
    module = module if inplace else copy.deepcopy(module)
    kinds = mapping or STATIC
    return replaced(
        module,
        lambda m: kinds[type(m)].from_float(m) if type(m) in kinds and getattr(m, "qconfig", None) else m,
    )


def quantize(
    model: Module, run_fn: Callable[..., Any], run_args: Any, mapping: Any = None, inplace: bool = False
) -> Module:
    """A trained model, quantised: `run_fn(model, *run_args)` shows it some inputs."""
    model = prepare(model.eval(), inplace)
    run_fn(model, *run_args)
    return convert(model, mapping, True)


def quantize_dynamic(
    model: Module,
    qconfig_spec: Any = None,
    dtype: dtypes.dtype = dtypes.qint8,
    mapping: Any = None,
    inplace: bool = False,
) -> Module:
    """A model whose linear layers have integer weights and quantise their inputs as they come.

    Differs from PyTorch: recurrent layers stay as they are, and there is no float16.

    >>> model = xtensor.nn.Sequential(xtensor.nn.Linear(4, 2))
    >>> xtensor.ao.quantization.quantize_dynamic(model, {xtensor.nn.Linear})[0].weight.dtype
    xtensor.qint8
    """
    if dtype is not dtypes.qint8:
        raise ValueError(
            f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please"
        )
    kinds, model = mapping or DYNAMIC, model if inplace else copy.deepcopy(model)
    wanted = set(kinds) if qconfig_spec is None else set(qconfig_spec)

    def swap(module: Module) -> Module:
        if type(module) not in kinds or type(module) not in wanted:
            return module
        module.qconfig = default_dynamic_qconfig
        return kinds[type(module)].from_float(module)

    return replaced(model, swap)


def fuse_modules(model: Module, modules_to_fuse: Sequence[Any], inplace: bool = False) -> Module:
    """A model in evaluation mode with convolutions, norms and ReLUs, named in lists, made one: `[["conv", "bn", "relu"], ...]`."""
    model = model if inplace else copy.deepcopy(model)
    groups = [list(modules_to_fuse)] if isinstance(modules_to_fuse[0], str) else modules_to_fuse
    for names in groups:
        parts: list[Any] = [model.get_submodule(name) for name in names]
        made = fused(parts)
        for name, part in zip(names, [made, *[Identity() for _ in parts[1:]]], strict=True):
            above, _, last = name.rpartition(".")
            setattr(model.get_submodule(above), last, part)
    return model


def fused(parts: list[Any]) -> Module:
    """One module of several; NotImplementedError where there is none."""
    first, *rest = parts
    if rest and type(first) is Conv2d and type(rest[0]) is BatchNorm2d and not first.training:
        first, rest = fuse_conv_bn_eval(first, rest[0]), rest[1:]
        if not rest:
            return first
    kind = {Linear: intrinsic.LinearReLU, Conv2d: intrinsic.ConvReLU2d}.get(type(first))
    if kind is None or [type(p) for p in rest] != [ReLU]:
        raise NotImplementedError(f"Cannot fuse modules: {tuple([type(p) for p in parts])}")
    return kind(first, rest[0])
