"""How operators refuse sizes that do not broadcast, and keywords that they do not have."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import xtensor
from xtensor.operators.operator import REGISTRY, Operator


def pairs(op: Operator) -> bool:
    """Whether an element-wise operator takes two tensors and needs nothing else."""
    first = op.schema.parameters[:2]
    others = op.schema.parameters[2:]
    tensors = len(first) == 2 and all(p.kind in ("Array", "Operand") for p in first)
    return op.kind == "pointwise" and tensors and not any(p.required for p in others)


ELEMENTWISE = sorted(name for name, op in REGISTRY.items() if pairs(op) and not name.startswith("_"))


def refused(op: Operator, make: Any) -> str:
    with pytest.raises((RuntimeError, NotImplementedError, ValueError)) as caught:
        op.function(make(2, 3), make(2, 4))
    return str(caught.value)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_elementwise_operator_names_sizes_and_dimension(name: str) -> None:
    said = refused(REGISTRY[name], xtensor.ones)
    assert said == "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"


def test_there_are_many() -> None:
    assert len(ELEMENTWISE) > 40


@pytest.mark.parametrize("name", ["all", "any", "count_nonzero", "mean", "prod", "sum"])
def test_unknown_keywords_list_the_signatures(name: str) -> None:
    function = getattr(xtensor, name)
    with pytest.raises(TypeError) as caught:
        function(xtensor.ones(3), dims=0)
    first, *signatures = str(caught.value).splitlines()
    assert first.startswith(f"{name}() received an invalid combination of arguments - got (Tensor, dims=int)")
    assert len(signatures) == 2 and all("Tensor input" in s for s in signatures)
    assert "unknown" not in inspect.signature(function).parameters
