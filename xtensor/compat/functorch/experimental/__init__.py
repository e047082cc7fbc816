"""`functorch.experimental`: names that became `torch.func`'s, and `vmap` in a number of parts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_, vmap
from ....transforms.batches import arguments_of
from . import control_flow

__all__ = [
    "chunk_vmap",
    "control_flow",
    "functionalize",
    "hessian",
    "jacfwd",
    "jvp",
    "replace_all_batch_norm_modules_",
]


def chunk_vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable[..., Any]:
    """`vmap` that takes the samples in `chunks` parts, one after the other; `chunk_size` of `vmap` says how many at once."""
    if chunks == 1:
        return vmap(func, in_dims, out_dims, randomness)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        size = -(-arguments_of(func, in_dims, args)[0] // chunks)
        return vmap(func, in_dims, out_dims, randomness, chunk_size=size)(*args, **kwargs)

    return wrapper
