"""Sizes that vary: one program for all sizes up to a bound, where a program's signatures differ in sizes alone.

A signature not seen before costs a compile of 20 to 45 ms; a loop over lengths meets one per operator and length. So what a
program has met is kept: where a signature differs from earlier ones only in sizes that go together, the function is traced
once with symbolic sizes and compiled once for arrays of the next power of two, with the true sizes as an operand (`padded`). The call's
arrays are lengthened, and its results cut, in the host's memory, which compiles nothing. It is done on CPUs, for small arrays,
and until a signature has come `OFTEN` times: then it is compiled as it is.

`XTENSOR_SIZES=0` in the environment, or `enable(False)`, switches it off.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
from jax.core import Tracer
from jax.sharding import SingleDeviceSharding

from .cache import BoundedCache
from .jax_internals import evaluate_dimension
from .jax_internals import programs as inside
from .pending import Pending, settled
from .spans import Family, HostArray, Way, counts
from .terms import ALIKE, Vector, alike, values_of, varied

__all__ = [
    "OFTEN",
    "Families",
    "Sized",
    "comes_again",
    "count_host",
    "enable",
    "enabled",
    "forget",
    "is_one_cpu",
    "paused",
    "stats",
]

OFTEN = 128
"""Calls of one signature that a program for several sizes answers: together they cost about what a compile does."""
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


class Sized(NamedTuple):
    """How a function depends on sizes that are no arguments of its own.

    families: what is known of all functions that differ in these sizes alone. sizes: those of this one. make: gives the function for other
    sizes, symbolic ones too.
    """

    families: Families
    sizes: Vector
    make: Callable[[tuple[Any, ...]], Callable[..., Any]] | None

    def answer(self, function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, bool]:
        """The results by a program for several sizes, None where the call is to be compiled as it is; whether the next one, or this one
        after others that were answered, is to be: JAX's cache has it then as one that always comes by here.
        """
        return self.families.answer(function, self.sizes, self.make, args)


class Met:
    """A signature that was met: how it is answered, None where it is compiled, and how often yet."""

    __slots__ = ("left", "way")

    def __init__(self, way: Way | None) -> None:
        self.way = way
        self.left = OFTEN


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
        making = enabled() and self.refused <= 3 and evaluate_dimension is not None
        if not making and not self.met:
            return NO
        if inside is not None and not inside.is_clean():
            return NO  # what a trace makes of constants is its own
        leaves, tree = jax.tree.flatten(args)
        form: list[Any] = [tree]
        vector: list[int] = []
        for leaf in leaves:
            if not isinstance(leaf, (jax.Array, HostArray, Pending)) or isinstance(leaf, Tracer):
                return NO
            aval: Any = leaf.aval
            if aval.dtype.itemsize == 1 and aval.dtype.kind not in "biu":
                return NO
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
                if not making:
                    return NO
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
            way, came = entry.way, entry.left < OFTEN
            entry.left -= 1
            if not enabled() or not entry.left:
                entry.way = None
        if not enabled():
            return None, came
        found = way.call([settled(leaf) for leaf in leaves])
        if found is None:
            entry.way = None
            return None, came
        return found, not entry.left

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
