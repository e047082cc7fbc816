"""Scans over a dimension: each result combines all elements up to its place, or a state is carried along."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ops.shape.joining import cat, stack
from ..tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan", "scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """The results of combining all elements up to each place of a dimension, by an associative function.

    xs: a tensor or a tree of tensors of one length along `dim`; combine_fn: of two such trees, one. Halves of the elements
    are combined at a time, so that the number of calls grows with the logarithm of the length.

    Example: `associative_scan(lambda a, b: a + b, x, 0)` is `x.cumsum(0)`.
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, tree = _leaves("associative_scan", combine_fn, xs, dim)

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        return tree_flatten(combine_fn(tree_unflatten(a, tree), tree_unflatten(b, tree)))[0]

    moved = [_turned(x.movedim(dim, 0), reverse) for x in leaves]
    found = [_turned(x, reverse).movedim(0, dim) for x in _scanned(combine, moved)]
    return tree_unflatten(found, tree)


def _leaves(name: str, function: Any, xs: Any, dim: Any) -> tuple[list[Tensor], Any]:
    leaves, tree = tree_flatten(xs)
    if not callable(function):
        raise ValueError("Combine_fn must be a callable, but got " + repr(function))
    if not isinstance(dim, int):
        raise ValueError("Dim must be an int, but got " + str(type(dim)))
    if not leaves or not all(isinstance(x, Tensor) for x in leaves):
        raise ValueError(f"{name}: xs leaves must be tensors, and there must be one at least")
    lengths = {x.shape[dim] for x in leaves}
    if len(lengths) > 1 or 0 in lengths:
        raise ValueError(
            f"{name}: all xs leaves must have the same length along dim, and not 0 (got {sorted(lengths)})"
        )
    return leaves, tree


def _turned(x: Tensor, reverse: bool) -> Tensor:
    return x.flip(0) if reverse else x


def _scanned(combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], xs: list[Tensor]) -> list[Tensor]:
    """Neighbours are combined and these scanned; what lies between follows from them."""
    length = len(xs[0])
    if length == 1:
        return xs
    even = length // 2 * 2
    pairs = combine([x[0:even:2] for x in xs], [x[1:even:2] for x in xs])
    odd = _scanned(combine, pairs)
    if length == 2:
        return [cat([x[:1], o]) for x, o in zip(xs, odd)]
    between = combine([o[: (length - 1) // 2] for o in odd], [x[2::2] for x in xs])
    made = []
    for x, o, b in zip(xs, odd, between):
        evens = cat([x[:1], b])
        joined = stack([evens[: len(o)], o], 1).flatten(0, 1)
        made.append(joined if len(evens) == len(o) else cat([joined, evens[-1:]]))
    return made


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """The last state and all results of a function of a state and an element, called along a dimension.

    combine_fn: of the state and the elements at a place, the next state and a result.

    Example: `scan(lambda s, x: (s + x, s * x), torch.zeros(2), xs)`.
    """
    leaves, tree = _leaves("scan", combine_fn, xs, dim)
    places = range(leaves[0].shape[dim])
    results: list[Any] = []
    shape: Any = None
    for i in reversed(places) if reverse else places:
        init, result = combine_fn(init, tree_unflatten([x.select(dim, i) for x in leaves], tree))
        flat, shape = tree_flatten(result)
        results.append(flat)
    if reverse:
        results.reverse()
    return init, tree_unflatten([stack(parts, dim) for parts in zip(*results)], shape)
