"""Operators of tensors that only store: views and copies of bytes, and of complex32 whatever complex64 has.

What only moves elements is done to the integers of their bytes. Of complex32 everything else is computed in complex64 and rounded
(PyTorch computes less on a CPU, and as much on a GPU). Other types refuse, by the names of PyTorch's kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from .. import checks, devices, dtypes, geometry
from ..engine import modes
from ..operators.inplace import check_inplace, move_retained
from ..operators.options import storing
from ..operators.out_rules import warn_of_resizing
from ..operators.views import geometry_of
from ..operators.write import write_out
from ..ops.create.creation import full, zeros
from ..ops.create.ingest import tensor
from ..ops.index.masks import where as choose
from ..ops.shape.reinterpret import view_as_real
from ..ops.tensor.conversion import parse_to, transfer, typed_name
from ..sparse.layout import host
from ..tensor import Size, Tensor, alias, asks_grad, sizes_of
from ..trees import tree_leaves, tree_map
from .kernel_names import refused
from .layout import (
    HANDLERS,
    StoredTensor,
    follow,
    handles,
    held,
    is_complex32,
    narrowed,
    seen_as,
    wide,
    widened,
)

__all__: list[str] = []

MOVED = frozenset(
    "contiguous clone detach detach_ alias view_as reshape reshape_as flatten unflatten squeeze unsqueeze select narrow narrow_copy "
    "t transpose permute swapaxes swapdims movedim moveaxis expand expand_as broadcast_to split split_with_sizes chunk unbind unfold "
    "as_strided index_select flipud repeat tile roll diagonal diag diagflat diag_embed tensor_split hsplit vsplit dsplit ravel "
    "unsafe_chunk unsafe_split unsafe_split_with_sizes resize_ resize_as_ resize resize_as set_ __getitem__ __iter__ pin_memory cat "
    "concat concatenate stack hstack vstack dstack row_stack column_stack block_diag atleast_1d atleast_2d atleast_3d "
    "broadcast_tensors slice_scatter select_scatter as_strided_scatter diagonal_scatter squeeze_ unsqueeze_ t_ transpose_ swapaxes_ "
    "swapdims_ as_strided_ repeat_interleave zero_ new_empty new_zeros new_empty_strided zeros_like empty_like share_memory_ "
    "slice_copy permute_copy view_copy".split()
)
"""What moves elements, or sees them elsewhere."""
JOINED = frozenset(
    "cat concat concatenate stack hstack vstack dstack row_stack column_stack block_diag slice_scatter select_scatter "
    "as_strided_scatter diagonal_scatter".split()
)
"""Those of them whose arguments become one."""
GEOMETRY = frozenset(
    "squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ as_strided_ resize_ resize_as_ set_".split()
)
"""Those of them that change the tensor's own sizes."""
CUT = frozenset("detach detach_ zero_ zeros_like empty_like new_zeros new_empty new_empty_strided".split())
"""Those of them whose results have no history."""
SAME = frozenset("positive resolve_conj resolve_neg to_dense conj conj_physical conj_physical_ real".split())
"""What leaves a tensor that is not complex as it is."""


def each(value: Any, function: Callable[[Any], Any]) -> Any:
    """A value with a function applied to each tensor within."""
    return tree_map(lambda leaf: function(leaf) if isinstance(leaf, Tensor) else leaf, value)


def tensors_of(*values: Any) -> list[Any]:
    """The tensors within some values."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


# ---- what has no handler of its own --------------------------------------------------------------------------------


@handles("_any")
def answered(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """A call among whose arguments tensors that only store are."""
    given = tensors_of(args, kwargs)
    stored = next(t for t in given if isinstance(t, StoredTensor))
    dtype = stored.dtype
    if name in MOVED and moves(name, given, dtype):
        made = moved(func, name, args, kwargs, dtype)
        if dtype is not dtypes.complex32 or name in GEOMETRY:
            return made
        return with_history(func, name, args, kwargs, made)
    if dtype is not dtypes.complex32 and name in SAME:
        return args[0]
    return computed(func, name, args, kwargs, given)


def moves(name: str, given: list[Any], dtype: dtypes.dtype) -> bool:
    """Whether a call only moves elements: what it joins has one dtype. By tensors only complex32 is indexed."""
    if name in ("__getitem__", "__setitem__") and dtype is not dtypes.complex32:
        if any(not isinstance(t, StoredTensor) for t in given):
            raise refused("index", dtype)
    plain = name not in JOINED
    return all(t.dtype is dtype if isinstance(t, StoredTensor) else plain for t in given)


def moved(func: Any, name: str, args: Any, kwargs: Any, dtype: dtypes.dtype) -> Any:
    """What moves elements, done to the integers of their bytes."""
    pairs: dict[int, Any] = {}

    def inner(t: Any) -> Any:
        if not isinstance(t, StoredTensor):
            return t
        made = held(t)
        pairs[id(made)] = t
        return made

    def outer(t: Any) -> Any:
        known = pairs.get(id(t))
        if known is not None:
            return known
        return seen_as(t, dtype) if t.dtype is dtypes.STORED[dtype] else t

    asked = kwargs.get("dtype")
    if asked is not None and asked is not dtype:
        raise refused(name, dtype)
    kwargs = {k: v for k, v in kwargs.items() if k not in ("dtype", "requires_grad")}
    inside, options = each(args, inner), each(kwargs, inner)
    made = func(*inside, **options)
    if name in GEOMETRY:
        args[0]._xt_storage, args[0]._xt_view = inside[0]._xt_storage, seen_as(inside[0], dtype)._xt_view
        return args[0]
    return each(made, outer)


def with_history(func: Any, name: str, args: Any, kwargs: Any, made: Any) -> Any:
    """What was moved of complex32, with its place in the graph: that of the same done to its numbers."""
    off = modes.state.mode & modes.NO_GRAD or name in CUT
    if off or not any(asks_grad(t) for t in tensors_of(args, kwargs)):
        return made
    same = each(func(*each(args, wide), **each(kwargs, wide)), narrowed)
    for ours, theirs in zip(tensors_of(made), tensors_of(same), strict=True):
        if ours._xt_edge is None:
            ours._xt_edge = theirs._xt_edge
    return made


def computed(func: Any, name: str, args: Any, kwargs: Any, given: list[Any]) -> Any:
    """An operator of complex32: computed in complex64, and rounded where the operands promote to complex32."""
    for t in given:
        if isinstance(t, StoredTensor) and t.dtype is not dtypes.complex32:
            raise refused(name, t.dtype)
    if name.startswith("to_sparse"):
        raise NotImplementedError(
            f"{name}: no sparse tensor has elements of complex32 here; complex64 has them"
        )
    out = kwargs.get("out")
    operands = [t for t in given if t is not out]
    asked = kwargs.get("dtype")
    if not operands and asked is None:  # a factory, whose result has the dtype of what it is in
        asked = out.dtype
    short = asked is dtypes.complex32 or (asked is None and promoted(operands) is dtypes.complex32)
    options = {k: each(v, wide) for k, v in kwargs.items() if k != "out"}
    if asked is dtypes.complex32:
        options["dtype"] = dtypes.complex64

    def rounded(t: Any) -> Any:
        if short and t.dtype is dtypes.complex64:
            return narrowed(t)
        return t.to(dtypes.float16) if short and t.dtype is dtypes.float32 else t

    inplace = is_complex32(args[0]) and (name == "__setitem__" or is_inplace(name)) if args else False
    if not inplace:
        made = each(func(*each(args, wide), **options), rounded)
        if out is None:
            return made
        return each_into(out, made, name)
    target = args[0]
    tracked = not modes.state.mode & modes.NO_GRAD
    if tracked:
        check_inplace(target, any(asks_grad(t) for t in operands))
    values = widened(target)
    if values is target or values._xt_edge is None:
        values = values.clone()
    result = func(values, *each(args[1:], wide), **options)
    values = values if result is None else result
    if values.dtype is dtypes.complex128:
        values = values.to(dtypes.complex64)
    fresh = narrowed(values)
    with modes.no_grad():
        held(target).copy_(held(fresh))
    if tracked and fresh._xt_edge is not None:
        move_retained(target, fresh._xt_edge[0])
        target._xt_edge = fresh._xt_edge
    return None if name == "__setitem__" else target


def is_inplace(name: str) -> bool:
    """Whether a name is that of an operator that writes to its first argument."""
    if name.startswith("__"):
        return name in ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__")
    return name.endswith("_")


def promoted(operands: list[Any]) -> dtypes.dtype | None:
    """The dtype in which operands combine."""
    kinds = [(t.dtype, dtypes.DIM if sizes_of(t) else dtypes.ZERO_DIM) for t in operands]
    try:
        return dtypes.result_type_of(kinds)
    except RuntimeError:
        return None


def each_into(out: Any, made: Any, name: str) -> Any:
    """Results, written to what they are to be in."""
    for target, value in zip(tensors_of(out), tensors_of(made), strict=True):
        if isinstance(target, StoredTensor):
            sizes = tuple(value.shape)
            if tuple(target.shape) != sizes:
                if target.numel():
                    warn_of_resizing(name, list(target.shape), list(sizes))
                target.resize_(sizes)
            held(target).copy_(held(narrowed(value)))
        else:
            write_out(name, target, wide(value), [])
    return out


# ---- conversion ----------------------------------------------------------------------------------------------------


def converted(source: Any, dtype: dtypes.dtype) -> Any:
    """A tensor in another dtype, of which one only stores: of complex32 alone."""
    if source.dtype is dtype:
        return source
    for kind in (source.dtype, dtype):
        if kind in dtypes.QUANTISED or kind in (dtypes.quint4x2, dtypes.quint2x4):
            raise RuntimeError(
                "empty_strided not supported on quantized tensors yet see https://github.com/pytorch/pytorch/issues/74540"
            )
        if kind in dtypes.STORED and kind is not dtypes.complex32:
            four = kind is dtypes.float4_e2m1fn_x2
            raise checks.not_implemented_for("copy_kernel" if four else "copy_", kind)
    if is_complex32(source):
        return widened(source).to(dtype)
    return narrowed(source.to(dtypes.complex64))


@handles("to")
def to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor in another dtype, or on another device."""
    dtype, place, copy, memory_format = parse_to(args, kwargs)
    made = self
    if dtype is not None and dtype is not self.dtype:
        made = converted(self, dtype)
    if place is not None and place != self.device:
        made = elsewhere(made, place) if isinstance(made, StoredTensor) else made.to(place)
    if made is self and copy:
        made = self.clone()
    plain = memory_format is None or memory_format is dtypes.preserve_format
    return made if plain else made.contiguous(memory_format=memory_format)


def elsewhere(stored: Any, place: devices.device) -> Any:
    """A copy on another device."""
    made = seen_as(transfer(held(stored), place), stored.dtype)
    return follow("ToCopyBackward0", made, stored, lambda grad: elsewhere_back(grad, stored.device))


def elsewhere_back(grad: Any, place: devices.device) -> Any:
    return narrowed(wide(grad).to(place))


def shorthand(name: str, dtype: dtypes.dtype) -> None:
    def convert(self: Any, memory_format: Any = None) -> Any:
        return to(self, dtype, memory_format=memory_format)

    HANDLERS[name] = convert


for _name, _dtype in {
    **{
        "float": dtypes.float32,
        "double": dtypes.float64,
        "half": dtypes.float16,
        "bfloat16": dtypes.bfloat16,
    },
    **{
        "bool": dtypes.bool,
        "byte": dtypes.uint8,
        "char": dtypes.int8,
        "short": dtypes.int16,
        "int": dtypes.int32,
    },
    **{
        "long": dtypes.int64,
        "cfloat": dtypes.complex64,
        "cdouble": dtypes.complex128,
        "chalf": dtypes.complex32,
    },
}.items():
    shorthand(_name, _dtype)


@handles("type")
def type_of(self: Any, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, or the tensor in another dtype."""
    if dtype is None:
        return checks.tensor_type(self)
    return to(self, *typed_name(dtype)) if isinstance(dtype, str) else to(self, dtype=dtype)


@handles("type_as")
def type_as(self: Any, other: Tensor) -> Any:
    """The tensor in the dtype and on the device of another."""
    return self.to(other.device, other.dtype)


@handles("cpu", "cuda", "tpu", "rocm")
def moved_to(self: Any, *args: Any, **kwargs: Any) -> Any:
    """The tensor on another device; the CPU is the only one named here."""
    return to(self, *args, **kwargs) if args or kwargs else to(self, "cpu")


@handles("copy_")
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Any:
    """Write another tensor's elements: bytes of the same dtype, or numbers from or to complex32."""
    if not isinstance(self, StoredTensor):
        return self.copy_(
            converted(src, dtypes.complex64) if not is_complex32(src) else widened(src), non_blocking
        )
    if not isinstance(src, Tensor):
        raise checks.argument_error("copy_", "other", 1, "Tensor", src)
    if src.dtype is not self.dtype:
        src = converted(src, self.dtype)
    if asks_grad(self) or asks_grad(src):
        return computed(Tensor.copy_, "copy_", (self, src), {}, [self, src])
    held(self).copy_(held(src))
    return self


# ---- views as other dtypes -----------------------------------------------------------------------------------------


@handles("view")
def view(self: Any, *shape: Any, dtype: Any = None, size: Any = None) -> Any:
    """The bytes with other sizes, or as another dtype."""
    if dtype is None and len(shape) == 1 and isinstance(shape[0], dtypes.dtype):
        dtype = shape[0]
    if dtype is not None:
        return viewed(self, dtype)
    given = (*shape,) if size is None else (size,)
    return with_history(
        Tensor.view, "view", (self, *given), {}, moved(Tensor.view, "view", (self, *given), {}, self.dtype)
    )


def viewed(source: Tensor, dtype: dtypes.dtype) -> Any:
    """The bytes of a tensor read as another dtype, of which one only stores."""
    if dtype in dtypes.QUANTISED or dtype in (dtypes.quint4x2, dtypes.quint2x4):
        raise NotImplementedError(
            f"{dtype} tensors are made by quantize_per_tensor and quantize_per_channel, not by views"
        )
    old = source.dtype
    made = geometry.view_dtype(
        geometry_of(source), old.itemsize, dtype.itemsize, old.scalar_name, dtype.scalar_name
    )
    if dtype in dtypes.STORED:
        return seen_as(alias(source, *made, dtype=dtypes.STORED[dtype]), dtype)
    return alias(held(source) if isinstance(source, StoredTensor) else source, *made, dtype=dtype)


@handles("view_as_real")
def as_real(input: Any) -> Any:
    """Complex numbers of halves as pairs of halves, in the same memory."""
    if not is_complex32(input):
        raise RuntimeError("view_as_real is only supported for complex tensors")
    made = alias(held(input), *geometry.view_as_real(geometry_of(input)), dtype=dtypes.float16)
    if asks_grad(input) and not modes.state.mode & modes.NO_GRAD:
        made._xt_edge = view_as_real(widened(input)).to(dtypes.float16)._xt_edge
    return made


def as_complex(input: Any) -> Any:
    """Pairs of halves as complex numbers, in the same memory."""
    made = seen_as(
        alias(input, *geometry.view_as_complex(geometry_of(input)), dtype=dtypes.uint32), dtypes.complex32
    )
    return follow(
        "ViewAsComplexBackward0", made, input, lambda grad: view_as_real(wide(grad)).to(dtypes.float16)
    )


@handles("real")
def real(input: Any) -> Any:
    """The real parts, in the same memory; a tensor that is not complex itself."""
    return as_real(input).select(-1, 0) if is_complex32(input) else input


@handles("imag")
def imag(input: Any) -> Any:
    """The imaginary parts, in the same memory."""
    if not is_complex32(input):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return as_real(input).select(-1, 1)


@handles("adjoint")
def adjoint(input: Any) -> Any:
    """The matrix transposed, and conjugated."""
    made = input.transpose(-2, -1)
    return made.conj() if is_complex32(input) else made


# ---- numbers -------------------------------------------------------------------------------------------------------


@handles("numpy", "__array__")
def numpy(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: NumPy has no such type."""
    raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")


@handles("__deepcopy__")
def deepcopy(self: Any, memo: Any = None) -> Any:
    """A leaf with memory of its own."""
    memo = {} if memo is None else memo
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
            "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    made = seen_as(held(self).__deepcopy__(memo), self.dtype)
    memo[id(self)] = made.requires_grad_(self.requires_grad)
    if self.grad is not None:
        made.grad = self.grad.__deepcopy__(memo)
    return made


@handles("tolist")
def tolist(self: Any) -> Any:
    """The complex numbers as lists."""
    if not is_complex32(self):
        raise RuntimeError("load_scalar: invalid type")
    return host(widened(self.detach())).tolist()


def compared(name: str, same: bool) -> None:
    def compare(input: Any, other: Any) -> Any:
        if is_complex32(input) or is_complex32(other):
            return computed(getattr(Tensor, name), name, (input, other), {}, tensors_of(input, other))
        dtype = input.dtype if isinstance(input, StoredTensor) else other.dtype
        if dtype is not dtypes.float4_e2m1fn_x2 or not all(
            getattr(t, "dtype", None) is dtype for t in (input, other)
        ):
            raise refused("eq" if same else "ne", dtype)
        made = held(input) == held(other)
        return made if same else ~made

    HANDLERS.update(dict.fromkeys((name, f"__{name}__"), compare))


compared("eq", True)
compared("ne", False)
HANDLERS["not_equal"] = HANDLERS["ne"]


@handles("__setitem__")
def setitem(self: Any, index: Any, value: Any) -> None:
    """Write elements of the same dtype; of complex32 any numbers."""
    if is_complex32(self) or (is_complex32(value) and not isinstance(self, StoredTensor)):
        computed(Tensor.__setitem__, "__setitem__", (self, index, value), {}, tensors_of(self, index, value))
    elif not (
        isinstance(self, StoredTensor) and isinstance(value, StoredTensor) and value.dtype is self.dtype
    ):
        raise refused("fill_", next(t.dtype for t in (self, value) if isinstance(t, StoredTensor)))
    elif moves("__setitem__", tensors_of(self, index, value), self.dtype):
        held(self)[index] = held(value)


@handles("where")
def where(condition: Any, input: Any = None, other: Any = None, **options: Any) -> Any:
    """Elements of either of two tensors of one dtype; of complex32 of anything."""
    pair = [v for v in (input, other) if isinstance(v, StoredTensor)]
    if (
        len(pair) < 2
        or input.dtype is not other.dtype
        or isinstance(condition, StoredTensor)
        or is_complex32(input)
    ):
        return computed(
            choose, "where", (condition, input, other), options, tensors_of(condition, input, other)
        )
    return seen_as(choose(condition, held(input), held(other)), input.dtype)


@handles("equal")
def equal(input: Any, other: Any) -> bool:
    """Whether two tensors have the same sizes and elements."""
    if tuple(input.shape) != tuple(other.shape):
        return False
    for t in (input, other):
        if t.dtype in dtypes.STORED and t.dtype not in (dtypes.complex32, dtypes.float4_e2m1fn_x2):
            raise refused("equal", t.dtype)
    return bool(input.eq(other).all())


@handles("new")
def new(self: Any, *args: Any, device: Any = None) -> Any:
    """A tensor of the sizes, or of the elements, given, of this dtype."""
    if len(args) == 1 and isinstance(args[0], StoredTensor):
        return args[0].detach()
    if len(args) == 1 and isinstance(args[0], (list, tuple)) and not isinstance(args[0], Size):
        return tensor(list(args[0]), dtype=self.dtype, device=device or self.device)
    return zeros(*(args or (0,)), dtype=self.dtype, device=device or self.device)


@handles("__dlpack__")
def dlpack(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Refused: DLPack has no such type."""
    raise BufferError(f"{self.dtype.scalar_name} types are not supported by dlpack")


@handles("is_signed")
def is_signed(self: Any) -> bool:
    """Whether the type has negative numbers."""
    return self.dtype.is_signed


@handles("new_tensor")
def new_tensor(self: Any, data: Any, *, dtype: Any = None, **options: Any) -> Any:
    """A tensor of the values of `data`, in this tensor's dtype unless another is given."""
    if isinstance(data, StoredTensor):
        made = data.detach().clone()
        return made if dtype is None else made.to(dtype)
    return tensor(data, dtype=dtype or self.dtype, device=options.pop("device", self.device), **options)


# ---- makers --------------------------------------------------------------------------------------------------------


def filled(
    sizes: tuple[int, ...],
    dtype: dtypes.dtype,
    place: devices.device,
    value: Any,
    strides: tuple[int, ...] | None,
) -> Any:
    """A tensor of one value: of zeros of any type, of other numbers of complex32."""
    if dtype not in dtypes.STORED:
        raise NotImplementedError(f"{dtype} tensors are made by quantize_per_tensor and quantize_per_channel")
    if dtype is not dtypes.complex32 and value != 0:
        raise checks.not_implemented_for("fill_cpu", dtype)
    word = 0
    if value != 0:
        parts = np.array([complex(value).real, complex(value).imag], np.float32).astype(np.float16)
        word = int(parts.view(np.uint32)[0])
    made = full(sizes, word, dtype=dtypes.STORED[dtype], device=place)
    if strides is not None:
        room = zeros(sizes, dtype=dtypes.STORED[dtype], device=place).as_strided(sizes, strides)
        made = room.copy_(made)
    return seen_as(made, dtype)


storing.filled, storing.converted, storing.viewed, storing.as_complex = filled, converted, viewed, as_complex
