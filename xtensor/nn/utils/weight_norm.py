"""Weight norm by a hook before `forward`: the older kind, whose parameters are `weight_g` and `weight_v`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ops.reduce.norms import norm
from ...tensor import Tensor
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

__all__ = ["WeightNorm", "norm_except", "remove_weight_norm", "scaled_direction", "weight_norm"]


def norm_except(weight: Tensor, dim: int) -> Tensor:
    """The norms over all dimensions but one; over all for -1."""
    if dim == -1:
        return norm(weight, 2)
    others = [d for d in range(weight.dim()) if d != dim % weight.dim()]
    return norm(weight, 2, dim=others, keepdim=True) if others else weight.abs()


def scaled_direction(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """The weight of direction `v` and length `g`."""
    return v * (g / norm_except(v, dim))


class WeightNorm:
    """The hook: before every call it computes the weight from its length and direction."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """The weight as it is now."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return scaled_direction(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Split a module's weight."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except(weight, made.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Module) -> None:
        """Make the weight a plain parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def removed(module: Module, mine: Callable[[Any], bool]) -> bool:
    """Undo the first hook before a module's calls that is `mine`, and take it out; False where none is."""
    hooks: Any = module._forward_pre_hooks
    for number, hook in hooks.items():
        if mine(hook):
            hook.remove(module)
            del hooks[number]
            return True
    return False


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a weight into length `<name>_g` and direction `<name>_v`; `parametrizations.weight_norm` is the newer kind.

    Source: Salimans and Kingma 2016, arXiv:1602.07868.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`."""
    if not removed(module, lambda hook: isinstance(hook, WeightNorm) and hook.name == name):
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    return module
