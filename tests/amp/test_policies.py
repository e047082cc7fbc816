"""Autocast's policies, which stand in the operators' declarations: dtypes of results as PyTorch's, over the operator table."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import xtensor
from tests.table import ROWS, Row
from tests.table.bridge import OURS, THEIRS, Library, declared, flat, operator_named, reference_of, torch
from tests.table.facets import key_of, unimplemented
from xtensor.operators.operator import REGISTRY

# aten's names for kernels that PyTorch's autocast does not know; here they are the public operators.
KERNELS = {"_adaptive_avg_pool3d"}


def outcome(library: Library, module: Any, function: Any, row: Row, sample: Any, dtype: str, on: bool) -> Any:
    """The dtypes of the results of a call, or the error."""
    args, kwargs, _ = library.arguments(sample, key_of(row, sample), dtype)
    with warnings.catch_warnings(), module.autocast("cpu", enabled=on):
        warnings.simplefilter("ignore")
        try:
            found = flat(function(*args, **kwargs))
        except Exception as error:
            return error
    return [str(x.dtype).rpartition(".")[2] for x in found if isinstance(x, library.tensor)]


def registered(key: str) -> set[str]:
    """The names that PyTorch's autocast knows."""
    names = torch._C._dispatch_get_all_op_names()
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return {n[6:].partition(".")[0] for n in names if n.startswith("aten::") and has(n, key)}


def cast_rows(wanted: bool) -> list[Row]:
    """The rows of operators that either library casts on the CPU, or the others."""
    theirs = set() if torch is None else registered("AutocastCPU")
    named = [
        (row, row.name.rpartition(".")[2], getattr(declared(row.name), "autocast", None)) for row in ROWS
    ]
    return [row for row, name, own in named if bool(own or name in theirs) is wanted and name not in KERNELS]


def check(row: Row, count: int | None) -> None:
    ours = operator_named(row.name)
    try:
        theirs = reference_of(row)
    except LookupError:
        return
    for dtype in ("bfloat16", "float32"):
        for sample in list(row.samples)[:count]:
            expected = outcome(THEIRS, torch, theirs, row, sample, dtype, True)
            found = outcome(OURS, xtensor, ours, row, sample, dtype, True)
            if expected == found or (isinstance(expected, Exception) and may_differ(expected, found)):
                continue
            # What differs without autocast too is no matter of its policies.
            plain = outcome(OURS, xtensor, ours, row, sample, dtype, False)
            reference = outcome(THEIRS, torch, theirs, row, sample, dtype, False)
            agree = plain == reference or (isinstance(plain, Exception) and isinstance(reference, Exception))
            assert not agree, f"{row.name}{sample} of {dtype}: {found}, PyTorch: {expected}"


def may_differ(expected: Exception, found: Any) -> bool:
    return isinstance(found, Exception) or unimplemented(expected)


@pytest.mark.skipif(torch is None, reason="torch is not installed: pip install -e '.[parity]'")
class TestPolicies:
    @pytest.mark.parametrize("row", cast_rows(True), ids=str)
    @pytest.mark.one_in(3)
    def test_what_is_cast_on_the_cpu_has_pytorch_s_dtypes(self, row: Row, full: bool):
        check(row, None if full else 2)

    @pytest.mark.full
    @pytest.mark.timeout(1800)
    def test_what_is_not_cast_has_them_too(self):
        for row in cast_rows(False):
            check(row, 3)

    @pytest.mark.parametrize(("key", "place"), [("AutocastCPU", "cpu"), ("AutocastCUDA", "accelerator")])
    def test_every_operator_that_pytorch_casts_has_a_policy(self, key: str, place: str):
        names = registered(key)
        assert sorted(n for n, op in REGISTRY.items() if n in names and place not in op.autocast) == []

    def test_a_missing_policy_is_found(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(REGISTRY["mm"], "autocast", {})
        with pytest.raises(AssertionError, match="'mm'"):
            self.test_every_operator_that_pytorch_casts_has_a_policy("AutocastCPU", "cpu")
        with pytest.raises(AssertionError, match="PyTorch: \\['bfloat16'\\]"):
            check(next(row for row in ROWS if row.name == "mm"), 1)
