"""Numerical gradients of values on a grid, by second-order differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import checks
from ...operators.functions.overloads import overloads
from ...tensor import Tensor, sizes_of
from ..shape.joining import cat

__all__ = ["gradient"]


def differences(x: Tensor, dim: int, spacing: Any, edge_order: int) -> Tensor:
    """The slope along one dimension: central inside, one-sided of the given order at the ends."""
    n = sizes_of(x)[dim]

    def at(start: int, length: int) -> Tensor:
        return x.narrow(dim, start, length)

    if not isinstance(spacing, Tensor):
        inner = (at(2, n - 2) - at(0, n - 2)) / (2 * spacing)
        if edge_order == 1:
            first, last = (at(1, 1) - at(0, 1)) / spacing, (at(n - 1, 1) - at(n - 2, 1)) / spacing
        else:
            first = (at(0, 1) * -1.5 + at(1, 1) * 2 - at(2, 1) * 0.5) / spacing
            last = (at(n - 3, 1) * 0.5 - at(n - 2, 1) * 2 + at(n - 1, 1) * 1.5) / spacing
        return cat((first, inner, last), dim)
    shape = [1] * x.dim()
    shape[dim] = -1
    steps = spacing.diff().reshape(tuple(shape))

    def step(start: int, length: int) -> Tensor:
        return steps.narrow(dim, start, length)

    before, after = step(0, n - 2), step(1, n - 2)
    both = before + after
    inner = (
        at(0, n - 2) * (-after / (before * both))
        + at(1, n - 2) * ((after - before) / (before * after))
        + at(2, n - 2) * (before / (after * both))
    )
    if edge_order == 1:
        first = (at(1, 1) - at(0, 1)) / step(0, 1)
        last = (at(n - 1, 1) - at(n - 2, 1)) / step(n - 2, 1)
        return cat((first, inner, last), dim)
    a, b = step(0, 1), step(1, 1)
    first = (
        at(0, 1) * (-(2 * a + b) / (a * (a + b)))
        + at(1, 1) * ((a + b) / (a * b))
        + at(2, 1) * (-a / (b * (a + b)))
    )
    a, b = step(n - 3, 1), step(n - 2, 1)
    last = (
        at(n - 3, 1) * (b / (a * (a + b)))
        + at(n - 2, 1) * (-(a + b) / (a * b))
        + at(n - 1, 1) * ((2 * b + a) / (b * (a + b)))
    )
    return cat((first, inner, last), dim)


@overloads(
    "Tensor input, *, tuple of ints dim, int edge_order = 1",
    "Tensor input, *, Number spacing, tuple of ints dim, int edge_order = 1",
    "Tensor input, *, Number spacing = None, int dim = None, int edge_order = 1",
    "Tensor input, *, tuple of Scalars spacing, int dim = None, int edge_order = 1",
    "Tensor input, *, tuple of Scalars spacing, tuple of ints dim, int edge_order = 1",
    "Tensor input, *, tuple of Tensors spacing, int dim = None, int edge_order = 1",
    "Tensor input, *, tuple of Tensors spacing, tuple of ints dim, int edge_order = 1",
)
def gradient(
    input: Tensor,
    *,
    spacing: float | Tensor | Sequence[float] | Sequence[Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """The slopes of values on a grid along the dimensions `dim` (all): one tensor for each.

    spacing: the distance between points (1), a distance for each dimension, or the coordinates along each.
    edge_order: 1 or 2, the order of the one-sided differences at the ends.

    Raises: TypeError for arguments of other kinds; IndexError where `dim` is out of range; RuntimeError for bool
    tensors.
    """
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    ndim = input.dim()
    dims = tuple(range(ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if isinstance(spacing, (list, tuple)):
        if dim is None and len(spacing) != ndim:
            raise RuntimeError(
                f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = "
                f"{ndim}', since dim argument was not given, but got a list of length {len(spacing)}"
            )
        if len(spacing) != len(dims):
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have "
                f"the same length, but got a spacing argument of length {len(spacing)} and a dim argument of length "
                f"{len(dims)}."
            )
        spacings: list[Any] = list(spacing)
    else:
        spacings = [1.0 if spacing is None else spacing] * len(dims)
    wrapped = [checks.wrap_dim(d, ndim) for d in dims]
    if len(set(wrapped)) != len(wrapped):
        repeated = next(d for d in wrapped if wrapped.count(d) > 1)
        raise RuntimeError(f"dim {repeated} appears multiple times in the list of dims")
    for d, step in zip(wrapped, spacings, strict=True):
        size = sizes_of(input)[d] if ndim else 1
        if size < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
        if isinstance(step, Tensor) and step.device != input.device:
            raise RuntimeError(
                "torch.gradient expected each tensor to be on the same device, but got devices "
                f"{input.device} and {step.device}!"
            )
        if isinstance(step, Tensor) and step.dim():
            if step.dim() != 1:
                raise RuntimeError(
                    f"torch.gradient expected each element of spacing to have one dimension, but got an element with "
                    f"{step.dim()} dimensions!"
                )
            if step.numel() != size:
                raise RuntimeError(
                    "torch.gradient expected each element to have the same number of coordinates as the dimension of self"
                    f" that it is for, but got {step.numel()} for a dimension of size {size}"
                )
    return tuple(
        [
            differences(
                input, d, step.item() if isinstance(step, Tensor) and not step.dim() else step, edge_order
            )
            for d, step in zip(wrapped, spacings, strict=True)
        ]
    )
