"""Rows of `xtensor/ops/signal/fourier.py`."""

import numpy as np

from . import Dtype, Row, Sample, T

# Results lie in memory as XLA leaves them; a wider complex `out=` is taken, which PyTorch does for some only.
PLAIN = dict(strides=False, outs=("empty", "right", "strided", "wrong", "float64", "int32"))
FREE = dict(others=("int64", "bool", "complex64"), **PLAIN)
FULL = dict(others=("int64", "complex64"), **PLAIN)


def one(*more):
    """One dimension: cut, filled, along another dimension, of each norm, refused."""
    calls = [
        Sample(T(2, 6)),
        Sample(T(2, 5), 4, 0),
        Sample(T(2, 5), n=8, norm="ortho"),
        Sample(T(2, 6), norm="forward"),
        Sample(T(2, 6), 0),
        Sample(T(2, 6), dim=2),
        Sample(T()),
        Sample(T(2, 6), norm="other"),
    ]
    return [*calls, *more]


def many():
    """Several dimensions: all, some, of other sizes, more than XLA transforms at once, refused."""
    return [
        Sample(T(2, 6)),
        Sample(T(2, 3, 4), (5, -1), (0, 2), norm="ortho"),
        Sample(T(2, 3, 4), s=(2, 4), norm="forward"),
        Sample(T(2, 2, 3, 2, 4)),
        Sample(T(2, 6), (2,), (0, 1)),
        Sample(T(2, 6), dim=(1, 1)),
        Sample(T(2, 6), (1, 2, 3)),
        Sample(T(2, 6), (0, 2)),
        Sample(T(2, 6), dim=()),
    ]


def plane():
    return [Sample(T(2, 6)), Sample(T(2, 3, 4), (4, 2), (0, 1), "ortho"), Sample(T(3))]


def named(name, samples, **options):
    return Row(f"fft_{name}", samples, reference=f"fft.{name}", **options)


def public(name, samples, **options):
    return Row(f"fft.{name}", samples, reference=f"fft.{name}", **options)


SPACINGS = [Sample(6), Sample(5, 0.5), Sample(0), Sample(4, dtype=Dtype("int32")), Sample(-1)]

ROWS = [
    named("fft", one(), numpy=np.fft.fft, **FREE),
    named("ifft", one(), numpy=np.fft.ifft, **FREE),
    named("rfft", one(), numpy=np.fft.rfft, **FREE),
    named("irfft", one(Sample(T(2, 1))), numpy=np.fft.irfft, **FREE),
    named("hfft", one(), numpy=np.fft.hfft, **FREE),
    named("ihfft", one(), numpy=np.fft.ihfft, **FREE),
    named("fftn", many(), **FULL),
    named("ifftn", many(), **FULL),
    named("rfftn", many(), **FULL),
    named("irfftn", many(), **FULL),
    named("hfftn", many(), **FULL),
    named("ihfftn", many(), **FULL),
    public("fft2", plane(), **FULL),
    public("ifft2", plane(), **FULL),
    public("rfft2", plane(), **FULL),
    public("irfft2", plane(), **FULL),
    public("hfft2", plane(), **FULL),
    public("ihfft2", plane(), **FULL),
    public("fftfreq", SPACINGS, others=()),
    public("rfftfreq", SPACINGS, others=()),
    public("fftshift", [Sample(T(3, 4)), Sample(T(3, 4), 0), Sample(T(3, 4), dim=(1,)), Sample(T(3), 5)]),
    public("ifftshift", [Sample(T(3, 4)), Sample(T(3, 4), 0), Sample(T(3, 4), dim=(1,)), Sample(T())]),
]
