"""Sizes left open: dimensions with names and ranges, and expressions of them as plain text that can be kept and computed anew."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from jax import export
from jax.core import max_dim, min_dim

from .. import trees
from ..tensor import Tensor

__all__ = [
    "AUTO",
    "AUTOMATIC",
    "DYNAMIC",
    "STATIC",
    "Dim",
    "Range",
    "Size",
    "bound_sizes",
    "combined_arguments",
    "dims",
    "evaluate",
    "multiplied",
    "named_sizes",
    "parts_of",
    "size_of",
    "symbols",
]

LARGEST = 2**63 - 1
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Range(NamedTuple):
    """The values that a size may have, both ends included."""

    lower: int
    upper: int | float

    def __str__(self) -> str:
        return f"VR[{self.lower}, {'int_oo' if math.isinf(self.upper) else self.upper}]"

    __repr__ = __str__


class Hint:
    """How a dimension without a name is treated."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Dim.{self.name}"

    __hash__ = object.__hash__


AUTO, DYNAMIC, STATIC = Hint("AUTO"), Hint("DYNAMIC"), Hint("STATIC")


class Dim:
    """A size left open, by name: `Dim("batch", min=2, max=64)`. The same Dim in two places is the same size; `2 * d`, `d + 1` follow from it.

    `Dim.AUTO` opens a dimension where the code allows it, `Dim.DYNAMIC` is an open one without a name, `Dim.STATIC` a fixed one.

    >>> batch = xtensor.export.Dim("batch", max=64)
    >>> program = xtensor.export.export(xtensor.nn.Linear(3, 2), (xtensor.ones(4, 3),), dynamic_shapes=({0: batch},))
    >>> program.module()(xtensor.ones(7, 3)).shape
    xtensor.Size([7, 2])
    """

    AUTO, DYNAMIC, STATIC = AUTO, DYNAMIC, STATIC

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        lower, upper = 0 if min is None else min, math.inf if max is None else max
        if upper < lower:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not NAME.match(name):
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__ = name
        self.min, self.max = lower, upper
        self.root, self.factor, self.rest = self, 1, 0

    def _derived(self, factor: int, rest: int) -> Dim:
        made = Dim.__new__(Dim)
        made.root, made.factor, made.rest = self.root, factor, rest
        made.min, made.max = factor * self.root.min + rest, factor * self.root.max + rest
        product = self.root.__name__ if factor == 1 else f"{factor}*{self.root.__name__}"
        made.__name__ = product if not rest else f"{product} {'+' if rest > 0 else '-'} {abs(rest)}"
        return made

    def __mul__(self, other: int) -> Dim:
        return self._derived(self.factor * other, self.rest * other)

    def __add__(self, other: int) -> Dim:
        return self._derived(self.factor, self.rest + other)

    def __sub__(self, other: int) -> Dim:
        return self._derived(self.factor, self.rest - other)

    __rmul__, __radd__ = __mul__, __add__

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min}, max={self.max})"


class Size(str):
    """A size as text over the names of dimensions: `2*batch + 1`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def size_of(value: Any) -> Any:
    """A size, or an offset made of sizes: an int, or `Size` of one of JAX's symbolic sizes."""
    return Size(str(value)) if export.is_symbolic_dim(value) else value


OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
    ast.Pow: lambda a, b: a**b,
}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max_dim,
    "min": min_dim,
}


def evaluate(
    size: Any, known: Mapping[str, Any], functions: Mapping[str, Callable[[Any, Any], Any]] = FUNCTIONS
) -> Any:
    """The value of a size, whose dimensions have these values: ints, symbolic sizes, or what `functions` take else.

    ValueError for what is no size's text.
    """
    if not isinstance(size, Size):
        return size

    def walk(node: ast.AST) -> Any:
        match node:
            case ast.Expression(body=body):
                return walk(body)
            case ast.Constant(value=int() as value):
                return value
            case ast.Name(id=name) if name in known:
                return known[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATIONS:
                return OPERATIONS[type(op)](walk(left), walk(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -walk(operand)
            case ast.Call(func=ast.Name(id=name), args=[first, second], keywords=[]) if name in functions:
                return functions[name](walk(first), walk(second))
        raise ValueError(f"{size!s} is no size over {', '.join(known) or 'no dimensions'}")

    try:
        return walk(ast.parse(size.replace("^", "**"), mode="eval"))
    except (SyntaxError, RecursionError, MemoryError, OverflowError, ZeroDivisionError) as error:
        raise ValueError(f"{size!s} is no size") from error


def symbols(ranges: Mapping[str, Range]) -> dict[str, Any]:
    """JAX's symbolic sizes for dimensions with these ranges."""
    if not ranges:
        return {}
    constraints = [f"{name} >= {r.lower}" for name, r in ranges.items() if r.lower > 1]
    constraints += [f"{name} <= {int(r.upper)}" for name, r in ranges.items() if not math.isinf(r.upper)]
    made = export.symbolic_shape(", ".join(ranges), constraints=constraints)
    return dict(zip(ranges, made, strict=True))


class Opened(NamedTuple):
    """What `dynamic_shapes` says.

    sizes: of each tensor among the arguments its sizes, ints and `Size`s. ranges: of the names. hinted: the sizes of the examples at the
    places of `Dim.AUTO` and `Dim.DYNAMIC`; one name stands for equal ones, except at the places that are `apart`. allowed: which of
    `Dim.AUTO` are opened.
    """

    sizes: list[tuple[Any, ...]]
    ranges: dict[str, Range]
    hinted: dict[str, int]
    named: dict[int, str]
    apart: frozenset[str]
    allowed: str


AUTOMATIC = ("all", "first", "none")
"""Which of the dimensions of `Dim.AUTO` are opened: what is tried, one after the other."""


def named_sizes(
    forward: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic: Any,
    allowed: str = "all",
    apart: frozenset[str] = frozenset(),
) -> Opened:
    """The sizes of all tensors among arguments, some of which `dynamic` leaves open; see `export`, `Opened` and `AUTOMATIC`."""
    combined = combined_arguments(forward, args, kwargs)
    if isinstance(dynamic, dict):
        if set(dynamic) != set(combined):
            raise ValueError(
                "When `dynamic_shapes` is specified as a dict, its top-level keys must be the arg names "
                f"{list(combined)} of `inputs`, but here they are {list(dynamic)}. Alternatively, you could also ignore arg "
                "names entirely and specify `dynamic_shapes` as a list/tuple matching `inputs`."
            )
        wishes = [dynamic[name] for name in combined]
    elif dynamic is None:
        wishes = [None] * len(combined)
    else:
        wishes = list(dynamic)
        if len(wishes) != len(combined):
            raise ValueError(
                "Detected mismatch between the structure of `inputs` and `dynamic_shapes`: `inputs` has "
                f"{len(combined)} elements, but `dynamic_shapes` has {len(wishes)} elements"
            )
    found = Opened([], {}, {}, {}, apart, allowed)
    for (name, value), wish in zip(combined.items(), wishes, strict=True):
        open_tree(found, f"inputs[{name!r}]", value, wish)
    return found


def combined_arguments(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the names of parameters, `*args` one by one where the names do not say."""
    try:
        bound = inspect.signature(forward).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return {**{str(i): a for i, a in enumerate(args)}, **kwargs}
    found: dict[str, Any] = {}
    for name, value in bound.items():
        kind = inspect.signature(forward).parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found.update(value)
        else:
            found[name] = value
    return found


def open_tree(found: Opened, where: str, value: Any, wish: Any) -> None:
    """Note the sizes of the tensors in a value, in the order of its leaves."""
    if isinstance(value, Tensor):
        found.sizes.append(open_tensor(found, where, value, wish))
    elif isinstance(value, dict):
        for key, part in value.items():
            open_tree(found, f"{where}[{key!r}]", part, None if wish is None else wish[key])
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            open_tree(found, f"{where}[{i}]", part, None if wish is None else wish[i])
    else:
        node = trees.NODES.get(type(value))
        if node is None:
            return
        parts, context = node.flatten(value)
        wishes = wish if wish is None or isinstance(wish, (list, tuple)) else node.flatten(wish)[0]
        for i, (part, key) in enumerate(zip(parts, node.keys(context, len(parts)), strict=True)):
            open_tree(found, f"{where}{key}", part, None if wishes is None else wishes[i])


def open_tensor(found: Opened, where: str, tensor: Tensor, wish: Any) -> tuple[Any, ...]:
    """A tensor's sizes, those left open by name."""
    shape = tuple(tensor.shape)
    if wish is None:
        return shape
    if not isinstance(wish, dict):
        if len(wish) != len(shape):
            raise ValueError(
                f"Expected dynamic shape spec {wish} at `dynamic_shapes{where.removeprefix('inputs')}` to have the same length "
                f"as the actual tensor shape {tensor.shape} (expected {len(shape)}, but got {len(wish)} instead)"
            )
        wish = dict(enumerate(wish))
    sizes: list[Any] = list(shape)
    for at, dim in wish.items():
        place = f"{where}.shape[{at}]"
        if not isinstance(at, int) or not -len(shape) <= at < len(shape):
            raise ValueError(f"{place}: there is no such dimension of a tensor of sizes {list(shape)}")
        sizes[at] = open_size(found, place, shape[at], dim, at == 0)
    return tuple(sizes)


def open_size(found: Opened, place: str, size: int, dim: Any, first: bool) -> Any:
    """A size by its name, or as it is."""
    if isinstance(dim, str):
        dim = Dim(dim)
    if dim is None or dim is STATIC:
        return size
    if isinstance(dim, int):
        if dim != size:
            raise ValueError(
                f"Static shape constraint of {dim} does not match input size of {size}, for {place}"
            )
        return size
    if dim is AUTO:
        if size < 2 or found.allowed == "none" or (found.allowed == "first" and not first):
            return size
    if dim is AUTO or dim is DYNAMIC:
        found.hinted[place] = size
        if size in found.named and place not in found.apart:
            return Size(found.named[size])
        name = next(f"s{i}" for i in range(len(found.ranges) + 1) if f"s{i}" not in found.ranges)
        found.ranges[name] = Range(0 if size < 2 else 2, math.inf)
        found.named.setdefault(size, name)
        return Size(name)
    if not isinstance(dim, Dim):
        raise ValueError(f"Unexpected dynamic_shape {dim!r} at {place}: a Dim, an int or None is meant")
    if not dim.min <= size <= dim.max:
        raise ValueError(
            f"{dim.__name__} = {size} at {place} is outside of its range [{dim.min}, {dim.max}]: give an example in it"
        )
    root = dim.root
    new = Range(int(root.min), root.max)
    if found.ranges.setdefault(root.__name__, new) != new:
        raise ValueError(
            f"Found different definitions of {root.__name__}: {found.ranges[root.__name__]} and {new}"
        )
    text = root.__name__ if dim.factor == 1 else f"{dim.factor}*{root.__name__}"
    return Size(text if not dim.rest else f"{text} + {dim.rest}")


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Several sizes left open, with one range."""
    return tuple([Dim(name, min=min, max=max) for name in names])


def multiplied(wish: Any, factors: Mapping[str, int]) -> Any:
    """What is told of open sizes, with multiples in the place of those of these names."""
    if isinstance(wish, str):
        wish = Dim(wish)
    if isinstance(wish, dict):
        return {key: multiplied(part, factors) for key, part in wish.items()}
    if isinstance(wish, (list, tuple)):
        return type(wish)([multiplied(part, factors) for part in wish])
    if isinstance(wish, Dim) and wish.root is wish and wish.__name__ in factors:
        by = factors[wish.__name__]
        largest = None if math.isinf(wish.max) else int(wish.max) // by
        return by * Dim(f"_{wish.__name__}", min=-(-int(wish.min) // by), max=largest)
    return wish


def bound_sizes(sizes: Sequence[Sequence[Any]], shapes: Sequence[Sequence[int]]) -> dict[str, int]:
    """The values of the names in sizes that tensors of these shapes give them."""
    known: dict[str, int] = {}
    for declared, given in zip(sizes, shapes, strict=True):
        for size, value in zip(declared, given, strict=False):
            if isinstance(size, Size) and NAME.match(size):
                known.setdefault(str(size), value)
    for declared, given in zip(sizes, shapes, strict=True):
        for size, value in zip(declared, given, strict=False):
            found = parts_of(size) if isinstance(size, Size) else None
            if found is not None:
                name, factor, rest = found
                known.setdefault(name, (value - rest) // factor)
    return known


def parts_of(size: Size) -> tuple[str, int, int] | None:
    """The name, factor and rest of a size `factor*name + rest`; None for another one."""
    found = re.fullmatch(r"(?:(\d+)\*)?([A-Za-z_]\w*)(?: ([+-]) (-?\d+))?", size)
    if found is None:
        return None
    rest = int(found[4] or 0)
    return found[2], int(found[1] or 1), -rest if found[3] == "-" else rest
