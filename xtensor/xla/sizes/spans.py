"""A function traced with symbolic sizes, its programs for spans of them, and how a call of true sizes goes through one."""

from __future__ import annotations

import functools
import gc
import math
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import export

from ..executables import UNSPELLED, form_named, spelled, unspelled
from ..pending import Pending, settled
from ..placing import from_host
from ..store import remembered
from ..symbolic import is_open
from .padded import Refused, Sizes, evaluate, open_axes, run
from .rules import is_exact
from .terms import Span, Term, span_of, symbols

__all__ = [
    "NEVER",
    "Answers",
    "Expected",
    "Family",
    "HostArray",
    "Uncut",
    "Way",
    "counts",
    "is_uncut",
    "like",
]

FLOORS = ((64, 1 << 21), (16, 1 << 24))
"""The work, in elements made and multiplied, that a program for several sizes may do; its least sizes, and up to what work."""
HELD = 1 << 18
"""Bytes of an array that may be held for a part of it which nobody has asked for yet."""
counts = {"families": 0, "programs": 0, "calls": 0, "host": 0, "refused": 0}


class HostArray:
    """An argument that is still to be made: what is known of it, and `read`, which gives its values in NumPy's memory."""

    __slots__ = ("aval", "committed", "holds", "read", "sharding")

    def __init__(self, array: Any, aval: Any, read: Callable[[Any], Any]) -> None:
        self.aval = aval
        self.holds = array.nbytes
        self.sharding = array.sharding
        self.committed = array.committed
        self.read = lambda: read(np.asarray(array))

    ndim = property(lambda self: len(self.aval.shape))
    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    def put(self) -> Any:
        """The values as an array of JAX's."""
        return from_host(np.array(self.read(), order="C"), self.sharding, self.committed)

    def later(self) -> Any:
        """`put`, when somebody asks; at once where a large array would be held until then, which may be given up or written to."""
        return Unread(self).pending(self.aval) if self.holds <= HELD else self.put()


def like(leaf: Any) -> Any:
    """What stands for an argument when a program is compiled."""
    if type(leaf) in (bool, int, float, complex):
        return leaf
    aval, place = leaf.aval, leaf.sharding if leaf.committed else None
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type, sharding=place)


class Late:
    """What gives a result its value when somebody asks; it lies in the host's memory until then."""

    __slots__ = ("_lock", "_pending", "committed", "sharding")

    def __init__(self, sharding: Any, committed: bool) -> None:
        self.sharding, self.committed = sharding, committed
        self._pending: Any = None
        self._lock = threading.RLock()

    def pending(self, aval: Any) -> Pending:
        """The result, of a form."""
        made = Pending(self, aval)
        made.at = 0
        self._pending = weakref.ref(made)
        return made

    def give_to(self, made: Pending) -> None:
        """Be the value of another result, in the place of the own one."""
        self._pending = weakref.ref(made)
        made._call = self

    def is_committed(self, at: int) -> bool:
        """Whether the result is tied to its device."""
        return self.committed

    def finish(self) -> None:
        """Make the value."""
        with self._lock:
            made = self._pending()
            if made is None or made._value is not None:
                return
            own = np.array(self.values(), order="C")
            # JAX would narrow the values otherwise; an interrupt as a context of its ends would leave 64-bit types on.
            before = jax.enable_x64.get_local()
            try:
                jax.enable_x64.set_local(True)
                made._value = from_host(own, self.sharding, self.committed)
            finally:
                jax.enable_x64.set_local(before)
            self.drop()

    _run = finish

    def values(self) -> Any:
        """The values, in memory that may be another's."""
        raise NotImplementedError

    def drop(self) -> None:
        """Hold nothing any more."""
        raise NotImplementedError


class Uncut(Late):
    """A result of a program for several sizes: its part of the program's own result.

    array: the program's own, which the next such program takes as it is.
    """

    __slots__ = ("array", "part")

    def __init__(self, array: Any, part: tuple[slice, ...], sharding: Any, committed: bool) -> None:
        super().__init__(sharding, committed)
        self.array, self.part = array, part

    def values(self) -> Any:
        return np.asarray(self.array)[self.part]

    def drop(self) -> None:
        self.array = None


class Unread(Late):
    """The values of a view that a program has read by itself."""

    __slots__ = ("array",)

    def __init__(self, array: HostArray) -> None:
        super().__init__(array.sharding, array.committed)
        self.array: Any = array

    def values(self) -> Any:
        return self.array.read()

    def drop(self) -> None:
        self.array = None


def is_uncut(value: Any) -> bool:
    """Whether a value is part of a longer array, which nobody has taken yet."""
    return type(value) is Pending and value._value is None and type(value._call) is Uncut


class Expected(NamedTuple):
    """What is known of calls that are to be answered: the forms of what they give, what has their program compiled, with who is told
    of that (None where it is), and whether its bits are those of the function's own.
    """

    forms: list[Any]
    prepare: Callable[[Any], None] | None
    exact: bool = True


class Answers:
    """What answers calls of a function in the place of its own program: here none."""

    __slots__ = ()

    def answer(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """The results, None where the call is to be compiled as it is; whether the next one, or this one after others that were answered,
        is to be: JAX's cache has it then as one that always comes by here.

        program: what `jit` made of the function.
        """
        return None, False

    def expected(self, program: Any, args: tuple[Any, ...]) -> Expected | None:
        """What such a call will give, where it may wait; None where it is to be made, or compiled."""
        return None


NEVER = Answers()


class Family:
    """A function of signatures that are written as the same terms, and its programs, each for a span of every variable.

    anywhere: whether these came from several places in the program, as layers of several widths do; then programs that do not give the
    exact one's bits are none. unmade: signatures, one after the other, that have no program of their own.
    """

    def __init__(
        self,
        jit: Any,
        function: Any,
        make: Any,
        tree: Any,
        avals: Sequence[Any],
        terms: tuple[Term | int, ...],
        anywhere: bool,
    ) -> None:
        self.function, self.make, self.jit = function, make, jit
        self.tree, self.avals, self.terms, self.anywhere = tree, avals, terms, anywhere
        self.programs: dict[tuple[Span, ...], Spanning | None] = {}
        self.unmade = 0

    def program(self, values: tuple[int, ...]) -> Spanning | None:
        """The program for these values of the variables, made here where there is none yet; None where there cannot be one."""
        for floor, most in FLOORS:
            spans = tuple([span_of(v, floor) for v in values])
            if spans not in self.programs:
                self.programs[spans] = self.made(spans)
            found = self.programs[spans]
            if found is None or found.work <= most:
                return None if found is None or (self.anywhere and not found.exact) else found
        return None

    def made(self, spans: tuple[Span, ...]) -> Spanning | None:
        """A program for some spans; None where the function cannot be traced with symbolic sizes."""
        try:
            return Spanning(self, spans)
        except Exception:  # whatever a kernel or JAX cannot do with symbolic sizes
            counts["refused"] += 1
            return None


class Source:
    """Where a program for several sizes comes from: a function, its sizes as terms, and the span of each variable."""

    _xt_identity = ("told", "tree", "forms", "terms", "spans")

    def __init__(self, family: Family, spans: tuple[Span, ...]) -> None:
        self.family, self.spans = family, spans
        self.told = family.function if family.make is None else family.make
        self.tree, self.terms = family.tree, tuple(family.terms)
        self.forms = tuple([(len(a.shape), a.dtype, a.weak_type) for a in family.avals])
        dims = symbols(family.terms, spans)
        self.given, at = [], 0
        for aval in family.avals:
            shape = tuple(dims[at : at + len(aval.shape)])
            at += len(aval.shape)
            self.given.append(jax.ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type))
        self.rest = tuple(dims[at:])
        self.sizes = {f"n{i}": span.end for i, span in enumerate(spans)}

    @functools.cached_property
    def traced(self) -> tuple[Any, Any]:
        """The function's jaxpr over symbolic sizes, and the structure of its results; `Refused` where that cannot be run longer."""
        family = self.family
        function = family.function if family.make is None else family.make(self.rest)
        try:
            made = jax.make_jaxpr(function, return_shape=True)
            closed, out = made(*jax.tree.unflatten(family.tree, self.given))
        except Exception as error:  # whatever a kernel or JAX cannot do with symbolic sizes
            raise Refused(str(error)) from None
        finally:
            # JAX tries sizes as integers, and each failure is a cycle that holds all frames: the caller's arrays, too.
            gc.collect(1)
        counts["families"] += 1
        if closed.effects or any(v.aval.weak_type for v in closed.jaxpr.outvars) or not sees(closed.jaxpr):
            raise Refused("effects, results that are numbers, or that lie where no argument says")
        return closed, jax.tree.structure(out)

    def facts(self) -> Any:
        """The structure of the results, their shapes and dtypes, the work, and whether it is exact, as JSON has it; None where it is refused."""
        try:
            closed, out = self.traced
            work = work_of(closed.jaxpr, self.sizes)
        except Refused:
            return None
        skeleton = spelled(jax.tree.unflatten(out, range(out.num_leaves)))
        if skeleton is UNSPELLED:
            return None
        forms = [([str(d) for d in v.aval.shape], v.aval.dtype.name) for v in closed.jaxpr.outvars]
        return skeleton, forms, int(work), is_exact(closed.jaxpr)


class Spanning:
    """A function's program for all sizes in some spans; nothing is traced where an earlier process did.

    longer: the shapes of its arguments, None of those that are as they are. results: the shapes of what it gives in true sizes: ints, names of
    variables, and terms of them. dtypes: the results'. out: the structure of the results. work: elements that it makes, and multiplies. exact:
    whether it gives the bits of programs of one size each. proven: whether it has run.
    """

    def __init__(self, family: Family, spans: tuple[Span, ...]) -> None:
        self.family, self.spans = family, spans
        source = Source(family, spans)
        found = remembered("sizes", source, source.facts)
        if found is None:
            raise Refused("refused by a trace")
        skeleton, results, self.work, self.exact = found
        self.out = jax.tree.structure(unspelled(skeleton))
        self.longer = [
            tuple([evaluate(d, source.sizes) for d in g.shape]) if open_axes(g.shape) else None
            for g in source.given
        ]
        self.results = [tuple([told(d, source.sizes) for d in dims]) for dims, _ in results]
        self.dtypes = [dtype for _, dtype in results]
        self.sizes = source.sizes
        self.proven = False

        def padded(given: Any, *arrays: Any) -> Any:
            true = Sizes(source.sizes, {name: given[i] for i, name in enumerate(source.sizes)})
            closed, _ = source.traced
            return run(true, closed.jaxpr, closed.consts, arrays)

        padded.__name__ = padded.__qualname__ = family.function.__name__
        padded.sized = NEVER  # pyright: ignore[reportFunctionMemberAccess]
        self.run = family.jit(padded)

    def refuse(self) -> None:
        """Have sizes in these spans answered by programs of their own, since it turns out that there is none for all."""
        self.family.programs[self.spans] = None
        counts["refused"] += 1


def told(dim: str, sizes: dict[str, int]) -> Any:
    """A size in symbolic sizes, as `evaluated` takes it."""
    return dim if dim in sizes else int(dim) if dim.isdigit() else export.symbolic_shape(dim)[0]


def evaluated(dim: Any, true: dict[str, int]) -> int:
    """A size, where variables have these values; terms are the few that take long."""
    kind = type(dim)
    return dim if kind is int else true[dim] if kind is str else int(evaluate(dim, true))


class Way:
    """How calls of one signature are answered: the shapes that its arguments get, and the parts of the results that are theirs."""

    __slots__ = ("avals", "committed", "direct", "numbers", "parts", "program", "sharding")

    def __init__(self, program: Spanning, values: Sequence[int], sharding: Any, committed: bool) -> None:
        true = dict(zip(program.sizes, values, strict=True))
        self.program = program
        self.sharding, self.committed = sharding, committed
        self.numbers = np.asarray(values, np.int32)
        shapes = [tuple([evaluated(d, true) for d in dims]) for dims in program.results]
        self.parts = [
            None if all(type(d) is int for d in dims) else tuple(map(slice, shape))
            for dims, shape in zip(program.results, shapes, strict=True)
        ]
        self.avals = [form_named(s, n, False) for s, n in zip(shapes, program.dtypes, strict=True)]
        # Arguments in NumPy's memory go where JAX puts them.
        self.direct = sharding.device_set == {jax.devices()[0]}

    def examples(self, leaves: Sequence[Any]) -> list[Any]:
        """What the program is given in a call with such leaves, where its arrays go where JAX puts them."""
        long = zip(leaves, self.program.longer, strict=True)
        return [self.numbers, *[like(leaf) if s is None else np.zeros(s, leaf.dtype) for leaf, s in long]]

    def call(self, leaves: Sequence[Any]) -> Any:
        """The function's results, of which some may be `Uncut`; None where it turns out to have no program."""
        given: list[Any] = [self.placed(self.numbers)]
        for leaf, shape in zip(leaves, self.program.longer, strict=True):
            if shape is not None:
                given.append(self.lengthened(leaf, shape))
            else:
                given.append(leaf.put() if type(leaf) is HostArray else settled(leaf))
        program = self.program
        try:
            found = program.run(*given)
        except Exception:
            if program.proven:
                raise
            program.refuse()
            return None
        if not program.proven:
            program.proven = True
            counts["programs"] += 1
        counts["calls"] += 1
        own: list[Any] = []
        for result, part, aval in zip(found, self.parts, self.avals, strict=True):
            if part is not None:
                own.append(Uncut(result, part, self.sharding, self.committed).pending(aval))
            elif result.committed != self.committed:
                own.append(from_host(np.asarray(result), self.sharding, self.committed))
            else:
                own.append(result)
        return jax.tree.unflatten(program.out, own)

    def lengthened(self, leaf: Any, shape: tuple[int, ...]) -> Any:
        """An argument as long as the program takes it: what lies behind its own values is of no consequence."""
        if is_uncut(leaf):
            array = leaf._call.array
            if array is not None and array.shape == shape:
                return array
        longer = np.zeros(shape, leaf.dtype)
        longer[tuple([slice(n) for n in leaf.shape])] = (
            leaf.read() if type(leaf) is HostArray else np.asarray(leaf)
        )
        return self.placed(longer)

    def placed(self, array: Any) -> Any:
        return array if self.direct else from_host(array, self.sharding, self.committed)


def sees(jaxpr: Any) -> bool:
    """Whether any result depends on an argument."""
    live = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    for equation in reversed(jaxpr.eqns):
        if any(v in live for v in equation.outvars):
            live.update(v for v in equation.invars if not hasattr(v, "val"))
    return any(v in live for v in jaxpr.invars)


def work_of(jaxpr: Any, sizes: dict[str, int]) -> int:
    """Elements that the equations of a jaxpr make, and products of the sums among them."""
    total = 0
    for equation in jaxpr.eqns:
        inner = [j for value in equation.params.values() for j in programs_in(value)]
        # A loop of open length makes its true number of turns.
        turns = equation.params.get("length", 1) if equation.primitive.name == "scan" else 1
        total += (1 if is_open(turns) else turns) * sum([work_of(j, sizes) for j in inner])
        for var in equation.outvars:
            made = math.prod([evaluate(d, sizes) for d in var.aval.shape])
            if equation.primitive.name == "dot_general":
                (axes, _), _ = equation.params["dimension_numbers"]
                made *= math.prod([evaluate(equation.invars[0].aval.shape[a], sizes) for a in axes])
            total += made
    return total


def programs_in(value: Any) -> list[Any]:
    """The jaxprs in a parameter of an equation."""
    found = value if isinstance(value, (tuple, list)) else (value,)
    return [getattr(v, "jaxpr", v) for v in found if hasattr(v, "eqns") or hasattr(v, "jaxpr")]
