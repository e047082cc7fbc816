"""Parameters of classes that keep their values elsewhere: the step is made there, or asked about like any operator."""

from __future__ import annotations

from typing import Any

from ..dtypes import complex64, stored_dtype
from ..storage import WrapperStorage
from ..tensor import Tensor
from .differentiable import run_differentiable
from .update import Work

__all__ = ["is_elsewhere", "run_elsewhere"]


def is_elsewhere(tensor: Tensor) -> bool:
    """Whether a tensor is a wrapper around its values, or of a dtype that only stores."""
    return isinstance(tensor._xt_storage, WrapperStorage) or isinstance(tensor.dtype, stored_dtype)


def opened(tensor: Any) -> Any:
    """The dense tensor of all values, where the class of a wrapper names it as `_xt_inner`; of numbers that are only stored a copy."""
    if isinstance(tensor.dtype, stored_dtype):
        return tensor.to(complex64)
    inner = getattr(type(tensor), "_xt_inner", None)
    return tensor if inner is None else getattr(tensor, inner)


def run_elsewhere(work: Work, numbers: tuple[Any, ...]) -> None:
    """Make a step of such parameters, one after another."""
    params, grads = [[opened(t) for t in tensors] for tensors in (work.params, work.grads)]
    states = [[opened(s) for s in own] for own in work.states]
    run_differentiable(work._replace(params=params, grads=grads, states=states), numbers)
    for tensors, made in zip((work.params, *work.states), (params, *states), strict=True):
        for target, value in zip(tensors, made, strict=True):
            if isinstance(target.dtype, stored_dtype):
                target.copy_(value)
