"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from ... import checks
from ...ops.shape.joining import cat
from ...tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def check_device(param: Tensor, first: int | None) -> int:
    """The device index of the parameters, which must be the same for all."""
    index = param.get_device()
    if first is not None and index != first:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return index


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters, flattened, in one vector."""
    place, pieces = None, []
    for param in parameters:
        place = check_device(param, place)
        pieces.append(param.view(-1))
    return cat(pieces)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give the parameters the values of a vector, as views of it."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected {checks.spelled('Tensor')}, but got: {type(vec).__name__}")
    place, at = None, 0
    for param in parameters:
        place = check_device(param, place)
        count = param.numel()
        param.data = vec[at : at + count].view_as(param).data
        at += count
