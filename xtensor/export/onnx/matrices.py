"""Decompositions and solutions of matrices, which ONNX lacks, as functions of arrays: steps over rows and columns, written out."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from .kernels import decomposition

__all__: list[str] = []


@decomposition("triangular_solve")
def triangular_solve(
    a: Any,
    c: Any,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
    **rest: Any,
) -> Any:
    a = jnp.tril(a) if lower else jnp.triu(a)
    if transpose_a:
        a, lower = a.mT, not lower
    if not left_side:
        a, c, lower = a.mT, c.mT, not lower
    n = a.shape[-1]
    rows: list[Any] = [None] * n
    for i in range(n) if lower else range(n - 1, -1, -1):
        found = c[..., i, :]
        for j in range(n):
            if rows[j] is not None:
                found = found - a[..., i, j, None] * rows[j]
        rows[i] = found if unit_diagonal else found / a[..., i, i, None]
    made = jnp.stack(rows, -2) if n else c
    return made if left_side else made.mT


@decomposition("cholesky")
def cholesky(x: Any, symmetrize_input: bool = True, **rest: Any) -> Any:
    if symmetrize_input:
        x = (x + x.mT) / 2
    n = x.shape[-1]
    entry: dict[tuple[int, int], Any] = {}
    for j in range(n):
        square = x[..., j, j] - sum(entry[j, k] ** 2 for k in range(j))
        entry[j, j] = jnp.sqrt(jnp.where(square > 0, square, np.nan))
        for i in range(j + 1, n):
            entry[i, j] = (x[..., i, j] - sum(entry[i, k] * entry[j, k] for k in range(j))) / entry[j, j]
    zero = jnp.zeros(x.shape[:-2], x.dtype)
    if not n:
        return x
    return jnp.stack([jnp.stack([entry.get((i, j), zero) for j in range(n)], -1) for i in range(n)], -2)


@decomposition("lu")
def lu(x: Any, **rest: Any) -> Any:
    rows, columns = x.shape[-2:]
    numbers = np.arange(rows)
    order = jnp.broadcast_to(jnp.asarray(numbers, jnp.int32), (*x.shape[:-2], rows))
    pivots = []
    for k in range(min(rows, columns)):
        size = jnp.where(jnp.asarray(numbers >= k), jnp.abs(x[..., :, k]), -1)
        at = jnp.argmax(size, -1).astype(jnp.int32)
        pivots.append(at)
        hit = (jnp.asarray(numbers, jnp.int32) == at[..., None]).astype(x.dtype)
        mine = jnp.asarray(numbers == k)
        chosen = jnp.where(hit[..., None] != 0, x, 0).sum(-2)
        other = x[..., k, :]
        x = jnp.where(hit[..., None] != 0, other[..., None, :], x)
        x = jnp.where(mine[:, None], chosen[..., None, :], x)
        picked = jnp.where(hit != 0, order, 0).sum(-1).astype(jnp.int32)
        before = order[..., k]
        order = jnp.where(mine, picked[..., None], jnp.where(hit != 0, before[..., None], order))
        below = jnp.asarray(numbers > k)
        pivot = x[..., k, k, None]
        factors = jnp.where(below & (pivot != 0), x[..., :, k] / jnp.where(pivot == 0, 1, pivot), 0)
        right = jnp.asarray(np.arange(columns) > k)
        x = jnp.where(right, x - factors[..., :, None] * x[..., k, None, :], x)
        column = jnp.asarray(np.arange(columns) == k)
        x = jnp.where(column & below[:, None], factors[..., :, None], x)
    made = jnp.stack(pivots, -1) if pivots else jnp.zeros((*x.shape[:-2], 0), jnp.int32)
    return x, made, order


@decomposition("lu_pivots_to_permutation")
def permutation(pivots: Any, permutation_size: int, **rest: Any) -> Any:
    numbers = np.arange(permutation_size, dtype=np.int32)
    order = jnp.broadcast_to(jnp.asarray(numbers), (*pivots.shape[:-1], permutation_size))
    for k in range(pivots.shape[-1]):
        hit = jnp.asarray(numbers) == pivots[..., k, None]
        picked = jnp.where(hit, order, 0).sum(-1, keepdims=True).astype(jnp.int32)
        order = jnp.where(jnp.asarray(numbers == k), picked, jnp.where(hit, order[..., k, None], order))
    return order


@decomposition("geqrf")
def geqrf(x: Any, **rest: Any) -> Any:
    rows, columns = x.shape[-2:]
    taus = []
    for k in range(min(rows, columns)):
        below = jnp.asarray(np.arange(rows) > k)
        column = x[..., :, k]
        alpha = x[..., k, k]
        tail = jnp.where(below, column, 0)
        length = jnp.sqrt((tail * tail).sum(-1))
        beta = -jnp.where(alpha < 0, -1, 1) * jnp.sqrt(alpha * alpha + length * length)
        none = length == 0
        safe = jnp.where(none, 1, beta)
        tau = jnp.where(none, 0, (safe - alpha) / safe)
        v = tail / jnp.where(none, 1, alpha - safe)[..., None]
        whole = v + jnp.asarray(np.arange(rows) == k).astype(x.dtype)
        product = (whole[..., :, None] * x).sum(-2)
        changed = x - tau[..., None, None] * whole[..., :, None] * product[..., None, :]
        right = jnp.asarray(np.arange(columns) > k)
        mine = jnp.asarray(np.arange(columns) == k)
        corner = jnp.asarray(np.arange(rows) == k)
        first = jnp.where(corner, jnp.where(none, alpha, beta)[..., None], jnp.where(below, v, column))
        x = jnp.where(right, changed, jnp.where(mine, first[..., :, None], x))
        taus.append(tau)
    return x, jnp.stack(taus, -1) if taus else jnp.zeros((*x.shape[:-2], 0), x.dtype)


@decomposition("householder_product")
def householder_product(a: Any, taus: Any, **rest: Any) -> Any:
    rows, columns = a.shape[-2:]
    found = jnp.broadcast_to(jnp.eye(rows, columns, dtype=a.dtype), a.shape)
    for k in range(taus.shape[-1] - 1, -1, -1):
        whole = jnp.where(jnp.asarray(np.arange(rows) > k), a[..., :, k], 0)
        whole = whole + jnp.asarray(np.arange(rows) == k).astype(a.dtype)
        product = (whole[..., :, None] * found).sum(-2)
        found = found - taus[..., k, None, None] * whole[..., :, None] * product[..., None, :]
    return found


@decomposition("qr")
def qr(x: Any, full_matrices: bool, pivoting: bool = False, **rest: Any) -> Any:
    if pivoting:
        raise NotImplementedError("a decomposition with pivots")
    rows, columns = x.shape[-2:]
    packed, taus = geqrf(x)
    count = rows if full_matrices else min(rows, columns)
    wide = jnp.concatenate([packed, jnp.zeros((*x.shape[:-1], max(count - columns, 0)), x.dtype)], -1)[
        ..., :count
    ]
    return householder_product(wide, taus), jnp.triu(packed[..., :count, :])
