"""Reductions, pointwise functions, linear algebra, Fourier transforms."""

import xtensor
from xtensor import Tensor

x: Tensor = xtensor.rand(3, 4)
y = xtensor.exp(x) + x.log() - x.sin() * x.cos() ** 2 + abs(-x) + 1 / (x + 1)
y = y.clamp(min=0.0, max=1.0).round().sqrt().sigmoid().tanh().relu()
y = xtensor.where(x > 0.5, x, xtensor.zeros_like(x))
s: Tensor = (
    x.sum() + x.sum(dim=1, keepdim=True).mean() + x.mean((0, 1)) + x.prod() + x.std() + x.var(dim=0).norm()
)
best, where = x.max(dim=1)
small = x.min(dim=0)
print(small.values, small.indices, best.shape, where.dtype)
order = x.sort(dim=1, descending=True)
top = x.topk(2)
print(order.values, order.indices, top.values, x.argmax(dim=1), x.argsort(), x.cumsum(0), x.median())
m: Tensor = x @ x.t()
m = xtensor.matmul(x, x.mT) + xtensor.mm(x, x.t()) + xtensor.einsum("ij,kj->ik", x, x)
n = xtensor.bmm(x[None], x.t()[None])
u, sigma, v = xtensor.linalg.svd(x, full_matrices=False)
values, vectors = xtensor.linalg.eigh(m)
inverse = xtensor.linalg.inv(m + xtensor.eye(3)) @ xtensor.linalg.solve(m + xtensor.eye(3), x)
print(
    xtensor.linalg.norm(x),
    xtensor.linalg.det(m),
    xtensor.linalg.qr(x).Q,
    xtensor.linalg.cholesky(m + xtensor.eye(3)),
)
spectrum = xtensor.fft.rfft(x, dim=1)
back = xtensor.fft.irfft(spectrum, n=4, dim=1) + xtensor.fft.fftshift(x)
print(spectrum.abs(), spectrum.real, spectrum.imag, spectrum.angle(), spectrum.conj())
print(
    xtensor.special.erf(x),
    xtensor.special.gammaln(x + 1),
    xtensor.allclose(back, back),
    xtensor.isnan(x).any(),
)
print(
    x.gather(1, xtensor.zeros(3, 1, dtype=xtensor.int64)),
    xtensor.unique(x),
    x.flip(0).roll(1),
    x.diff(),
    x.histc(4),
)
print(
    x.scatter_reduce(1, xtensor.zeros(3, 4, dtype=xtensor.int64), x, "sum"),
    x.index_select(0, xtensor.tensor([0])),
)
print(
    x.masked_fill(x > 0.5, 0.0),
    x.triu(),
    x.diagonal(),
    xtensor.meshgrid(x[0], x[1], indexing="ij"),
    x.logsumexp(1),
)
