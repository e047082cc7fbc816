"""fully_shard: parameters split over a mesh, which a module's calls gather, and compute with the batch split."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import jax

from ... import devices, dtypes
from ...autograd.function import Function
from ...lowering.sharded import kept
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...tensor import Tensor, array_of, wrap
from ...utils.checkpoint import AROUND
from ...xla.cache import bounded
from .. import world
from ..device_mesh import DeviceMesh, init_device_mesh
from ..tensor.dtensor import DTensor, Placed, joined, local_part, onto, relocate, settle
from ..tensor.modules import enter, is_tensor, leave, leaves
from ..tensor.placement_types import Placement, Replicate, Shard, sharding_for

__all__ = ["CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "fully_shard"]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes of a forward pass: of parameters, of what it gives, and whether floating point arguments are cast.

    Differs from PyTorch: gradients are reduced in the dtype that they are computed in; `reduce_dtype` is taken.
    """

    param_dtype: dtypes.dtype | None = None
    reduce_dtype: dtypes.dtype | None = None
    output_dtype: dtypes.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Parameters stay on the devices."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters would go to the host's memory: those on CPUs are there, and for other devices it is refused."""

    pin_memory: bool = True


class FSDPModule(Module):
    """What a module that `fully_shard` has taken is besides: `isinstance(module, FSDPModule)`.

    Differs from PyTorch: XLA decides what is gathered when, so what asks for that (`unshard`, `reshard`, the setters) changes nothing.
    """

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """See `Module`; what it makes (`to_empty` of a module on the meta device, a cast) lies as the parameters did."""
        super()._apply(fn, recurse)
        calls: _Calls = vars(self)[CALLS]
        for child, name, own in calls.owned:
            parameter: Any = child._parameters[name]
            if not parameter.is_meta and not isinstance(parameter, DTensor):
                settle(parameter._xt_storage, own)
        for buffer in self.buffers():
            if not buffer.is_meta and not isinstance(buffer, DTensor):
                relocate(buffer, calls.mesh, [Replicate()] * calls.mesh.ndim)
        return self

    def unshard(self, async_op: bool = False) -> None:
        """Nothing: what a program needs is gathered within it."""

    reshard = set_requires_all_reduce = set_reshard_after_backward = set_reshard_after_forward = unshard
    set_modules_to_forward_prefetch = set_modules_to_backward_prefetch = set_is_last_backward = unshard
    set_unshard_in_backward = set_requires_gradient_sync = unshard


CALLS = "_xt_sharded_calls"
"""Under which a module keeps what happens around its calls."""
_kinds: dict[tuple[type, type], type] = {}


def sharded_kind(kind: type, first: type = FSDPModule) -> type:
    """The class of a module that was taken."""
    found = _kinds.get((kind, first))
    if found is None:
        found = _kinds[kind, first] = type(first)(f"FSDP{kind.__name__}", (first, kind), {})
    return found


def kind_of_devices() -> str:
    """The kind of devices that parameters go to where nothing is said."""
    return "cuda" if world.has("cuda") else "cpu"


def default_mesh() -> DeviceMesh:
    """All devices, as one dimension."""
    kind = kind_of_devices()
    return init_device_mesh(kind, (len(world.devices_of(kind)),))


def fully_shard(
    module: Any,
    *,
    mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Parameter], Shard | None] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None,
    ignored_params: set[Parameter] | None = None,
) -> Any:
    """Split a module's parameters over a mesh (by default of all devices), and its batches with them; the module itself.

    Each parameter is split along its first dimension that the mesh divides; `shard_placement_fn` says otherwise. On a mesh of two dimensions
    the last one splits and the first copies. Plain arguments of a call are split along their first dimension, where the devices divide it; in
    several processes they are this process's part of the batch, as is what the call gives, and gradients are means over the processes.

    Differs from PyTorch: parameters are placed where they are, so that an optimizer made before keeps them.

    >>> from xtensor.distributed.device_mesh import init_device_mesh
    >>> from xtensor.distributed.fsdp import FSDPModule, fully_shard
    >>> model = fully_shard(nn.Linear(4, 2), mesh=init_device_mesh("cpu", (1,)))
    >>> isinstance(model, FSDPModule), model(xtensor.ones(3, 4)).shape
    (True, xtensor.Size([3, 2]))
    """
    if isinstance(module, (list, tuple)):
        for each in module:
            fully_shard(
                each,
                mesh=mesh,
                reshard_after_forward=reshard_after_forward,
                shard_placement_fn=shard_placement_fn,
                mp_policy=mp_policy,
                offload_policy=offload_policy,
                ignored_params=ignored_params,
            )
        return module
    chosen = mesh or default_mesh()
    if isinstance(offload_policy, CPUOffloadPolicy) and chosen.device_type != "cpu":
        raise NotImplementedError("CPUOffloadPolicy is not in xtensor: parameters stay on the devices")
    ignored = {id(p) for p in ignored_params or ()}
    owned = [
        (child, name, p)
        for child in module.modules()
        for name, p in child._parameters.items()
        if p is not None and id(p) not in ignored and not is_taken(child, module)
    ]
    for _, _, parameter in owned:
        if not lies_on_mesh(parameter) or all(not p.is_shard() for p in on(chosen, parameter)):
            relocate(parameter, chosen, placements(parameter, chosen, shard_placement_fn))
    for buffer in module.buffers():
        if not isinstance(buffer, DTensor):
            relocate(buffer, chosen, [Replicate()] * chosen.ndim)
    policy = mp_policy or MixedPrecisionPolicy()
    hooks = _Calls(chosen, policy, [(c, n, kept(p._xt_storage)) for c, n, p in owned])
    module.register_forward_pre_hook(enter, prepend=True, with_kwargs=True)
    module.register_forward_pre_hook(hooks.before, with_kwargs=True)
    module.register_forward_hook(hooks.after, always_call=True)
    vars(module)[CALLS] = hooks
    module.__class__ = sharded_kind(type(module))
    return module


def lies_on_mesh(parameter: Any) -> bool:
    """Whether a parameter lies on a mesh, or will once it has values."""
    return kept(parameter._xt_storage) is not None if parameter.is_meta else isinstance(parameter, DTensor)


def is_taken(child: Module, root: Module) -> bool:
    """Whether a module, not the root, belongs to another that was taken."""
    return any(
        isinstance(m, FSDPModule) and m is not root and any(c is child for c in m.modules())
        for m in root.modules()
    )


def on(mesh: DeviceMesh, parameter: Any) -> tuple[Placement, ...]:
    """How a parameter lies along the dimensions of a mesh or of a slice."""
    return tuple(
        [
            p
            for p, names in zip(parameter.placements, parameter.device_mesh._axes, strict=True)
            if names in mesh._axes
        ]
    )


def placements(
    parameter: Any, mesh: DeviceMesh, choose: Callable[[Parameter], Shard | None] | None
) -> list[Placement]:
    """Where a parameter goes: split along the mesh's last dimension."""
    asked = None if choose is None else choose(parameter)
    taken = (
        {p.dim for p in parameter.placements if isinstance(p, Shard)} if lies_on_mesh(parameter) else set()
    )
    size = mesh.shape[-1]
    dims = [d for d, n in enumerate(parameter.shape) if n % size == 0 and n and d not in taken]
    split: Placement = asked or (Shard(dims[0]) if dims else Replicate())
    return [*[Replicate()] * (mesh.ndim - 1), split]


class Part(Function):
    """The process's own part of what a call gives; of the gradients that come back to the parts the mean is what counts."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, share: float) -> Tensor:
        array = array_of(tensor)
        ctx.sharding, ctx.shape, ctx.share = array.sharding, array.shape, share
        return wrap(local_part(array))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return wrap(joined(array_of(grads[0] * ctx.share), ctx.sharding, ctx.shape)), None


@bounded(1024)
def gathered(own: Any, axes: frozenset[str]) -> Any:
    """A sharding without some axes of its mesh; None where it has none of them."""
    parts = [() if e is None else (e,) if isinstance(e, str) else tuple(e) for e in own.spec]
    left = [tuple([a for a in part if a not in axes]) for part in parts]
    if left == parts:
        return None
    spec = jax.sharding.PartitionSpec(*[p or None for p in left])
    return jax.sharding.NamedSharding(own.mesh, spec)


class Gathered(Function):
    """A parameter's parts joined; its gradient goes back in parts.

    Said for the values themselves: XLA, left to find it out, would split activations as the parameters are, and send these about.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, whole: Any, own: Any) -> Tensor:
        ctx.own = own
        return wrap(devices.spread(array_of(tensor), whole))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return wrap(devices.spread(array_of(grads[0]), ctx.own)), None, None


running: list[_Calls] = []
"""The calls of sharded modules that run, the innermost last."""


def parameters_in_use() -> Callable[[], contextlib.AbstractContextManager[None]] | None:
    """What makes the modules of the calls that run use the same parameters again, once these have ended."""
    found = [(child, name, child._parameters[name]) for c in running for child, name, _ in c.owned]

    @contextlib.contextmanager
    def again() -> Iterator[None]:
        before = [child._parameters[name] for child, name, _ in found]
        for child, name, used in found:
            child._parameters[name] = used
        try:
            yield
        finally:
            for (child, name, _), own in zip(found, before, strict=True):
                child._parameters[name] = own

    return again if found else None


AROUND.append(parameters_in_use)


class _Calls:
    """What happens around a module's calls."""

    def __init__(
        self, mesh: DeviceMesh, policy: MixedPrecisionPolicy, owned: list[tuple[Module, str, Any]]
    ) -> None:
        self.mesh, self.policy, self.owned = mesh, policy, owned
        self.axes = frozenset(a for names in mesh._axes for a in names)
        self.replaced: list[list[Any]] = []
        self.plain: list[bool] = []

    def before(self, module: Module, inputs: Any, named: Any) -> Any:
        """Arguments come to the mesh; parameters are cast."""
        self.plain.append(not any(isinstance(v, DTensor) for v in leaves((inputs, named))))
        given = jax.tree.map(self.brought, (inputs, named), is_leaf=is_tensor)
        before: list[Any] = []
        used: dict[int, Any] = {}
        for child, name, own in self.owned:
            parameter = child._parameters[name]
            before.append(parameter)
            if id(parameter) not in used:
                used[id(parameter)] = self.used(parameter, own)
            child._parameters[name] = used[id(parameter)]
        self.replaced.append(before)
        running.append(self)
        return given

    def used(self, parameter: Any, own: Any) -> Any:
        """A parameter as calls use it: cast, and gathered from the devices of the mesh's dimensions."""
        dtype = self.policy.param_dtype
        if dtype is not None and parameter.is_floating_point():
            parameter = parameter.to(dtype)
        whole = None if own is None else gathered(own, self.axes)
        return parameter if whole is None else Gathered.apply(parameter, whole, own)

    def brought(self, value: Any) -> Any:
        """An argument on the mesh: a tensor split along its first dimension, where that can be."""
        if not isinstance(value, Tensor):
            return value
        if value.dim() and not isinstance(value, DTensor):
            count = 1 if self.mesh.jax_mesh.is_multi_process else math.prod(self.mesh.shape)
            split = value.shape[0] % count == 0
            value = onto(value, self.mesh, [Shard(0) if split else Replicate()] * self.mesh.ndim)
        if self.policy.cast_forward_inputs and self.policy.param_dtype and value.is_floating_point():
            value = value.to(self.policy.param_dtype)
        return value

    def after(self, module: Module, inputs: Any, outputs: Any) -> Any:
        """Parameters are themselves again; results are cast, and given as arguments were."""
        running.remove(self)
        for (child, name, _), parameter in zip(self.owned, self.replaced.pop(), strict=False):
            child._parameters[name] = parameter
        plain = self.plain.pop()
        dtype = self.policy.output_dtype
        if dtype is not None:
            outputs = jax.tree.map(
                lambda v: v.to(dtype) if isinstance(v, Tensor) and v.is_floating_point() else v,
                outputs,
                is_leaf=is_tensor,
            )
        if plain and self.mesh.jax_mesh.is_multi_process:
            outputs = jax.tree.map(self.part, outputs, is_leaf=is_tensor)
        return leave(module, inputs, outputs)

    def part(self, value: Any) -> Any:
        """The process's own part of a result."""
        if not isinstance(value, DTensor):
            return value
        if value.dim() == 0:
            return value
        split = [Shard(0)] * self.mesh.ndim
        array = array_of(value)
        placed: Any = Placed.apply(value, sharding_for(self.mesh, split, array.shape, array))
        return Part.apply(placed, 1 / len(self.mesh))
