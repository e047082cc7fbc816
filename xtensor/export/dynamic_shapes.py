"""Which sizes are left open, told in other ways than argument by argument: by the tensors themselves, or by further examples."""

from __future__ import annotations

from typing import Any

from .. import trees
from ..nn.modules.module import Module
from ..tensor import Tensor
from .dims import Dim, combined_arguments, dims

__all__ = ["AdditionalInputs", "Dim", "ShapesCollection", "dims"]


def arguments_of(m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """The arguments of a call by their names."""
    return combined_arguments(m.forward if isinstance(m, Module) else m, args, dict(kwargs or {}))


class ShapesCollection:
    """Open sizes by tensor: `collection[x] = {0: Dim("batch")}`, then `export(..., dynamic_shapes=collection)`.

    Tensors may be anywhere among the arguments. AssertionError for what is no tensor, and for a second, different spec of one.

    >>> x = xtensor.ones(3, 2)
    >>> collection = xtensor.export.ShapesCollection()
    >>> collection[x] = {0: xtensor.export.Dim.DYNAMIC}
    >>> collection.dynamic_shapes(lambda a, b: a, (x, [x]))
    {'a': {0: Dim.DYNAMIC}, 'b': [{0: Dim.DYNAMIC}]}
    """

    def __init__(self) -> None:
        self._shapes: dict[int, tuple[Tensor, Any]] = {}  # the tensors too: another may get a dead one's id

    def __setitem__(self, t: Tensor, shape: Any) -> None:
        if not isinstance(t, Tensor):
            raise AssertionError(f"Cannot assign shape to non-tensor or non-_IntWrapper type {type(t)}")
        known = self._shapes.get(id(t))
        if known is not None and known[1] != shape:
            raise AssertionError(f"Shapes assigned to input do not match: expected {known[1]}, got {shape}")
        self._shapes[id(t)] = (t, shape)

    def __getitem__(self, t: Tensor) -> Any:
        return self._shapes.setdefault(id(t), (t, {}))[1]

    def __len__(self) -> int:
        return len(self._shapes)

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The same as a tree around the arguments; ValueError where a tensor is not among them."""
        met: set[int] = set()

        def told(leaf: Any) -> Any:
            met.add(id(leaf))
            known = self._shapes.get(id(leaf))
            return None if known is None else known[1]

        found = trees.tree_map(told, arguments_of(m, args, kwargs))
        if self._shapes.keys() - met:
            raise ValueError(
                "Some tensors that were assigned shapes were not found in args. Maybe such tensors were copied when passing them "
                "as args? Maybe such tensors are contained in classes that were not registered with pytree?"
            )
        return found


class AdditionalInputs:
    """Open sizes by examples: what differs among the calls that were added is left open (`Dim.DYNAMIC`), the rest is fixed.

    >>> examples = xtensor.export.AdditionalInputs()
    >>> examples.add((xtensor.ones(5, 2),))
    >>> examples.dynamic_shapes(lambda a: a, (xtensor.ones(3, 2),))
    {'a': (Dim.DYNAMIC, None)}
    """

    def __init__(self) -> None:
        self._examples: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """One more call; AssertionError where `args` is no tuple or `kwargs` no dict."""
        if type(args) is not tuple:
            raise AssertionError(f"Representative args {args} must be a tuple")
        if kwargs is not None and type(kwargs) is not dict:
            raise AssertionError(f"Representative kwargs {kwargs} must be None or a dict")
        self._examples.append((args, dict(kwargs or {})))

    def dynamic_shapes(self, m: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """The tree around the arguments of a call; ValueError where the calls differ in more than sizes and numbers."""
        calls = [arguments_of(m, *call) for call in [*self._examples, (args, kwargs)]]
        return trees.tree_map(differing, calls[-1], *calls[:-1])

    def verify(self, ep: Any) -> None:
        """Call a program with every example: what it does not take raises, as a call of `ep.module()` does."""
        module = ep.module()
        for args, kwargs in self._examples:
            module(*args, **kwargs)


def differing(*values: Any) -> Any:
    """What of the values of one argument in several calls is left open."""
    first = values[0]
    if all(isinstance(v, Tensor) and v.dim() == first.dim() for v in values):
        return tuple(
            [None if len(set(s)) == 1 else Dim.DYNAMIC for s in zip(*[v.shape for v in values], strict=True)]
        )
    if any(type(v) is not type(first) for v in values):
        raise ValueError(
            f"The following inputs were found to have differing types, so they cannot be marked as dynamic: {values}."
        )
    if isinstance(first, Tensor):
        raise ValueError(f"The following inputs have different numbers of dimensions: {values}.")
    return None if all(v == first for v in values) else Dim.DYNAMIC
