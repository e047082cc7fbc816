"""Rows of `xtensor/ops/signal/fourier_frames.py`."""

from . import Row, Sample, T

HANN = [0.0, 0.1464466, 0.5, 0.8535534, 1.0, 0.8535534, 0.5, 0.1464466]
WINDOW = T(values=HANN)


def C(*shape):
    """A spectrum."""
    return T(*shape, dtype="complex128")


PLAIN = dict(strides=False, layouts=False)

ROWS = [
    Row(
        "stft",
        [
            Sample(T(24), 8, window=WINDOW, return_complex=True),
            Sample(T(2, 20), 8, 3, 8, WINDOW, False, "reflect", True, return_complex=True),
            Sample(T(2, 20), 8, window=WINDOW, return_complex=False),
            Sample(T(20), 10, 2, 8, WINDOW, center=False, onesided=False, return_complex=True),
            Sample(T(20), 10, 2, 8, WINDOW, center=False, align_to_window=True, return_complex=True),
            Sample(T(20), 8, window=WINDOW),
            Sample(T(20), 8, 0, window=WINDOW, return_complex=True),
            Sample(T(20), 30, center=False, return_complex=True),
            Sample(T(20), 8, window=T(5), return_complex=True),
        ],
        covers=("stft_frames",),
        others=("float64", "complex64"),
        without=("out",),
        **PLAIN,
    ),
    Row(
        "istft",
        [
            Sample(C(5, 6), 8, window=WINDOW),
            Sample(C(2, 5, 6), 8, 3, window=T(8, low=0.5, high=1.0), center=False),
            Sample(C(5, 6), 8, window=WINDOW, normalized=True, length=7),
            Sample(C(8, 6), 8, window=WINDOW, onesided=False, return_complex=True),
            Sample(C(8, 6), 8, window=WINDOW, length=40),
            Sample(C(5, 6), 8, window=WINDOW, center=False),
            Sample(C(5, 6), 8, 9, window=WINDOW),
        ],
        covers=("istft_signal",),
        slopes=False,  # a real result of complex input, half of whose ends does not count
        dtype="float64",
        others=(),
        meta=False,
        without=("out",),
        **PLAIN,
    ),
]
