"""Distributions and their transforms, random numbers, masked and sparse tensors, the array API."""

import xtensor
from xtensor import Tensor, masked, sparse
from xtensor import distributions as D
from xtensor.distributions import Bernoulli, Categorical, Normal, kl_divergence
from xtensor.distributions import transforms as T

xtensor.manual_seed(0)
one, two = xtensor.ones(2), 2 * xtensor.ones(2)

# Distributions
normal = Normal(xtensor.zeros(2), one)
sample: Tensor = normal.rsample((3,))
print(normal.log_prob(sample), normal.entropy(), normal.mean, kl_divergence(normal, Normal(0.0, 1.0)))
print(Categorical(probs=xtensor.ones(3) / 3).sample(), Bernoulli(0.5).sample((2,)))
continuous: list[D.Distribution] = [
    D.Uniform(0 * one, one),
    D.Exponential(one),
    D.Laplace(one, one),
    D.Gamma(one, one),
    D.Beta(one, one),
    D.Cauchy(one, one),
    D.Gumbel(one, one),
    D.HalfNormal(one),
    D.LogNormal(one, one),
    D.StudentT(two),
    D.Weibull(one, one),
    D.Pareto(one, two),
    D.Chi2(two),
    D.Kumaraswamy(one, one),
]
discrete: list[D.Distribution] = [
    D.Poisson(two),
    D.Geometric(one / 2),
    D.Binomial(3, one / 2),
    D.NegativeBinomial(two, one / 2),
]
joint: list[D.Distribution] = [
    D.Dirichlet(one),
    D.Multinomial(3, one / 2),
    D.OneHotCategorical(one / 2),
    D.MultivariateNormal(one, xtensor.eye(2)),
    D.Independent(normal, 1),
    D.MixtureSameFamily(Categorical(one), normal),
]
for distribution in continuous + discrete:
    drawn: Tensor = distribution.sample()
    assert distribution.log_prob(drawn).shape == (2,) and distribution.batch_shape == (2,)
for distribution in joint:
    assert distribution.log_prob(distribution.sample()).shape == ()

# Transforms
u = sample.abs().clamp(0.1, 0.9)
for transform in (
    T.AffineTransform(1.0, 2.0),
    T.ExpTransform(),
    T.PowerTransform(xtensor.tensor(2.0)),
    T.SigmoidTransform(),
    T.TanhTransform(),
    T.ComposeTransform([T.ExpTransform(), T.AffineTransform(0.0, 2.0)]),
):
    assert xtensor.allclose(transform.inv(transform(u)), u, atol=1e-3)
assert D.TransformedDistribution(normal, [T.ExpTransform()]).sample().min() > 0
assert D.biject_to(D.constraints.positive)(u).min() > 0 and D.transform_to(D.constraints.simplex)(u).sum() > 2

# Random numbers
weights = xtensor.ones(4)
print(xtensor.multinomial(weights, 2), xtensor.bernoulli(xtensor.rand(3)), xtensor.normal(0.0, 1.0, (2,)))
assert xtensor.poisson(weights).min() >= 0 and xtensor.binomial(2 * weights, weights / 2).max() <= 2
with xtensor.random.fork_rng():
    xtensor.seed()
print(xtensor.quantile(sample, 0.5), xtensor.histc(sample, 4), xtensor.corrcoef(sample.t()))
assert xtensor.cov(sample.t()).shape == (2, 2)

# Masked tensors
mask = sample > 0
assert masked.mean(sample, dim=0, mask=mask).shape == masked.sum(sample, 0, mask=mask).shape == (2,)
assert masked.amax(sample, 0, mask=mask).shape == masked.amin(sample, 0, mask=mask).shape == (2,)
assert masked.prod(sample, 0, mask=mask).shape == masked.var(sample, 0, mask=mask).shape == (2,)
assert masked.softmax(sample, 0, mask=mask).shape == masked.cumsum(sample, 0, mask=mask).shape == (3, 2)
held = masked.masked_tensor(sample, mask)
assert masked.is_masked_tensor(held) and isinstance(held, masked.MaskedTensor)

# Sparse tensors
eye = xtensor.eye(3)
few = eye.to_sparse()
assert few.coalesce().is_coalesced() and (few.sparse_dim(), few.dense_dim()) == (2, 0)
assert few.indices().shape == (2, 3) and few.values().sum() == 3 and few.to_dense().equal(eye)
assert sparse.mm(few, eye).equal(eye) and sparse.sum(few) == 3 and few.is_sparse
rows = eye.to_sparse_csr()
assert rows.crow_indices().tolist() == [0, 1, 2, 3] and rows.col_indices().tolist() == [0, 1, 2]
assert xtensor.sparse_coo_tensor(few.indices(), few.values(), (3, 3)).to_dense().equal(eye)
assert xtensor.sparse_csr_tensor(rows.crow_indices(), rows.col_indices(), rows.values()).to_dense().equal(eye)
assert sparse.addmm(eye, few, eye).equal(2 * eye) and sparse.softmax(few, 0).to_dense().equal(eye)
assert (
    eye.to_sparse_csc().ccol_indices().equal(rows.crow_indices()) and eye.sparse_mask(few).values().sum() == 3
)

# The array API
xp = xtensor.array_api
a = xp.asarray([1.0, 2.0])
print(xp.sum(a), xp.linalg.vector_norm(a), a.shape)
xtensor.testing.assert_close(sample, sample)
assert xtensor.testing.make_tensor((2, 3), dtype=xtensor.float32, device="cpu").shape == (2, 3)
