"""In-place operators under autograd: what may be written, and how histories change when it is.

A write to a tensor rebases its history on the writing node. A write to a view rebases its base's history on a
`CopySlices`, and the view's own history becomes an `as_strided` of the base.
"""

from __future__ import annotations

import weakref
from typing import Any

from jax.core import ShapedArray

from .. import capture, checks, geometry
from ..engine import modes, profiler
from ..engine.graph import Node
from ..storage import LazyStorage, MetaArray
from ..tensor import (
    CUSTOM_FUNCTION,
    DEFAULT,
    INFERENCE_VIEW,
    MULTI_OUTPUT,
    NO_GRAD_VIEW,
    Tensor,
    asks_grad,
    counter_of,
    edge_of,
    operands_array,
    plain_edge,
    sizes_of,
    strides_of,
    wrap_strided,
)
from ..xla.pending import Pending
from ..xla.segments import WRITING
from . import dispatch
from .arguments import prepare
from .below.aten import declared
from .below.dispatching import asked_about, dispatched, dispatching
from .calls import Unusual, known_inplace, overridden
from .levels.crossing import crossed, levels_beyond
from .operator import Operator
from .overriding import armed, claimed
from .recording import noted
from .saved import WITHIN, forward_name
from .write import INFERENCE_UPDATE, bump, check_castable, check_no_overlap, check_writable, may_pend, store

__all__ = ["CopySlices", "check_creation", "check_inplace", "rebase", "run_inplace"]


def run_inplace(op: Operator, values: tuple[Any, ...]) -> Tensor:
    """Call the in-place variant of `op`: the result replaces the values of the first argument."""
    if armed or modes.state.mode & modes.FUNCTION_MODE:
        found = claimed(values)
        if found is not None:
            return overridden(op, op.inplace, found, values)
    if modes.state.mode <= modes.NO_GRAD and not (dispatching and asked_about(values)):
        try:
            return known_inplace(op, values)
        except Unusual:
            pass
    if modes.state.mode & modes.PROFILING:
        token = profiler.begin(op.name + "_", [tuple(v.shape) for v in values if isinstance(v, Tensor)])
        try:
            return _run_inplace(op, values)
        finally:
            profiler.end(token)
    return _run_inplace(op, values)


def recover_inplace(op: Operator, error: Exception, values: tuple[Any, ...]) -> Tensor:
    """What a program raised that was called inline, as ours; the complete path answers where it could not take the arguments."""
    if dispatch.is_gone(error) or dispatch.is_unusual(values):
        return _run_inplace(op, values)
    raise dispatch.clean(op, error) from None


def _run_inplace(op: Operator, values: tuple[Any, ...]) -> Tensor:
    target = values[0]
    if not isinstance(target, Tensor):
        raise checks.argument_error(op.name + "_", op.schema.parameters[0].name, 1, "Tensor", target)
    runtime, key = prepare(op, values)
    runtime[0] = target
    tracked = not modes.state.mode & modes.NO_GRAD
    if tracked:
        check_inplace(target, any(isinstance(v, Tensor) and asks_grad(v) for v in runtime))
    check_writable(target)
    for other in runtime[1:]:
        if isinstance(other, Tensor):
            check_no_overlap(target, other)
    storage, view = target._xt_storage, target._xt_view
    donate = view is None and type(storage) is not LazyStorage and storage.sole_owner()
    pends = (
        view is None
        and not dispatch.watchers
        and may_pend(op, key, storage)
        and list not in map(type, runtime)
    )
    arrays = [
        operands_array(v) if pends and isinstance(v, Tensor) else dispatch.arrays_of(v) for v in runtime
    ]
    pends = pends and Pending in map(type, arrays)
    node = None
    if tracked and op.rules.differentiable:
        node = dispatch.node_for(op, key, runtime, arrays, inplace=True)
    if (dispatching or modes.state.mode & modes.DISPATCH_MODE) and (
        found := asked_about(runtime)
    ) is not None:
        func, args, kwargs = declared(op, values, "_")
        before = counter_of(target).version
        dispatched(func, found, args, kwargs)
        if counter_of(target).version == before:
            bump(target, op.name + "_", 3)
    elif type(arrays[0]) is MetaArray:
        (made,) = dispatch.evaluate(op, key, runtime, arrays)
        check_castable(made.dtype.numpy, target.dtype.numpy)
        bump(target, op.name + "_", 3)
    else:
        old = arrays[0]
        saves = node is not None and op.runtime[0].name in op.rules.saved
        if donate and (saves or any(a is old for a in arrays[1:])):
            donate = False
        del old
        dispatch.refuse(op, key, runtime)
        if view is None and not pends:
            del arrays[0]
        bump(target, op.name + "_", 3)
        try:
            program = op.inplace_program(key, donate and not pends)
            if pends:
                store(target, dispatch.later(op, op.waiter(program, key, WRITING), arrays))
            elif view is None:
                dispatch.invoke(op, program, arrays, storage)
            else:
                store(target, dispatch.invoke(op, program, arrays))
        except Exception:
            counter_of(target).version -= 1
            raise
        del arrays
    if node is not None:
        dispatch.save_results(op, node, [target])
        rebase(target, node)
    return target


def check_inplace(target: Tensor, requires_grad: bool) -> None:
    """Refuse writes that autograd could not follow, in PyTorch's words."""
    if target._xt_meta is not None and target._xt_meta.inference and not modes.is_inference_mode_enabled():
        raise RuntimeError(INFERENCE_UPDATE)
    if not requires_grad:
        return
    view = target._xt_view
    if view is not None and view.base is not None:
        check_creation(target, "is being")
        if asks_grad(target) and type(view.base._xt_edge) is not tuple:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation."
            )
    edge = edge_of(target)
    if edge is not None and type(edge) is not tuple:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


_ORIGINS = {
    NO_GRAD_VIEW: ("no_grad", "with grad mode enabled"),
    INFERENCE_VIEW: ("inference", "in normal mode"),
}
_FORBIDDEN = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {0} block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)
_REASONS = {
    MULTI_OUTPUT: " This view is the output of a function that returns multiple views. Such functions do not allow "
    "the output views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    NO_GRAD_VIEW: _FORBIDDEN.format("no_grad"),
    INFERENCE_VIEW: _FORBIDDEN.format("inference_mode"),
    CUSTOM_FUNCTION: " This view was created inside a custom Function (or because an input was returned as-is) and the "
    "autograd logic to handle view+inplace would override the custom backward associated with the custom Function, "
    "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
    "Function.",
}


def check_creation(view: Tensor, what: str) -> None:
    """Refuse a write to a view (`what` "is being" written, or its base "has been") that forbids it by its origin."""
    meta = view._xt_view
    creation = DEFAULT if meta is None else meta.creation
    if creation == DEFAULT:
        return
    edge = view._xt_edge
    made = type(edge) is tuple
    if creation in _ORIGINS or not made:
        mode, how = _ORIGINS.get(creation, _ORIGINS[NO_GRAD_VIEW])
        origin = (
            f"Output {edge[1]} of {forward_name(edge[0])} is a view of a view which was created in"
            if made
            else "A view was created in"
        )
        message = f"{origin} {mode} mode and {what} modified inplace {how}."
    else:
        message = f"Output {edge[1]} of {forward_name(edge[0])} is a view and {what} modified inplace."
    raise RuntimeError(message + _REASONS[creation])


def rebase(target: Tensor, node: Any) -> None:
    """Make `node` the history of `target`, which it has just written; through a view, of its base."""
    capture.moved(False)
    view = target._xt_view
    if view is None or view.base is None:
        move_retained(target, node)
        target._xt_edge = (node, 0)
        return
    base = view.base
    slices = noted(CopySlices(base, target, node))
    move_retained(base, slices)
    base._xt_edge = (slices, 0)
    view.attr_version = -1  # what asked before the base's history changed has found the old one
    edge_of(target)


def move_retained(tensor: Tensor, node: Any) -> None:
    """`retain_grad` follows the tensor to the node that now makes it."""
    edge = tensor._xt_edge
    if type(edge) is tuple:
        hook = edge[0].pop_retain_hook(edge[1])
        if hook is not None:
            node.set_retain_hook(0, hook)


class CopySlices(Node):
    """The history of a base after a write through one of its views.

    The gradient of the base goes on to the base's earlier history, except where the view lies: there `fn`, the node of
    the writing operator, takes it and gives back its own.
    """

    __slots__ = ("aval", "base", "beyond", "fn", "seen", "view")

    def __init__(self, base: Tensor, view: Tensor, fn: Any) -> None:
        super().__init__((plain_edge(edge_of(base)), *fn._xt_edges[1:]))
        offset = base.storage_offset()
        self.base = (tuple(sizes_of(base)), tuple(strides_of(base)))
        dtype, bits = view.dtype, (view.is_conj(), view.is_neg())
        # Dtype and bits of the view, where they are not the base's.
        self.seen = (
            None if dtype is base.dtype and bits == (base.is_conj(), base.is_neg()) else (dtype, *bits)
        )
        offset = offset * base.dtype.itemsize // dtype.itemsize
        self.view = geometry.Geometry(
            tuple(sizes_of(view)), tuple(strides_of(view)), view.storage_offset() - offset
        )
        self.fn = fn
        WITHIN[fn] = weakref.ref(self)
        # The base's shape and dtype, for the gradients that arrive.
        self.aval = ShapedArray(self.base[0], base.dtype.numpy)
        # The levels of transforms that the base came to by this write.
        self.beyond = levels_beyond((dispatch.form_of(base),), getattr(fn, "targets", (None,))[0])

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def _xt_release(self) -> None:
        self.fn._xt_release()

    def edge_of_view(self) -> Any:
        """The edge of the view after the write: a view of a base with this history."""
        sizes, strides = self.base
        base = wrap_strided(MetaArray(self.aval.shape, self.aval.dtype), sizes, strides)
        base._xt_edge = (self, 0)
        with modes.enable_grad():
            return Tensor._seen_as(base, self.view, *(self.seen or (base.dtype, False, False)))._xt_edge

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        grad = grads[0]
        if grad is None:
            return (None,) * len(self._xt_edges)
        sizes, strides = self.base
        buffer = self._spread(grad)
        own, *others = self.fn.apply((self._part(buffer).clone(),))
        if self._xt_edges[0] is None:
            return (None, *others)
        if own is None:
            own = grad.new_zeros(self.view.sizes)
        if self.seen is None:
            whole = buffer.as_strided_scatter(own, *self.view)
        else:
            whole = buffer.clone()
            self._part(whole).copy_(own)
        return (crossed(whole.as_strided(sizes, strides, 0), self.beyond), *others)

    def _part(self, buffer: Any) -> Any:
        """Where the view lies in the gradient of its base."""
        if self.seen is None:
            return buffer.as_strided(*self.view)
        return Tensor._seen_as(buffer, self.view, *self.seen)

    def _spread(self, grad: Any) -> Any:
        """The gradient laid out in memory as the base is, from its first element on."""
        sizes, strides = self.base
        if strides == geometry.contiguous_strides(sizes):
            whole = grad.contiguous()
            # A gradient may itself be a part of something, whose first element is not the memory's.
            return whole.clone() if whole.storage_offset() else whole
        extent = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) if 0 not in sizes else 0
        return grad.new_zeros((extent,)).as_strided_scatter(grad, sizes, strides, 0)
