"""Nested tensors made: of lists, of values and offsets, of parts of dense ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..checks import check
from ..ops.create.ingest import tensor as tensor_of
from ..ops.create.ranges import arange
from ..ops.shape.joining import cat as join
from ..tensor import Tensor
from .layout import NestedTensor, is_jagged, with_values
from .pieces import assembled
from .rows import ragged

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def check_layout(layout: Any) -> None:
    if layout not in (None, dtypes.strided, dtypes.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")


def converted(value: Any, dtype: Any, device: Any) -> Tensor:
    if not isinstance(value, Tensor):
        return tensor_of(value, dtype=dtype, device=device)
    return value if dtype is None and device is None else value.to(device=device, dtype=dtype)


def edges_of(counts: Sequence[int], device: Any) -> Tensor:
    """Offsets of rows of these lengths."""
    edges = [0]
    for n in counts:
        edges.append(edges[-1] + int(n))
    return tensor_of(edges, dtype=dtypes.int64, device=device)


def jagged_of(rows: list[Tensor]) -> Any:
    """A jagged tensor of rows that differ in one size at most."""
    check(bool(rows), "Cannot construct a nested tensor from an empty tensor list")
    first = rows[0]
    check(
        all(row.dtype is first.dtype for row in rows),
        "When constructing a nested tensor, all tensors in list must have the same dtype",
    )
    check(
        all(row.device == first.device for row in rows),
        "When constructing a nested tensor, all tensors in list must be on the same device",
    )
    check(
        all(row.dim() == first.dim() for row in rows),
        "When constructing a nested tensor, all tensors in list must have the same dim",
    )
    check(first.dim() > 0, "Cannot construct a nested tensor from a list of zero-dim tensors")
    differing = [d for d in range(first.dim()) if len({row.shape[d] for row in rows}) > 1]
    check(
        len(differing) < 2,
        "When constructing a nested tensor, all components must have the same size in every dimension but one: only a single "
        "ragged dimension is supported for the jagged layout",
    )
    at = differing[0] if differing else 0
    values = join(rows, at)
    return with_values(values, ragged(edges_of([row.shape[at] for row in rows], values.device)), at + 1)


def nested_tensor(
    tensor_list: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A nested tensor of copies of rows, a leaf. Rows may differ in any size, with `layout=xtensor.jagged` in one.

    Differs from PyTorch: rows may be of lists and numbers for either layout.

    >>> xtensor.nested.nested_tensor([xtensor.ones(2), xtensor.ones(3)])
    nested_tensor([
      tensor([1., 1.]),
      tensor([1., 1., 1.])
    ])
    >>> xtensor.nested.nested_tensor([xtensor.ones(2), xtensor.ones(3)], layout=xtensor.jagged).offsets()
    tensor([0, 2, 5])
    """
    check_layout(layout)
    if layout is dtypes.jagged:
        rows = [converted(row, dtype, device).detach() for row in tensor_list]
        made = jagged_of(rows)
    else:
        if not isinstance(tensor_list, (list, tuple)):
            raise TypeError(
                "Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor"
            )
        made = pieces_of([converted(row, dtype, device).detach() for row in tensor_list], dtype, device)
    return made.requires_grad_() if requires_grad else made


def pieces_of(rows: list[Tensor], dtype: Any, device: Any) -> Any:
    for i, row in enumerate(rows):
        check(
            row.dim() == rows[0].dim(),
            "All Tensors given to nested_tensor must have the same dimension. "
            "Found dimension {} for Tensor at index {} and dimension {} for Tensor at index {}.",
            row.dim(),
            i,
            rows[0].dim(),
            i - 1,
        )
    rows = [row if row.dtype is rows[0].dtype else row.to(rows[0].dtype) for row in rows]
    return assembled(rows, like=tensor_of([], dtype=dtype, device=device))


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Any:
    """A nested tensor of rows, to which gradients go on: a list of them, or a dense tensor whose first dimension counts them.

    >>> a, b = xtensor.ones(2, requires_grad=True), xtensor.ones(3, requires_grad=True)
    >>> (xtensor.nested.as_nested_tensor([a, b], layout=xtensor.jagged) * 2).sum().backward()
    >>> a.grad
    tensor([2., 2.])
    """
    check_layout(layout)
    if not isinstance(ts, (Tensor, list, tuple)):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors "
        )
    if isinstance(ts, NestedTensor):
        check(
            is_jagged(ts) == (layout is dtypes.jagged),
            "as_nested_tensor(): Converting between nested tensor layouts is not supported",
        )
        return ts if dtype is None and device is None else ts.to(device=device, dtype=dtype)
    rows = [converted(row, dtype, device) for row in (ts.unbind() if isinstance(ts, Tensor) else ts)]
    if layout is not dtypes.jagged:
        return pieces_of(rows, dtype, device)
    if isinstance(ts, Tensor):
        whole = converted(ts, dtype, device)
        count, width = int(whole.shape[0]), int(whole.shape[1])
        return with_values(whole.flatten(0, 1), ragged(edges_of([width] * count, whole.device)))
    return jagged_of(rows)


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Any:
    """A jagged tensor over values that lie one row after the other along `jagged_dim` (of the result: 1 where not told).

    offsets: where each row begins, and the end. lengths: how long rows are, where values between them are left out; alone, they
    tell the offsets. The values are shared, and gradients go on to them.

    >>> values, offsets = xtensor.arange(5.0), xtensor.tensor([0, 2, 5])
    >>> xtensor.nested.nested_tensor_from_jagged(values, offsets).unbind()
    (tensor([0., 1.]), tensor([2., 3., 4.]))
    """
    if offsets is None:
        check(
            lengths is not None,
            "nested_tensor_from_jagged(): At least one of offsets or lengths is required.",
        )
        assert lengths is not None
        offsets = join([lengths.new_zeros(1), lengths.cumsum(0).to(lengths.dtype)])
        lengths = None
    at = 1 if jagged_dim is None else jagged_dim
    if at < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {at}.")
    return with_values(values, ragged(offsets, lengths, min_seqlen, max_seqlen), at)


def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: Any = dtypes.strided) -> Any:
    """A nested tensor of a part of each row of a dense one, `start` and `length` one number or one for each row; no copy.

    >>> xtensor.nested.narrow(xtensor.arange(6).view(2, 3), 1, 0, xtensor.tensor([1, 3]), layout=xtensor.jagged).unbind()
    (tensor([0]), tensor([3, 4, 5]))
    """
    if layout is dtypes.strided:
        check(
            not isinstance(start, Tensor) and not isinstance(length, Tensor),
            "start and length must be integers for the strided layout NT impl",
        )
        return as_nested_tensor(tensor.unbind(), layout=dtypes.strided).narrow(dim, start, length)
    check(layout is dtypes.jagged, "Specified layout is unsupported for nested narrow: {}", layout)
    check(dim == 1, "jagged layout only supports dim=1")
    count, width = int(tensor.shape[0]), int(tensor.shape[1])
    place = {"dtype": dtypes.int64, "device": tensor.device}
    starts = start.to(**place) if isinstance(start, Tensor) else tensor_of([start] * count, **place)
    lengths = length.to(**place) if isinstance(length, Tensor) else tensor_of([length] * count, **place)
    begins = arange(0, count * width, width, **place) + starts
    offsets = join([begins, begins[-1:] + lengths[-1:]])
    return with_values(tensor.flatten(0, 1), ragged(offsets, lengths))


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Sequence[int] | None = None, out: Tensor | None = None
) -> Tensor:
    """The dense form of a nested tensor, with a number where rows are shorter than the longest.

    >>> x = xtensor.nested.nested_tensor([xtensor.ones(1), xtensor.ones(3)])
    >>> xtensor.nested.to_padded_tensor(x, 0.0)
    tensor([[1., 0., 0.],
            [1., 1., 1.]])
    """
    source: Any = input
    made = source.to_padded_tensor(padding, output_size)
    return made if out is None else out.copy_(made)


def masked_select(tensor: Tensor, mask: Tensor) -> Any:
    """A jagged tensor of the elements of each row where a mask is True; both have two dimensions.

    >>> x, mask = xtensor.tensor([[1, 2], [3, 4]]), xtensor.tensor([[True, False], [True, True]])
    >>> xtensor.nested.masked_select(x, mask).unbind()
    (tensor([1]), tensor([3, 4]))
    """
    check(
        tensor.layout is dtypes.strided,
        "torch.masked_select requires a strided tensor, got {}",
        tensor.layout,
    )
    check(mask.dim() == 2, "masked_select only support 2-D selections currently")
    kept = mask.expand(tensor.shape) if mask.dim() < tensor.dim() or mask.shape != tensor.shape else mask
    counts = kept.sum(1)
    offsets = join([counts.new_zeros(1), counts.cumsum(0)])
    return with_values(tensor.masked_select(kept), ragged(offsets))
