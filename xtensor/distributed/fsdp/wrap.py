"""`torch.distributed.fsdp.wrap`: which submodules of a model are sharded by themselves, so that their parameters are gathered for their own calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...nn.modules.container import ModuleDict, ModuleList
from ...nn.modules.module import Module

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]

LISTS = (ModuleList, ModuleDict)
"""Modules without a call of their own."""


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """The policy by which every submodule is sharded by itself."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """The policy by which those submodules are that a function says; the function is bound by `functools.partial`."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Iterable[type[Module]]
) -> bool:
    """The policy by which submodules of some classes are, the blocks of a transformer."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = 100_000_000,
    force_leaf_modules: Iterable[type[Module]] | None = None,
    exclude_wrap_modules: Iterable[type[Module]] | None = None,
) -> bool:
    """The policy by which submodules are that have so many elements in parameters which none within them has taken."""
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(force_leaf_modules or ()))
    return large and not isinstance(module, tuple(exclude_wrap_modules or LISTS))


class ModuleWrapPolicy:
    """The policy by which submodules of some classes are sharded by themselves.

    >>> from xtensor.distributed.fsdp.wrap import ModuleWrapPolicy
    >>> ModuleWrapPolicy([nn.Linear])(nn.Linear(1, 1), recurse=False)
    True
    """

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = frozenset(module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"ModuleWrapPolicy({set(self._module_classes)})"


class CustomPolicy:
    """The policy of a function of a module: whether it is sharded by itself, or with which options."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def options(self, module: Module) -> dict[str, Any] | None:
        """The options for a module; None where it is left to the one that holds it."""
        found = self._lambda_fn(module)
        if not isinstance(found, (bool, dict)):
            raise ValueError(
                "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it "
                f"returned {found}"
            )
        return found if isinstance(found, dict) else {} if found else None

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or self.options(module) is not None


def wrap_children(
    module: Module,
    policy: Callable[..., bool],
    wrapper: Callable[..., Any],
    skipped: Callable[[Any], bool],
) -> int:
    """Put `wrapper(submodule)` in the place of the submodules that a policy says, those within others first; how many elements of
    parameters these have. skipped: whether a module or a parameter is left alone.
    """
    total = 0
    done: dict[int, Any] = {}
    for name, child in list(module._modules.items()):
        if child is None or skipped(child):
            continue
        if id(child) in done:
            module._modules[name] = done[id(child)]
            continue
        own = sum(p.numel() for p in child.parameters() if not skipped(p))
        done[id(child)] = child
        if not policy(module=child, recurse=True, nonwrapped_numel=own):
            continue
        within = wrap_children(child, policy, wrapper, skipped)
        if policy(module=child, recurse=False, nonwrapped_numel=own - within):
            more = policy.options(child) if isinstance(policy, CustomPolicy) else None
            module._modules[name] = done[id(child)] = wrapper(child, **(more or {}))
            within = own
        total += within
    return total


_wrapping: list[tuple[Callable[..., Any], dict[str, Any]]] = []


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls: Callable[..., Any], **wrapper_kwargs: Any) -> Iterator[None]:
    """Within this, `wrap(module)` gives `wrapper_cls(module, **wrapper_kwargs)`."""
    _wrapping.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _wrapping.pop()


def wrap(module: Module, **wrap_overrides: Any) -> Any:
    """The module wrapped as the innermost `enable_wrap` says; outside of one, the module."""
    if not _wrapping:
        return module
    wrapper, options = _wrapping[-1]
    return wrapper(module, **{**options, **wrap_overrides})


def _or_policy(module: Module, recurse: bool, nonwrapped_numel: int, policies: Iterable[Any]) -> bool:
    """The policy by which submodules are that one of some policies says."""
    return any(p(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for p in policies)


def as_policy(policy: Any) -> Callable[..., bool]:
    """A policy as the callable that it is: classes stand for `ModuleWrapPolicy`."""
    if isinstance(policy, (set, frozenset, list, tuple)):
        return ModuleWrapPolicy(policy)
    return policy
