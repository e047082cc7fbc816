"""Tensors that cross the border of a level: into a batch and out of it, values and tangents put together and taken apart.

Each way has a node whose derivative is the way back, itself followed by autograd. Cotangents from outside a level are marked (`outer`):
of a batch they are summed for what is not in it; of values with tangents they hold the cotangent of the tangent in the place
of the value and that of the value in the place of the tangent, which makes the rules of reverse mode right as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...engine import modes
from ...engine.graph import Node
from ...storage import AGE, births
from ...tensor import Tensor, array_of, edge_of, meta_of, plain_edge, wrap
from ...xla.levels import Level, LevelAval, batches_of, layers, levels_of, tracing
from ...xla.signals import from_start
from ...xla.transformed import entered, left, lifted, lowered, paired, parts, summed
from ..recording import noted

__all__ = [
    "CrossNode",
    "crossed",
    "crossings",
    "dual",
    "enter",
    "given_tangent",
    "leave",
    "level_at",
    "levels_beyond",
    "lift",
    "lower",
    "new_level",
    "primal",
    "refuse_complex_along",
    "refuse_dynamic",
    "refuse_nested",
    "remember_tangent",
    "running",
    "tangent",
    "with_tangent",
]


NOTHING: dict[int, Any] = {}


class running:
    """A block in which a transform runs; gives its level."""

    __slots__ = ("level",)

    def __init__(self, name: str, size: int | None = None, randomness: str = "error") -> None:
        self.level = new_level(name, size, randomness)

    def __enter__(self) -> Level:
        state, level = modes.state, self.level
        level.before = before = state.transforms
        if level.size is None:
            births.now = level.born = births.now + AGE
            births.open += 1
        state.transforms = (*before, level)
        return level

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            self.level  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            self.level.open = False
            self.level.origins = NOTHING
            if self.level.size is None:
                births.open -= 1
            modes.state.transforms = self.level.before


def new_level(name: str, size: int | None = None, randomness: str = "error") -> Level:
    """A level above all that run."""
    above = max([t.number for t in modes.state.transforms if isinstance(t, Level)], default=0)
    return Level(name, above, size, randomness)


def level_at(number: int) -> Level:
    """The level of a number among those that run in this thread; RuntimeError where none has it."""
    for level in modes.state.transforms:
        if isinstance(level, Level) and level.number == number:
            return level
    raise RuntimeError(f"no transform runs at level {number}: batches are entered within `vmap`")


def refuse_nested() -> None:
    """RuntimeError where tangents are being taken already, and a level of `autograd.forward_ad` is to be one of two."""
    if any(isinstance(t, Level) and t.size is None for t in modes.state.transforms):
        raise RuntimeError("Nested forward mode AD is not supported at the moment")


def refuse_complex_along(value: Tensor, along: Tensor) -> None:
    """RuntimeError for a complex tangent of a real tensor, whose imaginary part would be lost."""
    if along.is_complex() and not value.is_complex():
        raise RuntimeError(
            f"A tangent has its tensor's dtype here: one of {along.dtype} for a Tensor of {value.dtype} is not supported. "
            "Please convert the Tensor to a complex dtype first."
        )


Transposed = Callable[[Tensor], Sequence[Tensor | None]]


class CrossNode(Node):
    """The node of a way across a border.

    transposed: from the gradient of the result to those of the arguments. beyond: for each of several arguments the levels that
    only the result is at; the gradient of one alone leaves none but that of the border.
    """

    __slots__ = ("aval", "beyond", "title", "transposed")
    _xt_trusted = True

    def __init__(
        self,
        title: str,
        edges: tuple[Any, ...],
        aval: Any,
        transposed: Transposed,
        beyond: tuple[Any, ...] | None,
    ) -> None:
        super().__init__(edges)
        self.title = title
        self.aval = aval
        self.transposed = transposed
        self.beyond = beyond

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def name(self) -> str:
        return self.title

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the arguments."""
        if grads[0] is None:
            return (None,) * len(self._xt_edges)
        found = self.transposed(grads[0])
        return tuple(found) if self.beyond is None else tuple(map(crossed, found, self.beyond))


def _made(title: str, array: Any, sources: Sequence[Any], transposed: Transposed) -> Tensor:
    """A tensor over `array` whose gradient goes on to the sources."""
    made = wrap(array)
    if modes.state.mode & modes.NO_GRAD:
        return made
    edges = [None if s is None else edge_of(s) for s in sources]
    if not any(edges) or array.dtype.kind in "biu":
        return made
    beyond = None
    if len(sources) > 1:
        avals = [None if s is None else array_of(s).aval for s in sources]
        beyond = tuple([levels_beyond((array.aval,), a) for a in avals])
    node = CrossNode(title, tuple(map(plain_edge, edges)), array.aval, transposed, beyond)
    made._xt_edge = (noted(node), 0)
    return made


def _taken(tensor: Tensor) -> Any:
    """The array of a tensor that enters a level, or leaves one."""
    if tracing.recorder is not None:
        tracing.recorder.take(tensor)
    return array_of(tensor)


def enter(tensor: Tensor, level: Level, dim: int, outer: bool = False) -> Tensor:
    """What lies along a dimension as the samples of a batch."""
    return _made(
        "VmapBackward",
        entered(level, _taken(tensor), dim, outer),
        (tensor,),
        lambda grad: (leave(grad, level, dim),),
    )


def leave(tensor: Tensor, level: Level, dim: int) -> Tensor:
    """The samples of a batch along a new dimension."""
    return _made(
        "UnvmapBackward",
        left(level, _taken(tensor), dim),
        (tensor,),
        lambda grad: (enter(grad, level, dim, outer=True),),
    )


def lift(tensor: Tensor, level: Level, outer: bool = False) -> Tensor:
    """A tensor that is the same for all samples of a batch."""
    return _made(
        "LiftBackward",
        lifted(level, _taken(tensor), outer),
        (tensor,),
        lambda grad: (lower(grad, level),),
    )


def lower(tensor: Tensor, level: Level) -> Tensor:
    """What is the same for all samples of a batch, without the level."""
    return _made(
        "LowerBackward",
        lowered(level, _taken(tensor)),
        (tensor,),
        lambda grad: (lift(grad, level, outer=True),),
    )


def dual(value: Tensor, along: Tensor | None, level: Level) -> Tensor:
    """The tensor with a tangent at a level of tangents."""
    array = paired(level, _taken(value), None if along is None else _taken(along))

    def transposed(grad: Tensor) -> Sequence[Tensor | None]:
        inner = _taken(grad)
        ours = [a for a in layers(inner) if a.level is level]
        if not (ours and ours[0].outer):
            return (grad, None)
        return (_part(grad, level, 1), _part(grad, level, 0))

    return _made("MakeDualBackward", array, (value, along), transposed)


def with_tangent(value: Tensor, along: Tensor, level: Level) -> Tensor:
    """`dual`, of which `given_tangent` gives the tangent as the tensor that it is."""
    made = dual(value, along, level)
    remember_tangent(made, along)
    return made


def remember_tangent(made: Tensor, along: Tensor) -> None:
    """Let `given_tangent` give this tensor for a dual one, while both are as they are now."""
    meta_of(made).tangent = (array_of(made), along, array_of(along))


def given_tangent(tensor: Tensor) -> Tensor | None:
    """The tensor that was given as the tangent, None where either was written since, or there is none."""
    meta = tensor._xt_meta
    if meta is None or meta.tangent is None:
        return None
    made, along, array = meta.tangent
    return along if made is array_of(tensor) and array is array_of(along) else None


def primal(tensor: Tensor, level: Level) -> Tensor:
    """The value, without its tangent at the level."""
    found = _part(tensor, level, 0)
    assert found is not None
    return found


def tangent(tensor: Tensor, level: Level) -> Tensor | None:
    """The tangent at the level, None where it is zero."""
    return _part(tensor, level, 1)


def _part(tensor: Tensor, level: Level, which: int) -> Tensor | None:
    """Value (0) or tangent (1)."""
    array = parts(level, _taken(tensor))[which]
    if array is None:
        return None

    def transposed(grad: Tensor) -> Sequence[Tensor | None]:
        return (_outer(grad, level, which),)

    return _made("UnpackDualBackward", array, (tensor,), transposed)


def _outer(grad: Tensor, level: Level, which: int) -> Tensor:
    """The cotangent of a value with its tangent, of which that of one part is given."""
    array = _taken(grad)
    if which == 1:
        return _made(
            "DualCotangentBackward",
            paired(level, array, None, outer=True),
            (grad,),
            lambda again: (_part(again, level, 1),),
        )
    zero = wrap(array).new_zeros(()).expand(grad.shape)
    return _made(
        "DualCotangentBackward",
        paired(level, _taken(zero), array, outer=True),
        (grad,),
        lambda again: (_part(again, level, 0),),
    )


# ---- what cannot be


def refuse_dynamic(tensor: Tensor, name: str = "") -> None:
    """RuntimeError for a batch, where the shape of the result depends on the values; `name` is PyTorch's of the operator."""
    if not batches_of(tensor._xt_storage.array):
        return
    if name == "masked_select":
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each "
            "batch this would return a differently shaped Tensor. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    if not name:
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing "
            "with a boolean mask."
        )
    raise RuntimeError(
        "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
        f"aten::{name}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
    )


# ---- within the graph


def levels_beyond(avals: Iterable[Any], target: Any) -> tuple[int, ...]:
    """The levels of results that an argument is not at, the outermost first."""
    own = {n for a in avals if type(a) is LevelAval for n in a.levels}
    return tuple(sorted(own.difference(getattr(target, "levels", ())), reverse=True)) if own else ()


def crossings(node: Any) -> tuple[tuple[int, ...], ...] | None:
    """For each edge of a node the levels that its gradient leaves; None where there are none at all."""
    avals = node._xt_metadata
    if not any(type(a) is LevelAval for a in avals):
        return None
    found = tuple([() if t is None else levels_beyond(avals, t) for t in node.targets])
    return found if any(found) else None


def crossed(grad: Tensor | None, numbers: tuple[int, ...]) -> Tensor | None:
    """A gradient that goes on to something that is not at these levels; those within which it began, it stays at."""
    if grad is None or not numbers:
        return grad
    array = _taken(grad)
    for at in layers(array):
        if at.outer and at.level.number in numbers:
            found = _summed(grad, at.level)
            return crossed(found, numbers)
    return grad


def _summed(grad: Tensor, level: Level) -> Tensor | None:
    if level.size is None:
        return _part(grad, level, 1)
    array = _taken(grad)
    return _made(
        "VmapSumBackward",
        summed(level, array),
        (grad,),
        lambda again: (_spread(again, level),),
    )


def _spread(grad: Tensor, level: Level) -> Tensor:
    """The same cotangent for all samples."""
    return _made(
        "VmapSpreadBackward",
        lifted(level, _taken(grad), outer=True),
        (grad,),
        lambda again: (_summed(again, level) if level.number in levels_of(array_of(again)) else again,),
    )
