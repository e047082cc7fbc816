"""Custom functions: `Function`, with its context, in both of PyTorch's styles."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .. import checks
from ..engine import (
    NO_GRAD,
    PROFILING,
    RELEASED,
    SAVED_HOOKS,
    Error,
    Node,
    modes,
    no_grad,
    profiler,
)
from ..operators.below.dispatching import twin as twin_of_class
from ..operators.inplace import check_inplace, move_retained, rebase
from ..operators.levels.crossing import crossed
from ..operators.overriding import asks
from ..operators.recording import noted
from ..operators.saved import (
    Hooked,
    SavedTensor,
    check_version,
    result_edge,
    save,
    saved_tensor,
    unpack_tensor,
)
from ..operators.write import bump
from ..ops.create.creation import zeros
from ..storage import WrapperStorage
from ..tensor import (
    CUSTOM_FUNCTION,
    MULTI_OUTPUT,
    Tensor,
    alias,
    array_of,
    asks_grad,
    counter_of,
    edge_of,
    plain_edge,
    sizes_of,
    strides_of,
    tensor_over,
)
from ..xla.levels import AS_THEY_ARE, KINDS
from .levels import (
    beyond,
    check_style,
    check_vmap,
    is_physical,
    levels_in,
    outputs_at_levels,
    revived,
    run_vmap,
)

__all__ = ["Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class SavedForFunction:
    """One tensor given to `save_for_backward`: its memory, its version then, and its place in the graph.

    output: which output of the Function it is, if any; its history is the node itself, which is not to be kept here.
    """

    __slots__ = ("edge", "entry", "output", "tensor")
    entry: Any

    def __init__(self, tensor: Tensor, output: int | None) -> None:
        self.output = output
        self.edge = None if output is not None else edge_of(tensor)
        self.tensor = None
        if modes.state.mode & SAVED_HOOKS:
            self.entry = save(tensor, array_of(tensor))
            return
        if tensor.is_inference():
            save(tensor, None)
        counter = counter_of(tensor)
        self.entry = (counter, counter.version, None)
        # The tensor itself; of an output an alias, so that it and its node form no cycle.
        self.tensor = tensor if output is None else twin(tensor)

    def keep(self, hooked: Hooked) -> None:
        """Put what hooks made of the tensor in its place."""
        self.tensor, self.entry = None, hooked

    def unpack(self, node: Any) -> Tensor:
        """The tensor as it was saved, RuntimeError if it was written since."""
        edge = self.edge if self.output is None else result_edge(node, self.output)
        found = self.tensor
        if found is None:
            return unpack_tensor(self.entry, node, edge)
        counter, version, _ = self.entry
        if counter.version != version:
            check_version((counter, version, array_of(found)), node, edge if type(edge) is tuple else None)
        if self.output is None:
            return found
        result = twin(found)
        result._xt_edge = plain_edge(edge)
        return result


def twin(tensor: Tensor) -> Tensor:
    """Another tensor over the same memory, with no history; of its class, where that answers for itself."""
    kind = type(tensor)
    if kind is not Tensor and (asks(kind) or isinstance(tensor._xt_storage, WrapperStorage)):
        return twin_of_class(tensor)
    return alias(tensor, tuple(sizes_of(tensor)), tuple(strides_of(tensor)), tensor.storage_offset())


class FunctionCtx:
    """What `forward` leaves for `backward`; the object is also the node in the graph."""

    to_save: tuple[Any, ...] = ()
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    materialize_grads: bool = True
    _materialize_non_diff_grads: bool = True

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors (inputs, outputs or others, or None) for `backward`, which reads `saved_tensors`."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type "
                    f"{type(t).__name__}"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors (inputs, outputs or others, or None) for `jvp`, which reads `saved_tensors`."""
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_forward can only save tensors, but argument {i} is of type {type(t).__name__}"
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors: Any) -> None:
        """Say which inputs `forward` wrote in place; they must also be returned."""
        for i, t in enumerate(tensors):
            if not isinstance(t, Tensor):
                raise TypeError(
                    f"mark_dirty can only accept variables, but argument {i} is of type {type(t).__name__}"
                )
            bump(t, "mark_dirty")
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Say which outputs have no gradient."""
        for t in tensors:
            if not isinstance(t, Tensor):
                raise TypeError(
                    f"mark_non_differentiable only accepts variable arguments, but got {type(t).__name__}"
                )
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
    _inert: frozenset[int]  # the outputs that were marked as not differentiable
    _beyond: Any = None
    _in_jvp: bool = False
    saved_for_forward: tuple[Any, ...] = ()

    def __init__(self) -> None:
        super().__init__(())
        self._saved = ()
        self._avals = ()
        self._inert = frozenset()

    def name(self) -> str:
        return type(self).__name__

    @property
    def _xt_num_inputs(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self._avals)

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return self._avals

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`; RuntimeError after the graph was freed."""
        if self._in_jvp:
            return self.saved_for_forward
        if self._saved is None:
            raise RuntimeError(RELEASED)
        return tuple([None if s is None else s.unpack(self) for s in self._saved])

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The older name of `saved_tensors`."""
        checks.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        if self._saved is None:
            raise RuntimeError(RELEASED)
        return tuple([self._raw(s) for s in self._saved])

    def _raw(self, saved: SavedForFunction | None) -> SavedTensor:
        if saved is None:
            return saved_tensor(lambda: None, lambda: False, lambda hooked: None)
        return saved_tensor(lambda: saved.unpack(self), lambda: type(saved.entry) is Hooked, saved.keep)

    def _xt_release(self) -> None:
        self._saved = None

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Run the Function's `backward`."""
        cls = self._function
        own, other = cls.backward is not Function.backward, cls.vjp is not Function.vjp
        if own and other:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should "
                "only implement "
                "one of them."
            )
        if self.materialize_grads:
            skipped = () if self._materialize_non_diff_grads else self._inert
            grads = tuple(
                [self._zeros(i) if g is None and i not in skipped else g for i, g in enumerate(grads)]
            )
        with revived(grads):
            found = (cls.vjp if other else cls.backward)(self, *grads)
        return self._checked(found if isinstance(found, tuple) else (found,))

    def origin_of(self, entry: Any) -> None:
        """What made a saved tensor is known where it is unpacked."""

    def _zeros(self, index: int) -> Any:
        like = self._avals[index]
        if like is None:
            return None
        return zeros(like.shape, dtype=like.dtype, device=like.device)

    def _checked(self, found: tuple[Any, ...]) -> tuple[Any, ...]:
        count = len(self._is_tensor)
        if len(found) > count and all(g is None for g in found[count:]):
            found = found[:count]
        if len(found) != count:
            raise RuntimeError(
                f"function {type(self).__name__} returned an incorrect number of gradients (expected {count}, got "
                f"{len(found)})"
            )
        result = []
        for i, (g, is_tensor) in enumerate(zip(found, self._is_tensor, strict=True)):
            if not is_tensor:
                if g is not None:
                    raise RuntimeError(
                        f"function {type(self).__name__} returned a gradient different than None at position "
                        f"{i + 1}, but the "
                        "corresponding forward input was not a Variable"
                    )
                continue
            if g is not None and not isinstance(g, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
            result.append(g)
        if self._beyond is not None:
            return tuple(map(crossed, result, self._beyond))
        return tuple(result)


def node_class(function: Any) -> type[BackwardCFunction]:
    """The class of a Function's nodes."""
    names = {"_function": function, "__module__": function.__module__}
    return type(function._node_name or f"{function.__name__}Backward", (BackwardCFunction,), names)


NO_BACKWARD = (
    "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
    "backward mode AD."
)


class Function:
    """An operation with a derivative of its own.

    Subclasses define static methods `forward(ctx, *args)` and `backward(ctx, *grads)`, or `forward(*args)`,
    `setup_context(ctx, inputs, output)` and `backward`. Call it as `MyFunction.apply(*args)`.

    Raises: NotImplementedError where `forward` or `backward` is not written.

    >>> class Double(xtensor.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = xtensor.tensor(3.0, requires_grad=True)
    >>> Double.apply(x).backward()
    >>> x.grad
    tensor(2.)
    """

    generate_vmap_rule = False
    _of_library = False
    # The name of the nodes, where it is not made of the function's own.
    _node_name: str | None = None
    _backward_cls: type[BackwardCFunction]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._backward_cls = node_class(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        checks.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so "
            "you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a "
            "future version "
            "of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style "
            "autograd "
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
        raise NotImplementedError(NO_BACKWARD)

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name for `backward`."""
        raise NotImplementedError(NO_BACKWARD)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """One tangent per output, from those of the arguments (None for what is no tensor)."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """The outputs for all samples, which lie along `in_dims` of the arguments; and where they lie in the outputs."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run `forward` and record the call."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        node = cls._backward_cls()
        mode = modes.state.mode
        tensors = [a for a in args if isinstance(a, Tensor)]
        levels: list[Any] = []
        if modes.state.transforms:
            check_style(separate or cls._of_library)
            levels = levels_in(tensors)
            own_vmap = cls.vmap is not Function.vmap
            batches = [level for level in levels if level.size is not None and level.name not in AS_THEY_ARE]
            if batches:
                check_vmap(cls, own_vmap, kwargs)
                if own_vmap and len(batches) == len(levels) and is_physical(batches[0]):
                    return run_vmap(cls, batches[0], args)
        node._is_tensor = tuple([isinstance(a, Tensor) for a in args])
        node.needs_input_grad = tuple([isinstance(a, Tensor) and asks_grad(a) for a in args])
        recording = not mode & NO_GRAD and any(node.needs_input_grad)
        if recording:
            node._xt_edges = tuple([plain_edge(edge_of(t)) for t in tensors])
            noted(node)
        token = (
            profiler.begin(cls.__name__, [tuple(sizes_of(t)) for t in tensors]) if mode & PROFILING else None
        )
        try:
            with no_grad():
                if levels:
                    output = outputs_at_levels(
                        cls, node, args, levels, lambda given: cls._run(node, given, kwargs, separate)
                    )
                else:
                    output = cls._run(node, args, kwargs, separate)
        finally:
            profiler.end(token)
        outputs = output if isinstance(output, tuple) else (output,)
        if recording and (levels or any(type(t._xt_storage.raw) in KINDS for t in tensors)):
            node._beyond = beyond(outputs, tensors)
        results = wrap_outputs(node, tensors, outputs, recording)
        return results if isinstance(output, tuple) else results[0]

    @classmethod
    def _run(cls, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any], separate: bool) -> Any:
        """Run `forward`, and set the node up."""
        if not separate:
            return cls.forward(node, *args, **kwargs)
        output = cls.forward(*args, **kwargs)
        cls.setup_context(node, args, output)
        return output


Function._backward_cls = node_class(Function)


def wrap_outputs(
    node: BackwardCFunction, inputs: list[Tensor], outputs: tuple[Any, ...], recording: bool
) -> tuple[Any, ...]:
    """Give the outputs of a Function their place in the graph, and settle what was saved."""
    dirty = {id(t) for t in node.dirty_tensors}
    inert = {id(t) for t in node.non_differentiable}
    given = {id(t) for t in inputs}
    if dirty - {id(o) for o in outputs}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The "
            "inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    count = sum(isinstance(o, Tensor) for o in outputs)
    results: list[Any] = []
    avals: list[Any] = []
    flowing = 0
    for i, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            results.append(out)
            avals.append(None)
            continue
        is_input, written = id(out) in given, id(out) in dirty
        if recording and id(out) not in inert and (out.is_floating_point() or out.is_complex()):
            result = connect(node, i, out, is_input, written, count)
            flowing += 1
        else:
            result = cut_off(out, is_input, written)
        view = result._xt_view
        if view is not None and view.base is not None and not (is_input and written):
            view.creation = CUSTOM_FUNCTION
        results.append(result)
        avals.append(Aval(result))
    if flowing > 1:
        # A write to one of several views could not be told from writes to the others.
        for result in results:
            if isinstance(result, Tensor) and result._xt_view is not None:
                result._xt_view.creation = MULTI_OUTPUT
    node._avals = tuple(avals)
    if inert:
        node._inert = frozenset([i for i, out in enumerate(outputs) if id(out) in inert])
    if recording and node.to_save:
        places = {id(o): i for i, o in enumerate(outputs) if id(o) not in given or id(o) in dirty}
        node._saved = tuple(
            [None if t is None else SavedForFunction(t, places.get(id(t))) for t in node.to_save]
        )
    node.to_save = node.dirty_tensors = node.non_differentiable = ()
    return tuple(results)


def connect(node: Any, i: int, out: Tensor, is_input: bool, written: bool, count: int) -> Tensor:
    """A differentiable output: itself, or a view of an input that was returned as it is, with the node as history."""
    if not written:
        result = view_of(out) if is_input else out
        result._xt_edge = (node, i)
        if result._xt_view is not None:
            result._xt_view.attr_version = result._xt_view.counter.version
        return result
    if type(edge_of(out)) is not tuple and asks_grad(out):
        raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
    if not is_input:
        checks.warn(
            "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is "
            "no need to "
            "pass it to mark_dirty().",
        )
    view = out._xt_view
    if view is not None and view.base is not None:
        if count > 1:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your "
                "Function cannot return "
                "more than one Tensor. This is not supported by the current autograd engine. You should "
                "either make sure "
                "the input is not a view (using .clone() for example) or make your Function only return "
                "one Tensor "
                "(potentially splitting it into two Functions: one doing the inplace that returns a single "
                "Tensor and a "
                "second one that does the other operations). You can ask on the forum "
                "https://discuss.pytorch.org/ if "
                "you need help to do this change."
            )
        check_inplace(out, True)
        node._avals = (Aval(out),)
        rebase(out, node)
    else:
        move_retained(out, node)
        out._xt_edge = (node, i)
    return out


def cut_off(out: Tensor, is_input: bool, written: bool) -> Tensor:
    """An output that no gradient reaches: never the input itself, unless `forward` wrote it."""
    if not asks_grad(out):
        return view_of(out) if is_input and not written else out
    if is_input:
        return out.detach()
    if out._xt_view is None or out._xt_view.base is None:
        out._xt_edge = None
    return out


def view_of(source: Tensor) -> Tensor:
    """A view of all of an input that was returned as it is, without a history yet; its class may make it."""
    if type(source) is not Tensor and asks(type(source)):
        with no_grad():
            return source.view_as(source)
    result = twin(source)
    if type(source) is not Tensor:
        result = tensor_over(result._xt_storage, result._xt_view, kind=type(source))
    view, old = result._xt_view, source._xt_view
    assert view is not None
    view.base = source if old is None or old.base is None else old.base
    view.attr_version = view.counter.version
    return result


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
        # Leaves of their own, as in PyTorch: nothing beyond them can be reached.
        leaves = [o.detach()._ask_grad(True) if isinstance(o, Tensor) else None for o in found]
        edges = tuple([None if leaf is None else plain_edge(edge_of(leaf)) for leaf in leaves])
        error = Error(
            "trying to differentiate twice a function that was marked with @once_differentiable",
            edges,
            len(found),
        )
        results = []
        for i, out in enumerate(found):
            if isinstance(out, Tensor):
                out = out.detach()
                out._xt_edge = (error, i)
            results.append(out)
        return results[0] if single else tuple(results)

    return wrapper


InplaceFunction = Function
