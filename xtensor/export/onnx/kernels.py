"""Operators without a translation of their own: the primitives of JAX that their kernels are made of, one after the other."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.extend.core import Literal

from ... import dtypes, trees
from ...jax.pure import TraceError, pure
from ...tensor import Tensor, array_of, wrap
from ...xla.x64 import x64
from ..dims import evaluate, size_of, symbols
from ..graph import Subgraph, map_nodes
from ..replay import called, placed
from ..tracing import form
from .building import Body, Builder, Untranslated, Value

__all__ = ["Pair", "Primitives", "by_kernel", "decomposition", "joined", "parted", "primitive"]

PRIMITIVES: dict[str, Callable[..., Any]] = {}
"""Translations by primitive: `function(primitives, equation's parameters, results, *operands)`."""
DECOMPOSED: dict[str, Callable[..., Any]] = {}
"""What other primitives are in terms of these: functions of arrays, given the operands and the parameters."""
COMPLEX: set[str] = set()
"""The primitives whose translations know pairs."""
PAIRED: dict[str, Callable[..., Any]] = {}
"""What primitives are of complex numbers, in terms of real ones: functions of pairs of arrays."""
INNER = (
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "remat2",
    "checkpoint",
    "custom_jvp_call",
    "custom_vjp_call",
    "custom_lin",
)


class Pair(NamedTuple):
    """A complex tensor while its primitives are translated: its real and its imaginary part."""

    real: Any
    imag: Any


class Result(NamedTuple):
    """What is known of a primitive's result."""

    dtype: Any
    shape: tuple[Any, ...]


def primitive(
    *names: str, moves: bool = False, pairs: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that puts a translation into the table.

    moves: it only moves or adds elements, and treats both parts of complex ones alike. pairs: it knows complex ones itself.
    """

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            PRIMITIVES[name] = both_parts(function) if moves else function
        if moves or pairs:
            COMPLEX.update(names)
        return function

    return put


def decomposition(*names: str, pairs: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for a function of arrays that says a primitive by others; `pairs`: of complex numbers, as pairs of arrays."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            (PAIRED if pairs else DECOMPOSED)[name] = function
        return function

    return put


def both_parts(function: Callable[..., Any]) -> Callable[..., Any]:
    """A translation that is done for the real and the imaginary parts."""

    def run(p: Primitives, params: dict[str, Any], results: Sequence[Result], *values: Any) -> Any:
        if not any(isinstance(v, Pair) for v in values):
            return function(p, params, results, *values)
        results = [r._replace(dtype=real_type(r.dtype)) for r in results]
        parts = [
            function(p, params, results, *[v[i] if isinstance(v, Pair) else v for v in values])
            for i in range(2)
        ]
        if isinstance(parts[0], Value):
            return Pair(*parts)
        return [Pair(*each) for each in zip(*parts, strict=True)]

    return run


def real_type(dtype: Any) -> Any:
    """The dtype of a complex dtype's parts."""
    return {"complex64": dtypes.float32, "complex128": dtypes.float64}.get(
        str(dtype).rpartition(".")[2], dtype
    )


def of_array(aval: Any) -> Result:
    """A traced array's dtype and sizes."""
    if aval.dtype not in dtypes.FROM_NUMPY:
        raise Untranslated(f"ONNX has no type for {aval.dtype}")
    return Result(dtypes.FROM_NUMPY[aval.dtype], tuple(map(size_of, aval.shape)))


def parted(b: Builder, value: Value) -> Any:
    """A complex tensor, which the model holds with a last dimension of two, as a pair."""
    if not value.dtype.is_complex:
        return value
    kind = real_type(value.dtype)
    return Pair(*[
        b.op("Gather", value, b.constant(i), axis=value.rank, dtype=kind, shape=value.shape) for i in range(2)
    ])  # fmt: skip


def joined(b: Builder, value: Any, dtype: Any) -> Value:
    """A pair as the model holds it."""
    if not isinstance(value, Pair):
        return value
    rank = value.real.rank
    parts = [b.op("Unsqueeze", part, b.constant([rank])) for part in value]
    return b.op("Concat", *parts, axis=rank, dtype=dtype, shape=value.real.shape)


class Primitives:
    """Programs of JAX while they are translated."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def traced(self, function: Callable[..., Any], *operands: Any) -> list[Any]:
        """The results of a function of arrays, for operands that are values."""
        with x64():
            closed = jax.make_jaxpr(function)(
                *[jax.ShapeDtypeStruct(v.shape, v.dtype.numpy) for v in operands]
            )
        return self.run(closed.jaxpr, closed.consts, operands)

    def run(self, program: Any, consts: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
        """The results of a program of JAX."""
        known: dict[Any, Any] = {}

        def read(variable: Any) -> Any:
            if isinstance(variable, Literal):
                return self.constant(variable.val, variable.aval)
            return known[variable]

        for variable, value in zip(program.constvars, consts, strict=True):
            known[variable] = (
                value if isinstance(value, (Value, Pair)) else self.constant(value, variable.aval)
            )
        known.update(zip(program.invars, operands, strict=True))
        for equation in program.eqns:
            made = self.equation(equation, [read(v) for v in equation.invars])
            if isinstance(made, (Value, Pair)) or not isinstance(made, (list, tuple)):
                made = [made]
            for variable, value in zip(equation.outvars, made, strict=True):
                if isinstance(value, Value):
                    kind = of_array(variable.aval)
                    value = self.builder.cast(value, kind.dtype)._replace(shape=kind.shape)
                known[variable] = value
        return [read(v) for v in program.outvars]

    def equation(self, equation: Any, values: list[Any]) -> Any:
        """The results of one primitive."""
        name, params = equation.primitive.name, equation.params
        if name in INNER:
            inner = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))
            return self.run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), values)
        results = [of_array(v.aval) for v in equation.outvars]
        translate = PRIMITIVES.get(name)
        paired = any(isinstance(v, Pair) for v in values) or any(r.dtype.is_complex for r in results)
        if paired and name in PAIRED:
            return self.by_pairs(name, params, results, values)
        if paired and name not in COMPLEX:
            raise Untranslated(f"the primitive {name} of complex numbers has no form in ONNX here")
        if translate is not None:
            return translate(self, params, results, *values)
        if name in DECOMPOSED:
            return self.traced(lambda *arrays: DECOMPOSED[name](*arrays, **params), *values)
        raise Untranslated(f"the primitive {name} has no form in ONNX here")

    def by_pairs(self, name: str, params: Any, results: Sequence[Result], values: Sequence[Any]) -> Any:
        """A primitive of complex numbers through real ones."""
        flat = [part for v in values for part in (v if isinstance(v, Pair) else (v,))]
        spread = [isinstance(v, Pair) for v in values]

        def function(*arrays: Any) -> Any:
            rest = iter(arrays)
            given = [(next(rest), next(rest)) if pair else next(rest) for pair in spread]
            return PAIRED[name](*given, **params)

        found = self.traced(function, *flat)
        rest = iter(found)
        return [Pair(next(rest), next(rest)) if r.dtype.is_complex else next(rest) for r in results]

    def constant(self, value: Any, aval: Any) -> Any:
        """An array, or the value of a literal, as a constant."""
        if not hasattr(aval, "dtype") or aval.dtype not in dtypes.FROM_NUMPY:
            raise Untranslated(f"a constant {aval} has no form in ONNX")
        array: Any = np.asarray(value, aval.dtype)
        b = self.builder
        if array.dtype.kind == "c":
            return Pair(
                *[
                    b.constant(part, real_type(dtypes.FROM_NUMPY[array.dtype]))
                    for part in (np.real(array), np.imag(array))
                ]
            )
        return b.constant(array, dtypes.FROM_NUMPY[array.dtype])

    # -- programs within programs

    @contextlib.contextmanager
    def inner(self) -> Iterator[list[Any]]:
        """A block whose nodes are a program of their own, which sees what stands outside."""
        b = self.builder
        nodes, kept = b.nodes, b._kept
        b.nodes, b._kept = [], dict(kept)
        try:
            yield b.nodes
        finally:
            b.nodes, b._kept = nodes, kept

    def body(self, inputs: Sequence[Value], make: Callable[[], Sequence[Value]]) -> Body:
        """The nodes that `make` adds, as a program of its own."""
        b = self.builder
        with self.inner() as nodes:
            # A result must be made within.
            outputs = [b.op("Identity", value) for value in make()]
        return Body(nodes, list(inputs), outputs)


def by_kernel(b: Builder, node: Any, args: Any, kwargs: Any, ranges: Any) -> tuple[list[Any], list[Value]]:
    """What a step gives and what it leaves in the tensors that it writes, through the primitives of its kernel.

    args, kwargs: the step's arguments, tensors as `Value`s.
    """
    values: list[Value] = []

    def numbered(value: Value) -> Any:
        values.append(value)
        return Operand(len(values) - 1)

    given, options = map_nodes((args, kwargs), numbered, Value)
    written = node.meta.get("writes", ())
    leaves: list[Any] = []
    map_nodes((node.args, node.kwargs), leaves.append)
    places = [leaves.index(each) for each in written if each in leaves]
    first = b.draws

    def function(arrays: list[Any], seed: Any) -> Any:
        tensors = [wrap(a, shared=True) for a in arrays]
        known = sizes

        def operand(value: Any) -> Any:
            if isinstance(value, Subgraph):
                return called(value, known)
            return tensors[value.number] if isinstance(value, Operand) else evaluate(value, known)

        more, named = map_nodes((given, options), operand, (Operand, str, Subgraph))
        with pure("the operator", lambda: (seed, np.int64(first))) as watcher:
            made = node.target(*more, **placed(named))
            found = [array_of(t) for t in trees.tree_leaves(made) if isinstance(t, Tensor)]
            drawn.append(watcher.drawn)
            return found, [array_of(tensors[i]) for i in places]

    drawn: list[int] = []
    sizes = symbols(ranges)
    try:
        with x64():
            shapes = [form([evaluate(s, sizes) for s in v.shape], v.dtype) for v in values]
            closed, shape = jax.make_jaxpr(function, return_shape=True)(
                shapes, jax.ShapeDtypeStruct((), np.int64)
            )
    except (TraceError, jax.errors.JAXTypeError) as error:
        raise Untranslated(str(error)) from error
    b.draws += drawn[0]
    seed = b.seed() if drawn[0] else b.constant(0)
    primitives = Primitives(b)
    made = primitives.run(closed.jaxpr, closed.consts, [*[parted(b, v) for v in values], seed])
    kinds = [dtypes.FROM_NUMPY[s.dtype] for s in jax.tree.leaves(shape)]
    found = [joined(b, value, kind) for value, kind in zip(made, kinds, strict=True)]
    count = len(shape[0])
    return found[:count], found[count:]


class Operand(NamedTuple):
    """Stands for a tensor among arguments."""

    number: int
