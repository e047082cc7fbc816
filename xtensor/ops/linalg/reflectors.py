"""Householder reflectors: the matrices that they make, products with those, and the factorization that gives them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ... import checks
from ...dtypes import dtype_of
from ...operators.attach import attach_methods
from ...operators.declare import general
from ...operators.derivatives import no_derivative
from ...operators.schema import Array
from ...tensor import Tensor

__all__ = ["geqrf", "orgqr", "ormqr"]


def check_reflectors(name: str, input: Any, tau: Any) -> None:
    """What every product of reflectors asks of its arguments."""
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {input.ndim}"
        )
    if input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )


def check_lapack(kernel: str, own: Any) -> None:
    if not (own.is_floating_point or own.is_complex) or own.itemsize < 4:
        raise checks.not_implemented_for(kernel, own)


def reflected(input: Array, tau: Array, other: Array, *, first: bool, conjugate: bool) -> Array:
    """`other` multiplied from the left with every `1 - tau v v^H`, the first reflector first or last."""
    count = tau.shape[-1]
    rows = jnp.arange(input.shape[-2])
    factors = jnp.conj(tau) if conjugate else tau

    def apply(step: Any, x: Array) -> Array:
        i = step if first else count - 1 - step
        column = lax.dynamic_index_in_dim(input, i, -1, False)
        v = jnp.where(rows > i, column, jnp.where(rows == i, 1, 0).astype(column.dtype))
        t = lax.dynamic_index_in_dim(factors, i, -1, False)
        along = jnp.sum(jnp.conj(v)[..., :, None] * x, axis=-2)
        return x - (t[..., None, None] * v[..., :, None]) * along[..., None, :]

    return lax.fori_loop(0, count, apply, other) if count and other.size else other


def pulled(kernel: Any, index: int, grad: Any, *arguments: Any) -> Any:
    """The gradient of a kernel's argument `index`, by JAX's derivative."""

    def alone(value: Any) -> Any:
        return kernel(*arguments[:index], value, *arguments[index + 1 :])

    return jnp.conj(jax.vjp(alone, arguments[index])[1](jnp.conj(grad))[0])


def reflectors_pulled(kernel: Any, index: int, grad: Any, input: Any, tau: Any, *more: Any) -> Any:
    """The same for `input` and `tau`, which have no gradient where there is no reflector."""
    return pulled(kernel, index, grad, input, tau, *more) if input.size and tau.size else None


def product_of(input: Array, tau: Array) -> Array:
    """The product of the reflectors, its first columns."""
    eye = jnp.broadcast_to(jnp.eye(*input.shape[-2:], dtype=input.dtype), input.shape)
    return reflected(input, tau, eye, first=False, conjugate=False)


@general(
    autocast=dict(cpu="float32"),
    name="linalg_householder_product",
    columns=(0,),
    node="LinalgHouseholderProduct",
    out=True,
    derivatives=dict(
        input=lambda grad, input, tau: reflectors_pulled(product_of, 0, grad, input, tau),
        tau=lambda grad, input, tau: reflectors_pulled(product_of, 1, grad, input, tau),
    ),
)
def householder_product(input: Array, tau: Array) -> Array:
    """The first columns of the product of the reflectors `1 - tau v v^H`, whose v lie under the diagonal of `input`.

    Shape: `input` `(*, n, m)`, `tau` `(*, k)`, result `(*, n, m)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool and integer tensors.
    """
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    m, n = input.shape[-2:]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if n < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    check_reflectors(name, input, tau)
    own, other = dtype_of(input), dtype_of(tau)
    if own is not other:
        raise RuntimeError(
            f"{name}: tau dtype {other.scalar_name} does not match input dtype {own.scalar_name}"
        )
    check_lapack("orgqr_cpu", own)
    return product_of(input, tau)


def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of a product of Householder reflectors; see `linalg.householder_product`.

    Shape: `input` `(*, n, m)`, `input2` `(*, k)`, result `(*, n, m)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; NotImplementedError
    for bool and integer tensors.
    """
    return householder_product(input, input2, out=out)


def multiplied(input: Array, tau: Array, other: Array, left: bool, transpose: bool) -> Array:
    """`ormqr` of arguments that fit together."""
    if left:
        return reflected(input, tau, other, first=transpose, conjugate=transpose)
    # C Q is (Q^H C^H)^H.
    turned = jnp.conj(jnp.swapaxes(other, -1, -2))
    made = reflected(input, tau, turned, first=not transpose, conjugate=not transpose)
    return jnp.conj(jnp.swapaxes(made, -1, -2))


def _ormqr_input_grad(
    grad: Array, input: Array, input2: Array, input3: Array, left: bool, transpose: bool
) -> Any:
    return reflectors_pulled(multiplied, 0, grad, input, input2, input3, left, transpose)


def _ormqr_tau_grad(
    grad: Array, input: Array, input2: Array, input3: Array, left: bool, transpose: bool
) -> Any:
    return reflectors_pulled(multiplied, 1, grad, input, input2, input3, left, transpose)


def _ormqr_other_grad(grad: Array, input: Array, input2: Array, left: bool, transpose: bool) -> Array:
    return multiplied(input, input2, grad, left, not transpose)


@general(
    autocast=dict(cpu="float32"),
    method=True,
    out="exact",
    name="ormqr",
    columns=(0,),
    node="Ormqr",
    derivatives=dict(input=_ormqr_input_grad, input2=_ormqr_tau_grad, input3=_ormqr_other_grad),
)
def ormqr(input: Array, input2: Array, input3: Array, left: bool = True, transpose: bool = False) -> Array:
    """`Q @ input3` (`input3 @ Q` where not `left`, Q^H where `transpose`), Q the square product of reflectors.

    Shape: `input` `(*, n, k)`, `input2` `(*, min(n, k))`, `input3` `(*, n, m)` (`(*, m, n)` where not `left`);
    result as `input3`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool and integer tensors.
    """
    name = "torch.ormqr"
    for label, x in (("input", input), ("other", input3)):
        if x.ndim < 2:
            raise RuntimeError(f"{name}: {label} must have at least 2 dimensions.")
    side = -2 if left else -1
    if input2.ndim and input3.shape[side] < input2.shape[-1]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if input3.shape[side] != input.shape[-2]:
        raise RuntimeError(f"{name}: other.shape[{side}] must be equal to input.shape[-2]")
    check_reflectors(name, input, input2)
    if input2.shape[-1] > input.shape[-1]:
        raise RuntimeError(
            f"{name}: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])"
        )
    if input.shape[:-2] != input3.shape[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got {list(input3.shape[:-2])}"
        )
    own = dtype_of(input)
    for label, x in (("tau", input2), ("other", input3)):
        if dtype_of(x) is not own:
            raise RuntimeError(
                f"{name}: Expected input and {label} to have the same dtype, but input has dtype {own.scalar_name} and "
                f"{label} has dtype {dtype_of(x).scalar_name}"
            )
    check_lapack("ormqr_cpu", own)
    return multiplied(input, input2, input3, left, transpose)


@general(
    autocast=dict(cpu="float32"),
    name="geqrf",
    columns=(0,),
    node="Geqrf",
    returns=("a", "tau"),
    method=True,
    out=True,
    derivatives=dict(input=no_derivative("geqrf")),
)
def geqrf(input: Array) -> tuple[Array, ...]:
    """R, and under its diagonal the reflectors whose product is Q, with their factors `tau`; without a derivative.

    Shape: `input` `(*, n, m)`; `a` `(*, n, m)` and `tau` `(*, min(n, m))`.

    Raises: NotImplementedError for bool and integer tensors.
    """
    if input.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_lapack("geqrf_cpu", dtype_of(input))
    m, n = input.shape[-2:]
    if input.size == 0:
        return input, jnp.zeros((*input.shape[:-2], min(m, n)), input.dtype)
    turned, tau = jnp.linalg.qr(input, mode="raw")
    return jnp.swapaxes(turned, -1, -2), tau


attach_methods(orgqr)
