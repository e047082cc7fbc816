"""PyTorch's values as xtensor's: tensors, dtypes, functions, packed sequences and whole modules."""

from __future__ import annotations

import enum
import inspect
import types
from typing import Any

import torch

import xtensor

__all__ = ["as_numpy", "counterpart", "same_shape", "ours"]


def counterpart(value: Any) -> Any:
    """The class or function of the same name and place; AttributeError where there is none."""
    module = value.__module__ or "torch._C._nn"
    name = value.__qualname__
    places: list[Any] = [xtensor.nn.functional, xtensor.nn, xtensor.nn.modules.linear, xtensor]
    if module.startswith("torch.nn.utils.rnn"):
        places.insert(0, xtensor.nn.utils.rnn)
    if module.startswith("torch.optim"):
        places.insert(0, xtensor.optim)
    for place in places:
        if hasattr(place, name):
            return getattr(place, name)
    raise AttributeError(f"module 'xtensor' has no counterpart of {module}.{name}")


def tensor(value: torch.Tensor) -> xtensor.Tensor:
    """A copy with the same values, strides, dtype and `requires_grad`; a Parameter stays one."""
    if value.layout == torch.sparse_coo:
        whole = value.detach()
        made = xtensor.sparse_coo_tensor(
            tensor(whole._indices()), tensor(whole._values()), tuple(whole.shape)
        )
        made._coalesced_(whole.is_coalesced())
    elif value.dtype == torch.bfloat16:
        made = xtensor.tensor(value.detach().float().numpy()).to(xtensor.bfloat16)
    else:
        made = xtensor.tensor(value.detach().resolve_conj().numpy().copy())
    if isinstance(value, torch.nn.Parameter):
        made = xtensor.nn.Parameter(made, requires_grad=value.requires_grad)
    else:
        made.requires_grad_(value.requires_grad)
    if value.is_leaf and value.grad is not None:
        made.grad = tensor(value.grad)
    return made


def ours(value: Any) -> Any:
    """A value of PyTorch's as xtensor's; anything else as it is."""
    if isinstance(value, torch.Tensor):
        return tensor(value)
    if isinstance(value, torch.dtype):
        return getattr(xtensor, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return xtensor.device(str(value))
    if isinstance(value, torch.nn.Module):
        return module(value)
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        return xtensor.nn.utils.rnn.PackedSequence(*[ours(v) for v in value])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        made: Any = counterpart(type(value))
        return made(*[ours(v) for v in value])
    if isinstance(value, (list, tuple)):
        return type(value)(ours(v) for v in value)
    if isinstance(value, dict):
        return type(value)({k: ours(v) for k, v in value.items()})
    if isinstance(value, enum.Enum):
        return value
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)) and (
        (value.__module__ or "torch").startswith("torch")
    ):
        return counterpart(value)
    if type(value).__module__.startswith("torch."):
        return rebuilt(value)
    return value


def rebuilt(value: Any) -> Any:
    """An object of options of PyTorch's, made anew from its attributes."""
    kind: Any = counterpart(type(value))
    return kind(**{name: ours(getattr(value, name)) for name in inspect.signature(type(value)).parameters})


def module(value: torch.nn.Module) -> Any:
    """A module with the same attributes, parameters, buffers and submodules, without calling a constructor."""
    kind = counterpart(type(value))
    made = kind.__new__(kind)
    state = {name: ours(own) for name, own in vars(value).items()}
    made.__dict__.update(state)
    return made


def as_numpy(value: Any) -> Any:
    """The values of a tensor of either library."""
    value = value.detach()
    if str(value.dtype).endswith("bfloat16"):
        value = value.float()
    return value.resolve_conj().numpy() if hasattr(value, "resolve_conj") else value.numpy()


def same_shape(a: Any, b: Any) -> bool:
    """Whether two tensors of either library agree in shape and dtype."""
    return tuple(a.shape) == tuple(b.shape) and str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
