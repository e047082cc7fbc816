"""ONNX nodes, constants and shapes while a model is made, and the table of translations."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import dtypes
from ...xla.cache import bounded
from ..dims import Size, parts_of

__all__ = [
    "TABLE",
    "Body",
    "Builder",
    "Refused",
    "Step",
    "Untranslated",
    "Value",
    "refuse_unknown",
    "translation",
]

TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
    "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16,
}  # fmt: skip
"""ONNX's numbers of types."""
LARGEST = 9223372036854775807
TABLE: dict[str, Callable[..., Any]] = {}
"""Translations by operator: `function(builder, *args, **kwargs)` with the operator's arguments, tensors as `Value`s."""


class Untranslated(RuntimeError):
    """An operator, or a use of it, that has no form in ONNX here."""


class Refused(Untranslated):
    """A use of an operator that must not be translated by other means either."""


class Value(NamedTuple):
    """A tensor of the model: its name, dtype and sizes (ints, and `Size`s where they are open)."""

    name: str
    dtype: Any
    shape: tuple[Any, ...]

    @property
    def rank(self) -> int:
        """How many dimensions there are."""
        return len(self.shape)


def translation(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that puts a function into the table, under these operators' names."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            TABLE[name] = function
        return function

    return put


WITHOUT_MEANING = frozenset(
    "copy device dtype generator inplace layout memory_format non_blocking out pin_memory requires_grad sparse".split()
)
"""Arguments that a translation may leave aside: the result's dtype is that of the program, and it lies where the model runs."""


@bounded(512)
def parameters_of(known: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(known).parameters)


def refuse_unknown(known: Callable[..., Any], named: Mapping[str, Any]) -> None:
    """Untranslated for an argument, given by its name, that a translation takes no notice of."""
    for name in named.keys() - parameters_of(known) - WITHOUT_MEANING:
        if named[name] is not None and named[name] is not False:
            raise Untranslated(f"there is no translation to ONNX of the argument {name}")


class Step(NamedTuple):
    """A node of the model."""

    type: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


class Body(NamedTuple):
    """A program within a node: what `Loop` repeats, what `If` chooses. It sees the values outside by their names."""

    nodes: list[Step]
    inputs: list[Value]
    outputs: list[Value]


FEW = "uint8 int8 uint16 int16 uint32 uint64 bfloat16 bool"
LACKING: dict[str, frozenset[str]] = {
    names: frozenset(types.split())
    for group, types in (
        ("Where", "bool uint16 int16 uint64 bfloat16"),
        ("Max Min", "bool uint16 int16 bfloat16"),
        ("ReduceSum ReduceProd CumSum Einsum Range", FEW),
        ("ReduceMax ReduceMin ArgMax ArgMin", "bool uint16 int16 uint32 uint64 bfloat16"),
        ("TopK", "bool uint16 uint32 uint64 bfloat16"),
        ("MatMul Gemm", "bool int8 uint8 int16 uint16 bfloat16"),
        ("Pow", FEW),
        ("Tan Sinh Cosh Asin Acos Atan Asinh Acosh Atanh Erf Det Conv ConvTranspose AveragePool", "float64 bfloat16"),
        ("Neg", "uint8 uint16 uint32 uint64 bool bfloat16"),
        ("Pad", "uint16 int16 bfloat16"),
        ("Expand Tile", "bfloat16"),
        ("IsInf", "float16 bfloat16"),
        ("Trilu", "uint8 int8 uint16 int16 uint32 uint64 bfloat16"),
        ("Add Sub Mul Div Exp Log Sqrt Floor Ceil Round Sin Cos Tanh Reciprocal Sigmoid Softmax Softplus Relu", "bfloat16"),
        ("IsNaN Less LessOrEqual Greater GreaterOrEqual Equal Abs Mod", "bfloat16"),
    )
    for names in group.split()
}  # fmt: skip
"""The types that runtimes lack in nodes which ONNX has them in."""
WIDER = {
    "bool": dtypes.int32, "uint8": dtypes.int32, "int8": dtypes.int32, "uint16": dtypes.int32, "int16": dtypes.int32,
    "uint32": dtypes.int64, "uint64": dtypes.int64, "bfloat16": dtypes.float32, "float16": dtypes.float32, "float64": dtypes.float32,
}  # fmt: skip


class Builder:
    """A model while it is made.

    sizes: where an open size is found, by name: a tensor, its dimension, how often the size is in that, and what is added. operator, results:
    the operator that is translated, and what is known of its results.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Step] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.sizes: dict[str, tuple[Value, int, int, int]] = {}
        self._names: set[str] = set()
        self._kept: dict[Any, Value] = {}
        self.operator = ""
        self.results: list[Any] = []
        self.draws = 0
        self.writes_weights = False

    @property
    def result(self) -> Any:
        """What is known of the operator's first result."""
        return self.results[0]

    def name(self, wish: str) -> str:
        """A name that nothing has yet."""
        found, number = wish, 0
        while found in self._names:
            number += 1
            found = f"{wish}_{number}"
        self._names.add(found)
        return found

    # -- nodes

    def op(
        self,
        type: str,
        *inputs: Any,
        like: Value | None = None,
        dtype: Any = None,
        shape: Any = None,
        **attributes: Any,
    ) -> Value:
        """Add a node of one result, whose dtype and sizes are those of `like`, or of the first input."""
        return self.ops(type, *inputs, count=1, like=like, dtype=dtype, shape=shape, **attributes)[0]

    def ops(
        self,
        type: str,
        *inputs: Any,
        count: int,
        like: Value | None = None,
        dtype: Any = None,
        shape: Any = None,
        **attributes: Any,
    ) -> list[Value]:
        """Add a node of several results."""
        source = like or next((i for i in inputs if isinstance(i, Value)), None)
        kind = dtype if dtype is not None else getattr(source, "dtype", dtypes.float32)
        sizes = tuple(shape) if shape is not None else getattr(source, "shape", ())
        lacking = LACKING.get(type, ())
        if lacking and any(
            short_name(i.dtype) in lacking for i in inputs[type == "Where" :] if isinstance(i, Value)
        ):
            wide = [self.widened(v, lacking) if at or type != "Where" else v for at, v in enumerate(inputs)]
            wider = WIDER[short_name(kind)] if short_name(kind) in lacking else kind
            made = self.ops(type, *wide, count=count, like=like, dtype=wider, shape=sizes, **attributes)
            return [self.cast(made[0], kind), *made[1:]]
        outputs = [self.name(type.lower()) for _ in range(count)]
        given = [
            i.name if isinstance(i, Value) else "" if i is None else self.constant(i).name for i in inputs
        ]
        while given and not given[-1]:
            given.pop()
        kept = {name: value for name, value in attributes.items() if value is not None}
        self.nodes.append(Step(type, given, outputs, kept))
        return [Value(name, kind, sizes) for name in outputs]

    def widened(self, value: Any, lacking: Any) -> Any:
        """An operand in a type that runtimes have; what is lost of float64 is less than float32 has."""
        if not isinstance(value, Value) or short_name(value.dtype) not in lacking:
            return value
        return self.cast(value, WIDER[short_name(value.dtype)])

    def seed(self) -> Value:
        """A seed that is another one each time that the model runs, as int64."""
        if "seed" not in self._kept:
            name = self.name("random")
            self.nodes.append(Step("RandomUniform", [], [name], {"shape": [1], "dtype": 11, "high": 2.0**62}))
            self._kept["seed"] = self.reshape(self.cast(Value(name, dtypes.float64, (1,)), dtypes.int64), [])
        return self._kept["seed"]

    # -- constants

    def constant(self, value: Any, dtype: Any = None) -> Value:
        """A constant; of Python's ints int64, unless a dtype is told."""
        array = np.asarray(value)
        if dtype is not None:
            array = array.astype(dtype.numpy)
        elif array.dtype.kind == "i":
            array = array.astype(np.int64)
        elif array.dtype == np.float64:
            array = array.astype(np.float32)
        key = (array.dtype.str, array.dtype.name, array.shape, array.tobytes()) if array.size <= 16 else None
        if key is not None and key in self._kept:
            return self._kept[key]
        name = self.name("constant")
        self.constants[name] = array
        made = Value(name, dtypes.FROM_NUMPY[array.dtype], array.shape)
        if key is not None:
            self._kept[key] = made
        return made

    def number(self, value: Any, like: Value) -> Value:
        """A number as a constant of a tensor's dtype; a tensor is cast."""
        if isinstance(value, Value):
            return self.cast(value, like.dtype)
        if isinstance(value, Size):
            return self.cast(self.op("Squeeze", self.sized([value]), shape=()), like.dtype)
        return self.constant(value, like.dtype)

    # -- sizes

    def sized(self, sizes: Any) -> Value:
        """Sizes as a constant or, where some are open, as they are when the model runs: int64, one dimension."""
        sizes = [sizes] if isinstance(sizes, (int, Size, Value)) else list(sizes)
        if all(isinstance(s, int) for s in sizes):
            return self.constant(np.asarray(sizes, np.int64).reshape(-1))
        parts = [self.size(s) for s in sizes]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0, shape=(len(parts),))

    def size(self, size: Any) -> Value:
        """One size, as a tensor of one element."""
        if isinstance(size, Value):
            return self.op("Reshape", size, self.constant([1]), shape=(1,))
        if not isinstance(size, Size):
            return self.constant([int(size)])
        tree = re.sub(r"\^", "**", size)
        return self._expression(ast.parse(tree, mode="eval"))

    def _expression(self, node: Any) -> Value:
        kind = type(node).__name__
        if kind == "Expression":
            return self._expression(node.body)
        if kind == "Constant":
            return self.constant([int(node.value)])
        if kind == "Name":
            key = ("size", node.id)
            if key not in self._kept:
                tensor, dim, factor, rest = self.sizes[node.id]
                found = self.op("Shape", tensor, start=dim, end=dim + 1, dtype=dtypes.int64, shape=(1,))
                found = self.op("Sub", found, self.constant([rest])) if rest else found
                found = self.op("Div", found, self.constant([factor])) if factor != 1 else found
                self._kept[key] = found
            return self._kept[key]
        if kind == "UnaryOp":
            return self.op("Neg", self._expression(node.operand))
        if kind == "BinOp":
            types = {"Add": "Add", "Sub": "Sub", "Mult": "Mul", "FloorDiv": "Div", "Mod": "Mod", "Pow": "Pow"}
            return self.op(
                types[type(node.op).__name__], self._expression(node.left), self._expression(node.right)
            )
        types = {"floordiv": "Div", "mod": "Mod", "max": "Max", "min": "Min"}
        return self.op(types[node.func.id], *map(self._expression, node.args))

    def find_size(self, size: Size, tensor: Value, dim: int) -> None:
        """Note that a dimension of an input has this open size, which tells that of a name."""
        found = parts_of(size)
        if found is not None:
            name, factor, rest = found
            known = self.sizes.get(name)
            if known is None or (known[2:] != (1, 0) and (factor, rest) == (1, 0)):
                self.sizes[name] = (tensor, dim, factor, rest)

    def scalar_size(self, size: Any) -> Value:
        """A size as a tensor without dimensions."""
        if isinstance(size, int):
            return self.constant(size)
        return self.op("Squeeze", self.sized([size]), shape=())

    @staticmethod
    def broadcast(shapes: Sequence[Sequence[Any]]) -> list[Any]:
        """The sizes that tensors broadcast to, where equal open sizes meet."""
        rank = max(map(len, shapes))
        found: list[Any] = []
        for at in range(-rank, 0):
            sizes = [s[at] for s in shapes if -at <= len(s)]
            found.append(next((s for s in sizes if s != 1), 1))
        return found

    # -- what many translations need

    def cast(self, value: Value, dtype: Any) -> Value:
        """A tensor in a dtype."""
        if value.dtype is dtype:
            return value
        return self.op("Cast", value, to=type_number(dtype), dtype=dtype)

    def reshape(self, value: Value, sizes: Sequence[Any]) -> Value:
        """The elements in other sizes."""
        if tuple(sizes) == value.shape and all(isinstance(s, int) for s in sizes):
            return value
        if sum(not isinstance(s, int) for s in sizes) == 1 and 0 not in sizes and -1 not in sizes:
            # One size that is open follows from the others.
            return self.op("Reshape", value, [s if isinstance(s, int) else -1 for s in sizes], shape=sizes)
        zeros = 1 if 0 in sizes else None
        return self.op("Reshape", value, self.sized(sizes), shape=sizes, allowzero=zeros)

    def transpose(self, value: Value, order: Sequence[int]) -> Value:
        """The dimensions in another order."""
        if list(order) == list(range(value.rank)):
            return value
        return self.op("Transpose", value, perm=list(order), shape=[value.shape[d] for d in order])

    def expand(self, value: Value, sizes: Sequence[Any]) -> Value:
        """Broadcast to sizes."""
        if tuple(sizes) == value.shape:
            return value
        if 0 in sizes and all(isinstance(s, int) for s in sizes):
            return self.constant(np.zeros(sizes), value.dtype)
        return self.op("Expand", value, self.sized(sizes), shape=sizes)

    def slice(self, value: Value, dim: int, start: Any, end: Any, step: int = 1) -> Value:
        """A part of a dimension; its size is not told."""
        inputs = [self.sized([start]), self.sized([end]), self.constant([dim]), self.constant([step])]
        return self.op("Slice", value, *inputs)

    def zero_like(self, value: Value) -> Value:
        """Nothing, in a tensor's dtype."""
        return self.constant(0, value.dtype)

    def common(self, *values: Any) -> list[Value]:
        """Operands in the dtype that PyTorch computes in: of tensors with dimensions before others, of numbers last."""
        like = Value("", promoted(values), ())
        return [self.number(v, like) for v in values]


def type_number(dtype: Any) -> int:
    """ONNX's number of a dtype."""
    name = str(dtype).rpartition(".")[2]
    if name not in TYPES:
        raise Untranslated(f"ONNX has no type for {dtype}")
    return TYPES[name]


def short_name(dtype: Any) -> str:
    """A dtype's name without the library's."""
    return str(dtype).rpartition(".")[2]


def rank_of(dtype: Any) -> int:
    """A dtype's category: bool, int, float, complex."""
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype is dtypes.bool else 1


def promoted(values: Sequence[Any]) -> Any:
    """The dtype in which operands meet."""
    best: Any = None
    for group in (
        [v for v in values if isinstance(v, Value) and v.rank],
        [v for v in values if isinstance(v, Value) and not v.rank],
    ):
        found: Any = None
        for value in group:
            found = value.dtype if found is None else dtypes.promote_types(found, value.dtype)
        if found is not None and (best is None or rank_of(found) > rank_of(best)):
            best = found
    for value in values:
        if isinstance(value, Value) or value is None:
            continue
        kind = {bool: dtypes.bool, int: dtypes.int64, float: dtypes.get_default_dtype()}.get(
            type(value), dtypes.int64
        )
        if best is None or rank_of(kind) > rank_of(best):
            best = kind
    return best


def dim_of(dim: int, rank: int) -> int:
    """A dimension counted from the front."""
    return dim + max(rank, 1) if dim < 0 else dim


def dims_of(dim: Any, rank: int) -> list[int]:
    """Dimensions counted from the front; all of them for None or none."""
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(rank))
    return [dim_of(d, rank) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]


def several(value: Any, count: int) -> list[Any]:
    """One value for each dimension."""
    return (
        list(value) * (count if len(value) == 1 else 1)
        if isinstance(value, (list, tuple))
        else [value] * count
    )


def product(sizes: Sequence[Any]) -> Any:
    """The product of sizes, as a size."""
    fixed = math.prod([s for s in sizes if isinstance(s, int)])
    rest = [f"({s})" for s in sizes if not isinstance(s, int)]
    return Size("*".join([*rest, str(fixed)])) if rest else fixed
