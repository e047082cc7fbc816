"""Mixtures, and distributions over circles, intervals and matrices."""

# A property may be that of another attribute (`read`).
# pyright: reportIncompatibleMethodOverride=false
from __future__ import annotations

import math
from typing import Any

from .. import dtypes
from ..linalg import cholesky, slogdet, solve_triangular
from ..ops.create.creation import ones, zeros
from ..ops.create.random import rand, randn
from ..ops.create.ranges import arange, eye
from ..ops.shape.joining import cat
from ..special import i0e, i1e
from ..tensor import Size, Tensor
from . import constraints
from .continuous import triangle_of
from .discrete import TINY, ByOdds, Categorical
from .distribution import Distribution, broadcast_all, read
from .gammas import Beta, Chi2

__all__ = [
    "ContinuousBernoulli",
    "GeneralizedPareto",
    "LKJCholesky",
    "LowRankMultivariateNormal",
    "MixtureSameFamily",
    "VonMises",
    "Wishart",
]


class MixtureSameFamily(Distribution):
    """One of the last batch dimension's components, chosen by a categorical distribution."""

    arg_constraints = {}
    _grow = ("_mixture_distribution", "_component_distribution")
    _stay = ("_num_component",)

    def __init__(
        self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of torch.distributions.Distribution"
            )
        mixed, kept = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for one, two in zip(reversed(mixed), reversed(kept), strict=False):
            if one != 1 and two != 1 and one != two:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                    f"`component_distribution.batch_shape` ({kept})"
                )
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({components})"
            )
        self._mixture_distribution, self._component_distribution = (
            mixture_distribution,
            component_distribution,
        )
        self._num_component = count
        super().__init__(kept, component_distribution.event_shape, validate_args)

    @constraints.dependent_property
    def support(self) -> Any:  # type: ignore[override]
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = read("_mixture_distribution")
    component_distribution = read("_component_distribution")

    def _weights(self) -> Tensor:
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self._event_shape))

    def _along(self) -> int:
        return -1 - len(self._event_shape)

    @property
    def mean(self) -> Tensor:
        return (self._weights() * self._component_distribution.mean).sum(self._along())

    @property
    def variance(self) -> Tensor:
        component, weights = self._component_distribution, self._weights()
        spread = (component.mean - self.mean.unsqueeze(self._along())).pow(2.0)
        return (weights * component.variance).sum(self._along()) + (weights * spread).sum(self._along())

    def cdf(self, value: Tensor) -> Tensor:
        found = self._component_distribution.cdf(value.unsqueeze(self._along()))
        return (found * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        found = self._component_distribution.log_prob(value.unsqueeze(self._along()))
        return (found + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        chosen = self._mixture_distribution.sample(sample_shape)
        drawn = self._component_distribution.sample(sample_shape)
        events = tuple(self._event_shape)
        chosen = chosen.reshape(tuple(chosen.shape) + (1,) * (len(events) + 1))
        chosen = chosen.expand(*chosen.shape[: chosen.dim() - len(events)], *events)
        return drawn.gather(self._along(), chosen).squeeze(self._along())

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"


class VonMises(Distribution):
    """Angles around `loc`, the more closely the larger `concentration`.

    Source: Best and Fisher 1979, Applied Statistics 28.
    """

    has_rsample = False
    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        try:
            return super().expand(batch_shape, _instance)
        except NotImplementedError:
            # As PyTorch's: here alone, a subclass with an __init__ of its own is made by calling it.
            checked, grown = self.__dict__.get("_validate_args"), self._wider(VonMises, Size(batch_shape))
            return type(self)(grown["loc"], grown["concentration"], validate_args=checked)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        found = self.concentration * (value - self.loc).cos() - math.log(2 * math.pi)
        # i0e leaves out the exponential, which would overflow.
        return found - (i0e(self.concentration).log() + self.concentration)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """By rejection from a wrapped Cauchy variable (Best and Fisher, 1979)."""
        shape = tuple(self._extended_shape(sample_shape))
        loc, kappa = self.loc.detach().double(), self.concentration.detach().double()
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        r = (1 + rho**2) / (2 * rho)
        # For small concentrations the formula loses its digits: its series there.
        r = r.where(kappa >= 1e-5, 1.0 / kappa + kappa).expand(shape)
        made, done = zeros(shape, dtype=loc.dtype), zeros(shape, dtype=dtypes.bool)
        while not done.all():
            u = rand((3, *shape), dtype=loc.dtype)
            z = (math.pi * u[0]).cos()
            f = (1 + r * z) / (r + z)
            c = kappa * (r - f)
            accept = (c * (2 - c) - u[1] > 0) | ((c / u[1]).log() + 1 - c >= 0)
            made = made.where(done | ~accept, (u[2] - 0.5).sign() * f.clamp(-1, 1).acos())
            done = done | accept
        return ((made + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    mean = mode = read("loc")

    @property
    def variance(self) -> Tensor:
        """The circular variance."""
        kappa = self.concentration
        return 1 - i1e(kappa) / i0e(kappa)


class ContinuousBernoulli(ByOdds):
    """Numbers between 0 and 1 whose density is that of a Bernoulli variable, read as continuous.

    Source: Loaiza-Ganem and Cunningham 2019, arXiv:1907.06845.
    """

    has_rsample = True
    support = constraints.unit_interval
    _stay = ("_lims",)

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._lims = lims
        super().__init__(probs, logits, validate_args)

    def _clamped(self) -> tuple[Tensor, Tensor]:
        """The probabilities, and where they are far enough from a half for the closed forms."""
        probs = self.probs.clamp(TINY, 1 - TINY)
        return probs, (probs <= self._lims[0]) | (probs > self._lims[1])

    def _cut(self) -> Tensor:
        probs, outside = self._clamped()
        return probs.where(outside, self._lims[0])

    def _log_norm(self) -> Tensor:
        probs, outside = self._clamped()
        cut = self._cut()
        below, above = cut.where(cut <= 0.5, 0.0), cut.where(cut >= 0.5, 1.0)
        scale = (-2.0 * below).log1p().where(cut <= 0.5, (2.0 * above - 1.0).log())
        found = ((-cut).log1p() - cut.log()).abs().log() - scale
        x = (probs - 0.5).pow(2)
        return found.where(outside, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        probs, outside = self._clamped()
        cut = self._cut()
        found = cut / (2.0 * cut - 1.0) + 1.0 / ((-cut).log1p() - cut.log())
        x = probs - 0.5
        return found.where(outside, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def variance(self) -> Tensor:
        probs, outside = self._clamped()
        cut = self._cut()
        found = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / ((-cut).log1p() - cut.log()).pow(2)
        x = (probs - 0.5).pow(2)
        return found.where(outside, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        return self.icdf(rand(shape, dtype=self.given.dtype, device=self.given.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        cross = logits.clamp(min=0) - logits * value + (-logits.abs()).exp().log1p()
        return self._log_norm() - cross

    def cdf(self, value: Tensor) -> Tensor:
        self._check(value)
        _, outside = self._clamped()
        cut = self._cut()
        found = (cut.pow(value) * (1.0 - cut).pow(1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        return found.where(outside, value).where(value > 0, 0.0).where(value < 1, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        _, outside = self._clamped()
        cut = self._cut()
        found = (-cut + value * (2.0 * cut - 1.0)).log1p() - (-cut).log1p()
        return (found / (cut.log() - (-cut).log1p())).where(outside, value)

    def entropy(self) -> Tensor:
        probs = self.probs.clamp(TINY, 1 - TINY)
        zero, one = (-probs).log1p(), probs.log()
        return self.mean * (zero - one) - self._log_norm() - zero


class GeneralizedPareto(Distribution):
    """What lies above a high threshold `loc`: a tail whose weight `concentration` gives.

    Source: Pickands 1975, Annals of Statistics 3.
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        upper = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, upper.where(self.concentration < 0, math.inf))

    def _flat(self) -> tuple[Tensor, Tensor]:
        """Where the tail is an exponential one, and a concentration that may be divided by."""
        flat = self.concentration.abs() < dtypes.finfo(self.loc.dtype).eps
        return flat, self.concentration.where(~flat, 1.0)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = rand(tuple(self._extended_shape(sample_shape)), dtype=self.loc.dtype, device=self.loc.device)
        return self.icdf(u)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        z = (value - self.loc) / self.scale
        flat, k = self._flat()
        return (-z).where(flat, -(1 + 1 / k) * (k * z).log1p()) - self.scale.log()

    def cdf(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        flat, k = self._flat()
        return 1 - (-z).where(flat, -(k * z).log1p() / k).exp()

    def icdf(self, value: Tensor) -> Tensor:
        flat, k = self._flat()
        left = (-value).log1p()
        return self.loc + self.scale * (-left).where(flat, (-k * left).expm1() / k)

    @property
    def mean(self) -> Tensor:
        k = self.concentration
        return (self.loc + self.scale / (1 - k)).where(k < 1, math.inf)

    mode = read("loc")

    @property
    def variance(self) -> Tensor:
        k = self.concentration
        return (self.scale**2 / ((1 - k) ** 2 * (1 - 2 * k))).where(k < 0.5, math.inf)

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


class LowRankMultivariateNormal(Distribution):
    """Normal vectors whose covariance is `cov_factor @ cov_factor.T` plus a diagonal.

    Source: Kotz, Balakrishnan and Johnson, Continuous Multivariate Distributions, chapter 45.
    """

    has_rsample = True
    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    _grow = ("_capacitance_tril",)

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.dim() < 2:
            raise ValueError(
                "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
            )
        size = loc.shape[-1]
        if cov_factor.shape[-2] != size:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {size} x m")
        if cov_diag.shape[-1] != size:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {(size,)}")
        wide, diagonal = broadcast_all(loc.unsqueeze(-1), cov_diag.unsqueeze(-1))
        batch = (wide + cov_factor[..., :1] * 0).shape[:-2]
        self.loc = wide[..., 0].expand(*batch, size)
        self.cov_diag = diagonal[..., 0].expand(*batch, size)
        self.cov_factor = cov_factor.expand(*batch, *cov_factor.shape[-2:])
        rank = cov_factor.shape[-1]
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        inner = scaled @ self.cov_factor + eye(rank, dtype=loc.dtype, device=loc.device)
        self._capacitance_tril = cholesky(inner)
        super().__init__(batch, (size,), validate_args)

    mean = mode = read("loc")

    @property
    def variance(self) -> Tensor:
        return self.cov_factor.pow(2).sum(-1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Tensor:
        return self.cov_factor @ self.cov_factor.mT + self.cov_diag.diag_embed()

    @property
    def scale_tril(self) -> Tensor:
        return cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Tensor:
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        inner = solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self.cov_diag.reciprocal().diag_embed() - inner.mT @ inner

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = tuple(self._extended_shape(sample_shape))
        like: Any = dict(dtype=self.loc.dtype, device=self.loc.device)
        low = randn((*shape[:-1], self.cov_factor.shape[-1]), **like)
        shift = (self.cov_factor @ low.unsqueeze(-1)).squeeze(-1)
        return self.loc + shift + self.cov_diag.sqrt() * randn(shape, **like)

    def _log_det(self) -> Tensor:
        diagonal = self._capacitance_tril.diagonal(dim1=-2, dim2=-1)
        return 2 * diagonal.log().sum(-1) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        difference = value - self.loc
        low = (self.cov_factor.mT / self.cov_diag.unsqueeze(-2)) @ difference.unsqueeze(-1)
        triangle = self._capacitance_tril.expand(*low.shape[:-2], *self._capacitance_tril.shape[-2:])
        inner = solve_triangular(triangle, low, upper=False).squeeze(-1)
        distance = (difference.pow(2) / self.cov_diag).sum(-1) - inner.pow(2).sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self) -> Tensor:
        return 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())


class Wishart(Distribution):
    """Scatter matrices of normal vectors, with `df` degrees of freedom.

    Source: Wishart 1928, Biometrika 20.
    """

    has_rsample = True
    arg_constraints = {"df": constraints.greater_than(0), "scale_tril": constraints.lower_cholesky}
    support = constraints.positive_definite
    _grow = ("_dist_chi2",)

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        matrix = triangle_of(covariance_matrix, precision_matrix, scale_tril, "scale_tril")
        size = matrix.shape[-1]
        freedom = df if isinstance(df, Tensor) else matrix.new_tensor(df)
        if (freedom <= size - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        batch = (freedom + matrix[..., 0, 0] * 0).shape
        self.df = freedom.expand(tuple(batch))
        self.scale_tril = matrix.expand(*batch, size, size)
        # Bartlett: the factor's diagonal holds chi variables of falling degrees of freedom.
        steps = arange(size, dtype=matrix.dtype, device=matrix.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - steps, validate_args=False)
        super().__init__(batch, (size, size), validate_args)

    @property
    def covariance_matrix(self) -> Tensor:
        return self.scale_tril @ self.scale_tril.mT

    @property
    def precision_matrix(self) -> Tensor:
        return self.covariance_matrix.inverse()

    @property
    def mean(self) -> Tensor:
        return self.df.view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[0] - 1
        return factor.where(factor > 0, math.nan).view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        outer = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(*self._batch_shape, 1, 1) * (v.pow(2) + outer)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        size = self._event_shape[0]
        diagonal = self._dist_chi2.rsample(sample_shape).clamp(min=1e-30).sqrt().diag_embed()
        shape = (*sample_shape, *self._batch_shape, size, size)
        noise = randn(shape, dtype=self.df.dtype, device=self.df.device).tril(-1) + diagonal
        factor = self.scale_tril @ noise
        return factor @ factor.mT

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        p, nu = self._event_shape[0], self.df
        log_det = 2 * self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        value_det = slogdet(value)[1]
        trace = (self.precision_matrix @ value).diagonal(dim1=-2, dim2=-1).sum(-1)
        norm = nu * p * math.log(2) / 2 + nu / 2 * log_det + (nu / 2).mvlgamma(p)
        return (nu - p - 1) / 2 * value_det - trace / 2 - norm

    def entropy(self) -> Tensor:
        p, nu = self._event_shape[0], self.df
        log_det = 2 * self.scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        steps = arange(p, dtype=nu.dtype, device=nu.device)
        digammas = ((nu.unsqueeze(-1) - steps) / 2).digamma().sum(-1)
        found = (p + 1) / 2 * (log_det + p * math.log(2)) + (nu / 2).mvlgamma(p)
        return found - (nu - p - 1) / 2 * digammas + nu * p / 2


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices, by how much `concentration` favours the identity.

    Source: Lewandowski, Kurowicka and Joe 2009, Journal of Multivariate Analysis 100.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _grow = ("_beta",)
    _stay = ("dim",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # The onion method: the squared length of each row's part below the diagonal is a beta variable.
        like: Any = dict(dtype=self.concentration.dtype, device=self.concentration.device)
        offset = cat([zeros(1, **like), arange(dim - 1, **like)])
        marginal = self.concentration + 0.5 * (dim - 2)
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset, validate_args=False)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        length = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = tuple(self._extended_shape(sample_shape))
        normal = randn(shape, dtype=length.dtype, device=length.device).tril(-1)
        direction = normal / normal.norm(dim=-1, keepdim=True)
        first = ones(shape[:-1], dtype=dtypes.bool, device=length.device).cumsum(-1).eq(1).unsqueeze(-1)
        direction = direction.masked_fill(first, 0.0)
        rows = length.sqrt() * direction
        diagonal = (1 - rows.pow(2).sum(-1)).clamp(min=dtypes.finfo(rows.dtype).tiny).sqrt()
        return rows + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = (order * diagonal.log()).sum(-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        pi_constant = 0.5 * less * math.log(math.pi)
        return unnormalized - (pi_constant + (alpha - 0.5).mvlgamma(less) - alpha.lgamma() * less)

    def __repr__(self) -> str:
        shown = self.concentration.item() if self.concentration.numel() == 1 else self.concentration.shape
        return f"LKJCholesky(concentration: {shown})"
