"""A traced program as StableHLO: one module for several platforms, which JAX calls without xtensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax import export as jax_export

from ..jax.pure import pure
from ..operators.generator import default_generator
from ..tensor import Tensor, array_of, wrap
from ..xla.x64 import x64
from .dims import Range, bound_sizes, evaluate, symbols
from .graph import Graph
from .replay import replay
from .signature import ExportGraphSignature, InputKind, OutputKind
from .tracing import form

__all__ = ["PLATFORMS", "lower", "random_words", "weights_of"]

PLATFORMS = ("cpu", "cuda", "tpu")


def random_words(draws: int) -> tuple[Any, ...]:
    """The seed and first draw that a program takes which draws so often, as the default generator has them; no operand where it draws nothing."""
    if not draws:
        return ()
    seed, first = default_generator.next_draw()
    for _ in range(draws - 1):
        default_generator.next_draw()
    return ((np.int64(seed), np.int64(first)),)


def weights_of(signature: ExportGraphSignature) -> list[tuple[str, str]]:
    """The node and the target of each parameter, buffer and constant."""
    return [
        (s.arg.name, s.target)
        for s in signature.input_specs
        if s.kind is not InputKind.USER_INPUT and s.target is not None
    ]


def lower(
    graph: Graph,
    signature: ExportGraphSignature,
    weights: Mapping[str, Tensor],
    ranges: Mapping[str, Range],
    draws: int,
    platforms: Sequence[str],
) -> Any:
    """A `jax.export.Exported` of `program(weights, inputs)`, or `program(weights, inputs, (seed, draw))` where random numbers are drawn.

    weights: a dict of arrays by their targets. inputs: a list of arrays. Gives the list of results, and a dict of what was written, by
    targets.
    """
    nodes = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    users = [
        nodes[s.arg.name]
        for s in signature.input_specs
        if s.kind is InputKind.USER_INPUT and s.arg.name in nodes
    ]
    shapes = [node.meta["val"].shape for node in users]

    def run(given: dict[str, Any], inputs: list[Any], *random: Any) -> tuple[list[Any], dict[str, Any]]:
        tensors = {name: wrap(given[target]) for name, target in weights_of(signature)}
        tensors |= {node.name: wrap(a) for node, a in zip(users, inputs, strict=True)}
        known = bound_sizes(shapes, [a.shape for a in inputs])
        with pure("the program", (lambda: random[0]) if random else None):
            found = replay(graph, tensors, known)
        results, written = [], {}
        for spec, value in zip(signature.output_specs, found, strict=True):
            if spec.kind is not OutputKind.USER_OUTPUT:
                written[str(spec.target)] = array_of(value)
            elif isinstance(value, Tensor):
                results.append(array_of(value))
        return results, written

    with x64():
        known = symbols(ranges)
        given = {
            target: form(weights[target].shape, weights[target].dtype) for _, target in weights_of(signature)
        }
        inputs = [form([evaluate(s, known) for s in n.meta["val"].shape], n.meta["val"].dtype) for n in users]
        word = jax.ShapeDtypeStruct((), np.int64)
        random = ((word, word),) if draws else ()
        return jax_export.export(jax.jit(run), platforms=list(platforms))(given, inputs, *random)
