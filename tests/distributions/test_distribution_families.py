"""The families beyond the common ones, transforms, registries and their divergences, as PyTorch's."""

import numpy as np
import pytest

import xtensor

FAMILIES = {
    "Gamma": (lambda t, d: d.Gamma(t.tensor([0.5, 2.0]), t.tensor([1.5, 0.7])), [0.3, 0.7]),
    "Chi2": (lambda t, d: d.Chi2(t.tensor([3.0, 5.0])), [0.3, 0.7]),
    "InverseGamma": (lambda t, d: d.InverseGamma(t.tensor([3.0, 1.5]), t.tensor([1.0, 2.0])), [0.3, 0.7]),
    "Dirichlet": (lambda t, d: d.Dirichlet(t.tensor([[1.0, 2.0, 3.0], [0.5, 0.6, 0.7]])), [0.2, 0.3, 0.5]),
    "Beta": (lambda t, d: d.Beta(t.tensor([2.0, 0.5]), t.tensor([3.0, 0.4])), [0.3, 0.7]),
    "StudentT": (lambda t, d: d.StudentT(t.tensor([3.0, 5.0]), 1.0, 2.0), [0.3, 0.7]),
    "FisherSnedecor": (lambda t, d: d.FisherSnedecor(t.tensor([3.0, 5.0]), t.tensor([5.0, 6.0])), [0.3, 0.7]),
    "HalfCauchy": (lambda t, d: d.HalfCauchy(t.tensor([3.0, 5.0])), [0.3, 0.7]),
    "Binomial": (lambda t, d: d.Binomial(5, t.tensor([0.3, 0.6])), [1.0, 4.0]),
    "NegativeBinomial": (
        lambda t, d: d.NegativeBinomial(t.tensor([3.0, 5.0]), t.tensor([0.3, 0.6])),
        [1.0, 4.0],
    ),
    "Multinomial": (lambda t, d: d.Multinomial(4, t.tensor([0.3, 0.6, 0.1])), [1.0, 2.0, 1.0]),
    "StraightThrough": (lambda t, d: d.OneHotCategoricalStraightThrough(t.tensor([0.3, 0.7])), [0.0, 1.0]),
    "Kumaraswamy": (lambda t, d: d.Kumaraswamy(t.tensor([2.0, 1.5]), t.tensor([3.0, 1.4])), [0.3, 0.7]),
    "Pareto": (lambda t, d: d.Pareto(t.tensor([1.0, 2.0]), t.tensor([3.0, 2.5])), [1.3, 2.7]),
    "Weibull": (lambda t, d: d.Weibull(t.tensor([1.0, 2.0]), t.tensor([3.0, 2.5])), [1.3, 2.7]),
    "LogisticNormal": (
        lambda t, d: d.LogisticNormal(t.tensor([1.0, 2.0]), t.tensor([3.0, 2.5])),
        [0.2, 0.3, 0.5],
    ),
    "RelaxedBernoulli": (lambda t, d: d.RelaxedBernoulli(t.tensor(0.7), t.tensor([0.3, 0.6])), [0.2, 0.8]),
    "RelaxedOneHot": (
        lambda t, d: d.RelaxedOneHotCategorical(t.tensor(0.7), t.tensor([0.3, 0.6, 0.1])),
        [0.2, 0.3, 0.5],
    ),
    "Mixture": (
        lambda t, d: d.MixtureSameFamily(
            d.Categorical(t.tensor([0.3, 0.7])), d.Normal(t.tensor([0.0, 1.0]), t.tensor([1.0, 2.0]))
        ),
        0.4,
    ),
    "VonMises": (lambda t, d: d.VonMises(t.tensor([0.0, 1.0]), t.tensor([1.0, 4.0])), [0.4, 0.5]),
    "ContinuousBernoulli": (lambda t, d: d.ContinuousBernoulli(t.tensor([0.2, 0.5, 0.9])), [0.4, 0.5, 0.1]),
    "GeneralizedPareto": (
        lambda t, d: d.GeneralizedPareto(t.tensor([0.0, 1.0]), t.tensor([1.0, 4.0]), t.tensor([0.1, 0.4])),
        [0.4, 1.5],
    ),
    "LowRank": (
        lambda t, d: d.LowRankMultivariateNormal(t.zeros(3), t.tensor([[1.0], [0.5], [0.2]]), t.ones(3)),
        [0.4, 0.5, 1.0],
    ),
    "Wishart": (
        lambda t, d: d.Wishart(t.tensor(4.0), t.tensor([[2.0, 0.3], [0.3, 1.0]])),
        [[1.0, 0.2], [0.2, 2.0]],
    ),
    "LKJ": (lambda t, d: d.LKJCholesky(3, 1.5), [[1.0, 0, 0], [0.6, 0.8, 0], [0.0, 0.6, 0.8]]),
    "Transformed": (
        lambda t, d: d.TransformedDistribution(
            d.Normal(t.tensor([0.0, 1.0]), 1.0), [d.TanhTransform(), d.AffineTransform(1.0, -2.0)]
        ),
        [0.4, 0.5],
    ),
    "StickBreaking": (
        lambda t, d: d.TransformedDistribution(
            d.Independent(d.Normal(t.zeros(3), 1.0), 1), [d.StickBreakingTransform()]
        ),
        [0.4, 0.1, 0.2, 0.3],
    ),
}
# Of the sampled run: each family compiles some dozen programs.
SAMPLE = ("Gamma", "Dirichlet", "Beta", "Binomial", "Mixture", "Transformed")
ASKED = ("mean", "variance", "mode", "entropy", "log_prob", "cdf", "icdf", "support", "shapes")


def answer(t, made, asked, value):
    """What a distribution says of one question; None where it has no answer."""
    try:
        if asked in ("log_prob", "cdf", "icdf"):
            return getattr(made, asked)(t.tensor(value)).flatten().tolist()
        if asked == "support":
            return repr(made.support)
        if asked == "shapes":
            drawn = made.sample((3,))
            wider = made.expand((2, *made.batch_shape)).log_prob(t.tensor(value))
            return [tuple(s) for s in (made.batch_shape, made.event_shape, drawn.shape, wider.shape)]
        found = made.entropy() if asked == "entropy" else getattr(made, asked)
        return found.flatten().tolist()
    except NotImplementedError:
        return None
    except (ValueError, RuntimeError):
        return "refused"


@pytest.mark.filterwarnings("ignore:Singular sample:UserWarning")
@pytest.mark.parametrize(
    "name", [n if n in SAMPLE else pytest.param(n, marks=pytest.mark.full) for n in FAMILIES]
)
def test_formulas_are_pytorch_s(torch, name):
    make, value = FAMILIES[name]
    ours, theirs = make(xtensor, xtensor.distributions), make(torch, torch.distributions)
    for asked in ASKED:
        expected = answer(torch, theirs, asked, value)
        if expected is None or expected == "refused":
            continue
        found = answer(xtensor, ours, asked, value)
        same = asked in ("support", "shapes") or found is None
        assert found == (expected if same else pytest.approx(expected, rel=2e-4, abs=2e-5, nan_ok=True)), (
            asked
        )


@pytest.mark.parametrize(
    "name",
    ["Gamma", "Dirichlet", "Beta"]
    + [
        pytest.param(n, marks=pytest.mark.full)
        for n in ("StudentT", "Weibull", "Binomial", "VonMises", "LKJ")
    ],
)
def test_samples_have_the_moments(name):
    xtensor.manual_seed(0)
    make, _ = FAMILIES[name]
    made = make(xtensor, xtensor.distributions)
    drawn = made.sample((4000,))
    assert made.support.check(drawn).all()
    if name == "LKJ":
        return
    mean = drawn.sin().mean(0).atan2(drawn.cos().mean(0)) if name == "VonMises" else drawn.mean(0)
    deviation = made.variance.sqrt()
    assert ((mean - made.mean).abs() < 8 * deviation / 4000**0.5).all()


def test_samples_follow_their_shape_with_a_gradient():
    """d/da E[x] of a Gamma(a, 1) variable is 1, of its mean's estimate nearly."""
    xtensor.manual_seed(0)
    shape = xtensor.tensor([0.5, 3.0], requires_grad=True)
    xtensor.distributions.Gamma(shape, 1.0).rsample((8000,)).mean(0).sum().backward()
    assert shape.grad.tolist() == pytest.approx([1.0, 1.0], abs=0.1)


def test_divergences_are_pytorch_s(torch):
    def found(t):
        d = t.distributions
        pairs = [
            (d.Beta(2.0, 3.0), d.Beta(1.5, 2.5)),
            (d.Dirichlet(t.tensor([1.0, 2.0])), d.Dirichlet(t.tensor([2.0, 1.0]))),
            (d.Gamma(0.5, 1.5), d.Gamma(2.0, 0.7)),
            (d.Exponential(1.3), d.Gamma(2.0, 0.7)),
            (d.Gamma(2.0, 0.7), d.Normal(0.0, 1.0)),
            (d.Binomial(5, t.tensor(0.3)), d.Binomial(5, t.tensor(0.2))),
            (d.Geometric(0.3), d.Geometric(0.6)),
            (d.Cauchy(0.0, 1.0), d.Cauchy(1.0, 2.0)),
            (d.Gumbel(0.0, 1.0), d.Gumbel(0.5, 2.0)),
            (d.Normal(0.1, 1.5), d.Laplace(0.0, 1.0)),
            (d.Normal(0.1, 1.5), d.Gumbel(0.0, 1.0)),
            (d.Normal(0.1, 1.5), d.Uniform(0.0, 1.0)),
            (d.LogNormal(0.0, 1.0), d.LogNormal(1.0, 2.0)),
            (d.Pareto(1.0, 2.0), d.Pareto(0.5, 3.0)),
        ]
        return [d.kl_divergence(p, q).item() for p, q in pairs]

    assert found(xtensor) == pytest.approx(found(torch), rel=1e-4)


def test_transforms_are_pytorch_s(torch):
    def found(t):
        d = t.distributions
        x = t.tensor([[0.3, -0.5, 1.0]])
        made = [
            *(d.ExpTransform(), d.SigmoidTransform(), d.SoftplusTransform(), d.TanhTransform()),
            *(d.AffineTransform(1.0, t.tensor([2.0, -1.0, 0.5])), d.StickBreakingTransform()),
            *(d.CorrCholeskyTransform(), d.ReshapeTransform((3,), (3, 1))),
            d.ComposeTransform([d.AffineTransform(0.0, 2.0), d.ExpTransform(), d.PowerTransform(0.5)]),
            d.IndependentTransform(d.ExpTransform(), 1),
            d.CatTransform([d.ExpTransform(), d.TanhTransform()], dim=1, lengths=[1, 2]),
            d.StackTransform([d.ExpTransform(), d.TanhTransform(), d.ExpTransform()], dim=1),
        ]
        for transform in made:
            y = transform(x)
            size = transform.log_abs_det_jacobian(x, y)
            yield y.flatten().tolist() + size.flatten().tolist() + transform.inv(y).flatten().tolist()
            yield tuple(transform.forward_shape(x.shape)), tuple(size.shape), repr(transform.codomain)

    for ours, theirs in zip(found(xtensor), found(torch), strict=True):
        assert ours == (pytest.approx(theirs, rel=1e-4, abs=1e-5) if isinstance(theirs, list) else theirs)


def test_regions_have_maps(torch):
    def found(t):
        c = t.distributions.constraints
        x = t.tensor([[0.3, -0.5], [1.0, 0.2]])
        regions = [
            c.real,
            c.positive,
            c.greater_than(2.0),
            c.less_than(1.0),
            c.interval(-1.0, 3.0),
            c.simplex,
        ]
        regions += [c.unit_interval, c.independent(c.positive, 1), c.lower_cholesky, c.positive_definite]
        for region in regions:
            y = t.distributions.transform_to(region)(x)
            assert region.check(y).all()
            yield y.flatten().tolist(), repr(region)

    for ours, theirs in zip(found(xtensor), found(torch), strict=True):
        assert ours[0] == pytest.approx(theirs[0], rel=1e-4, abs=1e-5) and ours[1] == theirs[1]


def test_what_is_outside_is_refused():
    d = xtensor.distributions
    with pytest.raises(ValueError, match="to satisfy the constraint GreaterThan"):
        d.Gamma(-1.0, 1.0)
    with pytest.raises(ValueError, match="to be within the support"):
        d.Beta(1.0, 1.0).log_prob(xtensor.tensor(2.0))
    with pytest.raises(ValueError, match="needs to be an  instance"):
        d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0))
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        d.biject_to(d.constraints.lower_cholesky)


def test_ends_belong_to_kumaraswamys_support(torch):
    found, wanted = [
        T.distributions.Kumaraswamy(T.tensor([1.0, 2.0]), T.tensor([1.0, 3.0])).log_prob(T.tensor([1.0, 0.5]))
        for T in (xtensor, torch)
    ]
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5)


def test_no_success_is_no_geometric_distribution(torch):
    def told(T):
        with pytest.raises(ValueError, match="to be positive but found invalid values") as caught:
            T.distributions.Geometric(T.tensor([0.0, 0.5]))
        return str(caught.value).replace("xtensor", "torch")

    assert told(xtensor) == told(torch)


def test_wisharts_density_of_what_is_not_symmetric(torch):
    grads = []
    for T in (xtensor, torch):
        value = T.tensor([[2.0, 0.6], [0.4, 1.0]], dtype=T.float64, requires_grad=True)
        df, scale = T.tensor(4.0, dtype=T.float64), T.eye(2, dtype=T.float64)
        T.distributions.Wishart(df, scale, validate_args=False).log_prob(value).backward()
        grads.append(value.grad.numpy())
    np.testing.assert_allclose(*grads, rtol=1e-9)
