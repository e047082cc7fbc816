"""Rows of `xtensor/ops/fourier_frames.py`."""

from . import Row, Sample, T

HANN = [0.0, 0.1464466, 0.5, 0.8535534, 1.0, 0.8535534, 0.5, 0.1464466]
WINDOW = T(values=HANN)
REAL = T(values=HANN, dtype="float32")
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
            Sample(T(5, 6), 8, window=REAL),
            Sample(T(2, 5, 6), 8, 3, window=T(8, low=0.5, high=1.0, dtype="float32"), center=False),
            Sample(T(5, 6), 8, window=REAL, normalized=True, length=7),
            Sample(T(8, 6), 8, window=REAL, onesided=False, return_complex=True),
            Sample(T(8, 6), 8, window=REAL, length=40),
            Sample(T(5, 6), 8, window=REAL, center=False),
            Sample(T(5, 6), 8, 9, window=REAL),
        ],
        covers=("istft_signal",),
        dtype="complex64",
        others=("float32",),
        meta=False,
        without=("out",),
        **PLAIN,
    ),
]
