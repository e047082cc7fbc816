"""Rows of `xtensor/ops/pointwise/bessel.py`."""

from scipy import special

from . import Row, unary

# PyTorch has no kernels of its own for short floats here.
LONG = ("float64", "int64", "bool")
SHORT = ("float64", "int64", "bool", "bfloat16")
# PyTorch's J, Y and Ai are right to 1e-6 only, in float64 too: ours are compared with SciPy's in test_special.py.
COARSE = ("int64", "bool")


def plain(name, reference, others=LONG):
    samples = unary(low=-20.0, high=20.0) + unary(low=0.1, high=3.0, special=False)[:1]
    return Row(
        f"special_{name}",
        samples,
        reference=f"special.{name}",
        numpy=reference,
        others=others,
        tolerance=8 if others is COARSE else 4,
    )


def derived(name, reference):
    return Row(
        f"special_{name}",
        # PyTorch's gradient of i1 at NaN is a half.
        unary(low=-4.0, high=4.0, special=False),
        reference=f"special.{name}",
        numpy=reference,
        others=SHORT,
        tolerance=2,
    )


ROWS = [
    plain("airy_ai", lambda x: special.airy(x)[0], COARSE),
    plain("bessel_j0", special.j0, COARSE),
    plain("bessel_j1", special.j1, COARSE),
    plain("bessel_y0", special.y0, COARSE),
    plain("bessel_y1", special.y1, COARSE),
    plain("modified_bessel_i0", special.i0),
    plain("modified_bessel_i1", special.i1),
    plain("modified_bessel_k0", special.k0),
    plain("modified_bessel_k1", special.k1),
    plain("scaled_modified_bessel_k0", special.k0e),
    plain("scaled_modified_bessel_k1", special.k1e),
    plain("spherical_bessel_j0", lambda x: special.spherical_jn(0, x)),
    derived("i0e", special.i0e),
    derived("i1", special.i1),
    derived("i1e", special.i1e),
]
