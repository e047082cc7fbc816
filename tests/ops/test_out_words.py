"""What operators say to an `out=` tensor whose dtype or sizes do not suit, judged by PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

from tests.oracle import Cases, attempt

case = Cases()


def tried(T: Any, call: Any, *outs: Any) -> list[Any]:
    """What a call gives or raises with each of some tensors for its result, and whether it warns of resizing."""
    found = []
    for out in outs:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            made = attempt(lambda out=out: tuple(call(out).shape))
        kinds = [str(w.message).split(" (Triggered")[0] for w in told]
        found.append([made, [k for k in kinds if "deprecated in favor" not in k]])
    return found


def outs(T: Any) -> list[Any]:
    return [T.empty(0, dtype=T.int32), T.empty(0, dtype=T.float64)]


@case
def products(T):
    v, m = T.ones(2), T.eye(2)
    calls = [
        lambda o: T.dot(v, v, out=o),
        lambda o: T.matmul(m, m, out=o),
        lambda o: T.mv(m, v, out=o),
        lambda o: T.tensordot(m, m, 1, out=o),
        lambda o: T.linalg.vecdot(v, v, out=o),
        lambda o: T.linalg.multi_dot([m, m], out=o),
    ]
    return [tried(T, call, *outs(T)) for call in calls]


@case
def systems(T):
    m = T.eye(2)
    calls = [
        lambda o: T.linalg.cond(m, out=o),
        lambda o: T.linalg.pinv(m, out=o),
        lambda o: T.linalg.matrix_norm(m, out=o),
        lambda o: T.cholesky_inverse(m, out=o),
        lambda o: T.linalg.tensorinv(m, ind=1, out=o),
        lambda o: T.linalg.eigvals(m, out=o),
        lambda o: T.linalg.eigvalsh(m, out=o),
        lambda o: T.linalg.svdvals(m, out=o),
    ]
    pair = (T.empty(0, dtype=T.complex64), T.empty(0))
    return [tried(T, call, *outs(T)) for call in calls], attempt(lambda: T.linalg.eig(m, out=pair))


@case
def reductions(T):
    v = T.ones(3)
    calls = [
        lambda o: T.amax(v, 0, out=o),
        lambda o: T.all(v, 0, out=o),
        lambda o: T.mean(v, 0, out=o),
        lambda o: T.logsumexp(v, 0, out=o),
        lambda o: T.quantile(v, 0.5, out=o),
        lambda o: T.cumsum(v.int(), 0, dtype=T.int64, out=o),
        lambda o: T.sum(v.int(), 0, dtype=T.int64, out=o),
    ]
    return [tried(T, call, *outs(T)) for call in calls]


@case
def elements(T):
    v = T.ones(3)
    calls = [
        lambda o: T.clamp(v, 0, out=o),
        lambda o: T.signbit(v, out=o),
        lambda o: T.heaviside(v, v, out=o),
        lambda o: T.float_power(v, 2, out=o),
        lambda o: T.take(v, T.tensor([0]), out=o),
        lambda o: T.searchsorted(v, v, out=o),
        lambda o: T.fft.fft(v, out=o),
        lambda o: T.fft.irfft(v, out=o),
        lambda o: T.complex(v, v, out=o),
    ]
    return [tried(T, call, *outs(T)) for call in calls]


@case
def factories_resize_quietly(T):
    return [
        tried(T, lambda o: T.arange(0, 5, out=o), T.empty(2, 3)),
        tried(T, lambda o: T.linspace(0, 1, 5, out=o), T.empty(2)),
        tried(T, lambda o: T.zeros(3, out=o), T.empty(2)),
        tried(T, lambda o: T.eye(3, out=o), T.empty(2)),
        tried(T, lambda o: T.add(T.ones(3), 1, out=o), T.empty(2)),
        attempt(lambda: T.zeros((3, 4), layout=T.sparse_coo, out=T.empty(3, 4))),
    ]


test_as_pytorch = case.test()
