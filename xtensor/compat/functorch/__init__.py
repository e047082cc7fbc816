"""What programs import from `functorch`: `xtensor.func`, and the functions of modules that came before `functional_call`."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import Any

from ... import checks
from ... import func as ours
from ...fx.experimental.proxy_tensor import make_fx
from ...nn.modules.module import Module
from ...nn.stateless import stack_module_state
from ...tensor import Tensor

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]


class FunctionalModuleWithBuffers(Module):
    """A module as a function: `made(parameters, buffers, *args, **kwargs)`, with tuples in the order of the module's own."""

    def __init__(self, stateless_model: Module, names: Sequence[str], buffer_names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = tuple(names), tuple(buffer_names)

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return ours.functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function: `made(parameters, *args, **kwargs)`."""

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().forward(params, (), *args, **kwargs)


def warn(name: str, instead: str) -> None:
    """The FutureWarning of a function that `xtensor` has another for: `instead`."""
    checks.warn(
        f"We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{name}` is deprecated as "
        "of PyTorch 2.0 and will be deleted in a future version of PyTorch >= 2.3. Please use "
        f"`torch.{instead}` instead; see the PyTorch 2.0 release notes and/or the `torch.func` migration guide for more "
        "details https://pytorch.org/docs/main/func.migrating.html",
        FutureWarning,
    )


def _moved(name: str, instead: str) -> Any:
    """One of `xtensor.func`'s functions under the name that it had before, with a FutureWarning."""
    function = getattr(ours, name)

    @functools.wraps(function)
    def warned(*args: Any, **kwargs: Any) -> Any:
        warn(name, instead)
        return function(*args, **kwargs)

    return warned


functionalize = _moved("functionalize", "func.functionalize")
grad = _moved("grad", "func.grad")
grad_and_value = _moved("grad_and_value", "func.grad_and_value")
hessian = _moved("hessian", "func.hessian")
jacfwd = _moved("jacfwd", "func.jacfwd")
jacrev = _moved("jacrev", "func.jacrev")
jvp = _moved("jvp", "func.jvp")
vjp = _moved("vjp", "func.vjp")
vmap = _moved("vmap", "vmap")


def taken_apart(
    model: Module, kind: type[FunctionalModuleWithBuffers], untracked: bool
) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The function of a module, and copies of its parameters and buffers."""
    model = copy.deepcopy(model)
    params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    if untracked:
        for param in params.values():
            param.requires_grad_(False)
    return kind(model, list(params), list(buffers)), tuple(params.values()), tuple(buffers.values())


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[Any, tuple[Tensor, ...]]:
    """The module as a function of its parameters, and copies of these; ValueError for one that has buffers."""
    warn("make_functional", "func.functional_call")
    if any(True for _ in model.buffers()):
        raise ValueError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    made, params, _ = taken_apart(model, FunctionalModule, disable_autograd_tracking)
    return made, params


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The module as a function of its parameters and buffers, and copies of these."""
    warn("make_functional_with_buffers", "func.functional_call")
    return taken_apart(model, FunctionalModuleWithBuffers, disable_autograd_tracking)


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[Any, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The function of several modules of one kind, and their parameters and buffers, stacked along a new first dimension."""
    warn("combine_state_for_ensemble", "func.stack_module_state")
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    params, buffers = stack_module_state(models)
    made, _, _ = taken_apart(models[0], FunctionalModuleWithBuffers, False)
    return made, tuple(params.values()), tuple(buffers.values())
