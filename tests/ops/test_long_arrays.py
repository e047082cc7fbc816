"""Pointwise operators, reductions and scans at sizes above a vector loop, in units in the last place (`tests/table/long_arrays.py`)."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import xtensor
from tests.table import ROWS, Row, Sample, T, long_arrays
from tests.table.bridge import operator_named
from tests.table.long_arrays import (
    BOUNDS,
    CANCELLING,
    COMPOSITES,
    DOMAINS,
    REFERENCES,
    REFUSED,
    SAMPLES,
    WITHOUT,
)
from xtensor.operators.operator import REGISTRY
from xtensor.ulps import largest_ulps, ulps

CONCERNED = [row for row in ROWS if long_arrays.concerned(row)]
JUDGED = [row for row in CONCERNED if row.name not in WITHOUT]


@pytest.mark.parametrize(
    ("row", "dtype"),
    [
        pytest.param(r, d, id=f"{r}-{d}", marks=pytest.mark.one_in(4 if d == "float32" else 8))
        for r in JUDGED
        for d in long_arrays.dtypes_of(r)
    ],
)
def test_long_arrays(row: Row, dtype: str):
    long_arrays.long_arrays(row, dtype)


@pytest.mark.parametrize("row", JUDGED, ids=str)
def test_a_long_sample_is_longer_than_a_vector_loop_and_no_multiple_of_one(row: Row):
    samples = long_arrays.long_samples(row)
    assert samples
    for sample in samples:
        sizes = [int(np.prod(t.shape)) for t in sample.tensors]
        assert max(sizes) > 1024 and max(sizes) % 16


def test_every_pointwise_operator_reduction_and_scan_is_judged():
    reached = {name for row in JUDGED for name in (row.name.rpartition(".")[2], *row.covers)}
    kinds = long_arrays.KINDS
    missing = [op.name for op in REGISTRY.values() if op.kind in kinds and op.name not in reached]
    assert missing == [*WITHOUT]


def test_the_tables_name_rows_that_there_are():
    names = {row.name for row in CONCERNED}
    tables = (BOUNDS, CANCELLING, COMPOSITES, DOMAINS, REFERENCES, SAMPLES, WITHOUT, *REFUSED.values())
    assert {name for table in tables for name in table} <= names


@pytest.mark.parametrize("name", ["log1p", "atanh", "special_xlog1py"])
def test_logarithms_near_one_in_float64(name):
    """XLA's own `log1p` is 128 units off between -0.45 and -0.35."""
    x = np.linspace(-0.6, 0.6, 10_007)
    arguments = [xtensor.tensor(x)]
    right = {"log1p": np.log1p, "atanh": np.arctanh, "special_xlog1py": np.log1p}[name](
        x.astype(np.longdouble)
    )
    if name == "special_xlog1py":
        arguments.insert(0, xtensor.ones(x.size, dtype=xtensor.float64))
    assert largest_ulps(operator_named(name)(*arguments).numpy(), right) < 4


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_whole_powers_of_two_are_exact(dtype):
    """XLA's `exp2` multiplies by log 2 first, and is 16 units off at 30."""
    exponents = np.arange(-126, 128).astype(dtype)
    right = np.ldexp(1.0, exponents.astype(int)).tolist()
    assert xtensor.exp2(xtensor.tensor(exponents)).tolist() == right
    ends = xtensor.tensor([2.0**11, -(2.0**11), np.inf, -np.inf, np.nan], dtype=getattr(xtensor, dtype))
    np.testing.assert_array_equal(xtensor.exp2(ends).numpy(), [np.inf, 0, np.inf, 0, np.nan])


# The facet must be able to fail.


def test_an_error_in_the_vector_loop_is_found(monkeypatch):
    tanh = operator_named("tanh")

    def wrong(x):
        made = tanh(x)
        if x.numel() >= 64:
            made[17] += 1e-4
        return made

    row = next(r for r in ROWS if r.name == "tanh")
    monkeypatch.setattr(long_arrays, "operator_named", lambda _: wrong)
    with pytest.raises(AssertionError, match="units in the last place") as failure:
        long_arrays.long_arrays(row, "float32")
    assert "tanh(T(1031)) with float32" in failure.value.__notes__[-1]


def test_a_row_without_a_reference_is_found():
    with pytest.raises(AssertionError, match="has no NumPy function"):
        long_arrays.long_arrays(Row("tanh", [Sample(T(2, 3))]), "float32")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_ulps(dtype):
    info = ml_dtypes.finfo(dtype)
    one, eps = np.ones(3, dtype), float(info.eps)
    assert largest_ulps(one, np.ones(3)) == 0
    assert largest_ulps(one, np.full(3, 1 + 2 * eps)) == 2
    # Below 1 the numbers are twice as dense, and a power of two belongs to what follows it.
    assert largest_ulps(np.asarray([0.75], dtype), np.asarray([0.75 + eps])) == 2
    assert largest_ulps(np.asarray([0.0], dtype), np.asarray([float(info.smallest_normal) / 2])) <= 0.5
    assert largest_ulps(np.asarray([np.nan, np.inf], dtype), np.asarray([np.nan, np.inf])) == 0
    assert np.isinf(ulps(np.asarray([np.nan, np.inf, 1], dtype), np.asarray([1, 1, np.nan]))).all()
    huge = np.asarray([float(info.max)], np.longdouble) * 2
    assert largest_ulps(np.asarray([np.inf], dtype), huge) == 0
    assert largest_ulps(np.asarray([float(info.max)], dtype), huge) == 0
    assert np.isinf(largest_ulps(np.asarray([-np.inf], dtype), huge))


def test_ulps_at_the_largest_value():
    assert largest_ulps(np.float32([1.0, 0.0]), np.float64([1.0, 2.0**-24]), norm=True) == 0.5
    assert largest_ulps(np.complex64([1 + 0j]), np.complex128([1 + 2.0**-23 * 1j])) == 1
    assert largest_ulps(np.int32([1, 2]), np.int64([1, 2])) == 0
    assert np.isinf(largest_ulps(np.int32([1, 2]), np.int64([1, 3])))
    assert largest_ulps(np.float32([]), np.float64([])) == 0
    with pytest.raises(ValueError, match="shape"):
        largest_ulps(np.zeros(2), np.zeros(3))
