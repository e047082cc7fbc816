"""Tensor: sizes, strides, offset and dtype over a Storage, and its place in the autograd graph.

No operator is defined here: `ops` attaches them. A fresh result is a Tensor whose `_xt_view` is None: it covers its
storage and takes shape and dtype from the array. Anything else carries a View.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import capture, checks, devices, dtypes, engine, geometry, lowering
from .engine import modes
from .storage import (
    Counter,
    HostValues,
    LazyStorage,
    MetaArray,
    Storage,
    UntypedStorage,
    WrapperStorage,
    births,
)
from .xla import segments
from .xla.jax_internals import programs
from .xla.levels import KINDS, batches_of
from .xla.number_arrays import operand
from .xla.pending import Pending
from .xla.symbolic import as_size
from .xla.x64 import call

if TYPE_CHECKING:  # the operators that `ops` attaches
    from .methods import Methods
else:
    Methods = object

__all__ = ["ARRAY", "AutogradMeta", "Size", "Tensor", "View", "array_of", "asks_grad", "wrap"]

new = object.__new__

new_tuple = tuple.__new__
"""`new_tuple(Size, sizes)` is a `Size` of what is known to hold ints: without a look at each."""


class Size(tuple[int, ...]):
    """The sizes of a tensor: a tuple of ints that knows their product."""

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = (), /) -> Size:
        found = new_tuple(cls, sizes)
        for size in found:
            if type(size) is not int:
                return new_tuple(cls, map(_as_item, found, range(len(found))))
        return found

    def numel(self) -> int:
        return geometry.numel(self)

    def __repr__(self) -> str:
        return f"{checks.spelled('Size')}([{', '.join(map(str, self))}])"

    def __getitem__(self, index: Any) -> Any:
        found = tuple.__getitem__(self, index)
        return new_tuple(Size, found) if isinstance(index, slice) else found

    def __add__(self, other: tuple[int, ...]) -> Size:  # pyright: ignore[reportIncompatibleMethodOverride]
        if isinstance(other, tuple):
            made = tuple.__add__(self, other)
            for size in other:
                if type(size) is not int:
                    return Size(made)
            return new_tuple(Size, made)
        if hasattr(type(other), "__radd__") and not isinstance(other, (int, float, Tensor)):
            return NotImplemented
        name = checks.spelled("Size")
        raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to {name}")

    def __radd__(self, other: tuple[int, ...]) -> Size:
        return Size(tuple.__add__(other, self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        made = tuple.__mul__(self, times) if hasattr(times, "__index__") else NotImplemented
        return made if made is NotImplemented else new_tuple(Size, made)

    __rmul__ = __mul__

    def __reduce__(self) -> Any:
        return (Size, (tuple(self),))


def _as_item(size: Any, place: int) -> Any:
    """What a `Size` holds for an item: an int, or an open size, of a ragged dimension too; TypeError for others."""
    try:
        return as_size(size)
    except TypeError:
        if hasattr(type(size), "_xt_is_size"):
            return size
        name, kind = checks.spelled("Size"), type(size)
        home = "numpy." if isinstance(size, np.generic) else ""
        raise TypeError(
            f"{name}() takes an iterable of 'int' (item {place} is '{home}{kind.__name__}')"
        ) from None


# How a differentiable view came to be; the kinds after DEFAULT refuse in-place writes under grad mode.
DEFAULT, NO_GRAD_VIEW, INFERENCE_VIEW, MULTI_OUTPUT, CUSTOM_FUNCTION = range(5)


class View:
    """Geometry over a storage, and what autograd must know of a view.

    base: the tensor this is a differentiable view of, or None. attr_version: the version at which `_xt_edge` was right.
    cached: the values read last, good while `storage.writes == cached_at`. number: that of a view of no dimensions, known to the
    host while `storage.writes == number_at`.
    """

    __slots__ = (
        "attr_version",
        "base",
        "cached",
        "cached_at",
        "conj",
        "counter",
        "creation",
        "dtype",
        "neg",
        "number",
        "number_at",
        "offset",
        "recipe",
        "sizes",
        "strides",
    )

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: dtypes.dtype
    conj: bool
    neg: bool
    counter: Any
    base: Tensor | None
    creation: int
    attr_version: int
    recipe: Any
    cached: Any
    cached_at: int
    number: Any
    number_at: int


def make_view(
    storage: Storage,
    counter: Any,
    dtype: dtypes.dtype,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    conj: bool = False,
    neg: bool = False,
) -> View:
    view = new(View)
    view.sizes = sizes
    view.strides = strides
    view.offset = offset
    view.dtype = dtype
    view.conj = conj
    view.neg = neg
    view.counter = counter
    view.base = None
    view.creation = DEFAULT
    view.attr_version = 0
    view.recipe = None
    view.cached = None
    view.cached_at = view.number_at = -1
    return view


OWN: Any = "own"
"""The dtype of gradients where none was set: that of their tensor."""


class AutogradMeta:
    """What only some tensors need: a gradient and its dtype (None for any), hooks, inference mode, the tangent that a dual tensor was given."""

    __slots__ = ("grad", "grad_dtype", "hooks", "inference", "name", "retains_grad", "tangent")

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.grad_dtype: Any = OWN
        self.hooks: Any = None
        self.inference = False
        self.retains_grad = False
        self.name: str | None = None
        self.tangent: Any = None


def read_view(storage: Storage, view: View) -> Any:
    """The values of a view as an array of its sizes; kept until the storage is written."""
    if view.cached_at == storage.writes:
        if type(view.cached) is Pending:
            view.cached = view.cached.value()
        return view.cached
    recipe = recipe_of(storage, view)
    base = storage.array
    if isinstance(base, MetaArray):
        values: Any = type(base)(view.sizes, view.dtype.numpy)
    elif recipe.identity:
        return base
    else:
        values = call(lowering.read_program(recipe), base, operand(view.offset, base))
    view.cached = values
    view.cached_at = storage.writes
    return values


def read_later(storage: Storage, view: View) -> Any:
    """As `read_view`, or what the values are pending as where those that the storage holds are."""
    base = storage.operand
    if view.cached_at == storage.writes:
        return view.cached if type(base) is Pending else read_view(storage, view)
    if type(base) is not Pending:
        return read_view(storage, view)
    recipe = recipe_of(storage, view)
    if recipe.identity:
        return base
    offsets = () if recipe.static else (operand(view.offset, base),)
    if int in map(type, offsets):  # it needs the types of 64 bits
        return read_view(storage, view)
    view.cached = values = lowering.later_program(recipe)(base, *offsets)
    view.cached_at = storage.writes
    return values


def recipe_of(storage: Storage, view: View) -> Any:
    recipe = view.recipe
    if recipe is None:
        # Of an array that is still to be read, its form.
        array = storage.raw if type(storage) is LazyStorage else storage.array
        recipe = view.recipe = lowering.recipe_for(
            array.shape,
            view.sizes,
            view.strides,
            view.offset,
            array.dtype,
            view.dtype.numpy,
            view.conj,
            view.neg,
        )
    return recipe


def array_of(tensor: Tensor) -> Any:
    """The values of a tensor as an immutable array in its own shape."""
    view = tensor._xt_view
    return tensor._xt_storage.array if view is None else read_view(tensor._xt_storage, view)


def operands_array(tensor: Tensor) -> Any:
    """`array_of`, or what it is pending as where that is known."""
    view = tensor._xt_view
    return tensor._xt_storage.operand if view is None else read_later(tensor._xt_storage, view)


ARRAY = None if programs is None else programs.Array
"""The type of JAX's arrays that hold values; None in a JAX that has it elsewhere."""


def plain_in(view: View, held: Any) -> bool:
    """Whether a view shows elements as what its storage holds has them."""
    return not (view.conj or view.neg) and view.dtype.numpy == held.dtype


def host_array(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The values as a NumPy array that must not be written; of a strided view on a CPU nothing runs or is copied."""
    view, storage = tensor._xt_view, tensor._xt_storage
    held: Any = storage.raw
    if type(held) is HostValues:
        if view is not None and not plain_in(view, held):
            return np.asarray(read_view(storage, view))
        values = held.memory if view is None else part_of(held.memory, view)
        return values if held.own is None else values.copy()
    segments.state.reads += 1
    array = storage.array
    if view is None:
        return np.asarray(array)
    if not (view.conj or view.neg) and devices.of_array(array).type == "cpu":
        memory = np.asarray(array)
        if memory.dtype == view.dtype.numpy:
            return part_of(memory, view)
    return np.asarray(read_view(storage, view))


def part_of(memory: np.ndarray[Any, Any], view: View) -> np.ndarray[Any, Any]:
    """The elements that a view shows of an array of NumPy's, whose own lie one after the other; nothing is copied."""
    sizes = view.sizes
    if len(sizes) == 1 and view.strides[0] == 1:
        return memory.reshape(-1)[view.offset : view.offset + sizes[0]]
    if not sizes:
        return memory.reshape(-1)[view.offset : view.offset + 1].reshape(())
    if 0 in sizes:
        return np.empty(sizes, memory.dtype)
    # Through bytes: NumPy strides no array of a type that is not its own, such as float8.
    size = memory.itemsize
    raw = memory.reshape(-1).view(np.uint8)
    return np.ndarray(sizes, memory.dtype, raw, view.offset * size, tuple([s * size for s in view.strides]))


def wrap(array: Any, shared: bool = False) -> Tensor:
    """A tensor over a new storage that holds `array`, which may be pending, or values of the host's."""
    kind = type(array)
    storage = new(LazyStorage if kind is Pending or kind is HostValues else Storage)
    storage.raw = array
    storage.version = 0
    storage.writes = births.now
    storage.shared = shared
    storage.address = 0
    storage.cover = None
    tensor = new(Tensor)
    tensor._xt_storage = storage
    tensor._xt_view = None
    tensor._xt_edge = None
    tensor._xt_meta = None
    if modes.state.mode & modes.INFERENCE:
        meta_of(tensor).inference = True
    return tensor


def tensor_over(
    storage: Storage, view: View | None = None, edge: Any = None, kind: type[Any] | None = None
) -> Any:
    """A tensor (of a subclass, if `kind`) that sees a storage through a view, or covers it; only hot paths do so inline."""
    made = new(kind or Tensor)
    made._xt_storage, made._xt_view, made._xt_edge, made._xt_meta = storage, view, edge, None
    return made


def wrap_strided(array: Any, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    """A tensor over a new storage whose elements lie as `array` has them, seen with these sizes and strides."""
    tensor = wrap(array)
    storage = tensor._xt_storage
    tensor._xt_view = make_view(storage, storage, dtypes.FROM_NUMPY[array.dtype], sizes, strides, 0)
    return tensor


def alias(
    tensor: Tensor,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int,
    dtype: dtypes.dtype | None = None,
    conj: bool | None = None,
    neg: bool | None = None,
) -> Tensor:
    """Another tensor over the same storage, unknown to autograd: nothing runs on the device."""
    storage = tensor._xt_storage
    old = tensor._xt_view
    if old is None:
        if storage.cover is None:
            storage.cover = weakref.ref(tensor)
        view = make_view(
            storage, storage, dtype or dtypes.FROM_NUMPY[storage.raw.dtype], sizes, strides, offset
        )
        if conj:
            view.conj = conj
        if neg:
            view.neg = neg
    else:
        view = make_view(
            storage,
            old.counter,
            dtype or old.dtype,
            sizes,
            strides,
            offset,
            old.conj if conj is None else conj,
            old.neg if neg is None else neg,
        )
    result = new(Tensor)
    result._xt_storage = storage
    result._xt_view = view
    result._xt_edge = None
    result._xt_meta = None
    return result


def meta_of(tensor: Tensor) -> AutogradMeta:
    meta = tensor._xt_meta
    if meta is None:
        meta = tensor._xt_meta = AutogradMeta()
    return meta


def edge_of(tensor: Tensor) -> Any:
    """The gradient edge `(node, output number)`, a LeafEdge, or None; a view whose base was written asks the base.

    A view without a history of its own requires grad as its base does, though no gradient flows: `UNREACHED`.
    """
    view = tensor._xt_view
    if view is None or view.base is None:
        return tensor._xt_edge
    if view.attr_version == view.counter.version:
        edge = tensor._xt_edge
        return edge if edge is not None or view.base._xt_edge is None else engine.UNREACHED
    return Tensor._regenerate(tensor)


def asks_grad(tensor: Tensor) -> bool:
    """Whether the tensor requires grad; never renews a view's history, which may refuse."""
    if tensor._xt_edge is not None:
        return True
    view = tensor._xt_view
    return view is not None and view.base is not None and view.base._xt_edge is not None


def refuse_inside(call: str, more: str = "") -> None:
    """RuntimeError for a method that is not for functions that are being transformed."""
    if any(t.name not in ("forward_ad.dual_level", "linearize") for t in modes.state.transforms):
        raise RuntimeError(
            f"You are attempting to call Tensor.{call} {more}inside of a function being transformed by a functorch transform. "
            "This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or "
            f"call {call} outside of a function being transformed instead."
        )


def plain_edge(edge: Any) -> Any:
    """An edge as nodes hold it: a leaf's is made anew where its accumulator died."""
    return edge if edge is None or type(edge) is tuple else edge.edge()


class Tensor(Methods):
    """A multi-dimensional array of one dtype on one device, over a Storage, that autograd can follow."""

    __slots__ = ("__dict__", "__weakref__", "_xt_edge", "_xt_meta", "_xt_storage", "_xt_view")

    _xt_storage: Storage
    _xt_view: View | None
    _xt_edge: Any
    _xt_meta: AutogradMeta | None

    # Set by `ops`, which knows how: a view's history after its base was written; values to the host.
    _regenerate: Callable[[Tensor], Any]
    _seen_as: Callable[..., Tensor]
    __torch_function__: Any
    __torch_dispatch__: Any
    __array_priority__ = 1000
    is_sparse = False
    is_sparse_csr = False
    is_quantized = False
    is_mkldnn = False
    is_nested = False

    def __new__(cls, *data: Any, device: Any = None) -> Tensor:
        source = Tensor._from_legacy(data, device)
        refuse_other_class(cls, source)
        made = tensor_over(source._xt_storage, source._xt_view, source._xt_edge, cls)
        made._xt_meta = source._xt_meta
        return made

    _from_legacy: Callable[..., Tensor]

    # -- sizes, strides, identity

    @property
    def shape(self) -> Size:
        """Its sizes.

        Raises: nothing of its own.

        >>> xtensor.ones(2, 3).shape
        xtensor.Size([2, 3])
        """
        view = self._xt_view
        return new_tuple(Size, self._xt_storage.raw.shape if view is None else view.sizes)

    def size(self, dim: int | None = None) -> Any:
        """The sizes, or the size of one dimension.

        Raises: IndexError where `dim` is out of range.

        >>> xtensor.ones(2, 3).size(1)
        3
        """
        shape = self.shape
        return shape if dim is None else shape[checked_dim(dim, len(shape))]

    def stride(self, dim: int | None = None) -> Any:
        """The strides in elements, or the stride of one dimension.

        Raises: IndexError where `dim` is out of range.

        >>> xtensor.ones(2, 3).stride()
        (3, 1)
        """
        strides = strides_of(self)
        return strides if dim is None else strides[checked_dim(dim, len(strides))]

    def storage_offset(self) -> int:
        """Where in the storage the first element lies, in elements.

        Raises: NotImplementedError for sparse tensors.
        """
        view = self._xt_view
        return 0 if view is None else view.offset

    def dim(self) -> int:
        """How many dimensions it has.

        Raises: nothing of its own.

        >>> xtensor.ones(2, 3).dim()
        2
        """
        view = self._xt_view
        return len(self._xt_storage.raw.shape if view is None else view.sizes)

    ndimension = dim

    @property
    def ndim(self) -> int:
        """How many dimensions it has.

        Raises: nothing of its own.

        >>> xtensor.ones(2, 3).ndim
        2
        """
        return self.dim()

    def numel(self) -> int:
        """The number of elements.

        Raises: nothing of its own.

        >>> xtensor.ones(2, 3).numel()
        6
        """
        return geometry.numel(sizes_of(self))

    nelement = numel

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of its elements.

        Raises: nothing of its own.

        >>> xtensor.ones(2).dtype
        xtensor.float32
        """
        view = self._xt_view
        return dtypes.FROM_NUMPY[self._xt_storage.raw.dtype] if view is None else view.dtype

    @property
    def device(self) -> devices.device:
        """Where the values are.

        Raises: nothing of its own.

        >>> xtensor.ones(2).device.type
        'cpu'
        """
        return self._xt_storage.device

    @property
    def layout(self) -> Any:
        """How its elements are stored: `strided`, or one of the sparse layouts.

        Raises: nothing of its own.
        """
        return dtypes.strided

    @property
    def is_meta(self) -> bool:
        """Whether it has a shape and a dtype, and no values.

        Raises: nothing of its own.
        """
        return self._xt_storage.is_meta

    @property
    def is_cuda(self) -> bool:
        """Whether it is on an NVIDIA GPU.

        Raises: nothing of its own.
        """
        return self.device.type in ("cuda", "rocm")

    @property
    def is_cpu(self) -> bool:
        """Whether it is on a CPU.

        Raises: nothing of its own.
        """
        return self.device.type == "cpu"

    def get_device(self) -> int:
        """The device's index; -1 on a CPU and for a meta tensor.

        Raises: nothing of its own.
        """
        return -1 if self.device.type in ("cpu", "meta") else self.device.index or 0

    def element_size(self) -> int:
        """The size of an element in bytes.

        Raises: nothing of its own.
        """
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes of one element.

        Raises: nothing of its own.
        """
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all its elements.

        Raises: nothing of its own.
        """
        return self.numel() * self.dtype.itemsize

    def untyped_storage(self) -> UntypedStorage:
        """The bytes under this tensor; equal for tensors that share them.

        Raises: NotImplementedError for a sparse tensor.
        """
        return UntypedStorage.over(self._xt_storage)

    def data_ptr(self) -> int:
        """A stable number naming the first element: two views of a storage differ by offset times itemsize.

        Differs from PyTorch: on the CPU it is the address of a copy, which has what the tensor had when this was last
        asked for: it may be read, and what is written there the tensor does not see (but where it shares its memory with
        a NumPy array or a buffer). On other devices it is a name.

        Raises: RuntimeError for sparse tensors.
        """
        address = self._xt_storage.data_ptr()
        if address == 0 or self.numel() == 0:
            return 0
        return address + self.storage_offset() * self.dtype.itemsize

    def is_set_to(self, tensor: Tensor) -> bool:
        """Whether both are the same view of the same storage.

        Raises: TypeError for what is no tensor; NotImplementedError for sparse tensors.
        """
        if not isinstance(tensor, Tensor):
            raise checks.argument_error("is_set_to", "tensor", 1, "Tensor", tensor)
        return (
            self._xt_storage is tensor._xt_storage
            and sizes_of(self) == sizes_of(tensor)
            and strides_of(self) == strides_of(tensor)
            and self.storage_offset() == tensor.storage_offset()
        )

    def is_contiguous(self, memory_format: Any = dtypes.contiguous_format) -> bool:
        """Whether the elements lie in row-major order (or in that of `memory_format`) without gaps.

        Raises: nothing of its own.

        >>> xtensor.ones(2, 3).t().is_contiguous()
        False
        """
        view = self._xt_view
        if view is None and memory_format is dtypes.contiguous_format:
            return True
        return geometry.is_contiguous(sizes_of(self), strides_of(self), memory_format.name)

    def is_complex(self) -> bool:
        """Whether its elements are complex numbers.

        Raises: nothing of its own.
        """
        return self.dtype.is_complex

    def is_floating_point(self) -> bool:
        """Whether its elements are real floating point numbers.

        Raises: nothing of its own.

        >>> xtensor.ones(2).is_floating_point()
        True
        """
        return self.dtype.is_floating_point

    def is_signed(self) -> bool:
        """Whether its dtype has negative numbers.

        Raises: RuntimeError for quantised tensors.
        """
        return self.dtype.is_signed

    def is_conj(self) -> bool:
        """Whether the conjugate bit is set: the values are read conjugated.

        Raises: nothing of its own.
        """
        return self._xt_view is not None and self._xt_view.conj

    def is_neg(self) -> bool:
        """Whether the negative bit is set: the values are read negated.

        Raises: nothing of its own.
        """
        return self._xt_view is not None and self._xt_view.neg

    def is_inference(self) -> bool:
        """Whether it was made in `inference_mode`.

        Raises: nothing of its own.
        """
        return self._xt_meta is not None and self._xt_meta.inference

    @property
    def _version(self) -> int:
        if self._xt_meta is not None and self._xt_meta.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return counter_of(self).version

    def _pin_geometry(self) -> None:
        """Keep the present sizes when the array underneath is about to change its shape."""
        if self._xt_view is None:
            storage = self._xt_storage
            shape = tuple(storage.raw.shape)
            strides = geometry.contiguous_strides(shape)
            self._xt_view = make_view(storage, storage, self.dtype, shape, strides, 0)

    # -- autograd

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are recorded for it; settable for leaves of floating point or complex dtypes.

        Raises: RuntimeError where it is set on tensors of integers.

        >>> xtensor.ones(2).requires_grad
        False
        """
        return asks_grad(self)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if type(value) is not bool:
            raise RuntimeError("requires_grad must be a bool")
        if value and not (self.dtype.is_floating_point or self.dtype.is_complex):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        self._ask_grad(value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask autograd to follow this tensor, in place; only leaves can be asked not to be. RuntimeError inside of a transform.

        Shape: that of the tensor itself, which stays.

        Raises: RuntimeError for tensors of integers, and to turn off what a graph has made.

        >>> xtensor.ones(2).requires_grad_()
        tensor([1., 1.], requires_grad=True)
        """
        if modes.state.transforms:
            refuse_inside("requires_grad_()", "(or perhaps using torch.autograd.functional.* APIs) ")
        return self._ask_grad(requires_grad)

    def _ask_grad(self, requires_grad: bool) -> Tensor:
        edge = edge_of(self)
        if type(edge) is tuple:
            if not requires_grad:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                    "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
            return self
        if requires_grad and (edge is None or edge is engine.UNREACHED):
            if not (self.dtype.is_floating_point or self.dtype.is_complex):
                raise RuntimeError("only Tensors of floating point dtype can require gradients")
            if self.is_inference() and not modes.is_inference_mode_enabled():
                raise RuntimeError(
                    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
                )
            self._xt_edge = engine.LeafEdge(self)
            for transform in reversed(modes.state.transforms):
                if transform.born and transform.own(self._xt_edge):
                    break
            capture.moved(False)
        elif not requires_grad:
            if edge is not None:
                capture.moved(False)
            self._xt_edge = None
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no operator that autograd follows has made it: `.grad` is kept of leaves.

        Raises: nothing of its own.

        >>> xtensor.ones(2, requires_grad=True).exp().is_leaf
        False
        """
        return type(edge_of(self)) is not tuple

    @property
    def grad_fn(self) -> engine.Node | None:
        """The node that made this tensor, or None for a leaf.

        Raises: nothing of its own.
        """
        edge = edge_of(self)
        return edge[0] if type(edge) is tuple else None

    @property
    def _grad_fn(self) -> engine.Node | None:
        return self.grad_fn

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def _backward_hooks(self) -> Any:
        """The hooks on this tensor's gradient, or None."""
        edge = edge_of(self)
        if edge is None or edge is engine.UNREACHED:
            return vars(self).get("_backward_hooks_given")
        if type(edge) is tuple:
            meta = edge[0]._xt_meta
            return (meta.tensor_hooks or {}).get(edge[1]) if meta is not None else None
        return None if edge.tensor_hooks is None else edge.tensor_hooks[0]

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: Any) -> None:
        present = self._backward_hooks
        if hooks is None:
            if present is not None:
                present.clear()
            return
        if not asks_grad(self):  # kept, and never called
            vars(self)["_backward_hooks_given"] = hooks
            return
        for hook in hooks.values():
            self.register_hook(hook)

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    @property
    def output_nr(self) -> int:
        """Which of the results of the operator that made it this is, from 0.

        Raises: nothing of its own.
        """
        edge = edge_of(self)
        return edge[1] if type(edge) is tuple else 0

    @property
    def _base(self) -> Tensor | None:
        return None if self._xt_view is None else self._xt_view.base

    def _is_view(self) -> bool:
        return self._base is not None

    @property
    def data(self) -> Tensor:
        """The same memory, unknown to autograd and with a version of its own.

        Shape: that of the tensor itself.
        Differs from PyTorch: what was saved for backward keeps its values when it is written this way.

        Raises: TypeError where it is set to what is no tensor.

        >>> xtensor.ones(2, requires_grad=True).data.requires_grad
        False
        """
        source = self
        if type(self._xt_storage.raw) in KINDS:
            if batches_of(array_of(self)):
                raise RuntimeError("accessing `data` under vmap transform is not allowed")
            source = self.detach()
        result = alias(source, sizes_of(self), strides_of(self), self.storage_offset())
        assert result._xt_view is not None
        result._xt_view.counter = Counter()
        if modes.state.transforms and asks_grad(self):
            cuts = (t.cut(self) for t in reversed(modes.state.transforms) if hasattr(t, "cut"))
            result._xt_edge = next((edge for edge in cuts if edge is not None), None)
        return result

    @data.setter
    def data(self, source: Tensor) -> None:
        if not isinstance(source, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(source).__name__}")
        if source.layout is not self.layout:
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
            )
        if type(self._xt_storage.raw) in KINDS and batches_of(array_of(self)):
            raise RuntimeError("mutating directly with `.data` under vmap transform is not allowed.")
        if asks_grad(self) and not (source.dtype.is_floating_point or source.dtype.is_complex):
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex dtype"
            )
        counter, before = counter_of(self), self._xt_view
        if not isinstance(counter, Counter) and (before is None or before.base is None):
            counter = Counter(counter.version)  # it holds no memory; a view goes on counting with its base
        capture.moved(False)
        self._xt_storage, edge = source._xt_storage, self._xt_edge
        view = make_view(
            source._xt_storage,
            counter,
            source.dtype,
            sizes_of(source),
            strides_of(source),
            source.storage_offset(),
            source.is_conj(),
            source.is_neg(),
        )
        if source._xt_view is None and source._xt_storage.cover is None:
            source._xt_storage.cover = weakref.ref(source)
        self._xt_view, self._xt_edge = view, edge

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf, or of a tensor that retains it.

        Shape: that of the tensor itself.

        Raises: RuntimeError where it is set to a tensor of other sizes.

        >>> x = xtensor.tensor(3.0, requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad
        tensor(6.)
        """
        meta = self._xt_meta
        if meta is not None and (meta.grad is not None or meta.retains_grad):
            return meta.grad
        if type(self._xt_edge) is tuple:
            warn_of_non_leaf()
        return None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            check_grad(self, value)
        meta_of(self).grad = value

    @grad.deleter
    def grad(self) -> None:
        meta_of(self).grad = None

    _grad = grad

    @property
    def retains_grad(self) -> bool:
        """Whether `.grad` is kept though it is no leaf: see `retain_grad`.

        Raises: nothing of its own.
        """
        return self._xt_meta is not None and self._xt_meta.retains_grad and type(self._xt_edge) is tuple

    @property
    def names(self) -> tuple[None, ...]:
        """None for each dimension: dimensions have no names.

        Raises: nothing of its own.
        """
        return (None,) * self.dim()

    @property
    def name(self) -> str | None:
        """The name that the tensor was given, or None.

        Raises: nothing of its own.
        """
        return None if self._xt_meta is None else self._xt_meta.name

    def __hash__(self) -> int:
        return id(self)

    def __len__(self) -> int:
        sizes = sizes_of(self)
        if not sizes:
            raise TypeError("len() of a 0-d tensor")
        return sizes[0]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return Tensor._reduce(self)

    _reduce: Callable[[Tensor], Any]


def sizes_of(tensor: Tensor) -> tuple[int, ...]:
    view = tensor._xt_view
    return tensor._xt_storage.raw.shape if view is None else view.sizes


def strides_of(tensor: Tensor) -> tuple[int, ...]:
    view = tensor._xt_view
    return geometry.contiguous_strides(tensor._xt_storage.raw.shape) if view is None else view.strides


def refuse_other_class(cls: type[Tensor], source: Tensor) -> None:
    """RuntimeError where the values of a tensor lie elsewhere, and its class alone knows where."""
    kind = type(source)
    if isinstance(source._xt_storage, WrapperStorage) and not issubclass(kind, cls):
        raise RuntimeError(
            f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a python "
            f"object of type {kind.__name__} which is not a subclass of the requested type"
        )


def counter_of(tensor: Tensor) -> Any:
    """What counts this tensor's versions: its storage, or a counter of its own."""
    view = tensor._xt_view
    return tensor._xt_storage if view is None else view.counter


def checked_dim(dim: int, ndim: int) -> int:
    limit = max(ndim, 1)
    if not -limit <= dim < limit:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})"
        )
    return dim


def warn_of_non_leaf() -> None:
    checks.warn(
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
        "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
        "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure "
        "you access the leaf Tensor instead."
    )


def grad_dtype_of(tensor: Tensor) -> Any:
    """The dtype that a tensor's gradient has; None where it may have any."""
    meta = tensor._xt_meta
    return tensor.dtype if meta is None or meta.grad_dtype is OWN else meta.grad_dtype


def check_grad(tensor: Tensor, grad: Any) -> None:
    """Refuse what cannot be the gradient of `tensor`, in PyTorch's words."""
    if not isinstance(grad, Tensor):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}"
        )
    if grad is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    wanted = grad_dtype_of(tensor)
    if wanted is not None and grad.dtype is not wanted:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{dtypes.c_name(grad.dtype)}' to a tensor with "
            f"grad_dtype '{wanted.scalar_name}'. The gradient must match the tensor's grad_dtype (defaults to "
            "the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. "
            "Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems that "
            "assume they match."
        )
    if grad.device != tensor.device:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad.device}' to a tensor with device type "
            f"'{tensor.device}'. Please ensure that the gradient and the tensor are on the same device"
        )
    if sizes_of(grad) != sizes_of(tensor):
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(sizes_of(grad))}' to a tensor of size "
            f"'{list(sizes_of(tensor))}'. Please ensure that the gradient and the tensor are the same size"
        )


def typename(obj: Any) -> str:
    """The name of a tensor's type, `xtensor.FloatTensor`, or the full name of another object's."""
    if isinstance(obj, Tensor):
        return checks.tensor_type(obj)
    module = getattr(obj, "__module__", "") or ""
    qualname = getattr(obj, "__qualname__", None)
    if qualname is None:
        module, qualname = type(obj).__module__ or "", type(obj).__qualname__
    return qualname if module in ("", "builtins") else f"{module}.{qualname}"
