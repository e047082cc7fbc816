"""LDL factorizations of symmetric and Hermitian matrices, by Bunch and Kaufman's pivoting, and systems that they solve.

Bunch and Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems" (1977). The packed
form is LAPACK's: D's blocks and L's multipliers in the lower triangle, a block of two marked by two negative pivots.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
from jax import lax

from ... import checks
from ...dtypes import dtype_of
from ...operators.declare import general
from ...operators.derivatives import no_derivative
from ...operators.operator import structure
from ...operators.schema import Array
from ...tensor import Tensor
from .decompositions import check_failures, check_floating, given

if TYPE_CHECKING:
    from ... import return_types

__all__: list[str] = []

ALPHA = (1 + math.sqrt(17)) / 8


def magnitude(x: Array) -> Array:
    """What LAPACK compares pivots by: of complex numbers the sum of the parts."""
    return jnp.abs(jnp.real(x)) + jnp.abs(jnp.imag(x)) if jnp.iscomplexobj(x) else jnp.abs(x)


def turned(x: Array, hermitian: bool) -> Array:
    return jnp.conj(x) if hermitian else x


def factor(a: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """One matrix: the packed factors, the pivots and the number of the first block that is 0."""
    n = a.shape[-1]
    at = jnp.arange(n)
    lower = jnp.tril(a)
    if hermitian:
        lower = jnp.where(at[:, None] == at, jnp.real(lower).astype(a.dtype), lower)
    whole = lower + turned(jnp.tril(a, -1), hermitian).T

    def step(state: Any) -> Any:
        k, a, pivots, info = state
        column = jnp.where(at > k, magnitude(a[:, k]), -1)
        row = jnp.argmax(column)
        largest, own = jnp.maximum(column[row], 0), magnitude(a[k, k])
        along = jnp.max(jnp.where((at >= k) & (at != row), magnitude(a[row]), 0))
        zero = jnp.maximum(own, largest) == 0
        keep = zero | (own >= ALPHA * largest) | (own * along >= ALPHA * largest * largest)
        alone = keep | (magnitude(a[row, row]) >= ALPHA * along)
        pivot = jnp.where(keep, k, row)
        second = jnp.where(alone, k, k + 1)
        # Exchange what is left of rows and columns `second` and `pivot`.
        order = jnp.where(at == second, pivot, jnp.where(at == pivot, second, at))
        left = (at[:, None] >= k) & (at >= k)
        a = jnp.where(left, a[order][:, order], a)
        one = eliminate_one(a, k, at, zero, hermitian)
        two = eliminate_two(a, jnp.minimum(k, n - 2), at, hermitian) if n > 1 else one
        marks = jnp.where(alone, pivot + 1, -(pivot + 1)).astype(jnp.int32)
        pivots = jnp.where((at == k) | (~alone & (at == k + 1)), marks, pivots)
        info = jnp.where(zero & (info == 0), k + 1, info).astype(jnp.int32)
        return k + jnp.where(alone, 1, 2), jnp.where(alone, one, two), pivots, info

    start = (jnp.zeros((), jnp.int64), whole, jnp.zeros((n,), jnp.int32), jnp.zeros((), jnp.int32))
    _, made, pivots, info = lax.while_loop(lambda state: state[0] < n, step, start)
    return jnp.tril(made), pivots, info


def eliminate_one(a: Array, k: Array, at: Array, zero: Array, hermitian: bool) -> Array:
    """The matrix after a block of one at k; as it was where the block is 0."""
    d = jnp.where(zero, 1, a[k, k])
    column = jnp.where(at > k, a[:, k], 0)
    multipliers = column / d
    after = (at[:, None] > k) & (at > k)
    rest = a - multipliers[:, None] * turned(column, hermitian)
    rest = jnp.where(after, rest, a)
    rest = jnp.where((at[:, None] > k) & (at == k), multipliers[:, None], rest)
    return jnp.where(zero, a, rest)


def eliminate_two(a: Array, k: Array, at: Array, hermitian: bool) -> Array:
    """The matrix after a block of two at k."""
    block = lax.dynamic_slice(a, (k, k), (2, 2))
    columns = jnp.where((at > k + 1)[:, None], lax.dynamic_slice(a, (0, k), (a.shape[0], 2)), 0)
    # Scaled by the element off the diagonal, the largest, the determinant neither overflows nor cancels.
    off = jnp.where(block[1, 0] == 0, 1, block[1, 0])
    other = turned(off, hermitian)
    first, last = block[0, 0] / other, block[1, 1] / off
    scale = 1 / (first * last - 1)
    m0 = (last * columns[:, 0] - columns[:, 1]) * scale / other
    m1 = (first * columns[:, 1] - columns[:, 0]) * scale / off
    multipliers = jnp.stack([m0, m1], axis=1)
    after = (at[:, None] > k + 1) & (at > k + 1)
    rest = jnp.where(after, a - multipliers @ turned(columns, hermitian).T, a)
    rest = jnp.where((at[:, None] > k + 1) & (at == k), multipliers[:, :1], rest)
    return jnp.where((at[:, None] > k + 1) & (at == k + 1), multipliers[:, 1:], rest)


def over_batch(function: Any, batch: tuple[int, ...], *arrays: Any) -> Any:
    """`function` of every matrix of a batch."""
    for _ in batch:
        function = jax.vmap(function)
    return function(*arrays)


@general(
    out="exact",
    name="linalg_ldl_factor_ex",
    columns=(0,),
    node="LinalgLdlFactorEx",
    returns=("LD", "pivots", "info"),
    derivatives=dict(input=no_derivative("linalg_ldl_factor_ex")),
)
def factors(input: Array, *, hermitian: bool = False) -> tuple[Array, ...]:
    """The packed factors L and D of symmetric (or Hermitian) matrices, the pivots, and the first zero pivot, or 0.

    Raises: RuntimeError for bool and integer tensors.
    """
    name = "torch.linalg.ldl_factor_ex"
    checks.check_square(name, input)
    check_floating(name, input, "ldl_factor_kernel_cpu")
    if input.size == 0:
        lead = input.shape[:-1]
        return input, jnp.zeros(lead, jnp.int32), jnp.zeros(lead[:-1], jnp.int32)
    conjugate = hermitian and dtype_of(input).is_complex
    return over_batch(lambda a: factor(a, conjugate), input.shape[:-2], input)


FactorEx: Any = structure("linalg_ldl_factor_ex", ("LD", "pivots", "info"))
Factor: Any = structure("linalg_ldl_factor", ("LD", "pivots"))


def check_factors(name: str, info: Tensor) -> None:
    check_failures(
        info, lambda _, at: RuntimeError(f"{name}: D[{at},{at}] is zero: the factors are singular.")
    )


def ldl_factor_ex(
    input: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None
) -> return_types.linalg_ldl_factor_ex:
    """The packed factors of symmetric (or Hermitian) matrices with the pivots and `info`, 0 where no block is 0.

    Shape: `input` `(*, n, n)`; LD `(*, n, n)`, pivots `(*, n)` and `info` `(*)`.

    Raises: RuntimeError for fewer than two dimensions.
    """
    made = factors(input, hermitian=hermitian, out=out)
    if check_errors:
        check_factors("torch.linalg.ldl_factor_ex", made[2])
    return FactorEx(*made)


def ldl_factor(input: Tensor, *, hermitian: bool = False, out: Any = None) -> return_types.linalg_ldl_factor:
    """The packed factors L and D of symmetric (or Hermitian) matrices, and the pivots; RuntimeError where D is singular.

    Shape: `input` `(*, n, n)`; LD `(*, n, n)`, pivots `(*, n)`.

    Raises: RuntimeError for fewer than two dimensions.
    """
    packed, pivots, info = factors(input, hermitian=hermitian)
    check_factors("torch.linalg.ldl_factor", info)
    if out is not None:
        return Factor(given(packed, out[0], "general"), given(pivots, out[1], "general"))
    return Factor(packed, pivots)


# ---- solving -------------------------------------------------------------------------------------------------------


def exchanged(x: Array, i: Array, j: Array) -> Array:
    """The matrix with two rows exchanged."""
    at = jnp.arange(x.shape[0])
    return x[jnp.where(at == i, j, jnp.where(at == j, i, at))]


def solve_one(packed: Array, pivots: Array, b: Array, hermitian: bool) -> Array:
    """One system: the factors undone from the first block to the last and back."""
    n = packed.shape[0]
    at = jnp.arange(n)
    two = pivots < 0
    target = jnp.abs(pivots) - 1

    def down(state: Any) -> Any:
        k, x = state
        pair = two[k]
        last = jnp.where(pair, k + 1, k)
        x = exchanged(x, last, target[k])
        below = (at > last)[:, None]
        x0, x1 = x[k], x[jnp.minimum(k + 1, n - 1)]
        column = jnp.where(below, packed[:, k][:, None], 0)
        follow = jnp.where(below & pair, packed[:, jnp.minimum(k + 1, n - 1)][:, None], 0)
        x = x - column * x0 - follow * x1
        # D's block: by itself, or two with the element off the diagonal.
        off = jnp.where(pair, packed[jnp.minimum(k + 1, n - 1), k], 1)
        off = jnp.where(off == 0, 1, off)
        other = turned(off, hermitian)
        d0, d1 = packed[k, k], packed[jnp.minimum(k + 1, n - 1), jnp.minimum(k + 1, n - 1)]
        first, final = d0 / other, d1 / off
        scale = 1 / (first * final - 1)
        pair0 = (final * x0 - x1 * (other / off)) * scale / other
        pair1 = (first * x1 - x0 * (off / other)) * scale / off
        x = jnp.where((at == k)[:, None], jnp.where(pair, pair0, x0 / d0), x)
        x = jnp.where((at == k + 1)[:, None] & pair, pair1, x)
        return last + 1, x

    def up(state: Any) -> Any:
        k, x = state
        pair = two[k]
        first = jnp.where(pair, k - 1, k)
        below = at > k
        own = jnp.where(below, turned(packed[:, k], hermitian), 0)
        before = jnp.where(below & pair, turned(packed[:, jnp.maximum(k - 1, 0)], hermitian), 0)
        x = jnp.where((at == k)[:, None], x - own @ x, x)
        x = jnp.where((at == k - 1)[:, None] & pair, x - before @ x, x)
        return first - 1, exchanged(x, k, target[k])

    zero = jnp.zeros((), jnp.int64)
    _, x = lax.while_loop(lambda state: state[0] < n, down, (zero, b))
    _, x = lax.while_loop(lambda state: state[0] >= 0, up, (zero + n - 1, x))
    return x


@general(
    out="exact",
    name="linalg_ldl_solve",
    columns=(0,),
    node="LinalgLdlSolve",
    derivatives=dict(LD=no_derivative("linalg_ldl_solve"), B=no_derivative("linalg_ldl_solve")),
)
def ldl_solve(LD: Array, pivots: Array, B: Array, *, hermitian: bool = False) -> Array:
    """The X with `A @ X == B`, given the LDL factors of A; without a derivative.

    Shape: `LD` `(*, n, n)`, `pivots` `(*, n)`, `B` `(*, n, k)`, result `(*, n, k)`.

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool and integer tensors.
    """
    name = "torch.linalg.ldl_solve"
    checks.check_square(name, LD)
    checks.check_floating(name, dtype_of(LD))
    if B.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2)")
    if LD.shape[:-1] != pivots.shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    if not jnp.issubdtype(pivots.dtype, jnp.integer):
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {dtype_of(pivots).scalar_name}")
    n = LD.shape[-1]
    if B.shape[-2] != n:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is {B.shape[-2]} by "
            f"{B.shape[-1]}"
        )
    own, other = dtype_of(LD), dtype_of(B)
    if own is not other:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {other.scalar_name} and A of type "
            f"{own.scalar_name} instead."
        )
    lead = jnp.broadcast_shapes(LD.shape[:-2], B.shape[:-2])
    right = jnp.broadcast_to(B, (*lead, *B.shape[-2:]))
    if right.size == 0:
        return right
    conjugate = hermitian and own.is_complex
    return over_batch(
        lambda a, p, b: solve_one(a, p, b, conjugate),
        lead,
        jnp.broadcast_to(LD, (*lead, n, n)),
        jnp.broadcast_to(pivots, (*lead, n)).astype(jnp.int32),
        right,
    )
