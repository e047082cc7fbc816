"""Graphs run node by node: to watch values, or to make another graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..nn.modules.module import Module
from . import traceback as fx_traceback
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, Node, Target, map_aggregate, map_arg
from .proxy import Proxy
from .tracer import Tracer

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph's nodes one after another; subclasses say what a node of an opcode does.

    garbage_collect_values: values go when nobody needs them any more. `env` holds those of the nodes that have run.

    >>> class Loud(xtensor.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         print(target.__name__)
    ...         return super().call_function(target, args, kwargs)
    >>> traced = xtensor.fx.symbolic_trace(lambda x: xtensor.relu(x) + 1)
    >>> Loud(traced).run(xtensor.tensor([-1.0, 2.0]))
    relu
    add
    tensor([1., 3.])
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module: Any = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else self.module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            seen: set[Node] = set()
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in seen:
                        seen.add(used)
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ) -> Any:
        """What the graph gives for these inputs.

        initial_env: values of nodes that are known, and not run.
        """
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    said = f"While executing {node.format_node()}"
                    said = f"{error.args[0]}\n\n{said}" if error.args else said
                    said += f"\nOriginal traceback:\n{node.stack_trace}"
                    error.args = (said, *error.args[1:])
                raise
            for used in self.user_to_last_uses.get(node, ()):
                del self.env[used]
            if node.op == "output":
                made = self.env[node]
                return self.graph.process_outputs(made) if enable_io_processing else made
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run` with the inputs in a list, which is emptied, so that they can go while the graph runs."""
        inputs = [node for node in self.graph.nodes if node.op == "placeholder"]
        env = dict(zip(inputs, args_list, strict=True))
        args_list.clear()
        return self.run(initial_env=env)

    def run_node(self, n: Node) -> Any:
        """The value of one node, by the method of its opcode."""
        with fx_traceback.set_current_meta(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The next input."""
        if str(target).startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """An attribute's value."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A function's result."""
        assert not isinstance(target, str)
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A method's result."""
        of, *rest = args
        return getattr(of, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A submodule's result."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What the graph gives."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What stands under a path of the module; RuntimeError where there is nothing."""
        found: Any = self.module
        parts = target.split(".")
        for i, name in enumerate(parts):
            if not hasattr(found, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(parts[: i + 1])}")
            found = getattr(found, name)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A node's arguments, as values."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """An argument with the values of its nodes; RuntimeError for a node that has not run."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class TransformerTracer(Tracer):
    """A tracer that adds to a graph, and enters no module."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph
        self.tensor_attrs = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """An interpreter whose values are proxies: what its methods do becomes the graph that `transform()` gives.

    >>> class Swapped(xtensor.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return super().call_function(xtensor.sigmoid if target is xtensor.relu else target, args, kwargs)
    >>> traced = xtensor.fx.symbolic_trace(lambda x: xtensor.relu(x) + 1)
    >>> print(Swapped(traced).transform().code.strip())
    def forward(self, x):
        sigmoid = xtensor.sigmoid(x);  x = None
        add = sigmoid + 1;  sigmoid = None
        return add
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A placeholder of the new graph."""
        return Proxy(
            self.new_graph.placeholder(str(target), default_value=args[0] if args else ...), self.tracer
        )

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The call in the new graph."""
        return self.tracer.call_module(self.fetch_attr(str(target)), self.module.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The call in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph, with the old one's submodules."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()

            def bare(value: Argument) -> Argument:
                return value.node if isinstance(value, Proxy) else value

            made = self.new_graph.output(map_aggregate(result, bare), type_expr=old.type)
            made.meta.update(old.meta)
        return GraphModule(self.module, self.new_graph)
