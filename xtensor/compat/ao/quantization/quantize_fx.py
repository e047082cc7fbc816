"""Models quantised as graphs: traced, fused, observed and converted as a whole, operators and functions as well as layers."""

from __future__ import annotations

import copy
from typing import Any

from ....fx.graph_module import GraphModule
from ....nn.modules.module import Module
from ..nn.seen import FloatFunctional, FXFloatFunctional
from .backend_config import BackendConfig, get_native_backend_config
from .fx.convert import convert
from .fx.custom_config import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig
from .fx.fuse import fuse, placed
from .fx.prepare import prepare
from .fx.tracer import QuantizationTracer
from .qconfig_mapping import QConfigMapping

__all__ = ["convert_fx", "convert_to_reference_fx", "fuse_fx", "prepare_fx", "prepare_qat_fx"]


def traced(
    model: Module, custom: PrepareCustomConfig
) -> tuple[GraphModule, dict[str, tuple[str, Any]], dict[str, Any]]:
    """The model as a graph, the module that each node is of, and the modules that are prepared by themselves, by name."""
    for part in model.modules():
        for name, child in part.named_children():
            if type(child) is FloatFunctional:  # whose calls are operators of the graph
                part._modules[name] = FXFloatFunctional()
    alone: dict[str, Any] = dict(custom.standalone_module_names)
    for name, module in model.named_modules():
        if type(module) in custom.standalone_module_classes:
            alone[name] = custom.standalone_module_classes[type(module)]
    classes = [*custom.non_traceable_module_classes]
    for kinds in custom.float_to_observed_mapping.values():
        classes += kinds
    tracer = QuantizationTracer([*custom.non_traceable_module_names, *alone], classes)
    graph = tracer.trace(model)
    made = GraphModule(tracer.root, graph, type(model).__name__)
    return made, dict(tracer.node_name_to_scope), alone


def kept(made: GraphModule, model: Module, names: list[str]) -> GraphModule:
    """The graph with attributes of the model; copies have them too."""
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    for name, value in found.items():
        setattr(made, name, value)
    made.meta["_user_preserved_attributes"] = found
    return made


def prepared(
    model: Module,
    qconfig_mapping: Any,
    is_qat: bool,
    prepare_custom_config: Any,
    backend_config: Any,
) -> GraphModule:
    """A model with observers."""
    mapping = (
        QConfigMapping.from_dict(qconfig_mapping) if isinstance(qconfig_mapping, dict) else qconfig_mapping
    )
    custom = (
        PrepareCustomConfig.from_dict(prepare_custom_config)
        if isinstance(prepare_custom_config, dict)
        else prepare_custom_config or PrepareCustomConfig()
    )
    backend = BackendConfig.from_dict(backend_config) if isinstance(backend_config, dict) else backend_config
    backend = backend or get_native_backend_config()
    graph, scopes, alone = traced(model, custom)
    if is_qat:
        graph.train(model.training)
    graph = fuse(graph, is_qat, backend)
    for name, entry in alone.items():
        inner = prepared(
            graph.get_submodule(name),
            entry.qconfig_mapping or mapping,
            is_qat,
            entry.prepare_custom_config,
            entry.backend_config or backend,
        )
        placed(graph, name, inner)
    standalone = {name: entry.prepare_custom_config or PrepareCustomConfig() for name, entry in alone.items()}
    made = prepare(graph, copy.deepcopy(mapping), is_qat, scopes, custom, backend, standalone)
    return kept(made, model, custom.preserved_attributes)


def fuse_fx(model: Module, fuse_custom_config: Any = None, backend_config: Any = None) -> GraphModule:
    """The model as a graph in which neighbouring layers are one (a convolution, a norm and ReLU); it is in eval mode.

    >>> from xtensor import nn
    >>> from xtensor.ao.quantization.quantize_fx import fuse_fx
    >>> type(fuse_fx(nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval()).get_submodule("0")).__name__
    'LinearReLU'
    """
    custom = (
        FuseCustomConfig.from_dict(fuse_custom_config)
        if isinstance(fuse_custom_config, dict)
        else fuse_custom_config
    )
    backend = BackendConfig.from_dict(backend_config) if isinstance(backend_config, dict) else backend_config
    graph, _, _ = traced(model, PrepareCustomConfig())
    made = fuse(graph, False, backend or get_native_backend_config())
    return kept(made, model, custom.preserved_attributes if custom else [])


def prepare_fx(
    model: Module,
    qconfig_mapping: QConfigMapping | dict[str, Any],
    example_inputs: Any,
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None,
    _equalization_config: Any = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
) -> GraphModule:
    """A trained model, in eval mode, as a graph with observers, which then is to see some data.

    qconfig_mapping: what to quantise which part with (`get_default_qconfig_mapping()`). example_inputs: the arguments of a call.
    prepare_custom_config: what to leave alone. backend_config: which operators can be quantised. Models that cannot be traced raise TraceError.

    Differs from PyTorch: weights are not equalised between layers.

    >>> from xtensor import nn
    >>> from xtensor.ao.quantization import get_default_qconfig_mapping
    >>> from xtensor.ao.quantization.quantize_fx import convert_fx, prepare_fx
    >>> x, model = xtensor.randn(8, 4), nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()
    >>> observed = prepare_fx(model, get_default_qconfig_mapping(), (x,))
    >>> _ = observed(x)
    >>> bool((convert_fx(observed)(x) - model(x)).abs().max() < 0.05)
    True
    """
    if _equalization_config is not None:
        raise NotImplementedError(
            "prepare_fx does not equalise weights between layers: leave _equalization_config None"
        )
    return prepared(model, qconfig_mapping, False, prepare_custom_config, backend_config)


def prepare_qat_fx(
    model: Module,
    qconfig_mapping: QConfigMapping | dict[str, Any],
    example_inputs: Any,
    prepare_custom_config: PrepareCustomConfig | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
) -> GraphModule:
    """A model, in training, as a graph that rounds as the quantised one will, and is trained so. Arguments are those of `prepare_fx`."""
    return prepared(model, qconfig_mapping, True, prepare_custom_config, backend_config)


def converted(
    graph_module: Any, is_reference: bool, custom: Any, remove_qconfig: bool, mapping: Any
) -> GraphModule:
    """The quantised model of a prepared one; ValueError for what is none."""
    if not isinstance(graph_module, GraphModule) or "quantised" not in graph_module.meta:
        raise ValueError("convert_fx takes what prepare_fx or prepare_qat_fx gave")
    config = (
        ConvertCustomConfig.from_dict(custom) if isinstance(custom, dict) else custom or ConvertCustomConfig()
    )
    asked = QConfigMapping.from_dict(mapping) if isinstance(mapping, dict) else mapping
    made = convert(graph_module, is_reference, config, remove_qconfig, asked)
    names = config.preserved_attributes or list(graph_module.meta.get("_user_preserved_attributes", {}))
    return kept(made, graph_module, names)


def convert_fx(
    graph_module: GraphModule,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: QConfigMapping | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
    keep_original_weights: bool = False,
) -> GraphModule:
    """A prepared model that has seen data as a quantised one: `quantized` operators and layers, real numbers around what has none.

    qconfig_mapping: parts that have None there stay in real numbers. ValueError for a model that was not prepared.
    """
    return converted(graph_module, False, convert_custom_config, _remove_qconfig, qconfig_mapping)


def convert_to_reference_fx(
    graph_module: GraphModule,
    convert_custom_config: ConvertCustomConfig | dict[str, Any] | None = None,
    _remove_qconfig: bool = True,
    qconfig_mapping: QConfigMapping | dict[str, Any] | None = None,
    backend_config: BackendConfig | dict[str, Any] | None = None,
) -> GraphModule:
    """A prepared model with numbers rounded and made real again around every quantised operator, for other backends to lower."""
    return converted(graph_module, True, convert_custom_config, _remove_qconfig, qconfig_mapping)
