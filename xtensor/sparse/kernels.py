"""Products with sparse matrices on XLA: gathers and sums over rows of bounded length.

XLA's scatter on a CPU takes one element after another; a loop over the places of rows, each a gather of as many rows as there are,
takes a fifth of the time and needs no memory for all products at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ..xla.cache import bounded
from ..xla.x64 import jit

__all__ = ["merged_sum", "sampled", "spread"]


def accumulated(dtype: Any) -> Any:
    """The dtype that products of a dtype are summed in."""
    return jnp.float32 if dtype in (jnp.float16, jnp.bfloat16) else dtype


@jit
def spread(values: Any, dense: Any, slots: Any, columns: Any) -> Any:
    """For each row of bounded length the sum of its elements times rows of `dense`: `(rows, n)`."""
    kind = accumulated(values.dtype)
    padded = jnp.concatenate([values, jnp.zeros((1,), values.dtype)])

    def step(k: Any, total: Any) -> Any:
        factor = padded[slots[:, k]]
        # What no element fills stays out, whatever the dense matrix holds there.
        rows = jnp.where((slots[:, k] < values.shape[0])[:, None], dense[columns[:, k]], 0)
        return total + factor[:, None].astype(kind) * rows.astype(kind)

    start = jnp.zeros((slots.shape[0], dense.shape[1]), kind)
    return jax.lax.fori_loop(0, slots.shape[1], step, start)


@bounded(256)
def merged_sum(count: int) -> Callable[..., Any]:
    """The program of sums of parts by row, `rows` in order, of `count` rows: a program's calls are told apart by arrays alone."""

    @jit
    def merged(parts: Any, rows: Any) -> Any:
        return jax.ops.segment_sum(parts, rows, num_segments=count, indices_are_sorted=True)

    return merged


@bounded(256)
def sampled(count: int) -> Callable[..., Any]:
    """The program of, for each of `count` elements, the product of a row of `first` and a row of `second`: its row's and its column's."""

    @jit
    def samples(first: Any, second: Any, slots: Any, rows: Any, columns: Any) -> Any:
        kind = accumulated(first.dtype)
        grid = first if rows is None else first[rows]

        def step(k: Any, found: Any) -> Any:
            return found.at[k].set((grid.astype(kind) * second[columns[:, k]].astype(kind)).sum(1))

        start = jnp.zeros((slots.shape[1], slots.shape[0]), kind)
        products = jax.lax.fori_loop(0, slots.shape[1], step, start)
        made = jnp.zeros((count + 1,), kind).at[slots.reshape(-1)].set(products.T.reshape(-1))
        return made[:-1].astype(first.dtype)

    return samples
