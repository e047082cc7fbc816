"""What a tensor itself points to: detached, its sizes changed in place, another storage; and a view's renewed history."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ... import capture, checks, dtypes, geometry
from ...engine import modes
from ...engine.graph import LeafEdge
from ...geometry import Geometry, contiguous_strides
from ...operators.attach import attach_methods
from ...operators.functions.overloads import overloads
from ...operators.inplace import check_creation, check_inplace, move_retained
from ...operators.views import ViewNode, ViewOperator, alias_of, geometry_of, ints
from ...operators.write import bump, resize_tensor
from ...storage import Storage
from ...tensor import (
    Tensor,
    alias,
    counter_of,
    edge_of,
    make_view,
    meta_of,
    sizes_of,
    strides_of,
    tensor_over,
)
from ...xla.cache import bounded
from ...xla.levels import KINDS
from ...xla.transformed import has_tangent, without_tangents
from ..create.creation import Uninitialized, unset
from .shapes import as_strided, shape_arguments, squeeze, swapaxes, swapdims, t, transpose, unsqueeze

__all__ = ["detach"]


def detach(input: Tensor) -> Tensor:
    """The same memory and version, cut off from the graph.

    Shape: that of the tensor itself.

    Raises: nothing of its own.

    >>> xtensor.ones(2, requires_grad=True).exp().detach().requires_grad
    False
    """
    storage, v = input._xt_storage, input._xt_view
    # Of a storage that is still to be read nothing is read.
    if modes.state.transforms and type(storage.raw) in KINDS and has_tangent(storage.array):
        # In forward mode, too, nothing follows it.
        storage = Storage(without_tangents(storage.array))
        result = tensor_over(storage, make_view(storage, storage, input.dtype, *geometry_of(input)))
    elif v is None:
        sizes = storage.raw.shape
        result = alias(input, sizes, contiguous_strides(sizes), 0)
    else:
        result = alias(input, v.sizes, v.strides, v.offset)
    meta = input._xt_meta
    if meta is not None and meta.inference:
        meta_of(result).inference = True
    return result


def detach_(input: Tensor) -> Tensor:
    """Cut this tensor off from the graph, in place.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a view.

    >>> xtensor.ones(2, requires_grad=True).exp().detach_().requires_grad
    False
    """
    view = input._xt_view
    if view is not None and view.base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
            "detach_() cannot be called on these gradients. To fix this error, please refer to the "
            "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    if modes.state.transforms and has_tangent(input._xt_storage.array):
        values = detach(input)
        input._xt_storage, input._xt_view = values._xt_storage, values._xt_view
    input._xt_edge = None
    capture.moved(False)
    return input


class Replay:
    """Whether the history of a view whose base was written is made by the calls that made the view, where they are known."""

    enabled = False


def replayed(tensor: Tensor, base: Tensor) -> Tensor | None:
    """The view of the base by the calls that made it; None where the graph does not have them all."""
    calls: list[ViewNode] = []
    edge = tensor._xt_edge
    while type(edge) is tuple and isinstance(edge[0], ViewNode) and type(edge[0].aval) is not list:
        calls.append(edge[0])
        edge = edge[0]._xt_edges[0]
    found = base
    for node in reversed(calls):
        if node.result != (node.dtype, False, False):
            return None
        found = alias_of(node.op, found, node.op.make(geometry_of(found), *node.args), node.args)
    alike = found.dtype is tensor.dtype and geometry_of(found) == geometry_of(tensor)
    return found if calls and alike else None


def regenerate(tensor: Tensor) -> Any:
    """The edge of a view whose base was written since: an `as_strided` of the base."""
    view = tensor._xt_view
    assert view is not None and view.base is not None
    base = view.base
    if base._xt_edge is None and type(tensor._xt_edge) is not tuple:
        return tensor._xt_edge
    check_creation(tensor, "its base or another view of its base has been")
    made = Geometry(view.sizes, view.strides, view.offset)
    mode = modes.state.mode
    modes.state.mode = mode & ~(modes.NO_GRAD | modes.INFERENCE)
    try:
        fresh = replayed(tensor, base) if Replay.enabled else None
        if fresh is None:
            fresh = seen_as(base, made, view.dtype, view.conj, view.neg)
    finally:
        modes.state.mode = mode
    old, tensor._xt_edge = tensor._xt_edge, fresh._xt_edge
    if tensor._xt_meta is not None and tensor._xt_meta.retains_grad and type(old) is tuple:
        node, slot = tensor._xt_edge
        hook = old[0].pop_retain_hook(old[1])
        if hook is not None:
            node.set_retain_hook(slot, hook)
    view.attr_version = view.counter.version
    return tensor._xt_edge


def seen_as(base: Tensor, made: Geometry, dtype: dtypes.dtype, conj: bool, neg: bool) -> Tensor:
    """The differentiable view of `base` with this geometry in its storage, this dtype and these bits."""
    if dtype is base.dtype and conj is base.is_conj() and neg is base.is_neg():
        return as_strided(base, *made)
    # A view operator for this one view, by its geometry from the base's first element on.
    shift = base.storage_offset() * base.dtype.itemsize // dtype.itemsize
    own = Geometry(made.sizes, made.strides, made.offset - shift)
    op = ViewOperator("as_strided", lambda g: own, "AsStrided")
    return alias_of(op, base, made, (), dtype=dtype, conj=conj, neg=neg)


def view_func(
    self: Tensor, new_base: Tensor, symint_visitor_fn: Any = None, tensor_visitor_fn: Any = None
) -> Tensor | None:
    """The view of another base that this one is of its own; None where that base lies otherwise, or this is no view."""
    view = self._xt_view
    if view is None or view.base is None:
        return None
    base = view.base
    if tuple(sizes_of(base)) != tuple(sizes_of(new_base)) or strides_of(base) != strides_of(new_base):
        return None
    if base.dtype is not new_base.dtype:
        return None
    shift = (new_base.storage_offset() - base.storage_offset()) * new_base.dtype.itemsize
    made = Geometry(view.sizes, view.strides, view.offset + shift // view.dtype.itemsize)
    return seen_as(new_base, made, view.dtype, view.conj, view.neg)


Tensor._regenerate = regenerate
Tensor._seen_as = seen_as


def inplace_view(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The in-place form of a view operator: the tensor itself takes the new sizes and strides."""

    def change(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if not modes.state.mode & modes.NO_GRAD:
            check_inplace(self, edge_of(self) is not None)
        take_view(self, function(self, *args, **kwargs))
        bump(self, name)
        view = self._xt_view
        if view is not None:
            view.attr_version = view.counter.version
        return self

    change.__name__ = change.__qualname__ = name
    change.__doc__ = (
        f"In-place version of `{name[:-1]}`: changes the sizes and strides of the tensor itself.\n\n"
        f"Shape: that of `{name[:-1]}`'s result.\n\n"
        f"Raises: RuntimeError for a leaf that requires grad; else as `{name[:-1]}`."
    )
    return change


def take_view(self: Tensor, source: Tensor) -> None:
    """Let `self` see its storage as `source`, a view of it, does."""
    found = source._xt_view
    assert found is not None
    old = self._xt_view
    view = make_view(
        self._xt_storage,
        counter_of(self),
        found.dtype,
        found.sizes,
        found.strides,
        found.offset,
        found.conj,
        found.neg,
    )
    if old is not None:
        view.base, view.creation = old.base, old.creation
    view.attr_version = view.counter.version
    edge = source._xt_edge
    capture.moved(False)
    self._xt_view = view
    if type(edge) is tuple:
        edge[0].__class__ = inplace_node(type(edge[0]))
        move_retained(self, edge[0])
        self._xt_edge = edge


@bounded(64)
def inplace_node(cls: type[Any]) -> type[Any]:
    """A view's node class under the name that PyTorch gives that of the in-place form."""
    return type(cls.__name__[:-1] + "1", (cls,), {"__slots__": ()})


@overloads(
    "",
    "Storage source",
    "Storage source, int storage_offset, tuple of ints size, tuple of ints stride = None",
    "Tensor source",
    "Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None",
)
def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Sequence[int] | None = None,
    stride: Sequence[int] | None = None,
) -> Tensor:
    """Let this tensor see another storage (or none): that of a tensor, or `source` with these sizes and strides.

    Shape: that of `source`, or `size`; `(0)` without.

    Raises: TypeError for arguments of other kinds; RuntimeError for a source of another dtype; TypeError for what has
    no memory.
    """
    if isinstance(source, Tensor) and size is None:
        if source.dtype is not self.dtype:
            raise RuntimeError(
                f"Could not set tensor of type {dtypes.c_name(source.dtype)} to a tensor of type "
                f"{dtypes.c_name(self.dtype)}"
            )
        storage, g = source._xt_storage, geometry_of(source)
        if source._xt_view is None and storage.cover is None:
            storage.cover = weakref.ref(source)
    elif source is None:
        fresh = self.new_empty((0,))
        storage, g = fresh._xt_storage, Geometry((0,), (1,), 0)
    else:
        if not isinstance(source, Tensor) and callable(untyped := getattr(source, "untyped", None)):
            kind = getattr(source, "dtype", self.dtype)
            if kind is not self.dtype:
                raise RuntimeError(
                    f"Expected a Storage of type {dtypes.c_name(self.dtype)} or an UntypedStorage, but got type "
                    f"{kind.scalar_name} for argument 1 'storage'"
                )
            source = untyped()
        storage = getattr(source, "_xt_storage", None)
        if storage is None:
            raise checks.argument_error("set_", "source", 1, "Storage", source)
        if isinstance(source, Tensor) and source._xt_view is None and storage.cover is None:
            storage.cover = weakref.ref(source)
        sizes = (storage.nbytes() // self.dtype.itemsize,) if size is None else ints(size)
        strides = contiguous_strides(sizes) if stride is None else ints(stride)
        geometry.check_in_storage((sizes, strides, storage_offset), self.dtype.itemsize, storage.nbytes())
        g = Geometry(sizes, strides, storage_offset)
    if not modes.state.mode & modes.NO_GRAD:
        check_inplace(self, edge_of(self) is not None)
    dtype = self.dtype
    capture.moved(False)
    self._xt_storage = storage
    self._xt_view = make_view(storage, storage, dtype, g.sizes, g.strides, g.offset)
    if type(self._xt_edge) is LeafEdge:  # the graphs made before lead to what it was
        self._xt_edge = LeafEdge(self, self._xt_edge.device)
    bump(self, "set_")
    return self


def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Change the sizes in place, growing the storage where it must; new elements are zero.

    Shape: result `size`.
    Differs from PyTorch: new elements are zero, not uninitialised.

    Raises: RuntimeError for a tensor that requires grad.
    """
    if edge_of(self) is not None and not modes.state.mode & modes.INFERENCE:
        raise RuntimeError("cannot resize variables that require grad")
    if modes.state.transforms and has_tangent(self._xt_storage.array):
        raise RuntimeError("cannot resize variables that has a forward grad")
    if memory_format is dtypes.preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    sizes = shape_arguments("resize_", size, None)
    if min(sizes, default=0) < 0 or math.prod(sizes) >= 2**63:
        raise RuntimeError("numel: integer multiplication overflow")
    if math.prod([max(s, 1) for s in sizes[1:]]) >= 2**63:
        raise RuntimeError("Stride calculation overflowed")
    if math.prod(sizes) * self.dtype.itemsize >= 2**63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(sizes)}")
    strides = None if memory_format is None else geometry.format_strides(sizes, memory_format.name)
    if sizes != tuple(sizes_of(self)) or strides is not None:
        before = self._xt_storage.nbytes()
        resize_tensor(self, sizes, strides)
        grown = (self._xt_storage.nbytes() - before) // self.dtype.itemsize
        if Uninitialized.deterministic and grown > 0:
            unset(alias(self, (grown,), (1,), before // self.dtype.itemsize))
        bump(self, "resize_")
    return self


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Change the sizes in place to those of another tensor.

    Shape: result that of `the_template`.

    Raises: RuntimeError for a tensor that requires grad.
    """
    sizes = tuple(sizes_of(the_template))
    if memory_format is dtypes.preserve_format:
        last = geometry.channels_last_order(sizes, tuple(strides_of(the_template)))
        kinds = {4: dtypes.channels_last, 5: dtypes.channels_last_3d}
        memory_format = None if last is None else kinds[len(sizes)]
    return resize_(self, sizes, memory_format=memory_format)


attach_methods(detach, detach_, set_, resize_, resize_as_, _view_func=view_func, _view_func_unsafe=view_func)
attach_methods(
    as_strided_=inplace_view("as_strided_", as_strided),
    squeeze_=inplace_view("squeeze_", squeeze),
    swapaxes_=inplace_view("swapaxes_", swapaxes),
    swapdims_=inplace_view("swapdims_", swapdims),
    t_=inplace_view("t_", t),
    transpose_=inplace_view("transpose_", transpose),
    unsqueeze_=inplace_view("unsqueeze_", unsqueeze),
)
