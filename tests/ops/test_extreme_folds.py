"""NaN comes through every fold to an extremum, at sizes where XLA's library for CPUs drops it."""

import math

import pytest

import xtensor
import xtensor.nn.functional as F
from xtensor.nn.utils import clip_grad_norm_

INF = math.inf
FOLDS = {
    "amax": lambda x: x.amax((0, 1)),
    "amax rows": lambda x: x.amax(1),
    "amin columns": lambda x: x.amin(0),
    "max": lambda x: x.max(),
    "min rows": lambda x: x.min(1)[0],
    "aminmax": lambda x: x.aminmax()[1],
    "infinite norm": lambda x: xtensor.linalg.vector_norm(x, INF),
    "least norm of rows": lambda x: xtensor.linalg.vector_norm(x, -INF, 1),
    "cdist": lambda x: xtensor.cdist(x, x, p=INF),
    "one window": lambda x: F.max_pool2d(x[None], tuple(x.shape)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FOLDS)
def test_nan_comes_through(name, dtype):
    x = xtensor.arange(64 * 64, dtype=getattr(xtensor, dtype)).reshape(64, 64)
    fold = FOLDS[name]
    assert not fold(x).isnan().any()
    x[3, 5] = math.nan
    assert fold(x).isnan().any()
    x[:] = math.nan
    assert fold(x).isnan().all()


@pytest.mark.parametrize("filled", [INF, -INF, 1.0])
def test_nan_comes_through_where_it_is_looked_for(filled):
    """Of many elements, whose sum says whether there may be one."""
    x = xtensor.full((300, 300), filled)
    x[0, 0], x[1, 1] = INF, -INF
    assert x.amax().item() == INF and x.amin().item() == -INF
    assert not x.amax(0).isnan().any()
    x[7, 9] = math.nan
    assert x.amax().isnan() and x.amin().isnan()
    assert x.amax(0).isnan().sum().item() == 1


def test_nan_comes_through_where_one_program_serves_several_sizes():
    for rows in range(2, 9):
        for columns in range(2, 9):
            x = xtensor.full((rows, columns), math.nan)
            assert x.amax((0, 1)).isnan() and x.amin((0, 1)).isnan()


@pytest.mark.parametrize("norm", [INF, -INF])
def test_nan_comes_through_clipping(norm):
    p = xtensor.ones(64, 64).requires_grad_()
    p.grad = xtensor.ones(64, 64)
    p.grad[3, 5] = math.nan
    assert clip_grad_norm_([p], 1.0, norm_type=norm).isnan()
