"""Distributions: log probabilities, moments, entropies, divergences as PyTorch's; samples by their statistics."""

import pytest

import xtensor

MAKE = {
    "Normal": lambda t: t.distributions.Normal(t.tensor([0.0, 1.0]), t.tensor([1.0, 0.5])),
    "Laplace": lambda t: t.distributions.Laplace(t.tensor([0.0, 1.0]), 2.0),
    "Cauchy": lambda t: t.distributions.Cauchy(0.5, 2.0),
    "Gumbel": lambda t: t.distributions.Gumbel(0.5, 2.0),
    "LogNormal": lambda t: t.distributions.LogNormal(0.2, 0.5),
    "HalfNormal": lambda t: t.distributions.HalfNormal(t.tensor([1.0, 2.0])),
    "Uniform": lambda t: t.distributions.Uniform(t.tensor([0.0, 0.1]), 2.0),
    "Exponential": lambda t: t.distributions.Exponential(t.tensor([0.5, 2.0])),
    "Bernoulli": lambda t: t.distributions.Bernoulli(t.tensor([0.2, 0.7])),
    "Bernoulli logits": lambda t: t.distributions.Bernoulli(logits=t.tensor([-1.0, 2.0])),
    "Geometric": lambda t: t.distributions.Geometric(t.tensor([0.3, 0.6])),
    "Poisson": lambda t: t.distributions.Poisson(t.tensor([0.5, 4.0])),
    "Categorical": lambda t: t.distributions.Categorical(t.tensor([[1.0, 2.0, 1.0], [0.5, 0.2, 0.3]])),
    "Categorical logits": lambda t: t.distributions.Categorical(
        logits=t.tensor([[1.0, 2.0, 1.0], [0.5, 0.2, 0.3]])
    ),
    "OneHot": lambda t: t.distributions.OneHotCategorical(t.tensor([0.2, 0.3, 0.5])),
    "Independent": lambda t: t.distributions.Independent(t.distributions.Normal(t.zeros(3, 2), t.ones(2)), 1),
    "Multivariate": lambda t: t.distributions.MultivariateNormal(
        t.tensor([0.5, -0.5]), t.tensor([[2.0, 0.3], [0.3, 1.0]])
    ),
}
VALUES = {
    "Poisson": [0.0, 3.0],
    "Geometric": [0.0, 2.0],
    "Bernoulli": [0.0, 1.0],
    "Bernoulli logits": [1.0, 0.0],
    "Categorical": [2, 0],
    "Categorical logits": [0, 1],
    "OneHot": [0.0, 1.0, 0.0],
}


def close(ours, theirs):
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.flatten().tolist() == pytest.approx(
        theirs.flatten().tolist(), rel=1e-4, abs=1e-5, nan_ok=True
    )


@pytest.mark.parametrize("name", MAKE)
def test_formulas_are_pytorch_s(torch, name):
    ours, theirs = MAKE[name](xtensor), MAKE[name](torch)
    assert repr(ours).replace("xtensor", "torch") == repr(theirs)
    value = VALUES.get(name, [0.3, 0.7])
    close(ours.log_prob(xtensor.tensor(value)), theirs.log_prob(torch.tensor(value)))
    assert (tuple(ours.batch_shape), tuple(ours.event_shape)) == (theirs.batch_shape, theirs.event_shape)
    for asked in ("mean", "variance", "mode", "stddev"):
        try:
            expected = getattr(theirs, asked)
        except NotImplementedError:
            continue
        if not (name in ("Gumbel", "Geometric", "HalfNormal", "Uniform") and asked == "mode"):
            close(getattr(ours, asked), expected)
    if name != "Poisson":
        close(ours.entropy(), theirs.entropy())
    if name in ("Normal", "Uniform", "Exponential"):
        close(ours.cdf(xtensor.tensor(value)), theirs.cdf(torch.tensor(value)))
        close(ours.icdf(xtensor.tensor(value)), theirs.icdf(torch.tensor(value)))
    if name in ("Cauchy", "Gumbel", "LogNormal"):  # one variable, and two values of it
        value = value[0]
    wider, other = ours.expand((4, *ours.batch_shape)), theirs.expand((4, *theirs.batch_shape))
    close(wider.log_prob(xtensor.tensor(value)), other.log_prob(torch.tensor(value)))


PAIRS = [
    "Normal",
    "Laplace",
    "Exponential",
    "Bernoulli",
    "Categorical",
    "Poisson",
    "OneHot",
    "Multivariate",
    "Independent",
]


@pytest.mark.parametrize("name", PAIRS)
def test_divergences_are_pytorch_s(torch, name):
    def found(t):
        p = MAKE[name](t)
        d = t.distributions
        q = {
            "Normal": lambda: d.Normal(0.3, 2.0),
            "Laplace": lambda: d.Laplace(0.3, 1.0),
            "Exponential": lambda: d.Exponential(1.5),
            "Bernoulli": lambda: d.Bernoulli(t.tensor([0.5, 0.5])),
            "Categorical": lambda: d.Categorical(t.tensor([1.0, 1.0, 1.0])),
            "Poisson": lambda: d.Poisson(1.5),
            "OneHot": lambda: d.OneHotCategorical(t.tensor([0.4, 0.4, 0.2])),
            "Multivariate": lambda: d.MultivariateNormal(t.zeros(2), t.eye(2)),
            "Independent": lambda: d.Independent(d.Normal(t.ones(3, 2), 2 * t.ones(2)), 1),
        }[name]()
        return d.kl_divergence(p, q)

    close(found(xtensor), found(torch))


@pytest.mark.parametrize(
    "name", [n for n in MAKE if n not in ("Cauchy", "Categorical", "Categorical logits")]
)
def test_samples_have_the_moments(name):
    xtensor.manual_seed(0)
    made = MAKE[name](xtensor)
    drawn = made.sample((4000,))
    assert drawn.shape == (4000, *made.batch_shape, *made.event_shape) and not drawn.requires_grad
    mean, deviation = made.mean.expand(drawn.shape[1:]), made.stddev.expand(drawn.shape[1:])
    assert ((drawn.mean(0) - mean).abs() < 6 * deviation / 4000**0.5).all()
    assert made.support is None or made.support.check(drawn).all()


def test_classes_are_drawn_by_their_probabilities():
    xtensor.manual_seed(0)
    drawn = xtensor.distributions.Categorical(xtensor.tensor([[0.1, 0.9], [0.5, 0.5]])).sample((2000,))
    assert drawn.shape == (2000, 2) and drawn.dtype is xtensor.int64
    assert drawn.float().mean(0).tolist() == pytest.approx([0.9, 0.5], abs=0.05)


def test_gradients_flow_through_samples_and_scores():
    loc = xtensor.tensor(0.5, requires_grad=True)
    scale = xtensor.tensor(2.0, requires_grad=True)
    normal = xtensor.distributions.Normal(loc, scale)
    xtensor.manual_seed(0)
    drawn = normal.rsample((5,))
    drawn.sum().backward()
    assert loc.grad.item() == 5.0
    assert scale.grad.item() == pytest.approx(((drawn.detach() - 0.5) / 2).sum().item(), rel=1e-5)
    logits = xtensor.zeros(3, requires_grad=True)
    choice = xtensor.distributions.Categorical(logits=logits)
    choice.log_prob(xtensor.tensor(1)).backward()
    assert logits.grad.tolist() == pytest.approx([-1 / 3, 2 / 3, -1 / 3])


def test_what_is_refused():
    d = xtensor.distributions
    with pytest.raises(
        ValueError, match=r"Expected parameter scale .* to satisfy the constraint GreaterThan"
    ):
        d.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="Simplex"):
        d.Categorical(xtensor.tensor([-1.0, 2.0]))
    with pytest.raises(ValueError, match=r"within the support \(Boolean\(\)\)"):
        d.Bernoulli(0.5).log_prob(xtensor.tensor(0.5))
    with pytest.raises(ValueError, match="must be a Tensor"):
        d.Normal(0.0, 1.0).log_prob(3)
    with pytest.raises(ValueError, match="Either `probs` or `logits`"):
        d.Bernoulli()
    with pytest.raises(NotImplementedError):
        d.kl_divergence(d.Normal(0.0, 1.0), d.Bernoulli(0.5))
    assert d.Normal(0.0, -1.0, validate_args=False).scale.item() == -1


@pytest.mark.parametrize(
    "make",
    [
        lambda lib, bad: lib.distributions.Normal(lib.tensor([0.0, bad]), 1.0),
        lambda lib, bad: lib.distributions.Normal(0.0, lib.tensor([1.0, bad])),
        lambda lib, bad: lib.distributions.Uniform(lib.zeros(2), lib.tensor([1.0, bad])),
        lambda lib, bad: lib.distributions.Bernoulli(lib.tensor([0.5, bad])),
        lambda lib, bad: lib.distributions.Beta(lib.tensor([0.5, bad]), 1.0),
        lambda lib, bad: lib.distributions.Categorical(logits=lib.tensor([[0.5, bad]])),
        lambda lib, bad: lib.distributions.Poisson(lib.tensor([0.5, bad])).log_prob(lib.tensor([1.0, 2.0])),
        lambda lib, bad: lib.distributions.Bernoulli(lib.tensor([0.5, 0.5])).log_prob(lib.tensor([1.0, bad])),
        lambda lib, bad: lib.distributions.Geometric(0.5).log_prob(lib.tensor([1.0, bad])),
        lambda lib, bad: lib.distributions.Uniform(0.0, 1.0).log_prob(lib.tensor([0.5, bad])),
        lambda lib, bad: lib.distributions.Independent(
            lib.distributions.Normal(lib.zeros(2, 2), lib.ones(2, 2)), 1
        ).log_prob(lib.tensor([[0.5, bad], [1.0, 1.0]])),
    ],
)
def test_refusals_are_pytorchs_whoever_looks(make):
    torch = pytest.importorskip("torch")

    def refused(lib, bad):
        try:
            make(lib, bad)
        except ValueError:
            return True
        return False

    for bad in (1.0, 0.0, 0.5, -1.0, 2.5, float("nan"), float("inf"), -float("inf")):
        assert refused(xtensor, bad) == refused(torch, bad), bad
    wanted = lambda mean: xtensor.distributions.Normal(mean, 1.0, validate_args=True)
    with pytest.raises(ValueError, match="satisfy the constraint Real"):
        wanted(xtensor.tensor([float("nan")]) * 2)  # which may be pending
    with pytest.raises(ValueError, match="satisfy the constraint Real"):
        wanted(xtensor.tensor([float("nan")], requires_grad=True))
