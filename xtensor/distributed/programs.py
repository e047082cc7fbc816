"""The programs of collectives: each is one program over the mesh of a group, which every process of it runs with its own part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..xla.cache import bounded
from ..xla.x64 import call

__all__ = ["AXIS", "REDUCTIONS", "run"]

AXIS = "ranks"
PARTS = jax.sharding.PartitionSpec(AXIS)


def folded(name: str) -> Callable[[Any], Any]:
    """A reduction of the parts of all ranks, along the first dimension."""
    fold: dict[str, Callable[[Any], Any]] = {
        "SUM": lambda parts: parts.any(0) if parts.dtype == bool else parts.sum(0, dtype=parts.dtype),
        "PRODUCT": lambda parts: parts.all(0) if parts.dtype == bool else parts.prod(0, dtype=parts.dtype),
        "MIN": lambda parts: parts.min(0),
        "MAX": lambda parts: parts.max(0),
        "BAND": lambda parts: lax.reduce(parts, np.array(-1).astype(parts.dtype), lax.bitwise_and, (0,)),
        "BOR": lambda parts: lax.reduce(parts, np.array(0, parts.dtype), lax.bitwise_or, (0,)),
        "BXOR": lambda parts: lax.reduce(parts, np.array(0, parts.dtype), lax.bitwise_xor, (0,)),
        "AVG": lambda parts: (parts.sum(0) / parts.shape[0]).astype(parts.dtype),
    }
    return fold[name]


REDUCTIONS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
DIRECT: dict[str, Callable[[Any], Any]] = {
    "SUM": lambda x: lax.psum(x, AXIS),
    "MIN": lambda x: lax.pmin(x, AXIS),
    "MAX": lambda x: lax.pmax(x, AXIS),
    "AVG": lambda x: lax.pmean(x, AXIS),
}
"""Those that XLA reduces on its way between the processes; of the others each process gets all parts."""


def all_reduce(x: Any, op: str) -> Any:
    if op in DIRECT and x.dtype.kind in "fiuV" and not (op == "AVG" and x.dtype.kind in "iu"):
        return DIRECT[op](x)
    if op in ("SUM", "AVG") and x.dtype.kind == "c":
        return DIRECT[op](x)
    return folded(op)(lax.all_gather(x, AXIS))


def all_gather(x: Any) -> Any:
    return lax.all_gather(x, AXIS)


def broadcast(x: Any, source: Any) -> Any:
    mine = jnp.where(lax.axis_index(AXIS) == source, x, jnp.zeros((), x.dtype))
    if x.dtype == bool:
        return lax.psum(mine.astype(np.int32), AXIS) > 0
    return lax.psum(mine, AXIS)


def reduce_scatter(x: Any, op: str) -> Any:
    if op == "SUM" and x.dtype != bool:
        return lax.psum_scatter(x, AXIS)
    return folded(op)(lax.all_to_all(x, AXIS, 0, 0))


def all_to_all(x: Any) -> Any:
    return lax.all_to_all(x, AXIS, 0, 0)


def scatter(x: Any, source: Any) -> Any:
    return lax.dynamic_index_in_dim(lax.all_to_all(x, AXIS, 0, 0), source, 0, keepdims=False)


KINDS: dict[str, Callable[..., Any]] = {
    "all_reduce": all_reduce,
    "all_gather": all_gather,
    "broadcast": broadcast,
    "reduce_scatter": reduce_scatter,
    "all_to_all": all_to_all,
    "scatter": scatter,
}


@bounded(512)
def program(kind: str, mesh: Any, static: tuple[Any, ...]) -> Any:
    """A collective over a mesh, of the parts laid one behind the other."""
    body = KINDS[kind]

    def part(x: Any, *numbers: Any) -> Any:
        return body(x[0], *static, *numbers)[None]

    def whole(x: Any, *numbers: Any) -> Any:
        specs = (PARTS, *[jax.sharding.PartitionSpec()] * len(numbers))
        mapped = jax.shard_map(part, mesh=mesh, in_specs=specs, out_specs=PARTS, check_vma=False)
        return mapped(x, *numbers)

    whole.__name__ = kind
    return jax.jit(whole)


@bounded(512)
def ahead(shape: tuple[int, ...], back: bool) -> Any:
    """A part with a dimension of one before its own, or without it."""
    return jax.jit((lambda x: x.reshape(shape)) if back else (lambda x: x.reshape((1, *shape))))


def run(kind: str, mesh: Any, array: Any, *static: Any, numbers: tuple[int, ...] = ()) -> Any:
    """The process's own part of a collective's result, on the device of its own part."""
    return call(_run, kind, mesh, array, static, numbers)


def _run(kind: str, mesh: Any, array: Any, static: tuple[Any, ...], numbers: tuple[int, ...]) -> Any:
    sharding = jax.sharding.NamedSharding(mesh, PARTS)
    (here,) = sharding.addressable_devices
    own = jax.device_put(array, here)
    part = ahead(own.shape, False)(own)
    parts = jax.make_array_from_single_device_arrays((mesh.devices.size, *own.shape), sharding, [part])
    made = program(kind, mesh, static)(parts, *[np.int32(n) for n in numbers])
    found = made.addressable_data(0)
    found = ahead(found.shape[1:], True)(found)
    (back,) = array.devices()
    return jax.device_put(found, back) if back != here else found
