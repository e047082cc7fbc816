"""An exported program as modules again: the tree that the module had, each part with the operators of its calls."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from .. import fx, trees
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..operators.below.aten import packet
from .calls import ModuleCallSignature
from .dims import Size, evaluate
from .graph import Graph, Node, Subgraph, map_nodes
from .program import ExportedProgram
from .replay import called, placed
from .signature import InputKind, OutputKind, TensorArgument

__all__ = ["InterpreterModule", "UnflattenedModule", "unflatten"]


class InterpreterModule(Module):
    """A part of an exported program: a call runs the nodes of `graph`, by the parameters, buffers and modules that it has now."""

    def __init__(self, graph: fx.Graph | None = None) -> None:
        super().__init__()
        self.graph = graph or fx.Graph()
        self.graph.owning_module = self
        self._sizes: dict[str, int] = {}  # one of all parts

    @property
    def code(self) -> str:
        """The nodes as Python text."""
        return self.graph.python_code("self").src

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The text of a class with the nodes as its `forward`, and of the modules in it; printed too."""
        body = "".join(f"    {line}\n" for line in self.code.strip().splitlines())
        text = f"class {type(self).__name__}(torch.nn.Module):\n{body}"
        if print_output:
            print(text)
        return text

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the nodes give, for arguments in the order of the placeholders, or by their names."""
        given = iter(args)
        values: dict[Any, Any] = {}
        last = {used: node for node in self.graph.nodes for used in node.all_input_nodes}

        def value_of(value: Any) -> Any:
            if isinstance(value, Subgraph):
                return called(value, self._sizes)
            return values[value] if isinstance(value, fx.Node) else evaluate(value, self._sizes)

        for node in self.graph.nodes:
            if node.op == "placeholder":
                name = str(node.target)
                values[node] = kwargs[name] if name in kwargs else next(given)
                continue
            if node.op == "get_attr":
                values[node] = operator.attrgetter(str(node.target))(self)
                continue
            more, options = map_nodes((node.args, node.kwargs), value_of, (fx.Node, Size, Subgraph))
            if node.op == "output":
                return more[0]
            target: Any = self.get_submodule(str(node.target)) if node.op == "call_module" else node.target
            values[node] = target(*more, **placed(options))
            for used in node.all_input_nodes:
                if last[used] is node:
                    del values[used]
        raise RuntimeError("the exported program has no call of this module")


class UnflattenedModule(InterpreterModule):
    """An exported program with the modules that it was made of: parts can be looked at, called, and replaced by others.

    A part takes the values that its operators use from outside, or its own arguments where the program keeps the form of its calls.
    """

    def __init__(self, export_module: ExportedProgram) -> None:
        super().__init__()
        self._program = export_module
        Building(self, export_module).build()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the exported module gives for arguments of the same form."""
        inputs = self._program._inputs
        tensors = inputs.tensors(inputs.flat(args, kwargs))
        self._sizes.clear()
        self._sizes.update(inputs.check(tensors, self._program.range_constraints))
        return inputs.value(super().forward(*tensors), self._sizes)


def unflatten(module: ExportedProgram, flat_args_adapter: Any = None) -> UnflattenedModule:
    """The exported program as modules: with the names that they had, their own parameters, and as `graph` what their calls run.

    What `export` was told in `preserve_module_call_signature` is called as it was, and can be replaced by any module of such arguments;
    other parts take the values that their operators use.

    >>> program = xtensor.export.export(xtensor.nn.Sequential(xtensor.nn.Linear(3, 2)), (xtensor.ones(4, 3),))
    >>> [name for name, _ in xtensor.export.unflatten(program).named_modules()]
    ['', '0']
    """
    if flat_args_adapter is not None:
        raise NotImplementedError("xtensor.export.unflatten takes no flat_args_adapter")
    return UnflattenedModule(module)


class Borders(NamedTuple):
    """What a part's nodes take from outside, and what of theirs is used there."""

    inputs: list[Node]
    outputs: list[Node]


class Building:
    """The modules of a program while they are made."""

    def __init__(self, root: UnflattenedModule, program: ExportedProgram) -> None:
        self.root, self.program = root, program
        self.signatures = {e.fqn: e.signature for e in program._traced.calls if e.fqn}
        self.weights = {
            spec.arg.name: str(spec.target)
            for spec in program.graph_signature.input_specs
            if spec.kind is not InputKind.USER_INPUT
        }
        self.nodes = {node.name: node for node in program.graph.nodes}
        self.made: dict[str, list[tuple[str, str]]] = {}

    def build(self) -> None:
        """Fill the root with modules, weights and nodes."""
        for entry in self.program.module_call_graph:
            self._place(entry.fqn)
        tensors, own = self.program._tensors(), {}
        for name, tensor in tensors.items():
            path, _, last = name.rpartition(".")
            place = self._place(path)
            if id(tensor) not in own:
                values = tensor.detach().clone()
                parameter = isinstance(tensor, Parameter)
                own[id(tensor)] = (
                    Parameter(values, requires_grad=tensor.requires_grad) if parameter else values
                )
            if isinstance(own[id(tensor)], Parameter):
                place.register_parameter(last, own[id(tensor)])
            else:
                place.register_buffer(last, own[id(tensor)], persistent=name in self.program.state_dict)
        steps = self._with_writes()
        users = [
            s.arg.name for s in self.program.graph_signature.input_specs if s.kind is InputKind.USER_INPUT
        ]
        inputs = [self.nodes[name] for name in users if name in self.nodes]
        specs = self.program.graph_signature.output_specs
        results = self.program.graph.results
        outputs = [
            value
            for spec, value in zip(specs, results, strict=True)
            if spec.kind is OutputKind.USER_OUTPUT and isinstance(value, Node)
        ]
        writer = self._written("", 1, steps, Borders(inputs, outputs))
        self.root.graph = writer.graph
        writer.graph.owning_module = self.root
        writer.graph.output(tuple([writer.known[value] for value in outputs]))

    def _place(self, path: str) -> Module:
        """The module of a name, made where it is not there yet."""
        owner: Module = self.root
        for part in path.split(".") if path else ():
            if part not in owner._modules:
                made = InterpreterModule()
                made._sizes = self.root._sizes
                owner.add_module(part, made)
            owner = owner._modules[part]  # type: ignore[assignment]
        return owner

    def _with_writes(self) -> list[Node]:
        """The operators, with a copy for each weight or argument that gets a value it was not written in place, in the call that made the value."""
        steps = [node for node in self.program.graph.nodes if node.op == "call_function"]
        signature = self.program.graph_signature
        holders = {target: self.nodes[name] for name, target in self.weights.items()}
        copy = packet("copy_").overload("default")
        graph = Graph()
        for spec, value in zip(signature.output_specs, self.program.graph.results, strict=True):
            if spec.kind is OutputKind.USER_OUTPUT or not isinstance(value, Node):
                continue
            holder = holders.get(str(spec.target)) or self.nodes[str(spec.target)]
            if value is holder or value.meta.get("same") is holder or value not in steps:
                continue
            at = steps.index(value)
            keys = stack_of(value)
            while at + 1 < len(steps) and stack_of(steps[at + 1])[: len(keys)] == keys:
                at += 1
            node = Node(graph, graph.name("copy_"), "call_function", copy, (holder, value), {})
            node.meta = dict(value.meta)
            steps.insert(at + 1, node)
        return steps

    def _written(
        self, path: str, depth: int, steps: Sequence[Node], borders: Borders, writer: Writer | None = None
    ) -> Writer:
        """The nodes of one call of a module: its own operators, and calls of the modules in it."""
        writer = writer or Writer(path, self.weights)
        for node in borders.inputs:
            writer.known[node] = writer.graph.placeholder(node.name)
        for _, group in groupby(steps, key=lambda node: self._inner(node, path, depth)):
            run = list(group)
            inner = self._inner(run[0], path, depth)
            if inner is None:
                for node in run:
                    writer.step(node)
            else:
                self._call(writer, inner[1], depth + 1, run, steps, borders)
        return writer

    def _inner(self, node: Node, path: str, depth: int) -> tuple[str, str] | None:
        """The key and the name of the call within this one that a node is of."""
        stack = list(node.meta.get("nn_module_stack", {}).items())
        if len(stack) <= depth:
            return None
        key, (name, _) = stack[depth]
        # A module that is called from beside where it is has no name there.
        return (key, name) if name.startswith(f"{path}." if path else "") else None

    def _call(
        self, writer: Writer, name: str, depth: int, run: list[Node], steps: Sequence[Node], around: Borders
    ) -> None:
        """Write the call of a module, and make the module unless one of the same nodes is there."""
        inside = set(run)
        used = {n for node in steps if node not in inside for n in node.all_input_nodes}
        used.update(around.outputs)
        taken = dict.fromkeys(n for node in run for n in node.all_input_nodes if n not in inside)
        inputs = [n for n in taken if not self.weights.get(n.name, "").startswith(f"{name}.")]
        outputs = [n for n in run if n in used]
        signature = self.signatures.get(name) if name not in self.made else None
        if signature is not None and self._fits(signature, inputs, outputs):
            self._preserved(writer, name, depth, run, signature, outputs)
            return
        part = self._written(name, depth, run, Borders(inputs, outputs))
        results = [part.known[n] for n in outputs]
        part.graph.output(results[0] if len(results) == 1 else tuple(results))
        call = writer.graph.call_module(
            self._module(name, part.graph, writer.path), tuple(map(writer.value, inputs))
        )
        if len(outputs) == 1:
            writer.known[outputs[0]] = call
        else:
            for at, node in enumerate(outputs):
                writer.known[node] = writer.graph.call_function(operator.getitem, (call, at))

    def _fits(self, signature: ModuleCallSignature, inputs: list[Node], outputs: list[Node]) -> bool:
        """Whether a call takes and gives no more than its arguments and its result."""
        given = {each.name for each in signature.inputs}
        told = {each.name for each in signature.outputs}
        return all(n.name in given for n in inputs) and all(n.name in told for n in outputs)

    def _preserved(
        self,
        writer: Writer,
        name: str,
        depth: int,
        run: list[Node],
        signature: ModuleCallSignature,
        outputs: list[Node],
    ) -> None:
        """Write a call with the arguments and the result that the module had."""

        def value_of(argument: Any, known: Callable[[Node], Any]) -> Any:
            if isinstance(argument, TensorArgument):
                return known(self.nodes[argument.name])
            return argument.value

        part = Writer(name, self.weights)
        leaves = iter(signature.inputs)
        (positional, named) = signature.in_spec.children()
        names = [f"_positional_arg_{at}" for at in range(positional.num_children)]
        for title, spec in zip(
            [*names, *named.context], [*positional.children(), *named.children()], strict=True
        ):
            holder = part.graph.placeholder(title)
            own = [next(leaves) for _ in range(spec.num_leaves)]
            flat = None if spec.is_leaf() else part.graph.call_function(trees.tree_leaves, (holder,))
            for at, leaf in enumerate(own):
                if isinstance(leaf, TensorArgument):
                    part.known[self.nodes[leaf.name]] = (
                        holder if flat is None else part.graph.call_function(operator.getitem, (flat, at))
                    )
        inner = self._written(name, depth, run, Borders([], outputs), part)
        result = trees.tree_unflatten(
            [value_of(v, inner.value) for v in signature.outputs], signature.out_spec
        )
        inner.graph.output(result)
        args, kwargs = trees.tree_unflatten(
            [value_of(v, writer.value) for v in signature.inputs], signature.in_spec
        )
        call = writer.graph.call_module(self._module(name, inner.graph, writer.path), args, kwargs)
        if signature.out_spec.is_leaf():
            found: Iterable[Any] = [call]
        else:
            flat = writer.graph.call_function(trees.tree_leaves, (call,))
            found = (
                writer.graph.call_function(operator.getitem, (flat, at))
                for at in range(len(signature.outputs))
            )
        for leaf, node in zip(signature.outputs, found, strict=True):
            if isinstance(leaf, TensorArgument):
                writer.known[self.nodes[leaf.name]] = node

    def _module(self, name: str, graph: fx.Graph, path: str) -> str:
        """The name, within the module at `path`, of the module that runs these nodes: another call's, where the nodes are the same."""
        text = form_of(graph)
        known = self.made.setdefault(name, [])
        for title, form in known:
            if form == text:
                return title[len(path) + 1 if path else 0 :]
        title = f"{name}@{len(known)}" if known else name
        known.append((title, text))
        module: Any = self._place(title)
        module.graph, graph.owning_module = graph, module
        if title != name:
            self._share(name, module)
        return title[len(path) + 1 if path else 0 :]

    def _share(self, name: str, module: Module) -> None:
        """Give the module of another call the weights and modules of the first."""
        first = self._place(name)
        for own, members in ((module._parameters, first._parameters), (module._buffers, first._buffers)):
            own.update(members)  # type: ignore[arg-type]
        for title, inner in first._modules.items():
            module._modules.setdefault(title, inner)


class Writer:
    """The nodes of one module while they are written. known: what stands there for the program's nodes."""

    def __init__(self, path: str, weights: dict[str, str]) -> None:
        self.path, self.weights = path, weights
        self.graph = fx.Graph()
        self.known: dict[Node, fx.Node] = {}

    def value(self, node: Node) -> fx.Node:
        """What stands for a node here: of a weight, the module's attribute."""
        found = self.known.get(node)
        if found is None:
            name = self.weights[node.name][len(self.path) + 1 if self.path else 0 :]
            found = self.known[node] = self.graph.get_attr(name)
        return found

    def step(self, node: Node) -> None:
        """Write an operator."""
        args, kwargs = map_nodes((node.args, node.kwargs), self.value)
        made = self.known[node] = self.graph.create_node(
            "call_function", node.target, args, kwargs, node.name
        )
        made.meta.update(node.meta)


def stack_of(node: Node) -> list[str]:
    """The keys of the calls that a node is of."""
    return list(node.meta.get("nn_module_stack", {}))


def form_of(graph: fx.Graph) -> str:
    """The nodes as text that is the same for the same nodes of other names."""
    numbers = {node: f"%{at}" for at, node in enumerate(graph.nodes)}

    def lines() -> Iterator[str]:
        for node in graph.nodes:
            args = map_nodes((node.args, node.kwargs), numbers.__getitem__, fx.Node)
            title = "" if node.op == "placeholder" else node.target
            yield f"{node.op} {title} {args}"

    return "\n".join(lines())
