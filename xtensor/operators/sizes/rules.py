"""Derivative rules where sizes vary: traced once with symbolic sizes, so that a new size traces nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
from jax.core import ShapedArray, Tracer

from ...storage import MetaArray
from ...xla.sizes import Families, Sized, enabled
from ...xla.sizes.spans import NEVER, Answers, Expected
from ...xla.sizes.terms import alike, span_of, symbols, values_of
from ...xla.store import remembered
from ...xla.x64 import jit, prepare
from ..reading import Read
from .readings import HostReading

__all__ = ["Later", "ReadFirst", "SizedRules", "sized_rules"]


class Later(Answers):
    """Stands for what answers calls of a function, until it is known."""

    inner: Any = NEVER

    def answer(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """As the one it stands for."""
        return self.inner.answer(program, args)

    def expected(self, program: Any, args: tuple[Any, ...]) -> Expected | None:
        """As the one it stands for."""
        return self.inner.expected(program, args)


class ReadFirst(Answers):
    """What answers calls of rules whose gradients are read first: the rules' own program for several sizes, after a reading on the host."""

    def __init__(self, program: Any, recipes: Sequence[Any]) -> None:
        self.program = program
        self.reads = [None if r is None else Read(r, False) for r in recipes]
        self.reading: HostReading | None = None

    def answer(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """As `HostReading.answer`, whose program takes no offset of what has none."""
        views = [r for r in self.reads if r is not None]
        count = len(args) - len(views)
        if self.reading is None:
            reads = [*self.reads, *[None] * (count - len(self.reads))]
            self.reading = HostReading(self.program, [-1] * count, reads, None, False)
        moving = [o for o, r in zip(args[count:], views, strict=True) if not r.recipe.static]
        found, came = self.reading.answer(program, (*args[:count], *moving))
        return None if found is None else found[0], came


def aval_of(leaf: Any) -> Any:
    """The form of an array, or of what stands for one."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return ShapedArray(leaf.shape, leaf.dtype, weak_type=leaf.weak_type)
    return leaf.aval


class Template(NamedTuple):
    """What is known of rules of all sizes: as which terms their sizes are written, and `Pullback`'s routes and what it keeps."""

    terms: tuple[Any, ...]
    spans: tuple[Any, ...]
    routes: tuple[Any, ...]
    kept: tuple[int, ...]


class Known:
    """What is known of all rules that differ in sizes: templates, sizes that were met, and how often none could be made."""

    def __init__(self) -> None:
        self.templates: list[Template] = []
        self.seen: list[tuple[int, tuple[int, ...]]] = []
        self.refused = 0


class SizedRules:
    """The rules of a node as one of many that differ in sizes.

    families: what is known of the programs of all of them. rules: the function for symbolic sizes, see `Sized.make`. kept, routes: those
    of `Pullback`, where an earlier one of another size tells them.
    """

    # What all of them share: sizes stand in terms.
    _xt_identity = ("function", "key", "mask", "count")

    def __init__(self, node: Any, grads: Sequence[Any], saved: Sequence[Any], rules_function: Any) -> None:
        self.mask = tuple([t is not None for t in node.targets])
        self.count = len(grads)
        fields = (
            [None if t is None else t.shape for t in node.targets],
            node.shapes,
            [o.shape for o in node._xt_metadata],
        )
        sizes, self.tree = jax.tree.flatten(fields)
        self.sizes = tuple(sizes)
        # Not the node itself, which holds what was saved.
        self.node = SimpleNamespace(
            op=node.op,
            key=node.key,
            _xt_edges=(None,) * len(node._xt_edges),
            targets=node.targets,
            _xt_metadata=tuple(node._xt_metadata),
        )
        self.function = rules_function
        forms = [None if t is None else (t.dtype, t.weak_type) for t in (*node.targets, *node._xt_metadata)]
        leaves, tree = jax.tree.flatten(list(saved))
        told = tuple([(a.ndim, a.dtype, a.weak_type) for a in map(aval_of, leaves)])
        undefined = tuple([g is None for g in grads])
        self.vector = (*self.sizes, *[d for a in leaves for d in a.shape])
        self.saved, self.leaves = tree, [aval_of(a) for a in leaves]
        self.key = ("sizes", node.key, self.tree, tuple(forms), tree, told, undefined)
        self.undefined = undefined

    def symbolic(self, dims: Sequence[Any]) -> Any:
        """The node with other sizes."""
        targets, shapes, outputs = jax.tree.unflatten(self.tree, dims)
        old = self.node
        return SimpleNamespace(
            op=old.op,
            key=old.key,
            _xt_edges=old._xt_edges,
            shapes=shapes,
            targets=tuple(
                [None if t is None else resized(t, s) for t, s in zip(old.targets, targets, strict=True)]
            ),
            _xt_metadata=tuple([resized(o, s) for o, s in zip(old._xt_metadata, outputs, strict=True)]),
        )

    def sized(self, kept: Sequence[int]) -> Sized:
        """How the program that gives the gradients at `kept` depends on sizes."""
        count, chosen = self.count, tuple(kept)

        def make(dims: tuple[Any, ...]) -> Callable[..., Any]:
            function = self.function(self.symbolic(dims), self.mask)

            def rules(*args: Any) -> tuple[Any, ...]:
                found = function(args[:count], args[count:])
                return tuple([found[k] for k in chosen])

            return rules

        variants = self.node.op.variants
        families = variants.get((self.key, chosen))
        if families is None:
            families = variants[self.key, chosen] = Families(jit, prepare)
        return Sized(families, self.sizes, make)

    def known(
        self, trace_routes: Callable[..., tuple[Any, Any]]
    ) -> tuple[tuple[Any, ...], tuple[int, ...]] | None:
        """Routes and what is kept, as a template tells; one is made where enough other sizes were met."""
        variants = self.node.op.variants
        known: Known | None = variants.get(self.key)
        if known is None:
            known = variants[self.key] = Known()
        for template in known.templates:
            values = values_of(template.terms, self.vector)
            if values is not None and all(
                s.low <= v < s.end for v, s in zip(values, template.spans, strict=True)
            ):
                return self.routed(template), template.kept
        if known.refused < 3:
            fits = [t.terms for t in known.templates if values_of(t.terms, self.vector) is not None]
            terms = fits[0] if fits else alike(self.vector, 0, known.seen[-KEPT:])
            if terms is not None:
                template = self.template(terms, trace_routes)
                if template is not None:
                    known.templates.append(template)
                    return self.routed(template), template.kept
                known.refused += 1
        if (1, self.vector) not in known.seen:
            known.seen.append((1, self.vector))
        return None

    def template(
        self, terms: tuple[Any, ...], trace_routes: Callable[..., tuple[Any, Any]]
    ) -> Template | None:
        """What a trace with symbolic sizes tells, here or in an earlier process; None where the rules cannot be traced so."""
        spans = tuple([span_of(v, FLOOR) for v in values_of(terms, self.vector) or ()])

        def find() -> Any:
            try:
                dims = symbols(terms, spans)
                node = self.symbolic(dims[: len(self.sizes)])
                at, saved = len(self.sizes), []
                for a in self.leaves:
                    saved.append(
                        jax.ShapeDtypeStruct(tuple(dims[at : at + a.ndim]), a.dtype, weak_type=a.weak_type)
                    )
                    at += a.ndim
                routes, kept = trace_routes(node, self.undefined, jax.tree.unflatten(self.saved, saved))
            except Exception:  # whatever a rule or JAX cannot do with symbolic sizes
                return None
            # Of what is spread only that it is: `routed` knows the shape.
            return [(r[0], r[1] is not None) if type(r) is tuple else r for r in routes], kept

        found = remembered("routes", (self, terms, spans), find)
        if found is None:
            return None
        routes = [(r[0], r[1] or None) if type(r) is list else r for r in found[0]]
        return Template(terms, spans, tuple(routes), tuple(found[1]))

    def routed(self, template: Template) -> tuple[Any, ...]:
        """The template's routes: what is spread is spread over the shape of the edge's gradient."""
        targets = self.node.targets
        return tuple(
            [
                (r[0], None if r[1] is None else tuple(t.shape)) if type(r) is tuple else r
                for r, t in zip(template.routes, targets, strict=True)
            ]
        )


KEPT = 32
FLOOR = 64


def resized(aval: Any, shape: Any) -> Any:
    """A shape and dtype with another shape."""
    return ShapedArray(tuple(shape), aval.dtype, weak_type=aval.weak_type)


def sized_rules(
    node: Any, grads: Sequence[Any], saved: Sequence[Any], rules_function: Any
) -> SizedRules | None:
    """The rules of a node as one of many, None where they cannot be."""
    if not enabled() or any(
        isinstance(a, (Tracer, MetaArray)) for a in (*grads, *jax.tree.leaves(list(saved)))
    ):
        return None
    if not all(isinstance(a, (jax.Array, jax.ShapeDtypeStruct)) for a in jax.tree.leaves(list(saved))):
        return None
    return SizedRules(node, grads, saved, rules_function)
