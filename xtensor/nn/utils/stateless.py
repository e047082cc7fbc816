"""A module called with other parameters and buffers than its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ... import checks
from ...tensor import Tensor
from ..modules.module import Module

__all__ = ["functional_call"]


def tied_names(module: Module) -> dict[str, set[str]]:
    """For every tensor that a module holds under several names, all of them."""
    names: dict[int, set[str]] = {}
    for name, tensor in (
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ):
        names.setdefault(id(tensor), set()).add(name)
    return {name: group for group in names.values() if len(group) > 1 for name in group}


def untied(module: Module, given: dict[str, Tensor]) -> dict[str, Tensor]:
    """What is given, and the same for all names tied to those."""
    tied = tied_names(module)
    found = dict(given)
    for name, value in given.items():
        group = tied.get(name, set())
        if len({id(given[other]) for other in group if other in given}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(group)}, which are tied. Consider using "
                "tie_weights=False"
            )
        for other in group:
            found[other] = value
    return found


def swap(module: Module, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Put tensors in the places of a module's own, without registering; returns those that were there."""
    old: dict[str, Any] = {}
    for path, tensor in tensors.items():
        owner, _, name = path.rpartition(".")
        place = module.get_submodule(owner)
        for members in (place._parameters, place._buffers):
            if name in members:
                old[path] = members[name]
                members[name] = tensor
                break
        else:
            if not hasattr(place, name):
                raise AttributeError(f"{place._get_name()} has no attribute `{name}`")
            old[path] = getattr(place, name)
            object.__setattr__(place, name, tensor)
    return old


@contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
) -> Iterator[None]:
    """Within this block the module has these parameters and buffers; what it writes to them is seen in the dictionary."""
    given = untied(module, parameters_and_buffers) if tie_weights else parameters_and_buffers
    if strict:
        own = {n for n, _ in module.named_parameters(remove_duplicate=False)}
        own |= {n for n, _ in module.named_buffers(remove_duplicate=False)}
        errors = []
        for what, keys in (("Unexpected", given.keys() - own), ("Missing", own - given.keys())):
            if keys:
                errors.append(f"{what} key(s): {', '.join(map(repr, sorted(keys)))}.")
        if errors:
            raise RuntimeError(
                f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(errors)
            )
    old = swap(module, given)
    try:
        yield
    finally:
        new = swap(module, old)
        parameters_and_buffers.update({k: new[k] for k in parameters_and_buffers if k in new})


def call_with(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with these parameters and buffers in the places of its own of those names."""
    values = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, parameters_and_buffers, tie_weights, strict):
        return module(*values, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The deprecated name of `xtensor.func.functional_call`."""
    checks.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
        "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
    )
    return call_with(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
