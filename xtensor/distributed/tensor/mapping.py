"""Functions of the parts: what each device does with its own, written as eager code."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from ... import devices
from ...jax.functions import from_jax
from ...tensor import Tensor, array_of, sizes_of, wrap
from ..device_mesh import DeviceMesh
from .dtensor import DTensor, join, mesh_of, onto, redistribute
from .placement_types import Partial, Placement, Shard, checked

__all__ = ["implicit_replication", "local_map", "loss_parallel"]

Placements = Sequence[Placement] | None


def spec_of(mesh: DeviceMesh, placements: Placements, ndim: int, ahead: int = 0) -> Any:
    """The specification of the parts for `jax.shard_map`; `ahead` counts the dimensions of terms before the tensor's own."""
    dims: list[list[str]] = [[] for _ in range(ndim + ahead)]
    term = 0
    for names, placement in zip(mesh._axes, checked(mesh, placements, ndim), strict=True):
        if isinstance(placement, Shard):
            dims[placement.dim + ahead] += names
        elif isinstance(placement, Partial):
            dims[term] += names
            term += 1
    return jax.sharding.PartitionSpec(*[tuple(d) or None for d in dims])


def local_map(
    func: Callable[..., Any] | None = None,
    out_placements: Any = None,
    in_placements: Sequence[Placements] | None = None,
    in_grad_placements: Any = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Any:
    """A function of DTensors that calls `func` with the parts of each device, and puts its results together.

    in_placements: of each argument, None of those that are no tensors. out_placements: of the result, or a tuple of such for
    several; of `Partial` ones the terms are joined. redistribute_inputs: whether arguments that lie otherwise are brought to
    `in_placements`; else they are refused by ValueError.

    Differs from PyTorch: `func` is traced once for all devices, so it cannot ask for values; nothing in it tells which device it is.

    >>> from xtensor.distributed.device_mesh import init_device_mesh
    >>> from xtensor.distributed.tensor import Shard, distribute_tensor, local_map
    >>> mesh = init_device_mesh("cpu", (1,))
    >>> x = distribute_tensor(xtensor.ones(4, 2), mesh, [Shard(0)])
    >>> local_map(lambda part: part.cumsum(0), [Shard(0)], ([Shard(0)],), device_mesh=mesh)(x).sum().item()
    20.0
    """
    if func is None:
        return lambda f: local_map(
            f,
            out_placements,
            in_placements,
            in_grad_placements,
            device_mesh,
            redistribute_inputs=redistribute_inputs,
        )
    several = isinstance(out_placements, tuple) and not all(isinstance(p, Placement) for p in out_placements)
    outs: list[Any] = list(out_placements) if several else [out_placements]
    programs: dict[Any, Any] = {}

    def run(*args: Any) -> Any:
        mesh = device_mesh or next((mesh_of(a) for a in args if isinstance(a, DTensor)), None)
        if mesh is None:
            raise ValueError("local_map needs a DTensor among its arguments, or device_mesh=")
        wanted = [None] * len(args) if in_placements is None else list(in_placements)
        if len(wanted) != len(args):
            raise ValueError(f"in_placements has {len(wanted)} entries for {len(args)} arguments")
        tensors, specs, rest = [], [], []
        for arg, placements in zip(args, wanted, strict=True):
            if not isinstance(arg, Tensor):
                rest.append((arg,))
                continue
            here = arg.placements if isinstance(arg, DTensor) else None  # pyright: ignore[reportAttributeAccessIssue]
            chosen = checked(mesh, here if placements is None else placements, arg.dim())
            if here is None:
                arg = onto(arg, mesh, chosen)
            elif tuple(here) != chosen:
                if not redistribute_inputs:
                    raise ValueError(
                        f"arg has a mismatching placements: placements={here} but in_placements={chosen}; set "
                        "redistribute_inputs=True to bring it there"
                    )
                arg = redistribute(arg, mesh, chosen)
            rest.append(None)
            tensors.append(arg)
            specs.append(spec_of(mesh, chosen, arg.dim()))
        key = (mesh, tuple(specs), tuple([None if r is None else repr(r) for r in rest]))
        shapes = tuple([tuple(sizes_of(t)) for t in tensors])
        found = programs.get((key, shapes))
        if found is None:
            found = programs[key, shapes] = mapped(func, mesh, specs, rest, outs, several, tensors)
        made = found(*tensors)
        results = []
        for tensor, placements in zip(made, outs, strict=True):
            for placement in placements or ():
                if isinstance(placement, Partial):
                    tensor = join(tensor, placement.reduce_op)
            results.append(tensor)
        return tuple(results) if several else results[0]

    return run


def mapped(
    func: Any,
    mesh: DeviceMesh,
    specs: list[Any],
    rest: list[Any],
    outs: list[Any],
    several: bool,
    tensors: Any,
) -> Any:
    """The function of whole tensors, which XLA runs part by part."""
    first = devices.current()

    def parts(*arrays: Any) -> tuple[Any, ...]:
        given = iter(arrays)
        with first:
            made = func(*[wrap(next(given)) if r is None else r[0] for r in rest])
        found = []
        for tensor, placements in zip(made if several else (made,), outs, strict=True):
            terms = sum(isinstance(p, Partial) for p in placements or ())
            array = array_of(tensor)
            found.append(array.reshape((1,) * terms + array.shape))
        return tuple(found)

    local = []
    for tensor, spec in zip(tensors, specs, strict=True):
        sharding = jax.sharding.NamedSharding(mesh.jax_mesh, spec)
        array = array_of(tensor)
        local.append(jax.ShapeDtypeStruct(sharding.shard_shape(tuple(sizes_of(tensor))), array.dtype))
    with jax.enable_x64(True):
        shapes = jax.eval_shape(parts, *local)
    out_specs = []
    for shape, placements in zip(shapes, outs, strict=True):
        terms = sum(isinstance(p, Partial) for p in placements or ())
        out_specs.append(spec_of(mesh, placements, len(shape.shape) - terms, terms))
    return from_jax(
        jax.shard_map(
            parts, mesh=mesh.jax_mesh, in_specs=tuple(specs), out_specs=tuple(out_specs), check_vma=False
        )
    )


@contextlib.contextmanager
def implicit_replication() -> Iterator[None]:
    """A block in which plain tensors meet DTensors as if they were copied to every device.

    >>> from xtensor.distributed.device_mesh import init_device_mesh
    >>> from xtensor.distributed.tensor import distribute_tensor
    >>> from xtensor.distributed.tensor.experimental import implicit_replication
    >>> x = distribute_tensor(xtensor.ones(2), init_device_mesh("cpu", (1,)))
    >>> with implicit_replication():
    ...     (x + xtensor.tensor([1.0, 2.0])).full_tensor()
    tensor([2., 3.])
    """
    with devices.replicating():
        yield


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """A block in which the classes of a cross entropy may be split over a mesh.

    Differs from PyTorch: they may be so anywhere, since XLA's partitioner splits the loss as it splits all else; plain targets
    are copied to every device within.
    """
    with devices.replicating():
        yield
