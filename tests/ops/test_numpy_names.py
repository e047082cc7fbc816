"""NumPy's names for dimensions, `axis` and `keepdims`, which PyTorch's functions take too."""

from __future__ import annotations

from typing import Any

from tests.oracle import Cases, attempt

case = Cases()


def grid(T: Any) -> Any:
    return T.arange(6.0).reshape(2, 3)


@case
def views(T):
    x = grid(T)
    return [
        x.unsqueeze(axis=0).shape,
        T.squeeze(x[:1], axis=0).shape,
        [p.shape for p in T.unbind(x, axis=1)],
        [p.shape for p in T.chunk(x, 2, axis=0)],
        attempt(lambda: T.unsqueeze(x)),
    ]


@case
def operators(T):
    x = grid(T)
    return [
        T.softmax(x, axis=0),
        T.sort(x, axis=1)[0],
        T.argsort(x, axis=0),
        T.linalg.vecdot(x, x, axis=1),
    ]


@case
def functions_by_hand(T):
    x = grid(T)
    return [
        T.linalg.norm(x, axis=0),
        T.linalg.norm(x, axis=(0, 1), keepdims=True),
        T.diff(x, axis=0),
        T.fft.fftshift(x, axis=1),
        T.fft.rfft2(x, axis=(0, 1)).shape,
        T.trapezoid(x, axis=0),
    ]


test_as_pytorch = case.test()
