"""Matrices that LAPACK gives: they lie in memory by columns, as in PyTorch.

The programs of an operator with such results (`columns=` where it is declared) give them transposed, and their tensors see that the right way round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from ...geometry import contiguous_strides
from ...tensor import Tensor, sizes_of, wrap, wrap_strided
from ...xla.cache import bounded

__all__ = ["as_columns", "by_columns", "transposed"]


def is_matrix(sizes: Sequence[int], rank: int) -> bool:
    """Whether a result of an operator on matrices of a rank is one: solutions for a vector are vectors."""
    return len(sizes) >= max(rank, 2)


def transposed(run: Callable[..., Any], columns: Sequence[int], single: bool) -> Callable[..., Any]:
    """A kernel whose results that lie by columns are given transposed."""

    def program(*values: Any) -> Any:
        found = run(*values)
        made = [
            result_of(r, values, i) if i in columns else r
            for i, r in enumerate((found,) if single else found)
        ]
        return made[0] if single else tuple(made)

    program.__name__ = program.__qualname__ = run.__name__
    return program


def result_of(result: Any, values: Sequence[Any], at: int) -> Any:
    """A result that lies by columns, of these arguments, as the program gives it."""
    return jnp.swapaxes(result, -1, -2) if is_matrix(result.shape, values[0].ndim) else result


def by_columns(columns: Sequence[int]) -> Callable[..., Any]:
    """What forward mode does with each result, and its tangent, to have it as the program gives it."""
    return lambda result, values, at: result_of(result, values, at) if at in columns else result


def as_columns(columns: Sequence[int], results: Sequence[Any], first: Any) -> list[Tensor]:
    """Tensors over a program's results; first: its first argument."""
    rank = len(sizes_of(first))
    return [seen(r) if i in columns and is_matrix(r.shape, rank) else wrap(r) for i, r in enumerate(results)]


def seen(array: Any) -> Tensor:
    """The transpose of an array, as a tensor over its memory."""
    return wrap_strided(array, *geometry(array.shape))


@bounded(4096)
def geometry(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides of a transpose."""
    *batch, rows, columns = sizes
    *steps, step, least = contiguous_strides(sizes)
    return (*batch, columns, rows), (*steps, least, step)
