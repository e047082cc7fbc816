"""DeviceMesh: devices in a grid whose dimensions have names, and the part of one that some of the names are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from .. import checks, devices
from ..ops.create.ingest import tensor as make_tensor
from ..tensor import Tensor
from . import world

__all__ = ["DeviceMesh", "init_device_mesh"]

Axes = tuple[tuple[str, ...], ...]


class DeviceMesh:
    """A grid of devices; a tensor that lies on one is split over it or copied along its dimensions.

    device_type: "cpu", "cuda", ... mesh: the numbers of the devices, nested lists or a tensor. One process numbers the devices
    that JAX finds; where several processes run, each of them has its own, in the order of the ranks.

    Differs from PyTorch: a slice, `mesh["model"]`, stands for that dimension of the whole mesh. A tensor that is placed on a slice
    lies on all devices, copied along the dimensions that the slice leaves out.

    >>> from xtensor.distributed.device_mesh import init_device_mesh
    >>> mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("data",))
    >>> mesh.size(), mesh["data"].mesh_dim_names
    (1, ('data',))
    """

    def __init__(
        self,
        device_type: str,
        mesh: Any,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        **_: Any,
    ) -> None:
        numbers = np.asarray(mesh.tolist() if isinstance(mesh, Tensor) else mesh, np.int64)
        numbers = numbers.reshape(numbers.shape or (1,))
        if mesh_dim_names is not None and len(mesh_dim_names) != numbers.ndim:
            raise RuntimeError("mesh_shape and mesh_dim_names should have same length!")
        if mesh_dim_names is not None and len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {tuple(mesh_dim_names)}"
            )
        there = world.devices_of(device_type)
        if numbers.size and (numbers.min() < 0 or numbers.max() >= len(there)):
            raise RuntimeError(
                f"a mesh of {numbers.size} {device_type} devices names number {int(numbers.max())}, and there are "
                f"{len(there)}: {hint(device_type, int(numbers.max()) + 1)}"
            )
        names = tuple(mesh_dim_names or [f"dim_{i}" for i in range(numbers.ndim)])
        found = np.empty(numbers.size, object)
        found[:] = [there[i] for i in numbers.reshape(-1)]
        kinds = (jax.sharding.AxisType.Auto,) * numbers.ndim
        self.jax_mesh: Any = jax.sharding.Mesh(found.reshape(numbers.shape), names, axis_types=kinds)
        self.device_type = device_type
        self.mesh_dim_names: tuple[str, ...] | None = None if mesh_dim_names is None else names
        self._axes: Axes = tuple([(name,) for name in names])
        self._numbers = numbers
        self._flattened: dict[str, tuple[str, ...]] = {}
        self._root: DeviceMesh = self
        devices.of_mesh(
            self.jax_mesh
        )  # arrays on it are known for such from now on, also where it is a single device

    def _part(self, axes: Axes, names: tuple[str, ...] | None) -> DeviceMesh:
        made = object.__new__(DeviceMesh)
        made.__dict__.update(self._root.__dict__)
        made._axes, made.mesh_dim_names = axes, names
        return made

    # -- what it is

    @property
    def device(self) -> devices.device:
        """The device that the whole mesh is: `xtensor.zeros(2, device=mesh.device)` lies on all of its devices."""
        return devices.of_mesh(self.jax_mesh)

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        sizes = dict(zip(self.jax_mesh.axis_names, self.jax_mesh.devices.shape, strict=True))
        return tuple([math.prod(sizes[a] for a in axes) for axes in self._axes])

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._axes)

    @property
    def mesh(self) -> Tensor:
        """The numbers of the devices; of a slice those that share this process's place on the other dimensions."""
        return make_tensor(self._own_numbers().tolist(), device="cpu")

    def _own_numbers(self) -> np.ndarray[Any, Any]:
        names = list(self.jax_mesh.axis_names)
        here = self._root.get_coordinate() or [0] * len(names)
        kept = [names.index(a) for axes in self._axes for a in axes]
        at = tuple([slice(None) if i in kept else here[i] for i in range(len(names))])
        order = np.argsort(np.argsort(kept))
        return self._numbers[at].transpose([int(i) for i in order]).reshape(self.shape)

    def size(self, mesh_dim: int | str | None = None) -> int:
        """The number of devices, or the size of a dimension."""
        return math.prod(self.shape) if mesh_dim is None else self.shape[self._dim(mesh_dim)]

    def __len__(self) -> int:
        return self.size()

    def _dim(self, dim: int | str) -> int:
        if isinstance(dim, str):
            if self.mesh_dim_names is None or dim not in self.mesh_dim_names:
                raise KeyError(
                    f"Invalid mesh_dim_name {dim!r}: this mesh has the dimensions {self.mesh_dim_names or 'without names'}"
                )
            return self.mesh_dim_names.index(dim)
        if not -self.ndim <= dim < self.ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-self.ndim}, {self.ndim - 1}], but got {dim})"
            )
        return dim % self.ndim

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (names,) if isinstance(names, str) else tuple(names)
        if names == self.mesh_dim_names:
            return self
        axes = []
        for name in names:
            if name in self._root._flattened:
                axes.append(self._root._flattened[name])
            else:
                axes.append(self._axes[self._dim(name)])
        return self._part(tuple(axes), names)

    def _flatten(self, mesh_dim_name: str | None = None) -> DeviceMesh:
        """The mesh with all dimensions as one, in the order of theirs; sliced later by this name."""
        names = self.mesh_dim_names or tuple(self.jax_mesh.axis_names)
        name = mesh_dim_name or "_".join(names)
        axes = tuple([a for axes in self._axes for a in axes])
        self._root._flattened[name] = axes
        return self._part((axes,), (name,))

    # -- who is where

    def get_rank(self) -> int:
        """The number of this process's first device in the world; 0 in a single process."""
        return world.first_device(self.device_type)

    def get_coordinate(self) -> list[int] | None:
        """Where this process's first device is on each dimension; None where the mesh has none of this process's."""
        at = np.argwhere(self._numbers == self.get_rank())
        if not len(at):
            return None
        names = list(self.jax_mesh.axis_names)
        shape = self.jax_mesh.devices.shape
        found = []
        for axes in self._axes:
            place = 0
            for axis in axes:
                place = place * shape[names.index(axis)] + int(at[0][names.index(axis)])
            found.append(place)
        return found

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """Where this process's first device is on a dimension, which may be left out of a mesh of one."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified "
                "when device_mesh.ndim > 1. "
            )
        coordinate = self.get_coordinate()
        if coordinate is None:
            raise RuntimeError("this process has no device of the mesh")
        return coordinate[self._dim(mesh_dim or 0)]

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The process group of the ranks that differ from this one on a dimension only."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified "
                "when device_mesh.ndim > 1. If you want to get the list of all the ProcessGroups in the DeviceMesh, "
                "please use `get_all_groups()` instead."
            )
        dim = self._dim(mesh_dim or 0)
        part = self._part((self._axes[dim],), None)
        return world.group_of([int(i) for i in part._own_numbers().reshape(-1)])

    def get_all_groups(self) -> list[Any]:
        """The process group of every dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    @staticmethod
    def from_group(
        group: Any, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None
    ) -> DeviceMesh:
        """The mesh of a process group's devices; of several groups that of the ranks `mesh`, a dimension for each group."""
        if isinstance(group, (list, tuple)) and len(group) == 1 and mesh is None:
            group = group[0]
        if not isinstance(group, (list, tuple)):
            kinds = world.devices_of(device_type)
            numbers = [i for i, d in enumerate(kinds) if d.process_index in group.ranks]
            if (
                mesh is not None
                and np.asarray(mesh.tolist() if isinstance(mesh, Tensor) else mesh).tolist() != numbers
            ):
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {list(group.ranks)}")
            return DeviceMesh(device_type, numbers, mesh_dim_names=mesh_dim_names)
        if mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names)
        if made.ndim != len(group):
            raise ValueError(
                "Expects mesh with ndim equal to number of ProcessGroups but got "
                f"mesh {made.mesh.tolist()} and {len(group)} ProcessGroups"
            )
        return made

    # -- identity

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and other.jax_mesh == self.jax_mesh and other._axes == self._axes

    def __hash__(self) -> int:
        return hash((self.jax_mesh, self._axes))

    def __reduce__(self) -> Any:
        return (
            again,
            (
                self.device_type,
                self._numbers.tolist(),
                self._root.mesh_dim_names,
                self._axes,
                self.mesh_dim_names,
            ),
        )

    def __repr__(self) -> str:
        names = self.mesh_dim_names or [f"dim_{i}" for i in range(self.ndim)]
        sizes = ", ".join(f"{n}={s}" for n, s in zip(names, self.shape, strict=True))
        return f"DeviceMesh(({sizes}), '{self.device_type}', {self._own_numbers().tolist()})"

    def __enter__(self) -> DeviceMesh:
        _stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stack.pop()

    def __iter__(self) -> Iterator[Any]:
        raise TypeError("a DeviceMesh is sliced by the names of its dimensions, not iterated over")


_stack: list[DeviceMesh] = []


def current_mesh() -> DeviceMesh:
    """The innermost `with mesh:`; RuntimeError outside of any."""
    if not _stack:
        raise RuntimeError("No device mesh is currently active!")
    return _stack[-1]


def again(kind: str, numbers: Any, names: Any, axes: Axes, own: Any) -> DeviceMesh:
    """The mesh, or the slice, that was pickled."""
    root = DeviceMesh(kind, numbers, mesh_dim_names=names)
    return root if axes == root._axes else root._part(axes, own)


def hint(kind: str, count: int) -> str:
    """How to get more devices."""
    if kind == "cpu":
        return f"start Python with JAX_NUM_CPU_DEVICES={count} in its environment for more"
    return "start more processes for more"


def of_sharding(sharding: Any) -> DeviceMesh:
    """The mesh of one of JAX's shardings."""
    mesh = sharding.mesh
    made = object.__new__(DeviceMesh)
    made.jax_mesh, made.device_type = mesh, devices.of_mesh(mesh).type
    numbered = {d: i for i, d in enumerate(world.devices_of(made.device_type))}
    numbers = np.array([numbered[d] for d in mesh.devices.flat], np.int64)
    made._numbers = numbers.reshape(mesh.devices.shape)
    names = tuple(mesh.axis_names)
    plain = names == tuple([f"dim_{i}" for i in range(len(names))])
    made.mesh_dim_names = None if plain else names
    made._axes = tuple([(n,) for n in names])
    made._flattened, made._root = {}, made
    return made


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Any = None,
) -> DeviceMesh:
    """A mesh of this shape over the first devices of a kind: those of this process, or of all where several run.

    Differs from PyTorch: one process drives all the devices that it has, and needs no process group.

    >>> from xtensor.distributed.device_mesh import init_device_mesh
    >>> init_device_mesh("cpu", (1,), mesh_dim_names=("data",))
    DeviceMesh((data=1), 'cpu', [0])
    """
    shape = tuple(mesh_shape)
    if mesh_dim_names is not None and len(mesh_dim_names) != len(shape):
        raise RuntimeError(
            "mesh_shape and mesh_dim_names should have same length!"
            f"Found len(mesh_dim_names): {len(mesh_dim_names)} and len(mesh_shape):{len(shape)}."
        )
    checks.check(
        isinstance(device_type, str) and device_type.isalpha(),
        lambda: (
            f"Device type with index is not supported but got {device_type}. "
            "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'."
        ),
    )
    count = math.prod(shape)
    there = len(world.devices_of(device_type))
    if count > there:
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {there}, but found {count} ranks! "
            f"There are {there} {device_type} devices: {hint(device_type, count)}"
        )
    return DeviceMesh(device_type, np.arange(count).reshape(shape), mesh_dim_names=mesh_dim_names)
