"""What an operator is: a schema, a kernel, derivative rules, and the compiled programs of each.

How a call of one runs stands above, in `dispatch`; `declare` brings the two together.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import checks, dtypes
from ..geometry import broadcast_shapes
from ..host.numbers import Exact
from ..lowering import transpose
from ..xla import segments
from ..xla.cache import BoundedCache, clear_all, settings_read
from ..xla.segments import SINGLE, prompt, waiter, waiter_of_tuples
from ..xla.x64 import jit
from .derivatives import Rules
from .functions.columns import by_columns, transposed
from .levels.pushforward import Pushforward
from .schema import Schema
from .write import fit_result

__all__ = ["MANY", "REGISTRY", "STRUCTURES", "Operator", "Views"]

REGISTRY: dict[str, Operator] = {}
KEPT = 4096
"""Programs of each kind, and signatures, that an operator keeps."""
Views = Literal["loop", "fold", "apart"]


def strong(value: Any) -> Any:
    """A kernel's result with no weak type left: tensors are never wrapped numbers."""
    if getattr(value, "weak_type", False) or not isinstance(value, jax.Array):
        value = jnp.asarray(value)
        return jax.lax.convert_element_type(value, value.dtype)
    return value


def like_target(out: Any, values: tuple[Any, ...], *_: int) -> Any:
    """A result, or its tangent, as it is written to the first argument."""
    return fit_result(out, values[0].shape, values[0].dtype)


dtypes.on_default_dtype_change.append(clear_all)
settings_read.append(dtypes.get_default_dtype)


MANY = 8
"""From so many results or views on of one program each is had by itself: XLA would compile each, 15 ms long."""


class Operator:
    """One declared operator: schema, kernel, rules, and the compiled programs of each.

    node_class: of the nodes that record its calls. call: `(values, out=None)`, one value per parameter, runs a call with every
    check and mode.
    """

    _xt_identity = ("kind", "name", "kernel", "rules")

    def __init__(
        self,
        kind: str,
        name: str,
        schema: Schema,
        kernel: Callable[..., Any],
        derivatives: Any,
        node: str | None = None,
        returns: tuple[str, ...] | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.schema = schema
        self.kernel = kernel
        self.rules = Rules(schema, derivatives, kernel)
        self.runtime = schema.runtime
        self.static = schema.static
        self.indices = tuple(i for i, p in enumerate(schema.parameters) if p.runtime)
        self.static_indices = tuple(i for i, p in enumerate(schema.parameters) if not p.runtime)
        # What it takes at run time, with the places among all arguments, where that is single tensors and numbers, and one result.
        places = [(i, p) for i, p in enumerate(schema.parameters) if p.runtime]
        sequences = any(p.kind == "Arrays" for _, p in places)
        self.alone: Any = tuple(places) if schema.single and not sequences else None
        self.integral = tuple(i for i, p in enumerate(schema.static) if p.integral)
        self.booleans = tuple(i for i, p in enumerate(schema.static) if p.boolean)
        self.single = schema.single
        title = node or "".join(part.capitalize() for part in name.strip("_").split("_"))
        self.title = title if "Backward" in title else f"{title}Backward0"
        self.node_class: Any = None
        self.call: Any = None
        Operator.equip(self)
        self.returns = structure(name, returns) if returns else None
        self.programs: BoundedCache[Any, Any] = BoundedCache(KEPT)
        # The same programs, whose calls may wait.
        self.waits: BoundedCache[Any, Any] = BoundedCache(KEPT)
        self.variants: BoundedCache[Any, Any] = BoundedCache(KEPT)
        self.pullbacks: BoundedCache[Any, Any] = BoundedCache(KEPT)
        self.known: BoundedCache[Any, Any] = BoundedCache(KEPT)
        self.aliases: tuple[str, ...] = ()
        self.deprecated: tuple[tuple[str, ...], ...] = ()
        self.several = False
        self.function: Any = None
        # Gives a call of `alone` that `calls` makes its place in the graph.
        self.graph: Any = None
        self.method: Any = None
        self.inplace: Any = None
        self.is_method = False
        self.takes_out = False
        self.exact_out = False
        # "numbers" or "tensors" where it is exact only with such operands.
        self.exact_of: str | None = None
        self.disjoint = False
        self.joins = False
        self.adopts_at: int | None = None
        self.boolean = False
        self.views: Views = "loop" if kind == "pointwise" else "apart"
        self.hidden = 0
        # Of an operator with hidden results, how many the caller is given.
        self.shown = 0
        # Of an operator on a sequence: the same of arrays of one form, from one array of them all with a dimension more, the first.
        self.pieces: Callable[..., Any] | None = None
        # How many of the first arguments may give the results their memory format.
        self.formats = 0
        # Where in the static arguments one stands whose "none" means a result element by element, which lies as one of TensorIterator's.
        self.elementwise_at: int | None = None
        # The results that lie by columns where they are matrices; or what says which, of the static arguments.
        self.columns: tuple[int, ...] | Callable[..., tuple[int, ...]] = ()
        # Whether PyTorch saves what it makes of the operands, so that they may be written to before a backward pass.
        self.copies = False
        self.refuses: Callable[..., None] | None = None
        # What Python makes of integers, where that is what the kernel makes of integers of one dtype.
        self.exact: Exact | None = None
        self.zero_slope = False
        # Whether JAX knows the kernel's derivative backwards only (`jax.custom_vjp`).
        self.backwards_only = False
        self.sizer: Callable[[tuple[Any, ...]], Any] | None = None
        self.namer: Callable[[Any], str] | None = None
        self.autocast: dict[str, Any] = {}
        # Of an operator that gives a derivative: the operator that it belongs to, and the argument.
        self.of: tuple[Operator, str] | None = None
        self.doc = inspect.cleandoc(kernel.__doc__ or "")

    call_whole: ClassVar[Callable[[Any, tuple[Any, ...]], tuple[Any, ...]]]
    """Runs a call with every result, those included that only the rules need; set by `dispatch`."""

    equip: ClassVar[Callable[[Operator], None]]
    """Gives an operator its `node_class` and its `call`; set by `declare`, which knows what stands above."""

    drawn: ClassVar[Callable[[Any], Any]]
    """What gives a call of an operator its place in the graph; set by `declare`."""

    def draw(self) -> Any:
        """`graph`, made when it is first asked for."""
        self.graph = Operator.drawn(self)
        return self.graph

    def forget(self) -> None:
        """Drop compiled programs: something that their traces depended on has changed."""
        segments.finish()
        self.programs.clear()
        self.waits.clear()
        self.variants.clear()
        self.pullbacks.clear()
        self.known.clear()

    # -- programs

    def traced(self, key: tuple[Any, ...]) -> Callable[..., Any]:
        """The kernel as a function of its runtime arguments alone; a None number means its default."""
        statics = dict(zip([p.name for p in self.static], key, strict=True))
        for value in key:
            if isinstance(value, dtypes.stored_dtype):
                raise checks.not_implemented_for(f"{self.name.strip('_')}_cpu", value)
        names = [p.name for p in self.runtime]
        defaults = [p.default if p.kind == "Number" else None for p in self.runtime]
        kernel, single, pointwise = self.kernel, self.single, self.kind == "pointwise"

        def run(*values: Any) -> Any:
            if pointwise:  # for the words of its error; while tracing, so that a call pays nothing
                broadcast_shapes(*[v.shape for v in values if isinstance(v, jax.Array)])
            arguments = {n: d if v is None else v for n, v, d in zip(names, values, defaults, strict=True)}
            out = kernel(**arguments, **statics)
            return strong(out) if single else tuple([strong(o) for o in out])

        run.__name__ = run.__qualname__ = self.name
        return run

    def program(self, key: tuple[Any, ...]) -> Any:
        """The jitted kernel for these static arguments."""
        found = self.programs.get(key)
        if found is None:
            run: Any = self.traced(key)
            after = None
            if self.columns:
                columns = self.columns_of(key)
                run, after = transposed(run, columns, self.single), by_columns(columns)
            if self.sizer is not None:
                run.sized = self.sizer(key)
            run.pushforward = Pushforward(self, key, after)
            found = self.programs[key] = jit(run)
            self.waits[key] = self.waiter(found, key)
        return found

    def columns_of(self, key: tuple[Any, ...]) -> tuple[int, ...]:
        """The results that lie by columns where they are matrices, for these static arguments."""
        return self.columns(*key) if callable(self.columns) else self.columns

    def waiting(self, key: tuple[Any, ...]) -> Any:
        """The program for these static arguments, whose calls may wait."""
        found = self.waits.get(key)
        if found is None:
            self.programs.pop(key, None)
            self.program(key)
            found = self.waits[key]
        return found

    def looks(self, key: tuple[Any, ...]) -> bool:
        """Whether the values of each call are looked at, of whatever dtype."""
        refuses = self.refuses
        return refuses is not None and None not in key and not getattr(refuses, "of_integers_alone", False)

    def waiter(self, program: Any, key: tuple[Any, ...], gain: float = 1.0) -> Any:
        """A program of the operator's arguments and results, whose calls may wait; not where somebody looks at their values then.

        gain: of a call that does.
        """
        tree = SINGLE if self.single else None
        if self.looks(key):
            return prompt(program)
        if any(p.kind == "Arrays" for p in self.runtime):
            return waiter_of_tuples(program, tree)
        program._xt_may_pend = True
        return waiter(program, len(self.runtime), tree, gain=gain)

    def is_elementwise(self, key: tuple[Any, ...]) -> bool:
        """Whether the result lies in memory as TensorIterator has it."""
        if self.elementwise_at is None:
            return self.kind == "pointwise"
        return key[self.elementwise_at] == "none"

    def permuted(self, key: tuple[Any, ...], order: tuple[int, ...]) -> Callable[..., Any]:
        """The kernel as `traced` gives it, whose result lies in memory with its dimensions in `order`."""
        run = self.traced(key)

        def permuted(*values: Any) -> Any:
            found = run(*values)
            if self.single:
                return transpose(found, order)
            return tuple([transpose(f, order) if f.ndim == len(order) else f for f in found])

        permuted.__name__ = self.name
        permuted.pushforward = Pushforward(self, key, lambda out, *_: transpose(out, order))  # pyright: ignore[reportFunctionMemberAccess]
        return permuted

    def permuted_program(self, key: tuple[Any, ...], order: tuple[int, ...], waits: bool = False) -> Any:
        """The program of `permuted`; waits: one whose calls may."""
        found = self.variants.get(("order", key, order, waits))
        if found is None:
            found = (
                self.waiter(self.permuted_program(key, order), key)
                if waits
                else jit(self.permuted(key, order))
            )
            self.variants["order", key, order, waits] = found
        return found

    def inplace_program(self, key: tuple[Any, ...], donate: bool) -> Any:
        """The program whose result replaces its first argument: same shape and dtype, its buffer reused if donated."""
        found = self.variants.get(("inplace", key, donate))
        if found is None:
            run = self.traced(key)

            wanted = None if self.adopts_at is None else key[self.adopts_at]

            def replace(target: Any, *values: Any) -> Any:
                own = dtypes.FROM_NUMPY[np.dtype(target.dtype)]
                if wanted is not None and wanted is not own:
                    raise RuntimeError(
                        f"Bad in-place call: input tensor dtype {dtypes.c_name(own)} and output tensor dtype "
                        f"{dtypes.c_name(wanted)} should match"
                    )
                out = run(target, *values)
                return fit_result(out, target.shape, target.dtype)

            replace.__name__ = self.name + "_"
            replace.writes = "pointwise" if self.kind == "pointwise" else "other"  # pyright: ignore[reportFunctionMemberAccess]
            replace.pushforward = Pushforward(self, key, like_target)  # pyright: ignore[reportFunctionMemberAccess]
            found = jit(replace, donate_argnums=0 if donate else ())
            self.variants["inplace", key, donate] = found
        return found

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


# What `xtensor.return_types` shows.
STRUCTURES: dict[str, Any] = {}


def structure(name: str, fields: tuple[str, ...]) -> Any:
    """The named tuple that a function of several results returns: one class of a name."""
    if name in STRUCTURES:
        return STRUCTURES[name]
    made = STRUCTURES[name] = NamedTuple(name, [(field, Any) for field in fields])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
    made.__module__ = "xtensor.return_types"
    made.__repr__ = lambda self: (
        f"{checks.spelled('return_types')}.{name}(\n"
        + ",\n".join(f"{f}={getattr(self, f)!r}" for f in fields)
        + ")"
    )
    count = len(fields)
    for counted, number in (("n_fields", count), ("n_sequence_fields", count), ("n_unnamed_fields", 0)):
        setattr(made, counted, number)
    plain = made.__new__

    def make(cls: Any, *values: Any, **named: Any) -> Any:
        if len(values) == count and not named:
            return tuple.__new__(cls, values)
        if (
            len(values) == 1 and not named and isinstance(values[0], (tuple, list))
        ):  # as PyTorch's own are made
            if len(values[0]) == count:
                return tuple.__new__(cls, values[0])
            raise TypeError(
                f"{checks.spelled('return_types')}.{name}() takes a {count}-sequence ({len(values[0])}-sequence given)"
            )
        return plain(cls, *values, **named)

    made.__new__ = make
    return made
