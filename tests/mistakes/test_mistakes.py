"""At least 99 of 100 typical mistakes raise PyTorch's class, and 97 tell its facts."""

from __future__ import annotations

from typing import Any

import pytest

import xtensor

from . import MISTAKES, judge
from .case import facts


@pytest.fixture(scope="module")
def verdicts(torch: Any) -> list[Any]:
    return judge(torch, xtensor)


def test_there_are_many() -> None:
    assert len(MISTAKES) >= 228


def test_every_case_is_a_mistake(verdicts: list[Any]) -> None:
    assert [v.name for v in verdicts if v.theirs.kind is None] == []


def test_the_class(verdicts: list[Any]) -> None:
    others = [(v.name, v.theirs, v.ours) for v in verdicts if not v.same_class]
    assert len(others) <= 0.01 * len(verdicts), others


def test_the_facts(verdicts: list[Any]) -> None:
    others = [(v.name, v.theirs, v.ours) for v in verdicts if not v.same_facts]
    assert len(others) <= 0.03 * len(verdicts), others


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The size of tensor a (3) must match", {"3"}),
        ("linear(): argument 'input' must be Tensor", {"linear", "input", "Tensor"}),
        ("got torch.FloatTensor of [-1, 0.5]", {"FloatTensor", "-1", "0.5"}),
        ("sum() received an invalid combination of arguments - got (int), but expected (float x)", {"sum"}),
    ],
)
def test_what_is_a_fact(text: str, expected: set[str]) -> None:
    assert facts(text) == expected
