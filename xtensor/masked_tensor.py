"""Tensors that carry a mask, `torch.masked.MaskedTensor`: written through `__torch_function__`, as sparse ones are.

A masked tensor has data and a mask of the same sizes, True where an element counts; both are dense, or both are COO or CSR with elements
at the same places. Two ways lead between it and the data, `data_of` and `with_mask`, each the other's derivative, so that operators over the
data have their gradients for free.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import dtypes
from .operators.below.dispatching import twin, wrapper
from .operators.overriding import arm
from .ops.create.creation import zeros
from .ops.index.masks import where
from .ops.shape.joining import cat, stack
from .sparse import under_masks
from .sparse.layout import PLAIN, host, linked, plainly
from .tensor import Tensor, asks_grad

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

HANDLERS: dict[str, Callable[..., Any]] = {}
UNARY = (
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp clip "
    "conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan "
    "nan_to_num neg negative positive pow __pow__ rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan "
    "tanh trunc relu clone contiguous to float double half bfloat16 int long short bool t transpose permute reshape view unsqueeze "
    "squeeze expand flatten __getitem__ select narrow swapaxes movedim ones_like"
).split()
SHAPES = frozenset(
    "t transpose permute reshape view unsqueeze squeeze expand flatten __getitem__ select narrow swapaxes movedim contiguous clone".split()
)
"""Of those, what changes the mask as it does the data."""
BINARY = (
    "add sub mul div divide true_divide subtract multiply __rsub__ __rdiv__ rsub floor_divide __floordiv__ __rfloordiv__ fmod remainder "
    "atan2 arctan2 bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__ eq __eq__ ne ge gt le lt maximum minimum fmax fmin "
    "logaddexp logaddexp2 nextafter not_equal greater less greater_equal less_equal"
).split()
REDUCTIONS = "sum mean prod amin amax argmin argmax std var".split()


class MaskedTensor(Tensor):
    """A tensor of which only the elements count where a mask is True.

    >>> from xtensor.masked import masked_tensor
    >>> x = masked_tensor(xtensor.tensor([1.0, 2.0, 3.0]), xtensor.tensor([True, False, True]))
    >>> x
    MaskedTensor(
      [  1.0000,       --,   3.0000]
    )
    >>> x.sum()
    MaskedTensor(  4.0000, True)
    """

    _xt_arms_late = True
    _masked_data: Tensor
    _masked_mask: Tensor

    @staticmethod
    def __new__(cls, data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
        check(data, mask)
        made = holding(fitted(data.detach(), mask).clone(), mask.clone())
        if requires_grad:
            made.requires_grad_()
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is left to do."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        handler = HANDLERS.get(name)
        if handler is not None:
            return handler(*args, **(kwargs or {}))
        if name in PLAIN or name in (
            "__get__",
            "__set__",
            "__delete__",
            "is_contiguous",
            "stride",
            "storage_offset",
        ):
            return plainly(func, args, kwargs or {})
        raise TypeError(
            f"Multiple dispatch failed for 'torch._ops.aten.{name}.default'; all __torch_dispatch__ handlers returned NotImplemented:"
            f"\n\n  - tensor subclass {MaskedTensor!r}"
        )

    def get_data(self) -> Tensor:
        """The data, those elements included that do not count; followed by autograd."""
        return data_of(self)

    def get_mask(self) -> Tensor:
        """The mask."""
        return self._masked_mask

    def to_tensor(self, value: Any) -> Tensor:
        """The data with a value where elements do not count."""
        return filled(self._masked_mask, data_of(self), value)

    @property
    def layout(self) -> Any:
        """The layout of the data."""
        return self._masked_data.layout

    @property
    def is_sparse(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the data is sparse."""
        return under_masks.is_sparse(self._masked_data)

    def is_sparse_coo(self) -> bool:
        """Whether the data is in COO layout."""
        return self.layout is dtypes.sparse_coo

    def is_sparse_csr(self) -> bool:  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        """Whether the data is in CSR layout."""
        return self.layout is dtypes.sparse_csr

    def __repr__(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return text(self)


def check(data: Any, mask: Any) -> None:
    """Refuse what cannot be the data and the mask of a tensor."""
    for value, what in ((data, "data"), (mask, "mask")):
        if not isinstance(value, Tensor):
            raise TypeError(f"{what} must be a Tensor")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if tuple(data.shape) != tuple(mask.shape):
        raise ValueError("data.size() must equal mask.size()")
    if mask.dtype is not dtypes.bool:
        raise TypeError("mask must have dtype bool.")
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout not in (dtypes.strided, dtypes.sparse_coo, dtypes.sparse_csr):
        raise TypeError(f"data layout of {data.layout} is not supported.")


def fitted(data: Tensor, mask: Tensor) -> Tensor:
    """Data with its elements where a mask has them, if both are sparse."""
    if under_masks.is_sparse(data) and not under_masks.same_places(data, mask):
        return data.sparse_mask(mask)
    return data


def filled(mask: Any, data: Any, value: Any) -> Tensor:
    """Data with a value where a mask is False; of sparse data, of the elements that are stored."""
    rest = zeros((), dtype=data.dtype, device=data.device) + value
    if under_masks.is_sparse(data):
        return under_masks.of_elements(where, mask, data, rest)
    return where(mask, data, rest)


def holding(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor over data and a mask, unknown to autograd."""
    arm(MaskedTensor)
    strides = None if under_masks.is_sparse(data) else tuple(data.stride())
    made: Any = wrapper(MaskedTensor, tuple(data.shape), strides, 0, data.dtype, data.device)
    made._masked_data, made._masked_mask = data.detach() if asks_grad(data) else data, mask
    return made


def data_of(masked: MaskedTensor) -> Tensor:
    """The data, followed by autograd."""
    found, mask = masked._masked_data.detach(), masked._masked_mask
    return linked("GetDataBackward", found, (masked,), lambda grad: (with_mask(grad, mask),))


def with_mask(data: Any, mask: Tensor) -> Any:
    """Data under a mask, followed by autograd from the data on."""
    if isinstance(data, MaskedTensor):
        return data
    made = holding(data, mask)
    return linked("ConstructorBackward", made, (data,), lambda grad: (dense_gradient(grad),))


def dense_gradient(grad: Any) -> Any:
    """The gradient of data from that of a masked tensor: zero where elements do not count."""
    return grad.to_tensor(0) if isinstance(grad, MaskedTensor) else grad


def masked_tensor(data: Tensor, mask: Tensor, requires_grad: bool = False) -> MaskedTensor:
    """A masked tensor of copies of data and a mask, a leaf.

    Shape: `data` `(*)`, `mask` `(*)`, result `(*)`.

    Raises: TypeError where the mask is not of bools; ValueError where it has other sizes.

    >>> from xtensor.masked import masked_tensor
    >>> masked_tensor(xtensor.tensor([1, 2]), xtensor.tensor([False, True])).to_tensor(0)
    tensor([0, 2])
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data: Tensor, mask: Tensor) -> MaskedTensor:
    """A masked tensor over data and a mask themselves; gradients go on to the data.

    Shape: `data` `(*)`, `mask` `(*)`, result `(*)`.

    Raises: TypeError where the mask is not of bools; ValueError where it has other sizes.
    """
    check(data, mask)
    return with_mask(fitted(data, mask), mask)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether this is a masked tensor.

    Raises: nothing of its own.
    """
    return isinstance(obj, MaskedTensor)


# ---- operators -----------------------------------------------------------------------------------------------------


def function_of(name: str) -> Callable[..., Any]:
    """A method of tensors, or a function."""
    library = importlib.import_module(__name__.partition(".")[0])
    return getattr(Tensor, name, None) or getattr(library, name)


def unary(name: str) -> None:
    def apply(self: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        function = function_of(name)
        plain = [a._masked_data if isinstance(a, MaskedTensor) else a for a in args]
        if name not in SHAPES and under_masks.is_sparse(self._masked_data):
            return with_mask(
                under_masks.of_elements(function, data_of(self), *plain, **kwargs), self._masked_mask
            )
        made = function(data_of(self), *plain, **kwargs)
        mask = function(self._masked_mask, *plain, **kwargs) if name in SHAPES else self._masked_mask
        return with_mask(made, mask)

    HANDLERS[name] = apply


def same_mask(values: Sequence[Any]) -> Tensor:
    """The mask that all masked arguments have; ValueError where they differ."""
    masks = [v._masked_mask for v in values if isinstance(v, MaskedTensor)]
    for other in masks[1:]:
        if other is not masks[0] and not equal_masks(other, masks[0]):
            raise ValueError(
                "Input masks must match. If you need support for this, please open an issue on Github."
            )
    return masks[0]


def equal_masks(first: Any, second: Any) -> bool:
    if under_masks.is_sparse(first) or under_masks.is_sparse(second):
        if not under_masks.same_places(first, second):
            return False
        first, second = under_masks.element_mask(first), under_masks.element_mask(second)
    return np.array_equal(host(first), host(second))


def opened(value: Any) -> Any:
    return data_of(value) if isinstance(value, MaskedTensor) else value


def binary(name: str) -> None:
    def apply(input: Any, other: Any, **kwargs: Any) -> Any:
        mask = same_mask((input, other))
        if under_masks.is_sparse(mask):
            made = under_masks.of_elements(function_of(name), opened(input), opened(other), **kwargs)
            return with_mask(made, mask)
        made = function_of(name)(opened(input), opened(other), **kwargs)
        return with_mask(made, mask.expand(tuple(made.shape)))

    HANDLERS[name] = apply


def inplace(name: str) -> None:
    def write(self: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        made = HANDLERS[name.rstrip("_")](self, *args, **kwargs)
        function_of("copy_")(self._masked_data, made._masked_data.detach())
        return self

    HANDLERS[name] = write


def reduction(name: str) -> None:
    def reduce(input: MaskedTensor, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
        masked = importlib.import_module(f"{__name__.partition('.')[0]}.masked")
        if args:
            kwargs["keepdim"] = args[0]
        if input.is_sparse:
            if dim is not None or kwargs.get("keepdim"):
                raise RuntimeError(f"masked {name} of sparse data is over all dimensions")
            mask: Any = under_masks.element_mask(input._masked_mask).reshape(-1)
            values = under_masks.element_mask(data_of(input)).reshape(-1)
            return with_mask(getattr(masked, name)(values, **kwargs, mask=mask), mask.any())
        mask, keepdim = input._masked_mask, kwargs.get("keepdim", False)
        if name in ("std", "var"):
            kwargs.setdefault("unbiased", True)
        if name in ("argmin", "argmax") and dim is None:
            made = getattr(masked, name)(data_of(input), **kwargs, mask=mask)
        else:
            made = getattr(masked, name)(data_of(input), dim, **kwargs, mask=mask)
        dims = tuple(range(input.dim())) if dim is None else dim
        left = mask.any() if dim is None and not keepdim else any_over(mask, dims, keepdim)
        return with_mask(made, left)

    HANDLERS[name] = reduce


def any_over(mask: Tensor, dims: Any, keepdim: bool) -> Tensor:
    """Where any element counts."""
    found = mask
    for d in sorted(
        [d % mask.dim() for d in (dims if isinstance(dims, (tuple, list)) else (dims,))], reverse=True
    ):
        found = found.any(d, keepdim)
    return found


for _name in UNARY:
    unary(_name)
for _name in BINARY:
    binary(_name)
for _name in REDUCTIONS:
    reduction(_name)
for _name in (
    "add_",
    "sub_",
    "mul_",
    "div_",
    "ceil_",
    "floor_",
    "abs_",
    "neg_",
    "sqrt_",
    "exp_",
    "relu_",
    "round_",
    "sin_",
):
    inplace(_name)


def all_(input: MaskedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether all elements that count are not zero."""
    whole = where(input._masked_mask, input._masked_data.bool(), input._masked_mask.logical_not())
    made = whole.all() if dim is None else whole.all(dim, keepdim)
    left = input._masked_mask.any() if dim is None else any_over(input._masked_mask, dim, keepdim)
    return with_mask(made, left)


def joined(function: Callable[..., Tensor]) -> Callable[..., Any]:
    def join(tensors: Sequence[Any], dim: int = 0) -> Any:
        masks = [t._masked_mask for t in tensors]
        return with_mask(function([data_of(t) for t in tensors], dim), function(masks, dim))

    return join


def softened(name: str) -> Callable[..., Any]:
    def soft(input: MaskedTensor, dim: int, dtype: Any = None, **more: Any) -> Any:
        masked = importlib.import_module(f"{__name__.partition('.')[0]}.masked")
        made = getattr(masked, name)(data_of(input), dim, dtype=dtype, mask=input._masked_mask)
        return with_mask(made, input._masked_mask)

    return soft


def chosen(condition: Any, input: Any = None, other: Any = None) -> Any:
    """`where` of masked tensors: the chosen data, and the chosen mask."""
    if isinstance(condition, MaskedTensor):
        condition, input = input, condition
    masks = [
        v._masked_mask
        if isinstance(v, MaskedTensor)
        else condition.new_ones(()).expand(tuple(condition.shape))
        for v in (input, other)
    ]
    return with_mask(where(condition, opened(input), opened(other)), where(condition, *masks))


def refused(message: str, kind: type[Exception] = RuntimeError) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise kind(message)

    return refuse


def item(self: MaskedTensor) -> Any:
    """The value of a tensor with one element."""
    return self._masked_data.item()


def new_ones(self: MaskedTensor, *size: Any, **options: Any) -> Tensor:
    """Ones as the gradient of a masked tensor begins with."""
    shape = size[0] if size and not isinstance(size[0], int) else size
    return self._masked_data.new_ones(shape, **options)


def to_dense(self: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
    """The data and the mask as strided tensors."""
    return with_mask(*under_masks.to_dense(data_of(self), self._masked_mask))


def to_layout(layout: Any) -> Callable[..., Any]:
    def convert(self: MaskedTensor, *args: Any, **kwargs: Any) -> Any:
        return with_mask(*under_masks.to_layout(data_of(self), self._masked_mask, layout))

    return convert


HANDLERS.update(
    to_dense=to_dense,
    to_sparse=to_layout(dtypes.sparse_coo),
    to_sparse_coo=to_layout(dtypes.sparse_coo),
    to_sparse_csr=to_layout(dtypes.sparse_csr),
    new_ones=new_ones,
    all=all_,
    cat=joined(cat),
    concat=joined(cat),
    stack=joined(stack),
    softmax=softened("softmax"),
    log_softmax=softened("log_softmax"),
    where=chosen,
    item=item,
    detach=twin,
    resolve_conj=lambda self: self,
    resolve_neg=lambda self: self,
    __array__=refused(".numpy() is not supported for tensor subclasses."),
    numpy=refused(".numpy() is not supported for tensor subclasses."),
    tolist=refused(".tolist() is not supported for tensor subclasses, got MaskedTensor"),
)


# ---- text ----------------------------------------------------------------------------------------------------------


def text(masked: MaskedTensor) -> str:
    """A masked tensor as text, with two dashes where elements do not count."""
    values, mask = map(host, under_masks.to_dense(masked._masked_data, masked._masked_mask))
    shown = np.empty(values.shape, object)
    for at in np.ndindex(*values.shape):
        value = values[at].item()
        kept = f"{value:8.4f}" if isinstance(value, float) else str(value)
        shown[at] = kept if mask[at] else ("      --" if values.ndim else "--")
    if not values.ndim:
        return f"MaskedTensor({shown[()]}, {bool(mask)})"
    return f"MaskedTensor(\n{lines(shown, 2)}\n)"


def lines(shown: Any, indent: int) -> str:
    pad = " " * indent
    if shown.ndim == 1:
        return f"{pad}[{', '.join(shown)}]"
    return f"{pad}[\n" + ",\n".join(lines(row, indent + 2) for row in shown) + f"\n{pad}]"
