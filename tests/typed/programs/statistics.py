"""Distributions, windows, masked and sparse tensors, the array API."""

import xtensor
from xtensor import Tensor
from xtensor.distributions import Bernoulli, Categorical, Normal, kl_divergence

normal = Normal(xtensor.zeros(2), xtensor.ones(2))
sample: Tensor = normal.rsample((3,))
print(normal.log_prob(sample), normal.entropy(), normal.mean, kl_divergence(normal, Normal(0.0, 1.0)))
print(Categorical(probs=xtensor.ones(3) / 3).sample(), Bernoulli(0.5).sample((2,)))
print(xtensor.signal.windows.hann(4), xtensor.masked.mean(sample, dim=0, mask=sample > 0))
sparse = xtensor.eye(3).to_sparse()
print(sparse.indices(), sparse.values(), sparse.to_dense(), xtensor.sparse.mm(sparse, xtensor.eye(3)))
print(
    xtensor.multinomial(xtensor.ones(4), 2),
    xtensor.bernoulli(xtensor.rand(3)),
    xtensor.normal(0.0, 1.0, (2,)),
)
print(
    xtensor.quantile(sample, 0.5), xtensor.histc(sample, 4), xtensor.cov(sample), xtensor.corrcoef(sample.t())
)
xp = xtensor.array_api
a = xp.asarray([1.0, 2.0])
print(xp.sum(a), xp.linalg.vector_norm(a), a.shape)
xtensor.testing.assert_close(sample, sample)
