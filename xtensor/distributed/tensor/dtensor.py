"""DTensor: what a tensor that lies on a mesh can do besides. It is no class of its own: placements are read from the array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
from jax.core import Tracer

from ... import devices
from ...autograd.function import Function
from ...lowering.sharded import keep, kept
from ...nn.parameter import Parameter
from ...storage import MetaArray
from ...tensor import Tensor, array_of, sizes_of, wrap
from ...xla.x64 import call
from .. import device_mesh
from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Shard, checked, placements_of, sharding_for

__all__ = ["DTensor", "distribute_tensor"]


class _Kind(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.device.sharding is not None


if TYPE_CHECKING:  # what a tensor that lies on a mesh has, as type checkers are told

    class _Spread(Tensor):
        device_mesh: DeviceMesh
        placements: tuple[Placement, ...]

        def to_local(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor: ...
        def full_tensor(self, *, grad_placements: Sequence[Placement] | None = None) -> Tensor: ...
        def redistribute(
            self,
            device_mesh: DeviceMesh | None = None,
            placements: Sequence[Placement] | None = None,
            *,
            async_op: bool = False,
        ) -> DTensor: ...

else:

    class _Spread(metaclass=_Kind):
        pass


class DTensor(_Spread):
    """A tensor that lies on a mesh of devices: `isinstance(x, DTensor)` asks that of any tensor.

    Operators take such tensors as any others; XLA's partitioner splits their work and adds the communication. What is written
    into a tensor that was placed (`distribute_tensor`, `redistribute`, the factories) lies as that one did.

    Differs from PyTorch: no subclass of Tensor; results are DTensors because of where they lie.

    >>> from xtensor.distributed.device_mesh import init_device_mesh
    >>> from xtensor.distributed.tensor import DTensor, Shard, distribute_tensor
    >>> x = distribute_tensor(xtensor.arange(4), init_device_mesh("cpu", (1,)), [Shard(0)])
    >>> isinstance(x, DTensor), (x + 1).full_tensor()
    (True, tensor([1, 2, 3, 4]))
    """

    def __new__(cls, *args: Any, **options: Any) -> Any:
        raise TypeError("a DTensor is made by distribute_tensor, DTensor.from_local or a factory")

    def __class_getitem__(cls, item: Any) -> type[DTensor]:
        return cls

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape: Any = None,
        stride: Any = None,
    ) -> DTensor:
        """The tensor whose part in this process is `local_tensor`; differentiable.

        Differs from PyTorch: one process that drives the whole mesh gives the same part to each of its devices.
        """
        mesh = device_mesh or device_mesh_of_context()
        return from_local(local_tensor, mesh, placements)


def device_mesh_of_context() -> DeviceMesh:
    """The mesh of the innermost `with mesh:`."""
    return device_mesh.current_mesh()


def mesh_of(tensor: Tensor) -> DeviceMesh:
    """The mesh that the tensor lies on.

    Raises: AttributeError for a tensor that lies on no mesh.
    """
    sharding = tensor.device.sharding if not tensor.is_meta else kept(tensor._xt_storage)
    if sharding is None:
        raise AttributeError(f"a tensor on {tensor.device} lies on no mesh: it is no DTensor")
    return device_mesh.of_sharding(sharding)


def placements_here(tensor: Tensor) -> tuple[Placement, ...]:
    """How the tensor lies along each dimension of its mesh; of one on the meta device that was placed, how it will.

    Raises: AttributeError for a tensor that lies on no mesh; RuntimeError while a function is compiled.
    """
    mesh = mesh_of(tensor)
    if tensor.is_meta:
        return placements_of(mesh, kept(tensor._xt_storage), tensor.dim())
    array = array_of(tensor)
    if isinstance(array, Tracer):
        raise RuntimeError("how a tensor lies is not known while a function is compiled: XLA decides it")
    return placements_of(mesh, array.sharding, tensor.dim())


def placed(array: Any, sharding: Any) -> Tensor:
    """A tensor over an array that keeps its sharding."""
    made = wrap(array)
    if not isinstance(array, Tracer):
        keep(made._xt_storage, sharding)
    return made


def distribute_tensor(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Any:
    """The values of a tensor placed on a mesh, as a leaf that requires grad if the tensor does.

    Every process gives the same values.

    >>> from xtensor.distributed.device_mesh import init_device_mesh
    >>> from xtensor.distributed.tensor import Shard, distribute_tensor
    >>> mesh = init_device_mesh("cpu", (1,), mesh_dim_names=("data",))
    >>> x = distribute_tensor(xtensor.zeros(4, 2), mesh, [Shard(0)])
    >>> x.placements, x.device_mesh == mesh
    ((Shard(dim=0),), True)
    """
    mesh = device_mesh or device_mesh_of_context()
    if isinstance(tensor, DTensor):
        if tensor.device is mesh.device and placements is not None:
            return redistribute(tensor, mesh, placements)
        if tensor.device is not mesh.device:
            raise ValueError(f"Cannot distribute a DTensor with {tensor.device} to {mesh.device}.")
    array = array_of(tensor.detach())
    sharding = sharding_for(mesh, placements, array.shape, array)
    made = placed(devices.spread(array, sharding), sharding)
    if isinstance(tensor, Parameter):
        return Parameter(made, requires_grad=tensor.requires_grad)
    return made.requires_grad_(tensor.requires_grad) if tensor.requires_grad else made


def like(value: Any, own: Any) -> Any:
    """A plain tensor where another lies, or will; anything else, itself."""
    if not isinstance(value, Tensor) or isinstance(value, DTensor) or not isinstance(own, Tensor):
        return value
    target: Any = own
    if isinstance(own, DTensor) or (own.is_meta and hasattr(own, "placements")):
        return distribute_tensor(value, target.device_mesh, target.placements)
    return value


def relocate(tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement] | None) -> None:
    """Place the memory of a tensor itself on a mesh: who holds the tensor (an optimizer, a tied weight) sees it there."""
    storage = tensor._xt_storage
    if tensor._xt_view is not None and tuple(sizes_of(tensor)) != tuple(storage.array.shape):
        raise RuntimeError("a view can not be placed on a mesh: place what it is a view of")
    array = storage.array
    before = Lies(kept(storage)) if isinstance(array, MetaArray) else array
    settle(storage, sharding_for(mesh, placements, array.shape, before))


class Lies(NamedTuple):
    """How what has no array yet will lie."""

    sharding: Any


def settle(storage: Any, sharding: Any) -> None:
    """Place a storage; of one on the meta device it is noted for when there are values."""
    if not isinstance(storage.array, MetaArray):
        storage.replace(devices.spread(storage.array, sharding))
    keep(storage, sharding)


class Placed(Function):
    """Values in another placement; the gradient goes back as it comes."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sharding: Any) -> Tensor:
        array = array_of(tensor)
        ctx.sharding = None if isinstance(array, Tracer) else array.sharding
        return placed(devices.spread(array, sharding), sharding)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] if ctx.sharding is None else Placed.apply(grads[0], ctx.sharding), None


def onto(tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement] | None) -> DTensor:
    """A tensor on a mesh: a plain one has all values in a single process, else the part of its process; differentiable."""
    if isinstance(tensor, DTensor):
        return redistribute(tensor, mesh, placements)
    if mesh.jax_mesh.is_multi_process:
        return from_local(tensor, mesh, placements)
    return Placed.apply(tensor.to(mesh.device), sharding_for(mesh, placements, sizes_of(tensor)))


def redistribute(
    tensor: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    async_op: bool = False,
) -> DTensor:
    """The same values in other placements; differentiable.

    Raises: AttributeError for a tensor that lies on no mesh; ValueError where there is not one placement for each
    dimension of the mesh; IndexError for a shard along a dimension that is none; NotImplementedError for another mesh.
    """
    here = mesh_of(tensor)
    mesh = device_mesh or here
    if mesh.jax_mesh != here.jax_mesh:
        raise NotImplementedError("Cross device mesh comm not supported yet!")
    array = array_of(tensor)
    return Placed.apply(tensor, sharding_for(mesh, placements, array.shape, array))


class Whole(Function):
    """All of an array of several processes, in each of them."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        array = array_of(tensor)
        ctx.sharding, place = array.sharding, tensor.device
        whole = call(jax.device_put, array, place.sharding)
        return wrap(local_part(whole))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return wrap(devices.spread(array_of(grads[0]), ctx.sharding))


def local_part(array: Any) -> Any:
    """The part of an array on this process's first device, as an array of that device."""
    shards = sorted(array.addressable_shards, key=lambda s: s.device.id)
    if not shards:
        raise RuntimeError("this process has no device of the mesh")
    return shards[0].data


def full_tensor(tensor: Tensor, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
    """All of it, on this process's first device of the mesh; differentiable.

    Shape: that of the tensor itself.

    Raises: AttributeError for a tensor that lies on no mesh.
    """
    array = array_of(tensor)
    if tensor.device.sharding is None:
        raise AttributeError(f"a tensor on {tensor.device} lies on no mesh: it is no DTensor")
    if array.is_fully_addressable:
        first = min(array.sharding.device_set, key=lambda d: d.id)
        return tensor.to(devices.placement.of_jax_device(first))
    return Whole.apply(tensor)


class Local(Function):
    """The part of an array in this process; the gradient comes in parts, too."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        array = array_of(tensor)
        ctx.sharding, ctx.shape = array.sharding, array.shape
        return wrap(call(jax.numpy.copy, local_part(array)))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return wrap(joined(array_of(grads[0]), ctx.sharding, ctx.shape))


def joined(array: Any, sharding: Any, shape: tuple[int, ...]) -> Any:
    """The array of all processes whose part here is `array`."""
    here = sharding.addressable_devices
    parts = [call(jax.device_put, array, d) for d in sharding.device_set if d in here]
    return jax.make_array_from_single_device_arrays(shape, sharding, parts)


class Joined(Function):
    """The tensor of all processes whose part here is a tensor."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sharding: Any, shape: tuple[int, ...]) -> Tensor:
        ctx.sharding = sharding
        return placed(joined(array_of(tensor), sharding, shape), sharding)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return wrap(local_part(array_of(Placed.apply(grads[0], ctx.sharding)))), None, None


def to_local(tensor: Tensor, *, grad_placements: Sequence[Placement] | None = None) -> Tensor:
    """The part on this process's first device, as a tensor of that device; differentiable.

    Shape: that of the part that lies here.

    Raises: AttributeError for a tensor that lies on no mesh.
    """
    array = array_of(tensor)
    if tensor.device.sharding is None:
        raise AttributeError(f"a tensor on {tensor.device} lies on no mesh: it is no DTensor")
    if not array.is_fully_addressable:
        return Local.apply(tensor)
    first = min(array.sharding.device_set, key=lambda d: d.id)
    part = array.sharding.devices_indices_map(array.shape)[first]
    return tensor[part].to(devices.placement.of_jax_device(first))


def from_local(tensor: Tensor, mesh: DeviceMesh, placements: Sequence[Placement] | None) -> DTensor:
    """See `DTensor.from_local`."""
    found = checked(mesh, placements, tensor.dim())
    shape = list(sizes_of(tensor))
    for size, placement in zip(mesh.shape, found, strict=True):
        if isinstance(placement, Shard):
            shape[placement.dim] *= size
    # A term on each device is a part along a dimension of its own, over which the terms are then joined.
    terms = [(i, p) for i, p in enumerate(found) if isinstance(p, Partial)]
    if terms:
        rest = [Shard(p.dim + len(terms)) if isinstance(p, Shard) else p for p in found]
        for at, (i, _) in enumerate(terms):
            rest[i] = Shard(at)
        made: Any = from_local(tensor.reshape((1,) * len(terms) + tuple(sizes_of(tensor))), mesh, rest)
        for _, placement in terms:
            made = join(made, placement.reduce_op)
        return made
    sharding = sharding_for(mesh, found, shape)
    if not sharding.is_fully_addressable:
        local = sharding.shard_shape(tuple(shape))
        if local != tuple(sizes_of(tensor)):
            raise ValueError(f"parts of {list(sizes_of(tensor))} make no tensor of {shape} over {mesh}")
        return Joined.apply(tensor, sharding, tuple(shape))
    for size, placement in zip(mesh.shape, found, strict=True):
        if isinstance(placement, Shard):
            repeats = [1] * tensor.dim()
            repeats[placement.dim] = size
            tensor = tensor.repeat(repeats)
    return Placed.apply(tensor.to(mesh.device), sharding)


def join(tensor: Tensor, how: str) -> Tensor:
    """The terms along the first dimension as one."""
    if how in ("sum", "avg"):
        return tensor.sum(0) if how == "sum" else tensor.mean(0)
    if how in ("max", "min"):
        return tensor.amax(0) if how == "max" else tensor.amin(0)
    if how == "product":
        return tensor.prod(0)
    raise ValueError(f"a Partial of {how!r}: sum, avg, max, min or product")


def listed(tensor: Tensor, names: list[str]) -> list[str]:
    """The names of a tensor's attributes: those of a DTensor where it is one."""
    return [n for n in names if n not in ("device_mesh", "placements") or hasattr(tensor, n)]


def attach() -> None:
    """Give tensors what a DTensor has; of one that lies on no mesh, the properties raise AttributeError."""
    kind: Any = Tensor
    kind.device_mesh = property(mesh_of)
    kind.placements = property(placements_here)
    kind.__dir__ = lambda tensor, names=kind.__dir__: listed(tensor, names(tensor))
    for function in (to_local, full_tensor, redistribute):
        setattr(kind, function.__name__, function)


attach()
