"""Custom functions: `Function`, with its context, in both of PyTorch's styles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..engine import ANOMALY, NO_GRAD, RELEASED, SAVED_HOOKS, Error, Node, anomaly, modes, no_grad
from ..ops.inplace import check_inplace, rebase
from ..ops.saved import Hooked, Mutation, check_version
from ..tensor import (
    CUSTOM_FUNCTION,
    MULTI_OUTPUT,
    Tensor,
    alias,
    array_of,
    counter_of,
    edge_of,
    plain_edge,
    sizes_of,
    strides_of,
)

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class SavedForFunction:
    """One tensor given to `save_for_backward`: its values, its version then, and its place in the graph."""

    __slots__ = ("edge", "hooked", "output", "tensor", "version")

    def __init__(self, tensor: Tensor, output: int | None) -> None:
        self.output = output
        self.edge = None if output is not None else edge_of(tensor)
        self.hooked = None
        self.version = counter_of(tensor).version
        if modes.state.mode & SAVED_HOOKS and modes.state.saved_hooks:
            self.hooked = Hooked(tensor)
            self.tensor = None
        elif output is None and self.edge is not None and type(self.edge) is not tuple:
            self.tensor = tensor  # a leaf, which the graph keeps alive anyway
        else:
            # An alias, so that an output and its node hold no cycle.
            self.tensor = alias(tensor, tuple(sizes_of(tensor)), tuple(strides_of(tensor)), tensor.storage_offset())

    def unpack(self, node: Any) -> Tensor:
        edge = (node, self.output) if self.output is not None else self.edge
        if self.hooked is not None:
            found = self.hooked.tensor()
        else:
            found = self.tensor
            assert found is not None
            counter = counter_of(found)
            if counter.version != self.version and not Mutation.allowed:
                check_version((counter, self.version, array_of(found)), node)
            if found._edge is not None and found._edge is edge:
                return found
        result = alias(found, tuple(sizes_of(found)), tuple(strides_of(found)), found.storage_offset())
        if edge is not None:
            result._edge = plain_edge(edge)
        return result


class FunctionCtx:
    """What `forward` leaves for `backward`; the object is also the node in the graph."""

    to_save: tuple[Any, ...] = ()
    dirty: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    materialize_grads: bool = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (inputs, outputs or others, or None) for `backward`, which reads `saved_tensors`."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(f"save_for_backward can only save variables, but argument is of type {type(t).__name__}")
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Accepted for PyTorch's forward-mode functions; forward mode itself is not run."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which inputs `forward` wrote in place; they must also be returned."""
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether undefined gradients reach `backward` as zeros (the default) or as None."""
        self.materialize_grads = value


class BackwardCFunction(Node, FunctionCtx):
    """The node of one call of a Function."""

    _function: Any
    needs_input_grad: tuple[bool, ...]
    _saved: tuple[Any, ...] | None
    _is_tensor: tuple[bool, ...]
    _avals: tuple[Any, ...]

    def __init__(self) -> None:
        super().__init__(())
        self._saved = ()
        self._avals = ()

    def name(self) -> str:
        return type(self).__name__

    @property
    def num_inputs(self) -> int:
        return len(self._avals)

    @property
    def input_metadata(self) -> tuple[Any, ...]:
        return self._avals

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`; RuntimeError after the graph was freed."""
        if self._saved is None:
            raise RuntimeError(RELEASED)
        return tuple([None if s is None else s.unpack(self) for s in self._saved])

    saved_variables = saved_tensors

    def release(self) -> None:
        self._saved = None

    def apply(self, *args: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        grads = args[0] if len(args) == 1 and type(args[0]) is tuple else args
        if self._saved is None:
            raise RuntimeError(RELEASED)
        if self.materialize_grads:
            grads = tuple([self._zeros(i) if g is None else g for i, g in enumerate(grads)])
        cls = self._function
        backward = cls.backward if cls.backward is not Function.backward else cls.vjp
        found = backward(self, *grads)
        if not isinstance(found, tuple):
            found = tuple(found) if isinstance(found, list) else (found,)
        return self._checked(found)

    def _zeros(self, index: int) -> Any:
        aval = self._avals[index]
        return None if aval is None else self._like.new_zeros(tuple(aval.shape), dtype=aval.dtype)

    _like: Any

    def _checked(self, found: tuple[Any, ...]) -> tuple[Any, ...]:
        count = len(self._is_tensor)
        if len(found) > count and all(g is None for g in found[count:]):
            found = found[:count]
        if len(found) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got {len(found)})"
            )
        result = []
        for i, (g, is_tensor) in enumerate(zip(found, self._is_tensor, strict=True)):
            if not is_tensor:
                if g is not None:
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient different from None at position {i + 1}, but the "
                        "corresponding forward input was not a Variable"
                    )
                continue
            if g is not None and not isinstance(g, Tensor):
                raise TypeError(f"expected Variable or None (got {type(g).__name__})")
            result.append(g)
        return tuple(result)


class Function:
    """An operation with a derivative of its own.

    Subclasses define static methods `forward(ctx, *args)` and `backward(ctx, *grads)`, or `forward(*args)`,
    `setup_context(ctx, inputs, output)` and `backward`. Call it as `MyFunction.apply(*args)`.

    >>> class Double(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    """

    generate_vmap_rule = False
    _node_class: type[BackwardCFunction] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future version "
            "of PyTorch."
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs; runs without recording a graph."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what `backward` needs, for a `forward` that takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """One gradient per argument of `forward` (None for what is no tensor)."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record the call."""
        if cls._node_class is None or cls._node_class._function is not cls:
            cls._node_class = type(
                f"{cls.__name__}Backward", (BackwardCFunction,), {"_function": cls, "__module__": cls.__module__}
            )
        node = cls._node_class()
        mode = modes.state.mode
        tensors = [a for a in args if isinstance(a, Tensor)]
        recording = not mode & NO_GRAD and any(edge_of(t) is not None for t in tensors)
        node._is_tensor = tuple([isinstance(a, Tensor) for a in args])
        node.needs_input_grad = tuple(
            [isinstance(a, Tensor) and edge_of(a) is not None and not mode & NO_GRAD for a in args]
        )
        if mode & ANOMALY and recording:
            anomaly.record(node)
        if recording:
            node.edges = tuple([plain_edge(edge_of(t)) for t in tensors])
        with no_grad():
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args, **kwargs)
                cls.setup_context(node, args, output)
            else:
                output = cls.forward(node, *args, **kwargs)
        single = not isinstance(output, (tuple, list))
        outputs = (output,) if single else tuple(output)
        results = wrap_outputs(node, tensors, outputs, recording)
        node.dirty = node.non_differentiable = ()
        return results[0] if single else results


def wrap_outputs(
    node: BackwardCFunction, inputs: list[Tensor], outputs: tuple[Any, ...], recording: bool
) -> tuple[Any, ...]:
    """Give the outputs of a Function their place in the graph, and settle what was saved."""
    dirty = {id(t) for t in node.dirty}
    inert = {id(t) for t in node.non_differentiable}
    given = {id(t): t for t in inputs}
    for t in node.dirty:
        if id(t) not in {id(o) for o in outputs} and id(t) in given:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
    results: list[Any] = []
    node._avals = tuple([None if not isinstance(o, Tensor) else Aval(o) for o in outputs])
    for i, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            results.append(out)
            continue
        differentiable = recording and id(out) not in inert and (out.is_floating_point() or out.is_complex())
        if id(out) in dirty:
            if id(out) not in given:
                raise RuntimeError(
                    "Only input tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no "
                    "need to pass it to mark_dirty()."
                )
            if differentiable:
                check_inplace(out, True)
                if out._view is not None and out._view.base is not None and len(outputs) > 1:
                    raise RuntimeError(
                        "If your Function modifies a view inplace and returns several outputs, the gradient cannot be "
                        "tracked."
                    )
                if out._view is not None and out._view.base is not None:
                    rebase(out, node)
                else:
                    out._edge = (node, i)
            results.append(out)
        elif id(out) in given:
            result = alias(out, tuple(sizes_of(out)), tuple(strides_of(out)), out.storage_offset())
            mark_view(result, out, len(outputs))
            if differentiable:
                result._edge = (node, i)
            results.append(result)
        else:
            view = out._view
            if view is not None and view.base is not None:
                view.creation = MULTI_OUTPUT if len(outputs) > 1 else CUSTOM_FUNCTION
                view.attr_version = view.counter.version
            if differentiable:
                out._edge = (node, i)
            elif id(out) in inert:
                out._edge = None
            results.append(out)
    if recording:
        places = {id(o): i for i, o in enumerate(outputs) if isinstance(o, Tensor) and id(o) not in given}
        places.update({id(o): i for i, o in enumerate(outputs) if id(o) in dirty})
        node._saved = tuple(
            [None if t is None else SavedForFunction(t, places.get(id(t))) for t in node.to_save]
        )
        like = next((t for t in inputs), None)
        node._like = None if like is None else like.detach()
        node._like = node._like.new_zeros(()) if node._like is not None else None
    elif node.to_save:
        node._saved = ()
    node.to_save = ()
    return tuple(results)


def mark_view(result: Tensor, source: Tensor, outputs: int) -> None:
    """An input returned as it is: a view of it, which in-place writes must not touch."""
    view, old = result._view, source._view
    assert view is not None
    view.base = source if old is None or old.base is None else old.base
    view.creation = MULTI_OUTPUT if outputs > 1 else CUSTOM_FUNCTION
    view.attr_version = view.counter.version


class Aval:
    """Shape, dtype and device of an output."""

    __slots__ = ("device", "dtype", "shape")

    def __init__(self, tensor: Tensor) -> None:
        self.shape = tuple(sizes_of(tensor))
        self.dtype = tensor.dtype
        self.device = tensor.device


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a `backward` whose own operations are not to be differentiated: a second derivative raises."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        with no_grad():
            outputs = fn(ctx, *args)
        if modes.state.mode & NO_GRAD:
            return outputs
        if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return outputs
        single = not isinstance(outputs, tuple)
        found = (outputs,) if single else outputs
        edges = tuple([plain_edge(edge_of(a)) for a in args if isinstance(a, Tensor) and a.requires_grad])
        error = Error(
            "trying to differentiate twice a function that was marked with @once_differentiable", edges, len(found)
        )
        results = []
        for i, out in enumerate(found):
            if isinstance(out, Tensor):
                out = out.detach()
                out._edge = (error, i)
            results.append(out)
        return results[0] if single else tuple(results)

    return wrapper


InplaceFunction = Function
