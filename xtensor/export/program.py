"""`export`, and what it gives: a program with its weights, to be run, read, changed, lowered and kept in a file."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import devices, trees
from ..engine import no_grad
from ..jax.pure import TraceError, line_of_user
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..storage import MetaArray
from ..tensor import Tensor, array_of, wrap
from ..xla.x64 import call, x64
from .calls import CallSpec, Stack
from .dims import (
    AUTOMATIC,
    Range,
    Size,
    bound_sizes,
    combined_arguments,
    evaluate,
    multiplied,
    named_sizes,
)
from .dynamic_shapes import AdditionalInputs, ShapesCollection
from .graph import Graph, GraphModule
from .lowering import PLATFORMS, lower, random_words, weights_of
from .replay import replay
from .signature import ExportGraphSignature, InputKind, OutputKind, TensorArgument
from .tracing import Slot, Traced, trace

__all__ = ["ExportedModule", "ExportedProgram", "export", "program_with_weights"]


NOTHING: Mapping[Any, Any] = {}


class Inputs:
    """How arguments become the inputs of a program, and its outputs a result."""

    def __init__(self, signature: ExportGraphSignature, graph: Graph, arguments: Any, result: Any) -> None:
        self.arguments, self.result = arguments, result
        leaves, self.structure = trees.tree_flatten(arguments, is_leaf=is_slot)
        self.leaves = leaves
        nodes = {node.name: node for node in graph.nodes if node.op == "placeholder"}
        users = [s for s in signature.input_specs if s.kind is InputKind.USER_INPUT]
        self.names = [s.arg.name for s in users]
        self.metas = [nodes[s.arg.name].meta["val"] for s in users if s.arg.name in nodes]

    def flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of arguments of the same structure; ValueError where it is another."""
        order = {name: kwargs[name] for name in self.arguments[1] if name in kwargs}
        leaves, structure = trees.tree_flatten((tuple(args), {**order, **kwargs}))
        if structure != self.structure:
            raise ValueError(
                f"Trying to flatten user inputs with exported input tree spec: \n{self.structure}\nbut actually got inputs with "
                f"tree spec of: \n{structure}.\nPlease check that the inputs have the same number and type of args and kwargs "
                "as the ones you used when tracing."
            )
        return leaves

    def tensors(self, leaves: Sequence[Any]) -> list[Tensor]:
        """The tensors among the leaves; AssertionError where a value is another, TypeError where one is no tensor."""
        found = []
        for name, told, leaf in zip(self.names, self.leaves, leaves, strict=True):
            if isinstance(told, Slot):
                if not isinstance(leaf, Tensor):
                    raise TypeError(f"{name}: a tensor is expected, got {type(leaf).__name__}")
                found.append(leaf)
            elif type(told) is not type(leaf) or told != leaf:
                raise AssertionError(f"Guard failed: {name} == {told!r}")
        return found

    def check(self, tensors: Sequence[Tensor], ranges: Mapping[str, Range]) -> dict[str, int]:
        """The values of open sizes; AssertionError where sizes or dtypes are not those that the program is for."""
        names = [n for n, told in zip(self.names, self.leaves, strict=True) if isinstance(told, Slot)]
        known = bound_sizes([m.shape for m in self.metas], [t.shape for t in tensors])
        for name, meta, tensor in zip(names, self.metas, tensors, strict=True):
            if len(tensor.shape) != len(meta.shape):
                raise AssertionError(f"Guard failed: {name}.dim() == {len(meta.shape)}")
            if tensor.dtype is not meta.dtype:
                raise AssertionError(f"Guard failed: {name}.dtype == {meta.dtype}")
            for at, (size, given) in enumerate(zip(meta.shape, tensor.shape, strict=True)):
                if evaluate(size, known) != given:
                    raise AssertionError(f"Guard failed: {name}.size()[{at}] == {size}")
                if isinstance(size, Size) and size in ranges:
                    lower, upper = ranges[size]
                    if given < lower:
                        raise AssertionError(f"Guard failed: {name}.size()[{at}] >= {lower}")
                    if given > upper:
                        raise AssertionError(f"Guard failed: {name}.size()[{at}] <= {upper}")
        return known

    def value(self, results: Sequence[Any], sizes: Mapping[str, int]) -> Any:
        """The result of a call, with these tensors in it."""

        def one(leaf: Any) -> Any:
            return results[leaf.index] if isinstance(leaf, Slot) else evaluate(leaf, sizes)

        return trees.tree_map(one, self.result, is_leaf=is_slot)


def is_slot(value: Any) -> bool:
    """Whether this stands for a tensor."""
    return isinstance(value, Slot)


class ExportedModule(Module):
    """A program as a module: parameters and buffers have the names that they had, and calls run its operators."""

    def __init__(self, program: ExportedProgram, check_guards: bool = True) -> None:
        super().__init__()
        self._program = program
        self._check = check_guards
        made: dict[int, Tensor] = {}
        kinds = {s.target: s for s in program.graph_signature.input_specs if s.target is not None}
        for name, tensor in program._tensors().items():
            spec = kinds.get(name)
            if isinstance(tensor, Parameter):
                self._place(name).register_parameter(name.rpartition(".")[2], tensor)
                continue
            own = made.setdefault(id(tensor), tensor.detach().clone())
            if spec is not None and spec.kind is InputKind.CONSTANT_TENSOR:
                own, kept = tensor, False
            else:
                kept = spec is None or spec.persistent is not False
            self._place(name).register_buffer(name.rpartition(".")[2], own, persistent=kept)

    def _place(self, name: str) -> Module:
        """The module that holds a name, made where it is not there yet."""
        owner: Module = self
        for part in name.split(".")[:-1]:
            if part not in owner._modules:
                owner.add_module(part, Module())
            owner = owner._modules[part]  # type: ignore[assignment]
        return owner

    def _held(self, name: str) -> Tensor:
        owner, _, last = name.rpartition(".")
        place = self.get_submodule(owner) if owner else self
        found = place._parameters.get(last)
        return found if found is not None else place._buffers[last]  # type: ignore[return-value]

    @property
    def graph(self) -> Graph:
        """The operators that a call runs."""
        return self._program.graph

    @property
    def code(self) -> str:
        """The operators as Python text."""
        return self._program.graph.python_code()

    def train(self, mode: bool = True) -> Any:
        """Refused: the mode is part of the program."""
        raise NotImplementedError(f"Calling {'train' if mode else 'eval'}() is not supported yet.")

    def eval(self) -> Any:
        """Refused: the mode is part of the program."""
        return self.train(False)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the exported module gives for arguments of the same form."""
        program = self._program
        inputs = program._inputs
        tensors = inputs.tensors(inputs.flat(args, kwargs))
        sizes = inputs.check(tensors, program.range_constraints) if self._check else {}
        weights = {target: self._held(target) for _, target in weights_of(program.graph_signature)}
        return program._run(weights, tensors, sizes)


class ExportedProgram:
    """A module's computation as a graph of operators, with its weights. `export` makes it, `module()` runs it.

    graph, graph_module: the operators. graph_signature: what inputs and outputs are. state_dict: parameters and buffers by name.
    constants: tensors that are neither. range_constraints: the sizes left open. example_inputs: what it was exported with.
    """

    def __init__(
        self,
        traced: Traced,
        state: dict[str, Tensor],
        ranges: dict[str, Range],
        example: tuple[tuple[Any, ...], dict[str, Any]] | None = None,
        lowered: Any = None,
    ) -> None:
        self.graph = traced.graph
        self.graph_module = GraphModule(traced.graph)
        self.graph_signature = traced.signature
        self.state_dict = state
        self.constants = traced.constants
        self.range_constraints = ranges
        self.example_inputs = example
        self.module_call_graph = list(traced.calls)
        self._traced = traced
        self._inputs = Inputs(traced.signature, traced.graph, traced.arguments, traced.result)
        self._lowered: dict[tuple[str, ...], Any] = (
            {} if lowered is None else {tuple(lowered.platforms): lowered}
        )
        self._programs: dict[Any, Any] = {}
        self._report: Any = None  # of `draft_export`

    # -- what is in it

    def _tensors(self) -> dict[str, Tensor]:
        """All weights and constants."""
        return {**self.state_dict, **self.constants}

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """The parameters with their names."""
        for name in self.graph_signature.parameters:
            yield name, self.state_dict[name]

    def parameters(self) -> Iterator[Any]:
        """The parameters."""
        for _, parameter in self.named_parameters():
            yield parameter

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The buffers with their names."""
        for name in self.graph_signature.buffers:
            yield name, self._tensors()[name]

    def buffers(self) -> Iterator[Tensor]:
        """The buffers."""
        for _, buffer in self.named_buffers():
            yield buffer

    @property
    def call_spec(self) -> CallSpec:
        """The form of the arguments and of the result."""
        return CallSpec(self._inputs.structure, trees.tree_structure(self._traced.result))

    @property
    def dialect(self) -> str:
        """TRAINING: the operators are those that the module called, with what they write in place."""
        return "TRAINING"

    @property
    def tensor_constants(self) -> dict[str, Tensor]:
        """`constants`, as programs ask for them."""
        return self.constants

    def validate(self) -> None:
        """Check that every step takes what stands before it, and that inputs and outputs are those of the signature; RuntimeError where not."""
        known: set[str] = set()
        for node in self.graph.nodes:
            for used in node.all_input_nodes:
                if used.name not in known:
                    raise RuntimeError(f"{node.name} takes {used.name}, which does not stand before it")
            known.add(node.name)
        told = {s.arg.name for s in self.graph_signature.input_specs if isinstance(s.arg, TensorArgument)}
        found = {node.name for node in self.graph.nodes if node.op == "placeholder"}
        if told != found or len(self.graph_signature.output_specs) != len(self.graph.results):
            raise RuntimeError("the graph has other inputs or outputs than its signature")

    @property
    def draws(self) -> int:
        """How many times it draws random numbers."""
        return self._traced.draws

    # -- running

    def module(self, check_guards: bool = True) -> Any:
        """A module that runs the operators one by one, with eager results to the bit, and derivatives. It shares the parameters.

        Calls with other sizes or values than the program is for raise AssertionError, unless `check_guards` is off.
        """
        return ExportedModule(self, check_guards)

    def _run(
        self,
        weights: Mapping[str, Tensor],
        tensors: Sequence[Tensor],
        sizes: Mapping[str, int],
        table: Mapping[Any, Callable[..., Any]] = NOTHING,
        stack: Stack | None = None,
    ) -> Any:
        """Replay the graph; buffers that it replaces get their new values."""
        names = [n for n in self._inputs.names if any(n == p.name for p in self.graph.nodes)]
        given = {name: weights[target] for name, target in weights_of(self.graph_signature)}
        given |= dict(zip(names, tensors, strict=True))
        found = replay(self.graph, given, sizes, table, stack)
        results = []
        for spec, value in zip(self.graph_signature.output_specs, found, strict=True):
            if spec.kind is OutputKind.USER_OUTPUT:
                if isinstance(value, Tensor):
                    results.append(value)
            else:
                held = weights.get(str(spec.target))
                if held is not None and value is not held:
                    with no_grad():
                        held.copy_(value)
        return self._inputs.value(results, sizes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused, as PyTorch does: `module()` or `call` runs the program."""
        raise RuntimeError(
            "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead."
        )

    def stablehlo(self, platforms: Sequence[str] = PLATFORMS) -> Any:
        """The program as a `jax.export.Exported`: `exported.call(weights, inputs)` gives the results and what was written, both by JAX alone.

        weights: arrays by name, see `weights`. inputs: the list of tensors among the arguments. A program that draws random numbers takes
        `(seed, draw)` as well.
        """
        key = tuple(platforms)
        for known, found in self._lowered.items():
            if set(key) <= set(known):
                return found
        found = self._lowered[key] = lower(
            self.graph, self.graph_signature, self._tensors(), self.range_constraints, self.draws, key
        )
        return found

    def weights(self) -> dict[str, Any]:
        """The arrays that `stablehlo` takes: parameters, buffers and constants by name."""
        tensors = self._tensors()
        return {target: array_of(tensors[target].detach()) for _, target in weights_of(self.graph_signature)}

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program as one XLA program, as it is run without xtensor: no derivatives, and what it writes is dropped."""
        inputs = self._inputs
        tensors = inputs.tensors(inputs.flat(args, kwargs))
        sizes = inputs.check(tensors, self.range_constraints)
        program = self._programs.get("call")
        if program is None:
            here = devices.current().type
            ready = [found for known, found in self._lowered.items() if here in known]
            exported = ready[0] if ready else self.stablehlo()
            program = self._programs["call"] = exported.call
        given = [array_of(t.detach()) for t in tensors]
        with x64():
            results, _ = call(program, self.weights(), given, *random_words(self.draws))
        return inputs.value([wrap(a) for a in results], sizes)

    # -- changing

    def run_decompositions(
        self, decomp_table: Mapping[Any, Callable[..., Any]] | None = None
    ) -> ExportedProgram:
        """A program in which operators of the table are replaced by what their functions call; without a table, the same operators.

        Keys are operators (`torch.ops.aten.linear.default`), values functions of the operator's arguments.
        """
        stack = Stack()
        module = Decomposed(self, decomp_table or {}, stack)
        args, kwargs = trees.tree_unflatten(self._example_leaves(), self._inputs.structure)
        sizes = [m.shape for m in self._inputs.metas]
        traced = trace(module, args, kwargs, sizes, self.range_constraints, stack=stack)
        traced = traced._replace(calls=self._traced.calls)
        own = {s.target: s.kind for s in self.graph_signature.input_specs if s.target is not None}
        specs = [replace(s, kind=own.get(str(s.target), s.kind)) for s in traced.signature.input_specs]
        traced.signature.input_specs = [
            replace(s, persistent=None) if s.kind is InputKind.CONSTANT_TENSOR else s for s in specs
        ]
        made = ExportedProgram(traced, self.state_dict, dict(self.range_constraints), self.example_inputs)
        made.constants = {**self.constants, **traced.constants}
        return made

    def _example_leaves(self) -> list[Any]:
        metas = iter(self._inputs.metas)
        found = []
        for leaf in self._inputs.leaves:
            if isinstance(leaf, Slot):
                meta = next(metas)
                sizes = [2 if isinstance(s, Size) else s for s in meta.shape]
                found.append(wrap(MetaArray(tuple(sizes), meta.dtype.numpy)))
            else:
                found.append(leaf)
        return found

    def __str__(self) -> str:
        inner = "".join(
            f"    {line}\n" if line else "\n"
            for line in self.graph_module.print_readable(print_output=False).splitlines()
        )
        signature = str(self.graph_signature).replace("\n", "\n    ")
        ranges = ", ".join(f"{name}: {r}" for name, r in self.range_constraints.items())
        return f"ExportedProgram:\n{inner}\nGraph signature: {signature}\nRange constraints: {{{ranges}}}\n"

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> ExportedProgram:
        state = {name: copy.deepcopy(t, memo) for name, t in self.state_dict.items()}
        made = ExportedProgram(self._traced, state, dict(self.range_constraints), self.example_inputs)
        made.constants = dict(self.constants)
        return made


class Decomposed(ExportedModule):
    """A program's module, some of whose operators are functions."""

    def __init__(
        self, program: ExportedProgram, table: Mapping[Any, Callable[..., Any]], stack: Stack
    ) -> None:
        super().__init__(program, check_guards=False)
        self._table, self._stack = table, stack

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the program gives, by way of the functions."""
        program = self._program
        tensors = program._inputs.tensors(program._inputs.flat(args, kwargs))
        weights = {target: self._held(target) for _, target in weights_of(program.graph_signature)}
        sizes = bound_sizes([m.shape for m in program._inputs.metas], [t.shape for t in tensors])
        return program._run(weights, tensors, sizes, self._table, self._stack)


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: Sequence[str] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """A module's call with these arguments as a program: every operator that it runs, and nothing of Python.

    args, kwargs: examples, whose sizes and dtypes count; what is no tensor is fixed. dynamic_shapes: which sizes are left open: by
    the names of arguments, or in their order, for each tensor a dict from dimensions to `Dim`s (or a tuple with one of each dimension's), and
    None for what is fixed; or a ShapesCollection, or AdditionalInputs. strict: taken and not needed, as tracing sees all operators.
    What a module in training writes to its buffers is among the outputs. Values that an operator refuses in eager code (a singular matrix, a
    quantile that is not in [0, 1]) are not looked at in a program.

    RuntimeError where the code needs the values of tensors, or a size that is left open; it names the line.

    >>> program = xtensor.export.export(xtensor.nn.Linear(3, 2), (xtensor.ones(4, 3),))
    >>> [spec.target for spec in program.graph_signature.input_specs]
    ['weight', 'bias', None]
    """
    if not isinstance(mod, Module):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module`, got {type(mod)}.")
    if not isinstance(args, tuple):
        raise TypeError(f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}")
    given, preserved = dict(kwargs or {}), tuple(preserve_module_call_signature)
    # In the order of the function's parameters, in which their sizes are told.
    kwargs = {name: given[name] for name in combined_arguments(mod.forward, args, given) if name in given}
    if isinstance(dynamic_shapes, (AdditionalInputs, ShapesCollection)):
        dynamic_shapes = dynamic_shapes.dynamic_shapes(mod, args, kwargs)
    known = {name for name, _ in mod.named_modules(remove_duplicate=False)}
    for name in preserved:
        if name not in known:
            raise ValueError(f"preserve_module_call_signature: there is no module {name!r}")
    traced, ranges = opened_trace(mod, args, kwargs, dynamic_shapes, preserved)
    return program_with_weights(mod, traced, ranges, (args, kwargs))


def program_with_weights(
    mod: Module, traced: Traced, ranges: dict[str, Range], example: tuple[tuple[Any, ...], dict[str, Any]]
) -> ExportedProgram:
    """The program of a module's trace, with the module's weights."""
    state = dict(mod.state_dict(keep_vars=True))
    extra = {name: t for name, t in mod.named_buffers() if name not in state}
    program = ExportedProgram(traced, state, ranges, example)
    program.constants = {**extra, **traced.constants}
    return program


SEPARATED = 16
"""Of how many sizes it is tried which of them must be equal: each takes a trace."""


def opened_trace(
    mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic: Any, preserved: Sequence[str]
) -> tuple[Traced, dict[str, Range]]:
    """A trace with the sizes open that `dynamic` says, and their ranges; of those that have no name as many as the code allows, and as
    few of them equal as it takes.
    """

    def attempt(allowed: str, apart: frozenset[str]) -> tuple[Traced, dict[str, Range]] | None:
        opened = named_sizes(mod.forward, args, kwargs, dynamic, allowed, apart)
        try:
            return trace(mod, args, kwargs, opened.sizes, opened.ranges, preserved=preserved), opened.ranges
        except Exception:
            # Whatever comes of a size that the code fixes, or that it takes for equal to another.
            return None

    tried: dict[str, int] = {}
    for allowed in AUTOMATIC[:-1]:
        hinted = named_sizes(mod.forward, args, kwargs, dynamic, allowed).hinted
        if hinted == tried:
            break
        tried = hinted
        firsts = {size: place for place, size in reversed(hinted.items())}
        again = [place for place, size in hinted.items() if firsts[size] != place]
        apart = frozenset(again)
        found = attempt(allowed, apart)
        if found is None and again:
            apart = frozenset()
            found = attempt(allowed, apart)
            for place in again if found is not None and 1 < len(again) <= SEPARATED else ():
                better = attempt(allowed, apart | {place})
                if better is not None:
                    found, apart = better, apart | {place}
        if found is not None:
            return found
    opened = named_sizes(mod.forward, args, kwargs, dynamic, AUTOMATIC[-1])
    try:
        return trace(mod, args, kwargs, opened.sizes, opened.ranges, preserved=preserved), opened.ranges
    except Exception as error:
        if not opened.ranges or isinstance(error, TraceError):
            raise
        trace_closed(mod, args, kwargs)
        names, line = ", ".join(opened.ranges), line_of_user(error.__traceback__)
        said = str(error).partition("\n")[0]
        raise RuntimeError(
            f"Constraints violated ({names})! The code fixes a size that dynamic_shapes leaves open, or decides by it"
            f"{f' ({line})' if line else ''}: {said}. {suggested(mod, args, kwargs, dynamic)}"
        ) from error


FACTORS = (2, 4, 8, 16, 32)


def suggested(mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic: Any) -> str:
    """What to do about sizes that the code does not leave open: multiples, where these are."""

    def is_open(factors: Mapping[str, int]) -> bool:
        try:
            opened = named_sizes(mod.forward, args, kwargs, multiplied(dynamic, factors), AUTOMATIC[-1])
            trace(mod, args, kwargs, opened.sizes, opened.ranges)
        except Exception:
            return False
        return True

    sizes = named_sizes(mod.forward, args, kwargs, dynamic, AUTOMATIC[-1])
    examples = [t.shape for t in trees.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    given = {n: v for n, v in bound_sizes(sizes.sizes, examples).items() if v}
    for factor in FACTORS:
        factors = {name: factor for name, value in given.items() if value % factor == 0}
        if factors and is_open(factors):
            for name in list(factors):
                rest = {n: f for n, f in factors.items() if n != name}
                if rest and is_open(rest):
                    factors = rest
            return "Suggested fixes: " + "; ".join(f"{name} = {by}*_{name}" for name, by in factors.items())
    return "Leave that dimension out of dynamic_shapes, or use Dim.AUTO, which closes it."


def trace_closed(mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Trace with the sizes of the examples: what fails then as well is no matter of open sizes."""
    closed = named_sizes(mod.forward, args, kwargs, None, AUTOMATIC[-1])
    trace(mod, args, kwargs, closed.sizes, closed.ranges)
