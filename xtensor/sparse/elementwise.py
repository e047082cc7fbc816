"""Operators on every element: those that keep zeros stay sparse, sums and products of sparse tensors with anything."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import checks, dtypes, geometry
from ..engine import is_executing, is_grad_enabled
from ..engine.modes import no_grad
from ..ops.create.creation import zeros
from ..ops.shape.joining import cat, stack
from ..ops.tensor.queries import result_type
from ..tensor import Tensor
from .convert import as_coo, compress, convert, densify
from .layout import (
    HANDLERS,
    SparseTensor,
    adopt,
    elements,
    given,
    handles,
    indices_from,
    is_coo,
    like_source,
    linked,
    passing,
    with_elements,
)
from .parts import coalesce, flat_elements, index_rows, of_pattern, pattern_of, picked, sparse_dims
from .pattern import Pattern

__all__ = ["added", "broadcast_to", "multiplied", "scaled"]

UNARY = (
    "abs absolute asin arcsin asinh arcsinh atan arctan atanh arctanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf "
    "isposinf log1p nan_to_num rad2deg relu round sgn sign signbit sin sinh sqrt square tan tanh trunc fix angle"
).split()
"""Functions that are zero at zero: of the sums at each place, so the tensor is coalesced first."""
LINEAR = (
    "neg negative positive conj conj_physical resolve_conj resolve_neg real imag _conj _conj_physical".split()
)
"""Functions that can be taken of each element before those at a place are summed."""


SPELLED = dict(absolute="abs", fix="trunc", **{f"arc{n}": f"a{n}" for n in ("sin", "sinh", "tan", "tanh")})
"""Functions that go by another name in errors."""


def function_of(name: str) -> Callable[..., Any]:
    library = importlib.import_module(__name__.partition(".")[0])
    return getattr(library, name, None) or getattr(library.nn.functional, name)


def unary(name: str, linear: bool) -> None:
    """Have an operator take the elements."""

    def apply(self: SparseTensor, *args: Any, out: Any = None, **kwargs: Any) -> Tensor:
        kwargs.pop("inplace", None)
        whole = self if linear else coalesced(self)
        made = with_elements(whole, function_of(name)(elements(whole), *args, **kwargs))
        return given(out, made, name)

    def write(self: SparseTensor, *args: Any, **kwargs: Any) -> Tensor:
        asked = not linear and name != "square" and is_coo(self)
        checks.check(not asked or self._coalesced, "{}_ requires coalesced input", SPELLED.get(name, name))
        return adopt(self, apply(self, *args, **kwargs), name + "_")

    handles(name)(apply)
    handles(name + "_")(write)


def coalesced(self: SparseTensor) -> SparseTensor:
    return coalesce(self) if is_coo(self) else self


for _name in UNARY:
    unary(_name, False)
for _name in LINEAR:
    unary(_name, True)


@handles("neg", "negative")
def neg(input: SparseTensor, *, out: Any = None) -> Tensor:
    """The elements with the other sign."""
    made = passing("NegBackward0", lambda s: scaled(s, lambda v: -v), (input,), lambda grad: (-grad,))
    return given(out, made, "neg")


def number_of(value: Any) -> Any:
    """A factor that is one number: a Python number or a dense tensor without dimensions; None for others."""
    if isinstance(value, Tensor):
        if value.dim() or isinstance(value, SparseTensor):
            return None
        return value
    return value


def scaled(sparse: SparseTensor, function: Callable[[Tensor], Tensor]) -> SparseTensor:
    """A function of each element."""
    return with_elements(sparse, function(elements(sparse)))


def times_number(sparse: SparseTensor, factor: Any) -> SparseTensor:
    """All elements times one number."""
    if isinstance(factor, Tensor) and factor.requires_grad:
        return scaled(sparse, lambda v: v * factor)
    turned = factor.conj() if isinstance(factor, Tensor) else complex(factor).conjugate()
    turned = factor if not isinstance(factor, (Tensor, complex)) else turned
    return passing(
        "MulBackward0",
        lambda s: scaled(s, lambda v: v * factor),
        (sparse,),
        lambda grad: (like_source(grad * turned, sparse),),
    )


@handles("mul", "multiply")
def mul(input: Any, other: Any, *, out: Any = None) -> Tensor:
    """The product: sparse wherever one factor is."""
    made = multiplied(input, other)
    return given(out, made, "mul")


def multiplied(input: Any, other: Any) -> Tensor:
    """The product of two of which one is sparse."""
    if not isinstance(input, SparseTensor):
        input, other = other, input
    factor = number_of(other)
    if factor is not None:
        return times_number(input, factor)
    if isinstance(other, SparseTensor):
        if other.dim() == 0 or input.dim() == 0:
            one, whole = (other, input) if other.dim() == 0 else (input, other)
            if whole.dim() == 0 and whole._coalesced and not one._coalesced:
                one, whole = whole, one  # elements that are not in order stay
            return scaled(whole, lambda v: v * densify(one))
        return times_sparse(input, other)
    return times_dense(input, other)


def times_dense(sparse: SparseTensor, dense: Tensor) -> Tensor:
    """Elements times those of a dense tensor at their places."""
    shape = geometry.broadcast_shapes(tuple(dense.shape), tuple(sparse.shape))
    if is_coo(sparse) and (0 in shape or not sparse._held[-1].shape[0]):
        return nothing_in(sparse, dense, shape)
    if shape != tuple(sparse.shape):
        return HOOKS["broadcast"](sparse, shape, dense)
    if tuple(dense.shape) != shape:
        return times_seen(sparse, dense.expand(shape))
    return passing(
        "MulBackward0",
        times_seen,
        (sparse, dense),
        lambda grad: (
            like_source(grad * dense.conj().resolve_conj(), sparse) if sparse.requires_grad else None,
            like_source(dense_factor(grad, sparse), dense) if dense.requires_grad else None,
        ),
    )


def nothing_in(sparse: SparseTensor, dense: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A product without elements; what they would have been made of is followed by autograd."""
    dims = len(shape) - (sparse.dim() - sparse_dims(sparse))
    dtype = result_type(sparse, dense)
    values = zeros((0, *shape[dims:]), dtype=dtype, device=sparse.device)
    made = of_pattern(Pattern(np.zeros((dims, 0), np.int64), shape[:dims]), values, shape)
    return linked(
        "MulBackward0",
        made,
        (sparse, dense),
        lambda grad: (
            like_source(zeros(tuple(sparse.shape), dtype=dtype), sparse) if sparse.requires_grad else None,
            like_source(zeros(tuple(dense.shape), dtype=dtype), dense) if dense.requires_grad else None,
        ),
    )


def dense_factor(grad: Any, sparse: SparseTensor) -> Tensor:
    """The gradient of the dense factor of a product from the product's."""
    made: Any = multiplied(HANDLERS["conj"](sparse), grad)
    return densify(made)


def times_seen(sparse: SparseTensor, seen: Tensor) -> Tensor:
    """Elements times those of a dense tensor of the same sizes at their places."""
    pattern = pattern_of(sparse)
    rows = index_rows(pattern, seen)
    factors = seen[rows] if rows else seen
    values = flat_elements(sparse) * factors
    return with_elements(sparse, values.reshape(tuple(sparse._held[-1].shape)))


def broadcast_up(sparse: SparseTensor, shape: tuple[int, ...], dense: Tensor) -> Tensor:
    """A product with a dense tensor of more elements: the sparse one repeated."""
    return times_dense(coalesce(repeated(coalesce(as_coo(sparse)), shape)), dense.expand(shape))


def repeated(coo: SparseTensor, shape: tuple[int, ...]) -> SparseTensor:
    """A tensor with its elements, in their order, at all places that they broadcast to."""
    pattern, size, dims = pattern_of(coo), tuple(coo.shape), sparse_dims(coo)
    extra = len(shape) - len(size)
    grown = [shape[i] if i < extra or size[i - extra] != shape[i] else 1 for i in range(extra + dims)]
    old = [np.zeros(pattern.nnz, np.int64)] * extra + list(pattern.indices)
    repeats = int(np.prod(grown))
    grid = (
        np.unravel_index(np.arange(repeats), grown)
        if repeats and grown
        else [np.zeros(0, np.int64)] * len(grown)
    )
    index = np.zeros((extra + dims, pattern.nnz * repeats), np.int64)
    for row, more, own in zip(index, grid, old, strict=True):
        row[:] = np.tile(more, pattern.nnz) + np.repeat(own, repeats)
    values = picked(elements(coo), np.repeat(np.arange(pattern.nnz), repeats))
    values = values.expand(values.shape[0], *shape[extra + dims :])
    return of_pattern(Pattern(index, shape[: extra + dims]), values, shape, False)


def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """A COO tensor with its elements at all places that they broadcast to; RuntimeError where they do not."""
    assert isinstance(input, SparseTensor)
    shape, old = tuple(size), tuple(input.shape)
    extra = len(shape) - len(old)
    checks.check(extra >= 0, "the requested broadcast shape has fewer dimensions than the input")
    for at, (n, wanted) in enumerate(zip(old, shape[extra:], strict=True)):
        checks.check(
            n in (1, wanted),
            "The input's length {} at dimension {} does not broadcast over the requested shape of length {} at dimension {}",
            n, at, wanted, at + extra,
        )  # fmt: skip
    return input if shape == old else repeated(as_coo(input), shape)


HOOKS: dict[str, Any] = {"broadcast": broadcast_up}


def times_sparse(input: SparseTensor, other: SparseTensor) -> Tensor:
    """The product of two sparse tensors: the places that both have."""
    a, b = as_coo(input), as_coo(other)
    shape = geometry.broadcast_shapes(tuple(a.shape), tuple(b.shape))
    few = min(sparse_dims(a), sparse_dims(b))
    if a.dim() != b.dim() or a.shape[:few] != b.shape[:few]:
        a, b = [s if tuple(s.shape) == shape else repeated(s, shape) for s in (a, b)]
        few = min(sparse_dims(a), sparse_dims(b))
    a, b = [s if sparse_dims(s) == few else as_coo(densify(s).to_sparse(few)) for s in (a, b)]
    # As in PyTorch, one of them is looked through in its own order; values of its equal places are summed in the result.
    if a._coalesced != b._coalesced:
        a, b = (b, a) if a._coalesced else (a, b)
    elif a._held[-1].shape[0] >= b._held[-1].shape[0]:
        a, b = b, a
    if a.dtype is dtypes.bool:
        a = coalesce(a)
    b = coalesce(b)
    found, at = pattern_of(b).find(pattern_of(a))
    here = np.flatnonzero(found)
    pattern = Pattern(pattern_of(a).indices[:, here], pattern_of(a).sizes)
    values = picked(elements(a), here) * picked(elements(b), at[here])
    made = of_pattern(pattern, values, shape, a._coalesced)
    return made if is_coo(input) else restored(coalesce(made), input)


def restored(coo: SparseTensor, like: SparseTensor) -> SparseTensor:
    """A COO result in the layout of an argument."""
    blocks = tuple(like._held[-1].shape[like._held[1].dim() : like._held[1].dim() + 2])
    layout = like._layout
    return compress(coo, layout, blocks if layout in (dtypes.sparse_bsr, dtypes.sparse_bsc) else None)


@handles("mul_", "multiply_")
def mul_(self: Any, other: Any) -> Tensor:
    """In-place product."""
    if not isinstance(self, SparseTensor):
        return self.mul_(densify(other))
    return adopt(self, multiplied(self, other), "mul_")


@handles("div", "divide", "true_divide")
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Tensor:
    """The quotient by a number."""
    check_divisor("division", input, other)
    whole = coalesced(input) if rounding_mode is not None else input
    if rounding_mode is None and not (isinstance(other, Tensor) and other.requires_grad):
        turned = other.conj() if isinstance(other, Tensor) else other.conjugate()
        made = passing(
            "DivBackward0",
            lambda s: scaled(s, lambda v: v.div(other)),
            (whole,),
            lambda grad: (like_source(grad / turned, whole),),
        )
    else:
        made = scaled(whole, lambda v: v.div(other, rounding_mode=rounding_mode))
    return given(out, made, "div")


def check_divisor(name: str, input: Any, other: Any) -> None:
    """RuntimeError for a divisor that is not one dense number."""
    if isinstance(input, SparseTensor) and number_of(other) is not None:
        return
    got = f"shape {list(other.shape)} for" if isinstance(other, Tensor) and other.dim() else "a sparse"
    raise RuntimeError(
        f"Sparse {name} requires a scalar or zero-dim dense tensor divisor (got {got} divisor)"
    )


@handles("div_", "divide_", "true_divide_")
def div_(self: SparseTensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place quotient by a number."""
    return adopt(self, div(self, other, rounding_mode=rounding_mode), "div_")


@handles("floor_divide", "__floordiv__")
def floor_divide(input: SparseTensor, other: Any) -> Tensor:
    """The quotient by a number, rounded down."""
    check_divisor("floor division", input, other)
    return div(input, other, rounding_mode="floor")


@handles("__rfloordiv__")
def divides(self: SparseTensor, other: Any) -> Tensor:
    """RuntimeError: a sparse tensor divides nothing."""
    return floor_divide(other, self)


@handles("floor_divide_")
def floor_divide_(self: SparseTensor, other: Any) -> Tensor:
    """In-place quotient by a number, rounded down."""
    return adopt(self, floor_divide(self, other), "floor_divide_")


@handles("float_power")
def float_power(input: SparseTensor, exponent: Any, *, out: Any = None) -> Tensor:
    """Powers with a number for an exponent, in float64 or complex128."""
    dtype = dtypes.complex128 if input.dtype.is_complex or isinstance(exponent, complex) else dtypes.float64
    return power(with_elements(input, elements(input).to(dtype)), exponent, out=out)


@handles("view_as_real")
def view_as_real(input: SparseTensor) -> Tensor:
    """The real and the imaginary parts along a dense dimension more."""
    made = elements(input)
    return with_elements(input, stack([made.real, made.imag], -1), (*input.shape, 2))


@handles("pow", "__pow__")
def power(input: SparseTensor, exponent: Any, *, out: Any = None) -> Tensor:
    """Powers with a number for an exponent."""
    if isinstance(exponent, Tensor) or not isinstance(input, SparseTensor):
        raise NotImplementedError(
            "Could not run 'aten::pow.Tensor_Tensor' with arguments from the 'SparseCPU' backend."
        )
    if exponent == 0:
        raise RuntimeError(
            "cannot raise to zeroth power on sparse tensor; it would make the result tensor dense"
        )
    made = scaled(coalesced(input), lambda v: v**exponent)
    return given(out, made, "pow")


@handles("pow_")
def pow_(self: SparseTensor, exponent: Any) -> Tensor:
    """In-place powers."""
    return adopt(self, power(self, exponent), "pow_")


# ---- sums ----------------------------------------------------------------------------------------------------------


@handles("add")
def add(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """The sum `input + alpha * other`: sparse of two sparse tensors, dense with a dense one first."""
    made = added(input, other, alpha)
    if out is None:
        return made
    return given(out, made, "add")


def added(input: Any, other: Any, alpha: Any = 1) -> Tensor:
    """The sum `input + alpha * other` of two of which one is sparse."""
    whole = type(alpha) in (int, float) and alpha == 1
    if not whole and isinstance(other, Tensor) and isinstance(input, Tensor):
        other = other.to(result_type(input, other))  # a difference of uint8 from int8 is one of int16
    if not isinstance(other, SparseTensor):
        if is_executing() and isinstance(other, Tensor):
            return added(other if whole else other * alpha, input)
        if isinstance(other, Tensor) and not is_coo(input):
            return added(other if whole else other * alpha, input)
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    factor = other if whole else times_number(other, alpha)
    if not isinstance(input, SparseTensor):
        return dense_sum(input, factor)
    checks.check(
        tuple(input.shape) == tuple(other.shape),
        "add: expected sizes of 'self' and 'other' to match, but {} != {}"
        if is_coo(input)
        else "torch.add: Expected input tensors to have the same shape, but got tensor `self` with shape {} and tensor "
        "`other` with shape {}",
        list(input.shape),
        list(other.shape),
    )
    return passing(
        "AddBackward0",
        sum_of,
        (input, factor),
        lambda grad: (like_source(grad, input), like_source(grad, factor)),
    )


def sum_of(input: SparseTensor, other: SparseTensor) -> SparseTensor:
    """The sum of two sparse tensors, in the layout of the first."""
    if not is_coo(input) and same_parts(input, other):
        dtype = dtypes.promote_types(input.dtype, other.dtype)
        return with_elements(input, elements(input).to(dtype) + elements(other).to(dtype))
    if input._layout is not other._layout or not is_coo(input):
        made = sparse_sum(coalesce(as_coo(input)), coalesce(as_coo(other)))
        return made if is_coo(input) else restored(coalesce(made), input)
    return sparse_sum(input, other)


def same_parts(first: SparseTensor, second: SparseTensor) -> bool:
    """Whether two tensors are known to have their elements at the same places: by the same coordinates, or none at all."""
    if first._layout is not second._layout:
        return False
    nothing = 0 == first._held[-2].numel() == second._held[-2].numel()
    return nothing or all(a is b for a, b in zip(first._held[:-1], second._held[:-1], strict=True))


def sparse_sum(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """The elements of both."""
    dtype = dtypes.promote_types(a.dtype, b.dtype)
    if not b._held[-1].shape[0]:
        return with_elements(a, elements(a).to(dtype))
    if not a._held[-1].shape[0]:
        return with_elements(b, elements(b).to(dtype))
    checks.check(
        sparse_dims(a) == sparse_dims(b),
        "add: expected 'self' and 'other' to have same density, but 'self' has {} sparse dimensions while 'other' has {} "
        "sparse dimensions",
        sparse_dims(a),
        sparse_dims(b),
    )  # fmt: skip
    first, second = elements(a).to(dtype), elements(b).to(dtype)
    if a._held[0] is b._held[0] or np.array_equal(pattern_of(a).indices, pattern_of(b).indices):
        return with_elements(a, first + second, coalesced=a._coalesced)
    index = np.concatenate([pattern_of(a).indices, pattern_of(b).indices], 1)
    made = of_pattern(Pattern(index, pattern_of(a).sizes), cat([first, second]), tuple(a.shape), False)
    return coalesce(made) if a._coalesced and b._coalesced else made


def dense_sum(dense: Any, sparse: SparseTensor) -> Tensor:
    """A dense tensor with the elements of a sparse one added."""
    if not isinstance(dense, Tensor):
        raise TypeError("add(): argument 'input' (position 1) must be Tensor, not " + type(dense).__name__)
    check_sizes(dense, sparse)
    if sparse.dtype is dtypes.bool:
        return dense + densify(sparse)
    dtype = dtypes.promote_types(dense.dtype, sparse.dtype)
    rows = index_rows(pattern_of(sparse), dense)
    whole = dense.to(dtype)
    values = flat_elements(sparse).to(dtype)
    made = whole.index_put(rows, values, accumulate=True) if rows else whole + values.sum(0)
    if not sparse.requires_grad:
        return made
    # The gradient of the sparse term is the whole gradient, as PyTorch's.
    with no_grad():
        plain = made.detach()
    return linked("AddBackward0", plain, (dense, sparse), lambda grad: (grad.to(dense.dtype), grad))


def check_sizes(dense: Tensor, sparse: SparseTensor) -> None:
    """RuntimeError where a sparse tensor has other sizes than the dense one that it is added to."""
    checks.check(
        tuple(dense.shape) == tuple(sparse.shape),
        "add: expected 'self' and 'other' to have same size, but self has size {} while other has size {} "
        "(FYI: {}-sparse addition does not currently support broadcasting)",
        list(dense.shape),
        list(sparse.shape),
        "dense" if is_coo(sparse) else "op2",
    )


def tracked(tensor: Tensor) -> bool:
    """Whether autograd follows what is made of a tensor now."""
    return is_grad_enabled() and tensor.requires_grad


@handles("add_")
def add_(self: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """In-place sum."""
    if isinstance(self, SparseTensor):
        return adopt(self, as_layout(added(self, other, alpha), self), "add_")
    common = dtypes.promote_types(self.dtype, other.dtype)
    if not dtypes.can_cast(common, self.dtype):
        raise RuntimeError(
            f"Can't convert result type {common.scalar_name} to output {self.dtype.scalar_name} in add operation"
        )
    check_sizes(self, other)
    pattern = pattern_of(other)
    if tracked(self) or tracked(other) or other.dtype is dtypes.bool:
        return self.add_(densify(other), alpha=alpha)
    values = flat_elements(other)
    values = values if type(alpha) in (int, float) and alpha == 1 else values * alpha
    if pattern.indices.shape[0] == 1 and self.dim() > 0:
        return self.index_add_(0, indices_from(pattern.indices[0], self.device), values.to(self.dtype))
    return self.index_put_(index_rows(pattern, self), values.to(self.dtype), accumulate=True)


def as_layout(made: Any, like: SparseTensor) -> SparseTensor:
    return made if isinstance(made, SparseTensor) else convert(made, like._layout)


@handles("sub", "subtract")
def sub(input: Any, other: Any, *, alpha: Any = 1, out: Any = None) -> Tensor:
    """The difference `input - alpha * other`."""
    return add(input, other, alpha=-alpha, out=out)


@handles("sub_", "subtract_")
def sub_(self: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """In-place difference."""
    return add_(self, other, alpha=-alpha)


@handles("rsub", "__rsub__")
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """The difference `other - alpha * input`."""
    return sub(other, input, alpha=alpha)


@handles("equal")
def equal(input: SparseTensor, other: Any) -> bool:
    """NotImplementedError, as in PyTorch."""
    raise NotImplementedError("Could not run 'aten::equal' with arguments from the 'SparseCPU' backend.")
