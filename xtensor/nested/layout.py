"""Nested tensors: rows of different sizes, held one after the other. Written through `__torch_function__`, as any extension could be.

A nested tensor has a dense tensor of values and `rows` (`rows.py`), which say how they are cut. Jagged ones differ in one dimension,
and their values have all dimensions but the first; strided ones differ in any, and their values are flat. Two ways lead between a
nested tensor and its values, `values_of` and `with_values`, each the other's derivative, so that operators over the values have
their gradients for free. Handlers answer for operators by name, in one table for each layout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..operators.below.dispatching import wrapper
from ..operators.overriding import answering_in, arm
from ..sparse.layout import PLAIN, linked, plainly
from ..tensor import Size, Tensor, asks_grad
from .rows import NestedInt, Pieces, Ragged, ragged

__all__ = [
    "JAGGED",
    "STRIDED",
    "NestedTensor",
    "handles",
    "holding",
    "is_jagged",
    "name_of",
    "found",
    "numel_of",
    "symbolic",
    "values_of",
    "with_values",
]

Handler = Callable[..., Any]
JAGGED: dict[str, Handler] = {}
STRIDED: dict[str, Handler] = {}
"""What answers for an operator by its name, given the function that was called and its arguments."""
FREE = PLAIN - {"size", "numel", "nelement", "is_same_size", "cuda", "cpu", "type_as", "__len__"}
OTHER_NAMES = {"multiply": "mul", "truediv": "div", "power_of": "pow", "invert": "bitwise_not"}


def handles(table: dict[str, Handler], *names: str) -> Callable[[Handler], Handler]:
    """Have a function answer for operators of these names."""
    return answering_in(table)(*names)


def name_of(func: Any) -> str:
    """The name of a function as its operator has it."""
    operator = getattr(func, "operator", None)
    name = getattr(func, "__name__", "") if operator is None else operator.name
    return OTHER_NAMES.get(name.strip("_"), name.strip("_"))


class NestedTensor(Tensor):
    """Tensors of different sizes as one: `xtensor.nested.nested_tensor` makes them.

    >>> x = xtensor.nested.nested_tensor([xtensor.ones(2, 3), xtensor.ones(4, 3)], layout=xtensor.jagged)
    >>> x.sum(1)
    tensor([[2., 2., 2.],
            [4., 4., 4.]])
    """

    _xt_arms_late = True
    _xt_inner = "_nested_values"
    _nested_values: Tensor
    _nested_rows: Any
    _nested_dim: int

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in ("__get__", "__set__", "__delete__"):
            return plainly(func, args, kwargs)
        nested = found((*args, *kwargs.values()))
        table = JAGGED if is_jagged(nested) else STRIDED
        handler = table.get(name) or table.get(name_of(func))
        if handler is not None:
            return handler(func, *args, **kwargs)
        if name in FREE:
            return plainly(func, args, kwargs)
        return table["otherwise"](func, *args, **kwargs)

    @property
    def is_nested(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return True

    @property
    def layout(self) -> Any:
        return dtypes.jagged if is_jagged(self) else dtypes.strided

    @property
    def shape(self) -> Size:  # pyright: ignore[reportIncompatibleVariableOverride]
        if not is_jagged(self):
            raise RuntimeError(
                "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."
            )
        sizes: list[Any] = list(self._nested_values.shape)
        sizes[self._nested_dim - 1] = self._nested_rows.size
        return Size((self._nested_rows.count, *sizes))

    @property
    def nbytes(self) -> int:
        return self._nested_values.nbytes

    @property
    def T(self) -> Any:
        return self.permute(*reversed(range(self.dim())))

    @property
    def mT(self) -> Any:
        return self.transpose(-2, -1)

    @property
    def _max_seqlen(self) -> int:
        return self._nested_rows.high

    @property
    def _min_seqlen(self) -> int:
        return self._nested_rows.low

    def __iter__(self) -> Any:
        return iter(self.unbind())

    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def offsets(self) -> Tensor:
        """Where the rows of a jagged tensor begin in its values, and where the last ends."""
        return rows_of(self, "offsets").offsets

    def lengths(self) -> Tensor | None:
        """How long the rows of a jagged tensor are; None where they follow from the offsets."""
        return rows_of(self, "lengths").lengths

    def __reduce_ex__(self, protocol: Any) -> Any:
        rows = self._nested_rows
        cut = (
            (rows.offsets, rows.lengths, rows.low, rows.high) if is_jagged(self) else (rows.sizes, rows.dims)
        )
        return rebuilt, (cut, self._nested_values, self._nested_dim, self.requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if self._xt_edge is not None and not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
                "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, "
                "see https://github.com/pytorch/pytorch/pull/103001"
            )
        if id(self) not in memo:
            made = holding(self._nested_values.detach().clone(), self._nested_rows, self._nested_dim)
            memo[id(self)] = made.requires_grad_(self.requires_grad)
        return memo[id(self)]

    def __repr__(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return (JAGGED if is_jagged(self) else STRIDED)["text"](self)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def rebuilt(cut: Any, values: Tensor, dim: int, requires_grad: bool) -> Any:
    """A nested tensor as pickle finds it."""
    rows = Pieces(*cut) if len(cut) == 2 else ragged(*cut)
    return holding(values.detach(), rows, dim).requires_grad_(requires_grad)


def set_data(self: Any, source: Any) -> None:
    """Hold what another nested tensor does."""
    self._nested_values, self._nested_rows, self._nested_dim = (
        source._nested_values,
        source._nested_rows,
        source._nested_dim,
    )
    self._xt_storage.array, self._xt_view = source._xt_storage.array, source._xt_view


def rows_of(nested: NestedTensor, name: str) -> Ragged:
    if not is_jagged(nested):
        raise AttributeError(f"'Tensor' object has no attribute '{name}'")
    return nested._nested_rows


def found(values: Any) -> Any:
    """The first nested tensor among arguments and their lists; None where there is none."""
    for value in values:
        if isinstance(value, NestedTensor):
            return value
        if isinstance(value, (list, tuple)):
            inner = found(value)
            if inner is not None:
                return inner
    return None


def is_jagged(value: Any) -> bool:
    """Whether this is a nested tensor with one ragged dimension."""
    return isinstance(value, NestedTensor) and isinstance(value._nested_rows, Ragged)


def holding(values: Tensor, rows: Any, dim: int = 1) -> Any:
    """A nested tensor over values, unknown to autograd. Its own sizes stand for the ragged ones: the total of the rows'."""
    arm(NestedTensor)
    if isinstance(rows, Pieces):
        known = [rows.regular(d) if rows.sizes else 0 for d in range(rows.dims - 1)]
        total = [sum(size[d] for size in rows.sizes) if k is None else k for d, k in enumerate(known)]
        sizes = (len(rows.sizes), *total)
    else:
        sizes = (rows.count, *values.shape)
    made: Any = wrapper(NestedTensor, sizes, None, 0, values.dtype, values.device)
    made._nested_values = values.detach() if asks_grad(values) else values
    made._nested_rows, made._nested_dim = rows, dim
    return made


def values_of(nested: NestedTensor) -> Tensor:
    """The values of a nested tensor, followed by autograd."""
    rows, dim = nested._nested_rows, nested._nested_dim
    values = nested._nested_values.detach()
    return linked("ValuesBackward0", values, (nested,), lambda grad: (with_values(grad, rows, dim),))


def with_values(values: Tensor, rows: Any, dim: int = 1) -> Any:
    """Values under rows, followed by autograd from the values on."""
    made = holding(values, rows, dim)
    step = values.grad_fn
    title = "NestedViewFromBufferBackward0" if step is None else step.name()
    return linked(title, made, (values,), lambda grad: (values_of(grad),))


def numel_of(nested: NestedTensor) -> int:
    """How many elements the rows have."""
    rows = nested._nested_rows
    if isinstance(rows, Ragged) and rows.lengths is not None:
        sizes = list(nested._nested_values.shape)
        del sizes[nested._nested_dim - 1]
        return math.prod(sizes) * int(rows.counts.sum())
    return nested._nested_values.numel()


def symbolic(size: Any) -> bool:
    """Whether this is the size of a ragged dimension."""
    return isinstance(size, NestedInt)
