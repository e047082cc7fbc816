"""Rows of `xtensor/ops/pointwise/probability.py`."""

from scipy import special

from . import Row, binary, unary

LONG = ("float64", "int64", "bool")
SHORT = ("float64", "int64", "bool", "bfloat16")


def named(name, samples, others, reference, **options):
    return Row(
        f"special_{name}", samples, reference=f"special.{name}", numpy=reference, others=others, **options
    )


ROWS = [
    # At the largest arguments an exponential multiplies rounding errors.
    named("erfcx", unary(low=-3.0, high=20.0), LONG, special.erfcx, tolerance=4),
    named("ndtr", unary(low=-4.0, high=4.0), SHORT, special.ndtr),
    # PyTorch's gradient at -inf is NaN.
    named("log_ndtr", unary(low=-20.0, high=4.0, special=False), LONG, special.log_ndtr),
    named("ndtri", unary(low=0.05, high=0.95), LONG, special.ndtri),
    named("entr", unary(low=0.1, high=4.0), SHORT, special.entr),
    named("xlog1py", binary(low=-0.5), SHORT, special.xlog1py),
]
