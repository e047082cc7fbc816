"""Views that read the same elements otherwise: as another dtype, as real or complex numbers, conjugated or negated."""

from __future__ import annotations

from typing import Any

from ... import checks, dtypes, geometry
from ...dtypes import dtype as DType
from ...geometry import Geometry
from ...operators.attach import attach_as, attach_methods
from ...operators.autocast import cast_for
from ...operators.functions.overloads import of_tensors
from ...operators.options import storing
from ...operators.views import ViewOperator, alias_of, geometry_of
from ...tensor import Tensor, alias
from .shapes import matrix_transpose, select, shape_arguments, sized_view

__all__ = [
    "adjoint",
    "conj",
    "imag",
    "is_conj",
    "is_neg",
    "real",
    "resolve_conj",
    "resolve_neg",
    "view_as_complex",
    "view_as_real",
]


def view_method(self: Tensor, *shape: Any, dtype: Any = None, size: Any = None) -> Tensor:
    """The same elements with other sizes, or reinterpreted as another dtype; never a copy.

    Shape: the tensor `(*)`; result the sizes given, where one may be -1: what is left.

    Raises: RuntimeError where the sizes have another number of elements, or strides do not allow it.

    >>> xtensor.arange(6).view(3, 2)
    tensor([[0, 1],
            [2, 3],
            [4, 5]])
    """
    if dtype is not None or (len(shape) == 1 and isinstance(shape[0], DType)):
        return view_dtype(self, dtype or shape[0])
    return sized_view(self, shape_arguments("view", shape, size))


def _same(g: Geometry) -> Geometry:
    return g


VIEW_AS_REAL = ViewOperator("view_as_real", geometry.view_as_real, "ViewAsReal")
VIEW_AS_COMPLEX = ViewOperator("view_as_complex", geometry.view_as_complex, "ViewAsComplex")
CONJ = ViewOperator("_conj", _same, "Conj")
NEG_VIEW = ViewOperator("_neg_view", _same, "NegView")


@of_tensors()
def view_as_real(input: Tensor) -> Tensor:
    """A complex tensor as pairs of reals in a new last dimension.

    Raises: TypeError for arguments of other kinds.
    """
    if not input.dtype.is_complex:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if input.is_conj():
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    made = geometry.view_as_real(geometry_of(input))
    return alias_of(VIEW_AS_REAL, input, made, (), dtype=input.dtype.to_real())


@of_tensors()
def view_as_complex(input: Tensor) -> Tensor:
    """A real tensor with a last dimension of pairs as complex numbers.

    Raises: TypeError for arguments of other kinds; RuntimeError for complex, bool and integer tensors.
    """
    (input,) = cast_for(input, cpu="float32")
    if input.dtype not in (dtypes.float16, dtypes.float32, dtypes.float64):
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: "
            f"{input.dtype.scalar_name}"
        )
    if input.is_neg():
        input = resolve_neg(input)
    if input.dtype is dtypes.float16:
        return storing.as_complex(input)
    made = geometry.view_as_complex(geometry_of(input))
    return alias_of(VIEW_AS_COMPLEX, input, made, (), dtype=input.dtype.to_complex())


def view_dtype(input: Tensor, dtype: DType) -> Tensor:
    """The bytes of `input` read as another dtype; autograd does not follow."""
    old = input.dtype
    if input.is_conj():
        raise RuntimeError(
            "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype."
        )
    if input.is_neg():
        raise RuntimeError(
            "torch.Tensor.view is not supported for tensors with negative bit set when converting to a different dtype."
        )
    if isinstance(dtype, dtypes.stored_dtype):
        return storing.viewed(input, dtype)
    made = geometry.view_dtype(
        geometry_of(input), old.itemsize, dtype.itemsize, old.scalar_name, dtype.scalar_name
    )
    return alias(input, *made, dtype=dtype)


def conj(input: Tensor) -> Tensor:
    """The complex conjugate: a view with the conjugate bit flipped; a real tensor is itself.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.conj(xtensor.tensor([1 + 2j]))
    tensor([1.-2.j])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("conj", "input", 1, "Tensor", input)
    if not input.dtype.is_complex:
        return input
    return alias_of(CONJ, input, geometry_of(input), (), conj=not input.is_conj())


def neg_view(input: Tensor) -> Tensor:
    """The negative as a view with the negative bit flipped."""
    return alias_of(NEG_VIEW, input, geometry_of(input), (), neg=not input.is_neg())


def resolve_conj(input: Tensor) -> Tensor:
    """`input` itself, or a copy without the conjugate bit.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for quantised tensors.
    """
    return input.clone() if input.is_conj() else input


def resolve_neg(input: Tensor) -> Tensor:
    """`input` itself, or a copy without the negative bit.

    Shape: `input` `(*)`, result `(*)`.

    Raises: NotImplementedError for quantised tensors.
    """
    return input.clone() if input.is_neg() else input


def is_conj(input: Tensor) -> bool:
    """Whether the conjugate bit is set."""
    return input.is_conj()


def is_neg(input: Tensor) -> bool:
    """Whether the negative bit is set."""
    return input.is_neg()


def real(input: Tensor) -> Tensor:
    """The real parts: a view of a complex tensor; a real tensor is itself.

    Shape: `input` `(*)`, result `(*)`.

    Raises: TypeError for arguments of other kinds.

    >>> xtensor.real(xtensor.tensor([1 + 2j]))
    tensor([1.])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("real", "input", 1, "Tensor", input)
    if not input.dtype.is_complex:
        return input
    return select(view_as_real(conj(input) if input.is_conj() else input), -1, 0)


def imag(input: Tensor) -> Tensor:
    """The imaginary parts of a complex tensor, as a view.

    Shape: `input` `(*)`, result `(*)`.

    Raises: RuntimeError for real tensors; TypeError for arguments of other kinds.

    >>> xtensor.imag(xtensor.tensor([1 + 2j]))
    tensor([2.])
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("imag", "input", 1, "Tensor", input)
    if not input.dtype.is_complex:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if input.is_conj():
        return neg_view(select(view_as_real(conj(input)), -1, 1))
    return select(view_as_real(input), -1, 1)


@of_tensors()
def adjoint(input: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions, as a view.

    Shape: `input` `(*, n, m)`, result `(*, m, n)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for a tensor of one dimension.
    """
    if input.dim() < 2 and input.dim() != 0:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    return conj(matrix_transpose(input)) if input.dim() else conj(input)


def H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix, as a view.

    Shape: `(n, m)`, result `(m, n)`.

    Raises: RuntimeError for other than two dimensions.
    """
    if self.dim() not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.dim()}-D tensor. For batches of matrices, "
            "consider using tensor.mH"
        )
    return adjoint(self)


def mH(self: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions, as a view.

    Shape: `(*, n, m)`, result `(*, m, n)`.

    Raises: RuntimeError for fewer than two dimensions.
    """
    return adjoint(self)


def set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(
        value if isinstance(value, Tensor) else self.new_tensor(value, dtype=self.dtype.to_real())
    )


def set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(
        value if isinstance(value, Tensor) else self.new_tensor(value, dtype=self.dtype.to_real())
    )


attach_as(view=view_method)
attach_methods(adjoint, conj, resolve_conj, resolve_neg, _conj=conj, _neg_view=neg_view)
attach_methods(H=property(H), mH=property(mH), real=property(real, set_real), imag=property(imag, set_imag))
