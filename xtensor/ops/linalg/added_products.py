"""Products that add to a tensor: `addmm`, `addmv`, `addr`, and those of batches, `baddbmm` and `addbmm`."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from ... import dtypes
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.promotion import is_bool, is_complex, is_float
from ...operators.schema import Array, Number
from ...operators.write import check_castable
from ..pointwise.arithmetic import multiplied
from .matmul import (
    check_batches,
    check_expand,
    check_matrices,
    contract,
    mm_input,
    mm_other,
    product,
    refuse_bool,
)

__all__ = ["addbmm", "addmm", "addmv", "addr", "baddbmm"]


def scaled(value: Any, by: Any) -> Any:
    """`value * by`, where a constant 1 costs nothing; a complex `by` is refused where the values are real."""
    return value if isinstance(by, int) and by == 1 else multiplied(jnp.asarray(by), value)


def check_coefficient(name: str, by: Any, dtype: Any) -> None:
    """Refuse a coefficient of another kind than a result of this dtype; a constant 1 is the default."""
    if isinstance(by, int):
        return
    if is_bool(by) and dtype != jnp.bool_:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if (is_float(by) or is_complex(by)) and not jnp.issubdtype(dtype, jnp.inexact):
        raise RuntimeError(
            f"For integral input tensors, argument {name} must not be a floating point number."
        )


def conjugate(by: Any) -> Any:
    return by if isinstance(by, int) else jnp.conj(by)


def added(input: Any, result: Any, beta: Any, alpha: Any) -> Any:
    """`beta * input + alpha * result`, where a beta of zero hides what `input` holds, NaN included."""
    check_expand(input, result.shape)
    if isinstance(beta, int):
        return input + scaled(result, alpha)
    kept = jnp.where(beta == 0, jnp.zeros_like(input), scaled(input, beta))
    return kept + scaled(result, alpha)


def refuse_bool_beta(input: Any, beta: Any) -> None:
    """RuntimeError for empty products of booleans, whose input PyTorch multiplies with an int that is no bool."""
    if input.dtype == jnp.bool_ and type(beta) is int:
        check_castable(np.int64, np.bool_)


def _by_beta(grad: Array, beta: Any) -> Array:
    return scaled(grad, conjugate(beta))


def _check_addmm(input: Any, mat1: Any, mat2: Any) -> None:
    check_matrices(mat1, mat2)
    a, b, c = dtype_of(input), dtype_of(mat1), dtype_of(mat2)
    if a is not c:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {a.scalar_name} and {c.scalar_name}"
        )
    if b is not c:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {b.scalar_name} and {c.scalar_name}"
        )


def older_orders(first: str, second: str) -> tuple[tuple[str, ...], ...]:
    """The deprecated orders of arguments, as a function and as a method, with and without alpha."""
    return (
        ("beta", "input", "alpha", first, second),
        ("beta", "input", first, second),
        ("input", "beta", "alpha", first, second),
        ("input", "beta", first, second),
    )


@general(
    autocast="short",
    deprecated=older_orders("mat1", "mat2"),
    method=True,
    out="exact",
    inplace=True,
    derivatives=dict(
        input=_by_beta,
        mat1=lambda grad, mat2, alpha: scaled(mm_input(grad, mat2), conjugate(alpha)),
        mat2=lambda grad, mat1, alpha: scaled(mm_other(grad, mat1), conjugate(alpha)),
    ),
    several=True,
)
def addmm(input: Array, mat1: Array, mat2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """`beta * input + alpha * (mat1 @ mat2)` of matrices.

    Shape: `mat1` `(n, m)`, `mat2` `(m, p)`, `input` broadcastable to `(n, p)`; result `(n, p)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> xtensor.addmm(xtensor.ones(2), xtensor.eye(2), xtensor.eye(2), alpha=3)
    tensor([[4., 1.],
            [1., 4.]])
    """
    _check_addmm(input, mat1, mat2)
    check_expand(input, (mat1.shape[0], mat2.shape[1]))
    refuse_bool("addmm_impl_cpu_", mat1, mat2)
    refuse_bool_beta(input, beta)
    return added(input, product(mat1, mat2), beta, alpha)


@general(
    autocast=dict(accelerator="short"),
    deprecated=older_orders("mat", "vec"),
    method=True,
    out="exact",
    inplace=True,
    derivatives=dict(
        input=_by_beta,
        mat=lambda grad, vec, alpha: scaled(grad[:, None] * jnp.conj(vec)[None, :], conjugate(alpha)),
        vec=lambda grad, mat, alpha: scaled(product(jnp.conj(mat).T, grad), conjugate(alpha)),
    ),
)
def addmv(input: Array, mat: Array, vec: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """`beta * input + alpha * (mat @ vec)`.

    Shape: `input` broadcast with `(n)`, `mat` `(n, m)`, `vec` `(m)`, result `(n)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.
    """
    if mat.ndim != 2 or vec.ndim != 1 or input.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {input.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.shape[1] != vec.shape[0] or (input.ndim == 1 and input.shape[0] not in (1, mat.shape[0])):
        size = input.shape[0] if input.ndim else 1
        raise RuntimeError(
            f"size mismatch, got input ({size}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    found = [dtype_of(x) for x in (input, mat, vec)]
    if len(set(found)) > 1:
        names = [d.scalar_name for d in found]
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {names[0]}, {names[1]}, and {names[2]}"
        )
    refuse_bool("addmv_impl_cpu", mat, vec)
    return added(input, product(mat, vec), beta, alpha)


@general(
    autocast="short",
    deprecated=older_orders("batch1", "batch2"),
    method=True,
    out="exact",
    inplace=True,
    derivatives=dict(
        input=_by_beta,
        batch1=lambda grad, batch2, alpha: scaled(mm_input(grad, batch2), conjugate(alpha)),
        batch2=lambda grad, batch1, alpha: scaled(mm_other(grad, batch1), conjugate(alpha)),
    ),
    several=True,
)
def baddbmm(input: Array, batch1: Array, batch2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """`beta * input + alpha * (batch1 @ batch2)` of batches of matrices.

    Shape: `input` broadcast with `(B, n, p)`, `batch1` `(B, n, m)`, `batch2` `(B, m, p)`, result `(B, n, p)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.

    >>> xtensor.baddbmm(xtensor.ones(1, 1, 1), xtensor.ones(1, 1, 3), xtensor.ones(1, 3, 1))
    tensor([[[4.]]])
    """
    if batch1.ndim == 3 and batch2.ndim == 3:
        check_expand(input, (batch1.shape[0], batch1.shape[1], batch2.shape[2]))
    check_batches(batch1, batch2)
    if dtype_of(input) is not dtype_of(batch1):
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {dtype_of(input).name}, batch1: {dtype_of(batch1).name}, "
            f"batch2: {dtype_of(batch2).name}"
        )
    refuse_bool("baddbmm", batch1, batch2)
    refuse_bool_beta(input, beta)
    return added(input, product(batch1, batch2), beta, alpha)


@general(
    autocast="short",
    deprecated=older_orders("batch1", "batch2"),
    method=True,
    out="exact",
    inplace=True,
    derivatives=dict(
        input=_by_beta,
        batch1=lambda grad, batch2, alpha: scaled(
            contract("nm,bkm->bnk", grad, jnp.conj(batch2).astype(grad.dtype)), conjugate(alpha)
        ),
        batch2=lambda grad, batch1, alpha: scaled(
            contract("bnk,nm->bkm", jnp.conj(batch1).astype(grad.dtype), grad), conjugate(alpha)
        ),
    ),
)
def addbmm(input: Array, batch1: Array, batch2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """`beta * input + alpha * sum_b(batch1[b] @ batch2[b])`.

    Shape: `input` broadcast with `(n, p)`, `batch1` `(B, n, m)`, `batch2` `(B, m, p)`, result `(n, p)`.

    Raises: RuntimeError where sizes do not fit; NotImplementedError for bool tensors.
    """
    if batch1.ndim == 3 and batch2.ndim == 3:
        check_expand(input, (batch1.shape[1], batch2.shape[2]))
    check_batches(batch1, batch2)
    refuse_bool("addmm_impl_cpu_", input)
    return added(input, contract("bnk,bkm->nm", batch1, batch2), beta, alpha)


@general(
    autocast=dict(accelerator="short"),
    deprecated=older_orders("vec1", "vec2"),
    inplace=True,
    method=True,
    out=True,
    derivatives=dict(
        input=_by_beta,
        vec1=lambda grad, vec2, alpha: scaled(
            product(grad, jnp.conj(vec2).astype(grad.dtype)), conjugate(alpha)
        ),
        vec2=lambda grad, vec1, alpha: scaled(
            product(grad.T, jnp.conj(vec1).astype(grad.dtype)), conjugate(alpha)
        ),
    ),
)
def addr(input: Array, vec1: Array, vec2: Array, *, beta: Number = 1, alpha: Number = 1) -> Array:
    """`beta * input + alpha * outer(vec1, vec2)`.

    Shape: `input` broadcast with `(n, m)`, `vec1` `(n)`, `vec2` `(m)`, result `(n, m)`.

    Raises: RuntimeError where sizes do not fit.
    """
    for name, vector in (("vec1", vec1), ("vec2", vec2)):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    dtype = dtypes.promote_types(dtypes.promote_types(dtype_of(input), dtype_of(vec1)), dtype_of(vec2)).numpy
    check_coefficient("beta", beta, dtype)
    check_coefficient("alpha", alpha, dtype)
    outer_product = vec1.astype(dtype)[:, None] * vec2.astype(dtype)[None, :]
    return added(input.astype(dtype), outer_product, beta, alpha)
