"""Every sampler against its distribution: mean and variance within five standard errors, and no value outside.

The seed is fixed, so nothing here is left to chance; the number of samples is chosen so that errors of half a percent in a
variance show.
"""

import math
import zlib

import numpy as np
import pytest

import xtensor

stats = pytest.importorskip("scipy.stats")
COUNT = 200_000
ERRORS = 5.0


def agree(found, law):
    """Mean and variance of a sample, in standard errors."""
    values = np.asarray(found.to(xtensor.float64).numpy()).reshape(-1)
    mean, variance, _, kurtosis = (float(m) for m in law.stats("mvsk"))
    if variance == 0:
        assert (values == mean).all()
        return
    count = len(values)
    assert abs(values.mean() - mean) < ERRORS * math.sqrt(variance / count)
    error = math.sqrt((kurtosis + 2) * variance**2 / count)
    # Of a fair coin every square is the variance: there is no error.
    assert abs(((values - mean) ** 2).mean() - variance) < ERRORS * error + 1e-9 * variance
    low, high = law.support()
    assert values.min() >= low * (1 - 1e-2 * np.sign(low)) and values.max() <= high * (
        1 + 1e-2 * np.sign(high)
    )


def filled(dtype="float32", count=COUNT):
    return xtensor.zeros(count, dtype=getattr(xtensor, dtype))


def constant(value, dtype):
    return xtensor.full((COUNT,), value, dtype=getattr(xtensor, dtype))


def rounded(value, dtype):
    """A parameter as a tensor of the dtype holds it."""
    return float(xtensor.tensor(value, dtype=getattr(xtensor, dtype)))


FLOATS = ("float16", "bfloat16", "float32", "float64")
WIDE = ("float32", "float64")
CASES = {}


def case(name, dtypes, draw, law):
    for dtype in dtypes:
        CASES[f"{name}-{dtype}"] = (draw, law, dtype)


case("rand", FLOATS, lambda d: xtensor.rand(COUNT, dtype=getattr(xtensor, d)), lambda d: stats.uniform())
case("randn", FLOATS, lambda d: xtensor.randn(COUNT, dtype=getattr(xtensor, d)), lambda d: stats.norm())
for m, s in ((0, 1), (0, 1e-3), (0, 100), (10, 3), (-5, 0.5)):
    case(
        f"normal_({m}, {s})",
        FLOATS if m in (0, 10) else WIDE,
        lambda d, m=m, s=s: filled(d).normal_(m, s),
        lambda d, m=m, s=s: stats.norm(m, s),
    )
    case(
        f"normal({m}, {s})",
        FLOATS if m == 10 else WIDE,
        lambda d, m=m, s=s: xtensor.normal(constant(m, d), constant(s, d)),
        lambda d, m=m, s=s: stats.norm(m, rounded(s, d)),
    )
for low, high in ((0, 1), (-1, 1), (0, 1e-3), (100, 200), (-1000, 3000)):
    case(
        f"uniform_({low}, {high})",
        FLOATS,
        lambda d, low=low, high=high: filled(d).uniform_(low, high),
        lambda d, low=low, high=high: stats.uniform(low, high - low),
    )
for rate in (1e-2, 0.5, 1, 10, 1000):
    case(
        f"exponential_({rate})",
        FLOATS if rate == 0.5 else WIDE,
        lambda d, rate=rate: filled(d).exponential_(rate),
        lambda d, rate=rate: stats.expon(scale=1 / rate),
    )
for m, s in ((0, 0.25), (1, 0.5), (-2, 0.1), (3, 0.01)):
    case(
        f"log_normal_({m}, {s})",
        FLOATS if m == 1 else WIDE,
        lambda d, m=m, s=s: filled(d).log_normal_(m, s),
        lambda d, m=m, s=s: stats.lognorm(s, scale=math.exp(m)),
    )
for p in (0.999, 0.5, 0.1, 1e-2, 1e-4, 1e-6, 1e-8):
    case(
        f"geometric_({p})",
        ("float32", "float64", "int64"),
        lambda d, p=p: filled(d).geometric_(p),
        lambda d, p=p: stats.geom(p),
    )
for p in (1e-3, 0.1, 0.5, 0.9, 0.999):
    case(
        f"bernoulli_({p})",
        (*FLOATS, "int64") if p == 0.1 else WIDE,
        lambda d, p=p: filled(d).bernoulli_(p),
        lambda d, p=p: stats.bernoulli(p),
    )
    case(
        f"bernoulli({p})",
        FLOATS if p == 0.1 else WIDE,
        lambda d, p=p: constant(p, d).bernoulli(),
        lambda d, p=p: stats.bernoulli(rounded(p, d)),
    )
for rate in (1e-2, 0.5, 3, 9.9, 10.1, 30, 1000, 1e5, 1e6, 1e8, 1e12, 1e16):
    case(
        f"poisson({rate})",
        FLOATS if rate == 30 else WIDE if rate <= 1e6 else ("float64",),
        lambda d, rate=rate: xtensor.poisson(constant(rate, d)),
        lambda d, rate=rate: stats.poisson(rounded(rate, d)),
    )
for n, p in ((1, 0.5), (10, 0.1), (20, 0.5), (40, 0.26), (100, 0.01), (100, 0.95)):
    case(
        f"binomial({n}, {p})",
        FLOATS if n == 20 else WIDE,
        lambda d, n=n, p=p: xtensor.binomial(constant(n, d), constant(p, d)),
        lambda d, n=n, p=p: stats.binom(n, rounded(p, d)),
    )
for n, p in ((10**4, 0.02), (10**6, 1e-3), (10**6, 0.7), (10**9, 0.5), (10**12, 1e-11), (10**15, 0.5)):
    case(
        f"binomial({n}, {p})",
        ("float64",),
        lambda d, n=n, p=p: xtensor.binomial(constant(n, d), constant(p, d)),
        lambda d, n=n, p=p: stats.binom(n, p),
    )
for a in (0.1, 0.5, 1, 3, 100, 1e4, 1e6):
    case(
        f"Gamma({a})",
        ("float32", "float64"),
        lambda d, a=a: xtensor.distributions.Gamma(constant(a, d), constant(2, d)).rsample(),
        lambda d, a=a: stats.gamma(rounded(a, d), scale=0.5),
    )
for a, b in ((1e-2, 1e-2), (0.2, 0.3), (1, 1), (2, 5), (1e4, 1e5)):
    case(
        f"Beta({a}, {b})",
        ("float32", "float64"),
        lambda d, a=a, b=b: xtensor.distributions.Beta(constant(a, d), constant(b, d)).rsample(),
        lambda d, a=a, b=b: stats.beta(a, b),
    )
for p in (1e-3, 0.1, 0.5, 0.9):
    case(
        f"dropout({p})",
        (*WIDE, "bfloat16"),
        lambda d, p=p: xtensor.nn.functional.dropout(constant(1, d), p) != 0,
        lambda d, p=p: stats.bernoulli(1 - p),
    )
DISTRIBUTIONS = {
    "Normal": (lambda D: D.Normal(3.0, 20.0), stats.norm(3, 20)),
    "Uniform": (lambda D: D.Uniform(-3.0, 1.0), stats.uniform(-3, 4)),
    "Exponential": (lambda D: D.Exponential(0.01), stats.expon(scale=100)),
    "Laplace": (lambda D: D.Laplace(1.0, 5.0), stats.laplace(1, 5)),
    "LogNormal": (lambda D: D.LogNormal(0.5, 0.4), stats.lognorm(0.4, scale=math.exp(0.5))),
    "Gumbel": (lambda D: D.Gumbel(1.0, 2.0), stats.gumbel_r(1, 2)),
    "Weibull": (lambda D: D.Weibull(2.0, 3.0), stats.weibull_min(3, scale=2)),
    "HalfNormal": (lambda D: D.HalfNormal(2.0), stats.halfnorm(scale=2)),
    "Chi2": (lambda D: D.Chi2(0.5), stats.chi2(0.5)),
    "Chi2 of many": (lambda D: D.Chi2(1000.0), stats.chi2(1000)),
    "StudentT": (lambda D: D.StudentT(10.0, 1.0, 2.0), stats.t(10, 1, 2)),
    "Kumaraswamy": (lambda D: D.Kumaraswamy(1.0, 3.0), stats.beta(1, 3)),
    "Pareto": (lambda D: D.Pareto(2.0, 9.0), stats.pareto(9, scale=2)),
    "VonMises": (lambda D: D.VonMises(0.0, 4.0), stats.vonmises(4)),
    "Geometric": (lambda D: D.Geometric(0.05), stats.geom(0.05, loc=-1)),
    "NegativeBinomial": (lambda D: D.NegativeBinomial(5.0, 0.7), stats.nbinom(5, 0.3)),
    "Binomial": (lambda D: D.Binomial(1000, xtensor.tensor(0.3)), stats.binom(1000, 0.3)),
    "Poisson": (lambda D: D.Poisson(1e6), stats.poisson(1e6)),
    "FisherSnedecor": (lambda D: D.FisherSnedecor(5.0, 20.0), stats.f(5, 20)),
}
for name, (make, law) in DISTRIBUTIONS.items():
    case(
        name,
        ("float32",),
        lambda d, make=make: make(xtensor.distributions).sample((COUNT,)),
        lambda d, law=law: law,
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.one_in(3)
def test_moments(name):
    draw, law, dtype = CASES[name]
    xtensor.manual_seed(zlib.crc32(name.encode()))
    agree(draw(dtype), law(dtype))


@pytest.mark.parametrize("rate", (0.7, 5.0, 9.99, 10.0, 10.5, 14.0, 50.0))
def test_counts_of_poisson(rate):
    xtensor.manual_seed(3)
    values = xtensor.poisson(xtensor.full((COUNT,), rate, dtype=xtensor.float64)).numpy().astype(int)
    law = stats.poisson(rate)
    least, most = int(law.ppf(1e-4)), int(law.ppf(1 - 1e-4))
    expected = COUNT * law.pmf(np.arange(least, most + 1))
    seen = np.bincount(values, minlength=most + 1)[least : most + 1]
    square = ((seen - expected) ** 2 / expected).sum()
    assert square < len(expected) + ERRORS * math.sqrt(2 * len(expected))


def test_poisson_at_the_ends():
    rates = xtensor.tensor([0.0, math.inf, 1e20, 5e-324], dtype=xtensor.float64)
    found = xtensor.poisson(rates).tolist()
    assert found[0] == 0 and found[1] == math.inf and found[2] == pytest.approx(1e20) and found[3] == 0


def test_a_rare_event_is_as_rare_as_asked():
    xtensor.manual_seed(1)
    # A float's 24 bits would make it 60 times as frequent: 7 of 120 million.
    count, rounds = 4_000_000, 30
    assert sum(float(xtensor.empty(count).bernoulli_(1e-9).sum()) for _ in range(rounds)) <= 2
    frequent = float(xtensor.empty(count).bernoulli_(1e-5).sum())
    assert abs(frequent - count * 1e-5) < ERRORS * math.sqrt(count * 1e-5)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32"))
def test_uniform_numbers_stay_below_the_bound(dtype):
    for low, high in ((0, 1), (1, 1.0078125), (-2, -1), (-512, 512)):
        found = filled(dtype).uniform_(low, high).double()
        assert found.min() >= low and found.max() < high
    assert (filled(dtype).uniform_(2, 2) == 2).all()


@pytest.mark.parametrize(
    ("low", "high"),
    ((0, 2), (-5, 10), (-3, 1000), (0, 2**31), (0, 2**33), (-(2**62), 2**62), (-(2**63), 2**63 - 1)),
)
def test_randint(low, high):
    xtensor.manual_seed(2)
    values = xtensor.randint(low, high, (COUNT,)).numpy().astype(np.float64)
    width = float(high - low)
    mean, variance = (float(low) + float(high) - 1) / 2, (width**2 - 1) / 12
    fourth = (width**2 - 1) * (3 * width**2 - 7) / 240
    assert values.min() >= low and values.max() <= high - 1
    assert abs(values.mean() - mean) < ERRORS * math.sqrt(variance / COUNT)
    error = math.sqrt(max(fourth - variance**2, 0) / COUNT)
    # Of two values the variance follows from the mean: its error is the mean's, squared.
    assert abs(((values - mean) ** 2).mean() - variance) <= ERRORS * error + 1e-9


def test_permutations_are_equally_likely():
    xtensor.manual_seed(4)
    orders = [tuple(xtensor.randperm(4).tolist()) for _ in range(4800)]
    seen = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(seen) == 24 and ((seen - 200) ** 2 / 200).sum() < 23 + ERRORS * math.sqrt(46)


@pytest.mark.parametrize("dtype", ("complex64", "complex128"))
def test_complex_numbers(dtype):
    xtensor.manual_seed(5)
    values = xtensor.randn(COUNT, dtype=getattr(xtensor, dtype))
    for part in (values.real, values.imag):
        agree(part, stats.norm(0, math.sqrt(0.5)))
    together = float((values.real * values.imag).double().mean())
    assert abs(together) < ERRORS * 0.5 / math.sqrt(COUNT)
    values = xtensor.rand(COUNT, dtype=getattr(xtensor, dtype))
    for part in (values.real, values.imag):
        agree(part, stats.uniform())


@pytest.mark.parametrize("replacement", (False, True))
def test_multinomial(replacement):
    xtensor.manual_seed(6)
    weights = np.array([0.1, 0.2, 0.0, 0.3, 0.4])
    rows = xtensor.tensor(weights).expand(20000, 5)
    found = xtensor.multinomial(rows, 3, replacement).numpy()
    seen = np.bincount((found if replacement else found[:, :1]).reshape(-1), minlength=5)
    expected = seen.sum() * weights
    assert seen[2] == 0
    assert (np.abs(seen - expected) <= ERRORS * np.sqrt(expected * (1 - weights))).all()


def test_cauchy():
    xtensor.manual_seed(7)
    values = filled("float64").cauchy_(2, 3).numpy()
    law = stats.cauchy(2, 3)
    for q in (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99):
        share = (values < law.ppf(q)).mean()
        assert abs(share - q) < ERRORS * math.sqrt(q * (1 - q) / COUNT)


@pytest.mark.parametrize("scale", (1e-2, 1.0, 1e3))
def test_dirichlet(scale):
    xtensor.manual_seed(8)
    shape = [0.5 * scale, scale, 3 * scale]
    found = xtensor.distributions.Dirichlet(xtensor.tensor(shape)).rsample((COUNT,))
    assert float((found.sum(-1) - 1).abs().max()) < 1e-5
    for i, a in enumerate(shape):
        agree(found[:, i], stats.beta(a, sum(shape) - a))
