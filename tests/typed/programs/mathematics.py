"""Functions of elements, reductions, sorting, comparisons, special functions."""

import math

import xtensor
from xtensor import Tensor, special

xtensor.manual_seed(0)
x: Tensor = xtensor.rand(3, 4) * 0.8 + 0.1
z = xtensor.arange(1, 13).view(3, 4)
close = xtensor.allclose

# Functions of elements
y = xtensor.exp(x) + x.log() - x.sin() * x.cos() ** 2 + abs(-x) + 1 / (x + 1)
y = y.clamp(min=0.0, max=1.0).round().sqrt().sigmoid().tanh().relu()
y = xtensor.where(x > 0.5, x, xtensor.zeros_like(x))
pairs: list[tuple[Tensor, Tensor]] = [
    (x.sin().asin(), x.cos().acos()),
    (x.tan().atan(), x),
    (x.sinh().asinh(), (x + 1).cosh().acosh() - 1),
    (x.tanh().atanh(), xtensor.atan2(x.sin(), x.cos())),
    (x.expm1().log1p(), x.exp2().log2()),
    ((10**x).log10(), x.reciprocal().reciprocal()),
    (x.square().sqrt(), x.rsqrt().pow(-2)),
    (x.sigmoid().logit(), x.erf().erfinv()),
    (1 - x.erfc(), x.erf()),
    (x.rad2deg().deg2rad(), x.neg().negative()),
    (x.floor() + x.frac(), x.trunc() + x.fix() + x),
    (xtensor.ldexp(x, xtensor.tensor(2)) / 4, x.nan_to_num()),
    (xtensor.hypot(3 * x, 4 * x) / 5, x.positive()),
    (xtensor.logaddexp(x, x) - math.log(2), xtensor.logaddexp2(x, x) - 1),
    (xtensor.xlogy(x, x), x * x.log()),
    (xtensor.lerp(x, x + 1, 0.5) - 0.5, xtensor.addcmul(x, x, x, value=0)),
    (xtensor.addcdiv(x, x, x) - 1, x.copysign(-x).abs()),
    (xtensor.maximum(x, -x), -xtensor.minimum(x, -x)),
    (xtensor.fmax(x, -x), -xtensor.fmin(x, -x)),
    (xtensor.heaviside(x, x), x.sign() * x.sgn()),
    (xtensor.add(x, x, alpha=2), x.mul(3)),
    (xtensor.sub(x, x / 2), x.div(2)),
    (xtensor.float_power(x, 2).float(), x.pow(2)),
    (x.sinc(), (math.pi * x).sin() / (math.pi * x)),
    (x.digamma(), xtensor.polygamma(0, x)),
    (xtensor.mvlgamma(x + 1, 1), (x + 1).lgamma()),
    (xtensor.igamma(x, x), 1 - xtensor.igammac(x, x)),
    (xtensor.i0(x), x.i0()),
    (xtensor.fmod(7 * x, 2), xtensor.remainder(7 * x, 2)),
    (xtensor.ceil(x), x.floor_divide(1) + 1),
    (xtensor.true_divide(x, 2), xtensor.rsub(x, x * 1.5)),
    (xtensor.nextafter(x, x), xtensor.frexp(x)[0] * 2.0 ** xtensor.frexp(x)[1]),
]
for one, other in pairs:
    assert close(one, other, atol=1e-4), (one, other)
assert xtensor.gcd(z, z).equal(xtensor.lcm(z, z)) and (z.bitwise_and(1) | z.bitwise_xor(1)).all()
assert z.bitwise_left_shift(1).bitwise_right_shift(1).equal(z.bitwise_not().bitwise_not())
assert z.bitwise_or(0).equal(z) and x.signbit().logical_not().all() and x.isreal().all()
assert x.clamp_min(0.5).clamp_max(0.5).eq(0.5).all() and x.clip(0, 1).equal(x.abs().clone())

# Comparisons
assert x.ge(0).logical_and(x.le(1)).all() and x.gt(0).logical_or(x.lt(0)).all() and x.ne(2).any()
assert x.greater(0).logical_xor(x.less(0)).all() and x.isfinite().all() and not x.isnan().any()
assert not x.isinf().any() and not x.isposinf().any() and not x.isneginf().any() and x.isclose(x).all()

# Reductions
s: Tensor = (
    x.sum() + x.sum(dim=1, keepdim=True).mean() + x.mean((0, 1)) + x.prod() + x.std() + x.var(dim=0).norm()
)
best, where = x.max(dim=1)
small = x.min(dim=0)
assert close(x.amax(1), best) and close(x.amin(0), small.values) and close(xtensor.aminmax(x).max, x.max())
deviation, average = xtensor.std_mean(x)
variance, _ = xtensor.var_mean(x)
assert close(deviation**2, variance) and close(average, x.nanmean()) and close(x.nansum(), x.sum())
assert close(x.quantile(0.5), x.nanquantile(0.5)) and x.median() <= x.kthvalue(3, dim=1).values.max()
assert close(x.cumsum(1)[:, -1], x.sum(1)) and close(x.cumprod(1)[:, -1], x.prod(1))
assert close(x.logcumsumexp(1)[:, -1], x.logsumexp(1)) and close(x.cummax(1).values[:, -1], best)
assert close(x.cummin(1).values[:, -1], x.amin(1)) and x.nanmedian() == x.median()
assert z.mode(1).values.shape == z.argmin(1).shape == x.argmax(1).shape == best.shape == where.shape
assert close(xtensor.trapezoid(x), xtensor.cumulative_trapezoid(x)[:, -1]) and x.diff().shape == (3, 3)
assert close(xtensor.gradient(x.flatten())[0][0], x[0, 1] - x[0, 0]) and x.renorm(2, 0, 0.5).norm() < 1
assert close(xtensor.cdist(x, x, 1.0)[0, 1], xtensor.dist(x[0], x[1], 1)) and x.histc(4).sum() == 12
counts, edges = xtensor.histogram(x, 4)
assert counts.sum() == 12 and edges.shape == (5,) and xtensor.bincount(z[0]).sum() == 4

# Sorting
order = x.sort(dim=1, descending=True)
top = x.topk(2)
assert order.values[:, :2].equal(top.values) and order.indices[:, :2].equal(top.indices)
assert x.msort().equal(x.gather(0, x.argsort(0))) and x.flip(0).roll(1, 0)[0].equal(x[0])
assert xtensor.unique(z // 4).tolist() == xtensor.unique_consecutive(z // 4).tolist() == [0, 1, 2, 3]

# Special functions
u: Tensor = x[0]
same: list[tuple[Tensor, Tensor]] = [
    (special.ndtr(u), (1 + special.erf(u / math.sqrt(2))) / 2),
    (special.ndtri(special.ndtr(u)), special.log_ndtr(u).exp().logit() * 0 + u),
    (special.erfcx(u), (u * u).exp() * special.erfc(u)),
    (special.entr(u), -special.xlogy(u, u)),
    (special.i0e(u), special.i0(u) * (-u).exp()),
    (special.i1e(u), special.i1(u) * (-u).exp()),
    (special.bessel_j0(u), special.modified_bessel_i0(u) - u**2 / 2 - u**6 / 1152),
    (special.scaled_modified_bessel_k0(u), special.modified_bessel_k0(u) * u.exp()),
    (special.scaled_modified_bessel_k1(u), special.modified_bessel_k1(u) * u.exp()),
    (special.spherical_bessel_j0(u), u.sin() / u),
    (special.zeta(u + 2, xtensor.ones(4)), special.zeta(u + 2, 2 * xtensor.ones(4)) + 1),
    (special.xlog1py(u, u), u * special.log1p(u)),
    (special.gammaln(u + 1), special.gammaln(u) + u.log()),
    (special.digamma(u + 1), special.psi(u) + 1 / u),
    (special.chebyshev_polynomial_t(u, 2), 2 * u * u - 1),
    (special.chebyshev_polynomial_u(u, 2), 4 * u * u - 1),
    (special.hermite_polynomial_h(u, 2), 4 * u * u - 2),
    (special.hermite_polynomial_he(u, 2), u * u - 1),
    (special.laguerre_polynomial_l(u, 2), u * u / 2 - 2 * u + 1),
    (special.legendre_polynomial_p(u, 2), (3 * u * u - 1) / 2),
    (special.expit(u), special.softmax(xtensor.stack([u, 0 * u]), 0)[0]),
    (special.logsumexp(u, 0), u.exp().sum().log()),
]
for left, right in same:
    assert close(left, right, atol=1e-3), (left, right)
assert (special.bessel_j1(u) > special.bessel_y1(u)).all() and (
    special.airy_ai(u) > special.bessel_y0(u)
).all()
