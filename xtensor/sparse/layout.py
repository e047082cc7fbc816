"""Sparse tensors: elements that are stored, and where they lie. Written through `__torch_function__`, as any extension could be.

A tensor of this class has sizes, a dtype and a device of its own and no storage; its elements are the tensor `_held[-1]`, its
coordinates those before. Handlers (`handles`) answer for operators by name; whatever has none refuses as PyTorch does.
Two ways lead between a sparse tensor and its elements, `elements` and `with_elements`, each the other's derivative: an operator
that is written with them over the elements has its gradient for free, and sparse gradients flow where sparse tensors do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from jax.core import ShapedArray

from .. import checks, devices, dtypes
from ..engine import modes
from ..engine.graph import Node
from ..operators.below.dispatching import twin, wrapper
from ..operators.inplace import check_inplace, move_retained
from ..operators.overriding import SubclassesOff, answering_in, arm
from ..operators.recording import noted
from ..operators.write import bump, write_out
from ..ops.create.ingest import from_numpy
from ..tensor import Tensor, array_of, asks_grad, edge_of, plain_edge, sizes_of, tensor_over, wrap
from .pattern import Pattern

__all__ = [
    "HANDLERS",
    "SparseTensor",
    "adopt",
    "elements",
    "given",
    "handles",
    "host",
    "indices_from",
    "is_coo",
    "like_source",
    "linked",
    "make",
    "passing",
    "place_of",
    "refuse",
    "set_place",
    "with_elements",
]

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}
"""What answers for an operator when a sparse tensor is among its arguments, by the operator's name."""

PLAIN = frozenset(
    "requires_grad_ backward register_hook retain_grad size dim ndimension numel nelement is_complex is_floating_point "
    "get_device element_size __len__ __hash__ is_tensor is_same_size _backward_hooks register_post_accumulate_grad_hook "
    "is_inference is_signed _is_view is_conj is_neg is_shared share_memory_ is_pinned has_names _accumulate_grad _gradient_edge "
    "type_as is_cuda_ cuda cpu result_type promote_types can_cast get_device_ __dir__ _typed_storage set_ typename "
    "is_distributed _is_zerotensor is_nonzero_ retains_grad_ checkpoint __setstate__".split()
)
"""Questions about any tensor, which are answered as for any."""
BACKENDS = {"sparse_coo": "SparseCPU"}
KINDS = {"sparse_coo": "Sparse", "sparse_csr": "SparseCsr", "sparse_csc": "SparseCsc"}
KINDS |= {"sparse_bsr": "SparseBsr", "sparse_bsc": "SparseBsc", "strided": "Strided"}


handles = answering_in(HANDLERS)
"""Has a function answer for operators of these names."""


class SparseTensor(Tensor):
    """A tensor of which some elements are stored, with their places; the others are zero.

    _held: the coordinates and the elements. _coalesced: whether those are in order without equals, of COO. _place: the places on the
    host, once asked for, and the arrays of coordinates that they were read from.
    """

    _xt_arms_late = True
    _prints_as = "tensor"

    _held: tuple[Tensor, ...]
    _layout: Any
    _coalesced: bool
    _place: tuple[Pattern, list[Any]] | None

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        made = by_table(HANDLERS, PROPERTIES, func, args, kwargs)
        if made is not UNANSWERED:
            return made
        name = getattr(func, "__name__", "")
        tensor = next(a for a in (*args, *kwargs.values()) if holds(a))
        tensor = tensor if isinstance(tensor, SparseTensor) else next(t for t in tensor if holds(t))
        raise refuse(name, tensor)

    @property
    def layout(self) -> Any:
        return self._layout

    @property
    def is_sparse(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._layout is dtypes.sparse_coo

    @property
    def is_sparse_csr(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._layout is dtypes.sparse_csr

    @property
    def is_meta(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.device.type == "meta"

    @property
    def T(self) -> Any:
        return HANDLERS["t"](self)

    @property
    def mH(self) -> Any:
        return HANDLERS["adjoint"](self)

    @property
    def mT(self) -> Any:
        return HANDLERS["matrix_transpose"](self)

    @property
    def H(self) -> Any:
        return HANDLERS["t"](self).conj()

    @property
    def real(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return HANDLERS["real"](self)

    @property
    def imag(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return HANDLERS["imag"](self)

    def _xt_apart(self) -> Any:
        """Another object with the same elements, in memory of its own."""
        made = twin(self)
        made._held = tuple([wrap(array_of(part)) for part in self._held])
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        return rebuilt, (
            str(self._layout).partition(".")[2],
            self._held,
            tuple(self.shape),
            self._coalesced,
            self.requires_grad,
        )


def data_of(self: SparseTensor) -> Any:
    """The same elements, unknown to autograd."""
    return twin(self)


def set_data(self: SparseTensor, source: Any) -> None:
    """Hold what another sparse tensor does."""
    put(self, source)


SparseTensor.data = property(data_of, set_data)  # pyright: ignore[reportAttributeAccessIssue]


PROPERTIES = frozenset(("__get__", "__set__", "__delete__"))
"""The getters and setters of properties."""
UNANSWERED: Any = object()
"""What `by_table` gives for a call that nothing answers."""


def by_table(table: dict[str, Handler], kept: frozenset[str], func: Any, args: Any, kwargs: Any) -> Any:
    """What a table of handlers makes of a call, or, of questions about any tensor and those of `kept`, any tensor would."""
    name = getattr(func, "__name__", "")
    handler = table.get(name)
    if handler is not None:
        # A method of every tensor asks by itself: what answers is the function within.
        handler = vars(handler).get("__wrapped__", handler)
        return handler(*args, **kwargs)
    return plainly(func, args, kwargs) if name in PLAIN or name in kept else UNANSWERED


def plainly(func: Any, args: Any, kwargs: Any) -> Any:
    """What a function makes of any tensor; what it calls itself asks again."""
    within = getattr(func, "__dict__", {}).get("__wrapped__")
    if within is not None:
        return within(*args, **kwargs)
    with SubclassesOff():
        return func(*args, **kwargs)


def rebuilt(
    layout: str, held: Any, size: tuple[int, ...], coalesced: bool, requires_grad: bool
) -> SparseTensor:
    """A sparse tensor as pickle finds it."""
    made: Any = make(getattr(dtypes, layout), held, size, coalesced)
    return made.requires_grad_(requires_grad)


def holds(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(holds(v) for v in value)
    return isinstance(value, SparseTensor)


def is_coo(value: Any) -> bool:
    """Whether this is a sparse tensor with a coordinate for each element."""
    return isinstance(value, SparseTensor) and value._layout is dtypes.sparse_coo


def refuse(name: str, tensor: SparseTensor) -> NotImplementedError:
    """The error of an operator that sparse tensors have not."""
    backend = "SparseCPU" if is_coo(tensor) else "SparseCsrCPU"
    name = {
        "softmax": "_softmax",
        "log_softmax": "_log_softmax",
        "__eq__": "eq.Tensor",
        "gt": "gt.Scalar",
    }.get(name, name)
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend}' backend. This could be because the operator "
        "doesn't exist for this backend, or was omitted during the selective/custom build process (if using custom build)."
    )


def make(
    layout: Any,
    held: Iterable[Tensor],
    size: Sequence[int],
    coalesced: bool = False,
    place: Pattern | None = None,
) -> SparseTensor:
    """A sparse tensor of parts that are fit for it, unknown to autograd. They are held as they are."""
    arm(SparseTensor)
    check_count(size)
    parts = tuple([t.detach() if asks_grad(t) else t for t in held])
    values = parts[-1]
    # Less than two elements are in order.
    coalesced = coalesced or (layout is dtypes.sparse_coo and values.shape[0] < 2)
    made: Any = wrapper(SparseTensor, tuple(size), (0,) * len(size), 0, values.dtype, values.device)
    made._held, made._layout, made._coalesced = parts, layout, coalesced
    set_place(made, place)
    return made


def set_place(sparse: SparseTensor, place: Pattern | None) -> None:
    """Note where the elements lie."""
    sparse._place = None if place is None else (place, [p._xt_storage.array for p in sparse._held[:-1]])


def place_of(sparse: SparseTensor) -> Pattern | None:
    """Where the elements lie, if that is known: not after the coordinates, which may be shared, were written to."""
    if sparse._place is None:
        return None
    pattern, seen = sparse._place
    same = all(p._xt_storage.array is a for p, a in zip(sparse._held, seen, strict=False))
    return pattern if same else None


def check_count(size: Sequence[int]) -> None:
    """RuntimeError for sizes of which there are more elements than an int64 counts: numbers of places would overflow."""
    count = 1
    for n in size:
        count *= n
        checks.check(count < 1 << 63, "numel: integer multiplication overflow")


def host(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The values of a tensor on the host, not to be written."""
    return np.asarray(array_of(tensor))


def indices_from(array: np.ndarray[Any, Any], place: devices.device) -> Tensor:
    """Coordinates as a tensor."""
    made = from_numpy(np.ascontiguousarray(array))
    return made if place.type == "cpu" else made.to(place)


# ---- autograd ------------------------------------------------------------------------------------------------------


class LayoutNode(Node):
    """A step between tensors of which one is sparse: `transposed` gives the gradients of the sources from that of the result."""

    __slots__ = ("aval", "title", "transposed")

    def __init__(
        self, title: str, edges: tuple[Any, ...], aval: Any, transposed: Callable[[Any], Any]
    ) -> None:
        super().__init__(edges)
        self.title, self.aval, self.transposed = title, aval, transposed

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        return (self.aval,)

    def name(self) -> str:
        return self.title

    def apply(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The gradients of the sources."""
        if grads[0] is None:
            return (None,) * len(self._xt_edges)
        return tuple(self.transposed(grads[0]))


def linked(
    title: str, made: Tensor, sources: Sequence[Tensor | None], transposed: Callable[[Any], Sequence[Any]]
) -> Tensor:
    """A result with its place in the graph, if one of its sources has one."""
    if modes.state.mode & modes.NO_GRAD or not any(s is not None and asks_grad(s) for s in sources):
        return made
    if made.dtype.is_floating_point or made.dtype.is_complex:
        edges = tuple([None if s is None else plain_edge(edge_of(s)) for s in sources])
        aval = ShapedArray(tuple(sizes_of(made)), made.dtype.numpy)
        made._xt_edge = (noted(LayoutNode(title, edges, aval, transposed)), 0)
    return made


def passing(
    title: str,
    function: Callable[..., Any],
    sources: Sequence[Any],
    transposed: Callable[[Any], Sequence[Any]],
) -> Any:
    """A linear function of sparse tensors whose gradient passes whole: sparse as it comes, or dense."""
    if modes.state.mode & modes.NO_GRAD or not any(asks_grad(s) for s in sources):
        return function(*sources)
    with modes.no_grad():
        made = function(*[twin(s) if isinstance(s, SparseTensor) else s.detach() for s in sources])
    return linked(title, made, sources, transposed)


def like_source(grad: Any, source: Tensor) -> Any:
    """A gradient in the dtype of what it is for."""
    if grad.dtype.is_complex and not source.dtype.is_complex:
        grad = grad.real
    return grad if grad.dtype is source.dtype else grad.to(source.dtype)


def shared(tensor: Tensor) -> Tensor:
    """The tensor's memory, unknown to autograd."""
    return tensor.detach()


def elements(sparse: SparseTensor) -> Tensor:
    """The elements of a sparse tensor, which autograd follows."""
    values = shared(sparse._held[-1])
    return linked("ValuesBackward0", values, (sparse,), lambda grad: (HANDLERS["_gradient"](sparse, grad),))


def with_elements(
    sparse: SparseTensor, values: Tensor, size: Sequence[int] | None = None, coalesced: bool | None = None
) -> SparseTensor:
    """Other elements at the places of a sparse tensor, followed by autograd from the elements on."""
    made = assembled(
        sparse._layout,
        (*sparse._held[:-1], values),
        tuple(sparse.shape) if size is None else size,
        sparse._coalesced if coalesced is None else coalesced,
        place_of(sparse) if size is None else None,
    )
    if coalesced is None:
        made._coalesced = sparse._coalesced
    return made


def assembled(
    layout: Any,
    held: Sequence[Tensor],
    size: Sequence[int],
    coalesced: bool = False,
    place: Pattern | None = None,
) -> SparseTensor:
    """A sparse tensor of coordinates and elements, followed by autograd from the elements on."""
    values = held[-1]
    made = make(layout, held, size, coalesced, place)
    kept = made if not asks_grad(values) else twin(made)
    linked(
        "SparseCooTensorWithDimsAndTensorsBackward0",
        made,
        (values,),
        lambda grad: (HANDLERS["_at"](grad, kept),),
    )
    return made


# ---- writing -------------------------------------------------------------------------------------------------------


def put(target: SparseTensor, source: SparseTensor) -> None:
    """Have a sparse tensor hold what another one does."""
    target._held, target._layout = source._held, source._layout
    target._coalesced, target._place = source._coalesced, source._place
    target._xt_storage.array = source._xt_storage.array
    target._xt_view = source._xt_view


def adopt(target: SparseTensor, made: Any, name: str) -> SparseTensor:
    """An in-place operator's end: the target becomes what was made, in the graph too."""
    tracked = not modes.state.mode & modes.NO_GRAD
    if tracked:
        check_inplace(target, made.requires_grad or target.requires_grad)
    if made.dtype is not target.dtype:
        if not dtypes.can_cast(made.dtype, target.dtype):
            raise RuntimeError(
                f"result type {made.dtype.scalar_name} can't be cast to the desired output type {target.dtype.scalar_name}"
            )
        made = HANDLERS["to"](made, target.dtype)
    storage = target._xt_storage
    target._held, target._layout = made._held, made._layout
    target._coalesced, target._place = made._coalesced, made._place
    bump(target, name, 3)
    if sizes_of(made) != sizes_of(target):
        storage.array = made._xt_storage.array
        view = tensor_over(storage, made._xt_view)._xt_view
        view.counter = storage
        target._xt_view = view
    if tracked and made._xt_edge is not None:
        if type(made._xt_edge) is tuple:
            move_retained(target, made._xt_edge[0])
        target._xt_edge = made._xt_edge
    return target


def given(out: Tensor | None, made: Tensor, name: str) -> Tensor:
    """A result, or `out` with what it holds."""
    if out is None:
        return made
    if isinstance(out, SparseTensor):
        return adopt(out, made if isinstance(made, SparseTensor) else HANDLERS["to_sparse"](made), name)
    write_out(name, out, HANDLERS["to_dense"](made) if isinstance(made, SparseTensor) else made, [])
    return out


def strided(tensor: Tensor, name: str) -> Tensor:
    """A dense argument; RuntimeError for a sparse one."""
    checks.check(not isinstance(tensor, SparseTensor), "{}: expected a strided tensor", name)
    return tensor
