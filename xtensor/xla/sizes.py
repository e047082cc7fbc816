"""Sizes that vary: one program for all sizes up to a bound, where a program's signatures differ in sizes alone.

A signature not seen before costs a compile of 20 to 45 ms; a loop over lengths meets one per operator and length. So what a
program has met is kept: where a signature differs from earlier ones only in sizes that go together, the function is traced
once with symbolic sizes and compiled once for arrays of the next power of two, with the true sizes as an operand (`padded`). The call's
arrays are lengthened, and its results cut, in the host's memory, which compiles nothing. It is done on CPUs, for small arrays,
and until a signature has come `OFTEN` times: then it is compiled as it is.

`XTENSOR_SIZES=0` in the environment, or `enable(False)`, switches it off.
"""

from __future__ import annotations

import math
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import export
from jax.core import Tracer
from jax.sharding import SingleDeviceSharding

from . import padded_rules  # noqa: F401  # fills the table of rules
from .cache import BoundedCache
from .jax_internals import evaluate_dimension, place_array
from .padded import Refused, Sizes, evaluate, is_open, open_axes, run

__all__ = [
    "NEVER",
    "OFTEN",
    "Families",
    "HostArray",
    "Sized",
    "Term",
    "alike",
    "comes_again",
    "count_host",
    "enable",
    "enabled",
    "forget",
    "is_one_cpu",
    "put",
    "span_of",
    "stats",
    "symbols",
    "terms_of",
    "values_of",
    "varied",
]

OFTEN = 128
"""Calls of one signature that a program for several sizes answers: together they cost about what a compile does."""
UNSEEN = ("jax.", "xtensor.xla.", "xtensor.lowering.", "xtensor.operators.", "xtensor.ops.made", "xtensor.tensor")
OWN = {("self",)}
DEPTH = 48
"""Frames by which a place in a program is told from others."""
ALIKE = 2
"""Signatures that differ from a new one in the same sizes, after which these are taken to vary."""
KEPT = 48
"""Signatures of a program that are looked back on."""
FAMILIES = 64
VARIABLES = 3
FLOORS = ((64, 1 << 21), (16, 1 << 24))
"""The work, in elements made and multiplied, that a program for several sizes may do; its least sizes, and up to what work."""


class _State:
    enabled = os.environ.get("XTENSOR_SIZES", "").lower() not in ("0", "off", "no", "false")


_lock = threading.RLock()
_counts = {"families": 0, "programs": 0, "calls": 0, "host": 0, "refused": 0}
Vector = tuple[int, ...]
NO = (None, False)


def enable(on: bool) -> None:
    """Whether programs for several sizes are made and used from now on."""
    _State.enabled = on


def enabled() -> bool:
    """Whether programs for several sizes are made and used."""
    return _State.enabled


def stats() -> dict[str, int]:
    """Functions traced with symbolic sizes, programs made of them, calls that these answered, calls that were answered in the host's
    memory alone, and functions that were refused.
    """
    return dict(_counts)


def count_host() -> None:
    """Count a call that was answered in the host's memory."""
    _counts["host"] += 1


def forget() -> None:
    """Take no size for one that varies until it is seen to; the counts begin anew."""
    varied.clear()
    _places.clear()
    _counts.update(dict.fromkeys(_counts, 0))


class Sized(NamedTuple):
    """How a function depends on sizes that are no arguments of its own.

    families: what is known of all functions that differ in these sizes alone. sizes: those of this one. make: gives the function for other
    sizes, symbolic ones too.
    """

    families: Families
    sizes: Vector
    make: Callable[[tuple[Any, ...]], Callable[..., Any]] | None

    def answer(self, function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, bool]:
        """The results by a program for several sizes, None where the call is to be compiled as it is; whether one had answered before."""
        return self.families.answer(function, self.sizes, self.make, args)


class HostArray:
    """An argument that is still to be made: what is known of it, and `read`, which gives its values in NumPy's memory."""

    __slots__ = ("aval", "committed", "read", "sharding")

    def __init__(self, array: Any, aval: Any, read: Callable[[Any], Any]) -> None:
        self.aval = aval
        self.sharding = array.sharding
        self.committed = array.committed
        self.read = lambda: read(np.asarray(array))

    ndim = property(lambda self: len(self.aval.shape))
    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)

    def put(self) -> Any:
        """The values as an array of JAX's."""
        return put(np.array(self.read(), order="C"), self.sharding, self.committed)


class Never:
    """Of a function that no program for several sizes answers."""

    def answer(self, function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, bool]:
        return NO


NEVER = Never()


class Met:
    """A signature that was met: how it is answered, None where it is compiled, and how often yet."""

    __slots__ = ("left", "way")

    def __init__(self, way: Way | None) -> None:
        self.way = way
        self.left = OFTEN


def put(array: Any, sharding: Any, committed: bool) -> Any:
    """An array of JAX's made of NumPy's, whose memory is not written again: it may become the array's."""
    if place_array is not None:
        return place_array(array, sharding, committed)
    (device,) = sharding.device_set
    return jax.device_put(array, device if committed else None)


class Term(NamedTuple):
    """A size: `factor * variable + rest`."""

    variable: int
    factor: int
    rest: int


class Families:
    """What is known of a function's signatures; `jit` compiles what is made of it."""

    def __init__(self, jit: Callable[..., Any]) -> None:
        self.jit = jit
        self.kept: BoundedCache[Any, list[Any]] = BoundedCache(256)
        self.met: BoundedCache[Any, Met] = BoundedCache(4096)
        self.refused = 0

    def answer(
        self, function: Callable[..., Any], sizes: Vector, make: Any, args: tuple[Any, ...]
    ) -> tuple[Any, bool]:
        """As `Sized.answer`; arguments may also be `HostArray`s."""
        if not _State.enabled or self.refused > 3 or evaluate_dimension is None:
            return NO
        leaves, tree = jax.tree.flatten(args)
        form: list[Any] = [tree]
        vector: list[int] = []
        for leaf in leaves:
            if not isinstance(leaf, (jax.Array, HostArray)) or isinstance(leaf, Tracer):
                return NO
            aval: Any = leaf.aval
            form.append((len(aval.shape), aval.dtype, aval.weak_type))
            vector += aval.shape
        place = place_of(leaves)
        if place is None:
            return NO
        vector += sizes
        full = tuple(vector)
        skeleton = (place, *form)
        key = (skeleton, full)
        with _lock:
            entry = self.met.get(key)
            if entry is None:
                known = self.kept.get(skeleton)
                if known is None:
                    known = self.kept[skeleton] = []
                family = self.find(function, make, known, tree, leaves, full)
                program = None if family is None else family.program(full)
                way = None
                if family is not None and program is not None:
                    values = values_of(family.terms, full)
                    assert values is not None
                    varied.update(dict.fromkeys(values))
                    way = Way(program, values, *place)
                elif family is not None:
                    self.refused += 1
                entry = self.met[key] = Met(way)
            if entry.way is None:
                return NO
            entry.left -= 1
            way = entry.way if entry.left else None
        found = None if way is None else way.call(leaves)
        if found is None:
            entry.way = None
        return found, found is None

    def find(
        self, function: Any, make: Any, known: list[Any], tree: Any, leaves: list[Any], full: Vector
    ) -> Family | None:
        """The family that a signature belongs to, one made for it, or None."""
        seen: list[tuple[int, Vector]] = []
        for entry in known:
            if type(entry) is tuple:
                seen.append(entry)
            elif values_of(entry.terms, full) is not None:
                return entry
        here = site()
        terms = alike(full, here, seen)
        if terms is not None:
            family = Family(self.jit, function, make, tree, [leaf.aval for leaf in leaves], terms)
            if family.program(full) is not None:
                values = [values_of(terms, vector) for _, vector in seen]
                varied.update(dict.fromkeys([n for v in values if v is not None for n in v]))
            rest = [e for e in known if type(e) is not tuple or values_of(terms, e[1]) is None]
            # Sizes beyond those that vary together make a family each: the first of many goes.
            known[:] = [*rest[len(rest) > FAMILIES :], family]
            return family
        if (here, full) not in seen:
            known.append((here, full))
            if len(seen) >= KEPT:
                known.remove(seen[0])
        return None


varied: BoundedCache[int, None] = BoundedCache(1024)
"""Sizes of dimensions that vary."""


def site() -> int:
    """Where the program is: all lines that are being run, and the objects whose methods they are in; less what runs every call.

    0 in a backward pass, which goes through all layers in one place.
    """
    found, frame, depth = 0, sys._getframe(1), 0
    while frame is not None and depth < DEPTH:
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        if module.startswith("xtensor.engine."):
            return 0
        if not module.startswith(UNSEEN):
            # A tensor's methods have another `self` each time.
            tells = code.co_varnames[:1] in OWN and (
                not module.startswith("xtensor.") or module.startswith("xtensor.nn.")
            )
            own = id(frame.f_locals.get(code.co_varnames[0])) if tells else 0
            found, depth = hash((found, code, frame.f_lasti, own)), depth + 1
        frame = frame.f_back
    return found


def is_one_cpu(array: Any) -> bool:
    """Whether an array lies on one CPU."""
    return isinstance(array, jax.Array) and place_of([array]) is not None


def place_of(leaves: Sequence[Any]) -> Any:
    """The sharding of arrays that lie on one CPU, and whether results stay there; None for others."""
    if not leaves:
        return None
    first = leaves[0].sharding
    committed = False
    for leaf in leaves:
        if type(leaf.sharding) is not SingleDeviceSharding:
            return None
        if leaf is not leaves[0] and leaf.sharding != first:
            return None
        committed = committed or leaf.committed
    (device,) = first.device_set
    if getattr(device, "platform", "") != "cpu" or not (committed or jax.config.jax_default_device is None):  # pyright: ignore[reportAttributeAccessIssue]
        return None
    return first, committed


_places: BoundedCache[Any, set[Any]] = BoundedCache(4096)


def comes_again(what: Any, variant: Any) -> bool:
    """Whether this place in the program has come to `what` with more than `ALIKE` variants."""
    here = site()
    if not here:
        return False
    with _lock:
        key = (here, what)
        met = _places.get(key)
        if met is None:
            met = _places[key] = set()
        if len(met) <= ALIKE:
            met.add(variant)
        return len(met) > ALIKE


def alike(full: Vector, here: int, seen: Sequence[tuple[int, Vector]]) -> tuple[Term | int, ...] | None:
    """The sizes of a signature as terms, where `ALIKE` earlier ones differ from it in the same sizes; None where none do.

    They must have come from the same place in the program, lest widths of layers be taken for sizes that vary, or be sizes
    that are known to vary. Of several groups the one that differs in the fewest sizes is taken.
    """
    groups: dict[tuple[int, ...], list[tuple[int, Vector]]] = {}
    for there, other in seen:
        where = tuple([i for i, (a, b) in enumerate(zip(full, other, strict=True)) if a != b])
        if where and all(other[i] > 1 and full[i] > 1 for i in where):
            groups.setdefault(where, []).append((there, other))
    for where in sorted(groups, key=len):
        group = groups[where]
        same_place = [vector for there, vector in group if there == here != 0]
        others = same_place if len(same_place) >= ALIKE else [vector for _, vector in group]
        if len(others) < ALIKE:
            continue
        terms = terms_of([*others[-ALIKE:], full], where)
        if terms is None:
            continue
        if others is same_place or all(
            v[i] in varied
            for i, t in enumerate(terms)
            if isinstance(t, Term) and t.factor == 1 and not t.rest
            for v in (*others[-ALIKE:], full)
        ):
            return terms
    return None


def terms_of(vectors: Sequence[Vector], where: Sequence[int]) -> tuple[Term | int, ...] | None:
    """Sizes that vary as terms of as few variables as explain them; None where a size does not differ each time, or too many vary."""
    columns = {i: tuple([v[i] for v in vectors]) for i in where}
    if any(len(set(c)) != len(c) for c in columns.values()):
        return None
    bases: list[tuple[int, ...]] = []
    found: list[Term | int] = list(vectors[-1])
    for i in sorted(where, key=lambda i: columns[i]):
        column = columns[i]
        for at, base in enumerate(bases):
            factor, left = divmod(column[1] - column[0], base[1] - base[0])
            rest = column[0] - factor * base[0]
            if (
                not left
                and factor >= 1
                and rest >= 0
                and all(c == factor * b + rest for b, c in zip(base, column, strict=True))
            ):
                found[i] = Term(at, factor, rest)
                break
        else:
            if len(bases) == VARIABLES:
                return None
            bases.append(column)
            found[i] = Term(len(bases) - 1, 1, 0)
    return tuple(found)


def values_of(terms: Sequence[Term | int], full: Vector) -> tuple[int, ...] | None:
    """The variables' values with which terms give these sizes; None where none do."""
    values = [0] * count_of(terms)
    for term, size in zip(terms, full, strict=True):
        if isinstance(term, int):
            if term != size:
                return None
        elif not values[term.variable]:
            if (
                term.factor != 1 or term.rest or size < 2
            ):  # a variable by itself comes before sizes that hang on it, or elsewhere
                continue
            values[term.variable] = size
    if 0 in values:
        return None
    for term, size in zip(terms, full, strict=True):
        if isinstance(term, Term) and term.factor * values[term.variable] + term.rest != size:
            return None
    return tuple(values)


def count_of(terms: Sequence[Term | int]) -> int:
    """How many variables there are."""
    return 1 + max([t.variable for t in terms if isinstance(t, Term)])


class Span(NamedTuple):
    """Values of a variable that one program is for: from `low` to before `end`, which is the power of two that arrays are made for."""

    low: int
    end: int


def span_of(value: int, floor: int) -> Span:
    """The span of a value: all below `floor`, else from one power of two to the next."""
    end = 1 << value.bit_length()
    return Span(2, floor) if end <= floor else Span(end // 2, end)


def symbols(terms: Sequence[Term | int], spans: Sequence[Span]) -> list[Any]:
    """Terms as JAX's symbolic sizes, whose variables are at least 2: a size of 1 is broadcast."""
    names = [f"n{i}" for i in range(len(spans))]
    lowest = [f"{n} >= {s.low}" for n, s in zip(names, spans, strict=True)]
    highest = [f"{n} <= {s.end - 1}" for n, s in zip(names, spans, strict=True)]
    variables = export.symbolic_shape(", ".join(names), constraints=[*lowest, *highest])
    return [t if isinstance(t, int) else t.factor * variables[t.variable] + t.rest for t in terms]


class Family:
    """A function of signatures that are written as the same terms, and its programs, each for a span of every variable."""

    def __init__(
        self,
        jit: Any,
        function: Any,
        make: Any,
        tree: Any,
        avals: Sequence[Any],
        terms: tuple[Term | int, ...],
    ) -> None:
        self.function, self.make, self.jit = function, make, jit
        self.tree, self.avals, self.terms = tree, avals, terms
        self.programs: dict[tuple[Span, ...], Spanning | None] = {}

    def program(self, full: Vector) -> Spanning | None:
        """The program for a signature, made here where there is none yet; None where there cannot be one."""
        values = values_of(self.terms, full)
        if values is None:
            return None
        for floor, most in FLOORS:
            spans = tuple([span_of(v, floor) for v in values])
            if spans not in self.programs:
                self.programs[spans] = self.made(spans)
            found = self.programs[spans]
            if found is None or found.work <= most:
                return found
        return None

    def made(self, spans: tuple[Span, ...]) -> Spanning | None:
        """A program for some spans; None where the function cannot be traced with symbolic sizes."""
        try:
            found = Spanning(self, spans)
        except Exception:  # whatever a kernel or JAX cannot do with symbolic sizes
            _counts["refused"] += 1
            return None
        _counts["families"] += 1
        return found


class Spanning:
    """A function's program for all sizes in some spans.

    shapes, results: those of arguments and results, in symbolic sizes. out: the structure of the results. work: elements that it makes,
    and multiplies. proven: whether it has run.
    """

    def __init__(self, family: Family, spans: tuple[Span, ...]) -> None:
        dims = symbols(family.terms, spans)
        self.shapes, at, given = [], 0, []
        for aval in family.avals:
            shape = tuple(dims[at : at + len(aval.shape)])
            at += len(aval.shape)
            self.shapes.append(shape)
            given.append(jax.ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type))
        function = family.function if family.make is None else family.make(tuple(dims[at:]))
        closed, out = jax.make_jaxpr(function, return_shape=True)(*jax.tree.unflatten(family.tree, given))
        results = closed.jaxpr.outvars
        if closed.effects or any(v.aval.weak_type for v in results) or not sees(closed.jaxpr):
            raise Refused("effects, results that are numbers, or that lie where no argument says")
        self.out = jax.tree.structure(out)
        self.results = [v.aval.shape for v in results]
        self.sizes = {f"n{i}": span.end for i, span in enumerate(spans)}
        self.work = work_of(closed.jaxpr, self.sizes)
        self.proven = False
        sizes = self.sizes

        def padded(given: Any, *arrays: Any) -> Any:
            true = Sizes(sizes, {name: given[i] for i, name in enumerate(sizes)})
            return run(true, closed.jaxpr, closed.consts, arrays)

        padded.__name__ = padded.__qualname__ = family.function.__name__
        padded.sized = NEVER  # pyright: ignore[reportFunctionMemberAccess]
        self.run = family.jit(padded)


class Way:
    """How calls of one signature are answered: the shapes that its arguments get, and the parts of the results that are theirs."""

    __slots__ = ("committed", "direct", "longer", "numbers", "parts", "program", "sharding")

    def __init__(self, program: Spanning, values: Sequence[int], sharding: Any, committed: bool) -> None:
        true = dict(zip(program.sizes, values, strict=True))
        self.program = program
        self.sharding, self.committed = sharding, committed
        self.numbers = np.asarray(values, np.int32)
        self.longer = [
            tuple([evaluate(d, program.sizes) for d in s]) if open_axes(s) else None for s in program.shapes
        ]
        self.parts = [
            tuple([slice(evaluate(d, true)) for d in s]) if open_axes(s) else None for s in program.results
        ]
        # Arguments in NumPy's memory go where JAX puts them.
        self.direct = sharding.device_set == {jax.devices()[0]}

    def call(self, leaves: Sequence[Any]) -> Any:
        """The function's results; None where it turns out to have no program."""
        given: list[Any] = [self.placed(self.numbers)]
        for leaf, shape in zip(leaves, self.longer, strict=True):
            host = type(leaf) is HostArray
            if shape is None:
                given.append(leaf.put() if host else leaf)
                continue
            longer = np.zeros(shape, leaf.dtype)
            longer[tuple([slice(n) for n in leaf.shape])] = leaf.read() if host else np.asarray(leaf)
            given.append(self.placed(longer))
        program = self.program
        try:
            found = program.run(*given)
        except Exception:
            if program.proven:
                raise
            _counts["refused"] += 1
            return None
        if not program.proven:
            program.proven = True
            _counts["programs"] += 1
        _counts["calls"] += 1
        own = [
            self.own(np.asarray(r) if part is None else np.array(np.asarray(r)[part], order="C"))
            if part is not None or r.committed != self.committed
            else r
            for r, part in zip(found, self.parts, strict=True)
        ]
        return jax.tree.unflatten(program.out, own)

    def placed(self, array: Any) -> Any:
        return array if self.direct else put(array, self.sharding, self.committed)

    def own(self, array: Any) -> Any:
        return put(array, self.sharding, self.committed)


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
