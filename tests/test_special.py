"""Special functions over wide ranges against SciPy's, in float64 and float32, with what they are at their ends."""

import numpy as np
import pytest

import xtensor

special = pytest.importorskip("scipy.special")

WIDE = np.concatenate(
    [np.linspace(-30, 30, 601), 10.0 ** np.linspace(-12, 2, 60), -(10.0 ** np.linspace(-12, 2, 60))]
)
INSIDE = np.linspace(0.001, 0.999, 500)

# Function, SciPy's, points; relative and absolute error in units of rounding of the dtype.
FUNCTIONS = [
    ("airy_ai", lambda x: special.airy(x)[0], WIDE, 300, 40),
    ("bessel_j0", special.j0, WIDE, 300, 20),
    ("bessel_j1", special.j1, WIDE, 300, 20),
    ("bessel_y0", special.y0, WIDE, 300, 40),
    ("bessel_y1", special.y1, WIDE, 300, 20),
    ("modified_bessel_i0", special.i0, WIDE, 100, 0),
    ("modified_bessel_i1", special.i1, WIDE, 100, 0),
    ("modified_bessel_k0", special.k0, WIDE, 60, 0),
    ("modified_bessel_k1", special.k1, WIDE, 60, 0),
    ("scaled_modified_bessel_k0", special.k0e, WIDE, 20, 0),
    ("scaled_modified_bessel_k1", special.k1e, WIDE, 20, 0),
    ("spherical_bessel_j0", lambda x: special.spherical_jn(0, x), WIDE, 4, 4),
    ("i0e", special.i0e, WIDE, 20, 0),
    ("i1", special.i1, WIDE, 100, 0),
    ("i1e", special.i1e, WIDE, 20, 0),
    ("erfcx", special.erfcx, WIDE[WIDE > -9], 40, 0),
    ("ndtr", special.ndtr, WIDE, 60, 4),
    ("log_ndtr", special.log_ndtr, WIDE[WIDE < 5], 100, 0),
    ("ndtri", special.ndtri, INSIDE, 20, 2),
    ("entr", special.entr, WIDE[WIDE > 0], 4, 1),
]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "name, expected, points, relative, absolute", FUNCTIONS, ids=[f[0] for f in FUNCTIONS]
)
def test_accuracy(name, expected, points, relative, absolute, dtype):
    x = points.astype(dtype)
    limits = np.finfo(dtype)
    with np.errstate(all="ignore"):
        wanted = np.asarray(expected(x.astype(np.float64)))
        there = (np.abs(wanted) < limits.max) & ~((np.abs(wanted) < 100 * limits.tiny) & (wanted != 0))
    found = getattr(xtensor.special, name)(xtensor.tensor(x)).numpy()
    assert found.dtype == dtype
    # Waves of a large argument know their phase as well as the argument itself.
    spread = 1 + (np.abs(x[there]) if absolute else 0)
    np.testing.assert_array_less(
        np.abs(found[there] - wanted[there]),
        limits.eps * (relative * np.abs(wanted[there]) + absolute * spread) + limits.tiny,
    )


ENDS = [
    ("bessel_j0", [0.0], [1.0]),
    ("bessel_y0", [0.0, -1.0], [-np.inf, np.nan]),
    ("bessel_y1", [0.0, -1.0], [-np.inf, np.nan]),
    ("modified_bessel_k0", [0.0, np.inf, -1.0], [np.inf, 0.0, np.nan]),
    ("scaled_modified_bessel_k1", [0.0, np.inf, -1.0], [np.inf, 0.0, np.nan]),
    ("spherical_bessel_j0", [0.0, np.inf, -np.inf], [1.0, 0.0, 0.0]),
    ("erfcx", [0.0, np.inf, -np.inf], [1.0, 0.0, np.inf]),
    ("log_ndtr", [np.inf, -np.inf], [0.0, -np.inf]),
    ("ndtr", [np.inf, -np.inf], [1.0, 0.0]),
    ("ndtri", [0.0, 1.0, -0.1, 1.1], [-np.inf, np.inf, np.nan, np.nan]),
    ("entr", [0.0, -1.0, np.inf], [0.0, -np.inf, -np.inf]),
]


@pytest.mark.parametrize("name, points, values", ENDS, ids=[e[0] for e in ENDS])
def test_ends(name, points, values):
    found = getattr(xtensor.special, name)(xtensor.tensor([*points, np.nan], dtype=xtensor.float64))
    np.testing.assert_array_equal(found.numpy(), [*values, np.nan])


def test_zeta_of_negative_bases():
    x = xtensor.tensor([3.0, 4.0, 5.0, 20.5, 2.5, 2.0], dtype=xtensor.float64)
    q = xtensor.tensor([-2.5, -0.5, 0.25, 10.0, -0.5, -3.0], dtype=xtensor.float64)
    wanted = special.zeta(x.numpy(), q.numpy())
    np.testing.assert_allclose(xtensor.special.zeta(x, q).numpy(), wanted, rtol=1e-13)


def test_incomplete_gamma_of_large_shapes_in_float32():
    a = xtensor.tensor([1e-3, 0.5, 50.0, 1e3, 1e5])
    x = xtensor.tensor([1e-3, 2.0, 40.0, 1e3, 1e5])
    for ours, theirs in (
        (xtensor.special.gammainc, special.gammainc),
        (xtensor.special.gammaincc, special.gammaincc),
    ):
        wanted = theirs(a.numpy().astype(np.float64), x.numpy().astype(np.float64))
        np.testing.assert_allclose(ours(a, x).numpy(), wanted, rtol=2e-6)
