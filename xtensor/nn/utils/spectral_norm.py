"""Spectral norm by a hook before `forward`: the older kind, with `weight_orig`, `weight_u` and `weight_v`."""

from __future__ import annotations

from typing import Any

from ...engine import no_grad
from ...ops.linalg.linear_algebra import multi_dot
from ...ops.linalg.matmul import dot, mv
from ...tensor import Tensor
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ..parameter import Parameter, is_lazy
from .weight_norm import removed

__all__ = ["SpectralNorm", "remove_spectral_norm", "spectral_norm"]


def check_iterations(count: int) -> None:
    """Refuse numbers of power iterations that are not positive."""
    if count <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={count}")


class SpectralNorm:
    """The hook: before every call the weight is divided by its largest singular value."""

    _version = 1

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        check_iterations(n_power_iterations)
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight with dimension `dim` as rows."""
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The normed weight; an iteration moves `<name>_u` and `<name>_v` on."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(mv(matrix, v), dim=0, eps=self.eps))
                # They change in the next pass, before this one's backward perhaps.
                u, v = u.clone(), v.clone()
        return weight / dot(u, mv(matrix, v))

    def remove(self, module: Module) -> None:
        """Make the weight a plain parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for suffix in ("_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Norm a module's weight."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            matrix = made.reshape_weight_to_matrix(weight)
            u, v = [
                F.normalize(weight.new_empty(size).normal_(0, 1), dim=0, eps=eps) for size in matrix.shape
            ]
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # An attribute of this name must be there, and must not be a parameter.
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(SpectralNormStateDictHook(made))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(made))
        return made


class SpectralNormLoadStateDictPreHook:
    """Makes `<name>_v` for states saved before it was kept."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version", None)
        key = prefix + fn.name
        known = all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v"))
        if (version is None or version < 1) and not known and key + "_orig" in state_dict:
            with no_grad():
                weight, u = state_dict[key + "_orig"], state_dict[key + "_u"]
                sigma = (weight / state_dict.pop(key)).mean()
                matrix = fn.reshape_weight_to_matrix(weight)
                v = multi_dot([(matrix.t() @ matrix).pinverse(), matrix.t(), u.unsqueeze(1)]).squeeze(1)
                state_dict[key + "_v"] = v * (sigma / dot(u, mv(matrix, v)))


class SpectralNormStateDictHook:
    """Puts the version into a state's metadata."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        own = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in own:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        own[key] = self.fn._version


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divide a weight by its spectral norm before every call; `parametrizations.spectral_norm` is the newer kind.

    Source: Miyato et al. 2018, arXiv:1802.05957.
    """
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`."""
    if not removed(module, lambda hook: isinstance(hook, SpectralNorm) and hook.name == name):
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for number, hook in list(module._state_dict_hooks.items()):
        if isinstance(hook, SpectralNormStateDictHook) and hook.fn.name == name:
            del module._state_dict_hooks[number]
    for number, wrapped in list(module._load_state_dict_pre_hooks.items()):
        hook = getattr(wrapped, "hook", wrapped)
        if isinstance(hook, SpectralNormLoadStateDictPreHook) and hook.fn.name == name:
            del module._load_state_dict_pre_hooks[number]
    return module
