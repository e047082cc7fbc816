"""Rows of `xtensor/ops/signal/windows.py` and of `xtensor/signal/windows.py`."""

from . import Dtype, Row, Sample


def lengths(*more):
    return [
        Sample(7),
        Sample(8, False),
        Sample(1),
        Sample(0),
        Sample(-1),
        Sample(5, dtype=Dtype("float64")),
        Sample(5, dtype=Dtype("float16")),
        Sample(5, dtype=Dtype("int32")),
        *more,
    ]


def shapes(*more):
    return [
        Sample(7),
        Sample(8, sym=False),
        Sample(1),
        Sample(0),
        Sample(-1),
        Sample(5, dtype=Dtype("float64")),
        Sample(5, dtype=Dtype("bfloat16")),
        *more,
    ]


def public(name, samples):
    return Row(f"signal.windows.{name}", samples, reference=f"signal.windows.{name}", others=())


ROWS = [
    Row("bartlett_window", lengths(), others=()),
    Row("blackman_window", lengths(), others=()),
    Row("hamming_window", lengths(Sample(6, True, 0.5, 0.5)), others=()),
    Row("hann_window", lengths(), others=()),
    Row("kaiser_window", lengths(Sample(6, True, 8.0)), others=()),
    public("bartlett", shapes()),
    public("blackman", shapes()),
    public("cosine", shapes()),
    public(
        "exponential",
        shapes(Sample(5, tau=2.0), Sample(5, center=2, sym=False), Sample(5, tau=-1), Sample(5, center=2)),
    ),
    public("gaussian", shapes(Sample(5, std=2.0), Sample(5, std=0))),
    public(
        "general_cosine",
        [Sample(7, a=[0.5, 0.3, 0.2]), Sample(6, a=(1.0,), sym=False), Sample(5, a=[]), Sample(5, a=2.0)],
    ),
    public("general_hamming", shapes(Sample(5, alpha=0.3))),
    public("hamming", shapes()),
    public("hann", shapes()),
    public("kaiser", shapes(Sample(5, beta=3.0), Sample(5, beta=-1.0))),
    public("nuttall", shapes()),
]
