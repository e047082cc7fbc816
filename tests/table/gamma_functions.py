"""Rows of `xtensor/ops/pointwise/gamma_functions.py`."""

from scipy import special

from . import Row, binary

SHORT = ("float64", "int64", "bfloat16")

ROWS = [
    Row("igamma", binary(low=0.1, high=6.0, number=None), others=SHORT, tolerance=4),
    Row("igammac", binary(low=0.1, high=6.0, number=None), others=SHORT, tolerance=4),
    Row(
        "special_zeta",
        binary(low=1.5, high=6.0, number=2.5, special=False),
        reference="special.zeta",
        numpy=special.zeta,
        others=("float64", "int64"),
    ),
]
