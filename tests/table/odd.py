"""What an exhaustive run of the table leaves out: calls in which PyTorch does what we do not mean to, each with the reason.

A sampled run's calls of these facets are compared all the same.
"""

from __future__ import annotations

ENDLESS = "infinities, NaN and zeros of complex numbers: PyTorch multiplies their parts, or its vectorised loops have other limits"
KINKS = "second derivatives at kinks, zeros, infinities and NaN, where PyTorch's formulas happen to give NaN or one of the sides"
COARSE = "PyTorch's series have fewer digits: of float64 about 7 to 9 are right, ours 14 (against SciPy)"
NAN_SIGN = "the sign of a NaN that PyTorch's conversion to bfloat16 makes"
NOTHING = "of no or one element, where PyTorch does not look for a kernel, so that it takes every dtype"
FIRST = "which of several equal elements is picked"
WORDS = "PyTorch's error, where we have a result"

REASONS: dict[str, dict[str, str]] = {
    ENDLESS: {
        "value": "add sub rsub pow exp2 expm1 log2 logaddexp",
        "gradient": "acos asin asinh atan atanh div true_divide exp2 expm1 log log10 log2 pow sqrt",
        "second_gradient": "acos angle asin asinh atan atanh div true_divide exp2 expm1 log log10 log2 mul pow sqrt sgn",
    },
    KINKS: {
        "second_gradient": "amax amin aminmax atan2 binary_cross_entropy copysign i0 logit mse_loss norm normalize prelu sinc "
        "softplus",
    },
    "a gradient that is computed in float64 for complex numbers": {
        "gradient": "cumprod",
        "second_gradient": "cumprod",
    },
    "the second derivative of scale_grad_by_freq is not scaled in PyTorch": {
        "second_gradient": "embedding embedding.embedding"
    },
    "one or no column does not depend on the vector, and requires no gradient": {
        "gradient": "vander",
        "second_gradient": "vander",
    },
    COARSE: {
        "value": "polygamma special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1"
    },
    NAN_SIGN: {"value": "copysign signbit"},
    NOTHING: {"value": "amax amin conv1d cummax cummin linalg_det mode trapezoid"},
    FIRST: {"value": "kthvalue"},
    "complex32 has no values here": {
        "value": "complex view_as_complex view_as_complex_copy",
        "meta": "view_as_complex_copy",
    },
    "float16 that overflows in PyTorch's squarings": {"value": "matrix_exp"},
    "PyTorch's KeyError for float16": {"value": "lobpcg"},
    "bounds below 0 for unsigned integers are refused by `nn.functional.hardtanh`": {"value": "hardtanh"},
    WORDS: {
        "value": "embedding.embedding",
        "out": "diff mean median nanmedian normal where",
    },
    "PyTorch's kernel ends the process": {"out": "arange range"},
    "warnings of a result that PyTorch resizes by itself": {"out": "linear matmul"},
    "dtypes of an `out=` of no elements, and of a product with a number": {"out": "inner randn"},
    "integers that do not fit are the least one for PyTorch": {"out": "sum"},
    "results of products with numbers, contiguous in one of the two": {"layouts": "inner kron pow"},
    "rows or statistics that overlap in memory and are written to": {
        "layouts": "bags.embedding_bag embedding.embedding normalization.instance_norm"
    },
}

ODD = {
    (name, facet): reason
    for reason, facets in REASONS.items()
    for facet, names in facets.items()
    for name in names.split()
}
