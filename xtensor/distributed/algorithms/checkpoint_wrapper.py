"""`torch.distributed.algorithms._checkpoint.checkpoint_wrapper`: modules whose calls are computed again in the backward pass."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any

from ...autograd.graph import save_on_cpu
from ...nn.modules.module import Module
from ...nn.parameter import Parameter
from ...utils.checkpoint import checkpoint
from ..fsdp.wrap import lambda_auto_wrap_policy, wrap_children

__all__ = [
    "ActivationWrapper",
    "CheckpointImpl",
    "CheckpointWrapper",
    "OffloadWrapper",
    "apply_activation_checkpointing",
    "checkpoint_wrapper",
    "offload_wrapper",
]

INNER = "_checkpoint_wrapped_module"
PREFIX = f"{INNER}."


class CheckpointImpl(enum.Enum):
    """Which of the two ways of `utils.checkpoint.checkpoint`."""

    REENTRANT = enum.auto()
    NO_REENTRANT = enum.auto()


class ActivationWrapper(Module):
    """A module around another, whose names do not show in states and parameters."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(shorten)
        self.register_load_state_dict_pre_hook(lengthen)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Of a subclass."""
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules[INNER], name)

    def __getitem__(self, key: Any) -> Any:
        return self._modules[INNER][key]  # type: ignore[index]

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Parameter]]:
        """See `Module`: the names are those without the wrapper."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(PREFIX, ""), parameter


def shorten(module: Module, state: dict[str, Any], prefix: str, _: Any) -> None:
    """A hook behind `state_dict`: names without the wrapper."""
    for name in [n for n in state if n.startswith(prefix + PREFIX)]:
        state[prefix + name[len(prefix) + len(PREFIX) :]] = state.pop(name)


def lengthen(module: Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """A hook before `load_state_dict`: names with the wrapper."""
    for name in [n for n in state if n.startswith(prefix) and not n.startswith(prefix + PREFIX)]:
        state[f"{prefix}{PREFIX}{name[len(prefix) :]}"] = state.pop(name)


class CheckpointWrapper(ActivationWrapper):
    """A module whose calls keep their arguments alone, and are computed again in the backward pass."""

    def __init__(
        self,
        mod: Module,
        checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None,
        **checkpoint_fn_kwargs: Any,
    ) -> None:
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        self._options = checkpoint_fn_kwargs
        if checkpoint_fn is None:
            self._options["use_reentrant"] = checkpoint_impl is CheckpointImpl.REENTRANT
        self.checkpoint_fn = checkpoint_fn or checkpoint

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The call of the module, computed again when its gradients are asked for."""
        module: Any = self._modules[INNER]
        if kwargs and self._options.get("use_reentrant"):  # which takes no names
            names = list(kwargs)
            called = lambda *given: module(*given[: len(args)], **dict(zip(names, given[len(args) :])))
            return self.checkpoint_fn(called, *args, *kwargs.values(), **self._options)
        return self.checkpoint_fn(module, *args, **self._options, **kwargs)


class OffloadWrapper(ActivationWrapper):
    """A module what whose calls save for the backward pass is kept in the host's memory."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The call of the module."""
        with save_on_cpu(pin_memory=True):
            return self._modules[INNER](*args, **kwargs)  # type: ignore[misc]


def checkpoint_wrapper(
    module: Module,
    checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None,
    **checkpoint_fn_kwargs: Any,
) -> Module:
    """The module in a `CheckpointWrapper`."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module: Module) -> Module:
    """The module in an `OffloadWrapper`."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Module,
    checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[..., bool] | None = None,
) -> None:
    """Wrap the submodules for which `check_fn` is true, or that a policy says."""

    def chosen(module: Module, recurse: bool, nonwrapped_numel: int) -> bool:
        return lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, check_fn)

    wrap_children(model, auto_wrap_policy or chosen, checkpoint_wrapper_fn, lambda _: False)
