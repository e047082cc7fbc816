"""Which calls programs for several sizes answer: of signatures that differ in sizes alone.

A signature not seen before costs a compile of 20 to 45 ms; a loop over lengths meets one per operator and length. So what a
program has met is kept: where a signature differs from earlier ones only in sizes that go together, the function is traced
once with symbolic sizes and compiled once for arrays of the next power of two, with the true sizes as an operand (`padded`). The call's
arrays are lengthened, and its results cut when they are read, in the host's memory, which compiles nothing. It is done on CPUs, for small arrays,
and until a signature has come `OFTEN` times: then it is compiled as it is.

Where such a program gives the bits that the signature's own would give (`rules.is_exact`), it need not be known that sizes vary: layers of
several widths share one, calls wait as others do, and a thread compiles the signature's own once it has come `SOON` times.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import jax
from jax.core import Tracer
from jax.sharding import SingleDeviceSharding

from ..cache import BoundedCache
from ..jax_internals import evaluate_dimension
from ..jax_internals import programs as inside
from ..pending import Pending, Work, workers
from .spans import Answers, Expected, Family, HostArray, Way, counts, like
from .terms import ALIKE, Term, Vector, alike, values_of, varied

__all__ = [
    "OFTEN",
    "Families",
    "Sized",
    "comes_again",
    "count_host",
    "enable",
    "enabled",
    "forget",
    "is_made",
    "is_one_cpu",
    "paused",
    "stats",
]

OFTEN = 128
"""Calls of one signature that a program for several sizes answers: together they cost about what a compile does."""
SOON = 32
"""Calls after which a thread compiles the signature's own program, where both give the same bits."""
UNSEEN = (
    "jax.",
    "xtensor.engine.",
    "xtensor.xla.",
    "xtensor.lowering.",
    "xtensor.operators.",
    "xtensor.ops.made",
    "xtensor.tensor",
)
BACKWARD = {"xtensor.engine.executor", "xtensor.engine.workers"}
OWN = {("self",)}
DEPTH = 48
"""Frames by which a place in a program is told from others."""
KEPT = 48
"""Signatures of a program that are looked back on."""
FAMILIES = 64
UNMADE = 8
"""Signatures of a family, one after the other, without a program of their own, after which it is not looked for."""


class _State:
    enabled = os.environ.get("XTENSOR_SIZES", "").lower() not in ("0", "off", "no", "false")
    paused: ClassVar[set[object]] = set()


_lock = threading.RLock()
NO = (None, False)


def enable(on: bool) -> None:
    """Whether programs for several sizes are made and used from now on."""
    _State.enabled = on


def enabled() -> bool:
    """Whether programs for several sizes are made and used."""
    return _State.enabled and not _State.paused


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Within the block no programs for several sizes are made and used, on whatever thread; blocks of several threads may overlap."""
    block = object()
    try:
        _State.paused.add(block)
        yield
    finally:
        _State.paused.discard(block)


def stats() -> dict[str, int]:
    """Functions traced with symbolic sizes, programs made of them, calls that these answered, calls that were answered in the host's
    memory alone, and functions that were refused.
    """
    return dict(counts)


def count_host() -> None:
    """Count a call that was answered in the host's memory."""
    counts["host"] += 1


def forget() -> None:
    """Take no size for one that varies until it is seen to; the counts begin anew."""
    varied.clear()
    _places.clear()
    counts.update(dict.fromkeys(counts, 0))


class Sized(Answers):
    """How a function depends on sizes that are no arguments of its own.

    families: what is known of all functions that differ in these sizes alone. sizes: those of this one. make: gives the function for other
    sizes, symbolic ones too.
    """

    __slots__ = ("families", "make", "sizes")

    def __init__(
        self,
        families: Families,
        sizes: Vector,
        make: Callable[[tuple[Any, ...]], Callable[..., Any]] | None,
    ) -> None:
        self.families, self.sizes, self.make = families, sizes, make

    def answer(self, program: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """By a program for several sizes."""
        return self.families.answer(program, self.sizes, self.make, args)

    def expected(self, program: Any, args: tuple[Any, ...]) -> Expected | None:
        """Of programs for several sizes."""
        return self.families.expected(program, self.sizes, self.make, args)


class Met:
    """A signature that was met: how it is answered, None where it is compiled; how often yet; what compiles it meanwhile."""

    __slots__ = ("beside", "left", "often", "way")

    def __init__(self, way: Way | None) -> None:
        self.way = way
        self.beside: Work | None = None
        self.often = self.left = (
            SOON if way is not None and way.program.exact and workers.count > 1 else OFTEN
        )


class Known:
    """What is known of signatures that differ in sizes: families of them; others, by the places that they came from; and the sizes in which
    some differed whose program gives other bits than theirs.
    """

    __slots__ = ("families", "inexact", "seen")

    def __init__(self) -> None:
        self.families: list[Family] = []
        self.seen: list[tuple[int, Vector]] = []
        self.inexact: set[tuple[int, ...]] = set()

    def note(self, here: int, full: Vector) -> None:
        """Look back on a signature later."""
        if (here, full) not in self.seen:
            self.seen.append((here, full))
            if len(self.seen) > KEPT:
                del self.seen[0]


class Families:
    """What is known of a function's signatures; `jit` compiles what is made of it, `prepare` has a program compiled for some forms."""

    def __init__(self, jit: Callable[..., Any], prepare: Callable[..., None]) -> None:
        self.jit, self.prepare = jit, prepare
        self.kept: BoundedCache[Any, Known] = BoundedCache(256)
        self.met: BoundedCache[Any, Met] = BoundedCache(4096)
        self.refused = 0

    def answer(self, program: Any, sizes: Vector, make: Any, args: tuple[Any, ...]) -> tuple[Any, bool]:
        """As `Sized.answer`; arguments may also be `HostArray`s."""
        leaves, tree = jax.tree.flatten(args)
        with _lock:
            entry = self.entry(program, sizes, make, leaves, tree)
            if entry is None or entry.way is None:
                return NO
            way, came = entry.way, entry.left < entry.often
            entry.left -= 1
            if not enabled() or self.ends(entry, program, leaves, tree):
                entry.way = None
        if not enabled():
            return None, came
        found = way.call(leaves)
        if found is None:
            entry.way = None
            return None, came
        return found, entry.way is None

    def ends(self, entry: Met, program: Any, leaves: list[Any], tree: Any) -> bool:
        """Whether calls of a signature are no longer answered: it has come often, and if the bits are the same, its own program is there,
        which a thread compiles.
        """
        if entry.left > 0:
            return False
        assert entry.way is not None
        if not entry.way.program.exact or workers.count < 2:
            return True
        if entry.beside is None:
            forms = jax.tree.unflatten(tree, list(map(like, leaves)))
            entry.beside = Work(lambda: self.prepare(program, *forms))
            workers.submit(entry.beside)
        return entry.beside.done

    def expected(self, program: Any, sizes: Vector, make: Any, args: tuple[Any, ...]) -> Expected | None:
        """As `Sized.expected`."""
        if not enabled():
            return None
        leaves, tree = jax.tree.flatten(args)
        with _lock:
            entry = self.entry(program, sizes, make, leaves, tree)
        way = None if entry is None else entry.way
        if entry is None or way is None or not way.direct:
            return None
        exact = way.program.exact
        if way.program.proven:
            return Expected(way.avals, None, exact)
        examples = way.examples(leaves)
        forms = jax.tree.unflatten(tree, list(map(like, leaves)))

        def prepare(told: Any) -> None:
            try:
                self.prepare(way.program.run, *examples, told=told)
            except Exception:  # what cannot be run longer has a program of its own, which is compiled as soon
                entry.way = None
                way.program.refuse()
                self.prepare(program, *forms)

        return Expected(way.avals, prepare, exact)

    def entry(self, program: Any, sizes: Vector, make: Any, leaves: list[Any], tree: Any) -> Met | None:
        """What is known of a signature; None where it is none of those that may be answered."""
        making = enabled() and self.refused <= 3 and evaluate_dimension is not None
        if not making and not self.met:
            return None
        if inside is not None and not inside.is_clean():
            return None  # what a trace makes of constants is its own
        form: list[Any] = [tree]
        vector: list[int] = []
        for leaf in leaves:
            if not isinstance(leaf, (jax.Array, HostArray, Pending)) or isinstance(leaf, Tracer):
                return None
            aval: Any = leaf.aval
            if aval.dtype.itemsize == 1 and aval.dtype.kind not in "biu":
                return None
            form.append((len(aval.shape), aval.dtype, aval.weak_type))
            vector += aval.shape
        place = place_of(leaves)
        if place is None:
            return None
        vector += sizes
        full = tuple(vector)
        skeleton = (place, *form)
        key = (skeleton, full)
        entry = self.met.get(key)
        if entry is None and making:
            known = self.kept.get(skeleton)
            if known is None:
                known = self.kept[skeleton] = Known()
            way = self.way(known, program, make, leaves, tree, full, place)
            entry = self.met[key] = Met(way)
        return entry

    def way(
        self, known: Known, program: Any, make: Any, leaves: list[Any], tree: Any, full: Vector, place: Any
    ) -> Way | None:
        """How calls of a signature that was not met are answered; None where they are compiled."""
        family, values = self.find(known, program._fun, make, leaves, tree, full)
        if family is None:
            return None
        found = family.program(values)
        if found is None:
            self.refused += not family.anywhere
            return None
        if not family.anywhere:
            varied.update(dict.fromkeys(values))
        # Where many sizes come, none has a program of its own, and looking for it takes a third of this.
        if family.unmade < UNMADE:
            if is_made(program, jax.tree.unflatten(tree, leaves)):
                family.unmade = 0
                return None
            family.unmade += 1
        return Way(found, values, *place)

    def find(
        self, known: Known, function: Any, make: Any, leaves: list[Any], tree: Any, full: Vector
    ) -> tuple[Family | None, tuple[int, ...]]:
        """The family that a signature belongs to, or one made for it, and the values of its variables; or None."""
        seen = known.seen
        for family in known.families:
            values = values_of(family.terms, full)
            if values is not None:
                if family.anywhere:
                    here = site()
                    family.anywhere = alike(full, here, seen) is None
                    known.note(here, full)
                return family, values
        here = site()
        terms = alike(full, here, seen)
        anywhere = terms is None
        if anywhere:
            terms = alike(full, here, seen, anywhere)
        where = tuple([i for i, t in enumerate(terms or ()) if isinstance(t, Term)])
        if terms is not None and not (anywhere and where in known.inexact):
            family = Family(self.jit, function, make, tree, [leaf.aval for leaf in leaves], terms, anywhere)
            own = values_of(terms, full)
            if own is not None and family.program(own) is not None:
                if not anywhere:
                    values = [values_of(terms, vector) for _, vector in seen]
                    varied.update(dict.fromkeys([n for v in values if v is not None for n in v]))
                    seen[:] = [s for s in seen if values_of(terms, s[1]) is None]
                # Sizes beyond those that vary together make a family each: the first of many goes.
                del known.families[: max(0, len(known.families) - FAMILIES + 1)]
                known.families.append(family)
                return family, own
            if anywhere:
                known.inexact.add(where)
        known.note(here, full)
        return None, ()


def is_made(program: Any, args: tuple[Any, ...]) -> bool:
    """Whether a signature's own program is compiled, or on disk."""
    made = getattr(program, "_xt_program", None)
    return made is not None and made.is_ready_for(*jax.tree.map(like, args))


def site() -> int:
    """Where the program is: all lines that are being run, and the objects whose methods they are in; less what runs every call.

    0 in a backward pass, which goes through all layers in one place.
    """
    found, frame, depth = 0, sys._getframe(1), 0
    while frame is not None and depth < DEPTH:
        module, code = frame.f_globals.get("__name__", ""), frame.f_code
        if module in BACKWARD:
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
    return isinstance(array, (jax.Array, Pending)) and place_of([array]) is not None


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
