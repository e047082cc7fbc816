"""Solving and measuring with matrices: determinants, inverses, linear systems, powers and exponentials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ... import checks, dtypes
from ...dtypes import dtype_of
from ...operators.attach import attach_methods
from ...operators.autocast import cast_for
from ...operators.declare import general
from ...operators.derivatives import FROM_KERNEL, rules_of
from ...operators.functions.overloads import of_tensors
from ...operators.operator import structure
from ...operators.promotion import promote
from ...operators.schema import Array
from ...tensor import Tensor, array_of, sizes_of
from .decompositions import adjoint, check_floating, check_info, check_matrix, dot, given
from .matmul import matmul, multiply_chain

if TYPE_CHECKING:
    from ... import return_types

__all__ = [
    "cholesky_inverse",
    "cholesky_solve",
    "det",
    "inverse",
    "logdet",
    "matrix_exp",
    "matrix_power",
    "slogdet",
]


# ---- determinants --------------------------------------------------------------------------------------------------


@general(out="exact", name="linalg_det", node="LinalgDet", derivatives=FROM_KERNEL)
def linalg_det(A: Array) -> Array:
    """The determinants of square matrices.

    Shape: `A` `(*, n, n)`, result `(*)`.

    Raises: RuntimeError for bool and integer tensors.

    >>> xtensor.linalg.det(xtensor.tensor([[1.0, 2.0], [3.0, 5.0]])).round()
    tensor(-1.)
    """
    checks.check_square("linalg.det", A)
    check_floating("linalg.det", A, "lu_cpu")
    return jnp.linalg.det(A) if A.shape[-1] else jnp.ones(A.shape[:-2], A.dtype)


def _slogdet_grad(grads: Any, results: Any, A: Array) -> Array:
    """`g * A^-H`; for complex matrices the sign turns with the imaginary part."""
    gsign, glog = grads
    n = A.shape[-1]
    g = glog.astype(A.dtype)
    if jnp.iscomplexobj(A):
        g = g - 1j * jnp.imag(jnp.conj(gsign) * results[0]).astype(A.dtype)
    eye = jnp.broadcast_to(jnp.eye(n, dtype=A.dtype), A.shape)
    return g[..., None, None] * jnp.linalg.solve(adjoint(A), eye)


@general(
    out="exact",
    name="linalg_slogdet",
    node="LinalgSlogdet",
    returns=("sign", "logabsdet"),
    derivatives=dict(A=_slogdet_grad),
)
def linalg_slogdet(A: Array) -> tuple[Array, ...]:
    """The signs and the logarithms of the absolute values of determinants.

    Shape: `A` `(*, n, n)`; signs `(*)` and logarithms `(*)`.

    Raises: RuntimeError for bool and integer tensors.
    """
    checks.check_square("linalg.slogdet", A)
    check_floating("linalg.slogdet", A)
    if A.shape[-1] == 0:
        lead = A.shape[:-2]
        return jnp.ones(lead, A.dtype), jnp.zeros(lead, jnp.real(A).dtype)
    sign, log = jnp.linalg.slogdet(A)
    return sign, log


@of_tensors()
def det(input: Tensor) -> Tensor:
    """The determinants of square matrices, as `linalg.det`.

    Shape: `input` `(*, n, n)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool and integer tensors.

    >>> xtensor.det(xtensor.tensor([[1.0, 2.0], [3.0, 5.0]])).round()
    tensor(-1.)
    """
    return linalg_det(input)


Slogdet: Any = structure("slogdet", ("sign", "logabsdet"))


@of_tensors()
def slogdet(input: Tensor, *, out: Any = None) -> return_types.slogdet:
    """The signs and the logarithms of the absolute values of determinants, as `linalg.slogdet`.

    Shape: `input` `(*, n, n)`; signs `(*)` and logarithms `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool and integer tensors.
    """
    return Slogdet(*linalg_slogdet(input, out=out))


def logdet(input: Tensor) -> Tensor:
    """The logarithms of determinants; NaN of negative ones.

    Shape: `input` `(*, n, n)`, result `(*)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool and integer tensors.
    """
    if not isinstance(input, Tensor):
        raise checks.argument_error("logdet", "input", 1, "Tensor", input)
    checks.check_floating("logdet", input.dtype, low_precision=False)
    sign, log = slogdet(input)
    return log + sign.log()


# ---- inverses and systems ------------------------------------------------------------------------------------------


def _inv_grad(grad: Array, result: Array) -> Array:
    turned = adjoint(result)
    return -dot(dot(turned, grad), turned)


def factored(A: Array) -> tuple[Array, Array, Array]:
    """The packed LU factors, the order of the rows, and the number (from 1) of the first pivot that is 0, or 0."""
    packed, _, order = lax.linalg.lu(A)
    return packed, order, zero_pivots(packed)


def zero_pivots(packed: Array) -> Array:
    zero = jnp.diagonal(packed, axis1=-2, axis2=-1) == 0
    if zero.shape[-1] == 0:
        return jnp.zeros(zero.shape[:-1], jnp.int32)
    return jnp.where(jnp.any(zero, -1), jnp.argmax(zero, -1) + 1, 0).astype(jnp.int32)


def solve_factored(packed: Array, order: Array, B: Array) -> Array:
    """The X with `A @ X == B`, from the factors of A."""
    rows = jnp.take_along_axis(B, order[..., None], axis=-2)
    half = lax.linalg.triangular_solve(packed, rows, left_side=True, lower=True, unit_diagonal=True)
    return lax.linalg.triangular_solve(packed, half, left_side=True, lower=False)


@general(
    autocast=dict(cpu="float32"),
    out="exact",
    name="linalg_inv_ex",
    columns=(0,),
    node="LinalgInvEx",
    returns=("inverse", "info"),
    derivatives=dict(input=lambda grads, result0: _inv_grad(grads[0], result0)),
)
def inverses(input: Array) -> tuple[Array, ...]:
    """The inverses of square matrices, not finite where there is none, and the number of the pivot that is 0."""
    checks.check_square("linalg.inv", input)
    check_floating("linalg.inv", input)
    if input.size == 0:
        return input, jnp.zeros(input.shape[:-2], jnp.int32)
    packed, order, info = factored(input)
    eye = jnp.broadcast_to(jnp.eye(input.shape[-1], dtype=input.dtype), input.shape)
    return solve_factored(packed, order, eye), info


InvEx: Any = structure("linalg_inv_ex", ("inverse", "info"))


SINGULAR = "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular."


def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> return_types.linalg_inv_ex:
    """The inverses of square matrices with `info`: 0, or the number of the pivot that is 0.

    Shape: `A` `(*, n, n)`; inverses `(*, n, n)` and `info` `(*)`.
    Without `check_errors` nothing is read back.

    Raises: RuntimeError for fewer than two dimensions.
    """
    made = inverses(A, out=out)
    if check_errors:
        check_info("linalg.inv_ex", made[1], SINGULAR)
    return InvEx(*made)


def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverses of square matrices.

    Shape: `A` `(*, n, n)`, result `(*, n, n)`.
    LinAlgError where one is singular; differs from PyTorch on an accelerator: infinities and NaN.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool and integer tensors.

    >>> xtensor.linalg.inv(xtensor.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    made, info = inverses(A)
    check_info("linalg.inv", info, SINGULAR)
    return given(made, out, "general")


def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverses of square matrices, as `linalg.inv`.

    Shape: `input` `(*, n, n)`, result `(*, n, n)`.

    Raises: TypeError for arguments of other kinds; RuntimeError for bool and integer tensors.

    >>> xtensor.inverse(xtensor.tensor([[2.0, 0.0], [0.0, 4.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    return inv(input, out=out)


def is_vector_case(a: Any, b: Any) -> bool:
    """Whether B is a batch of vectors: one dimension, or the shape of A without its last."""
    return b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])


def _solve_grads(grads: Any, results: Any, A: Array, B: Array, left: bool) -> tuple[Array, Array]:
    """The gradients of A and of B: `A^H G = g` solved for G, and `-G X^H`."""
    vector = is_vector_case(A, B)
    g, x = (t[..., None] if vector else t for t in (grads[0], results[0]))
    turned = jnp.broadcast_to(adjoint(A), (*g.shape[:-2], *A.shape[-2:]))
    if g.size == 0:
        return jnp.zeros(A.shape, A.dtype), jnp.zeros(B.shape, B.dtype)
    if left:
        gb = jnp.linalg.solve(turned, g)
        ga = -dot(gb, adjoint(x))
    else:
        gb = jnp.swapaxes(jnp.linalg.solve(jnp.swapaxes(turned, -1, -2), jnp.swapaxes(g, -1, -2)), -1, -2)
        ga = -dot(adjoint(x), gb)
    return ga, gb[..., 0] if vector else gb


@general(
    autocast=dict(cpu="float32"),
    out="exact",
    name="linalg_solve_ex",
    columns=lambda left: (0,) if left else (),
    node="LinalgSolveEx",
    returns=("result", "info"),
    derivatives=rules_of("A B", _solve_grads),
)
def solutions(A: Array, B: Array, *, left: bool = True) -> tuple[Array, ...]:
    """The X with `A @ X == B` (or `X @ A == B`), not finite where A is singular, and the number of the pivot that is 0.

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool and integer tensors.
    """
    checks.check_square("linalg.solve", A)
    check_floating("linalg.solve", A)
    a, b = dtype_of(A), dtype_of(B)
    if a is not b:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {a.scalar_name} and B of type "
            f"{b.scalar_name} instead"
        )
    vector = is_vector_case(A, B)
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case "
            "linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    check_matrix("linalg.solve", B[..., None] if vector else B, "B")
    right = B[..., None] if vector else B
    check_system("linalg.solve", A, right, left)
    lead = jnp.broadcast_shapes(A.shape[:-2], right.shape[:-2])
    right = jnp.broadcast_to(right, (*lead, *right.shape[-2:]))
    if A.size == 0:
        return jnp.zeros(right.shape[:-1] if vector else right.shape, A.dtype), jnp.zeros(
            A.shape[:-2], jnp.int32
        )
    packed, order, info = factored(A if left else jnp.swapaxes(A, -1, -2))
    packed = jnp.broadcast_to(packed, (*lead, *packed.shape[-2:]))
    order = jnp.broadcast_to(order, (*lead, *order.shape[-1:]))
    if right.size == 0:
        out = jnp.zeros(right.shape, A.dtype)
    elif left:
        out = solve_factored(packed, order, right)
    else:
        out = jnp.swapaxes(solve_factored(packed, order, jnp.swapaxes(right, -1, -2)), -1, -2)
    return (out[..., 0] if vector else out), info


def check_system(name: str, A: Any, B: Any, left: bool) -> None:
    n = A.shape[-1]
    if B.shape[-2 if left else -1] != n:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({n}x{n} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )


SolveEx: Any = structure("linalg_solve_ex", ("result", "info"))


UNSOLVED = "The solver failed because the input matrix is singular."


def solve_ex(
    A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None
) -> return_types.linalg_solve_ex:
    """The X with `A @ X == B` (`X @ A == B` where not `left`) with `info`: 0, or the number of the pivot that is 0.

    Shape: `A` `(*, n, n)`, `B` `(*, n, k)` (`(*, k, n)` where not `left`) or `(*, n)`; result as `B`, `info`
    `(*)`.
    Without `check_errors` nothing is read back.

    Raises: RuntimeError where sizes do not fit.
    """
    made = solutions(A, B, left=left, out=out)
    if check_errors:
        check_info("torch.linalg.solve_ex", made[1], UNSOLVED)
    return SolveEx(*made)


def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """The X with `A @ X == B` (`X @ A == B` where not `left`), for batches of square A.

    Shape: `A` `(*, n, n)`, `B` `(*, n, k)` (`(*, k, n)` where not `left`) or `(*, n)`; result as `B`, batches broadcast.
    LinAlgError where A is singular; differs from PyTorch on an accelerator: infinities and NaN.

    Raises: LinAlgError where a matrix is singular.

    >>> xtensor.linalg.solve(xtensor.tensor([[2.0, 0.0], [0.0, 4.0]]), xtensor.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    made, info = solutions(A, B, left=left)
    check_info("torch.linalg.solve", info, UNSOLVED)
    return given(made, out, "general")


@general(
    out="exact",
    name="linalg_solve_triangular",
    columns=(0,),
    node="LinalgSolveTriangular",
    derivatives=FROM_KERNEL,
)
def solve_triangular(
    input: Array, B: Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Array:
    """The X with `input @ X == B` (or `X @ input == B`) for triangular matrices.

    Shape: `input` `(*, n, n)`, `B` `(*, n, k)` (`(*, k, n)` where not `left`); result as `B`, batches
    broadcast.

    Raises: RuntimeError where sizes do not fit; TypeError for bool and integer tensors.
    """
    checks.check_square("linalg.solve_triangular", input)
    check_matrix("linalg.solve_triangular", B, "B")
    a, b = dtype_of(input), dtype_of(B)
    if a is not b:
        raise RuntimeError(
            f"linalg.solve_triangular: Expected A and B to have the same dtype, but found A of type {a.scalar_name} and B "
            f"of type {b.scalar_name} instead"
        )
    check_system("linalg.solve_triangular", input, B, left)
    n = input.shape[-1]
    lead = jnp.broadcast_shapes(input.shape[:-2], B.shape[:-2])
    return lax.linalg.triangular_solve(
        jnp.broadcast_to(input, (*lead, n, n)),
        jnp.broadcast_to(B, (*lead, *B.shape[-2:])),
        left_side=left,
        lower=not upper,
        unit_diagonal=unitriangular,
    )


@of_tensors()
def cholesky_solve(
    input: Tensor, input2: Tensor, upper: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The X with `A @ X == input`, given A's Cholesky factor `input2`.

    Shape: `input` `(*, n, k)`, `input2` `(*, n, n)`, result `(*, n, k)`.

    Raises: TypeError for arguments of other kinds; RuntimeError where sizes do not fit; TypeError for bool and
    integer tensors.
    """
    input, input2 = cast_for(input, input2, cpu="float32")
    for name, x in (("b", input), ("u", input2)):
        if x.dim() < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {x.dim()} dimensions instead"
            )
    rows, n = tuple(sizes_of(input2))[-2:]
    if rows != n:
        raise RuntimeError(f"A must be batches of square matrices, but they are {rows} by {n} matrices")
    if sizes_of(input)[-2] != n:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {n} by {n} but each b matrix is "
            f"{sizes_of(input)[-2]} by {sizes_of(input)[-1]}"
        )
    if upper:
        half = solve_triangular(input2.mH, input, upper=False)
        return given(solve_triangular(input2, half, upper=True), out, name="cholesky_solve")
    half = solve_triangular(input2, input, upper=False)
    return given(solve_triangular(input2.mH, half, upper=True), out, name="cholesky_solve")


@of_tensors()
def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """The inverses of matrices given by their Cholesky factors.

    Shape: `input` `(*, n, n)`, result `(*, n, n)`.

    Raises: TypeError for arguments of other kinds; TypeError for bool and integer tensors.
    """
    (input,) = cast_for(input, cpu="float32")
    if input.dim() < 2:
        raise RuntimeError("cholesky_inverse: The input tensor A must have at least 2 dimensions.")
    rows, n = tuple(sizes_of(input))[-2:]
    if rows != n:
        raise RuntimeError(
            f"cholesky_inverse: A must be batches of square matrices, but they are {rows} by {n} matrices"
        )
    zeros = (input.detach().diagonal(dim1=-2, dim2=-1) == 0).to(dtypes.int32)
    # The number of the first 0 of the diagonal, from 1; 0 where there is none.
    info = zeros.argmax(-1).add(1).mul(zeros.amax(-1)) if n else zeros.sum(-1)
    check_info(
        "cholesky_inverse",
        info,
        "The diagonal element {} is zero, the inversion could not be completed because the input matrix is singular.",
    )
    eye = (input.new_ones((n,))).diag().expand(tuple(sizes_of(input)))
    return given(cholesky_solve(eye, input, upper), out, name="cholesky_inverse")


# ---- powers and exponentials ---------------------------------------------------------------------------------------


@of_tensors()
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """The n-th powers of square matrices, by repeated squaring; negative ones of the inverses.

    Shape: `input` `(*, n, n)`, result `(*, n, n)`.

    Raises: TypeError for arguments of other kinds; NotImplementedError for bool tensors.
    """
    checks.check_square("linalg.matrix_power", array_of(input))
    if n == 0:
        size = sizes_of(input)[-1]
        eye = input.new_ones((size,)).diag().expand(tuple(sizes_of(input)))
        # The input stays in the graph, with a gradient of zero.
        return given(eye.where(eye.new_ones((), dtype=dtypes.bool), input), out, name="linalg.matrix_power")
    x = inv(input) if n < 0 else input
    n = power = abs(n)
    result: Tensor | None = None
    while n:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if n:
            x = matmul(x, x)
    assert result is not None
    exact = "general" if power > 1 else None
    return given(result.clone() if result is input else result, out, exact, name="linalg.matrix_power")


@jax.custom_vjp
def exponential(x: Any) -> Any:
    """The matrix exponential: a Taylor polynomial of the scaled matrix, squared back as often as the largest needs."""
    norm = jnp.max(jnp.sum(jnp.abs(x), axis=-2), axis=-1)
    wide = jnp.real(x).dtype == jnp.float64
    # Every squaring doubles the rounding error, so the polynomial reaches as far as its degree allows.
    needed = jnp.ceil(jnp.log2(jnp.maximum(norm, np.asarray(1e-30, norm.dtype)))) + (1 if wide else -1)
    needed = jnp.clip(jnp.where(jnp.isfinite(needed), needed, 0), 0, 1000)
    scaled = x / jnp.exp2(needed)[..., None, None].astype(x.dtype)
    eye = jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape)
    total = eye
    for k in range(18, 0, -1):
        total = eye + dot(scaled, total) / np.asarray(k, x.dtype)
    steps = needed[..., None, None]
    return lax.fori_loop(
        0, jnp.max(needed).astype(jnp.int32), lambda i, v: jnp.where(i < steps, dot(v, v), v), total
    )


def _exponential_forward(x: Any) -> Any:
    return exponential(x), x


def _exponential_backward(x: Any, grad: Any) -> Any:
    """Najfeld and Havel, "Derivatives of the matrix exponential and their computation" (1995): a block exponential."""
    turned = jnp.swapaxes(x, -1, -2)
    above = jnp.concatenate([turned, grad], axis=-1)
    below = jnp.concatenate([jnp.zeros_like(x), turned], axis=-1)
    n = x.shape[-1]
    return (exponential(jnp.concatenate([above, below], axis=-2))[..., :n, n:],)


exponential.defvjp(_exponential_forward, _exponential_backward)


@general(name="matrix_exp", node="LinalgMatrixExp", method=True, derivatives=FROM_KERNEL)
def matrix_exp(input: Array) -> Array:
    """The exponentials of square matrices.

    Shape: `input` `(*, n, n)`, result `(*, n, n)`.
    Differs from PyTorch: short floats are computed in float32 (PyTorch's own series gives NaN for entries of a few units).

    Raises: RuntimeError for bool and integer tensors.
    """
    checks.check_square("linalg.matrix_exp", input)
    own = dtype_of(input)
    checks.check_floating("linalg.matrix_exp", own)
    if input.size == 0:
        return input
    return exponential(input.astype(dtypes.compute_type(own).numpy)).astype(input.dtype)


matrix_exp.operator.backwards_only = True


# ---- products ------------------------------------------------------------------------------------------------------


def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of two or more matrices (the first and last may be vectors) by the cheapest bracketing.

    Shape: `(n, m)`, `(m, k)`, ..., `(l, p)`, result `(n, p)`; a vector first or last takes its size away.

    Raises: RuntimeError for fewer than two tensors, and where sizes do not fit.
    """
    matrices = list(tensors)
    if len(matrices) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(matrices)}")
    first, last = matrices[0].dim() == 1, matrices[-1].dim() == 1
    for i, m in enumerate(matrices):
        ends = i in (0, len(matrices) - 1)
        if not (m.dim() == 2 or (ends and m.dim() == 1)):
            where = (
                "the first tensor must be 1D or 2D"
                if i == 0
                else "the last tensor must be 1D or 2D"
                if ends
                else f"tensor {i} must be 2D"
            )
            raise RuntimeError(f"multi_dot(): {where} but got {m.dim()}D")
    for i, m in enumerate(matrices):
        if m.dtype is not matrices[0].dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{dtypes.c_name(matrices[0].dtype)} and tensor {i} {dtypes.c_name(m.dtype)}"
            )
    if first:
        matrices[0] = matrices[0].unsqueeze(0)
    if last:
        matrices[-1] = matrices[-1].unsqueeze(-1)
    for i in range(len(matrices) - 1):
        if sizes_of(matrices[i])[1] != sizes_of(matrices[i + 1])[0]:
            shapes = [list(sizes_of(t)) for t in (tensors[i], tensors[i + 1])]
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {shapes[0]} and {shapes[1]} cannot be multiplied"
            )
    made = multiply_chain(matrices)
    if first:
        made = made.squeeze(0)
    if last:
        made = made.squeeze(-1)
    return given(made, out, name="linalg.multi_dot")


@general(autocast="short", out="exact", name="linalg_vecdot", node="LinalgVecdot", derivatives=FROM_KERNEL)
def vecdot(x: Array, y: Array, *, dim: int = -1) -> Array:
    """The dot products of vectors along `dim`, the first conjugated.

    Shape: `x` and `y` broadcast to `(*)`; result `(*)` without the dimension `dim`.

    Raises: RuntimeError where sizes do not fit; RuntimeError for bool and integer tensors.
    """
    checks.check_floating("linalg.vecdot", dtype_of(x))
    a, b = promote(x, y)
    a, b = jnp.broadcast_arrays(a, b)
    return jnp.sum(jnp.conj(a) * b, axis=checks.wrap_dim(dim, a.ndim)).astype(a.dtype)


attach_methods(cholesky_inverse, cholesky_solve, det, inverse, logdet, matrix_power, slogdet)
