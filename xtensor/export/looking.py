"""Exported programs looked at: a table of what each operator costs, and a picture."""

from __future__ import annotations

import math
import operator
import pathlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from .. import devices, trees
from ..autograd.dot import Dot, quoted
from ..storage import MetaArray
from ..tensor import Tensor, wrap
from ..utils.flop_counter import FORMULAS
from ..xla.cache import bounded
from .dims import bound_sizes, evaluate
from .graph import Node, Subgraph, TensorMeta, dotted, map_nodes
from .higher_order import HIGHER_ORDER
from .program import ExportedProgram

__all__ = ["Cost", "Explanation", "Roof", "draw", "explain"]


class Roof(NamedTuple):
    """What a device does at best. flops: floating-point operations per second. bandwidth: bytes of memory per second."""

    flops: float
    bandwidth: float

    def seconds(self, flops: float, moved: float) -> float:
        """The least time for so many operations and bytes: what takes longer of both."""
        return max(flops / self.flops, moved / self.bandwidth)


class Cost(NamedTuple):
    """What one operator costs.

    flops: operations of products, convolutions and attention, as `FlopCounterMode` counts them; of `cond` those of the dearer branch, of
    `while_loop` those of one step. moved: bytes that are read and written; views
    move none. seconds: the least time by the roof.
    """

    name: str
    target: str
    result: str
    flops: int
    moved: int
    seconds: float
    line: str


@dataclass(frozen=True)
class Explanation:
    """The costs of a program's operators, as `explain` gives them; printed, a table."""

    costs: tuple[Cost, ...]
    roof: Roof
    sizes: Mapping[str, int]

    @property
    def flops(self) -> int:
        """All operations of products, convolutions and attention."""
        return sum(c.flops for c in self.costs)

    @property
    def moved(self) -> int:
        """All bytes that are read and written where every operator runs alone."""
        return sum(c.moved for c in self.costs)

    @property
    def seconds(self) -> float:
        """The least time where every operator runs alone."""
        return sum(c.seconds for c in self.costs)

    def __str__(self) -> str:
        rows = [("name", "operator", "result", "FLOP", "bytes", "us", "of")]
        for cost in self.costs:
            share = f"{cost.seconds / self.seconds:.0%}" if self.seconds else ""
            rows.append(
                (
                    cost.name,
                    cost.target,
                    cost.result,
                    f"{cost.flops:,}",
                    f"{cost.moved:,}",
                    f"{cost.seconds * 1e6:.2f}",
                    share,
                )
            )
        rows.append(("all", "", "", f"{self.flops:,}", f"{self.moved:,}", f"{self.seconds * 1e6:.2f}", ""))
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(
                v.ljust(w) if i < 3 else v.rjust(w) for i, (v, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        open_sizes = ", ".join(f"{name} = {size}" for name, size in self.sizes.items())
        roof = f"roof: {self.roof.flops / 1e9:,.1f} GFLOP/s, {self.roof.bandwidth / 1e9:,.1f} GB/s"
        return "\n".join([*lines, roof + (f"; {open_sizes}" if open_sizes else "")])


def explain(
    program: ExportedProgram, *, sizes: Mapping[str, int] | None = None, roof: Roof | None = None
) -> Explanation:
    """What each operator of a program costs: the sizes of its result, operations, bytes, and the least time by a device's roof.

    sizes: values of open sizes; those of the examples, where it is left out. roof: of another device; the current one is measured once, in
    about a second. XLA joins operators, so that a compiled program moves fewer bytes than all of them alone.

    >>> program = xtensor.export.export(xtensor.nn.Linear(4, 8), (xtensor.ones(3, 4),))
    >>> xtensor.export.explain(program, roof=xtensor.export.Roof(1e12, 1e11)).flops
    192
    """
    known = dict(sizes or {}) or example_sizes(program)
    missing = [name for name in program.range_constraints if name not in known]
    if missing:
        raise ValueError(
            f"explain() needs the values of the open sizes {', '.join(missing)}: sizes={{{missing[0]!r}: 8}}"
        )
    top = measured_roof(devices.current()) if roof is None else roof
    costs = [cost_of(node, known, top) for node in program.graph.nodes if node.op == "call_function"]
    return Explanation(tuple(c for c in costs if c is not None), top, known)


def example_sizes(program: ExportedProgram) -> dict[str, int]:
    """The open sizes as they are in the examples; none where the program has no examples."""
    if program.example_inputs is None:
        return {}
    tensors = [leaf for leaf in trees.tree_leaves(program.example_inputs) if isinstance(leaf, Tensor)]
    return dict(bound_sizes([m.shape for m in program._inputs.metas], [t.shape for t in tensors]))


def cost_of(node: Node, sizes: Mapping[str, int], roof: Roof) -> Cost | None:
    """What one step costs; None for one result of several."""
    if node.target is operator.getitem:
        return None
    made: dict[Node, Tensor] = {}

    def tensor(meta: Any) -> Any:
        if not isinstance(meta, TensorMeta):
            return meta
        return wrap(MetaArray(tuple([evaluate(s, sizes) for s in meta.shape]), meta.dtype.numpy))

    for given in node.all_input_nodes:
        made[given] = tensor(meta_of(given))
    args, kwargs = map_nodes((node.args, node.kwargs), made.__getitem__)
    val = meta_of(node)
    metas = [
        m
        for m in (val if isinstance(val, tuple) and not isinstance(val, TensorMeta) else (val,))
        if isinstance(m, TensorMeta)
    ]
    results = [tensor(m) for m in metas]
    formula = FORMULAS.get(getattr(node.target, "_opname", ""))
    values = [*args, *kwargs.values()]
    flops = formula(values, results[0] if len(results) == 1 else results) if formula and results else 0
    if node.target in HIGHER_ORDER.values():
        flops = flops_within(node, args, sizes, roof)
    written = [meta_of(n) for n in node.meta.get("writes", ())]
    seen = {meta_of(n).memory for n in node.all_input_nodes if isinstance(meta_of(n), TensorMeta)}
    moved = 0
    if written or any(m.memory not in seen for m in metas):
        moved = sum(nbytes(t) for t in [*made.values(), *(tensor(m) for m in written or metas)])
    result = ", ".join(str(TensorMeta(tuple(t.shape), t.dtype)) for t in results)
    return Cost(
        node.name,
        dotted(node.target),
        result,
        flops,
        moved,
        roof.seconds(flops, moved),
        node.meta.get("line", ""),
    )


def flops_within(node: Node, args: Sequence[Any], sizes: Mapping[str, int], roof: Roof) -> int:
    """The operations of a branch or a loop: of the dearer branch, or of all steps; of one where nobody knows how many there are."""
    programs = [value.graph for value in args if isinstance(value, Subgraph)]
    costs = [[cost_of(n, sizes, roof) for n in graph.nodes if n.op == "call_function"] for graph in programs]
    each = [sum(c.flops for c in found if c is not None) for found in costs]
    if node.target is HIGHER_ORDER["cond"]:
        return max(each)
    over = args[2] if node.target is HIGHER_ORDER["scan"] else args[1]
    steps = 1 if node.target is HIGHER_ORDER["while_loop"] else over[0].shape[node.kwargs.get("dim", 0)]
    return sum(each) * steps


def meta_of(node: Node) -> Any:
    """What is known of a step's result."""
    return node.meta.get("same", node).meta.get("val")


def nbytes(value: Any) -> int:
    """The bytes of a tensor's elements."""
    return math.prod(value.shape) * value.dtype.itemsize if isinstance(value, Tensor) else 0


@bounded(16)
def measured_roof(place: devices.device) -> Roof:
    """A device's roof: the best of a few products of float32 matrices, and of copies of an array that no cache holds."""
    device = devices.jax_device(place)
    matrix = jax.device_put(jnp.ones((1024, 1024), jnp.float32), device)
    large = jax.device_put(jnp.ones((1 << 24,), jnp.float32), device)
    return Roof(2 * 1024**3 / best(jnp.dot, matrix, matrix), 2 * large.nbytes / best(jnp.negative, large))


def best(function: Any, *arrays: Any) -> float:
    """The shortest of five runs, in seconds, after one that compiles."""
    program = jax.jit(function)
    found = math.inf
    for at in range(6):
        start = time.perf_counter()
        jax.block_until_ready(program(*arrays))
        found = min(found, time.perf_counter() - start) if at else found
    return found


COLOURS = {"placeholder": "#f7e6c4", "weight": "#cfe8cf", "call_function": "#eef2f7", "output": "#f7e6c4"}


def draw(program: ExportedProgram, path: str | pathlib.Path | None = None) -> Dot:
    """The graph of a program as a picture: inputs, weights, operators with the sizes and dtypes of what they give, results.

    path: write it there too, in the format that the name ends with (`.svg`, `.png`, `.dot`). Layout is Graphviz's, through pygraphviz (the
    `viz` extra); the text alone needs none.

    >>> program = xtensor.export.export(xtensor.nn.ReLU(), (xtensor.ones(2),))
    >>> '"input" -> "relu"' in xtensor.export.draw(program).to_string()
    True
    """
    weights = {s.arg.name for s in program.graph_signature.input_specs if s.target is not None}
    lines = ['digraph "program" {', "  rankdir=TB; node [fontname=Helvetica, fontsize=10, shape=box];"]
    for node in program.graph.nodes:
        kind = "weight" if node.name in weights else node.op
        label = "\n".join(labels(node))
        lines.append(
            f'  {quoted(node.name)} [label={quoted(label)}, style="rounded,filled", fillcolor="{COLOURS[kind]}"];'
        )
    for node in program.graph.nodes:
        lines += [f"  {quoted(given.name)} -> {quoted(node.name)};" for given in node.all_input_nodes]
    made = Dot("\n".join([*lines, "}", ""]), len(program.graph.nodes))
    if path is not None:
        form = pathlib.Path(path).suffix.removeprefix(".")
        if form == "dot":
            made.write_dot(path)
        else:
            pathlib.Path(path).write_bytes(made.create(form))
    return made


def labels(node: Node) -> Sequence[str]:
    """The lines of a node's box."""
    val = node.meta.get("val")
    kind = [str(val)] if isinstance(val, TensorMeta) else []
    if node.op != "call_function":
        return [node.name, *kind]
    line = node.meta.get("line", "")
    return [node.name, dotted(node.target), *kind, *([pathlib.Path(line).name] if line else [])]
