"""Histograms over one and several dimensions, with weights and as densities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from ... import checks, dtypes
from ...operators.attach import attach_methods
from ...operators.declare import general
from ...operators.functions.overloads import Unfit, overloads
from ...operators.index_bounds import check_values
from ...operators.operator import structure
from ...operators.schema import Array, Arrays
from ...operators.write import write_out
from ...tensor import Tensor, array_of, sizes_of
from ..create.ranges import even_values

if TYPE_CHECKING:
    from ... import return_types

__all__ = ["histogram", "histogramdd"]

Histogram: Any = structure("histogram", ("hist", "bin_edges"))
HistogramDD: Any = structure("histogramdd", ("hist", "bin_edges"))


@general(name="histogram_edges", derivatives=None)
def edges_of(input: Array, bins: tuple[int, ...], range: tuple[float, ...] | None) -> tuple[Array, ...]:
    """The edges of equal bins along each column: of `range`, or from the least to the largest value."""
    made = []
    for i, count in enumerate(bins):
        column = input[:, i]
        if range is not None:
            low, high = (jnp.asarray(v, input.dtype) for v in range[2 * i : 2 * i + 2])
        elif input.shape[0] == 0:
            low, high = jnp.zeros((), input.dtype), jnp.ones((), input.dtype)
        else:
            low, high = jnp.min(column), jnp.max(column)
        half = (low == high) * jnp.asarray(0.5, input.dtype)
        steps = jnp.arange(count + 1, dtype=np.int64)
        low, high = low - half, high + half
        kind = jnp.float32 if input.dtype.itemsize < 4 else input.dtype
        # A divisor that XLA does not know: by a constant it would multiply with the reciprocal.
        parts = jnp.where(low == low, jnp.asarray(max(count, 1), kind), jnp.nan)
        by = (high.astype(kind) - low.astype(kind)) / parts
        made.append(even_values(jnp, steps, low, high, by, count + 1).astype(input.dtype))
    return tuple(made)


@general(name="histogram_counts", derivatives=None)
def counts_of(input: Array, edges: Arrays, weight: Array | None, density: bool) -> Array:
    """The sum of the weights of the rows of `input` in each bin; the last bin along each column holds its upper edge."""
    shape = tuple(e.shape[0] - 1 for e in edges)
    place = jnp.zeros((input.shape[0],), jnp.int64)
    inside = jnp.ones((input.shape[0],), bool)
    for i, e in enumerate(edges):
        x = input[:, i]
        at = jnp.searchsorted(e, x, side="right") - 1
        at = jnp.where(x == e[-1], shape[i] - 1, at)
        inside = inside & (x >= e[0]) & (x <= e[-1])
        place = place * shape[i] + jnp.clip(at, 0, shape[i] - 1)
    wide = jnp.promote_types(input.dtype, jnp.float32)
    ones = jnp.ones(place.shape, wide) if weight is None else weight.astype(wide)
    total = int(np.prod(shape))
    counts = jnp.zeros((total,), wide).at[place].add(jnp.where(inside, ones, 0)).reshape(shape)
    if density:
        counts = counts / jnp.sum(counts)
        for i, e in enumerate(edges):
            width = jnp.diff(e).reshape([-1 if j == i else 1 for j in range(len(shape))])
            counts = counts / width
    return counts.astype(input.dtype)


def checked(input: Tensor, bins: list[Any], limits: Sequence[float] | None, weight: Tensor | None) -> None:
    """What PyTorch refuses; whether the range of the values is finite is seen only where they can be read."""
    own = input.dtype
    ranged = limits is None and any(not isinstance(b, Tensor) for b in bins) and input.numel() > 0
    if not own.is_floating_point or (own.itemsize < 4 and ranged):  # PyTorch finds no range of narrow values
        raise checks.not_implemented_for("histogramdd", own)
    if input.dim() < 2:
        raise RuntimeError(
            f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {input.dim()}"
        )
    columns = sizes_of(input)[-1]
    if len(bins) != columns:
        raise RuntimeError(
            f"torch.histogramdd: expected {columns} sequences of bin edges for a {columns}-dimensional histogram but got "
            f"{len(bins)}"
        )
    for i, b in enumerate(bins):
        if isinstance(b, Tensor):
            if b.dtype is not own:
                raise RuntimeError(
                    "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                    f"{dtypes.c_name(own)} and bins for dimension {i} with dtype {dtypes.c_name(b.dtype)}"
                )
            if b.dim() != 1:
                raise RuntimeError(
                    f"torch.histogramdd: bins tensor should have one dimension, but got {b.dim()} dimensions in the bins "
                    f"tensor for dimension {i}"
                )
            if b.numel() == 0:
                raise RuntimeError(
                    f"torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor "
                    f"for dimension {i}"
                )
        elif b <= 0:
            raise RuntimeError(f"torch.histogramdd(): bins must be > 0, but got {b} for dimension {i}")
    if limits is not None:
        if len(limits) != 2 * columns:
            raise RuntimeError(
                f"torch.histogramdd(): for a {columns}-dimensional histogram range should have {2 * columns} elements, but "
                f"got {len(limits)}"
            )
        for i in range(columns):
            low, high = limits[2 * i : 2 * i + 2]
            if not (np.isfinite(low) and np.isfinite(high)):
                raise RuntimeError(
                    f"torch.histogramdd: dimension {i}'s range [{low:g}, {high:g}] is not finite"
                )
            if low > high:
                raise RuntimeError(
                    "torch.histogramdd: min should not exceed max, but got min "
                    f"{low:g} max {high:g} for dimension {i}"
                )
    elif ranged:

        def without_range(values: np.ndarray[Any, Any]) -> Exception | None:
            for i, column in enumerate(values.reshape(-1, columns).T):
                low, high = column.min(), column.max()
                if not (np.isfinite(low) and np.isfinite(high)):
                    return RuntimeError(
                        f"torch.histogramdd: dimension {i}'s range [{low:g}, {high:g}] is not finite"
                    )
            return None

        check_values(array_of(input), without_range)
    if weight is not None:
        if weight.dtype is not own:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, "
                f"but got input({dtypes.c_name(own)}), and weight({dtypes.c_name(weight.dtype)})"
            )
        if tuple(sizes_of(weight)) != tuple(sizes_of(input))[:-1]:
            raise RuntimeError(
                "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding "
                f"its innermost dimension, but got input with shape {list(sizes_of(input))} and weight with shape "
                f"{list(sizes_of(weight))}"
            )


def counted(
    input: Tensor, bins: list[Any], limits: Sequence[float] | None, weight: Tensor | None, density: bool
) -> tuple[Tensor, list[Tensor]]:
    checked(input, bins, limits, weight)
    if not bins:  # no dimensions: no edges, and nothing is counted
        return input.new_full((), math.nan if density else 0.0), []
    rows = input.reshape((math.prod(sizes_of(input)[:-1]), len(bins)))
    if any(isinstance(b, Tensor) for b in bins):
        edges = list(bins)
    else:
        edges = list(edges_of(rows, tuple(bins), None if limits is None else tuple(map(float, limits))))
    return counts_of(rows, edges, None if weight is None else weight.reshape((-1,)), density), edges


@overloads(
    "Tensor input, Tensor bins, *, Tensor weight = None, bool density = False, tuple of Tensors out = None",
    "Tensor input, int bins = 100, *, tuple of floats range = None, Tensor weight = None, bool density = False, "
    "tuple of Tensors out = None",
)
def histogram(
    input: Tensor,
    bins: int | Tensor = 100,
    *,
    range: tuple[float, float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
    out: Any = None,
) -> return_types.histogram:
    """How many elements (or what weight) lie in each bin, and the edges of the bins.

    Shape: `input` `(*)`; counts `(bins)` and edges `(bins + 1)`.
    bins: their number, of equal width over `range` (from the least to the largest value), or their edges, ascending.

    Raises: NotImplementedError for complex, bool and integer tensors; TypeError for arguments of other kinds.

    Of float16 and bfloat16, `range` or the edges have to be given.

    Differs from PyTorch: narrow floats are summed in float32, so that counts go on above 2,048.
    """
    if (isinstance(bins, Tensor) and range is not None) or not isinstance(bins, Tensor | int):
        raise Unfit
    if not isinstance(input, Tensor):
        raise checks.argument_error("histogram", "input", 1, "Tensor", input)
    if weight is not None:
        weight = weight.reshape((-1,)) if tuple(sizes_of(weight)) == tuple(sizes_of(input)) else weight
    hist, edges = counted(input.reshape((-1, 1)), [bins], range, weight, density)
    if out is None:
        return Histogram(hist, edges[0])
    for target, name, end in ((out[0], "hist", ""), (out[1], "bin_edges", " for dimension 0")):
        if target.dtype is not input.dtype:
            raise RuntimeError(
                f"torch.histogram: input tensor and {name} tensor should have the same dtype, but got input "
                f"{dtypes.c_name(input.dtype)} and {name} {dtypes.c_name(target.dtype)}{end}"
            )
    for target, source in zip(out, (hist, edges[0]), strict=True):
        write_out("histogram", target, source, [])
    return Histogram(*out)


@overloads(
    "Tensor input, int bins, tuple of floats range = None, Tensor weight = None, bool density = False",
    "Tensor input, tuple of ints bins, tuple of floats range = None, Tensor weight = None, bool density = False",
    "Tensor input, tuple of Tensors bins, tuple of floats range = None, Tensor weight = None, bool density = False",
)
def histogramdd(
    input: Tensor,
    bins: int | Sequence[int] | Sequence[Tensor],
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> return_types.histogramdd:
    """How many points (or what weight) lie in each cell of a grid, and the edges along each dimension.

    The last dimension of `input` holds coordinates. `range` is flat: the least and the largest value of each dimension.

    Raises: TypeError for arguments of other kinds; NotImplementedError for complex, bool and integer tensors.
    """
    count = sizes_of(input)[-1] if input.dim() else 0
    given = [bins] * count if isinstance(bins, int) else list(bins)
    hist, edges = counted(input, given, range, weight, density)
    return HistogramDD(hist, tuple(edges))


attach_methods(histogram)
