"""Observers of a prepared graph replaced by what they saw: first numbers rounded and real again around every operator, then quantised operators."""

from __future__ import annotations

import copy
import operator
from typing import Any

from ..... import dtypes
from .....fx.graph_module import GraphModule
from .....fx.node import Node
from .....nn import functional as F
from .....nn.modules.module import Module
from .....ops.create.ingest import tensor as make_tensor
from .....tensor import Tensor
from ...nn.intrinsic.modules.fused import _FusedModule
from ...nn.quantized.reference import REFERENCES
from ..qconfig_mapping import QConfigMapping
from ..quant_type import QuantType
from ..quantization_mappings import get_default_dynamic_quant_module_mappings
from .custom_config import ConvertCustomConfig
from .fuse import placed
from .lower import Lowering, library
from .patterns import kind_of, module_of, qconfigs
from .prepare import QUANTISED, Prepared, forms, free_name, is_observer

__all__ = ["convert"]

CHANNELS = (dtypes.per_channel_affine, dtypes.per_channel_symmetric, dtypes.per_channel_affine_float_qparams)


class Rounding:
    """A graph while its observers are replaced by roundings."""

    def __init__(
        self, model: GraphModule, prepared: Prepared, configs: dict[str, Any], kinds: dict[Any, Any]
    ) -> None:
        self.model, self.prepared, self.configs, self.kinds = model, prepared, configs, kinds
        self.modules: dict[str, Module] = dict(model.named_modules(remove_duplicate=False))

    def run(self) -> None:
        """Replace all observers, and make arguments that are quantised real where they are used."""
        graph = self.model.graph
        places = [node for node in graph.nodes if node.op == "placeholder"]
        given = {places[at] for at in self.prepared.config.input_quantized_indexes}
        for node in list(graph.nodes):
            alone = self.prepared.standalone.get(str(node.target)) if node.op == "call_module" else None
            if is_observer(node, self.modules):
                before = module_of(node.args[0], self.modules)
                if type(before) in self.kinds:
                    before.activation_post_process = module_of(node, self.modules)
                self._replace(node, module_of(node, self.modules))
            elif alone is not None:
                for at in alone.input_quantized_indexes:
                    value: Any = node.args[at]
                    if value.target == "dequantize":
                        node.update_arg(at, value.args[0])
            if node in given or (alone is not None and alone.output_quantized_indexes):
                with graph.inserting_after(node):
                    real = graph.call_method("dequantize", (node,))
                node.replace_all_uses_with(real, lambda user, real=real: user is not real)
        ((result),) = [node for node in graph.nodes if node.op == "output"]
        results = result.args[0] if isinstance(result.args[0], (list, tuple)) else (result.args[0],)
        for at in self.prepared.config.output_quantized_indexes:
            value = results[at]
            if isinstance(value, Node) and value.target == "dequantize":
                result.replace_input_with(value, value.all_input_nodes[0])

    def _replace(self, node: Node, observer: Any) -> None:
        value: Any = node.args[0]
        around = [value, *node.users]
        static = observer.dtype in QUANTISED and not getattr(observer, "is_dynamic", False)
        if (
            not static
            or observer.dtype is dtypes.float16
            or all(self.configs.get(n.name) is None for n in around)
        ):
            weight = value.op == "get_attr" and observer.dtype is dtypes.qint8
            if not (static and weight):
                node.replace_all_uses_with(value)
                self.model.graph.erase_node(node)
                return
        graph, own = self.model.graph, library()
        if value.op == "get_attr":
            observer(operator.attrgetter(str(value.target))(self.model))
        scale, zero_point = observer.calculate_qparams()
        path, prefix = self._where(node, value)
        with graph.inserting_before(node):
            if observer.qscheme in CHANNELS:
                args = [
                    self._held(f"{path}{prefix}_scale_", scale),
                    self._held(f"{path}{prefix}_zero_point_", zero_point),
                ]
                rounded = graph.call_function(
                    own.quantize_per_channel, (value, *args, observer.ch_axis, observer.dtype)
                )
            else:
                flat = [scale.reshape(-1)[0], zero_point.reshape(-1)[0].long()]
                args = [
                    self._held(f"{path}{prefix}{name}", v)
                    for name, v in zip(("_scale_", "_zero_point_"), flat, strict=True)
                ]
                rounded = graph.call_function(own.quantize_per_tensor, (value, *args, observer.dtype))
            real = graph.call_method("dequantize", (rounded,))
        node.replace_all_uses_with(real)
        graph.erase_node(node)

    def _held(self, prefix: str, value: Any) -> Node:
        """A node for a number that the model holds."""
        name = free_name(self.model, prefix)
        self.model.register_buffer(
            name, value.detach().clone() if isinstance(value, Tensor) else make_tensor(value)
        )
        return self.model.graph.get_attr(name)

    def _where(self, node: Node, value: Node) -> tuple[str, str]:
        """The module that numbers are named by: that which gave the value, or that which takes it where the value is an input."""
        scopes = self.prepared.scopes
        if self.configs.get(value.name, "") is not None:
            return scopes.get(value.name, ("", None))[0], ""
        users = list(node.users)
        linear = next((n for n in users if n.op == "call_function" and n.target is F.linear), None)
        user = linear or (users[0] if users else None)
        return ("" if user is None else scopes.get(user.name, ("", None))[0]), "_input"


def referred(model: GraphModule, observed: set[str]) -> None:
    """Layers with weights as ones that compute in real numbers by quantised weights."""
    modules = dict(model.named_modules(remove_duplicate=False))
    for node in model.graph.nodes:
        module = module_of(node, modules)
        if module is None or node.name not in observed:
            continue
        qconfig = getattr(module, "qconfig", None)
        if qconfig is None:
            continue
        seen = getattr(module, "weight_fake_quant", None)
        if seen is not None:  # trained: the layer that it stands for
            module = module.to_float()
            placed(model, str(node.target), module)
        fused = isinstance(module, _FusedModule)
        inner = module[0] if fused else module
        kind = REFERENCES.get(type(inner))
        if kind is None:
            continue
        if seen is None:
            seen = qconfig.weight()
            seen(inner.weight)
        made = kind.from_float(inner, seen)
        if fused:
            module._modules["0"] = made
        else:
            placed(model, str(node.target), made)
        modules = dict(model.named_modules(remove_duplicate=False))


def run_time(model: GraphModule, observed: set[str]) -> None:
    """Layers whose arguments are quantised as the model runs, and tables whose weights alone are."""
    kinds = get_default_dynamic_quant_module_mappings()
    modules = dict(model.named_modules(remove_duplicate=False))
    for node in model.graph.nodes:
        module = module_of(node, modules)
        qconfig = getattr(module, "qconfig", None)
        if qconfig is None or node.name not in observed or type(module) not in kinds:
            continue
        activation, _, dynamic = forms(qconfig)
        if dynamic or activation in (dtypes.float32, dtypes.float16):
            placed(model, str(node.target), kinds[type(module)].from_float(module))
            modules = dict(model.named_modules(remove_duplicate=False))


PACKED = "_packed_weight_"


def packed_weights(module: Any, state: dict[str, Any], prefix: str, metadata: Any) -> None:
    """Have the state hold the weights that functions are given."""
    state.update({prefix + name: value for name, value in module.__dict__.items() if name.startswith(PACKED)})


def packed_again(module: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    """Take them from a state."""
    for name in [name for name in state if name.startswith(prefix + PACKED)]:
        setattr(module, name[len(prefix) :], state.pop(name))


def convert(
    model: GraphModule,
    is_reference: bool,
    custom: ConvertCustomConfig,
    remove_qconfig: bool,
    mapping: QConfigMapping | None,
) -> GraphModule:
    """The quantised model of a prepared one."""
    prepared: Prepared = model.meta["quantised"]
    model = copy.deepcopy(model)
    configs = dict(prepared.qconfigs)
    if mapping is not None:
        asked = qconfigs(
            model.graph, dict(model.named_modules(remove_duplicate=False)), prepared.scopes, mapping
        )
        configs = {name: config if asked.get(name) is not None else None for name, config in configs.items()}
    observed = {name for name in prepared.observed if configs.get(name) is not None}
    kinds = custom.observed_to_quantized_mapping.get(QuantType.STATIC, {})
    Rounding(model, prepared, configs, kinds).run()
    modules = dict(model.named_modules(remove_duplicate=False))
    customs: set[str] = set()
    for node in model.graph.nodes:
        module = module_of(node, modules)
        if module is None:
            continue
        if str(node.target) in prepared.standalone:
            placed(model, str(node.target), convert(module, is_reference, custom, remove_qconfig, None))
        elif kind_of(node, modules) in kinds:
            placed(model, str(node.target), kinds[type(module)].from_observed(module))
            customs.add(node.name)
    if is_reference:
        referred(model, observed)
        Lowering(
            model, prepared, set(), customs
        ).run()  # users' own modules alone, which take quantised tensors
    else:
        run_time(model, observed)
        Lowering(model, prepared, observed, customs).run()
    model.graph.eliminate_dead_code()
    made = GraphModule(model, model.graph)
    made._register_state_dict_hook(packed_weights)
    made._register_load_state_dict_pre_hook(packed_again, with_module=True)
    if remove_qconfig:
        for module in made.modules():
            if "qconfig" in module.__dict__:
                del module.qconfig
    return made
