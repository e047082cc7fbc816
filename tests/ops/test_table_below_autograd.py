"""Every operator of the table under a mode that lets operators run: results and gradients are those without it."""

from __future__ import annotations

from typing import Any

import pytest

import xtensor
from tests.table import ROWS, Row, facets
from tests.table.bridge import operator_named
from xtensor.utils._python_dispatch import BaseTorchDispatchMode

# JAX has no derivative of the derivative of its ragged product, which the way below autograd asks for.
RUN = [r for r in ROWS if not (r.random or r.empty or r.name == "grouped_mm")]


def outcome(row: Row, sample: Any) -> Any:
    args, kwargs, inputs = facets.OURS.arguments(sample, facets.key_of(row, sample), row.dtype, grad=row.grad)
    result, error = facets.attempt(operator_named(row.name), args, kwargs)
    if error is not None:
        return type(error), str(error)
    found = [t for t in facets.flat(result) if isinstance(t, xtensor.Tensor)]
    grads = []
    leaves = [i for i in inputs if i.requires_grad]
    for t in found:
        if t.requires_grad:
            options = {"allow_unused": True, "retain_graph": True}
            made, error = facets.attempt(xtensor.autograd.grad, (t.sum().abs(), leaves), options)
            grads += made if error is None else []
    return [None if t is None else t.detach().resolve_conj().resolve_neg() for t in [*found, *grads]]


@pytest.mark.parametrize("row", RUN[::9], ids=str)
def test_a_mode_that_lets_all_run_changes_nothing(row: Row) -> None:
    compare(row)


@pytest.mark.full
@pytest.mark.parametrize("row", RUN, ids=str)
def test_no_operator_is_changed(row: Row) -> None:
    compare(row)


def compare(row: Row) -> None:
    sample = row.samples[0]
    plain = outcome(row, sample)
    with BaseTorchDispatchMode():
        seen = outcome(row, sample)
    if isinstance(plain, tuple):
        assert seen == plain
        return
    assert len(seen) == len(plain)
    for a, b in zip(seen, plain, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            # Programs that are put together otherwise round otherwise.
            assert a.dtype is b.dtype
            assert xtensor.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
