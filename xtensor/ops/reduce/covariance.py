"""Covariances and correlations of variables, which are rows, over observations, which are columns."""

from __future__ import annotations

from typing import Any

from ... import checks, dtypes
from ...operators.attach import attach_methods
from ...operators.functions.overloads import of_tensors
from ...operators.index_bounds import check_values
from ...tensor import Tensor, array_of, sizes_of
from ..create.ranges import complex as complex_of
from ..linalg.matmul import matmul

__all__ = ["corrcoef", "cov"]


def check_weights(name: str, weights: Tensor, count: int) -> None:
    own = weights.dtype
    if weights.dim() > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.dim()} dimensions"
        )
    if name == "fweights" and not own.is_integral:
        raise RuntimeError(
            f"cov(): expected fweights to have integral dtype but got fweights with {own.scalar_name} dtype"
        )
    if name == "aweights" and not own.is_floating_point:
        raise RuntimeError(
            f"cov(): expected aweights to have floating point dtype but got aweights with {own.scalar_name} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {count}"
        )
    error = RuntimeError(f"cov(): {name} cannot be negative")
    check_values(array_of(weights), lambda values: error if (values < 0).any() else None)


@of_tensors()
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """The covariance matrix of the rows of a matrix (a number for a vector), divided by the count less `correction`.

    Shape: `input` `(n, m)`, result `(n, n)`; of `(m)`, `()`.
    fweights: how often each observation occurs; aweights: how much each is worth. Differs from PyTorch: what is wrong
    with the values of weights is not seen on an accelerator.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool tensors.
    """
    if input.dim() > 2:
        raise RuntimeError(
            "cov(): expected input to have two or fewer dimensions but got an input with "
            f"{input.dim()} dimensions"
        )
    if input.dtype is dtypes.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input if input.dim() == 2 else input.reshape((1, -1))
    count = sizes_of(x)[1]
    weights: Tensor | None = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None:
            check_weights(name, given, count)
            weights = given if weights is None else weights * given
    total: Any = count if weights is None else weights.sum()
    if weights is not None:
        error = RuntimeError("cov(): weights sum to zero, can't be normalized")
        check_values(array_of(total), lambda values: None if values != 0 else error)
    weighted = x if weights is None else x * weights
    mean = weighted.sum(1) / total
    if weights is not None and aweights is not None and correction != 0:
        factor = total - correction * (weights * aweights).sum() / total
    else:
        factor = total - correction
    if isinstance(factor, Tensor):
        check_values(array_of(factor), lambda values: warn_freedom() if values <= 0 else None)
        factor = factor.clamp(min=0)
    elif factor <= 0:
        warn_freedom()
        factor = 0
    centred = x - mean.unsqueeze(1)
    other = centred if weights is None else centred * weights
    return (matmul(centred, other.t().conj()) / factor).squeeze()


def warn_freedom() -> None:
    checks.warn(
        "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
        UserWarning,
    )


@of_tensors()
def corrcoef(input: Tensor) -> Tensor:
    """Pearson's correlation coefficients of the rows of a matrix, within [-1, 1].

    Shape: `input` `(n, m)`, result `(n, n)`; of `(m)`, `()`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool tensors.
    """
    if input.dim() > 2:
        raise RuntimeError(
            "corrcoef(): expected input to have two or fewer dimensions but got an input with "
            f"{input.dim()} dimensions"
        )
    c = cov(input)
    if c.dim() == 0:
        return c / c
    variance = c.diagonal()
    deviation = (variance.real if c.dtype.is_complex else variance).sqrt()
    c = c / deviation.reshape((-1, 1)) / deviation.reshape((1, -1))
    if c.dtype.is_complex:
        return complex_of(c.real.clamp(-1, 1), c.imag.clamp(-1, 1))
    return c.clamp(-1, 1)


attach_methods(corrcoef, cov)
