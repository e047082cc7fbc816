"""Placements: how a tensor lies along one dimension of a mesh, and the same as JAX's shardings say it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
from jax.core import Tracer

from ..device_mesh import DeviceMesh

__all__ = ["Partial", "Placement", "Replicate", "Shard", "placements_of", "sharding_for"]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is split, along this dimension of the tensor if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each device has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each device has a term of it."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


class Shard(Placement):
    """Split along a dimension of the tensor, each device having a part.

    Differs from PyTorch: a dimension that the devices do not divide evenly stays whole, and `DTensor.placements` says so.

    >>> from xtensor.distributed.tensor import Shard
    >>> Shard(0) == Shard(0), Shard(1)
    (True, Shard(dim=1))
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shard) and other.dim == self.dim

    def __hash__(self) -> int:
        return hash((Shard, self.dim))

    def __repr__(self) -> str:
        return f"Shard(dim={self.dim})"

    def __str__(self) -> str:
        return f"S({self.dim})"


class Replicate(Placement):
    """All of it on each device.

    >>> from xtensor.distributed.tensor import Replicate
    >>> Replicate().is_replicate()
    True
    """

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replicate)

    def __hash__(self) -> int:
        return hash(Replicate)

    def __repr__(self) -> str:
        return "Replicate()"

    def __str__(self) -> str:
        return "R"


class Partial(Placement):
    """A term of it on each device, which `reduce_op` ("sum", "avg", "max", "min", "product") joins.

    Differs from PyTorch: XLA joins what its programs leave in parts, so no tensor is ever found so; `from_local` takes it.

    >>> from xtensor.distributed.tensor import Partial
    >>> Partial("max")
    Partial(max)
    """

    def __init__(self, reduce_op: str = "sum") -> None:
        self.reduce_op = reduce_op

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Partial) and other.reduce_op == self.reduce_op

    def __hash__(self) -> int:
        return hash((Partial, self.reduce_op))

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


def checked(mesh: DeviceMesh, placements: Sequence[Placement] | None, ndim: int) -> tuple[Placement, ...]:
    """One placement for each dimension of the mesh, with no negative dimensions; None replicates."""
    found = tuple([Replicate()] * mesh.ndim if placements is None else placements)
    if len(found) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(found)}, "
            f"and device_mesh.ndim: {mesh.ndim}."
        )
    made = []
    for placement in found:
        if isinstance(placement, Shard):
            dim = placement.dim + ndim if placement.dim < 0 else placement.dim
            if not 0 <= dim < ndim:
                raise IndexError(f"Shard(dim={placement.dim}) of a tensor of {ndim} dimensions")
            placement = Shard(dim)
        made.append(placement)
    return tuple(made)


def sharding_for(
    mesh: DeviceMesh,
    placements: Sequence[Placement] | None,
    shape: Sequence[int],
    before: Any = None,
) -> Any:
    """JAX's sharding for a tensor of this shape; of a slice of a mesh, what it is on the other dimensions stays.

    before: the array that it lies as now; where that is traced, XLA decides about the other dimensions.
    """
    axes: list[list[str]] = [[] for _ in shape]
    sizes = dict(zip(mesh.jax_mesh.axis_names, mesh.jax_mesh.devices.shape, strict=True))
    own = {a for names in mesh._axes for a in names}
    traced = isinstance(before, Tracer) and len(own) < len(sizes)
    if before is not None and not isinstance(before, Tracer):
        for dim, names in enumerate(axes_of(before.sharding, len(shape))):
            axes[dim] += [a for a in names if a in sizes and a not in own]
    for names, placement in zip(mesh._axes, checked(mesh, placements, len(shape)), strict=True):
        if isinstance(placement, Partial):
            raise ValueError("Can not distribute or redistribute a tensor to Partial")
        if isinstance(placement, Shard):
            split = [*axes[placement.dim], *names]
            if shape[placement.dim] % math.prod(sizes[a] for a in split) == 0:
                axes[placement.dim] = split
    while axes and not axes[-1] and not traced:
        axes.pop()
    rest = jax.sharding.PartitionSpec.UNCONSTRAINED if traced else None
    spec = jax.sharding.PartitionSpec(*[rest if not a else a[0] if len(a) == 1 else tuple(a) for a in axes])
    return jax.sharding.NamedSharding(mesh.jax_mesh, spec)


def axes_of(sharding: Any, ndim: int) -> list[tuple[str, ...]]:
    """The axes of the mesh over which each dimension of an array is split."""
    spec = getattr(sharding, "spec", ())
    found = [() if e is None else (e,) if isinstance(e, str) else tuple(e) for e in spec]
    return [*found, *[()] * (ndim - len(found))]


def placements_of(mesh: DeviceMesh, sharding: Any, ndim: int) -> tuple[Placement, ...]:
    """How an array with this sharding lies along each dimension of the mesh."""
    split = {a: dim for dim, names in enumerate(axes_of(sharding, ndim)) for a in names}
    found: list[Placement] = []
    for names in mesh._axes:
        dims = {split.get(a) for a in names}
        dim = dims.pop() if len(dims) == 1 else None
        found.append(Replicate() if dim is None else Shard(dim))
    return tuple(found)
