"""What lies beneath a tensor inside of a transform, and functions without writes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor, array_of, wrap
from ..xla.levels import Leveled

__all__ = ["debug_unwrap", "functionalize"]


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor beneath one that a transform has made: of a batch all samples, of a value with its tangent the value.

    recurse: through all levels. For looking at values only: a derivative through it is wrong.

    >>> xtensor.vmap(xtensor.func.debug_unwrap, out_dims=None)(xtensor.ones(2))
    tensor([1., 1.])
    """
    array = array_of(tensor)
    if not isinstance(array, Leveled):
        return tensor
    array = array.inner
    while recurse and isinstance(array, Leveled):
        array = array.inner
    return wrap(array)


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function as it is: what runs below is free of writes and views already, since arrays are never written.

    >>> xtensor.func.functionalize(lambda x: x.clone().add_(1))(xtensor.zeros(2))
    tensor([1., 1.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove=. Valid options are: "
            "remove='mutations', remove='mutations_and_views'"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    return wrapped
