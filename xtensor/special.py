"""Special functions: `xtensor.special`, the names of `torch.special`."""

# ruff: noqa: F401  # a public face: everything is imported to be found here

from .operators.functions.deferred import settle
from .ops.pointwise.activations import log_softmax, softmax
from .ops.pointwise.bessel import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    i0e,
    i1,
    i1e,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
)
from .ops.pointwise.elementwise import exp2, expm1, log1p, round
from .ops.pointwise.elementwise import sigmoid as expit
from .ops.pointwise.gamma_functions import igamma as gammainc
from .ops.pointwise.gamma_functions import igammac as gammaincc
from .ops.pointwise.gamma_functions import zeta
from .ops.pointwise.polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from .ops.pointwise.probability import entr, erfcx, log_ndtr, ndtr, ndtri, xlog1py
from .ops.pointwise.special import digamma, erf, erfc, erfinv, i0, logit, polygamma, sinc, xlogy
from .ops.pointwise.special import digamma as psi
from .ops.pointwise.special import lgamma as gammaln
from .ops.pointwise.special import mvlgamma as multigammaln
from .ops.reduce.reductions import logsumexp

settle(__name__, globals())
