"""A module traced: what it computes as a graph, what it reads as inputs, what it writes as outputs."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from .. import trees
from ..jax.open_sizes import strict_sizes
from ..jax.pure import pure
from ..nn.modules.module import Module
from ..nn.utils.stateless import call_with
from ..operators.generator import default_generator
from ..tensor import Tensor, array_of, wrap
from ..xla.x64 import x64
from .calls import ModuleCallEntry, ModuleCallSignature, Stack, forward_names
from .dims import Range, evaluate, size_of, symbols
from .graph import Graph, Node
from .recorder import Recorder
from .signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    TensorArgument,
)

__all__ = ["Slot", "Traced", "form", "named_state", "trace"]


@dataclass(frozen=True)
class Slot:
    """Stands for the tensor of that number in a tree of arguments or results."""

    index: int


class Traced(NamedTuple):
    """A traced module.

    arguments, result: trees of `Slot`s and other values. constants: tensors by their targets. draws: how many times it draws random numbers.
    calls: the modules, with the form of their calls where it was kept.
    """

    graph: Graph
    signature: ExportGraphSignature
    arguments: Any
    result: Any
    constants: dict[str, Tensor]
    draws: int
    calls: Sequence[ModuleCallEntry] = ()


def form(shape: Any, dtype: Any) -> jax.ShapeDtypeStruct:
    """A shape and dtype as JAX takes them."""
    return jax.ShapeDtypeStruct(tuple(shape), dtype.numpy)


def named_state(module: Module) -> dict[str, tuple[Tensor, bool | None]]:
    """Parameters and buffers by their names, each tensor once; with it whether a buffer is persistent, None for a parameter."""
    found: dict[str, tuple[Tensor, bool | None]] = {n: (p, None) for n, p in module.named_parameters()}
    for prefix, part in module.named_modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and all(buffer is not b for b, _ in found.values()):
                path = f"{prefix}.{name}" if prefix else name
                found[path] = (buffer, name not in part._non_persistent_buffers_set)
    return found


def leaf_names(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """A name for each leaf of the arguments, by the parameters of the function that takes them."""
    try:
        own = list(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        own = []
    plain = [p.name for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    found = []
    for path, _ in trees.tree_leaves_with_path((args, kwargs)):
        parts = [str(getattr(key, "idx", getattr(key, "key", getattr(key, "name", "")))) for key in path]
        kind, first, *rest = parts
        if kind == "0":
            first = plain[int(first)] if int(first) < len(plain) else f"args_{first}"
        found.append("_".join([first, *rest]))
    return found


@contextlib.contextmanager
def attributes_kept(module: Module) -> Iterator[None]:
    """A block after which the plain attributes of all modules are what they were: what was set is of the trace."""
    before = [(part, dict(part.__dict__)) for part in module.modules()]
    members = ("_parameters", "_buffers", "_modules")
    inner = [(part.__dict__[m], dict(part.__dict__[m])) for part in module.modules() for m in members]
    try:
        yield
    finally:
        for part, own in before:
            part.__dict__.clear()
            part.__dict__.update(own)
        for held, own in inner:
            held.clear()
            held.update(own)


def trace(
    module: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    sizes: list[Any],
    ranges: dict[str, Range],
    reading: Callable[[str], None] | None = None,
    preserved: Iterable[str] = (),
    stack: Stack | None = None,
) -> Traced:
    """Trace a call of a module. sizes: of each tensor among the arguments, ints and names of `ranges`. preserved: the names of modules
    whose calls' form is kept. stack: tells which modules run, where these are not the module's own.

    reading: what is told of each value that Python asks for, which then is as it was; operators run on the arguments' values for it.
    """
    leaves, structure = trees.tree_flatten((args, kwargs))
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    counter = iter(range(len(tensors)))
    arguments = trees.tree_unflatten(
        [Slot(next(counter)) if isinstance(v, Tensor) else v for v in leaves], structure
    )
    names = leaf_names(module.forward, args, kwargs)
    state = named_state(module)
    found: list[Traced] = []
    calls = Stack(module, preserved) if stack is None else stack

    def body(weights: dict[str, Any], given: list[Any], random: Any) -> None:
        title = type(module).__name__
        watching = pure(title, lambda: random) if reading is None else contextlib.nullcontext()
        inputs = [wrap(a, shared=True) for a in given]
        mine = {name: wrap(a, shared=True) for name, a in weights.items()}
        spread = iter(inputs)
        more, options = trees.tree_unflatten(
            [next(spread) if isinstance(v, Tensor) else v for v in leaves], structure
        )
        before = default_generator.draws
        with watching as watcher, attributes_kept(module):
            recording = Recording(state, mine, inputs, leaves, names, reading)
            given_state = dict(mine)
            recording.recorder.stack, calls.node_of = calls, recording.recorder.node
            with recording.recorder:
                result = call_with(module, given_state, more, options)
            drawn = default_generator.draws - before if watcher is None else watcher.drawn
            traced = recording.finish(given_state, result, arguments, drawn)
            forms = trees.tree_structure(arguments), trees.tree_structure(traced.result)
            whole = ModuleCallSignature([], [], *forms, forward_names(module.forward, args, kwargs))
            found.append(traced._replace(calls=calls.entries(whole)))

    if reading is not None:
        with calls.watching():
            body(
                {n: array_of(t.detach()) for n, (t, _) in state.items()},
                [array_of(t.detach()) for t in tensors],
                None,
            )
        return found[0]
    with x64(), calls.watching(), strict_sizes():
        known = symbols(ranges)
        weights = {name: form(t.shape, t.dtype) for name, (t, _) in state.items()}
        given = [
            form([evaluate(s, known) for s in shape], t.dtype)
            for shape, t in zip(sizes, tensors, strict=True)
        ]
        word = jax.ShapeDtypeStruct((), np.int64)
        jax.eval_shape(body, weights, given, (word, word))
    return found[0]


class Recording:
    """A graph and signature while they are made."""

    def __init__(
        self,
        state: dict[str, tuple[Tensor, bool | None]],
        mine: dict[str, Tensor],
        inputs: list[Tensor],
        leaves: list[Any],
        names: list[str],
        reading: Callable[[str], None] | None = None,
    ) -> None:
        self.graph = Graph()
        self.recorder = Recorder(self.graph, reading)
        self.signature = ExportGraphSignature()
        self.state: dict[str, tuple[Node, Tensor, Any]] = {}
        self.inputs: list[tuple[Node, Tensor, Any]] = []
        for name, (_, persistent) in state.items():
            is_parameter = persistent is None
            node = self.recorder.input(f"{'p' if is_parameter else 'b'}_{name}", mine[name])
            self.state[name] = (node, mine[name], mine[name]._xt_storage.array)
            kind = InputKind.PARAMETER if is_parameter else InputKind.BUFFER
            self.signature.input_specs.append(InputSpec(kind, TensorArgument(node.name), name, persistent))
        self.at = len(self.signature.input_specs)
        given = iter(inputs)
        for name, leaf in zip(names, leaves, strict=True):
            if isinstance(leaf, Tensor):
                tensor = next(given)
                node = self.recorder.input(name, tensor)
                self.inputs.append((node, tensor, tensor._xt_storage.array))
                argument: Any = TensorArgument(node.name)
            else:
                argument = ConstantArgument(name, leaf)
            self.signature.input_specs.append(InputSpec(InputKind.USER_INPUT, argument, None))

    def finish(self, state: dict[str, Tensor], result: Any, arguments: Any, draws: int) -> Traced:
        """The traced module. state: the tensors that the module has now."""
        outputs: list[Any] = []
        for name, (node, tensor, before) in self.state.items():
            now = state[name]
            if now is tensor and tensor._xt_storage.array is before:
                continue
            is_parameter = any(s.target == name and s.persistent is None for s in self.signature.input_specs)
            kind = OutputKind.PARAMETER_MUTATION if is_parameter else OutputKind.BUFFER_MUTATION
            outputs.append((kind, node if now is tensor else self.recorder.node(now), name))
        for node, tensor, before in self.inputs:
            if tensor._xt_storage.array is not before:
                outputs.append((OutputKind.USER_INPUT_MUTATION, node, node.name))
        leaves, structure = trees.tree_flatten(result)
        slots: list[Any] = []
        count = 0
        for leaf in leaves:
            if isinstance(leaf, Tensor):
                outputs.append((OutputKind.USER_OUTPUT, self.recorder.node(leaf), None))
                slots.append(Slot(count))
                count += 1
            else:
                leaf = size_of(leaf)
                outputs.append((OutputKind.USER_OUTPUT, leaf, None))
                slots.append(leaf)
        for kind, value, target in outputs:
            argument = TensorArgument(value.name) if isinstance(value, Node) else ConstantArgument("", value)
            self.signature.output_specs.append(OutputSpec(kind, argument, target))
        self.graph.output(tuple([value for _, value, _ in outputs]))
        constants = {}
        for name, tensor in self.recorder.constants.items():
            target = name.removeprefix("c_")
            constants[target] = tensor
            spec = InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(name), target)
            self.signature.input_specs.insert(self.at, spec)
            self.at += 1
        order = {s.arg.name: i for i, s in enumerate(self.signature.input_specs)}
        holders = [n for n in self.graph.nodes if n.op == "placeholder"]
        rest = [n for n in self.graph.nodes if n.op != "placeholder"]
        self.graph.nodes = [*sorted(holders, key=lambda n: order[n.name]), *rest]
        returned = trees.tree_unflatten(slots, structure)
        return Traced(self.graph, self.signature, arguments, returned, constants, draws)
