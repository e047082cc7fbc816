"""Results of `vmap` that lie in the memory of its arguments, as views of them.

The samples of an argument have a contiguous memory of their own, (S1, ..., Sn). A view of them is taken back by reading its
offset and its strides as steps along these dimensions: where no step carries over from one dimension to another, the same steps
in the argument's own strides make the same view of the argument.
"""

from __future__ import annotations

import math

from ..engine import no_grad
from ..geometry import contiguous_strides
from ..ops.shape.reinterpret import view_as_complex, view_as_real
from ..tensor import Tensor, asks_grad, sizes_of, strides_of
from ..xla.levels import KINDS

__all__ = ["view_of"]


def view_of(leaf: Tensor, dim: int, inner: Tensor, result: Tensor, place: int) -> Tensor | None:
    """The view of `leaf`, whose samples along `dim` are `inner`, that has those of `result` along `place`; None where it is no
    view of theirs.
    """
    own = tuple(sizes_of(result)), tuple(strides_of(result))
    sizes = tuple([n for i, n in enumerate(sizes_of(leaf)) if i != dim])
    if result is inner and own == (sizes, contiguous_strides(sizes)):
        return leaf if place == dim else leaf.movedim(dim, place)
    viewed = result is inner or result._base is inner
    if result.is_conj() or result.is_neg():
        return None
    if not viewed and (asks_grad(result) or type(leaf._xt_storage.raw) in KINDS):
        return None
    base = leaf if viewed else leaf.detach()
    if result.dtype is not inner.dtype:
        if inner.is_complex() and not result.is_complex():
            base = view_as_real(base)
        elif result.is_complex() and dim != leaf.dim() - 1 and leaf.stride(-1) == 1:
            base = view_as_complex(base)
        else:
            return None
    geometry = taken_back(base, dim, *own, result.storage_offset())
    if geometry is None:
        return None
    shape, strides, offset = geometry
    shape.insert(place, base.shape[dim])
    strides.insert(place, base.stride(dim))
    if viewed and not asks_grad(result):
        with no_grad():
            return base.as_strided(shape, strides, offset)
    return base.as_strided(shape, strides, offset)


def taken_back(
    base: Tensor, dim: int, sizes: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> tuple[list[int], list[int], int] | None:
    """Sizes, strides and offset in the memory of `base` of a view of its samples; None where its steps carry over."""
    groups: list[tuple[int, int]] = []
    for i, (size, stride) in enumerate(zip(sizes_of(base), strides_of(base), strict=True)):
        if i == dim or size == 1:
            continue
        if groups and groups[-1][1] == size * stride:  # one dimension, seen from the memory
            groups[-1] = (groups[-1][0] * size, stride)
        else:
            groups.append((size, stride))
    if 0 in sizes:
        return list(sizes), list(strides), base.storage_offset()
    last = [0] * len(groups)

    def steps(distance: int, count: int) -> int | None:
        """What `distance` elements of the samples' memory are in that of `base`, taken `count` times from what was reached."""
        units = math.prod([size for size, _ in groups])
        found = 0
        for i, (size, stride) in enumerate(groups):
            units //= size
            step, distance = divmod(distance, units)
            last[i] += step * count
            if last[i] >= size:
                return None
            found += step * stride
        return found if distance == 0 else None

    start = steps(offset, 1)
    moved = [
        steps(stride, size - 1) if size > 1 else stride for size, stride in zip(sizes, strides, strict=True)
    ]
    if start is None or None in moved:
        return None
    return list(sizes), [s for s in moved if s is not None], base.storage_offset() + start
