"""Operators on nested tensors, element by element: those over the values, with what is dense cut as the values are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine import modes
from ..operators.below.dispatching import twin
from ..operators.inplace import check_inplace, move_retained
from ..operators.write import bump
from ..tensor import Size, Tensor
from .layout import (
    JAGGED,
    STRIDED,
    NestedTensor,
    found,
    handles,
    is_jagged,
    name_of,
    numel_of,
    set_data,
    values_of,
    with_values,
)

__all__ = ["copied", "fitted", "is_pointwise", "over_values", "put", "refused"]

POINTWISE = ".ops.pointwise."
ALIKE = (
    "to float double half bfloat16 int long short bool char byte clone contiguous cuda cpu type zeros_like ones_like empty_like full_like "
    "rand_like randn_like randint_like dropout alpha_dropout feature_dropout where masked_fill bernoulli isfinite isreal type_as conj "
    "resolve_conj resolve_neg real imag threshold relu6 hardtanh nan_to_num isin"
).split()
"""What is element by element and declared elsewhere."""
STRIDED_ONES = frozenset(
    "add sub rsub mul multiply div divide true_divide eq ne ge gt le lt not_equal greater less greater_equal less_equal neg negative abs absolute sgn "
    "logical_not relu gelu silu tanh cos sin sqrt isnan isinf isposinf isneginf dropout masked_fill to float double half bfloat16 int long "
    "short bool clone contiguous zeros_like ones_like empty_like full_like rand_like randn_like fill zero copy threshold cpu cuda type "
    "char byte type_as where".split()
)
"""What PyTorch has for strided ones."""


def is_pointwise(func: Any) -> bool:
    """Whether a function is declared among the element-wise operators."""
    operator = getattr(func, "operator", None)
    home = getattr(func, "__module__", "") if operator is None else operator.kernel.__module__
    return POINTWISE in f"{home}."


def refused(nested: NestedTensor, name: str) -> NotImplementedError:
    """The error of an operator that nested tensors of a layout have not."""
    if is_jagged(nested):
        return NotImplementedError(f"aten.{name}.default")
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend. This could be because the operator "
        "doesn't exist for this backend, or was omitted during the selective/custom build process (if using custom build)."
    )


def fitted(dense: Tensor, like: NestedTensor, name: str) -> Tensor:
    """A dense argument that broadcasts to a jagged tensor, cut as its values are; RuntimeError where it does not."""
    rows, at, dims = like._nested_rows, like._nested_dim, like.dim()
    sizes = tuple(dense.shape)
    lacking = dims - len(sizes)
    if lacking > 0 and (at < lacking or sizes[at - lacking] == 1):
        return dense
    if lacking == 0 and sizes[0] == 1 and sizes[at] == 1:
        return dense.squeeze(0)
    if lacking == 0 and sizes[0] == rows.count and rows.lengths is None:
        place = dense.device
        if sizes[at] == 1:
            return dense.squeeze(at).index_select(0, rows.owners(place)).movedim(0, at - 1)
        if sizes[at] != rows.high:
            raise RuntimeError(
                f"The expanded size of the tensor ({rows.high}) must match the existing size ({sizes[at]}) at non-singleton dimension "
                f"{at}.  Target sizes: {[*sizes[:at], rows.high, *sizes[at + 1 :]]}.  Tensor sizes: {list(sizes)}"
            )
        flat = dense.movedim(at, 1).flatten(0, 1)
        return flat.index_select(0, rows.packing(place)).movedim(0, at - 1)
    raise unlike(name, like.shape, Size(sizes))


def unlike(name: str, first: Any, second: Any) -> RuntimeError:
    return RuntimeError(
        f"cannot call binary pointwise function {name}.Tensor with inputs of shapes {first} and {second}"
    )


def opened(value: Any, like: NestedTensor, name: str, cut: bool) -> Any:
    """An argument as the values of `like` meet it."""
    if isinstance(value, NestedTensor):
        if (
            value._nested_rows != like._nested_rows
            or value._nested_dim != like._nested_dim
            or value.dim() != like.dim()
        ):
            if not is_jagged(value) or not is_jagged(like):
                raise RuntimeError(f"{name} does not support broadcasting when given a NestedTensor")
            raise unlike(name, tuple(like.shape), tuple(value.shape))
        return values_of(value)
    if isinstance(value, Tensor) and cut and value.dim():
        if is_jagged(like):
            return fitted(value, like, name)
        raise RuntimeError(
            "Expected both self and other to be nested, but got a nested self and non-nested other"
        )
    return value


def over_values(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """An element-wise operator's result: what it makes of the values, under the same rows."""
    like: Any = found((*args, *kwargs.values()))
    name = name_of(func)
    if kwargs.get("out") is not None:
        raise refused(like, f"{name}.out")
    given = [opened(a, like, name, name not in ("to", "type_as")) for a in args]
    named = {key: opened(value, like, name, True) for key, value in kwargs.items() if key != "layout"}
    made = func(*given, **named)
    if not isinstance(made, Tensor):
        if name == "type":
            return made
        raise refused(like, name)
    return with_values(made, like._nested_rows, like._nested_dim)


def put(target: NestedTensor, values: Tensor, edge: Any, name: str) -> NestedTensor:
    """An in-place operator's end: the memory of the target holds these values, and the graph what made them."""
    tracked = not modes.state.mode & modes.NO_GRAD
    if tracked:
        check_inplace(target, edge is not None or target.requires_grad)
    target._nested_values.copy_(values.detach())
    bump(target, name, 3)
    if tracked and edge is not None:
        if type(edge) is tuple:
            move_retained(target, edge[0])
        target._xt_edge = edge
    return target


def in_place(func: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
    """An operator that writes to a nested tensor: made beside it, and then put."""
    name = func.__name__.strip("_")
    if not isinstance(self, NestedTensor):
        raise RuntimeError(f"{name}_(): a dense tensor cannot hold a nested result")
    given = [opened(a, self, name, True) for a in args]
    named = {key: opened(value, self, name, True) for key, value in kwargs.items()}
    made = with_values(func(values_of(self).clone(), *given, **named), self._nested_rows, self._nested_dim)
    return put(self, made._nested_values, made._xt_edge, name)


def writes(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return (name.endswith("_") and not name.endswith("__")) or (
        name.startswith("__i") and name not in ("__invert__",)
    )


@handles(JAGGED, "otherwise")
def jagged(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """An operator that jagged tensors have by its kind; NotImplementedError for others."""
    name = func.__name__.strip("_")
    known = is_pointwise(func) or name in ALIKE or name in ("copy", "fill", "zero")
    nested: Any = found((*args, *kwargs.values()))
    if known or (writes(func) and getattr(func, "operator", None) is not None):
        return in_place(func, *args, **kwargs) if writes(func) else over_values(func, *args, **kwargs)
    raise refused(nested, name_of(func))


@handles(JAGGED, "numpy", "__array__", "tolist")
def to_host(func: Callable[..., Any], self: NestedTensor, *args: Any, **kwargs: Any) -> Any:
    if func.__name__ == "tolist":
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")
    raise RuntimeError(".numpy() is not supported for tensor subclasses.")


def item(func: Callable[..., Any], self: NestedTensor) -> Any:
    """The value of a nested tensor with one element."""
    if numel_of(self) != 1:
        raise RuntimeError(f"a Tensor with {numel_of(self)} elements cannot be converted to Scalar")
    return self._nested_values.item()


@handles(STRIDED, "otherwise")
def strided(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """An operator that strided nested tensors have by its kind; NotImplementedError for others."""
    name = name_of(func)
    nested: Any = found((*args, *kwargs.values()))
    if STRIDED_ONES.isdisjoint((name, func.__name__.strip("_"))):
        raise refused(nested, name)
    if name in ("eq", "ne", "lt", "le") and len(args) > 1 and isinstance(args[1], NestedTensor):
        raise RuntimeError(f"{name} does not support nested tensor as other value.")
    return in_place(func, *args, **kwargs) if writes(func) else over_values(func, *args, **kwargs)


def copied(func: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """The same values, unknown to autograd."""
    return twin(self)


def data_of(self: Any) -> Any:
    return twin(self)


NestedTensor.data = property(data_of, set_data)  # pyright: ignore[reportAttributeAccessIssue]
for _table in (JAGGED, STRIDED):
    _table["item"] = item
    _table["detach"] = _table["data"] = copied
    _table["__deepcopy__"] = lambda func, self, memo: NestedTensor.__deepcopy__(self, memo)
