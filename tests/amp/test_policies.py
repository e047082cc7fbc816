"""Autocast's policies, which stand in the operators' declarations: dtypes of results as PyTorch's, over the operator table."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import xtensor
from tests.table import ROWS, Row
from tests.table.bridge import OURS, THEIRS, Library, declared, flat, operator_named, reference_of
from tests.table.facets import key_of, unimplemented
from xtensor.operators.operator import REGISTRY

# aten's names for kernels that PyTorch's autocast does not know; here they are the public operators.
KERNELS = {"_adaptive_avg_pool3d"}
SAMPLED = 2


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


def cast_on_cpu(torch: Any) -> set[str]:
    """The names that PyTorch's autocast knows on the CPU."""
    return registered(torch, "AutocastCPU")


def registered(torch: Any, key: str) -> set[str]:
    names = torch._C._dispatch_get_all_op_names()
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return {n[6:].partition(".")[0] for n in names if n.startswith("aten::") and has(n, key)}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_dtypes_on_the_cpu_are_pytorch_s(torch, row: Row, full: bool):
    name = row.name.rpartition(".")[2]
    op = declared(row.name)
    if not full and name not in cast_on_cpu(torch) and (op is None or not op.autocast):
        return
    if name in KERNELS:
        return
    try:
        theirs = reference_of(row)
    except LookupError:
        return
    ours = operator_named(row.name)
    for dtype in ("bfloat16", "float32"):
        for sample in list(row.samples)[: None if full else SAMPLED]:
            expected, found = (
                outcome(library, module, function, row, sample, dtype, True)
                for library, module, function in ((THEIRS, torch, theirs), (OURS, xtensor, ours))
            )
            if expected == found or (isinstance(expected, Exception) and may_differ(expected, found)):
                continue
            # What differs without autocast too is no matter of its policies.
            plain = outcome(OURS, xtensor, ours, row, sample, dtype, False)
            reference = outcome(THEIRS, torch, theirs, row, sample, dtype, False)
            agree = plain == reference or (isinstance(plain, Exception) and isinstance(reference, Exception))
            assert not agree, f"{row.name}{sample} of {dtype}: {found}, PyTorch: {expected}"


def may_differ(expected: Exception, found: Any) -> bool:
    return isinstance(found, Exception) or unimplemented(expected)


@pytest.mark.parametrize(("key", "place"), [("AutocastCPU", "cpu"), ("AutocastCUDA", "accelerator")])
def test_every_operator_that_pytorch_casts_has_a_policy(torch, key: str, place: str):
    names = registered(torch, key)
    assert sorted(n for n, op in REGISTRY.items() if n in names and place not in op.autocast) == []


def test_a_missing_policy_is_found(torch, monkeypatch):
    monkeypatch.setattr(REGISTRY["mm"], "autocast", {})
    with pytest.raises(AssertionError):
        test_every_operator_that_pytorch_casts_has_a_policy(torch, "AutocastCPU", "cpu")
    with pytest.raises(AssertionError, match="PyTorch: \\['bfloat16'\\]"):
        test_dtypes_on_the_cpu_are_pytorch_s(torch, next(r for r in ROWS if r.name == "mm"), False)
