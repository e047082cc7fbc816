"""Flattening and unflattening dimensions."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """A range of dimensions as one; the batch dimension stays by default.

    Shape: input `(N, *)`, output `(N, product of the others)`.

    Raises: IndexError where a dimension is out of range.

    >>> nn.Flatten()(xtensor.zeros(2, 3, 4, 5)).shape
    xtensor.Size([2, 60])
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension as several.

    Shape: input `(*, S, *)` with S at `dim`, output `(*, *unflattened_size, *)`.

    Raises: TypeError for an `unflattened_size` of another kind; RuntimeError for sizes whose product is another;
    IndexError where `dim` is out of range.

    >>> nn.Unflatten(1, (3, 4))(xtensor.zeros(2, 12)).shape
    xtensor.Size([2, 3, 4])
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: int | str, unflattened_size: Any) -> None:
        super().__init__()
        if isinstance(dim, int):
            self._require_tuple_int(unflattened_size)
        elif isinstance(dim, str):
            self._require_tuple_tuple(unflattened_size)
        else:
            raise TypeError("invalid argument type for dim parameter")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_tuple_tuple(self, input: Any) -> None:
        if isinstance(input, tuple):
            for i, element in enumerate(input):
                if not isinstance(element, tuple):
                    raise TypeError(
                        "unflattened_size must be tuple of tuples, "
                        f"but found element of type {type(element).__name__} at pos {i}"
                    )
            return
        raise TypeError(f"unflattened_size must be a tuple of tuples, but found type {type(input).__name__}")

    def _require_tuple_int(self, input: Any) -> None:
        if isinstance(input, (tuple, list)):
            for i, element in enumerate(input):
                if not isinstance(element, int):
                    raise TypeError(
                        "unflattened_size must be tuple of ints, "
                        f"but found element of type {type(element).__name__} at pos {i}"
                    )
            return
        raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(input).__name__}")

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)  # pyright: ignore[reportArgumentType, reportCallIssue]

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
