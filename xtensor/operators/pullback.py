"""A node's derivative rules made ready for one signature: what is passed on as it is, and one program for the rest.

`Pullback` works on arrays, for a backward pass that records nothing; `RecordedPullback` on Tensors, for `create_graph`:
there each gradient is an operator over exactly the values that it depends on, so that a second derivative saves, checks
and requires no more than it must.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from .. import lowering
from ..storage import MetaArray
from ..tensor import Tensor, make_view, sizes_of, strides_of, tensor_over, wrap
from ..xla.cache import BoundedCache
from ..xla.pending import settled
from ..xla.segments import waiter, waiter_of_tuples
from ..xla.x64 import call, facts, jit
from .dependence import origin, piece, used
from .derivatives import backward_function
from .functions.node_names import node_of_derivative
from .levels.crossing import crossed, crossings
from .operator import MANY, Operator
from .schema import Parameter, Schema
from .sizes.rules import Later, ReadFirst, SizedRules, sized_rules

__all__ = ["Pullback", "RecordedPullback", "flatten", "rules_function", "spread_over", "structure_of"]

UNSET: Any = ...


def is_inexact(dtype: Any) -> bool:
    """Whether a dtype is floating point or complex."""
    return bool(jnp.issubdtype(dtype, jnp.inexact))


def rules_function(node: Any, mask: tuple[bool, ...]) -> Callable[..., tuple[Any, ...]]:
    """`(grads, saved) -> gradients of the edges in mask` of a node."""
    op = node.op
    statics = dict(zip([p.name for p in op.static], node.key, strict=True))
    return backward_function(op.rules, statics, mask, node.targets, node.shapes, node._xt_metadata)


def incoming(node: Any, grads: Sequence[Any]) -> list[Any]:
    """The shapes and dtypes of the gradients that a node receives, None where undefined."""
    return [
        None if g is None else jax.ShapeDtypeStruct(o.shape, o.dtype)
        for g, o in zip(grads, node._xt_metadata, strict=True)
    ]


def traceable(arrays: Sequence[Any], given: Sequence[Any]) -> bool:
    """Whether gradients are arrays of exactly the shapes and dtypes that a node receives."""
    return all(
        a is g is None
        or (
            isinstance(a, (jax.Array, jax.ShapeDtypeStruct))
            and not isinstance(a, Tracer)
            and g is not None
            and (a.shape, a.dtype, getattr(a, "aval", a).weak_type) == (g.shape, g.dtype, False)
        )
        for a, g in zip(arrays, given, strict=True)
    )


def sees_gradients_only(node: Any, edge: int) -> bool:
    """Whether the rule for an edge takes no saved array: their shapes, say of an empty index, are not in the key."""
    rules = node.op.rules
    extra = len(node._xt_edges) - len(rules.differentiable)
    names = [n for n in rules.differentiable for _ in range(extra + 1 if n == rules.sequence else 1)]
    arrays = {p.name for p in rules.schema.runtime if p.kind != "Number"} | {"result", "results"}
    return not any(w in arrays or w.startswith("result") for w in rules.parameters[names[edge]])


def results_of(mask: Sequence[bool], defined: Sequence[bool]) -> list[tuple[int, int]]:
    """The gradients that are defined, in order: their places among the rules' results, and their edges."""
    edges = [i for i, m in enumerate(mask) if m]
    return [(k, edge) for k, (edge, there) in enumerate(zip(edges, defined, strict=True)) if there]


def spread_over(grad: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A gradient of one number seen over a shape, with stride 0; unknown to autograd."""
    old = grad._xt_view
    storage = grad._xt_storage
    dtype, offset = (grad.dtype, 0) if old is None else (old.dtype, old.offset)
    bits = (False, False) if old is None else (old.conj, old.neg)
    return tensor_over(storage, make_view(storage, storage, dtype, shape, (0,) * len(shape), offset, *bits))


def part_of(grad: Tensor, starts: Sequence[int], sizes: Sequence[int], without: Sequence[int]) -> Tensor:
    """A part of a gradient, seen where it lies, as `piece` describes it; unknown to autograd."""
    old, storage = grad._xt_view, grad._xt_storage
    strides, offset = strides_of(grad), 0 if old is None else old.offset
    dtype, bits = (grad.dtype, (False, False)) if old is None else (old.dtype, (old.conj, old.neg))
    offset += sum([n * s for n, s in zip(starts, strides, strict=True)])
    kept = [d for d in range(len(sizes)) if d not in without]
    shape, steps = tuple([sizes[d] for d in kept]), tuple([strides[d] for d in kept])
    return tensor_over(storage, make_view(storage, storage, dtype, shape, steps, offset, *bits))


def frozen(route: Any) -> Any:
    """A route as it is kept on disk, with tuples again."""
    return tuple(map(frozen, route)) if type(route) in (list, tuple) else route


def parts_of(jaxpr: Any, count: int, incoming: int) -> dict[int, Any]:
    """Which of so many results are parts of the first inputs, as `piece` describes them; nothing where they are few."""
    if count < MANY:
        return {}
    found = {j: piece(jaxpr, j) for j in range(count)}
    parts = {
        j: p
        for j, p in found.items()
        if p is not None and p[0] < incoming and jaxpr.outvars[j].aval.dtype == jaxpr.invars[p[0]].aval.dtype
    }
    return parts if len(parts) >= MANY else {}


def routes_of(
    node: Any,
    given: Sequence[Any],
    mask: Sequence[bool],
    defined: Sequence[bool],
    jaxpr: Any,
    parts: bool = True,
) -> tuple[tuple[Any, ...], list[int]]:
    """`Pullback`'s routes, and which of the rules' results its program gives. parts: whether there may be parts of gradients."""
    # The incoming gradients are the first inputs of the jaxpr, less those that are undefined.
    places = [i for i, g in enumerate(given) if g is not None]
    routes: list[Any] = [None] * len(mask)
    kept: list[int] = []
    results = results_of(mask, defined)
    seen = parts_of(jaxpr, len(results), len(places)) if parts else {}
    for j, (k, edge) in enumerate(results):
        var = jaxpr.outvars[j]
        alone = sees_gradients_only(node, edge)
        if alone and j in seen:
            place, *part = seen[j]
            routes[edge] = (places[place], *part)
            continue
        found = origin(jaxpr, j) if alone else None
        if (
            found is not None
            and found[0] < len(places)
            and var.aval.dtype == jaxpr.invars[found[0]].aval.dtype
        ):
            routes[edge] = (places[found[0]], tuple(var.aval.shape) if found[1] else None)
        else:
            routes[edge] = len(kept)
            kept.append(k)
    return tuple(routes), kept


def traced_routes(node: Any, undefined: Sequence[bool], saved: Sequence[Any]) -> tuple[Any, Any]:
    """`routes_of` a node by a trace of its own."""
    mask = tuple([t is not None for t in node.targets])
    function, count = rules_function(node, mask), len(undefined)
    given = incoming(node, [None if u else True for u in undefined])
    defined: list[bool] = []

    def traced(*args: Any) -> tuple[Any, ...]:
        found = function(args[:count], args[count:])
        defined[:] = [g is not None for g in found]
        return found

    jaxpr = jax.make_jaxpr(traced)(*given, *saved).jaxpr
    return routes_of(node, given, mask, defined, jaxpr, parts=False)


class Pullback:
    """The rules of a node over arrays.

    routes: for each edge None, the place of its gradient among the program's results, or `(i, shape)`: the incoming
    gradient `i`, spread over a shape where that is not None, or `(i, starts, sizes, without)`: a part of it. keep: what the cache's key refers to by identity.
    arrays: the gradients as arrays, where the program is about to be called with them.
    """

    __slots__ = (
        "crossed",
        "keep",
        "needed",
        "new",
        "plain",
        "program",
        "reading",
        "routes",
        "rules",
        "waits",
    )

    def __init__(
        self, node: Any, grads: Sequence[Any], saved: Sequence[Any], arrays: Sequence[Any] | None = None
    ) -> None:
        mask = tuple([t is not None for t in node.targets])
        function = rules_function(node, mask)
        count = len(grads)
        given = incoming(node, grads)
        if True not in mask:  # of what was made of a view that has no history, though its base is followed
            self.routes = (None,) * len(mask)
            self._finish(node, function, count, (), None)
            return
        sizes = sized_rules(node, grads, saved, rules_function)
        known = None if sizes is None else sizes.known(traced_routes)
        if known is not None:
            self.routes, kept = known
            self._finish(node, function, count, kept, sizes)
            return
        defined: list[bool] = []

        def every(*args: Any) -> tuple[Any, ...]:
            found = function(args[:count], args[count:])
            defined[:] = [g is not None for g in found]
            return found

        def tell(jaxpr: Any) -> Any:
            routes, kept = routes_of(node, given, mask, defined, jaxpr)
            return routes, kept, len(kept) == len(defined)

        # Where the gradients are whole arrays, the program that will run is traced, so that it need not be once more.
        examples = arrays if arrays is not None and traceable(arrays, given) else given
        every.__name__ = every.__qualname__ = node.op.name + "_backward"
        later = every.sized = Later()  # pyright: ignore[reportFunctionMemberAccess]
        program = jit(every)
        routes, kept, all_kept = facts(program, (*examples, *saved), tell)
        self.routes: tuple[Any, ...] = frozen(routes)
        if sizes is not None and all_kept:
            later.inner = sizes.sized(kept)
        self._finish(node, function, count, kept, sizes, program if all_kept else None)

    def _finish(
        self,
        node: Any,
        function: Callable[..., Any],
        count: int,
        kept: Sequence[int],
        sizes: SizedRules | None,
        program: Any = None,
    ) -> None:
        """The program of the gradients that are kept: one that was traced already, else a new one."""
        self.crossed = crossings(node)
        self.plain = self.routes == tuple(range(len(self.routes))) and self.crossed is None
        self.keep = (node.aval, node.targets)
        self.reading: BoundedCache[Any, Any] = BoundedCache(256)
        self.program = self.rules = self.waits = self.needed = None
        self.new = True
        if kept:

            def rules(*args: Any) -> tuple[Any, ...]:
                found = function(args[:count], args[count:])
                return tuple([found[k] for k in kept])

            rules.__name__ = rules.__qualname__ = node.op.name + "_backward"
            if sizes is not None:
                rules.sized = sizes.sized(kept)  # pyright: ignore[reportFunctionMemberAccess]
            self.rules = rules
            self.program = program if program is not None else jit(rules)

    def needs(self, node: Any, grads: Sequence[Any], saved: Sequence[Any]) -> Sequence[Any]:
        """Of each saved value whether a gradient is made of it; of a tuple, of each of its values."""
        if self.needed is None:
            given = incoming(node, grads)
            args = [*given, *settled(list(saved))]
            rules: Any = self.rules
            traced = call(jax.make_jaxpr(rules), *args).jaxpr
            tree = jax.tree.structure(tuple(args))
            flags = jax.tree.unflatten(tree, used(traced, [True] * len(traced.outvars)))
            self.needed = flags[len(given) :]
        return self.needed

    def waiting(self, args: Sequence[Any]) -> Callable[..., Any]:
        """The program, whose call with these arguments may wait."""
        if self.waits is None:
            if any(type(a) is tuple for a in args):
                self.waits = waiter_of_tuples(self.program, None)
            else:
                self.waits = waiter(self.program, len(args), None)
        return self.waits

    def reader(self, recipes: tuple[Any, ...]) -> Any:
        """The program that first reads the incoming gradients which are views: by recipe, or None for an array."""
        found = self.reading.get(recipes)
        if found is None:
            rules = self.rules
            assert rules is not None
            count = len(recipes)

            def read_first(*args: Any) -> Any:
                offsets = iter(args[len(args) - sum(r is not None for r in recipes) :])
                grads = [
                    a if r is None else lowering.read(r, a, next(offsets))
                    for a, r in zip(args[:count], recipes, strict=True)
                ]
                return rules(*grads, *args[count : len(args) - sum(r is not None for r in recipes)])

            read_first.__name__ = read_first.__qualname__ = rules.__name__
            read_first.sized = ReadFirst(self.program, recipes)  # pyright: ignore[reportFunctionMemberAccess]
            found = self.reading[recipes] = jit(read_first)
        return found

    def deliver(self, results: Any, grads: Sequence[Any]) -> tuple[Any, ...]:
        """One gradient per edge, from the program's results and the gradients that came in."""
        found = []
        for route in self.routes:
            if route is None:
                found.append(None)
            elif type(route) is int:
                found.append(wrap(results[route]))
            elif route[1] is None:
                found.append(grads[route[0]])
            elif len(route) > 2:
                found.append(part_of(grads[route[0]], *route[1:]))
            else:
                found.append(spread_over(grads[route[0]], route[1]))
        if self.crossed is not None:
            found = list(map(crossed, found, self.crossed))
        return tuple(found)


# -- with create_graph


def structure_of(values: Sequence[Any]) -> tuple[Any, ...]:
    """The structure of a node's gradients and saved values: None, the length of a sequence, or -1 for one value."""
    return tuple([None if v is None else (len(v) if isinstance(v, (list, tuple)) else -1) for v in values])


def flatten(values: Sequence[Any]) -> list[Any]:
    """The values of a structure in one list, without what is None."""
    flat: list[Any] = []
    for v in values:
        if isinstance(v, (list, tuple)):
            flat.extend(v)
        elif v is not None:
            flat.append(v)
    return flat


def unflatten(structure: tuple[Any, ...], flat: Sequence[Any]) -> list[Any]:
    values: list[Any] = []
    at = 0
    for s in structure:
        if s is None:
            values.append(None)
        elif s < 0:
            values.append(flat[at])
            at += 1
        else:
            values.append(tuple(flat[at : at + s]))
            at += s
    return values


def trace_form(value: Any) -> Any:
    """What a trace must know of a value, hashable: sizes and dtype of a tensor, the type of a number."""
    return (tuple(sizes_of(value)), value.dtype.numpy) if isinstance(value, Tensor) else type(value)


def stand_in(form: Any) -> Any:
    """Something of that form for a trace."""
    return jax.ShapeDtypeStruct(*form) if isinstance(form, tuple) else form(0)


def nothing(form: Any) -> Any:
    """Something of that form for an argument that is not used."""
    return jnp.zeros(*form) if isinstance(form, tuple) else form(0)


class RecordedPullback:
    """The rules of a node over Tensors: a route or an operator (with the values it takes) for each edge."""

    def __init__(self, node: Any, count: int, structure: tuple[Any, ...], forms: tuple[Any, ...]) -> None:
        mask = tuple([t is not None for t in node.targets])
        function = rules_function(node, mask)

        incoming = sum(s is not None for s in structure[:count])
        defined: list[bool] = []

        def flat_function(*flat: Any) -> tuple[Any, ...]:
            full = unflatten(structure, flat)
            return function(tuple(full[:count]), tuple(full[count:]))

        def every(*flat: Any) -> tuple[Any, ...]:
            found = flat_function(*flat)
            defined[:] = [g is not None for g in found]
            return found

        def tell(jaxpr: Any) -> Any:
            told: list[Any] = []
            results = results_of(mask, defined)
            parts = parts_of(jaxpr, len(results), incoming)
            for j, (k, edge) in enumerate(results):
                if j in parts:
                    told.append((edge, *parts[j]))
                    continue
                aval = jaxpr.outvars[j].aval
                found = origin(jaxpr, j)
                if (
                    found is not None
                    and found[0] < incoming
                    and aval.dtype == jaxpr.invars[found[0]].aval.dtype
                ):
                    told.append((edge, found[0], aval.shape if found[1] else None))
                    continue
                chosen = [i == j for i in range(len(jaxpr.outvars))]
                uses = used(jaxpr, chosen), used(jaxpr, chosen, smoothly=True)
                told.append((edge, k, aval.shape, aval.dtype.name, *uses))
            return told

        self.keep = (node.aval, node.targets)
        self.crossed = crossings(node)
        self.routes: list[Any] = [None] * len(mask)
        if True not in mask:
            return
        for edge, k, shape, *computed in facts(jit(every), tuple(map(stand_in, forms)), tell):
            if not computed:
                self.routes[edge] = (k, None if shape is None else tuple(shape))
                continue
            if len(computed) == 2:  # a part: its sizes, and the dimensions that it lacks
                self.routes[edge] = (k, *map(tuple, (shape, *computed)))
                continue
            dtype, needs, smooth = computed
            takes = tuple([i for i, u in enumerate(needs) if u])
            if node.op.zero_slope:
                smooth = [
                    u and isinstance(f, tuple) and is_inexact(f[1]) for u, f in zip(needs, forms, strict=True)
                ]
            out = jax.ShapeDtypeStruct(tuple(shape), dtype)
            operator = derived(node.op, flat_function, k, takes, forms, smooth, out)
            operator.of = (node.op, argument_at(node, edge))
            self.routes[edge] = (operator, takes)

    def deliver(self, flat: Sequence[Any]) -> tuple[Any, ...]:
        """One gradient per edge."""
        found: list[Any] = []
        for route in self.routes:
            if route is None:
                found.append(None)
            elif type(route[0]) is int:
                value = flat[route[0]]
                if len(route) > 2:
                    starts, sizes, without = route[1:]
                    for d, (start, size) in enumerate(zip(starts, sizes, strict=True)):
                        value = value.narrow(d, start, size) if size != value.shape[d] else value
                    found.append(value.squeeze(without) if without else value)
                else:
                    found.append(value if route[1] is None else value.expand(route[1]))
            else:
                found.append(route[0].call(tuple([flat[i] for i in route[1]])))
        if self.crossed is not None:
            found = list(map(crossed, found, self.crossed))
        return tuple(found)


def argument_at(node: Any, edge: int) -> str:
    """The name of the argument that an edge of a node leads to."""
    rules = node.op.rules
    length = len(node._xt_edges) - len(rules.differentiable) + 1
    names = [n for n in rules.differentiable for _ in range(length if n == rules.sequence else 1)]
    return names[edge]


def derived(
    op: Operator,
    function: Callable[..., Any],
    k: int,
    takes: tuple[int, ...],
    forms: tuple[Any, ...],
    smooth: Sequence[bool],
    out: Any,
) -> Operator:
    """Result `k` of `function` as an operator over the arguments in `takes`, with rules for those that are `smooth`.

    out: the result's shape and dtype.
    """
    names = [f"x{i}" for i in takes]

    def kernel(**values: Any) -> Any:
        full = [values[f"x{i}"] if i in takes else nothing(f) for i, f in enumerate(forms)]
        return function(*full)[k]

    examples = {n: stand_in(forms[i]) for n, i in zip(names, takes, strict=True)}
    ruled = [n for n, i in zip(names, takes, strict=True) if smooth[i]]
    # What a derivative's own derivative takes, a trace tells; what that one's takes would be a trace three times as long, of what hardly
    # anybody asks for: it keeps all.
    told = None if op.of is None else tuple(names)
    rules = {n: rule_of(kernel, n, examples, out, told) for n in ruled}
    parameters = tuple([Parameter(n, "Operand", "Operand", False, UNSET, False) for n in names])
    name = op.name + "_backward"
    title = node_of_derivative(op.name, op.title)
    return type(op)("general", name, Schema(name, parameters, "Array"), kernel, rules, title)


def rule_of(
    kernel: Callable[..., Any], name: str, examples: dict[str, Any], out: Any, told: tuple[str, ...] | None
) -> Callable[..., Any]:
    """The rule for one argument: `jax.vjp` of the kernel, with only the names that it needs; or those that are told."""

    def pulled(grad: Any, **known: Any) -> Any:
        def alone(value: Any) -> Any:
            return kernel(**{**known, name: value})

        primal, pull = jax.vjp(alone, known[name])
        # JAX's cotangents are conjugated with respect to PyTorch's.
        return jnp.conj(pull(jnp.conj(jax.lax.convert_element_type(grad, primal.dtype)))[0])

    def flat(grad: Any, *values: Any) -> tuple[Any]:
        return (pulled(grad, **dict(zip(examples, values, strict=True))),)

    wanted = told
    if wanted is None:
        needs = facts(jit(flat), (out, *examples.values()), lambda jaxpr: used(jaxpr, [True]))[1:]
        wanted = tuple([n for n, u in zip(examples, needs, strict=True) if u])
    absent = [n for n in examples if n not in wanted]

    def rule(grad: Any, **given: Any) -> Any:
        for n in absent:
            e = examples[n]
            given[n] = jnp.zeros(e.shape, e.dtype) if isinstance(e, jax.ShapeDtypeStruct) else e
        return pulled(grad, **given)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    rule.__signature__ = inspect.Signature(  # pyright: ignore[reportFunctionMemberAccess]
        [inspect.Parameter(n, kind) for n in ("grad", *wanted)]
    )
    return rule


def is_meta(values: Sequence[Any]) -> bool:
    """Whether any array is that of a meta tensor."""
    return any(type(v) is MetaArray for v in values)
