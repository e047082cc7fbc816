"""Tensors of one value: `zeros`, `ones`, `full`, `empty`, and their `_like` and `new_` forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import checks, devices, dtypes, geometry
from ...engine import modes
from ...lowering.sharded import follow
from ...operators.attach import attach_methods, named
from ...operators.functions.overloads import overloads
from ...operators.options import (
    check_layout,
    check_legacy_device,
    check_sizes,
    filled,
    finish,
    format_name,
    into_out,
    like_strides,
    number_array,
    pick_device,
    pick_dtype,
    pick_sizes,
    python_number,
)
from ...operators.write import write_out
from ...tensor import Size, Tensor
from ...xla.levels import KINDS
from ...xla.transformed import still_batched

__all__ = [
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


empty_in_layout: Callable[[Any, tuple[int, ...], Any, Any], Tensor] | None = None
"""A tensor without elements in a layout that is not strided, of these sizes, dtype and device; set by the package of sparse tensors."""


def in_layout(
    function: str, layout: Any, sizes: tuple[int, ...], value: Any, dtype: Any, device: Any, grad: Any
) -> Tensor | None:
    """Zeros in a layout that is not strided; None where `layout` is."""
    if layout is dtypes.strided:
        return None
    if not isinstance(layout, dtypes.layout) or empty_in_layout is None or value != 0:
        check_layout(function, layout)
    assert empty_in_layout is not None
    made = empty_in_layout(layout, tuple(sizes), dtype, device)
    return made if grad is False else finish(function, made, grad)


def make(
    function: str,
    args: tuple[Any, ...],
    size: Any,
    value: Any,
    out: Tensor | None,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: Any,
    memory_format: Any = None,
) -> Tensor:
    """The body of `zeros`, `ones` and `empty`."""
    sizes = pick_sizes(function, args, size)
    if layout is not None:
        if out is not None and layout is not out.layout:
            kind = str(layout).partition(".")[2].partition("_")[0].capitalize()
            raise RuntimeError(f"layout {kind} does not match layout of out parameter (Strided)")
        other = in_layout(function, layout, sizes, value, dtype, device, requires_grad)
        if other is not None:
            return other
    if out is not None:
        dtype, device = into_out(function, out, dtype, device)
        if out.is_sparse:
            if value != 0:
                raise RuntimeError("full(...) is not implemented for sparse layout")
            made: Any = out
            made.sparse_resize_and_clear_(sizes, len(sizes), 0)
            return made if requires_grad is False else finish(function, made, requires_grad)
    chosen, place = pick_dtype(function, dtype), pick_device(function, device)
    strides = None
    if memory_format is not None and memory_format is not dtypes.contiguous_format:
        strides = geometry.format_strides(sizes, format_name(memory_format))
    made = filled(sizes, chosen, place, value, strides)
    if out is not None:
        write_out(function, out, made, [])
        made = out
    return made if requires_grad is False else finish(function, made, requires_grad)


def zeros(
    *args: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of zeros, of the sizes given one by one or as a sequence.

    Shape: the sizes given.

    Raises: RuntimeError for negative sizes.

    >>> xtensor.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return make("zeros", args, size, 0, out, dtype, layout, device, requires_grad)


def ones(
    *args: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones, of the sizes given one by one or as a sequence.

    Shape: the sizes given.

    Raises: RuntimeError for negative sizes.

    >>> xtensor.ones(2, 3, dtype=xtensor.int64)
    tensor([[1, 1, 1],
            [1, 1, 1]])
    """
    return make("ones", args, size, 1, out, dtype, layout, device, requires_grad)


class Uninitialized:
    """Whether what is left uninitialized is marked instead, as `use_deterministic_algorithms` asks."""

    deterministic = False
    filled = True


def unset(made: Tensor) -> Tensor:
    """A tensor whose values were not asked for: as it is, or marked by NaN, True or the greatest integer."""
    if not (Uninitialized.deterministic and Uninitialized.filled):
        return made
    kind = made.dtype
    mark = float("nan") if kind.is_floating_point or kind.is_complex else True
    with modes.no_grad():
        return made.fill_(np.iinfo(kind.numpy).max if kind.is_integral else mark)


def empty(
    *args: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: dtypes.memory_format | None = None,
) -> Tensor:
    """A tensor whose values are nobody's business.

    Differs from PyTorch: they are zero, unless `use_deterministic_algorithms` marks them as it does there.

    Shape: the sizes given.

    Raises: RuntimeError for negative sizes.

    >>> xtensor.empty(2, 3).shape
    xtensor.Size([2, 3])
    """
    return unset(make("empty", args, size, 0, out, dtype, layout, device, requires_grad, memory_format))


def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    out: Tensor | None = None,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of one value, whose kind gives the dtype (bool, int64, the default float or complex).

    Shape: `size`.

    Raises: RuntimeError for negative sizes.

    >>> xtensor.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if not isinstance(size, (list, tuple)):
        raise checks.argument_error("full", "size", 1, "tuple of ints", size)
    sizes = pick_sizes("full", (size,))
    value = python_number("full", "fill_value", 2, fill_value)
    check_layout("full", layout)
    dtype, device = into_out("full", out, dtype, device)
    chosen = pick_dtype("full", dtype, dtypes.scalar_dtype(value))
    made = filled(sizes, chosen, pick_device("full", device), number_array(value, chosen))
    if out is not None:
        write_out("full", out, made, [])
        made = out
    return finish("full", made, requires_grad)


# ---- like another --------------------------------------------------------------------------------------------------


def make_like(
    function: str,
    input: Any,
    value: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: Any,
    memory_format: Any,
) -> Tensor:
    """The body of the `_like` functions; `value` is 0, 1 or a Python number in a tuple."""
    if not isinstance(input, Tensor):
        raise checks.argument_error(function, "input", 1, "Tensor", input)
    chosen = input.dtype if dtype is None else pick_dtype(function, dtype)
    place = input.device if device is None else pick_device(function, device)
    if layout is not None:
        other = in_layout(function, layout, tuple(input.shape), value, chosen, place, requires_grad)
        if other is not None:
            return other
    if type(value) is tuple:
        value = number_array(value[0], chosen)
    made = filled(tuple(input.shape), chosen, place, value, like_strides(input, memory_format))
    if type(input._xt_storage.raw) in KINDS:
        as_batched(input, made)
    if place.sharding is not None:
        follow(made._xt_storage, input._xt_storage)
    return made if requires_grad is False else finish(function, made, requires_grad)


def zeros_like(
    input: Tensor,
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: dtypes.memory_format | None = dtypes.preserve_format,
) -> Tensor:
    """Zeros with the sizes, dtype, device and order of dimensions of `input`.

    Shape: that of `input`.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.zeros_like(xtensor.tensor([1, 2]))
    tensor([0, 0])
    """
    return make_like("zeros_like", input, 0, dtype, layout, device, requires_grad, memory_format)


def ones_like(
    input: Tensor,
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: dtypes.memory_format | None = dtypes.preserve_format,
) -> Tensor:
    """Ones with the sizes, dtype, device and order of dimensions of `input`.

    Shape: that of `input`.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.ones_like(xtensor.tensor([1.0, 2.0]))
    tensor([1., 1.])
    """
    return make_like("ones_like", input, 1, dtype, layout, device, requires_grad, memory_format)


def empty_like(
    input: Tensor,
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: dtypes.memory_format | None = dtypes.preserve_format,
) -> Tensor:
    """A tensor with the sizes, dtype, device and order of dimensions of `input`; its values are zeros.

    Raises: TypeError for arguments of other kinds; NotImplementedError for another layout.

    >>> xtensor.empty_like(xtensor.ones(2, 3)).shape
    xtensor.Size([2, 3])
    """
    if isinstance(layout, dtypes.layout) and layout is not dtypes.strided:
        kind = "Sparse" if layout is dtypes.sparse_coo else "SparseCsr"
        raise NotImplementedError(
            f"Could not run 'aten::empty_strided' with arguments from the '{kind}CPU' backend."
        )
    return unset(make_like("empty_like", input, 0, dtype, layout, device, requires_grad, memory_format))


def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: dtypes.memory_format | None = dtypes.preserve_format,
) -> Tensor:
    """One value with the sizes, dtype, device and order of dimensions of `input`.

    Shape: that of `input`.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.full_like(xtensor.tensor([1.0, 2.0]), 9)
    tensor([9., 9.])
    """
    value = (python_number("full_like", "fill_value", 2, fill_value),)
    return make_like("full_like", input, value, dtype, layout, device, requires_grad, memory_format)


# ---- methods of a tensor, whose dtype and device they take ---------------------------------------------------------


def make_new(
    function: str,
    self: Tensor,
    sizes: tuple[int, ...],
    value: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    requires_grad: Any,
) -> Tensor:
    chosen = self.dtype if dtype is None else pick_dtype(function, dtype)
    place = self.device if device is None else pick_device(function, device)
    if layout is not None:
        other = in_layout(function, layout, sizes, value, chosen, place, requires_grad)
        if other is not None:
            return other
    if type(value) is tuple:
        value = number_array(value[0], chosen)
    made = filled(sizes, chosen, place, value)
    if type(self._xt_storage.raw) in KINDS:
        as_batched(self, made)
    return finish(function, made, requires_grad)


def as_batched(like: Tensor, made: Tensor) -> None:
    """Give every sample of a batch, which `like` is, new values of its own: they may be written."""
    made._xt_storage.array = still_batched(like._xt_storage.array, made._xt_storage.array)


def new_of(name: str, value: int, doc: str) -> Any:
    """A method that makes tensors of one value."""

    def made_new(
        self: Tensor,
        *args: Any,
        size: Sequence[int] | None = None,
        dtype: dtypes.dtype | None = None,
        layout: dtypes.layout | None = None,
        device: devices.DeviceLike = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Tensor:
        sizes = pick_sizes(name, args, size)
        return make_new(name, self, sizes, value, dtype, layout, device, requires_grad)

    shown = f">>> xtensor.ones(1).{name}(2)\ntensor([{value}., {value}.])"
    refused = "\n\nRaises: RuntimeError for negative sizes."
    return named(made_new, name, f"{doc}\n\nShape: result that of `size`.{refused}\n\n{shown}")


new_zeros = new_of("new_zeros", 0, "Zeros of the sizes given, with this tensor's dtype and device.")
new_ones = new_of("new_ones", 1, "Ones of the sizes given, with this tensor's dtype and device.")
new_empty = new_of(
    "new_empty", 0, "A tensor of the sizes given, with this tensor's dtype and device; its values are zeros."
)


def new_full(
    self: Tensor,
    size: Sequence[int],
    fill_value: Any,
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """One value in the sizes given, with this tensor's dtype and device.

    Shape: result that of `size`.

    Raises: RuntimeError for negative sizes.

    >>> xtensor.ones(1).new_full((2,), 7)
    tensor([7., 7.])
    """
    if not isinstance(size, (list, tuple)):
        raise checks.argument_error("new_full", "size", 1, "tuple of ints", size)
    value = (python_number("new_full", "fill_value", 2, fill_value),)
    sizes = pick_sizes("new_full", (size,))
    return make_new("new_full", self, sizes, value, dtype, layout, device, requires_grad)


@overloads(
    "*, device device = None",
    "Storage storage",
    "Tensor other",
    "tuple of ints size, *, device device = None",
    "object data, *, device device = None",
)
def new(self: Tensor, *args: Any, size: Any = None, device: devices.DeviceLike = None) -> Tensor:
    """A tensor of this one's dtype and device, from sizes or from values: the older spelling of `new_empty`.

    Shape: result that of the sizes or values given; `(0)` without.

    Raises: TypeError for arguments of other kinds; RuntimeError for negative sizes; TypeError for values of other
    kinds.
    """
    if args and isinstance(args[0], Tensor) and device is not None:
        raise RuntimeError(
            "Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use torch.as_tensor(...) "
            "instead."
        )
    check_legacy_device(device, self.device)
    if not args:
        return new_empty(self, (0,) if size is None else size, device=device)
    first = args[0]
    if len(args) == 1 and isinstance(first, Tensor):
        if first.dtype is not self.dtype or first.device != self.device:
            raise TypeError(f"expected {checks.tensor_type(self)} (got {checks.tensor_type(first)})")
        return first.detach()
    if len(args) == 1 and not isinstance(first, (int, Size)):
        return self.new_tensor(first, device=device)
    return new_empty(self, *args, device=device)


# ---- with strides --------------------------------------------------------------------------------------------------


def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor with these sizes and strides; its values are zeros."""
    sizes, strides = tuple([int(n) for n in size]), tuple([int(n) for n in stride])
    if len(sizes) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(sizes)}) must match dimensionality of strides ({len(strides)})"
        )
    check_sizes("empty_strided", sizes)
    if any(n < 0 for n in strides):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(sizes)} and strides={list(strides)}"
        )
    chosen, place = pick_dtype("empty_strided", dtype), pick_device("empty_strided", device)
    return unset(finish("empty_strided", filled(sizes, chosen, place, 0, strides), requires_grad))


def new_empty_strided(
    self: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """As `empty_strided`, with this tensor's dtype and device.

    Shape: result that of `size`.

    Raises: RuntimeError for negative sizes or strides, and where there is not one stride for each size.
    """
    return empty_strided(
        size, stride, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )


def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: dtypes.dtype | None = None,
    layout: dtypes.layout | None = None,
    device: devices.DeviceLike = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor whose dimensions lie in memory in the order `physical_layout`, slowest first; its values are zeros."""
    sizes, order = tuple(size), tuple(physical_layout)
    if len(sizes) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(sizes)} is not equal to len(physical_layout) = {len(order)}"
        )
    for i, dim in enumerate(order):
        if not 0 <= dim < len(sizes):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(sizes) - 1}, but got {dim} at index {i}). "
                "NB: negative dims not currently supported; file an issue if you want it."
            )
        if dim in order[:i]:
            raise RuntimeError("Duplicate dim not allowed")
    packed = geometry.contiguous_strides(tuple([sizes[d] for d in order]))
    strides = [0] * len(sizes)
    for dim, stride in zip(order, packed, strict=True):
        strides[dim] = stride
    return empty_strided(sizes, strides, dtype=dtype, device=device, requires_grad=requires_grad)


attach_methods(new, new_empty, new_empty_strided, new_full, new_ones, new_zeros)
