"""Rows of `xtensor/ops/network/fractional_pooling.py`."""

from . import Row, Sample, T

PLANE, SPACE = T(2, 2, 6, 7, unique=True), T(1, 2, 5, 5, 6, unique=True)
PLANES = T(values=[[[0.1, 0.7], [0.9, 0.3]], [[0.5, 0.2], [0.0, 0.99]]], grad=False)
SPACES = T(values=[[[0.1, 0.7, 0.4], [0.9, 0.3, 0.6]]], grad=False)


def samples(x, random, *options):
    return [Sample(x, 2, _random_samples=random, **o) for o in options]


FLAT = samples(PLANE, PLANES, dict(output_size=3), dict(output_ratio=(0.5, 0.4)), dict(output_size=9), {})
DEEP = samples(
    SPACE, SPACES, dict(output_size=3), dict(output_ratio=(0.5, 0.4, 0.5)), dict(output_size=9), {}
)

ROWS = [
    Row(
        f"fractional_max_pool{n}d{suffix}",
        given if suffix else [*given, Sample(*given[0].args, return_indices=True, **given[0].kwargs)],
        reference=f"nn.functional.fractional_max_pool{n}d{suffix}",
        others=(),
        covers=(f"fractional_max_pool{n}d",) if suffix else (),
    )
    for n, given in ((2, FLAT), (3, DEEP))
    for suffix in ("", "_with_indices")
]
