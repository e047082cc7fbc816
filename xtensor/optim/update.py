"""A step of all parameters as one compiled program.

An optimizer's rule is a pure function of arrays for one parameter; `run` calls the rules of all parameters
in one jitted call per device, in which the buffers of parameters and states are reused, unless all of them are small: then
the call may wait with what comes before it, so that a whole training step is one program, which runs when the next one reads a parameter.
Hyperparameters and step counts are runtime operands, so a changed learning rate compiles nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import capture, devices, dtypes
from ..lowering.parts import TOGETHER, alike
from ..operators.write import (
    JOINED,
    KINDS,
    operands_of,
    put_results,
    put_whole,
    raw_of,
    shared_of,
    storage_of,
    take_arrays,
    view_of,
    writer_at,
)
from ..storage import LazyStorage, Storage, found_all
from ..tensor import Tensor, array_of, counter_of
from ..xla import segments
from ..xla.cache import BoundedCache, bounded
from ..xla.pending import Pending, settled
from ..xla.threads import others
from ..xla.x64 import ahead, jit

__all__ = [
    "Layout",
    "Rule",
    "TracedCount",
    "TracedNumber",
    "Work",
    "ahead_of",
    "call",
    "held_by",
    "run",
    "size_of",
]

LITTLE = 1 << 19
"""Bytes of parameters and states up to which a step takes as long whether their buffers are reused or not."""
Rule = Callable[..., tuple[Any, ...]]
"""`rule(flags, numbers, count, param, grad, *state) -> (param, *state)`.

flags: what the program depends on. numbers: hyperparameters as float64 scalars. count: steps made before this one.
"""
Known = dict[int, tuple[Any, float]]
"""Arrays of counts whose value the host knows, by identity."""


class Work(NamedTuple):
    """What one group has to do: the same rule, flags and numbers for parameters, gradients and states.

    counts: of the steps before, per parameter. counters: the tensors that hold them, none where the rule does not count.
    """

    rule: Rule
    flags: tuple[Any, ...]
    numbers: tuple[float, ...]
    params: list[Tensor]
    grads: list[Tensor]
    states: list[Sequence[Tensor]]
    counts: list[float]
    counters: list[Tensor]


class Layout(NamedTuple):
    """What a step has in common with the next one of the same tensors.

    key: the program's. tensors: those that it writes, each parameter before its states. alike: whether it takes one count.
    plain: whether the tensors are whole storages, which may hold what is pending. size: as `size_of` says.
    """

    key: tuple[Any, ...]
    tensors: list[Tensor]
    counters: list[Tensor]
    place: devices.device
    alike: bool
    plain: bool
    size: int


def size_of(work: list[Work]) -> int:
    """The bytes of what a step writes."""
    return sum([p.nbytes * (1 + len(s)) for g in work for p, s in zip(g.params, g.states, strict=True)])


def run(work: list[Work], name: str, counted: bool = True, size: int = JOINED) -> tuple[Known, Layout | None]:
    """Write the new values of all parameters, states and counters; returns the counters' arrays, whose values are known.

    size: as `size_of` says. The layout is there where one program made the whole step.

    Parameters that share memory with an earlier one (tied weights) follow in a call of their own, after it.
    """
    writer = writer_at(name, 3)
    storages = [param._xt_storage for group in work for param in group.params]
    places = places_of([storage.operand for storage in storages])
    few = len(storages) <= TOGETHER or capture.running() is not None
    if few and len(places) == 1 and len(set(storages)) == len(storages):
        return call_program(work, places.pop(), writer, counted, size)
    made: Known = {}
    rest = work
    while rest:
        now, rest = disjoint(rest)
        for place, part in by_device(now).items():
            for piece in [part] if few else parted(part):
                made.update(call_program(piece, place, writer, counted, size)[0])
    return made, None


def ahead_of(work: list[Work], counted: bool) -> None:
    """Have threads compile the programs of a first step of these parameters, whose gradients and states are of their forms."""
    if others or capture.running() is not None:
        return
    storages = [param._xt_storage for group in work for param in group.params]
    if len(set(storages)) != len(storages):
        return
    for place, part in by_device(work).items():
        for piece in [part] if len(storages) <= TOGETHER else parted(part):
            forms = [
                [form_of(param._xt_storage.operand)] * (1 + len(states))
                for group in piece
                for param, states in zip(group.params, group.states, strict=True)
            ]
            key = tuple([
                (g.rule, g.flags, len(g.numbers), (0,) * len(g.params), tuple(map(len, g.states))) for g in piece
            ])  # fmt: skip
            program, _ = program_of(key, counted, size_of(work) >= (JOINED if segments.enabled() else LITTLE))
            numbers = tuple([n for g in piece for n in g.numbers])
            count = count_array(0.0, place)
            ahead(
                program,
                *chain(*forms),
                *[f[0] for f in forms],
                form_of(vector(numbers, place)),
                form_of(count),
            )


def form_of(array: Any) -> Any:
    """What stands for an array when a program is compiled."""
    return jax.ShapeDtypeStruct(
        array.shape, array.dtype, sharding=array.sharding if array.committed else None
    )


def parted(work: list[Work]) -> Iterator[list[Work]]:
    """The work in parts of few parameters of one form."""
    for group in work:
        own = zip(group.params, group.grads, group.counts, group.states, strict=True)
        for places in alike([(p.shape, p.dtype, g.dtype, c, len(s)) for p, g, c, s in own]):
            yield [select(group, places)]


def select(group: Work, places: list[int]) -> Work:
    """The part of a group at these places."""
    return group._replace(
        params=[group.params[i] for i in places],
        grads=[group.grads[i] for i in places],
        states=[group.states[i] for i in places],
        counts=[group.counts[i] for i in places],
        counters=[group.counters[i] for i in places] if group.counters else [],
    )


def disjoint(work: list[Work]) -> tuple[list[Work], list[Work]]:
    """The work on parameters each of whose storage comes first, and the rest."""
    seen: set[int] = set()
    now: list[Work] = []
    later: list[Work] = []
    for group in work:
        first, again = [], []
        for i, param in enumerate(group.params):
            key = id(param._xt_storage)
            (again if key in seen else first).append(i)
            seen.add(key)
        if not again:
            now.append(group)
            continue
        if first:
            now.append(select(group, first))
        later.append(select(group, again))
    return now, later


def by_device(work: list[Work]) -> dict[devices.device, list[Work]]:
    """The work by the device of the parameters."""
    found: dict[devices.device, list[Work]] = {}
    for group in work:
        own = [param.device for param in group.params]
        for place in dict.fromkeys(own):
            part = select(group, [i for i, p in enumerate(own) if p is place])
            found.setdefault(place, []).append(part)
    return found


def call_program(
    work: list[Work], place: devices.device, writer: Any, counted: bool, size: int
) -> tuple[Known, Layout]:
    distinct: dict[float, int] = {}
    key = []
    tensors: list[Tensor] = []
    counters: list[Tensor] = []
    numbers: list[float] = []
    for group in work:
        first = group.counts[0]
        if group.counts.count(first) == len(group.counts):
            which = (distinct.setdefault(first, len(distinct)),) * len(group.counts)
        else:
            which = tuple([distinct.setdefault(count, len(distinct)) for count in group.counts])
        key.append((group.rule, group.flags, len(group.numbers), which, tuple(map(len, group.states))))
        numbers += group.numbers
        counters += group.counters
        for param, states in zip(group.params, group.states, strict=True):
            tensors.append(param)
            tensors += states
    plain = KINDS.issuperset([type(t._xt_storage) for t in (*tensors, *counters)]) and not any(
        map(view_of, tensors)
    )
    layout = Layout(tuple(key), tensors, counters, place, len(distinct) == 1, plain, size)
    one = len(work) == 1
    grads = work[0].grads if one else [grad for group in work for grad in group.grads]
    values = work[0].counts if one else [count for group in work for count in group.counts]
    return call(layout, grads, values, list(distinct), tuple(numbers), writer, counted), layout


def call(
    layout: Layout,
    grads: Sequence[Tensor],
    values: Sequence[float],
    distinct: Sequence[float],
    numbers: tuple[Any, ...],
    writer: Any,
    counted: bool,
) -> Known:
    """Make a step of a layout with these gradients, counts of the steps before, of each parameter and without repeats, and numbers."""
    key, tensors, counters, place, _, plain, size = layout
    watcher = capture.running()
    small = plain and size < JOINED and watcher is None
    joins = small and segments.waiting()
    if place.type == "meta":
        for tensor in (*tensors, *counters):
            counter_of(tensor).version += 1
        return {}
    counts = [c.array if isinstance(c, TracedCount) else count_array(c, place) for c in distinct]
    # Gradients are held first, so that one which is its parameter's own array counts as somebody who sees it.
    given: Any
    storages = list(map(storage_of, tensors)) if small else []
    before: Sequence[int] = ()
    if joins:
        if any(map(view_of, grads)):
            given = [g._xt_storage.operand if g._xt_view is None else array_of(g) for g in grads]
        else:
            given = operands_of(list(map(storage_of, grads)))
        arrays = operands_of(storages)
        before = () if True in map(shared_of, storages) else list(map(id, arrays))
    else:
        given = settled([g._xt_storage.array if g._xt_view is None else array_of(g) for g in grads])
        arrays = [array_of(tensor) for tensor in tensors] if size < LITTLE else take_arrays(tensors)
        counts = settled(counts)
    program, pick = program_of(key, counted, not (joins or size < LITTLE or others))
    args = (*arrays, *given, vector(numbers, place) if watcher is None else traced_vector(numbers), *counts)
    del arrays, given
    if joins:
        program = segments.waiter(program, len(args), None)
        for storage in storages:  # which may hold what pends from then on
            storage.__class__ = LazyStorage
    if not counted:
        if small:
            put_whole(storages, program, args, writer)
            if before:
                segments.offer(before, list(map(raw_of, storages)))
            stepped(joins, storages)
        else:
            put_results(tensors, program, args, writer)
        return {}
    # The counters' cells, those of counts on the device for the next step, and what counters hold that lie elsewhere.
    cells, ready, elsewhere = [], [], []
    put: dict[Any, Any] = {}
    last, plain = None, False
    for counter, count in zip(counters, values, strict=True):
        storage = counter._xt_storage
        if (held := held_by(storage)) is not last:  # that of all counts that are equal
            last = held
            plain = counter.dtype is dtypes.float32 and storage.device is place
        storage.writes += 1
        storage.shared = True
        if plain and counter._xt_view is None:
            storage.version += 1
            cells.append(storage)
            continue
        counter_of(counter).version += 1
        cells.append(Storage(None))
        if storage.device.type != "meta":
            key = (count, counter.dtype, counter.device)
            if key not in put:  # counts that are equal are one array there, too
                kind = counter.dtype.numpy
                put[key] = (
                    (count.array + 1).astype(kind)
                    if isinstance(count, TracedCount)
                    else devices.put(np.array(count + 1, kind), counter.device)
                )
            ready.append(put[key])
            elsewhere.append(storage)
    after = [Storage(None) for _ in counts]
    if joins:
        for storage in (*cells, *after, *elsewhere):
            storage.__class__ = LazyStorage
    more = *cells, *after, *elsewhere
    if small:
        put_whole(storages, program, args, writer, more, pick, ready)
        if before:
            segments.offer(before, list(map(raw_of, storages)))
    else:
        put_results(tensors, program, args, writer, more, pick, ready)
    for storage in (*cells, *elsewhere):
        storage.writes += 1
    if watcher is not None:
        return {}
    for count, cell in zip(distinct, after):
        known_counts[count + 1, place] = cell.raw
    known: Known = {}
    last = None
    for storage, count in zip(cells, values):
        if storage.raw is not last:
            last = storage.raw
            known[id(last)] = (last, count + 1)
    if small:
        stepped(joins, storages)
    return known


def stepped(joins: bool, storages: list[Storage]) -> None:
    """End the segment that a step has joined. It runs when the next one reads a parameter: gradients that are gone by then are not made."""
    if joins:
        segments.close(STEP, lambda: found_all(storages))
    segments.patience.stepped()


def places_of(arrays: list[Any]) -> set[devices.device]:
    """The devices that arrays lie on."""
    with contextlib.suppress(Exception):  # not all are arrays of JAX's
        if len({id(array.sharding) for array in arrays}) == 1:
            return {devices.of_array(arrays[0])}
    return set(map(devices.of_array, arrays))


def held_by(storage: Storage) -> Any:
    """A storage's array, or what it was pending as: the same object until somebody reads it."""
    held = storage.raw
    return held if type(held) is Pending else storage.array


STEP = "an optimizer's step"


class TracedNumber(NamedTuple):
    """A hyperparameter that is a value of a program being captured: an element of all of its optimizer's."""

    vector: Any
    place: int


def traced_vector(numbers: tuple[TracedNumber, ...]) -> Any:
    """What `vector` gives, within a program."""
    found = numbers[0].vector if numbers else np.zeros(0)
    if [n.place for n in numbers] == list(range(found.shape[0])):
        return found
    return found[np.array([n.place for n in numbers])]


class TracedCount:
    """A count of steps that is a value of a program being captured; equal where it is the same value."""

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __hash__(self) -> int:
        return id(self.array)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedCount) and other.array is self.array


known_counts: BoundedCache[tuple[float, devices.device], Any] = BoundedCache(256)
"""Counts that are on a device already: those that programs returned, for the next step to take."""


def count_array(count: float, place: devices.device) -> Any:
    """A count on the device, in float64."""
    found = known_counts.get((count, place))
    if found is None:
        found = known_counts[count, place] = devices.put(np.array(count, np.float64), place)
    return found


@bounded(1024)
def vector(numbers: tuple[float, ...], place: devices.device) -> Any:
    """Hyperparameters on the device; equal ones are placed once."""
    return devices.put(np.array(numbers, np.float64), place)


@bounded(512)
def program_of(key: tuple[Any, ...], counted: bool, donate: bool) -> tuple[Any, Any]:
    """The jitted rules of all groups: `(params with their states, grads, numbers, counts) -> (the same, counts, counts)`.

    All arrays one after the other. The counts after the step are in float64, for the next one, and in float32, for the
    optimizer's state. With it what takes of the results those of the tensors, of each parameter's counter, and of the counts.
    """
    length = sum(1 + states for *_, sizes in key for states in sizes)
    each = [index for *_, which, _ in key for index in which]

    def step(*given: Any) -> Any:
        mutable, grads = iter(given[:length]), iter(given[length : length + len(each)])
        numbers, *counts = given[length + len(each) :]
        made: list[Any] = []
        first = 0
        for rule, flags, n_numbers, which, sizes in key:
            own = [numbers[first + i] for i in range(n_numbers)]
            first += n_numbers
            for index, states in zip(which, sizes, strict=True):
                values = [next(mutable) for _ in range(1 + states)]
                made += apply_rule(rule, flags, own, counts[index], values, next(grads))
        after = [count + 1 for count in counts] if counted else []
        return (*made, *after, *[count.astype(jnp.float32) for count in after])

    total = max(each) + 1
    places = (*range(length), *[length + total + i for i in each], *range(length, length + total))
    return jit(step, donate_argnums=tuple(range(length)) if donate else ()), itemgetter(*places)


def apply_rule(
    rule: Rule, flags: Any, numbers: list[Any], count: Any, mutable: Any, grad: Any
) -> tuple[Any, ...]:
    """One parameter's rule, computed in float32 or better, complex numbers as pairs; dtypes are kept."""
    param = mutable[0]
    pairs = param.dtype.kind == "c"
    kinds = [array.dtype for array in mutable]
    values = [as_pairs(array) if pairs and array.dtype.kind == "c" else array for array in (*mutable, grad)]
    kind = jnp.promote_types(values[0].dtype, jnp.float32)
    values = [value.astype(kind) for value in values]
    scalars = [number.astype(kind) if number.dtype != kind else number for number in numbers]
    made = rule(flags, Numbers(numbers, scalars), count, values[0], values[-1], *values[1:-1])
    results = []
    for value, dtype in zip(made, kinds, strict=True):
        results.append(
            jax.lax.complex(value[0], value[1]).astype(dtype) if dtype.kind == "c" else value.astype(dtype)
        )
    return tuple(results)


def as_pairs(array: Any) -> Any:
    return jnp.stack([jnp.real(array), jnp.imag(array)])


class Numbers:
    """Hyperparameters while a program is traced: `exact` in float64, `own` in the dtype that a rule computes in."""

    def __init__(self, exact: list[Any], own: list[Any]) -> None:
        self.exact = exact
        self.own = own
