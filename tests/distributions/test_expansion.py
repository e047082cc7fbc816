"""`expand` of subclasses, and transforms that are modules too, as PyTorch's: what Pyro's classes build on."""

import copy
import subprocess
import sys

import pytest

import xtensor

MAKE = {
    "Bernoulli": lambda t, d: (t.tensor([0.2, 0.7]),),
    "Beta": lambda t, d: (t.tensor([2.0, 0.5]), 3.0),
    "Binomial": lambda t, d: (5, t.tensor([0.3, 0.6])),
    "Categorical": lambda t, d: (t.tensor([[1.0, 2.0, 1.0], [0.5, 0.2, 0.3]]),),
    "Cauchy": lambda t, d: (t.tensor([0.5, 1.0]), 2.0),
    "Chi2": lambda t, d: (t.tensor([3.0, 5.0]),),
    "ContinuousBernoulli": lambda t, d: (t.tensor([0.2, 0.9]), None, (0.4, 0.6)),
    "Dirichlet": lambda t, d: (t.tensor([[1.0, 2.0, 3.0], [0.5, 0.6, 0.7]]),),
    "Exponential": lambda t, d: (t.tensor([0.5, 2.0]),),
    "FisherSnedecor": lambda t, d: (t.tensor([3.0, 5.0]), 6.0),
    "Gamma": lambda t, d: (t.tensor([0.5, 2.0]), 1.5),
    "GeneralizedPareto": lambda t, d: (t.tensor([0.0, 0.1]), 1.0, 0.4),
    "Geometric": lambda t, d: (None, t.tensor([0.3, -0.6])),
    "Gumbel": lambda t, d: (t.tensor([0.5, 1.0]), 2.0),
    "HalfCauchy": lambda t, d: (t.tensor([3.0, 5.0]),),
    "HalfNormal": lambda t, d: (t.tensor([1.0, 2.0]),),
    "Independent": lambda t, d: (d.Normal(t.zeros(2, 3), t.ones(3)), 1),
    "InverseGamma": lambda t, d: (t.tensor([3.0, 1.5]), 2.0),
    "Kumaraswamy": lambda t, d: (t.tensor([2.0, 1.5]), 1.4),
    "LKJCholesky": lambda t, d: (3, t.tensor([1.5, 2.0])),
    "Laplace": lambda t, d: (t.tensor([0.0, 1.0]), 2.0),
    "LogNormal": lambda t, d: (t.tensor([0.2, 0.5]), 0.5),
    "LogisticNormal": lambda t, d: (t.tensor([[1.0, 2.0], [0.1, 0.2]]), t.tensor([3.0, 2.5])),
    "LowRankMultivariateNormal": lambda t, d: (t.zeros(2, 3), t.tensor([[1.0], [0.5], [0.2]]), t.ones(3)),
    "MixtureSameFamily": lambda t, d: (
        d.Categorical(t.tensor([0.3, 0.7])),
        d.Normal(t.tensor([[0.0, 1.0], [2.0, 3.0]]), 1.0),
    ),
    "Multinomial": lambda t, d: (4, t.tensor([[0.3, 0.6, 0.1], [0.2, 0.2, 0.6]])),
    "MultivariateNormal": lambda t, d: (t.zeros(2, 2), t.tensor([[2.0, 0.3], [0.3, 1.0]])),
    "NegativeBinomial": lambda t, d: (t.tensor([3.0, 5.0]), 0.3),
    "Normal": lambda t, d: (t.tensor([0.0, 1.0]), 0.5),
    "OneHotCategorical": lambda t, d: (None, t.tensor([[1.0, 2.0, 1.0], [0.5, 0.2, 0.3]])),
    "OneHotCategoricalStraightThrough": lambda t, d: (t.tensor([[0.2, 0.8], [0.3, 0.7]]),),
    "Pareto": lambda t, d: (t.tensor([0.1, 0.2]), 3.0),
    "Poisson": lambda t, d: (t.tensor([0.5, 4.0]),),
    "RelaxedBernoulli": lambda t, d: (t.tensor(0.7), t.tensor([0.3, 0.6])),
    "RelaxedOneHotCategorical": lambda t, d: (t.tensor(0.7), t.tensor([[0.3, 0.6, 0.1], [0.2, 0.2, 0.6]])),
    "StudentT": lambda t, d: (t.tensor([3.0, 5.0]), 1.0, 2.0),
    "TransformedDistribution": lambda t, d: (
        d.Normal(t.tensor([0.0, 1.0]), 1.0),
        [d.ExpTransform(), d.AffineTransform(-1.0, 2.0)],
    ),
    "Uniform": lambda t, d: (t.tensor([0.0, 0.1]), 2.0),
    "VonMises": lambda t, d: (t.tensor([0.0, 1.0]), 4.0),
    "Weibull": lambda t, d: (t.tensor([1.0, 2.0]), 2.5),
    "Wishart": lambda t, d: (t.tensor([4.0, 5.0]), t.tensor([[2.0, 0.3], [0.3, 1.0]])),
}
VALUES = {
    "LKJCholesky": [[1.0, 0, 0], [0.6, 0.8, 0], [0.0, 0.6, 0.8]],
    "MultivariateNormal": [0.3, 0.7],
    "OneHotCategoricalStraightThrough": [0.0, 1.0],
    "Wishart": [[1.0, 0.2], [0.2, 2.0]],
} | dict.fromkeys(["Bernoulli", "Binomial", "Categorical", "Geometric", "NegativeBinomial", "Poisson"], 1.0)
OF_THREE = "Dirichlet Independent LogisticNormal LowRankMultivariateNormal RelaxedOneHotCategorical"
VALUES |= {name: [0.2, 0.3, 0.5] for name in OF_THREE.split()}
VALUES |= {"Multinomial": [1.0, 2.0, 1.0], "OneHotCategorical": [0.0, 1.0, 0.0]}


def test_the_list_is_complete(torch):
    d = torch.distributions
    kinds = [(name, one) for name in d.__all__ if isinstance(one := getattr(d, name), type)]
    found = {name for name, one in kinds if issubclass(one, d.Distribution)}
    assert found - {"Distribution", "ExponentialFamily"} == set(MAKE)


def expanded(t, name, filled):
    d = t.distributions
    kind = getattr(d, name)
    sub = type("Sub", (kind,), {})
    made = sub(*MAKE[name](t, d), validate_args=True)
    into = object.__new__(sub) if filled else None
    wider = made.expand((3, 2), _instance=into)
    assert type(wider) is sub and (wider is into or not filled or name == "VonMises")
    # A second time, of what was filled: nothing may be missing from it.
    wider = wider.expand(t.Size([4, 3, 2]))
    assert type(wider) is sub and wider._validate_args is True and type(made) is sub
    return wider


@pytest.mark.parametrize("filled", [False, True])
@pytest.mark.parametrize("name", MAKE)
@pytest.mark.one_in(3)
def test_a_subclass_stays_one(torch, name, filled):
    ours, theirs = expanded(xtensor, name, filled), expanded(torch, name, filled)
    assert (tuple(ours.batch_shape), tuple(ours.event_shape)) == (theirs.batch_shape, theirs.event_shape)
    value = VALUES.get(name, 0.3)
    pairs = [(ours.log_prob(xtensor.tensor(value)), theirs.log_prob(torch.tensor(value)))]
    if type(theirs).mean is not torch.distributions.Distribution.mean:
        pairs.append((ours.mean, theirs.mean))
    for one, two in pairs:
        assert tuple(one.shape) == tuple(two.shape)
        assert one.flatten().tolist() == pytest.approx(two.flatten().tolist(), 1e-4, 1e-5, nan_ok=True)
    assert tuple(ours.sample().shape) == theirs.batch_shape + theirs.event_shape
    for asked in ("base_dist", "temperature", "_categorical", "mixture_distribution", "total_count", "dim"):
        if hasattr(theirs, asked) and name != "Gumbel":  # not a mapped one here
            one, two = getattr(ours, asked), getattr(theirs, asked)
            assert type(one).__name__ == type(two).__name__
            assert tuple(getattr(one, "batch_shape", ())) == tuple(getattr(two, "batch_shape", ()))


@pytest.mark.parametrize("name", MAKE)
def test_a_subclass_with_its_own_init_needs_its_own_expand(torch, name):
    def said(t):
        kind = getattr(t.distributions, name)

        def init(self, *args):
            kind.__init__(self, *args)

        def expand(self, batch_shape, _instance=None):
            made = self._get_checked_instance(own, _instance)
            made.more = self.more
            return kind.expand(self, batch_shape, _instance=made)

        given = MAKE[name](t, t.distributions)
        own = type("Own", (kind,), {"__init__": init, "expand": expand, "more": 5})
        wider = own(*given).expand([3, 2])
        assert type(wider) is own and wider.more == 5 and tuple(wider.batch_shape) == (3, 2)
        with pytest.raises(NotImplementedError) as error:
            type("Own", (kind,), {"__init__": init})(*given).expand([3, 2])
        return str(error.value)

    if name == "VonMises":  # PyTorch calls the subclass, whatever its __init__ is.
        sub = type(
            "Own", (xtensor.distributions.VonMises,), {"__init__": lambda self, *a, **k: init(self, *a)}
        )
        init = xtensor.distributions.VonMises.__init__
        assert type(sub(*MAKE[name](xtensor, None)).expand([3, 2])) is sub
    else:
        ours, theirs = said(xtensor), said(torch)
        assert ours == theirs or name == "OneHotCategoricalStraightThrough"


def test_a_family_of_a_program_s_own_has_to_define_it():
    class Own(xtensor.distributions.Distribution):
        arg_constraints = {}

    with pytest.raises(NotImplementedError):
        Own(validate_args=False).expand((2,))


def test_validation_may_be_a_property_of_the_subclass():
    class Independent(xtensor.distributions.Independent):  # as Pyro's
        @property
        def _validate_args(self):
            return self.base_dist._validate_args

        @_validate_args.setter
        def _validate_args(self, value):
            self.base_dist._validate_args = value

    made = Independent(xtensor.distributions.Normal(xtensor.zeros(2), 1.0, validate_args=True), 1)
    assert made.expand((3,))._validate_args is True
    made._validate_args = False
    assert made.expand((3,)).base_dist._validate_args is False


def test_transforms_and_distributions_may_be_modules():
    d, nn = xtensor.distributions, xtensor.nn

    class Shift(d.Transform, nn.Module):
        domain = codomain = d.constraints.real
        bijective = True

        def __init__(self, cache_size=0):
            super().__init__(cache_size=cache_size)
            self.by = nn.Parameter(xtensor.ones(2))

        def _call(self, x):
            return x + self.by

        def _inverse(self, y):
            return y - self.by

        def log_abs_det_jacobian(self, x, y):
            return x * 0

    class Composed(d.ComposeTransform, nn.ModuleList):  # as Pyro's
        def __init__(self, parts, cache_size=0):
            super().__init__(parts, cache_size=cache_size)
            self.extend(parts)

    flow = Shift(cache_size=1)
    assert [name for name, _ in flow.named_parameters()] == ["by"]
    x = xtensor.zeros(2)
    y = flow(x)
    assert flow.inv(y) is x and flow._cached_x_y[1] is y and flow.inv is flow.inv
    twin = copy.deepcopy(flow)
    assert twin._inv is None and twin.by is not flow.by and twin.inv(twin(x)).tolist() == [0.0, 0.0]
    both = Composed([flow, Shift()])
    assert len(list(both.parameters())) == 2 and both(x).tolist() == [2.0, 2.0]
    mapped = d.TransformedDistribution(d.Normal(x, 1.0), [both])
    assert mapped.log_prob(both(x)).tolist() == pytest.approx([-0.9189385] * 2)
    assert both.inv(both(x)).tolist() == [0.0, 0.0] and copy.deepcopy(both)(x).tolist() == [2.0, 2.0]

    class Own(d.Normal, nn.Module):
        pass

    assert isinstance(Own(x, 1.0).expand((3, 2))._modules, dict)


def test_the_factor_of_an_inverse(torch, tmp_path):
    program = tmp_path / "prog.py"
    program.write_text(
        "import torch\n"
        "from torch.distributions.multivariate_normal import _precision_to_scale_tril\n"
        "print(torch.__name__, _precision_to_scale_tril(torch.tensor([[[2.0, 0.3], [0.3, 1.0]]])).tolist())\n"
    )
    shown = subprocess.run(
        [sys.executable, "-m", "xtensor", str(program)], check=True, capture_output=True, text=True
    )
    found = eval(shown.stdout.split(" ", 1)[1])
    given = torch.tensor([[[2.0, 0.3], [0.3, 1.0]]])
    expected = torch.distributions.multivariate_normal._precision_to_scale_tril(given)
    assert torch.tensor(found).flatten().tolist() == pytest.approx(expected.flatten().tolist(), 1e-5)
    made = xtensor.distributions.MultivariateNormal(
        xtensor.zeros(2), precision_matrix=xtensor.tensor(given[0].tolist())
    )
    assert made.scale_tril.flatten().tolist() == pytest.approx(expected.flatten().tolist(), 1e-5)
