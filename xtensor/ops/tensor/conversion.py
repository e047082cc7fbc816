"""Copies and conversions: `to`, `type`, `clone`, `contiguous`, `copy_`, `fill_`, the dtype and device shorthands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray

from ... import checks, devices, dtypes, geometry, lowering
from ...engine import anomaly, modes, profiler
from ...engine.graph import Node, next_sequence_nr
from ...host.writes import host_room, is_small, values_for, write_host
from ...operators.attach import attach_methods
from ...operators.below.dispatching import asked_about, dispatching
from ...operators.declare import pointwise
from ...operators.dispatch import complete, form_of
from ...operators.inplace import check_inplace, rebase
from ...operators.levels.crossing import crossed, levels_beyond
from ...operators.operator import REGISTRY
from ...operators.options import (
    PYTHON_TYPES,
    constant,
    format_name,
    number_array,
    pick_device,
    pick_dtype,
    python_number,
    storing,
)
from ...operators.reading import operand_of
from ...operators.recording import edges_to, noted, recorded
from ...operators.schema import Array, Operand
from ...operators.write import (
    bump,
    cast,
    check_no_overlap,
    check_writable,
    convert,
    refuse_captured,
    rewrite,
    store,
)
from ...storage import MetaArray, Storage, births, commit
from ...tensor import (
    ARRAY,
    Tensor,
    View,
    alias,
    array_of,
    asks_grad,
    counter_of,
    edge_of,
    operands_array,
    plain_edge,
    recipe_of,
    sizes_of,
    strides_of,
    wrap,
    wrap_strided,
)
from ...xla.cache import bounded
from ...xla.levels import KINDS
from ...xla.number_arrays import operand
from ...xla.pending import settled
from ...xla.transformed import refuse_batch, refuse_draws, still_batched
from ...xla.x64 import call, jit

__all__ = ["clone", "fill", "zero_"]

new = object.__new__


# ---- conversion of dtype -------------------------------------------------------------------------------------------


@pointwise(
    name="_to_copy",
    node="ToCopy",
    derivatives=dict(input=lambda grad: grad),
    inplace=False,
    method=False,
    out=False,
)
def to_copy(input: Array, *, dtype: Any) -> Array:
    """`input` converted to another dtype; gradients are converted back."""
    return convert(input, dtype.numpy)


class TransferNode(Node):
    """The node of a copy to another device: gradients go back to where the input was."""

    __slots__ = ("aval", "place")
    aval: Any
    place: devices.device

    @property
    def _xt_device(self) -> devices.device:
        """Where its results go: tells the engine that a graph spans devices."""
        return self.place

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def name(self) -> str:
        return "ToCopyBackward0"

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        (grad,) = grads
        return (None if grad is None else grad.to(self.place),)


def transfer(input: Tensor, place: devices.device) -> Tensor:
    """A copy of `input` on another device, its memory in the same order."""
    array, strides = memory_array(input)
    if place.type == "meta":
        moved: Any = MetaArray(array.shape, array.dtype)
    elif type(array) is MetaArray:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    else:
        moved = devices.move(settled(array), place)
    made = wrap(moved) if strides is None else wrap_strided(moved, tuple(sizes_of(input)), strides)
    if (edges := edges_to((input,))) is None:
        return made
    node = TransferNode(edges)
    node.aval, node.place = ShapedArray(tuple(sizes_of(input)), array.dtype), input.device
    return recorded(made, node)


def memory_array(input: Tensor) -> tuple[Any, tuple[int, ...] | None]:
    """The values in the order in which a copy lays them out, and its strides (None: row-major)."""
    view = input._xt_view
    if view is None:
        return input._xt_storage.array, None
    sizes = view.sizes
    strides = geometry.preserve_strides(sizes, view.strides)
    if strides == geometry.contiguous_strides(sizes):
        return operands_array(input), None
    return ordered_array(input, strides), strides


def ordered_array(input: Tensor, strides: tuple[int, ...]) -> Any:
    """The values as an array whose dimensions are sorted from the slowest to the fastest of `strides`."""
    sizes, own = tuple(sizes_of(input)), strides_of(input)
    order = sorted(range(len(sizes)), key=lambda d: (-strides[d], sizes[d] != 1, d))
    turned = alias(
        input, tuple([sizes[d] for d in order]), tuple([own[d] for d in order]), input.storage_offset()
    )
    return operands_array(turned)


def converted(input: Tensor, dtype: dtypes.dtype) -> Tensor:
    """A copy of another dtype, with the strides that `preserve_format` gives (of empty tensors and sizes of one too)."""
    if type(dtype) is not dtypes.dtype:
        return storing.converted(input, dtype)
    made = to_copy(input, dtype=dtype)
    if input._xt_view is not None:
        sizes, have = tuple(sizes_of(made)), tuple(strides_of(made))
        want = geometry.preserve_strides(sizes, tuple(strides_of(input)))
        free = 0 in sizes
        if have != want and all(free or a == b or n == 1 for n, a, b in zip(sizes, have, want, strict=True)):
            made._pin_geometry()
            assert made._xt_view is not None
            made._xt_view.strides = want
    return made


def suggested(tensor: Tensor) -> dtypes.memory_format:
    """The memory format that a tensor's strides tell of; where they tell of several, the contiguous one."""
    sizes = tuple(sizes_of(tensor))
    if geometry.channels_last_order(sizes, tuple(strides_of(tensor))) is None:
        return dtypes.contiguous_format
    return dtypes.channels_last if len(sizes) == 4 else dtypes.channels_last_3d


def change(
    input: Tensor, dtype: dtypes.dtype, place: devices.device, copy: bool, memory_format: Any
) -> Tensor:
    """The body of `to`: itself where nothing is asked for, else a differentiable copy."""
    same_place = devices.same(place, input.device)
    preserve = memory_format is None or memory_format is dtypes.preserve_format
    if same_place and dtype is input.dtype:
        if not copy and (preserve or suggested(input) is memory_format):
            return input
        return clone(input, memory_format=memory_format)
    result = input
    # Convert where there is less to move.
    if dtype is not input.dtype and (same_place or dtype.itemsize < input.dtype.itemsize):
        result = converted(result, dtype)
    if not same_place:
        result = transfer(result, place)
    if dtype is not result.dtype:
        result = converted(result, dtype)
    return result if preserve else contiguous(result, memory_format=memory_format)


TO_SIGNATURES = (
    (
        "xtensor.device device = None, xtensor.dtype dtype = None, bool non_blocking = False, bool copy = False, *, "
        "xtensor.memory_format memory_format = None"
    ),
    "xtensor.dtype dtype, bool non_blocking = False, bool copy = False, *, xtensor.memory_format memory_format = None",
    "Tensor tensor, bool non_blocking = False, bool copy = False, *, xtensor.memory_format memory_format = None",
)


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The tensor with another dtype or on another device, given by name or by a tensor that has them.

    Shape: that of the tensor itself.
    Itself where both are right already, unless `copy`. Gradients flow back to the original dtype and device.

    Raises: RuntimeError for a device that is none.

    >>> xtensor.ones(2).to(xtensor.int64)
    tensor([1, 1])
    """
    if len(args) == 1 and not kwargs and type(args[0]) is dtypes.dtype:
        return self if args[0] is self.dtype else converted(self, args[0])
    dtype, place, copy, memory_format = parse_to(args, kwargs)
    return change(self, dtype or self.dtype, place or self.device, copy, memory_format)


TO_SPELLINGS = (
    ("device", "dtype", "non_blocking", "copy"),
    ("dtype", "non_blocking", "copy"),
    ("tensor", "non_blocking", "copy"),
)
TO_KINDS: dict[str, Callable[[Any], bool]] = {
    "device": lambda v: v is None or isinstance(v, (str, devices.device)) or type(v) is int,
    "dtype": lambda v: (
        v is None or isinstance(v, dtypes.dtype) or (isinstance(v, type) and v in PYTHON_TYPES)
    ),
    "tensor": lambda v: isinstance(v, Tensor),
    "non_blocking": lambda v: isinstance(v, bool),
    "copy": lambda v: isinstance(v, bool),
    "memory_format": lambda v: v is None or isinstance(v, dtypes.memory_format),
}


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """The arguments of `to` as `(dtype, device, copy, memory_format)`; what is not given is None."""
    for names in TO_SPELLINGS:
        given = dict(zip(names, args, strict=False))
        if (
            len(args) > len(names)
            or given.keys() & kwargs.keys()
            or kwargs.keys() - {*names, "memory_format"}
        ):
            continue
        given.update(kwargs)
        required = names[0] == "device" or given.get(names[0]) is not None
        if required and all(TO_KINDS[name](value) for name, value in given.items()):
            break
    else:
        raise checks.combination_error("to", args, kwargs, TO_SIGNATURES)
    place, dtype = given.get("device"), given.get("dtype")
    source = given.get("tensor")
    if source is not None:
        place, dtype = source.device, source.dtype
    return (
        None if dtype is None else pick_dtype("to", dtype),
        None if place is None else pick_device("to", place),
        given.get("copy", False),
        given.get("memory_format"),
    )


def dtype_method(name: str, dtype: dtypes.dtype) -> Callable[..., Tensor]:
    """The method that converts to one dtype, such as `float()`."""

    def method(self: Tensor, *, memory_format: dtypes.memory_format | None = None) -> Tensor:
        if memory_format is not None:
            return change(self, dtype, self.device, False, memory_format)
        return self if self.dtype is dtype else converted(self, dtype)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (
        f"The tensor as {dtype}; itself where it is that already.\n\nShape: that of the tensor itself.\n\n"
        "Raises: RuntimeError for a memory format of another number of dimensions.\n\n"
        f">>> xtensor.tensor([0, 1]).{name}().dtype\n{dtype}"
    )
    return method


def device_method(name: str) -> Callable[..., Tensor]:
    """The method that moves to one kind of device, such as `cuda()`."""

    def method(
        self: Tensor,
        device: devices.DeviceLike = None,
        non_blocking: bool = False,
        memory_format: dtypes.memory_format | None = None,
    ) -> Tensor:
        if device is None:
            place = devices.device(name) if name == "cpu" or self.device.type != name else self.device
        else:
            place = devices.device(name, device) if isinstance(device, int) else devices.resolve(device)
        if place.type != name and name != "gpu" and devices.redirected(name) is not place:
            raise RuntimeError(f"Invalid device, must be {name} device")
        return change(self, self.dtype, place, False, memory_format)

    method.__name__ = method.__qualname__ = name
    moved = "x.cpu()" if name == "cpu" else f"(x.{name}() if xtensor.{name}.is_available() else x)"
    shown = "" if name == "tpu" else f"\n\n>>> x = xtensor.ones(2)\n>>> {moved}.tolist()\n[1.0, 1.0]"
    refused = "\n\nRaises: RuntimeError where there is no such device; NotImplementedError for meta tensors."
    method.__doc__ = f"The tensor on the {name} device; itself where it is there already.\n\nShape: that of the tensor itself.{refused}{shown}"
    return method


def type_method(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type (`xtensor.FloatTensor`), or the tensor converted to a dtype or such a name.

    Shape: that of the tensor itself.

    Raises: ValueError for a name that is no type's.

    >>> xtensor.ones(2).type()
    'xtensor.FloatTensor'
    """
    if dtype is None:
        return checks.tensor_type(self)
    if isinstance(dtype, str):
        return self.to(*typed_name(dtype))
    if isinstance(dtype, type) and isinstance(getattr(dtype, "dtype", None), dtypes.dtype):
        return self.to("cpu", dtype.dtype)  # type: ignore[attr-defined]
    if isinstance(dtype, type):
        if dtype is not Tensor:
            raise ValueError(f"invalid type: '{dtype.__name__}'")
        return self.to(dtype=dtypes.get_default_dtype())
    return self.to(dtype=pick_dtype("type", dtype))


def typed_name(name: str) -> tuple[Any, ...]:
    """Device and dtype of a type's name, such as `xtensor.cuda.HalfTensor`."""
    parts = name.split(".")
    found = {f"{d.scalar_name}Tensor": d for d in (*dtypes.ALL, *dtypes.STORED)}.get(parts[-1])
    known = len(parts) == 2 or (len(parts) == 3 and parts[1] in ("cuda", "tpu", "rocm"))
    if found is None or not known or parts[0] not in ("xtensor", "torch"):
        raise ValueError(f"invalid type: '{name}'")
    return (parts[1] if len(parts) == 3 else "cpu", found)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype and on the device of `other`.

    Shape: that of the tensor itself, whatever that of `other`.

    Raises: TypeError for what is no tensor; NotImplementedError for a meta tensor where `other` has values.

    >>> xtensor.tensor([1, 2]).type_as(xtensor.ones(1))
    tensor([1., 2.])
    """
    if not isinstance(other, Tensor):
        raise checks.argument_error("type_as", "other", 1, "Tensor", other)
    return self.to(other)


# ---- clone and contiguous ------------------------------------------------------------------------------------------


@pointwise(name="clone", derivatives=dict(input=lambda grad: grad), inplace=False, out=False)
def clone_kernel(input: Array, *, memory_format: Any = None) -> Array:
    """A copy with memory of its own, that gradients pass through; `memory_format` orders its dimensions.

    Shape: `input` `(*)`, result `(*)`.
    """
    return input


CLONE = REGISTRY["clone"]


class CloneBackward0(CLONE.node_class):
    """The node of `clone`: the gradient passes as it is."""

    __slots__ = ()

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        return (grads[0],)


CLONE.node_class = CloneBackward0


def clone(input: Tensor, *, memory_format: dtypes.memory_format | None = None) -> Tensor:
    """A copy with memory of its own, that gradients pass through; `memory_format` orders its dimensions.

    Shape: `input` `(*)`, result `(*)`.
    The default, `preserve_format`, keeps the order of a tensor without gaps. The copy is made when either is written.

    Raises: TypeError for arguments of other kinds.

    >>> x = xtensor.tensor([1, 2])
    >>> x.clone().add_(1), x
    (tensor([2, 3]), tensor([1, 2]))
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("clone", "input", 1, "Tensor", input)
    mode = modes.state.mode
    if (dispatching or mode & modes.DISPATCH_MODE) and asked_about((input,)) is not None:
        return complete(CLONE, (input, memory_format))
    if mode & modes.PROFILING:
        profiler.end(profiler.begin("clone", [tuple(sizes_of(input))]))
    storage, view = input._xt_storage, input._xt_view
    plain = memory_format is None or memory_format is dtypes.preserve_format
    if view is None and (plain or memory_format is dtypes.contiguous_format):
        array = storage.operand
        made = wrap(array, storage.shared)
    elif plain or memory_format is dtypes.contiguous_format:
        array, strides = memory_array(input) if plain else (operands_array(input), None)
        made = wrap(array) if strides is None else wrap_strided(array, tuple(sizes_of(input)), strides)
        made._xt_storage.shared = storage.shared
    else:
        sizes = tuple(sizes_of(input))
        strides = geometry.format_strides(sizes, format_name(memory_format))
        array = ordered_array(input, strides)
        made = wrap_strided(array, sizes, strides)
        made._xt_storage.shared = storage.shared
    if not modes.state.mode & modes.NO_GRAD:
        edge = input._xt_edge if view is None else edge_of(input)
        if edge is not None:
            node = new(CloneBackward0)
            node._xt_edges = (plain_edge(edge),)
            node._xt_sequence_nr = next_sequence_nr()
            node._xt_meta = None
            node.key = (None,)
            node.shapes = node.saved = ()
            node.aval = (
                array.aval if made._xt_view is None else ShapedArray(tuple(sizes_of(made)), array.dtype)
            )
            made._xt_edge = (node, 0)
            if modes.state.mode & modes.ANOMALY:
                anomaly.record(node)
    return made


CLONE.function = CLONE.method = clone
clone.operator = CLONE  # type: ignore[attr-defined]


def contiguous(self: Tensor, memory_format: Any = dtypes.contiguous_format) -> Tensor:
    """The tensor with its elements in row-major order (or that of `memory_format`): itself, or a copy.

    Shape: that of the tensor itself.

    Raises: RuntimeError for a memory format of another number of dimensions.

    >>> xtensor.ones(2, 3).t().contiguous().stride()
    (2, 1)
    """
    if self.is_contiguous(memory_format=memory_format):
        return self
    if memory_format is dtypes.preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return clone(self, memory_format=memory_format)


# ---- writing whole tensors -----------------------------------------------------------------------------------------


class OverwriteNode(Node):
    """The node of an operator that replaces every value of its first argument, whose gradient is zero.

    place, dtype: of what was written, for its gradient. targets, beyond: what there was before, and the levels of transforms
    that what was written is not at.
    """

    __slots__ = ("aval", "beyond", "dtype", "place", "shape", "targets")
    aval: Any

    @property
    def _xt_device(self) -> Any:
        """Where the gradient of what was written goes."""
        return getattr(self, "place", None)

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        (grad,) = grads
        if grad is None:
            return (None,) * len(self._xt_edges)
        own = grad.new_zeros(tuple(sizes_of(grad))) if self._xt_edges[0] is not None else None
        if len(self._xt_edges) == 1:
            return (own,)
        if self._xt_edges[1] is None:
            return (own, None)
        if tuple(sizes_of(grad)) != self.shape:
            grad = grad.sum_to_size(self.shape)
        if grad.dtype.is_complex and not self.dtype.is_complex:
            grad = grad.real
        return (own, crossed(grad.to(self.place, self.dtype), self.beyond))


@bounded(256)
def overwriting(title: str) -> type[OverwriteNode]:
    """The class of the nodes of one such operator, whose name is PyTorch's."""
    return type(title, (OverwriteNode,), {"__slots__": ()})


def overwrite(
    target: Tensor, name: str, title: str, values: Callable[[], Any], source: Tensor | None = None
) -> Tensor:
    """Replace the values of `target` by the array that `values()` makes (of its sizes and dtype), with its history.

    `values()` may also write by itself, and gives None then.
    """
    if not modes.state.mode & modes.PROFILING:
        return _overwrite(target, name, title, values, source)
    token = profiler.begin(name, [tuple(sizes_of(target))])
    try:
        return _overwrite(target, name, title, values, source)
    finally:
        profiler.end(token)


def _overwrite(
    target: Tensor, name: str, title: str, values: Callable[[], Any], source: Tensor | None
) -> Tensor:
    if births.open:
        refuse_captured(target, name)
    tracked = not modes.state.mode & modes.NO_GRAD
    own = edge = None
    if tracked:
        check_inplace(target, asks_grad(target) or (source is not None and asks_grad(source)))
        own = edge_of(target)
        edge = None if source is None else edge_of(source)
    elif target._xt_meta is not None:
        check_inplace(target, False)
    node = None
    # Into integers no gradient flows.
    if (own is not None or edge is not None) and (target.dtype.is_floating_point or target.dtype.is_complex):
        edges = (plain_edge(own),) if source is None else (plain_edge(own), plain_edge(edge))
        node = overwriting(title)(edges)
        node.aval = ShapedArray(tuple(sizes_of(target)), target.dtype.numpy)
        node.targets = (form_of(target),)
        if source is not None:
            node.shape, node.dtype, node.place = tuple(sizes_of(source)), source.dtype, source.device
    before = target._xt_storage.operand
    if type(before) is MetaArray:
        store(target, None)
        bump(target, name)
    else:
        if source is not None and type(source._xt_storage.raw) in KINDS:
            refuse_batch("inplace arithmetic", before, (source._xt_storage.array,))
        # Where others hold the array it cannot be reused.
        leveled = before if type(before) in KINDS else None
        del before
        bump(target, name)
        try:
            array = values()
            if array is not None:
                if source is None and type(array) in KINDS:
                    refuse_draws(leveled, array)
                store(target, array)
        except Exception:
            counter_of(target).version -= 1
            raise
        if leveled is not None:
            target._xt_storage.array = still_batched(leveled, target._xt_storage.array)
    if node is not None:
        node.beyond = () if source is None else levels_beyond((form_of(target),), form_of(source))
        rebase(target, noted(node))
    return target


@bounded(1024)
def spread_program(shape: tuple[int, ...], dtype: Any) -> Any:
    """Broadcasting and conversion as one program."""

    def spread(array: Any) -> Any:
        return jnp.broadcast_to(convert(array, dtype), shape)

    return jit(spread)


@bounded(4096)
def copy_program(
    target: lowering.Recipe | None,
    source: lowering.Recipe | None,
    sizes: tuple[int, ...],
    dtype: Any,
    donate: bool,
) -> Any:
    """`program(base, start, array, offset)`: reading, conversion, broadcasting and the write of a view."""

    def copy(base: Any, start: Any, array: Any, offset: Any) -> Any:
        read = array if source is None else lowering.read(source, array, offset)
        values = jnp.broadcast_to(convert(read, dtype), sizes)
        return values if target is None else lowering.write(target, base, start, values)

    if target is not None:
        copy.sized = lowering.HostWriter(target, source)  # pyright: ignore[reportFunctionMemberAccess]
    # A view of everything needs nothing of the base, and XLA complains of a buffer given up in vain.
    return jit(copy, donate_argnums=(0,) if donate and target is not None and not target.static else ())


def copy_values(target: Tensor, source: Tensor) -> bool:
    """Copy values in one program, where that saves one; else False."""
    storage, view = target._xt_storage, target._xt_view
    donate = view is not None and storage is not source._xt_storage and storage.sole_owner()
    array, recipe = operand_of(source)
    changes = tuple(sizes_of(source)) != tuple(sizes_of(target)) or source.dtype is not target.dtype
    if recipe is None and (view is None or not changes):
        return False
    offset = None if recipe is None or recipe.static else operand(source.storage_offset(), array)
    if view is None:
        program = copy_program(None, recipe, tuple(sizes_of(target)), target.dtype.numpy, False)
        storage.replace(call(program, None, None, array, offset))
    else:
        program = copy_program(recipe_of(storage, view), recipe, view.sizes, view.dtype.numpy, donate)
        call(commit, storage, program, operand(view.offset, storage.raw), array, offset)
    return True


def is_same_data(self: Tensor, src: Tensor) -> bool:
    """Whether two tensors are the same elements of one storage, read alike."""
    if src is self:
        return True
    if src._xt_storage is not self._xt_storage:
        return False
    a, b = self._xt_view, src._xt_view
    if type(a) is View and type(b) is View:
        same = a.offset == b.offset and a.sizes == b.sizes and a.strides == b.strides
        return same and a.dtype is b.dtype and a.conj == b.conj and a.neg == b.neg
    if not src.is_set_to(self) or src.dtype is not self.dtype:
        return False
    return src.is_conj() == self.is_conj() and src.is_neg() == self.is_neg()


def copied_plainly(target: Tensor, source: Tensor) -> bool:
    """Write values of the same sizes and dtype, on the same device, to a tensor that no gradient follows; False for any other: on the host where
    it has them, or whole ones to a view.
    """
    view, storage, given = target._xt_view, target._xt_storage, source._xt_storage
    if not modes.state.mode & modes.NO_GRAD and (asks_grad(target) or asks_grad(source)):
        return False
    if storage is given and is_same_data(target, source):
        bump(target, "copy_", 3)
        return True
    if modes.state.mode & modes.PROFILING or target._xt_meta is not None or births.open:
        return False
    # A whole tensor may share the other's array.
    if view is not None and is_small(storage) and (values := values_for(source, target)) is not None:
        check_writable(target)
        check_no_overlap(target, source)
        memory = host_room(target)
        if memory is not None:
            bump(target, "copy_", 3)
            write_host(memory, storage, view, values)
            return True
    if type(view) is not View or source._xt_view is not None or storage is given:
        return False
    base = storage.raw
    if type(storage) is not Storage or type(base) is not ARRAY or view.conj or view.neg:
        return False
    array = given.array
    if type(array) is not ARRAY or array.shape != view.sizes or array.dtype != view.dtype.numpy:
        return False
    place = array.sharding
    if place is not base.sharding and devices.of_array(array) is not devices.of_array(base):
        return False
    recipe = recipe_of(storage, view)
    if recipe.identity:
        return False
    del base
    check_writable(target)
    program = lowering.write_program(recipe, donate=storage.sole_owner())
    rewrite(target, "copy_", program, view.offset, array, depth=3)
    return True


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write the values of `src` (broadcast, converted, from any device) here; their gradients flow to `src`.

    Shape: `src` broadcast to that of the tensor itself, which stays.

    Raises: RuntimeError where sizes do not fit.

    >>> xtensor.zeros(2).copy_(xtensor.tensor([1, 2]))
    tensor([1., 2.])
    """
    if not isinstance(src, Tensor):
        if not isinstance(src, (int, float, complex, np.generic)):
            raise checks.argument_error("copy_", "other", 1, "Tensor", src)
        number = python_number("copy_", "other", 1, src)
        src = wrap(constant((), self.dtype, self.device, number_array(number, self.dtype))[0])
    if copied_plainly(self, src):
        return self
    check_writable(self)
    check_no_overlap(self, src)
    sizes, given = tuple(sizes_of(self)), tuple(sizes_of(src))
    if given != sizes:
        shape = geometry.broadcast_shapes(sizes, given)
        if shape != sizes:
            raise RuntimeError(
                f"output with shape {list(sizes)} doesn't match the broadcast shape {list(shape)}"
            )
    dtype = self.dtype
    if src.dtype.is_complex and not (dtype.is_complex or dtype is dtypes.bool):
        checks.warn("Casting complex values to real discards the imaginary part", UserWarning)
    if src.is_meta and not self.is_meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    def values() -> Any:
        if src.device == self.device and copy_values(self, src):
            return None
        array = array_of(src)
        if src.device is not self.device and src.device != self.device:
            array = devices.move(array, self.device)
        if given != sizes:
            return call(spread_program(sizes, dtype.numpy), array)
        return cast(array, dtype)

    overwrite(self, "copy_", "CopyBackwards", values, src)
    if src._xt_storage.shared and self._xt_storage.array is src._xt_storage.array:
        self._xt_storage.shared = True
    return self


@pointwise(
    name="fill",
    derivatives=dict(input=lambda grad: jnp.zeros_like(grad), value=lambda grad: grad),
    inplace=False,
    method=False,
    out=False,
)
def fill(input: Array, value: Operand) -> Array:
    """A tensor like `input` with every element `value`."""
    value = jnp.asarray(value)
    if value.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
        )
    return jnp.broadcast_to(convert(value, np.dtype(input.dtype)), input.shape)


def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one number (or tensor of no dimensions, which then gets a gradient) to every element.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a value of one dimension or more.

    >>> xtensor.zeros(2).fill_(7)
    tensor([7., 7.])
    """
    if isinstance(value, Tensor):
        if value.dim():
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.dim()} dimensions."
            )
        check_writable(self)
        source = value
        program = spread_program(tuple(sizes_of(self)), self.dtype.numpy)

        def values() -> Any:
            array = array_of(source)
            if source.device != self.device:
                array = devices.move(array, self.device)
            return call(program, array)

        return overwrite(self, "fill_", "FillBackward3", values, source)
    if not isinstance(value, (int, float, complex, np.generic)):
        raise checks.combination_error("fill_", (value,), {}, ("Tensor value", "Number value"))
    number = number_array(python_number("fill_", "value", 1, value), self.dtype)
    return overwrite(self, "fill_", "FillBackward2", lambda: filled_values(self, number))


def filled_values(tensor: Tensor, number: Any) -> Any:
    return constant(tuple(sizes_of(tensor)), tensor.dtype, tensor.device, number)[0]


def zero_(input: Tensor) -> Tensor:
    """Write zero to every element.

    Shape: that of the tensor itself, which stays.

    Raises: RuntimeError for a leaf that is written while it requires grad.

    >>> xtensor.ones(2).zero_()
    tensor([0., 0.])
    """
    return overwrite(input, "zero_", "ZeroBackward0", lambda: filled_values(input, 0))


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number to the main diagonal, of a matrix or of a tensor whose dimensions are all equal.

    Shape: that of the tensor itself, which stays.
    With `wrap` the diagonal of a tall matrix starts again after each square block (and one row).

    Raises: RuntimeError for a leaf that requires grad.
    """
    sizes = tuple(sizes_of(self))
    if len(sizes) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(sizes) > 2 and len(set(sizes)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    strides, offset = strides_of(self), self.storage_offset()
    shortest = min(sizes)
    self.as_strided((shortest,), (sum(strides),), offset).fill_(fill_value)
    if wrap and len(sizes) == 2 and sizes[0] > sizes[1] + 1:
        steps = sizes[1] + 1
        rest = -(-(sizes[0] * sizes[1]) // steps) - shortest
        at = offset + strides[0] * steps
        self.as_strided((rest,), (sum(strides),), at).fill_(fill_value)
    return self


# ---- memory that is nowhere else ----------------------------------------------------------------------------------


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor itself: host memory is not pinned here (`is_pinned()` stays False).

    Shape: that of the tensor itself.

    Raises: NotImplementedError for sparse tensors.
    """
    return self


def share_memory_(self: Tensor) -> Tensor:
    """The tensor itself: its memory is not shared with other processes (`is_shared()` stays False).

    Shape: that of the tensor itself.

    Raises: nothing of its own.
    """
    return self


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """False: no memory is pinned.

    Raises: nothing of its own.
    """
    return False


def is_shared(self: Tensor) -> bool:
    """False: its memory is not shared with other processes.

    Raises: nothing of its own.
    """
    return False


attach_methods(to, type_as, clone, contiguous, copy_, fill_, zero_, fill_diagonal_, pin_memory, share_memory_)
attach_methods(
    type=type_method,
    is_pinned=is_pinned,
    is_shared=is_shared,
    **{
        name: dtype_method(name, dtype)
        for name, dtype in {
            "bool": dtypes.bool,
            "byte": dtypes.uint8,
            "char": dtypes.int8,
            "short": dtypes.int16,
            "chalf": dtypes.complex32,
            "int": dtypes.int32,
            "long": dtypes.int64,
            "half": dtypes.float16,
            "bfloat16": dtypes.bfloat16,
            "float": dtypes.float32,
            "double": dtypes.float64,
            "cfloat": dtypes.complex64,
            "cdouble": dtypes.complex128,
        }.items()
    },
    **{name: device_method(name) for name in ("cpu", "cuda", "tpu")},
)
