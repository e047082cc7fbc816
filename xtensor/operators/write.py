"""Writing to a tensor's memory: whole, through a view, and to `out=`.

Every write replaces `storage.array`; where the storage is the sole owner of the old array its buffer is reused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from operator import attrgetter
from sys import getrefcount
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import capture, checks, dtypes, geometry, lowering
from ..engine.modes import is_inference_mode_enabled, state
from ..storage import (
    HostValues,
    LazyStorage,
    MetaArray,
    Storage,
    births,
    commit,
    commit_all,
    promise,
    resize,
)
from ..tensor import ARRAY, Tensor, array_of, counter_of, make_view, recipe_of, sizes_of, strides_of
from ..xla.cache import bounded
from ..xla.pending import Pending, settled
from ..xla.threads import others
from ..xla.x64 import call, copied, jit
from .out_rules import RULES, refuse_out, warn_of_resizing

__all__ = [
    "JOINED",
    "KINDS",
    "bump",
    "writer_at",
    "check_castable",
    "check_no_overlap",
    "check_writable",
    "fit_result",
    "may_pend",
    "promised",
    "put_results",
    "put_whole",
    "resize_tensor",
    "refuse_captured",
    "rewrite",
    "scalar_name",
    "store",
    "take_arrays",
    "view_of",
    "write_out",
]


def bump(tensor: Tensor, name: str, depth: int = 2) -> None:
    """Count a write; remember the line of the program that wrote, for the version error."""
    if births.open:
        refuse_captured(tensor, name)
    # First, since a capture notes versions when it meets a tensor.
    storage, view = tensor._xt_storage, tensor._xt_view
    if view is None:
        storage.version += 1
    else:
        view.counter.version += 1
    storage.writer = writer_at(name, depth + 1)


OURS = frozenset(("xtensor", "xtensor."))
"""How the names of our modules begin."""


def refuse_captured(tensor: Tensor, name: str) -> None:
    """RuntimeError for a write to a tensor that was there before the derivative of a function that runs began."""
    storage = tensor._xt_storage
    for transform in reversed(state.transforms):
        if transform.born:
            if storage.writes < transform.born and not transform.was_given(storage):
                raise RuntimeError(
                    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation "
                    f"(aten::{ATEN.get(name, name)}) that would mutate a captured Tensor. This is not supported; please rewrite "
                    "the function being transformed to explicitly accept the mutated Tensor(s) as inputs."
                )
            return


BY_TENSOR = (
    "add_ sub_ mul_ div_ remainder_ fmod_ bitwise_and_ bitwise_or_ bitwise_xor_ eq_ ne_ lt_ le_ gt_ ge_"
)
ATEN = {name: f"{name}.Tensor" for name in BY_TENSOR.split()}
ATEN |= {name: f"{name}.Scalar" for name in ("fill_", "masked_fill_", "pow_")}
"""PyTorch's names of operators that write, where they are not the methods' names."""


def writer_at(name: str, depth: int) -> tuple[Any, int, str]:
    """Where the program writes: in the first frame outside of the package, from `depth` calls up. Its line is looked for when it is asked for,
    since Python goes through all lines of a module before it.
    """
    frame: Any = sys._getframe(depth)
    while frame.f_back is not None and frame.f_globals.get("__name__", "")[:8] in OURS:
        frame = frame.f_back
    return (frame.f_code, frame.f_lasti, name)


storage_of = attrgetter("_xt_storage")
raw_of = attrgetter("raw")
shared_of = attrgetter("shared")
KINDS = frozenset((Storage, LazyStorage))
"""Of storages, those that may hold what is pending."""
HELD = frozenset((ARRAY, Pending))
"""What they hold that a call which waits may take."""
JOINED = 1 << 21
"""Bytes of many tensors up to which their update joins the calls that wait: whoever reuses a buffer has to wait for those who still read it."""


def operands_of(storages: list[Any]) -> list[Any]:
    """What storages hold, for a call that may wait."""
    if KINDS.issuperset(map(type, storages)):
        held = list(map(raw_of, storages))
        if HELD.issuperset(map(type, held)):
            return held
    return [storage.operand for storage in storages]


def take_arrays(tensors: list[Tensor]) -> list[Any]:
    """The values as arrays whose buffers a program may take over: copies where anybody but the tensor can see them."""
    if others:  # other threads: programs for `put_results` then give nothing up
        return [array_of(tensor) for tensor in tensors]
    arrays = [tensor._xt_storage.array for tensor in tensors]
    counts = list(map(getrefcount, arrays))
    alone = counts.count(SOLE) == len(counts) and not any(map(view_of, tensors))
    if alone and True not in [tensor._xt_storage.shared for tensor in tensors]:
        return arrays
    for i, references in enumerate(counts):
        tensor = tensors[i]
        if tensor._xt_view is not None and not covers(tensor):
            arrays[i] = call(copied, array_of(tensor))
        elif references != SOLE or tensor._xt_storage.shared:
            arrays[i] = call(copied, arrays[i])
    return arrays


def put_results(
    tensors: list[Tensor],
    program: Callable[..., Any],
    args: tuple[Any, ...],
    writer: tuple[Any, int, str],
    more: Sequence[Storage] = (),
    pick: Callable[[Any], Any] = iter,
    ready: Sequence[Any] = (),
) -> None:
    """Replace the values of tensors by the results of `program(*args)`, as `writer` wrote them, all at once or not at all.

    The results are those that `pick` takes, and then what is ready; those beyond the tensors go into the storages `more`.
    """
    storages = [tensor._xt_storage for tensor in tensors]
    if not any(map(view_of, tensors)):
        put_whole(storages, program, args, writer, more, pick, ready)
        return
    counters = [counter_of(tensor) for tensor in tensors]
    cells = [t._xt_storage if covers(t) else Storage(None) for t in tensors]
    put_whole(storages, program, args, writer, more, pick, ready, counters, cells)
    for tensor, storage, cell in zip(tensors, storages, cells, strict=True):
        if cell is not storage:
            store(tensor, cell.array)


def put_whole(
    storages: list[Storage],
    program: Callable[..., Any],
    args: tuple[Any, ...],
    writer: tuple[Any, int, str],
    more: Sequence[Storage] = (),
    pick: Callable[[Any], Any] = iter,
    ready: Sequence[Any] = (),
    counters: Sequence[Any] = (),
    cells: Sequence[Storage] = (),
) -> None:
    """`put_results` for tensors that are whole storages, which are these. counters: what counts the tensors' versions, where that is not their
    storages; cells: where the results go, where that is elsewhere.
    """
    counters, cells = counters or storages, cells or storages
    # A write is counted before it is made, so that nothing kept of the old values is taken for the new.
    for counter in counters:
        counter.version += 1
    for storage in storages:
        storage.writer = writer
        storage.writes += 1
    try:
        commit_all([*cells, *more] if more else cells, program, args, pick, ready)
    except Exception:
        for counter in counters:
            counter.version -= 1
        raise
    for cell in cells:
        cell.writes += 1
        cell.shared = False


def rewrite(tensor: Tensor, name: str, program: Callable[..., Any], *args: Any, depth: int = 2) -> None:
    """Replace the array of a tensor's storage by `program(array, *args)`, as a write of the operator `name`."""
    bump(tensor, name, depth + 1)
    try:
        call(commit, tensor._xt_storage, program, *args)
    except Exception:
        counter_of(tensor).version -= 1
        raise


view_of: Callable[[Tensor], Any] = Tensor._xt_view.__get__  # type: ignore[attr-defined]
"""`tensor._xt_view`, as a function of C."""


def covers(tensor: Tensor) -> bool:
    """Whether the tensor's values are its storage's array itself."""
    view = tensor._xt_view
    return view is None or recipe_of(tensor._xt_storage, view).identity


def references_of_one() -> int:
    """What `take_arrays` counts for an array that its storage alone holds."""
    storages = [Storage(object())]
    return next(map(getrefcount, [storage.array for storage in storages]))


SOLE = references_of_one()


def may_pend(op: Any, key: tuple[Any, ...], storage: Storage) -> bool:
    """Whether a storage may hold what an operator's call, which waits, will write."""
    return op.single and not (op.looks(key) or others) and type(storage) in (Storage, LazyStorage)


def promised(tensor: Tensor, name: str, program: Callable[..., Any], *args: Any, depth: int = 2) -> None:
    """As `rewrite`, by a program whose call may wait."""
    bump(tensor, name, depth + 1)
    storage = tensor._xt_storage
    try:
        found = call(program, storage.operand, *args)
    except Exception:
        counter_of(tensor).version -= 1
        raise
    if not (type(found) is Pending and promise(storage, found)):
        storage.replace(settled(found))


def store(tensor: Tensor, values: Any) -> None:
    """Put an array of the tensor's own sizes and dtype in its place in the storage; one may be pending, or the host's."""
    storage, view = tensor._xt_storage, tensor._xt_view
    if type(values) is Pending or type(values) is HostValues:
        if covers(tensor) and promise(storage, values):
            return
        values, _ = values.read()
    if type(storage.raw) is MetaArray:
        storage.writes += 1
    elif view is None:
        storage.replace(values)
    else:
        recipe = recipe_of(storage, view)
        program = lowering.write_program(recipe, donate=storage.sole_owner())
        call(commit, storage, program, view.offset, values)


def check_writable(tensor: Tensor) -> None:
    """Refuse a destination in which two elements share memory."""
    view = tensor._xt_view
    if view is not None:
        geometry.assert_no_internal_overlap(view.sizes, view.strides)


def check_no_overlap(target: Tensor, source: Tensor, disjoint: bool = False) -> None:
    """Refuse a source that shares memory with the destination; unless `disjoint`, the same elements in place are fine."""
    if target._xt_storage is not source._xt_storage or (target is source and not disjoint):
        return
    if target is source:
        raise RuntimeError(geometry.INPUT_OVERLAP)
    check = geometry.assert_no_overlap if disjoint else geometry.assert_no_partial_overlap
    check(
        (sizes_of(target), strides_of(target), target.storage_offset()),
        (sizes_of(source), strides_of(source), source.storage_offset()),
        target.dtype.itemsize,
        source.dtype.itemsize,
    )


def fit_result(out: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Check, while tracing, that a result may be written to a tensor of this shape and dtype."""
    if out.shape != shape:
        raise RuntimeError(
            f"output with shape {list(shape)} doesn't match the broadcast shape {list(out.shape)}"
        )
    check_castable(out.dtype, dtype)
    return convert(out, dtype) if dtype in lowering.FLOAT8 else jax.lax.convert_element_type(out, dtype)


def check_castable(source: Any, target: Any) -> None:
    """RuntimeError where PyTorch would refuse to store a result of one dtype in a tensor of another."""
    a, b = dtypes.FROM_NUMPY[np.dtype(source)], dtypes.FROM_NUMPY[np.dtype(target)]
    if not dtypes.can_cast(a, b):
        raise RuntimeError(
            f"result type {scalar_name(a)} can't be cast to the desired output type {scalar_name(b)}"
        )


def scalar_name(dtype: dtypes.dtype) -> str:
    """The name that PyTorch's messages give a dtype: Float, Long, ..."""
    return dtype.scalar_name


def resize_tensor(tensor: Tensor, sizes: tuple[int, ...], strides: tuple[int, ...] | None = None) -> None:
    """`resize_`: new sizes over the same storage, which grows where it must."""
    sizes = tuple(sizes)
    dtype, offset = tensor.dtype, tensor.storage_offset()
    strides = strides or geometry.contiguous_strides(sizes)
    tensor._pin_geometry()
    capture.moved(False)
    storage = tensor._xt_storage
    needed = geometry.storage_nbytes(sizes, strides, dtype.itemsize, offset)
    if needed > storage.nbytes():
        resize(storage, needed)
    old = tensor._xt_view
    assert old is not None
    view = make_view(storage, old.counter, dtype, sizes, strides, offset, old.conj, old.neg)
    view.base, view.creation, view.attr_version = old.base, old.creation, old.attr_version
    tensor._xt_view = view


INFERENCE_UPDATE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
    "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
)


def check_same_dtype(kind: str, source: dtypes.dtype, target: dtypes.dtype) -> None:
    """Refuse an `out=` tensor of another dtype, in the words that PyTorch has for this kind of operator."""
    if source is target:
        return
    if kind == "pointwise":
        raise RuntimeError(f"Found dtype {scalar_name(target)} but expected {scalar_name(source)}")
    want, have = dtypes.c_name(source), dtypes.c_name(target)
    raise RuntimeError(f"Expected out tensor to have dtype {want}, but got {have} instead")


def write_out(
    name: str,
    target: Any,
    source: Tensor,
    operands: list[Tensor],
    exact: str | None = None,
    disjoint: bool = False,
    joins: bool = False,
    place: int = 0,
) -> None:
    """Write a result to an `out=` tensor, resized where it must be; the checks are PyTorch's.

    exact: the operator's kind, where only the result's own dtype will do. disjoint, joins: as `declare.py` says of `out`.
    place: which of several results it is.
    """
    if not isinstance(target, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {checks.type_name(target)}")
    if target._xt_meta is not None and target._xt_meta.inference and not is_inference_mode_enabled():
        raise RuntimeError(INFERENCE_UPDATE)
    if target.device != source.device:
        checks.check_same_device(name, [target, source])
    rule = RULES.get(name)
    if rule is not None:
        refuse_out(rule, place, source.dtype, target.dtype)
    if exact is not None and (rule is None or rule.suits is dtypes.can_cast):
        check_same_dtype(exact, source.dtype, target.dtype)
    if joins and not dtypes.can_cast(source.dtype, target.dtype):
        kind = scalar_name(target.dtype)
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {kind}")
    check_castable(source.dtype.numpy, target.dtype.numpy)
    sizes = tuple(sizes_of(source))
    if disjoint:
        check_writable(target)
    if tuple(sizes_of(target)) != sizes:
        if target.numel() != 0:
            warn_of_resizing(name, list(sizes_of(target)), list(sizes))
        resize_tensor(target, sizes, strides_of(source))
    check_writable(target)
    for operand in operands:
        check_no_overlap(target, operand, disjoint)
    store(target, cast(array_of(source), target.dtype))
    bump(target, name)


def cast(array: Any, dtype: dtypes.dtype) -> Any:
    """An array converted to `dtype`, as a kernel of its own; itself where it has that dtype."""
    if array.dtype == dtype.numpy:
        return array
    if type(array) is MetaArray:
        return MetaArray(array.shape, dtype.numpy)
    return call(_cast_program(dtype.numpy), array)


@bounded(64)
def _cast_program(dtype: Any) -> Any:
    return jit(lambda array: convert(array, dtype))


def convert(array: Any, dtype: Any) -> Any:
    """Element conversion as PyTorch's: complex to real drops the imaginary part, integers wrap round."""
    source, target = array.dtype, np.dtype(dtype)
    if source == target:
        return array
    if np.issubdtype(source, np.complexfloating) and target.kind != "c":
        if target.kind == "b":
            return array != 0
        array = jnp.real(array)
        source = array.dtype
    if target.kind in "iu" and jnp.issubdtype(source, np.floating):
        return truncate(array, target)
    if target in lowering.FLOAT8:
        return lowering.to_float8(array, target)
    if source == np.float64 and target.itemsize < 4 and target.kind not in "biu":
        # PyTorch rounds doubles to float on their way to shorter types.
        array = array.astype(np.float32)
    return array.astype(target)


def truncate(array: Any, target: Any) -> Any:
    """Floats to integers as x86 converts them: what does not fit (NaN too) is the least integer, then cut to size."""
    if target.itemsize < 4:
        return truncate(array, np.dtype(np.int32)).astype(target)
    if target.kind == "u":
        wide = truncate(array, np.dtype(np.int64)).astype(target)
        return jnp.where(array >= 2.0**63, array.astype(target), wide) if target.itemsize == 8 else wide
    limit = 2.0 ** (8 * target.itemsize - 1)
    if array.dtype == np.float16:  # which does not reach the limit
        array = array.astype(np.float32)
    fits = (array >= -limit) & (array < limit)
    return jnp.where(fits, array.astype(target), np.iinfo(target).min)
