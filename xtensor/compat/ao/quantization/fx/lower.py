"""Operators between roundings as quantised ones: `quantize(f(dequantize(x)))` becomes `quantised_f(x)` where there is one."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

from ..... import dtypes
from .....fx.graph_module import GraphModule
from .....fx.node import Node, map_arg
from .....nn import functional as F
from .....nn.modules import activation
from .....nn.modules.module import Module
from ...nn.quantized import Softmax
from ..backend_config.native import KEEPING_FUNCTIONS, KEEPING_METHODS, KEEPING_MODULES, KEEPING_OPERATORS
from ..quantization_mappings import get_default_static_quant_module_mappings
from .fuse import placed
from .patterns import module_of
from .prepare import Prepared, forms, free_name

__all__ = ["Lowering", "library"]

BOUNDED = ("hardsigmoid", "hardsigmoid_", "sigmoid", "sigmoid_", "tanh", "tanh_")
"""Methods whose results lie between known numbers."""
SCALED = ("elu", "hardswish", "leaky_relu", "layer_norm", "instance_norm", "group_norm", "dropout")
"""Of `nn.functional`: what quantised operators give by a scale of their own."""

DROPPED = ("inplace", "training", "running_mean", "running_var", "use_input_stats", "momentum")
"""Arguments that quantised operators do not have."""


def library() -> Any:
    """The package, whose functions are targets of graphs."""
    return sys.modules[__name__.partition(".")[0]]


class Known:
    """Stands for an observer that has seen all it will."""

    is_dynamic = False

    def __init__(self, scale: Any, zero_point: Any, dtype: Any) -> None:
        self.found, self.dtype = (scale, zero_point), dtype

    def calculate_qparams(self) -> tuple[Any, Any]:
        """The scale and the zero point."""
        return self.found


class Lowering:
    """A graph with roundings while operators between them become quantised ones."""

    def __init__(self, model: GraphModule, prepared: Prepared, observed: set[str], customs: set[str]) -> None:
        self.model, self.graph = model, model.graph
        self.observed, self.customs, self.configs = observed, customs, prepared.qconfigs
        self.modules: dict[str, Module] = dict(model.named_modules(remove_duplicate=False))
        self.floats = dict(self.modules)
        self.kinds = get_default_static_quant_module_mappings()
        own = library()
        self.round = own.quantize_per_tensor
        self.relus = (F.relu, own.relu)
        self.pairs = {operator.add: "add", own.add: "add", operator.mul: "mul", own.mul: "mul"}
        self.keeping = {
            *[getattr(F, name) for name in KEEPING_FUNCTIONS],
            *[getattr(own, name) for name in KEEPING_OPERATORS],
            operator.floordiv, own.sigmoid, own.tanh, F.hardsigmoid,
        }  # fmt: skip
        self.scaled = {getattr(F, name): name for name in SCALED}
        self.products: dict[Any, str] = {F.linear: "linear"}

    def run(self) -> None:
        """Lower all that can be."""
        for node in list(self.graph.nodes):
            if node.op == "call_function" and node.target is self.round:
                self._result(node)
        self._run_time()

    # -- what stands before a rounding

    def _result(self, rounding: Node) -> None:
        value: Any = rounding.args[0]
        if not isinstance(value, Node) or (
            value.name not in self.observed and value.name not in self.customs
        ):
            return
        relu = None
        if self._is_relu(value):
            before: Any = value.args[0]
            paired = isinstance(before, Node) and before.op == "call_function"
            if (
                paired
                and (before.target in self.pairs or before.target in self.products)
                and before.name in self.observed
            ):
                relu, value = value, before
        lower = self._lowered(value, relu)
        if lower is None:
            return
        made = lower(value, relu, rounding)
        if made is not None:
            rounding.replace_all_uses_with(made)
            self.graph.erase_node(rounding)
            for old in (relu, value):
                if old is not None and old is not made and not old.users:
                    self.graph.erase_node(old)

    def _is_relu(self, node: Node) -> bool:
        module = module_of(node, self.modules)
        return isinstance(module, activation.ReLU) or (
            node.op == "call_function" and node.target in self.relus
        )

    def _lowered(self, node: Node, relu: Node | None) -> Callable[..., Any] | None:
        """What lowers an operator; None for one that stays in real numbers."""
        module = module_of(node, self.floats)
        if module is not None:
            kind = type(module)
            if node.name in self.customs:
                return self._kept
            if kind is activation.Softmax or kind in self.kinds:
                return self._module
            return (
                self._kept
                if kind in KEEPING_MODULES
                or kind in (activation.Sigmoid, activation.Tanh, activation.Hardsigmoid)
                else None
            )
        if node.op == "call_method":
            return self._kept if node.target in (*KEEPING_METHODS, *BOUNDED) else None
        if node.target in self.pairs:
            return self._pair
        if node.target is library().matmul:
            return self._matmul
        if node.target in self.products:
            return self._product
        if node.target in self.scaled:
            return self._scaled
        return self._kept if node.target in self.keeping else None

    def _quantised(self, value: Any) -> Any:
        """What was made real for an operator, as it was before."""
        return map_arg(
            value, lambda n: n.args[0] if n.op == "call_method" and n.target == "dequantize" else n
        )

    def _is_quantised(self, node: Any) -> bool:
        return isinstance(node, Node) and node.op == "call_method" and node.target == "dequantize"

    def _first(self, node: Node) -> bool:
        """Whether an operator's first argument, or all of a list, was quantised."""
        first = node.args[0]
        return (
            all(map(self._is_quantised, first))
            if isinstance(first, (list, tuple))
            else self._is_quantised(first)
        )

    def _kept(self, node: Node, relu: Any, rounding: Node) -> Node | None:
        """The same operator, of quantised tensors."""
        if not self._first(node):
            return None
        node.args, node.kwargs = self._quantised(node.args), self._quantised(node.kwargs)
        return node

    def _module(self, node: Node, relu: Any, rounding: Node) -> Node | None:
        """A quantised layer; a layer that is called twice has the scale of its last call."""
        if not self._first(node):
            return None
        module: Any = self.floats[str(node.target)]
        scale, zero_point = [self._number(each) for each in rounding.args[1:3]]
        module.activation_post_process = Known(scale, zero_point, rounding.args[3])
        kind = self.kinds.get(type(module))
        made = (kind or Softmax).from_float(module)
        placed(self.model, str(node.target), made)
        self.modules[str(node.target)] = made
        return self._kept(node, relu, rounding)

    def _number(self, node: Any) -> Any:
        """The value of an attribute."""
        found: Any = self.model
        for part in str(node.target).split("."):
            found = getattr(found, part)
        return found

    def _operator(self, name: str) -> Any:
        return getattr(library().ops.quantized, name)

    def _pair(self, node: Node, relu: Node | None, rounding: Node) -> Node | None:
        """A sum or a product, of two tensors or of one and a number."""
        values = list(node.args)
        tensors = [v for v in values if isinstance(v, Node)]
        if not tensors or not all(map(self._is_quantised, tensors)):
            return None
        name = self.pairs[node.target] + ("_relu" if relu is not None else "")
        scales = tuple(rounding.args[1:3]) if len(tensors) == 2 else ()
        with self.graph.inserting_before(rounding):
            return self.graph.call_function(
                self._operator(name), (*self._quantised(tuple(values)), *scales), {}
            )

    def _matmul(self, node: Node, relu: Any, rounding: Node) -> Node | None:
        if not all(map(self._is_quantised, node.args[:2])):
            return None
        with self.graph.inserting_before(rounding):
            return self.graph.call_function(
                self._operator("matmul"), (*self._quantised(node.args), *rounding.args[1:3])
            )

    def _scaled(self, node: Node, relu: Any, rounding: Node) -> Node | None:
        """A function whose quantised form takes a scale and a zero point."""
        if not self._first(node):
            return None
        name = self.scaled[node.target]
        kept = ("inplace",) if name == "leaky_relu" else ()
        kwargs = {k: v for k, v in node.kwargs.items() if k not in DROPPED or k in kept}
        kwargs |= {"output_scale": rounding.args[1], "output_zero_point": rounding.args[2]}
        with self.graph.inserting_before(rounding):
            return self.graph.call_function(
                self._operator(name), self._quantised(node.args), self._quantised(kwargs)
            )

    # -- products by weights that are arguments

    def _product(self, node: Node, relu: Node | None, rounding: Node) -> Node | None:
        """A product by a weight that is packed now."""
        name = self.products[node.target]
        packed = self._packed(node, f"{name}_prepack") if self._first(node) else None
        if packed is None:
            return None
        for each in rounding.args[1:3]:
            node.prepend(each)
        node.target = self._operator(f"{name}_relu" if relu is not None else name)
        node.args, node.kwargs = (self._quantised(node.args[0]), packed, *rounding.args[1:3]), {}
        return node

    def _packed(self, node: Node, prepack: str, half: bool = False) -> Node | None:
        """A node for the packed weight and bias of a product; None where these are made as the model runs."""
        given = (
            dict(zip(("input", "weight", "bias", "stride", "padding", "dilation", "groups"), node.args))
            | node.kwargs
        )
        weight, bias = given["weight"], given.get("bias")
        if not (bias is None or (isinstance(bias, Node) and bias.op == "get_attr")):
            return None
        if half:
            if weight.op != "get_attr":
                return None
            value = self._number(weight)
        else:
            rounded = weight.args[0] if self._is_quantised(weight) else None
            if rounded is None or rounded.args[0].op != "get_attr":
                return None
            args = [self._number(a) if isinstance(a, Node) else a for a in rounded.args]
            value = rounded.target(args[0].detach(), *args[1:])
        made = self._operator(prepack)(value, None if bias is None else self._number(bias))
        name = free_name(self.model, "_packed_weight_")
        setattr(self.model, name, made)
        with self.graph.inserting_before(node):
            return self.graph.get_attr(name)

    def _run_time(self) -> None:
        """Products whose arguments are quantised as the model runs."""
        for node in list(self.graph.nodes):
            if node.op != "call_function" or node.target is not F.linear or node.name not in self.observed:
                continue
            qconfig = self.configs.get(node.name)
            if qconfig is None:
                continue
            kind, _, dynamic = forms(qconfig)
            if not dynamic or self._is_quantised(node.args[0]):
                continue
            half = kind is dtypes.float16
            packed = self._packed(node, "linear_prepack_fp16" if half else "linear_prepack", half)
            if packed is None:
                continue
            users: list[Any] = list(node.users)
            relu = users[0] if len(users) == 1 else node
            fused = self._is_relu(relu) and relu.name in self.observed
            name = "linear_relu_dynamic" if fused else "linear_dynamic"
            reduced = library().backends.quantized.engine in ("fbgemm", "x86")
            node.target = self._operator(name + ("_fp16" if half else ""))
            node.args, node.kwargs = (node.args[0], packed, *(() if half else (reduced,))), {}
            if fused:
                relu.replace_all_uses_with(node)
                self.graph.erase_node(relu)
