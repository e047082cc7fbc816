"""Hooks of modules: those of all modules, and backward hooks as nodes at a module's inputs and outputs."""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .. import capture, checks
from ..autograd.function import Function
from ..engine import is_grad_enabled
from ..engine.handles import RemovableHandle
from ..tensor import Tensor

__all__ = [
    "BackwardHook",
    "GlobalHooks",
    "WrappedHook",
    "everywhere",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Hooks = OrderedDict[int, Callable[..., Any]]

MIXED = (
    "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
    "Please use only one of them."
)


class GlobalHooks:
    """The hooks that every module runs. full: whether the backward hooks are full ones; None before the first."""

    def __init__(self) -> None:
        self.buffer_registration: Hooks = OrderedDict()
        self.module_registration: Hooks = OrderedDict()
        self.parameter_registration: Hooks = OrderedDict()
        self.backward_pre: Hooks = OrderedDict()
        self.backward: Hooks = OrderedDict()
        self.full: bool | None = None
        self.forward_pre: Hooks = OrderedDict()
        self.forward: Hooks = OrderedDict()
        self.forward_always: OrderedDict[int, bool] = OrderedDict()
        self.forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()


everywhere = GlobalHooks()


def add(hooks: Hooks, hook: Callable[..., Any], extra: Any = None, prepend: bool = False) -> RemovableHandle:
    """Register `hook` at the end (or the start) of `hooks`."""
    capture.moved()
    handle = RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` before every registration of a buffer; what it returns replaces it."""
    return add(everywhere.buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` before every registration of a submodule."""
    return add(everywhere.module_registration, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` before every registration of a parameter."""
    return add(everywhere.parameter_registration, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the forward of every module; what it returns replaces the arguments."""
    return add(everywhere.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the forward of every module; what it returns replaces the output."""
    handle = add(everywhere.forward, hook, [everywhere.forward_always, everywhere.forward_with_kwargs])
    if with_kwargs:
        everywhere.forward_with_kwargs[handle.id] = True
    if always_call:
        everywhere.forward_always[handle.id] = True
    return handle


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` at the last node of every module (deprecated: use the full hook)."""
    if everywhere.full is True:
        raise RuntimeError(MIXED)
    everywhere.full = False
    return add(everywhere.backward, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` when the gradients of any module's outputs are known."""
    return add(everywhere.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when the gradients of any module's inputs are known."""
    if everywhere.full is False:
        raise RuntimeError(MIXED)
    everywhere.full = True
    return add(everywhere.backward, hook)


class WrappedHook:
    """A hook that may get its module first, which it holds weakly."""

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if module is not None:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook, self.with_module = state["hook"], state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


class BackwardHookFunction(Function):
    """The identity over several tensors: its node is where a module's backward hooks stand."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        return grads


class BackwardHook:
    """The backward hooks of one call of a module: a node before its inputs, one after its outputs."""

    def __init__(
        self, module: Any, hooks: list[Callable[..., Any]], pre_hooks: list[Callable[..., Any]]
    ) -> None:
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs: tuple[Any, ...] | None = None
        self.inputs, self.input_places = 0, None
        self.outputs, self.output_places = 0, None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of the forward, with tensors passed through the node of the inputs."""
        result, places = self._through_node(args, lambda node: node.register_hook(self._at_inputs))
        self.inputs, self.input_places = len(args), places
        return result

    def setup_output_hook(self, result: Any) -> Any:
        """The result of the forward, with tensors passed through the node of the outputs."""
        single = not isinstance(result, tuple)
        values = (result,) if single else result
        self.outputs = len(values)
        made, self.output_places = self._through_node(
            values, lambda node: node.register_hook(self._at_outputs)
        )
        return made[0] if single else made

    def _through_node(self, values: tuple[Any, ...], register: Callable[[Any], Any]) -> tuple[Any, Any]:
        places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        tensors = [values[i] for i in places]
        if not (is_grad_enabled() and any(t.requires_grad for t in tensors)):
            return values, None
        made = BackwardHookFunction.apply(*tensors)
        register(next(t.grad_fn for t in made if t.grad_fn is not None))
        every = list(values)
        for place, tensor in zip(places, made):
            every[place] = tensor
        return tuple(every) if type(values) is tuple else type(values)(*every), places

    def _at_inputs(self, grad_input: tuple[Any, ...], grad_output: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if self.grad_outputs is None:  # this pass reached the inputs without crossing the outputs
            return None
        places: Any = self.input_places
        result = spread(places, grad_input, self.inputs)
        for hook in self.hooks:
            out = hook(self.module, result, self.grad_outputs)
            if out is None:
                continue
            if len(out) != len(result):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(out)}, but expected "
                    f"{len(result)}"
                )
            result = out
        self.grad_outputs = None
        return tuple([result[i] for i in places])

    def _at_outputs(self, grad_input: tuple[Any, ...], grad_output: tuple[Any, ...]) -> tuple[Any, ...]:
        places: Any = self.output_places
        grads = spread(places, grad_output, self.outputs)
        for hook in self.pre_hooks:
            out = hook(self.module, grads)
            if out is None:
                continue
            if len(out) != len(grads):
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(out)}, but expected "
                    f"{len(grads)}"
                )
            grads = out
        self.grad_outputs = grads
        if self.input_places is None:
            self._without_inputs(grads)
        return tuple([grads[i] for i in places])

    def _without_inputs(self, grads: tuple[Any, ...]) -> None:
        """No input requires a gradient: the hooks run here, on inputs' gradients of None."""
        checks.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
        )
        for hook in self.hooks:
            out = hook(self.module, (None,) * self.inputs, grads)
            if out is not None and not (isinstance(out, tuple) and all(value is None for value in out)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    "all gradients."
                )
        self.grad_outputs = None


def spread(places: list[int], values: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    """`size` values: those given at their places, None elsewhere."""
    result: list[Any] = [None] * size
    for place, value in zip(places, values, strict=True):
        result[place] = value
    return tuple(result)
