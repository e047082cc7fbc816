"""A step of all parameters as one compiled program.

An optimizer's rule is a pure function of arrays for one parameter; `run` calls the rules of all parameters
in one jitted call per device, in which the buffers of parameters and states are reused. Hyperparameters and step
counts are runtime operands, so a changed learning rate compiles nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .. import devices
from ..ops.write import bump, store
from ..storage import Storage
from ..tensor import Tensor, array_of, counter_of, recipe_of
from ..x64 import call, jit

__all__ = ["Rule", "Work", "run"]

Rule = Callable[..., tuple[Any, ...]]
"""`rule(flags, numbers, count, param, grad, *state) -> (param, *state)`.

flags: what the program depends on. numbers: hyperparameters as float64 scalars. count: steps made before this one.
"""


class Work(NamedTuple):
    """What one group has to do: the same rule, flags and numbers for parameters, gradients and states."""

    rule: Rule
    flags: tuple[Any, ...]
    numbers: tuple[float, ...]
    params: list[Tensor]
    grads: list[Tensor]
    states: list[list[Tensor]]
    counts: list[float]


def run(work: list[Work], name: str) -> dict[float, Any]:
    """Write the new values of all parameters and states; returns the arrays of the counts after this step.

    Parameters that share memory with an earlier one (tied weights) follow in a call of their own, after it.
    """
    made: dict[float, Any] = {}
    rest = work
    while rest:
        now, rest = disjoint(rest)
        for place, part in by_device(now).items():
            if place.type != "meta":
                made.update(call_program(part, place))
    for group in work:
        touch(group, name)
    return made


def touch(group: Work, name: str) -> None:
    """Count the writes, and remember the line of the program that called `step`."""
    writer = None
    for i, param in enumerate(group.params):
        if writer is None:
            bump(param, name, 4)
            writer = param._storage.writer
        else:
            counter_of(param).version += 1
            param._storage.writer = writer
        for state in group.states[i]:
            counter_of(state).version += 1


def select(group: Work, places: list[int]) -> Work:
    """The part of a group at these places."""
    return group._replace(
        params=[group.params[i] for i in places],
        grads=[group.grads[i] for i in places],
        states=[group.states[i] for i in places],
        counts=[group.counts[i] for i in places],
    )


def disjoint(work: list[Work]) -> tuple[list[Work], list[Work]]:
    """The work on parameters each of whose storage comes first, and the rest."""
    seen: set[int] = set()
    now: list[Work] = []
    later: list[Work] = []
    for group in work:
        first, again = [], []
        for i, param in enumerate(group.params):
            key = id(param._storage)
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
    places = {param.device for group in work for param in group.params}
    if len(places) <= 1:
        return dict.fromkeys(places, work)
    found: dict[devices.device, list[Work]] = {}
    for group in work:
        own = [param.device for param in group.params]
        for place in dict.fromkeys(own):
            part = select(group, [i for i, p in enumerate(own) if p is place])
            found.setdefault(place, []).append(part)
    return found


def covers(tensor: Tensor) -> bool:
    """Whether the tensor's values are its storage's array itself."""
    view = tensor._view
    return view is None or recipe_of(tensor._storage, view).identity


def owned(storage: Storage) -> Any:
    """The storage's array, of which nobody else holds the buffer: it is copied first where somebody does."""
    if not storage.sole_owner():
        array = storage.array
        storage.array = call(copy, array)
        storage.shared = False
    return storage.array


def copy(array: Any) -> Any:
    return jax.device_put(array, array.sharding, may_alias=False)


def call_program(work: list[Work], place: devices.device) -> dict[float, Any]:
    distinct: dict[float, int] = {}
    key = []
    targets: list[Tensor] = []
    mutable: list[tuple[Any, ...]] = []
    grads: list[Any] = []
    numbers: list[float] = []
    for group in work:
        which = tuple([distinct.setdefault(count, len(distinct)) for count in group.counts])
        key.append((group.rule, group.flags, len(group.numbers), which))
        numbers += group.numbers
        for i, param in enumerate(group.params):
            tensors = [param, *group.states[i]]
            targets += tensors
            mutable.append(tuple([owned(t._storage) if covers(t) else copied(t) for t in tensors]))
            grads.append(array_of(group.grads[i]))
    program = program_of(tuple(key))
    arrays, counts = call(program, mutable, grads, vector(tuple(numbers), place), list(distinct))
    del mutable
    at = 0
    for values in arrays:
        for value in values:
            tensor = targets[at]
            at += 1
            if covers(tensor):
                tensor._storage.replace(value)
            else:
                store(tensor, value)
    return dict(zip(distinct, counts, strict=True))


def copied(tensor: Tensor) -> Any:
    """The values of a strided view as an array of their own."""
    return call(copy, array_of(tensor))


@lru_cache(maxsize=1024)
def vector(numbers: tuple[float, ...], place: devices.device) -> Any:
    """Hyperparameters on the device; equal ones are placed once."""
    return devices.put(np.array(numbers, np.float64), place)


@lru_cache(maxsize=512)
def program_of(key: tuple[Any, ...]) -> Any:
    """The jitted rules of all groups: `(params and states, grads, numbers, counts) -> (params and states, counts)`."""

    def step(mutable: Any, grads: Any, numbers: Any, counts: Any) -> Any:
        counts = [jnp.asarray(count, jnp.float64) for count in counts]
        made = []
        at = first = 0
        for rule, flags, length, which in key:
            own = [numbers[first + i] for i in range(length)]
            first += length
            for index in which:
                made.append(apply_rule(rule, flags, own, counts[index], mutable[at], grads[at]))
                at += 1
        return made, [(count + 1).astype(jnp.float32) for count in counts]

    return jit(step, donate_argnums=0)


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
