"""What a call of a Module does: `forward`, with the hooks before and after it and on the gradients."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .. import checks
from ..engine.handles import HookDict, RemovableHandle
from ..tensor import Tensor
from .hooks import BackwardHook, WrappedHook, add, everywhere

__all__ = ["Calls"]

_MIXED = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. "
    "Please use only one of them."
)


class Calls:
    """The part of a Module that runs `forward`, and the hooks around it."""

    forward: Callable[..., Any]
    _compiled_call_impl: Callable[..., Any] | None = None
    _backward_pre_hooks: HookDict
    _backward_hooks: HookDict
    _is_full_backward_hook: bool | None
    _forward_hooks: HookDict
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: HookDict
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]

    # -- hooks

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the outputs' gradients are known; what it returns replaces them."""
        return add(self._backward_pre_hooks, hook, None, prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` at the last node only (deprecated: use the full hook)."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(_MIXED)
        self._is_full_backward_hook = False
        return add(self._backward_hooks, hook)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the inputs' gradients are known; it may replace them."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(_MIXED)
        self._is_full_backward_hook = True
        return add(self._backward_hooks, hook, None, prepend)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` (or `(module, args, kwargs)`) before `forward`; it may replace the arguments."""
        handle = add(self._forward_pre_hooks, hook, self._forward_pre_hooks_with_kwargs, prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` (or with kwargs before it) after `forward`; it may replace the output.

        With `always_call` it runs even when `forward` raised.
        """
        extra = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = add(self._forward_hooks, hook, extra, prepend)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    # -- calls

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or everywhere.forward
            or everywhere.forward_pre
            or everywhere.backward
            or everywhere.backward_pre
        ):
            return self._call_impl(*args, **kwargs)
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """`forward` with every hook around it."""
        done: set[int] = set()
        state = [args, kwargs, None]
        try:
            return self._call_with_hooks(state, done)
        except Exception:
            self._call_always(state, done)
            raise

    def _call_with_hooks(self, state: list[Any], done: set[int]) -> Any:
        for number, hook in (*everywhere.forward_pre.items(), *self._forward_pre_hooks.items()):
            if number in self._forward_pre_hooks_with_kwargs:
                found = hook(self, state[0], state[1])
                if found is None:
                    continue
                if not (isinstance(found, tuple) and len(found) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {found}."
                    )
                state[0], state[1] = found
            else:
                found = hook(self, state[0])
                if found is not None:
                    state[0] = found if isinstance(found, tuple) else (found,)
        full, partial = self._get_backward_hooks()
        pre = [*everywhere.backward_pre.values(), *self._backward_pre_hooks.values()]
        around = BackwardHook(self, full, pre) if full or pre else None
        if around is not None:
            state[0] = around.setup_input_hook(state[0])
        state[2] = result = self.forward(*state[0], **state[1])
        for number, hook in (*everywhere.forward.items(), *self._forward_hooks.items()):
            if number in self._forward_hooks_always_called or number in everywhere.forward_always:
                done.add(number)
            found = self._run_forward_hook(number, hook, state)
            if found is not None:
                state[2] = result = found
        if around is not None:
            if not isinstance(result, (Tensor, tuple)):
                checks.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}",
                )
            result = around.setup_output_hook(result)
        if partial:
            self._hook_last_node(partial, state[0], result)
        return result

    def _run_forward_hook(self, number: int, hook: Callable[..., Any], state: list[Any]) -> Any:
        if number in self._forward_hooks_with_kwargs or number in everywhere.forward_with_kwargs:
            return hook(self, state[0], state[1], state[2])
        return hook(self, state[0], state[2])

    def _call_always(self, state: list[Any], done: set[int]) -> None:
        """After an error: the hooks that asked to be called whatever happens, and were not."""
        for where, hooks, always in (
            ("global module", everywhere.forward, everywhere.forward_always),
            ("module", self._forward_hooks, self._forward_hooks_always_called),
        ):
            for number, hook in hooks.items():
                if number not in always or number in done:
                    continue
                try:
                    found = self._run_forward_hook(number, hook, state)
                    state[2] = state[2] if found is None else found
                except Exception as error:
                    checks.warn(
                        f"{where} forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}",
                    )

    def _get_backward_hooks(self) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
        """The full backward hooks, and those of the older kind."""
        full: list[Callable[..., Any]] = []
        partial: list[Callable[..., Any]] = []
        for hooks, kind in (
            (everywhere.backward, everywhere.full),
            (self._backward_hooks, self._is_full_backward_hook),
        ):
            if hooks:
                (full if kind else partial).extend(hooks.values())
        return full, partial

    def _hook_last_node(self, hooks: list[Callable[..., Any]], args: Any, result: Any) -> None:
        """Backward hooks of the older kind: they see the gradients of whatever node made the result."""
        found = result
        while not isinstance(found, Tensor):
            if isinstance(found, dict):
                found = next(v for v in found.values() if isinstance(v, Tensor))
            else:
                found = found[0]
        node = found.grad_fn
        if node is None:
            return
        for hook in hooks:
            node.register_hook(WrappedHook(hook, self))
        told = missed_by(node, args, result)
        if told:
            checks.warn(
                f"Using {told[0]} is deprecated and will be removed in future versions. This hook will be missing "
                f"{told[1]}.{told[2]}",
                FutureWarning,
            )


REGISTER_FULL = " Please use register_full_backward_hook to get the documented behavior."


def missed_by(node: Any, args: Any, result: Any) -> tuple[str, str, str] | None:
    """What a hook at the last node does not see of a module's gradients: the case, which, what to do; None for nothing."""
    for values, does, which in ((result, "return", "output"), (args, "take as input", "input")):
        one = isinstance(values, Tensor)
        if not (one or (isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values))):
            case = f"non-full backward hooks on a Module that does not {does} a single Tensor or a tuple of Tensors"
            return case, f"some of the grad_{which}", REGISTER_FULL
    hook = "a non-full backward hook when"
    last = nodes_of(result)
    if len(last) > 1:
        return f"{hook} outputs are generated by different autograd Nodes", "some grad_output", REGISTER_FULL
    if node not in last:
        return f"{hook} outputs are nested in python data structure", "some grad_output", ""
    if nodes_of(args) != {function for function, _ in node.next_functions}:
        return f"{hook} the forward contains multiple autograd Nodes", "some grad_input", REGISTER_FULL
    return None


def nodes_of(values: Any) -> set[Any]:
    """The nodes that made some tensors."""
    values = (values,) if isinstance(values, Tensor) else values
    return {v.grad_fn for v in values if v.grad_fn is not None}
