"""Custom functions inside of transforms: their own `vmap` and `jvp`, or what follows from `forward`.

The node is recorded over the tensors at their levels, so `backward` runs over batches and values with tangents too. What `forward`
gives there is put together here: of a batch by the function's `vmap`, of a value with its tangent by `forward` and `jvp`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..engine import modes, no_grad
from ..operators.levels.crossing import (
    dual,
    enter,
    leave,
    levels_beyond,
    primal,
    remember_tangent,
    with_tangent,
)
from ..operators.levels.dual_storage import tangent_of
from ..operators.write import store
from ..ops.create.creation import zeros_like
from ..tensor import Tensor, array_of, asks_grad
from ..trees import _broadcast_to_and_flatten, tree_flatten, tree_structure, tree_unflatten
from ..xla.levels import AS_THEY_ARE, KINDS, Dual, Level, Leveled, layers, levels_of

__all__ = [
    "VmapInfo",
    "beyond",
    "check_style",
    "check_vmap",
    "is_physical",
    "levels_in",
    "outputs_at_levels",
    "revived",
    "run_rule",
    "run_vmap",
]

MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What the `vmap` of a function is told: how many samples there are, and how random numbers are drawn."""

    batch_size: int
    randomness: str


TAKEN_AS_THEY_ARE = AS_THEY_ARE | {"forward_ad.dual_level"}


def check_style(separate: bool) -> None:
    """Refuse, inside of `torch.func`'s transforms, a function whose `forward` takes the context."""
    active = [t for t in modes.state.transforms if t.name not in TAKEN_AS_THEY_ARE]
    if active and not separate:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
            f"the setup_context staticmethod. {MORE}"
        )


def levels_in(args: Sequence[Any]) -> list[Level]:
    """The levels of tensors among arguments, those of tangents first, then the highest."""
    found: dict[int, Level] = {}
    for a in args:
        if isinstance(a, Tensor) and type(a._xt_storage.raw) in KINDS:
            for at in every_layer(array_of(a)):
                if at.level.open and (type(at) is Dual or at.mapped):  # type: ignore[attr-defined]
                    found[at.level.number] = at.level
    return sorted(found.values(), key=lambda level: (level.size is not None, -level.number))


def every_layer(array: Any) -> list[Leveled]:
    """The layers of an array, of its tangents too."""
    found: list[Leveled] = []
    for at in layers(array):
        found.append(at)
        if type(at) is Dual:
            found += every_layer(at.tangent)
    return found


def is_physical(level: Level) -> bool:
    """Whether derivatives are taken outside of a batch alone, so that a function's `vmap` is what is differentiated."""
    stack = modes.state.transforms
    inside = stack[stack.index(level) + 1 :] if level in stack else ()
    return not any(not isinstance(t, Level) and t.name != "functionalize" for t in inside)


def run_vmap(cls: Any, level: Level, args: Sequence[Any]) -> Any:
    """The results of a function's `vmap` at a level."""
    return run_rule(cls.vmap, level, args, {})


def run_rule(rule: Callable[..., Any], level: Level, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The results of a rule for batches: it is given all samples, and says where they lie in what it gives."""
    same: dict[int, tuple[Any, Any]] = {}

    def physical(value: Any) -> tuple[Any, int | None]:
        """A tensor with all samples, and where they lie."""
        if not (isinstance(value, Tensor) and level.number in levels_of(array_of(value))):
            return value, None
        storage = value._xt_storage
        origin = level.origins.get(id(storage))
        if origin is not None and origin[3] is value and value._xt_view is None and not storage.version:
            whole, dim = origin[1:3]
        else:
            whole, dim = leave(value, level, 0), 0
        same[id(whole)] = (value, whole)
        return whole, dim

    def split(tree: Any) -> tuple[Any, Any]:
        leaves, structure = tree_flatten(tree)
        pairs = [physical(leaf) for leaf in leaves]
        return tree_unflatten([p[0] for p in pairs], structure), tree_unflatten(
            [p[1] for p in pairs], structure
        )

    given, dims = zip(*map(split, args), strict=True) if args else ((), ())
    named = {n: split(a)[0] for n, a in kwargs.items()}
    before = modes.state.transforms
    modes.state.transforms = tuple([t for t in before if t is not level])
    try:
        found = rule(VmapInfo(level.size or 0, level.randomness), dims, *given, **named)
    finally:
        modes.state.transforms = before
    if not (isinstance(found, tuple) and len(found) == 2):
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with "
            f"the output. Got a {'tuple with ' + str(len(found)) + ' returns' if isinstance(found, tuple) else type(found)} instead"
        )
    outputs, places = found
    leaves, structure = tree_flatten(outputs)
    where = _broadcast_to_and_flatten(places, structure)
    if where is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={places} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree_structure(places)} but output has structure {structure}. {MORE}"
        )

    def inside(value: Any, dim: Any) -> Any:
        """A result as a batch; an argument that is given back is that argument."""
        if id(value) in same:
            return same[id(value)][0]
        return (
            enter(value, level, dim % value.dim()) if isinstance(value, Tensor) and dim is not None else value
        )

    return tree_unflatten([inside(v, d) for v, d in zip(leaves, where, strict=True)], structure)


def check_vmap(cls: Any, own: bool, kwargs: dict[str, Any]) -> None:
    """Refuse a function without a rule for batches, or with two, or whose rule would be given tensors by name."""
    if any(isinstance(value, Tensor) for value in kwargs.values()):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
            f"autograd.Function. Got: {kwargs}"
        )
    if own and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity. "
            f"{MORE}"
        )
    if not own and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the vmap "
            f"staticmethod or set generate_vmap_rule=True. {MORE}"
        )


def outputs_at_levels(
    cls: Any,
    node: Any,
    args: tuple[Any, ...],
    levels: list[Level],
    forward: Callable[[tuple[Any, ...]], Any],
) -> Any:
    """What `forward(args)` gives (with the node set up) for arguments at levels."""
    if not levels:
        return forward(args)
    level, *rest = levels
    if level.size is not None:
        if cls.generate_vmap_rule or level.name in AS_THEY_ARE:
            return forward(args)
        found = run_vmap(cls, level, args)
        cls.setup_context(node, args, found)
        return found
    values = tuple([primal(a, level) if isinstance(a, Tensor) else a for a in args])
    along = [tangent_of(a, level) if isinstance(a, Tensor) else None for a in args]
    found = outputs_at_levels(cls, node, values, rest, forward)
    if all(t is None for t in along):
        return found
    single = not isinstance(found, tuple)
    outputs = (found,) if single else found
    if node.materialize_grads:
        along = [
            zeros_like(v) if t is None and isinstance(v, Tensor) and v.is_floating_point() else t
            for v, t in zip(values, along, strict=True)
        ]
    before = [t._version if isinstance(t, Tensor) else 0 for t in along]
    node._in_jvp = True
    try:
        with no_grad():
            pushed = cls.jvp(node, *along)
    finally:
        node._in_jvp = False
    tangents = (pushed,) if not isinstance(pushed, tuple) else pushed
    check_tangents(outputs, tangents, node.non_differentiable)
    check_memory(args, values, along, before, outputs, tangents, node.dirty_tensors)
    made: list[Any] = []
    # What `jvp` computes has no graph: where gradients are followed, the results' tangents have that of the node instead.
    followed = any(isinstance(a, Tensor) and asks_grad(a) for a in args)
    held = {id(t._xt_storage) for t in along if isinstance(t, Tensor)}
    instead = {id(v): a for v, a in zip(values, args, strict=True) if isinstance(a, Tensor)}
    for o, t in zip(outputs, tangents, strict=True):
        if not isinstance(o, Tensor) or t is None:
            made.append(o)
            continue
        computed = followed and id(t._xt_storage) not in held
        if id(o) in instead and any(o is d for d in node.dirty_tensors):
            target = instead[id(o)]
            store(target, array_of(dual(o, t, level)))
            if not computed:
                remember_tangent(target, t)
            made.append(target)
        else:
            made.append((dual if computed else with_tangent)(o, t, level))
    instead |= {id(o): m for o, m in zip(outputs, made, strict=True)}
    node.to_save = tuple([instead.get(id(t), t) for t in node.to_save])
    node.dirty_tensors = tuple([instead.get(id(t), t) for t in node.dirty_tensors])
    node.non_differentiable = tuple([instead.get(id(t), t) for t in node.non_differentiable])
    return made[0] if single else tuple(made)


def check_tangents(outputs: Sequence[Any], tangents: Sequence[Any], inert: Sequence[Tensor]) -> None:
    """RuntimeError unless a function's `jvp` has returned a tangent for each of its results that can have one."""
    if len(tangents) != len(outputs):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got {len(tangents)})"
        )
    for i, (o, t) in enumerate(zip(outputs, tangents, strict=True)):
        if not isinstance(t, Tensor):
            continue
        differentiable = isinstance(o, Tensor) and (o.is_floating_point() or o.is_complex())
        if not differentiable or any(o is n for n in inert):
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {i}, but  the corresponding forward output is not a "
                "differentiable Tensor.You should return None at that position instead."
            )
        if o.shape != t.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                f"supported. Tensor is of size {list(o.shape)} while the given forward gradient is of size {list(t.shape)}."
            )


def check_memory(
    args: Sequence[Any],
    values: Sequence[Any],
    along: Sequence[Any],
    before: Sequence[int],
    outputs: Sequence[Any],
    tangents: Sequence[Any],
    dirty: Sequence[Tensor],
) -> None:
    """RuntimeError unless tangents share memory as the results do: written in place, or views, of the arguments' tangents.

    `before`: the versions that the arguments' tangents had before `jvp` ran.
    """
    given = [
        (a, v, t, version)
        for a, v, t, version in zip(args, values, along, before, strict=True)
        if isinstance(v, Tensor) and t is not None
    ]
    for o, t in zip(outputs, tangents, strict=True):
        if not isinstance(o, Tensor) or not isinstance(t, Tensor):
            continue
        source = next((p for p in given if p[1] is o), None)
        if source is not None and any(o is d for d in dirty):
            if t is not source[2] or t._version == source[3]:
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
                    "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
                )
            continue
        if source is None and o._is_view():
            base = o._base
            source = next((p for p in given if base is (p[1]._base if p[1]._is_view() else p[1])), None)
        if source is None:
            continue
        arg, _, tangent, _ = source
        of_view = arg._is_view()  # its tangent is one too, though it has memory of its own here
        if of_view and t is tangent:
            continue
        if not t._is_view():
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
            )
        if t._base is not (tangent._base if tangent._is_view() else tangent):
            what = "same base as the given grad input" if of_view else "given grad input"
            raise RuntimeError(
                f"A custom Function is returning a view but the jvp is not returning a view of the {what}."
            )


class revived:
    """A block in which levels that have ended are open once more, as what a `backward` of theirs computes needs it."""

    __slots__ = ("levels",)

    def __init__(self, grads: Sequence[Any]) -> None:
        self.levels = {
            at.level
            for g in grads
            if isinstance(g, Tensor) and type(g._xt_storage.raw) in KINDS
            for at in every_layer(array_of(g))
            if at.outer and not at.level.open
        }

    def __enter__(self) -> None:
        for level in self.levels:
            level.open = True

    def __exit__(self, *exc: object) -> None:
        for level in self.levels:
            level.open = False


def beyond(outputs: Sequence[Any], tensors: Sequence[Tensor]) -> list[tuple[int, ...]]:
    """For each tensor the levels that only the outputs are at."""
    avals = [array_of(o).aval for o in outputs if isinstance(o, Tensor)]
    return [levels_beyond(avals, array_of(t).aval) for t in tensors]
