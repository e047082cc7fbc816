"""Quantising a model in eager mode: observers put in, and layers replaced by what these have seen."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

from .... import checks, dtypes
from ....nn.modules import linear, rnn, rnncell, sparse
from ....nn.modules.attention import MultiheadAttention
from ....nn.modules.container import Sequential
from ....nn.modules.dropout import Dropout
from ....nn.modules.module import Module
from ..nn import quantizable, quantized
from ..nn.intrinsic.modules.fused import _FusedModule
from ..nn.observing import INSTALLED
from .fake_quantize import FakeQuantizeBase
from .observer import ObserverBase
from .qconfig import (
    default_dynamic_qconfig,
    float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig,
    float_qparams_weight_only_qconfig_4bit,
)
from .quantization_mappings import (
    DEFAULT_MODULE_TO_ACT_POST_PROCESS,
    get_default_dynamic_quant_module_mappings,
    get_default_qat_module_mappings,
    get_default_qconfig_propagation_list,
    get_default_static_quant_module_mappings,
    no_observer_set,
)
from .stubs import DeQuantStub, QuantWrapper

__all__ = [
    "add_quant_dequant",
    "convert",
    "default_eval_fn",
    "get_default_custom_config_dict",
    "prepare",
    "prepare_qat",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
    "quantize_qat",
    "swap_module",
]

Mapping = dict[Any, Any]
CUSTOM: dict[str, Mapping] = {
    "float_to_observed_custom_module_class": {
        rnn.LSTM: quantizable.LSTM,
        MultiheadAttention: quantizable.MultiheadAttention,
    },
    "observed_to_quantized_custom_module_class": {
        quantizable.LSTM: quantized.LSTM,
        quantizable.MultiheadAttention: quantized.MultiheadAttention,
    },
}
RECURRENT = (rnn.LSTM, rnn.GRU, rnncell.LSTMCell, rnncell.RNNCell, rnncell.GRUCell)
BY_DTYPE: Mapping = {
    dtypes.qint8: ((linear.Linear, *RECURRENT), default_dynamic_qconfig),
    dtypes.float16: ((linear.Linear, *RECURRENT), float16_dynamic_qconfig),
    dtypes.quint8: ((sparse.EmbeddingBag, sparse.Embedding), float_qparams_weight_only_qconfig),
    dtypes.quint4x2: ((sparse.EmbeddingBag,), float_qparams_weight_only_qconfig_4bit),
}
"""What is quantised as it runs, and by which qconfig, for a dtype."""


def get_default_custom_config_dict() -> dict[str, Mapping]:
    """What takes the place of layers of several layers."""
    return CUSTOM


def default_eval_fn(model: Module, calib_data: Any) -> None:
    """Show a model the inputs of pairs of inputs and targets."""
    for data, _ in calib_data:
        model(data)


# ---- qconfigs ------------------------------------------------------------------------------------------------------


def propagate_qconfig_(
    module: Module, qconfig_dict: Any = None, prepare_custom_config_dict: Any = None
) -> None:
    """Give every module a `qconfig`: its own, that of its name or kind in a dict, or that of the module around it."""
    custom = prepare_custom_config_dict or {}
    names = custom.get("non_traceable_module_name", [])
    kinds = custom.get("non_traceable_module_class", [])

    def visit(module: Module, inherited: Any, prefix: str) -> None:
        config = given.get(type(module), inherited)
        config = getattr(module, "qconfig", given.get(prefix, config))
        module.qconfig = config
        for name, child in module.named_children():
            if name not in names and type(child) not in kinds:
                visit(child, config, f"{prefix}.{name}" if prefix else name)

    given = qconfig_dict or {}
    visit(module, None, "")


def devices_of(module: Module) -> set[Any]:
    held = (*module.parameters(), *module.buffers())
    return {t.device for t in held if t.device.type != "meta"}


# ---- observers -----------------------------------------------------------------------------------------------------


def observe_result(module: Any, given: Any, result: Any) -> Any:
    """A layer's result, after the observer's look."""
    return module.activation_post_process(result)


def observe_input(module: Any, given: Any) -> Any:
    """A layer's input, after the observer's look."""
    return module.activation_post_process(given[0])


def looks_at_input(observer: Any) -> bool:
    """Whether numbers will be quantised as they come: the average is the last batch."""
    inner = getattr(observer, "activation_post_process", observer)
    return getattr(inner, "averaging_constant", None) == 1


def observed(module: Any, device: Any, make: Any = None) -> None:
    """Put an observer behind a layer, or before one that will quantise its input as it comes."""
    if getattr(module, "qconfig", None) is None or isinstance(module, DeQuantStub):
        return
    observer = (make or module.qconfig.activation)()
    if device is not None:
        observer.to(device)
    module.add_module("activation_post_process", observer)
    if looks_at_input(observer):
        module.register_forward_pre_hook(observe_input, prepend=True)
    else:
        module.register_forward_hook(observe_result, prepend=True)


def add_observers(module: Module, kinds: Any, whole: Any, device: Any, custom: Mapping) -> None:
    """Put observers behind all that is to be quantised."""
    for name, child in module.named_children():
        config = getattr(child, "qconfig", None)
        if type(child) is Dropout:
            continue
        if isinstance(child, (quantized.FloatFunctional, quantized.QFunctional)):
            if config is not None:
                child.activation_post_process = config.activation()
        elif isinstance(child, _FusedModule) or (whole is not None and type(child) in whole):
            observed(child, device)
        elif child.training and type(child) in DEFAULT_MODULE_TO_ACT_POST_PROCESS:
            observed(child, device, DEFAULT_MODULE_TO_ACT_POST_PROCESS[type(child)])
        elif config is not None and type(child) in custom:
            made = custom[type(child)].from_float(child)
            setattr(module, name, made)
            if not isinstance(made, tuple(no_observer_set())):
                observed(made, device)
        else:
            add_observers(child, kinds, whole, device, custom)
    leaf = not module._modules
    if (leaf or hasattr(module, "weight_fake_quant")) and not isinstance(module, Sequential):
        if type(module) in kinds and not hasattr(module, "activation_post_process"):
            observed(module, device)


def prepare(
    model: Module,
    inplace: bool = False,
    allow_list: Any = None,
    observer_non_leaf_module_list: Any = None,
    prepare_custom_config_dict: Any = None,
) -> Module:
    """A model whose results are observed, layer by layer: run it on some inputs, then `convert` it."""
    custom = CUSTOM if prepare_custom_config_dict is None else prepare_custom_config_dict
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        checks.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through "
            "`qconfig_dict` or by assigning the `.qconfig` attribute directly on submodules"
        )
    found = devices_of(model)
    if len(found) > 1:
        raise AssertionError(
            f"_add_observer_ only works with cpu or single-device CUDA modules, but got devices {found}"
        )
    kinds = get_default_qconfig_propagation_list() if allow_list is None else allow_list
    replaced = custom.get("float_to_observed_custom_module_class", {})
    add_observers(model, kinds, observer_non_leaf_module_list, next(iter(found), None), replaced)
    return model


def prepare_qat(model: Module, mapping: Mapping | None = None, inplace: bool = False) -> Module:
    """A model in training mode that rounds its weights and results as it will once it is quantised."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    kinds = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model)
    convert(model, kinds, inplace=True, remove_qconfig=False)
    return prepare(model, observer_non_leaf_module_list=set(kinds.values()), inplace=True)


def add_quant_dequant(module: Module) -> Module:
    """A model with every layer that has a qconfig between two marks."""
    if not module._modules and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


# ---- conversion ----------------------------------------------------------------------------------------------------


def swap_module(
    mod: Module,
    mapping: Mapping,
    custom_module_class_mapping: Mapping,
    use_precomputed_fake_quant: bool = False,
) -> Module:
    """The layer that takes the place of one with a qconfig, with its hooks, where it stands; or the layer itself."""
    kind = type(mod)
    if getattr(mod, "qconfig", None) is None:
        return mod
    if kind in custom_module_class_mapping:
        made = custom_module_class_mapping[kind].from_observed(mod)
    elif kind in mapping:
        make = mapping[kind].from_float
        known = "use_precomputed_fake_quant" in inspect.signature(make).parameters
        made = make(mod, **({"use_precomputed_fake_quant": use_precomputed_fake_quant} if known else {}))
    else:
        return mod
    for hook in mod._forward_pre_hooks.values():
        if hook is not observe_input:
            made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not observe_result:
            made.register_forward_hook(hook)
    found = devices_of(mod)
    if len(found) > 1:
        raise AssertionError(
            f"swap_module only works with cpu or single-device CUDA modules, but got devices {found}"
        )
    return made.to(next(iter(found))) if found else made


def replace(module: Module, mapping: Mapping, custom: Mapping, precomputed: bool) -> None:
    for name, child in list(module.named_children()):
        if not isinstance(child, _FusedModule) and type(child) not in custom:
            replace(child, mapping, custom, precomputed)
        module._modules[name] = swap_module(child, mapping, custom, precomputed)


def clean(module: Module) -> None:
    """Take what was needed to quantise a model from it."""
    for child in module.children():
        clean(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    if isinstance(getattr(module, "activation_post_process", None), (ObserverBase, FakeQuantizeBase)):
        del module.activation_post_process
    for hooks, ours in ((module._forward_pre_hooks, observe_input), (module._forward_hooks, observe_result)):
        for key in [key for key, hook in hooks.items() if hook is ours]:
            hooks.pop(key)


def convert(
    module: Module,
    mapping: Mapping | None = None,
    inplace: bool = False,
    remove_qconfig: bool = True,
    is_reference: bool = False,
    convert_custom_config_dict: Any = None,
    use_precomputed_fake_quant: bool = False,
) -> Module:
    """A prepared model with its layers quantised, by what their observers have seen."""
    if is_reference:
        raise NotImplementedError(
            "layers that only pretend to be quantised are not here: leave is_reference False"
        )
    custom = CUSTOM if convert_custom_config_dict is None else convert_custom_config_dict
    module = module if inplace else copy.deepcopy(module)
    kinds = get_default_static_quant_module_mappings() if mapping is None else mapping
    replaced = custom.get("observed_to_quantized_custom_module_class", {})
    replace(module, kinds, replaced, use_precomputed_fake_quant)
    if remove_qconfig:
        clean(module)
    return module


# ---- all at once ---------------------------------------------------------------------------------------------------


def quantize(
    model: Module,
    run_fn: Callable[..., Any],
    run_args: Any,
    mapping: Mapping | None = None,
    inplace: bool = False,
) -> Module:
    """A trained model, quantised: `run_fn(model, *run_args)` shows it some inputs."""
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, mapping, inplace=True)


def quantize_qat(model: Module, run_fn: Callable[..., Any], run_args: Any, inplace: bool = False) -> Module:
    """A model trained while it rounds, and quantised: `run_fn(model, *run_args)` trains it."""
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    return convert(model, inplace=True)


def quantize_dynamic(
    model: Module,
    qconfig_spec: Any = None,
    dtype: dtypes.dtype = dtypes.qint8,
    mapping: Mapping | None = None,
    inplace: bool = False,
) -> Module:
    """A model whose linear and recurrent layers have integer weights and quantise their inputs as they come.

    qconfig_spec: which layers, a set of kinds and names, or a dict of qconfigs by these. ValueError or RuntimeError
    for a dtype that layers have not.

    >>> model = xtensor.nn.Sequential(xtensor.nn.Linear(4, 2))
    >>> xtensor.ao.quantization.quantize_dynamic(model, {xtensor.nn.Linear})[0].weight().dtype
    xtensor.qint8
    """
    if qconfig_spec is None:
        if dtype not in BY_DTYPE:
            raise ValueError(
                f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please"
            )
        qconfig_spec = dict.fromkeys(*BY_DTYPE[dtype])
    elif isinstance(qconfig_spec, set):
        if dtype not in BY_DTYPE:
            raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
        qconfig_spec = dict.fromkeys(qconfig_spec, BY_DTYPE[dtype][1])
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(
        model, get_default_dynamic_quant_module_mappings() if mapping is None else mapping, inplace=True
    )


INSTALLED.update(prepare=prepare, prepare_qat=prepare_qat, convert=convert)
