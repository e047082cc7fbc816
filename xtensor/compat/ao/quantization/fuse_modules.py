"""`fuse_modules`: neighbouring layers of a model, named in lists, made one."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from ....nn.modules.linear import Identity
from ....nn.modules.module import Module
from .fuser_method_mappings import get_fuser_method

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def fuse_known_modules(
    mod_list: Sequence[Any], is_qat: bool, additional_fuser_method_mapping: Any = None
) -> list[Module]:
    """Layers as one, that takes the first place, and identities; hooks before the first and after the last stay."""
    method = get_fuser_method(tuple([type(m) for m in mod_list]), additional_fuser_method_mapping)
    made = method(is_qat, *mod_list)
    first, last = mod_list[0], mod_list[-1]
    for hook in first._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    first._forward_pre_hooks.clear()
    for hook in last._forward_hooks.values():
        made.register_forward_hook(hook)
    last._forward_hooks.clear()
    rest = [Identity() for _ in mod_list[1:]]
    for identity in rest:
        identity.training = first.training
    return [made, *rest]


def fused(
    model: Module, modules_to_fuse: Sequence[Any], trained: bool, inplace: bool, function: Any, config: Any
) -> Module:
    model = model if inplace else copy.deepcopy(model)
    more = (config or {}).get("additional_fuser_method_mapping", {})
    single = all(isinstance(name, str) for name in modules_to_fuse)
    for names in [modules_to_fuse] if single else modules_to_fuse:
        parts = function([model.get_submodule(name) for name in names], trained, more)
        for name, part in zip(names, parts, strict=True):
            above, _, last = name.rpartition(".")
            setattr(model.get_submodule(above), last, part)
    return model


def fuse_modules(
    model: Module,
    modules_to_fuse: Sequence[Any],
    inplace: bool = False,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Module:
    """A model in evaluation mode with convolutions, norms, linear layers and ReLUs, named in lists, made one.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.ReLU()).eval()
    >>> xtensor.ao.quantization.fuse_modules(model, ["0", "1"])
    Sequential(
      (0): LinearReLU(
        (0): Linear(in_features=2, out_features=2, bias=True)
        (1): ReLU()
      )
      (1): Identity()
    )
    """
    return fused(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(
    model: Module,
    modules_to_fuse: Sequence[Any],
    inplace: bool = False,
    fuser_func: Callable[..., Any] = fuse_known_modules,
    fuse_custom_config_dict: Any = None,
) -> Module:
    """`fuse_modules` of a model in training: norms stay, beside the layers before them."""
    return fused(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
