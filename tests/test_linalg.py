"""Linear algebra by what defines it: factors multiply to the matrix, solutions solve, gradients are those of differences."""

from __future__ import annotations

import numpy as np
import pytest

import xtensor
from xtensor import linalg
from xtensor.autograd import gradcheck, gradgradcheck

RNG = np.random.default_rng(5)


def matrix(*shape, dtype=np.float64, shift=0.0, symmetric=False):
    """A random matrix, `shift` added to its diagonal, as a leaf that asks for a gradient."""
    values = RNG.uniform(-1, 1, shape)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * RNG.uniform(-1, 1, shape)
    if symmetric:
        values = values + np.conj(np.swapaxes(values, -1, -2))
    values = values + shift * np.eye(*shape[-2:])
    return xtensor.tensor(values.astype(dtype)).requires_grad_()


def close(ours, wanted, tolerance=1e-10):
    np.testing.assert_allclose(ours.detach().numpy(), wanted, atol=tolerance, rtol=tolerance)


KINDS = [np.float64, np.complex128]
SHAPES = [(3, 3), (2, 3, 2), (2, 2, 3)]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu_multiplies_to_the_matrix(shape, dtype):
    a = matrix(*shape, dtype=dtype, shift=0.5)
    p, lower, upper = linalg.lu(a)
    close(p @ lower @ upper, a.detach().numpy())
    assert not p.requires_grad
    packed, pivots = linalg.lu_factor(a)
    unpacked = xtensor.lu_unpack(packed, pivots)
    for one, other in zip((p, lower, upper), unpacked, strict=True):
        close(one, other.detach().numpy())
    if dtype is np.float64:
        assert gradcheck(lambda x: linalg.lu(x)[1:], (a,))


@pytest.mark.parametrize("dtype", KINDS)
def test_lu_solve_on_either_side_and_turned(dtype):
    a, b = matrix(3, 3, dtype=dtype, shift=2), matrix(2, 3, 2, dtype=dtype)
    packed, pivots = linalg.lu_factor(a)
    close(a @ linalg.lu_solve(packed, pivots, b), b.detach().numpy())
    close(a.mH @ linalg.lu_solve(packed, pivots, b, adjoint=True), b.detach().numpy())
    close(linalg.lu_solve(packed, pivots, b.mT, left=False) @ a, b.mT.detach().numpy())
    close(linalg.lu_solve(packed, pivots, b.mT, left=False, adjoint=True) @ a.mH, b.mT.detach().numpy())
    assert gradcheck(lambda x, y: linalg.lu_solve(*linalg.lu_factor(x), y), (a, b))


@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("dtype", KINDS)
def test_ldl_solves_indefinite_systems(dtype, hermitian):
    values = RNG.uniform(-1, 1, (3, 6, 6))
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * RNG.uniform(-1, 1, values.shape)
    values = values + (np.conj(np.swapaxes(values, -1, -2)) if hermitian else np.swapaxes(values, -1, -2))
    # Zero diagonals force blocks of two.
    values[1] *= 1 - np.eye(6)
    values[2, ::2] *= 1 - np.eye(6)[::2]
    values[2] = np.tril(values[2]) + (np.conj if hermitian else np.asarray)(np.tril(values[2], -1)).T
    a = xtensor.tensor(values.astype(dtype))
    b = matrix(3, 6, 2, dtype=dtype).detach()
    packed, pivots, info = linalg.ldl_factor_ex(a, hermitian=hermitian)
    assert info.tolist() == [0, 0, 0]
    assert (pivots < 0).any(), "no block of two was tried"
    x = linalg.ldl_solve(packed, pivots, b, hermitian=hermitian)
    close(a @ x, b.numpy(), 1e-9)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(
    "name", ["inv", "det", "slogdet", "cholesky", "eigvalsh", "svdvals", "matrix_exp", "qr"]
)
def test_gradients(name, dtype):
    a = matrix(3, 3, dtype=dtype, shift=1.5)
    function = getattr(linalg, name)
    # A function of a matrix that is symmetric however the numbers are moved.
    if name in ("cholesky", "eigvalsh"):
        inner = function

        def function(x):
            return inner(x @ x.mH + 0.5 * xtensor.eye(3, dtype=x.dtype))

    assert gradcheck(function, (a,))
    if dtype is np.float64:
        assert gradgradcheck(function, (a,))


@pytest.mark.parametrize("shape", [(3, 2), (2, 3)])
@pytest.mark.parametrize("dtype", KINDS)
def test_pseudo_inverses_of_low_rank_have_gradients(shape, dtype):
    u, v = matrix(shape[0], 1, dtype=dtype), matrix(1, shape[1], dtype=dtype)
    found = linalg.pinv(u @ v, rtol=1e-10)
    close(found, np.linalg.pinv((u @ v).detach().numpy()), 1e-9)
    assert gradcheck(lambda x, y: linalg.pinv(x @ y, rtol=1e-10), (u, v))


def test_householder_products_and_their_reflectors():
    a = matrix(4, 3)
    reflectors, tau = xtensor.geqrf(a.detach())
    q = linalg.householder_product(reflectors, tau)
    r = reflectors[:3].triu()
    close(q @ r, a.detach().numpy())
    other = matrix(4, 2)
    whole = xtensor.ormqr(reflectors, tau, xtensor.eye(4, dtype=xtensor.float64))
    close(whole[:, :3], q.numpy())
    close(xtensor.ormqr(reflectors, tau, other, transpose=True), (whole.mT @ other).detach().numpy())
    close(xtensor.ormqr(reflectors, tau, other.mT, left=False), (other.mT @ whole).detach().numpy())
    assert gradcheck(linalg.householder_product, (matrix(3, 2), matrix(1, 2).detach()[0].requires_grad_()))
    with pytest.raises(NotImplementedError, match="derivative for 'geqrf'"):
        xtensor.geqrf(a)[0].sum().backward()


@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)])
def test_least_squares(shape, driver):
    a, b = matrix(*shape), matrix(shape[0], 2)
    found = linalg.lstsq(a, b, driver=driver)
    wanted = np.linalg.lstsq(a.detach().numpy(), b.detach().numpy(), rcond=None)
    close(found.solution, wanted[0], 1e-9)
    if shape == (4, 3) and driver in ("gels", "gelsd", "gelss"):
        close(found.residuals, wanted[1], 1e-9)
    else:
        assert tuple(found.residuals.shape) == (0,)
    assert found.rank.tolist() == ([] if driver == "gels" else 3)
    if driver in (None, "gels"):
        assert gradcheck(lambda x, y: linalg.lstsq(x, y, driver=driver).solution, (a, b))


def test_info_counts_from_one_and_names_the_batch_element():
    good, bad = np.eye(3), np.diag([1.0, -1.0, 1.0])
    a = xtensor.tensor(np.stack([good, bad]))
    factor, info = linalg.cholesky_ex(a)
    assert info.tolist() == [0, 2]
    close(factor[0], good)
    with pytest.raises(linalg.LinAlgError, match=r"\(Batch element 1\): .*leading minor of order 2 is not"):
        linalg.cholesky(a)
    singular = xtensor.tensor(np.stack([good, np.diag([1.0, 2.0, 0.0])]))
    assert linalg.inv_ex(singular).info.tolist() == [0, 3]
    assert linalg.solve_ex(singular, singular).info.tolist() == [0, 3]
    assert linalg.lu_factor_ex(singular).info.tolist() == [0, 3]
    with pytest.raises(linalg.LinAlgError, match="diagonal element 3 is zero"):
        linalg.inv(singular)
    with pytest.raises(linalg.LinAlgError, match="input matrix is singular"):
        linalg.solve(singular, singular)
    with pytest.raises(RuntimeError, match=r"U\[3,3\] is zero"):
        linalg.lu_factor(singular)


@pytest.mark.parametrize("order", [1, float("inf"), 2, "nuc", "fro"])
def test_norms_of_empty_matrices_are_zero(order):
    assert linalg.matrix_norm(xtensor.zeros(5, 0), order).item() == 0
    assert linalg.matrix_norm(xtensor.zeros(2, 0, 3), order).tolist() == [0, 0]


def test_eigenvectors_of_general_matrices():
    a = matrix(3, 3, shift=1)
    values, vectors = linalg.eig(a)
    close(a.to(xtensor.complex128) @ vectors, (vectors * values).detach().numpy())
    assert gradcheck(lambda x: linalg.eigvals(x).abs(), (a,))


def test_extreme_eigenvalues_of_a_pencil():
    a = matrix(9, 9, symmetric=True, shift=9).detach()
    b = xtensor.tensor(np.diag(np.linspace(1, 2, 9)))
    values, vectors = xtensor.lobpcg(a, 2, b)
    close(a @ vectors, (b @ vectors * values).numpy(), 1e-4)
    every = np.linalg.eigvals(np.linalg.inv(b.numpy()) @ a.numpy()).real
    close(values, np.sort(every)[::-1][:2], 1e-6)
    smallest, _ = xtensor.lobpcg(a, 1, largest=False)
    close(smallest, np.linalg.eigvalsh(a.numpy())[:1], 1e-6)


SQUARE = "inv inv_ex lu_factor lu_factor_ex eig qr svd lu pinv".split()
POSITIVE = "cholesky cholesky_ex eigh ldl_factor".split()
SYSTEMS = [
    "L.solve(a, b)",
    "L.solve(a, b.mT, left=False)",
    "L.solve(a.mT, b)",
    "L.solve_triangular(a, b, upper=True)",
    "L.solve_triangular(a, b.mT, upper=False, left=False)",
    "L.lu_solve(*L.lu_factor(a), b)",
    "L.lu_solve(*L.lu_factor(a), b.mT, left=False)",
    "L.ldl_solve(*L.ldl_factor(a), b)",
    "t.cholesky_solve(b, a)",
    "t.ormqr(*t.geqrf(a), b)",
    "t.ormqr(*t.geqrf(a), b.mT, left=False)",
    "L.householder_product(*t.geqrf(a))",
    "L.solve(a[..., :1, :1], b[..., :1, :])",
]


def laid(lib, program, a, b=None):
    """The sizes and strides of what a program gives."""
    values = {"t": lib, "L": lib.linalg, "a": lib.tensor(a), "b": None if b is None else lib.tensor(b)}
    made = eval(program, values)
    return [(tuple(t.shape), t.stride()) for t in (made if isinstance(made, tuple) else (made,))]


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("rows, columns", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("name", SQUARE)
def test_factors_lie_by_columns(torch, name, rows, columns, batch):
    if rows != columns and name in ("inv", "inv_ex", "eig"):
        pytest.skip("of square matrices")
    a = np.random.default_rng(0).standard_normal((*batch, rows, columns)).astype(np.float32)
    program = f"L.{name}(a)"
    assert laid(xtensor, program, a) == laid(torch, program, a)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("program", [*[f"L.{name}(a)" for name in POSITIVE], *SYSTEMS])
def test_solutions_lie_by_columns(torch, program, batch):
    draw = np.random.default_rng(0).standard_normal
    a, b = draw((*batch, 4, 4)).astype(np.float32), draw((*batch, 4, 2)).astype(np.float32)
    a = a @ a.swapaxes(-1, -2) + 4 * np.eye(4, dtype=np.float32)
    assert laid(xtensor, program, a, b) == laid(torch, program, a, b)


def test_what_lies_by_columns_is_saved_written_and_mapped_as_it_is():
    a = xtensor.tensor([[4.0, 1.0], [1.0, 3.0]], requires_grad=True)
    factor = linalg.cholesky(a)
    assert not factor.is_contiguous() and factor.mT.is_contiguous() and factor._base is None
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        factor.view(-1)
    assert gradcheck(lambda x: linalg.cholesky(x @ x.mT), (a.detach().double().requires_grad_(),))
    batch = xtensor.stack([a.detach(), a.detach() * 2])
    mapped = xtensor.vmap(linalg.inv)(batch)
    assert xtensor.equal(mapped, linalg.inv(batch))
    primal, tangent = xtensor.func.jvp(linalg.inv, (a.detach(),), (xtensor.ones(2, 2),))
    assert xtensor.allclose(tangent, -primal @ xtensor.ones(2, 2) @ primal)
    made = linalg.inv(a.detach())
    made[0, 1] = 7.0
    assert made.mT[1, 0] == 7.0 and made.mT.reshape(-1).tolist()[2] == 7.0
    meta = linalg.qr(xtensor.empty(5, 3, device="meta"))
    assert [t.stride() for t in meta] == [(1, 5), (1, 3)]


def test_least_squares_take_batches_as_far_as_the_matrices_have_some(torch):
    a, b = np.ones((3, 4, 4), np.float32), np.ones((4, 2), np.float32)
    for lib in (torch, xtensor):
        with pytest.raises(
            RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(4\)"
        ):
            lib.linalg.lstsq(lib.tensor(a), lib.tensor(b))
