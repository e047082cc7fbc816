"""What the engine must be told of Tensors: how gradients are checked, accumulated and asked for."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from jax.core import Tracer

from . import checks, devices, dtypes, engine, geometry
from .engine import modes
from .errors import noted
from .operators.attach import attach_methods
from .operators.below.dispatching import twin
from .operators.levels.crossing import enter, leave, running
from .operators.overriding import answer, asks, claimed
from .ops.shape.joining import stack
from .storage import UNREAD, MetaArray, WrapperArray
from .tensor import (
    OWN,
    Size,
    Tensor,
    array_of,
    asks_grad,
    edge_of,
    meta_of,
    plain_edge,
    refuse_inside,
    sizes_of,
    strides_of,
    wrap,
)
from .xla.cache import BoundedCache, bounded
from .xla.levels import BATCHED_GRADS, Leveled, ground

__all__ = ["GradientEdge", "accumulate_grad", "backward", "grad", "gradient_edge", "register_hook"]

TensorOrTensors = Tensor | Sequence[Tensor]


def validate(node: engine.Node, slot: int, grad: Any) -> Any:
    """A gradient fit for the place it goes to: summed to its shape, cast to its dtype; or InvalidGradient."""
    metadata = node._xt_metadata
    if slot >= len(metadata):
        return grad
    want = metadata[slot]
    # Equal avals are mostly one object.
    if grad._xt_view is None and grad._xt_storage.array.aval is want:
        return grad
    shape = tuple(sizes_of(want) if isinstance(want, Tensor) else want.shape)
    if tuple(sizes_of(grad)) != shape:
        if not expandable(shape, tuple(sizes_of(grad))):
            raise engine.InvalidGradient(
                f"got {list(sizes_of(grad))} but expected shape compatible with {list(shape)}"
            )
        grad = grad.sum_to_size(shape)
    dtype: Any = getattr(want.dtype, "numpy", want.dtype)
    have = grad.dtype
    if have.numpy != dtype:
        if have.is_complex and np.dtype(dtype).kind != "c":
            grad = grad.real
        grad = grad.to(dtype=dtypes.FROM_NUMPY[np.dtype(dtype)])
    place = getattr(want, "device", None)
    if place is not None and place is not grad.device and not (grad.dim() == 0 and grad.device.type == "cpu"):
        raise engine.InvalidGradient(f"expected device {place} but got {grad.device}")
    return grad


def expandable(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether a tensor of `shape` could have been expanded to `to`."""
    if len(shape) > len(to):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(to), strict=False))


def is_nan(grad: Any) -> bool:
    return isinstance(grad, Tensor) and bool(
        np.isnan(np.asarray(ground(array_of(grad)), dtype=np.complex128)).any()
    )


def check_hook(original: Any, result: Any, name: str) -> None:
    """Refuse a hook's replacement that is no gradient for the same place."""
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if original is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if result.dtype is not original.dtype:
        was, got = checks.tensor_type(original), checks.tensor_type(result)
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {was} got {got})")
    if result.device is not original.device:
        raise RuntimeError(f"hook '{name}' has changed the type of value")
    if sizes_of(result) != sizes_of(original):
        raise RuntimeError(f"hook '{name}' has changed the size of value")


def place_of(node: engine.Node, grads: Sequence[Any]) -> Any:
    """Where a node runs: where its gradients lie."""
    for grad in grads:
        if isinstance(grad, Tensor):
            return grad.device
    return None


interpreter = engine.interpreter()
interpreter.validate = validate
interpreter.is_nan = is_nan
interpreter.check_hook = check_hook
interpreter.place = place_of


def accumulate_grad(self: Tensor, grad: Tensor, create_graph: bool) -> None:
    """Add to `.grad`; the first gradient is taken over, since its array can change for nobody."""
    meta = meta_of(self)
    if meta.grad_dtype is not OWN and meta.grad_dtype is not None:
        grad = grad.to(meta.grad_dtype)
    present = meta.grad
    if present is None:
        view = self._xt_view
        if create_graph and type(grad._xt_storage.raw) is WrapperArray:
            meta.grad = grad
            return
        if view is not None and type(view.dtype) is not dtypes.dtype:  # of a dtype that only stores
            meta.grad = grad.clone() if create_graph else grad.detach().clone()
            return
        if create_graph:
            if view is None or geometry.is_non_overlapping_and_dense(view.sizes, view.strides):
                meta.grad = grad.new_empty_strided(sizes_of(self), strides_of(self)).copy_(grad)
            else:
                meta.grad = grad.clone()
            return
        array = grad._xt_storage.operand if grad._xt_view is None else array_of(grad)
        if type(array) is WrapperArray:
            apart = getattr(type(grad), "_xt_apart", twin)
            meta.grad = apart(grad)
        elif view is None or type(array) is MetaArray or geometry.is_contiguous(view.sizes, view.strides):
            meta.grad = wrap(array)
        elif geometry.is_non_overlapping_and_dense(view.sizes, view.strides):
            made = grad.new_empty_strided(view.sizes, view.strides)
            made.copy_(grad)
            meta.grad = made
        else:
            meta.grad = wrap(array)
    elif create_graph:
        meta.grad = present + grad
    elif type(present._xt_storage.raw) is WrapperArray and type(grad._xt_storage.array) is not WrapperArray:
        with modes.no_grad():
            meta.grad = grad + present
    else:
        with modes.no_grad():
            present.add_(grad)


@bounded(256)
def _ones(shape: tuple[int, ...], dtype: Any, place: devices.device) -> Any:
    if place.type == "meta":
        return MetaArray(shape, dtype)
    return devices.put(np.ones(shape, dtype), place)


_implied: BoundedCache[Any, tuple[Any, Any]] = BoundedCache(256)


def implied_grad(tensor: Tensor) -> Tensor | None:
    """The gradient that a real scalar implies, one; None where there is more to check."""
    if tensor._xt_view is not None:
        return None
    array = tensor._xt_storage.operand
    if type(array) in UNREAD and isinstance(array, MetaArray):
        return None
    if isinstance(array, Tracer) or (type(array) in UNREAD and isinstance(ground(array), Tracer)):
        scalar = array.size == 1 and tensor.dtype.is_floating_point
        return wrap(_ones(array.shape, tensor.dtype.numpy, tensor.device), shared=True) if scalar else None
    # Avals are interned, and an executable's results share one sharding.
    key = (id(array.aval), array.sharding)
    found = _implied.get(key)
    if found is None:
        if array.size != 1 or not tensor.dtype.is_floating_point:
            return None
        found = _implied[key] = (_ones(array.shape, tensor.dtype.numpy, tensor.device), array.aval)
    return wrap(found[0], shared=True)


def gradient_edge(tensor: Any) -> Any:
    """The edge `(node, slot)` along which the gradient of a tensor (or GradientEdge) arrives, or None."""
    return tuple(tensor) if isinstance(tensor, GradientEdge) else plain_edge(edge_of(tensor))


def as_tuple(value: Any) -> tuple[Any, ...]:
    if isinstance(value, (Tensor, GradientEdge)) or value is None or asks(type(value)):
        return (value,)
    return tuple(value)


class GradientEdge(NamedTuple):
    """Where a tensor's gradient arrives: a node, and which of its outputs the tensor was."""

    node: engine.Node
    output_nr: int


def metadata_of(output: Any) -> Any:
    """What has the shape, dtype and device of a tensor, or of the tensor at an edge."""
    return output.node._xt_metadata[output.output_nr] if isinstance(output, GradientEdge) else output


def shape_of(output: Any) -> tuple[int, ...]:
    return tuple(sizes_of(output)) if isinstance(output, Tensor) else tuple(metadata_of(output).shape)


def make_grads(
    outputs: tuple[Any, ...], grads: tuple[Any, ...], is_grads_batched: bool = False
) -> tuple[Any, ...]:
    """A gradient per output: the one given, checked, or one for a scalar."""
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    made: list[Any] = []
    for i, (out, grad) in enumerate(zip(outputs, grads, strict=True)):
        what = metadata_of(out)
        dtype = dtypes.FROM_NUMPY[np.dtype(getattr(what.dtype, "numpy", what.dtype))]
        if grad is None:
            if isinstance(out, Tensor) and not asks_grad(out):
                made.append(None)
                continue
            if geometry.numel(shape_of(out)) != 1:
                raise noted(RuntimeError("grad can be implicitly created only for scalar outputs"))
            if not dtype.is_floating_point:
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {dtype}"
                )
            if isinstance(out, Tensor) and type(out._xt_storage.raw) is WrapperArray:
                made.append(out.detach().new_ones(shape_of(out)))
                continue
            place = getattr(what, "device", None) or devices.current()
            made.append(wrap(_ones(shape_of(out), dtype.numpy, place), shared=True))
            continue
        if not isinstance(grad, Tensor):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
        shape = tuple(sizes_of(grad))[1:] if is_grads_batched else tuple(sizes_of(grad))
        if shape != shape_of(out):
            if is_grads_batched:
                raise RuntimeError(
                    "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as "
                    "the batch "
                    "dimension. The sizes of the remaining dimensions are expected to match the shape of "
                    "corresponding "
                    f"output, but a mismatch was detected: grad_output[{i}] has a shape of {grad.shape} and "
                    f"output[{i}] has a shape of {Size(shape_of(out))}. If you only want some tensors in "
                    "`grad_output` "
                    "to be considered batched, consider using vmap."
                )
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} and output[{i}] has a "
                "shape "
                f"of {Size(shape_of(out))}."
            )
        if dtype.is_complex != grad.dtype.is_complex:
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. "
                "Mismatch in "
                f"dtype: grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has a dtype of {dtype}."
            )
        made.append(grad)
    return tuple(made)


def root_edges(outputs: tuple[Any, ...], grads: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    edges = []
    kept = []
    for i, out in enumerate(outputs):
        edge = gradient_edge(out)
        if edge is None:
            raise noted(
                RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
            )
        edges.append(edge)
        kept.append(grads[i])
    return tuple(edges), tuple(kept)


def backward(
    tensors: TensorOrTensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Accumulate into the leaves of the graph (or into `inputs`) the sum of gradients of `tensors`.

    Raises RuntimeError where a gradient is neither given nor implied (only a scalar implies one).
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None and len(as_tuple(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = as_tuple(tensors)
    given = (None,) * len(outputs) if grad_tensors is None else as_tuple(grad_tensors)
    edges, grads = root_edges(outputs, make_grads(outputs, given))
    chosen = None
    if inputs is not None:
        inputs = as_tuple(inputs)
        for t in inputs:
            if isinstance(t, Tensor):
                retain_grad(t)
        chosen = tuple([input_edge(t) for t in inputs])
    engine.run_backward(
        edges,
        grads,
        keep_graph=create_graph if retain_graph is None else retain_graph,
        create_graph=create_graph,
        inputs=chosen,
        allow_unreachable=True,
        accumulate_grad=True,
    )


def input_edge(tensor: Any) -> Any:
    """Where the gradient of one of `inputs` arrives; None where it requires grad but no graph can reach it."""
    if isinstance(tensor, Tensor) and not asks_grad(tensor):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return gradient_edge(tensor)


def grad(
    outputs: TensorOrTensors,
    inputs: TensorOrTensors,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:
    """The sum of gradients of `outputs` with respect to `inputs`, without touching any `.grad`.

    is_grads_batched: the first dimension of each of `grad_outputs` runs over several gradients, taken in one pass.

    Raises: RuntimeError where an input is not in the graph, unless `allow_unused`.

    >>> x = xtensor.tensor(3.0, requires_grad=True)
    >>> xtensor.autograd.grad(x * x, x)
    (tensor(6.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outs, ins = as_tuple(outputs), as_tuple(inputs)
    if any(not isinstance(t, (Tensor, GradientEdge)) for t in (*outs, *ins)) and (
        found := claimed((*outs, *ins))
    ):
        options = dict(
            grad_outputs=grad_outputs,
            retain_graph=retain_graph,
            create_graph=create_graph,
            only_inputs=only_inputs,
            allow_unused=allow_unused,
            is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads,
        )
        return answer(grad, found, (outs, ins), options)
    given = (None,) * len(outs) if grad_outputs is None else as_tuple(grad_outputs)
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        found = batched_grad(outs, ins, given, keep, create_graph, allow_unused, materialize_grads)
        return cast("tuple[Tensor, ...]", found)
    edges, grads = root_edges(outs, make_grads(outs, given))
    found = engine.run_backward(
        edges,
        grads,
        keep_graph=keep,
        create_graph=create_graph,
        inputs=tuple([input_edge(t) for t in ins]),
        allow_unreachable=allow_unused,
        accumulate_grad=False,
    )
    return materialized(found, ins, create_graph) if materialize_grads else tuple(found)


def materialized(found: Any, inputs: tuple[Any, ...], create_graph: bool) -> tuple[Tensor, ...]:
    if any(g is None and isinstance(t, GradientEdge) for g, t in zip(found, inputs, strict=True)):
        raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
    return tuple(
        [
            t.new_zeros(tuple(sizes_of(t)), requires_grad=create_graph) if g is None else g
            for g, t in zip(found, inputs, strict=True)
        ]
    )


def batched_grad(
    outs: tuple[Any, ...],
    ins: tuple[Any, ...],
    given: tuple[Any, ...],
    keep: bool,
    create_graph: bool,
    allow_unused: bool,
    materialize: bool,
) -> tuple[Tensor | None, ...]:
    make_grads(outs, given, is_grads_batched=True)
    count = next(sizes_of(g)[0] for g in given if g is not None)
    if any(t is not None and type(t._xt_storage.raw) is WrapperArray for t in (*outs, *ins, *given)):
        # Of a class that keeps its values elsewhere there is no batch: one gradient after another.
        parts = [
            grad(
                outs,
                ins,
                tuple([None if g is None else g[k] for g in given]),
                keep or k < count - 1,
                create_graph,
                allow_unused=allow_unused,
                materialize_grads=materialize,
            )
            for k in range(count)
        ]
        return tuple([None if column[0] is None else stack(column) for column in zip(*parts, strict=True)])
    with running(BATCHED_GRADS, count) as level:
        rows = tuple([None if g is None else enter(g, level, 0) for g in given])
        found = grad(
            outs,
            ins,
            rows,
            keep,
            create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize,
        )
        return tuple([None if g is None else leave(g, level, 0) for g in found])


def refuse_backward() -> None:
    """RuntimeError inside of `torch.func`'s transforms."""
    if any(t.name != "forward_ad.dual_level" for t in modes.state.transforms):
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp "
            "instead or call backward() outside of functorch transforms."
        )


before_backward: list[weakref.WeakMethod[Callable[[], None]]] = []
"""Methods that are called once, before the next backward pass, whatever becomes of it."""


def ask_before(method: Callable[[], None]) -> None:
    """Have a method called before the next backward pass, if its object is still there."""

    def gone(reference: Any) -> None:
        with contextlib.suppress(ValueError):
            before_backward.remove(reference)

    before_backward.append(weakref.WeakMethod(method, gone))


def tell_before() -> None:
    """Call what is to be called before a backward pass."""
    asked = before_backward[:]
    del before_backward[: len(asked)]
    for reference in asked:
        method = reference()
        if method is not None:
            with contextlib.suppress(Exception):
                method()


def tensor_backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Accumulate gradients of this tensor into the leaves of its graph; see `xtensor.autograd.backward`.

    Shape: a tensor of one element, or any with `gradient` of its sizes.

    Raises: RuntimeError where no gradient is required, `gradient` is not given for several elements, or the
    graph was freed.

    >>> x = xtensor.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if modes.state.transforms:
        refuse_backward()
    if before_backward:
        tell_before()
    if gradient is None and inputs is None:
        edge = self._xt_edge
        one = implied_grad(self) if type(edge) is tuple else None
        if one is not None:
            keep = create_graph if retain_graph is None else retain_graph
            engine.run_backward((edge,), (one,), keep, create_graph, None, True, True)
            return
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def register_hook(self: Tensor, hook: Callable[[Any], Any]) -> engine.RemovableHandle:
    """Call `hook(grad)` whenever this tensor's gradient is computed; what it returns (not None) replaces it.

    Raises: RuntimeError where no gradient is required.

    >>> x = xtensor.tensor([1.0], requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> (x * 2).sum().backward()
    >>> x.grad
    tensor([20.])
    """
    edge = edge_of(self)
    if edge is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if type(edge) is tuple:
        return edge[0].register_tensor_hook(edge[1], hook)
    return edge.register_tensor_hook(hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Any], None]) -> engine.RemovableHandle:
    """Call `hook(tensor)` after a gradient was accumulated into this leaf's `.grad`.

    Raises: RuntimeError for what is no leaf that requires grad.
    """
    edge = edge_of(self)
    if edge is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if type(edge) is tuple:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return edge.register_post_accumulate_hook(hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this non-leaf tensor in `.grad` when it is computed.

    Raises: RuntimeError where no gradient is required.

    >>> x = xtensor.ones(1, requires_grad=True)
    >>> y = x * 2
    >>> y.retain_grad()
    >>> y.sum().backward()
    >>> y.grad
    tensor([1.])
    """
    edge = edge_of(self)
    if edge is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if type(edge) is not tuple:
        return
    if modes.state.transforms:
        refuse_inside("retain_grad()")
    meta = meta_of(self)
    if meta.retains_grad:
        return
    reference = weakref.ref(self)

    def passing(grad: Any, tensor: Tensor) -> bool:
        # The gradient of a batch of samples outlives neither the batch nor, in `.grad`, the call that made it.
        return isinstance(grad._xt_storage.raw, Leveled) and not isinstance(tensor._xt_storage.raw, Leveled)

    def keep(grad: Any) -> None:
        tensor = reference()
        if tensor is not None and grad is not None and not passing(grad, tensor):
            kept = meta_of(tensor)
            if kept.grad is None:
                apart = type(grad._xt_storage.raw) is WrapperArray
                alone = twin(grad) if apart else wrap(array_of(grad))
                kept.grad = grad if not modes.state.mode & modes.NO_GRAD else alone
            else:
                kept.grad = kept.grad + grad

    edge[0].set_retain_hook(edge[1], keep)
    meta.retains_grad = True


attach_methods(register_hook, register_post_accumulate_grad_hook, retain_grad)
attach_methods(_accumulate_grad=accumulate_grad, _gradient_edge=gradient_edge, backward=tensor_backward)
