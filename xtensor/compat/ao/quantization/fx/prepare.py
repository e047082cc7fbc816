"""Observers put into a graph: at what quantised operators take and give."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

from ..... import dtypes
from .....fx.graph_module import GraphModule
from .....fx.node import Node
from .....nn.modules.container import Sequential
from .....nn.modules.module import Module
from .....nn.modules.rnn import LSTM
from ...nn.intrinsic.modules.fused import _FusedModule
from ..backend_config import BackendConfig, ObservationType
from ..fake_quantize import FakeQuantizeBase
from ..observer import ObserverBase, ReuseInputObserver
from ..qconfig_mapping import QConfigMapping
from ..quant_type import QuantType
from .custom_config import PrepareCustomConfig
from .fuse import placed
from .patterns import Match, kind_of, matches, module_of, qconfigs, weighted

__all__ = ["Prepared", "free_name", "is_observer", "prepare"]

QUANTISED = (dtypes.quint8, dtypes.qint8, dtypes.qint32, dtypes.float16, dtypes.uint8, dtypes.int8)
SIZES = ("size", "dim", "numel", "ndimension", "__len__", "stride")
ARITHMETIC = (
    operator.getitem,
    operator.add,
    operator.sub,
    operator.mul,
    operator.floordiv,
    operator.mod,
    getattr,
)


class Prepared(NamedTuple):
    """What is known of a prepared model: kept under "quantised" in its `meta`.

    scopes: the module that each node is of. qconfigs, observed: by nodes' names. standalone: the modules that were prepared by themselves, and how.
    """

    scopes: dict[str, tuple[str, Any]]
    qconfigs: dict[str, Any]
    observed: set[str]
    backend: BackendConfig
    config: PrepareCustomConfig
    standalone: dict[str, PrepareCustomConfig]


def is_observer(node: Any, modules: dict[str, Module]) -> bool:
    """Whether a node calls an observer, or what rounds as one."""
    return isinstance(module_of(node, modules), (ObserverBase, FakeQuantizeBase))


def free_name(model: Module, prefix: str) -> str:
    """The prefix with the first number that the model has no attribute of."""
    prefix = prefix.replace(".", "_")
    number = 0
    while hasattr(model, f"{prefix}{number}"):
        number += 1
    return f"{prefix}{number}"


def forms(qconfig: Any) -> tuple[Any, Any, bool]:
    """The dtypes of activations and weights, and whether activations are looked at as the model runs."""
    activation, weight = qconfig.activation(), qconfig.weight()
    return activation.dtype, weight.dtype, bool(getattr(activation, "is_dynamic", False))


def is_supported(match: Match, qconfig: Any) -> bool:
    """Whether the backend has the pattern with a qconfig's dtypes."""
    activation, _, dynamic = forms(qconfig)
    return any(
        config.input_dtype is activation
        and bool(config.is_dynamic) is dynamic
        and config.output_dtype is (dtypes.float32 if dynamic else activation)
        for config in match.config.dtype_configs
    )


class Preparing:
    """A graph while observers are put into it."""

    def __init__(
        self,
        model: GraphModule,
        configs: dict[str, Any],
        backend: BackendConfig,
        custom: PrepareCustomConfig,
        standalone: dict[str, PrepareCustomConfig],
    ) -> None:
        self.model, self.configs, self.backend, self.custom = model, configs, backend, custom
        self.standalone = standalone
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.numbers: set[Node] = set()
        self.given: set[Node] = set()
        self.observed: set[str] = set()

    def run(self) -> None:
        """Put observers at all matched operators, in the order in which they run."""
        graph = self.model.graph
        kinds = self.custom.float_to_observed_mapping.get(QuantType.STATIC, {})
        customs = {
            node: kinds[kind_of(node, self.modules)]
            for node in graph.nodes
            if kind_of(node, self.modules) in kinds
        }
        if any(kind_of(node, self.modules) is LSTM for node in customs):
            raise NotImplementedError(
                "prepare_fx: LSTM layers of several results are not observed as graphs; quantise them dynamically, or in eager mode"
            )
        skipped = {node for node in graph.nodes if str(node.target) in self.standalone or node in customs}
        every = matches(graph, self.modules, self.backend.configs, skipped)
        firsts = {match.nodes[0]: match for match in every}
        lasts = {match.nodes[-1]: match for match in every}
        places = [node for node in graph.nodes if node.op == "placeholder"]
        self.given.update(places[at] for at in self.custom.input_quantized_indexes)
        for node in list(graph.nodes):
            if self._is_number(node):
                self.numbers.add(node)
                continue
            if node.op == "output":
                self._results(node)
                continue
            qconfig = self.configs.get(node.name)
            if qconfig is None:
                continue
            if node in customs:
                self._inputs(node, qconfig, {})
                self._output(node, qconfig, None)
                module = module_of(node, self.modules)
                module.qconfig = qconfig
                made = customs[node].from_float(module)
                made.qconfig = qconfig
                placed(self.model, str(node.target), made)
                self.observed.add(node.name)
            elif str(node.target) in self.standalone:
                self.observed.add(node.name)
                own_config = self.standalone[str(node.target)]
                for at in own_config.input_quantized_indexes:
                    self._inputs(node, qconfig, {}, only=at)
                if own_config.output_quantized_indexes:
                    self.given.add(node)
            for match in (firsts.get(node), lasts.get(node)):
                own = None if match is None else self.configs.get(match.nodes[-1].name)
                if match is None or own is None or not is_supported(match, own):
                    continue
                if match.config.observation_type is ObservationType.INPUT_OUTPUT_NOT_OBSERVED:
                    continue
                self.observed.update(each.name for each in match.nodes)
                for each in match.nodes:
                    module = module_of(each, self.modules)
                    if module is not None:
                        module.qconfig = own
                    if isinstance(module, _FusedModule) and isinstance(module, Sequential):
                        module[0].qconfig = own
                if match is firsts.get(node):
                    roles = weighted(self.backend, kind_of(node, self.modules))
                    rounds = any(c.weight_dtype in QUANTISED for c in match.config.dtype_configs)
                    self._inputs(node, own, roles, rounds)
                if match is lasts.get(node):
                    self._output(node, own, match)
                if match is firsts.get(node) is lasts.get(node):
                    break

    def _is_number(self, node: Node) -> bool:
        """Whether a node gives no tensor: a size, or what is made of sizes."""
        if node.op == "call_method":
            return node.target in SIZES
        if node.op != "call_function" or node.target not in ARITHMETIC:
            return False
        if node.target is getattr:
            return node.args[1] in ("shape", "ndim", "dtype", "device", "is_cuda")
        used = node.all_input_nodes
        return bool(used) and all(each in self.numbers for each in used)

    def dtype_of(self, node: Node) -> tuple[Any, bool]:
        """What a node gives: the dtype that its observer rounds to, else real numbers; and whether only then, as the model runs."""
        module = module_of(node, self.modules)
        if isinstance(module, (ObserverBase, FakeQuantizeBase)):
            return module.dtype, bool(getattr(module, "is_dynamic", False))
        return (dtypes.quint8, False) if node in self.given else (dtypes.float32, False)

    def _observer(self, node: Node, made: Any) -> Node:
        """Put an observer behind a node."""
        name = free_name(self.model, "activation_post_process_")
        setattr(self.model, name, made)
        self.modules[name] = made
        with self.model.graph.inserting_after(node):
            return self.model.graph.call_module(name, (node,))

    def _inputs(
        self, node: Node, qconfig: Any, roles: dict[str, int], rounds: bool = False, only: int | None = None
    ) -> None:
        """Observe what an operator takes; its weight only where that is rounded; only: of which argument alone."""
        weight, bias = roles.get("weight"), roles.get("bias")

        def seen(value: Any, at: Any) -> Any:
            if isinstance(value, (list, tuple)):
                return type(value)([seen(each, at) for each in value])
            if (
                not isinstance(value, Node)
                or value in self.numbers
                or (at is not None and at in (bias, "bias"))
            ):
                return value
            if not rounds and at is not None and at in (weight, "weight"):
                return value
            made = qconfig.weight() if at is not None and at in (weight, "weight") else qconfig.activation()
            if isinstance(made, ReuseInputObserver):
                return value
            dynamic = bool(getattr(made, "is_dynamic", False))
            if dynamic and value is not node.args[0]:
                return value
            now, _ = self.dtype_of(value)
            if made.dtype not in QUANTISED or now is made.dtype:
                return value
            if not (now is dtypes.float32 or now in QUANTISED):
                return value
            for user in value.users:
                known = module_of(user, self.modules)
                if type(known) is type(made) and known.dtype is made.dtype:
                    return user
            return self._observer(value, made)

        node.args = tuple([seen(v, at) if only in (None, at) else v for at, v in enumerate(node.args)])
        node.kwargs = {name: seen(value, name) for name, value in node.kwargs.items()}

    def _output(self, node: Node, qconfig: Any, match: Match | None) -> None:
        """Observe what an operator gives, by an observer of its own or that of its argument."""
        made = qconfig.activation()
        if made.dtype not in QUANTISED or getattr(made, "is_dynamic", False):
            return
        users = list(node.users)
        new = self._observer(node, made)
        for user in users:
            user.replace_input_with(node, new)
        shared = isinstance(made, ReuseInputObserver)
        if match is not None:
            how = match.config.observation_type
            counts = match.config._num_tensor_args_to_observation_type
            if counts:
                tensors = [v for v in match.nodes[0].args if isinstance(v, Node) and v not in self.numbers]
                how = counts[len(tensors)]
            shared = shared or how is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
        if shared and not self._share(match.nodes[0] if match else node, new):
            new.replace_all_uses_with(node)
            self.model.graph.erase_node(new)

    def _share(self, node: Node, result: Node) -> bool:
        """Have the result, and arguments of a list, observed by the first argument's observer; False where it has none."""
        first = next((v for v in node.args if isinstance(v, (Node, list, tuple))), None)
        values = list(first) if isinstance(first, (list, tuple)) else [first]
        observers = []
        for value in values:
            while isinstance(value, Node) and not is_observer(value, self.modules):
                value = next((v for v in value.args if isinstance(v, Node)), None)
            if not isinstance(value, Node):
                return False
            observers.append(value)
        kept = module_of(observers[0], self.modules)
        for each in (*observers[1:], result):
            placed(self.model, str(each.target), kept)
            self.modules[str(each.target)] = kept
        return True

    def _results(self, node: Node) -> None:
        """Observe results that are to be quantised; `None` and what is no tensor stays."""
        wanted = self.custom.output_quantized_indexes
        results = node.args[0] if isinstance(node.args[0], (list, tuple)) else (node.args[0],)
        for at in wanted:
            value = results[at]
            qconfig = self.configs.get(value.name) if isinstance(value, Node) else None
            if qconfig is not None and self.dtype_of(value)[0] is dtypes.float32:
                new = self._observer(value, qconfig.activation())
                node.replace_input_with(value, new)


def prepare(
    model: GraphModule,
    mapping: QConfigMapping,
    is_qat: bool,
    scopes: dict[str, tuple[str, Any]],
    custom: PrepareCustomConfig,
    backend: BackendConfig,
    standalone: dict[str, PrepareCustomConfig],
) -> GraphModule:
    """The model with observers, or in training with what rounds as they say."""
    configs = qconfigs(model.graph, dict(model.named_modules(remove_duplicate=False)), scopes, mapping)
    if is_qat:
        trained(model, configs, backend)
    working = Preparing(model, configs, backend, custom, standalone)
    working.run()
    made = GraphModule(model, model.graph)
    made.meta["quantised"] = Prepared(scopes, configs, working.observed, backend, custom, standalone)
    return made


def trained(model: GraphModule, configs: dict[str, Any], backend: BackendConfig) -> None:
    """Put modules that round their weights in the place of those that can be trained so."""
    modules = dict(model.named_modules(remove_duplicate=False))
    for node in model.graph.nodes:
        qconfig, module = configs.get(node.name), module_of(node, modules)
        known = backend._by_pattern.get(type(module))
        if module is None or qconfig is None or known is None or known.qat_module in (None, type(module)):
            continue
        if known.dtype_configs and not is_supported(Match((node,), known), qconfig):
            continue
        module.qconfig = qconfig
        if isinstance(module, _FusedModule):
            module[0].qconfig = qconfig
        made = known.qat_module.from_float(module)
        placed(model, str(node.target), made)
        modules[str(node.target)] = made
