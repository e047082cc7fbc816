"""Clipping of gradients, by norm and by value: one compiled call over all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import capture, checks
from ...engine import no_grad
from ...lowering.parts import TOGETHER, alike
from ...lowering.sharded import lies
from ...operators.write import (
    JOINED,
    KINDS,
    operands_of,
    put_results,
    put_whole,
    take_arrays,
    view_of,
    writer_at,
)
from ...ops.create.creation import zeros
from ...ops.reduce.extreme_folds import extreme_fold
from ...ops.shape.joining import cat
from ...storage import LazyStorage, MetaArray, WrapperArray
from ...tensor import ARRAY, Tensor, array_of, operands_array, wrap
from ...xla import segments
from ...xla.cache import bounded
from ...xla.number_arrays import operand
from ...xla.pending import Pending, settled
from ...xla.threads import others
from ...xla.x64 import call, jit

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
]


def norm_of(norm_type: float) -> Callable[[Any], Any]:
    """The norm of an array, computed in float32 or better."""

    def norm(array: Any) -> Any:
        if array.dtype.kind not in "fcV":
            raise RuntimeError(
                "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                f"{array.dtype.name}"
            )
        size = jnp.abs(array)
        wide = size if size.dtype.itemsize >= 4 else size.astype(jnp.float32)
        if norm_type == math.inf:
            if not wide.size:
                return jnp.zeros((), size.dtype)
            return extreme_fold(wide, tuple(range(wide.ndim)), False, True).astype(size.dtype)
        if norm_type == -math.inf:
            return extreme_fold(wide, tuple(range(wide.ndim)), False, False).astype(size.dtype)
        if norm_type == 0:
            return jnp.sum(wide != 0).astype(size.dtype)
        if norm_type == 1:
            return jnp.sum(wide).astype(size.dtype)
        if norm_type == 2:
            return jnp.sqrt(jnp.sum(wide * wide)).astype(size.dtype)
        return jnp.power(jnp.sum(jnp.power(wide, norm_type)), 1 / norm_type).astype(size.dtype)

    return norm


@bounded(64)
def norm_program(norm_type: float) -> Any:
    """The norm of the norms of several arrays."""
    norm = norm_of(norm_type)

    def total(arrays: Sequence[Any]) -> Any:
        return norm(jnp.stack([norm(array).astype(common(arrays)) for array in arrays]))

    return jit(total)


@bounded(64)
def norm_waiter(norm_type: float) -> Any:
    """`norm_program`, whose calls may wait."""
    return segments.waiter_of_tuples(norm_program(norm_type), segments.SINGLE)


@bounded(64)
def spread_norm_program(shardings: tuple[Any, ...]) -> Any:
    """The Euclidean norm of several arrays that lie on a mesh like this: each device adds up its parts of all of them, and one message joins the sums.

    XLA joins the parts of each reduction as it meets it, which is a message for each array.
    """
    mesh = shardings[0].mesh
    used = [{a for e in s.spec for a in (e if isinstance(e, tuple) else (e,))} for s in shardings]

    def local(*parts: Any) -> Any:
        sums = []
        for part, names in zip(parts, used, strict=True):
            size = jnp.abs(part)
            size = size if size.dtype.itemsize >= 4 else size.astype(jnp.float32)
            # Of what lies on several devices the first one counts.
            first = [lax.axis_index(a) == 0 for a in mesh.axis_names if a not in names]
            whole = jnp.sum(size * size)
            sums.append(jnp.where(jnp.all(jnp.array(first)), whole, 0) if first else whole)
        wide = jnp.stack([s.astype(common(sums)) for s in sums])
        return lax.psum(wide, mesh.axis_names)

    spread = jax.shard_map(
        local, mesh=mesh, in_specs=tuple([s.spec for s in shardings]), out_specs=jax.sharding.PartitionSpec()
    )

    def total(arrays: list[Any]) -> Any:
        norms = [n.astype(a.real.dtype) for n, a in zip(jnp.sqrt(spread(*arrays)), arrays, strict=True)]
        kind = common(norms)
        return norm_of(2.0)(jnp.stack([n.astype(kind) for n in norms]))

    return jit(total)


@bounded(64)
def norms_programs(norm_type: float) -> tuple[Any, Any]:
    """The norms of several arrays of one dtype, and the norm of a vector: for more than one program takes."""
    norm = norm_of(norm_type)
    return jit(lambda arrays: jnp.stack([norm(array) for array in arrays])), jit(norm)


def norm_of_many(tensors: list[Tensor], norm_type: float, shardings: tuple[Any, ...] = ()) -> Tensor:
    """The norm of the norms of any number of tensors on one device; shardings: how they lie, if that is one mesh."""
    if shardings and norm_type == 2:
        return wrap(call(spread_norm_program(shardings), [array_of(t) for t in tensors]))
    if len(tensors) <= TOGETHER or capture.running() is not None:
        if waits(tensors):
            return wrap(norm_waiter(norm_type)(tuple(map(operands_array, tensors))))
        return wrap(call(norm_program(norm_type), tuple(map(array_of, tensors))))
    norms, fold = norms_programs(norm_type)
    parts = [
        wrap(call(norms, [array_of(tensors[i]) for i in places]))
        for places in alike([(t.shape, t.dtype) for t in tensors])
    ]
    return wrap(call(fold, array_of(cat(parts))))


def common(arrays: Sequence[Any]) -> Any:
    """The real dtype that all the norms promote to."""
    kinds = [jnp.zeros((), a.dtype).real.dtype for a in arrays]
    result = kinds[0]
    for kind in kinds[1:]:
        result = jnp.promote_types(result, kind)
    return result


def scale_program(arrays: Sequence[Any], total: Any, max_norm: Any) -> list[Any]:
    """The arrays times `max_norm / (total + 1e-6)`, at most 1."""
    coefficient = jnp.minimum(max_norm / (total + 1e-6), 1.0).astype(total.dtype)
    return [a * coefficient.astype(a.real.dtype if a.dtype.kind == "c" else a.dtype) for a in arrays]


def clamp_program(arrays: Sequence[Any], bound: Any) -> list[Any]:
    return [jnp.clip(a, (-bound).astype(a.dtype), bound.astype(a.dtype)) for a in arrays]


def grads_of(parameters: Any) -> list[Tensor]:
    """The gradients there are, of one tensor or several."""
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def by_device(tensors: Iterable[Tensor]) -> dict[Any, list[Tensor]]:
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor._xt_storage.device, []).append(tensor)
    return groups


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors as one vector."""
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    return total_norm(tensors, float(norm_type), error_if_nonfinite, shardings_of(tensors))


def shardings_of(tensors: Iterable[Tensor]) -> tuple[Any, ...]:
    """How tensors lie on a mesh; none where they lie on several, or where one was not placed."""
    found = []
    for tensor in tensors:
        own = lies(tensor._xt_storage) if tensor._xt_view is None else None
        if own is None:
            return ()
        found.append(own)
    return tuple(found) if len({s.mesh for s in found}) == 1 else ()


def total_norm(
    tensors: list[Tensor], norm_type: float, error_if_nonfinite: bool, shardings: tuple[Any, ...]
) -> Tensor:
    """See `get_total_norm`."""
    if not tensors:
        return zeros(())
    if any(type(t._xt_storage.raw) is WrapperArray for t in tensors):
        raise NotImplementedError(
            "Could not run 'aten::linalg_vector_norm' with arguments from the 'SparseCPU' backend."
        )
    groups = list(by_device(tensors).values())
    if any(t.is_meta for t in tensors):
        return wrap(MetaArray((), tensors[0].dtype.to_real().numpy))
    if len(groups) == 1:
        total = norm_of_many(groups[0], norm_type, shardings)
    else:
        parts = [norm_of_many(group, norm_type) for group in groups]
        first = parts[0].device
        total = norm_of_many([p.to(first) for p in parts], norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


def waits(tensors: list[Tensor]) -> bool:
    """Whether a program of these values joins the calls that wait."""
    return (
        segments.waiting()
        and capture.running() is None
        and KINDS.issuperset([type(t._xt_storage) for t in tensors])
        and not any(map(view_of, tensors))
        and sum([t._xt_storage.nbytes() for t in tensors]) < JOINED
    )


@bounded(8)
def waiter_of(program: Callable[..., list[Any]]) -> Any:
    """`compiled`, whose calls may wait."""
    return segments.waiter_of_tuples(compiled(program, False), None)


@bounded(8)
def compiled(program: Callable[..., list[Any]], donate: bool) -> Any:
    return jit(program, donate_argnums=0 if donate else ())


def overwrite(tensors: list[Tensor], name: str, program: Callable[..., list[Any]], *args: Any) -> None:
    """Replace the values by `program(values, *args)`, in their own memory."""
    writer = writer_at(name, 3)
    few = len(tensors) <= TOGETHER or capture.running() is not None
    if few and waits(tensors) and {Pending, ARRAY}.issuperset(map(type, args)):
        storages = [t._xt_storage for t in tensors]
        arrays = tuple(operands_of(storages))
        for storage in storages:  # which may hold what pends from then on
            storage.__class__ = LazyStorage
        put_whole(storages, waiter_of(program), (arrays, *args), writer)
        return
    args = settled(args)
    for places in [range(len(tensors))] if few else alike([(t.shape, t.dtype) for t in tensors]):
        part = [tensors[i] for i in places]
        arrays = take_arrays(part)
        call(put_results, part, compiled(program, not others), (arrays, *args), writer)


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients in place by `max_norm / total_norm`, where that is below 1."""
    with no_grad():
        scale(grads_of(parameters), max_norm, total_norm)


def scale(grads: list[Tensor], max_norm: float, total_norm: Tensor) -> None:
    for place, group in by_device(grads).items():
        if place.type != "meta":
            total = operands_array(total_norm.to(place))
            overwrite(group, "clip_grad_norm_", scale_program, total, operand(float(max_norm), total))


def clip_grad_norm_(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients in place so that their norm as one vector is at most `max_norm`; returns what it was.

    Raises: RuntimeError where the norm is not finite, with `error_if_nonfinite`.

    Source: Pascanu, Mikolov and Bengio 2013, arXiv:1211.5063.

    >>> weight = xtensor.zeros(2, requires_grad=True)
    >>> weight.grad = xtensor.tensor([3.0, 4.0])
    >>> nn.utils.clip_grad_norm_([weight], 1.0), weight.grad
    (tensor(5.), tensor([0.6000, 0.8000]))
    """
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    else:
        single = not isinstance(parameters, (list, tuple, set))
        parameters = list(parameters)
        if single and len(parameters) == 0:
            checks.warn("`parameters` is an empty generator, no gradient clipping will occur.")
    with no_grad():
        grads = grads_of(parameters)
        # A gradient lies as its parameter does, and is known to while a function is captured.
        shardings = shardings_of(p for p in parameters if p.grad is not None)
        total = total_norm(grads, float(norm_type), error_if_nonfinite, shardings)
        scale(grads, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Any,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """`clip_grad_norm_` (its deprecated name)."""
    checks.warn(
        f"`{checks.spelled('nn.utils.clip_grad_norm')}` is now deprecated in favor of "
        f"`{checks.spelled('nn.utils.clip_grad_norm_')}`.",
        FutureWarning,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp all gradients in place to [-clip_value, clip_value]."""
    with no_grad():
        for place, group in by_device(grads_of(parameters)).items():
            if place.type != "meta":
                overwrite(group, "clip_grad_value_", clamp_program, np.float64(clip_value))
