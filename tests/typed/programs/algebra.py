"""Products, decompositions, systems, Fourier transforms, windows."""

import xtensor
from xtensor import Tensor, fft, linalg
from xtensor.signal import windows

xtensor.manual_seed(0)
x: Tensor = xtensor.rand(3, 4, dtype=xtensor.float64)
row, column = x[0], x[:, 0]


def close(a: Tensor, b: Tensor) -> bool:
    return xtensor.allclose(a, b, atol=1e-6)


# Products
m: Tensor = x @ x.t() + xtensor.eye(3, dtype=xtensor.float64)
product = x @ x.mT
assert close(xtensor.matmul(x, x.mT), product) and close(xtensor.mm(x, x.t()), product)
assert close(xtensor.einsum("ij,kj->ik", x, x), product) and close(xtensor.inner(x, x), product)
assert close(xtensor.bmm(x[None], x.t()[None])[0], product) and close(x.mv(row), x @ row)
assert close(xtensor.addmm(m, x, x.t()), m + product) and close(
    xtensor.addmv(column, x, row), column + x @ row
)
assert close(xtensor.addbmm(m, x[None], x.t()[None]), m + product)
assert close(xtensor.baddbmm(m[None], x[None], x.t()[None])[0], m + product)
assert close(xtensor.addr(x, column, row), x + column.outer(row)) and close(row.dot(row), row.vdot(row))
assert close(xtensor.tensordot(x, x, dims=([1], [1])), product) and close(column.ger(row), column.outer(row))
assert xtensor.kron(x, x).shape == (9, 16)
assert close(m.matrix_power(2), m @ m) and close(linalg.multi_dot([x, x.t(), x]), product @ x)
assert close(linalg.vecdot(x, x), (x * x).sum(1)) and xtensor.matrix_exp(0 * m).trace() == 3
assert close(linalg.cross(m, m), 0 * m) and close(xtensor.cross(m, m, dim=1), 0 * m)

# Systems and decompositions
u, sigma, v = linalg.svd(x, full_matrices=False)
values, vectors = linalg.eigh(m)
assert close(u * sigma @ v, x) and close(linalg.svdvals(x), sigma) and close(vectors * values @ vectors.mT, m)
assert close(linalg.eigvalsh(m), values) and close(linalg.eigvals(m).real.sum(), m.trace())
assert close(linalg.eig(m).eigenvalues.imag, 0 * values) and linalg.qr(x).Q.shape == (3, 3)
inverse = linalg.inv(m)
factor = linalg.cholesky(m)
assert close(inverse @ linalg.solve(m, x), inverse @ inverse @ x) and close(linalg.pinv(m), inverse)
assert (
    close(linalg.inv_ex(m).inverse, inverse) and close(m.inverse(), inverse) and close(m.pinverse(), inverse)
)
assert close(factor @ factor.mT, m) and close(linalg.cholesky_ex(m).L, factor)
assert close(xtensor.cholesky_inverse(factor), inverse) and close(
    xtensor.cholesky_solve(x, factor), inverse @ x
)
assert close(linalg.solve_triangular(factor, x, upper=False), linalg.inv(factor) @ x)
p, lower, upper = linalg.lu(m)
packed, pivots = linalg.lu_factor(m)
assert close(p @ lower @ upper, m) and close(linalg.lu_solve(packed, pivots, x), inverse @ x)
ld, places = linalg.ldl_factor(m)
assert close(linalg.ldl_solve(ld, places, x), inverse @ x)
assert close(linalg.lstsq(m, x).solution, inverse @ x) and linalg.matrix_rank(m) == 3 == m.ndim + 1
assert close(linalg.det(m), m.det()) and close(m.logdet(), linalg.slogdet(m).logabsdet)
assert close(linalg.norm(x), linalg.vector_norm(x)) and close(linalg.matrix_norm(x), x.norm())
assert linalg.cond(m) > 1 and close(linalg.diagonal(m), m.diag()) and linalg.vander(row).shape == (4, 4)
assert linalg.tensorinv(m.view(3, 3), ind=1).shape == (3, 3) and linalg.tensorsolve(m, column).shape == (3,)
reflectors, tau = xtensor.geqrf(m)
assert linalg.householder_product(reflectors, tau).shape == (3, 3)
assert xtensor.svd_lowrank(x, q=2)[1].shape == xtensor.pca_lowrank(x, q=2)[1].shape == (2,)
try:
    linalg.inv(0 * m)
except xtensor.linalg.LinAlgError as error:
    print(error)

# Fourier transforms
spectrum = fft.rfft(x, dim=1)
back = fft.irfft(spectrum, n=4, dim=1)
assert close(back, x) and close(fft.fftshift(fft.ifftshift(x)), x)
assert close(fft.ifft(fft.fft(x)).real, x) and close(fft.ifft2(fft.fft2(x)).real, x)
assert close(fft.ifftn(fft.fftn(x)).real, x) and close(fft.irfft2(fft.rfft2(x)), x)
assert close(fft.irfftn(fft.rfftn(x)), x) and close(fft.hfft(fft.ihfft(x), n=4), x)
assert fft.fftfreq(4).abs().max() == 0.5 == fft.rfftfreq(4).max()
print(
    spectrum.abs(), spectrum.real, spectrum.imag, spectrum.angle(), spectrum.conj(), spectrum.conj_physical()
)
sound = xtensor.sin(xtensor.arange(32) / 2.0)
window = windows.hann(8, sym=False)
frames = xtensor.stft(sound, 8, hop_length=4, window=window, return_complex=True)
assert xtensor.allclose(xtensor.istft(frames, 8, hop_length=4, window=window, length=32), sound, atol=1e-4)

# Windows
assert xtensor.allclose(xtensor.hann_window(8), window) and windows.hamming(8).max() < 1
for shape in (windows.bartlett, windows.blackman, windows.cosine, windows.nuttall, windows.exponential):
    assert shape(8).shape == (8,)
assert windows.gaussian(8, std=2.0).argmax() in (3, 4) and windows.kaiser(8, beta=3.0).shape == (8,)
assert windows.general_cosine(8, a=[0.5, 0.5]).shape == windows.general_hamming(8).shape
assert xtensor.bartlett_window(4).shape == xtensor.blackman_window(4).shape == xtensor.kaiser_window(4).shape
assert xtensor.hamming_window(4).shape == (4,)
