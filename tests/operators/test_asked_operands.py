"""Operators of a tensor and an object that is no tensor and has `__torch_function__`: it is asked, with reflected methods or without."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import xtensor

NAMES = "add sub mul truediv floordiv mod pow matmul ne lt le gt ge and_ or_ xor iadd imul itruediv".split()


class Asked:
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__, [type(a).__name__ for a in args]


class Reflected(Asked):
    def __radd__(self, other: Any) -> str:
        return "its own"


class Other:
    def __radd__(self, other: Any) -> str:
        return "its own"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", [Asked, Reflected, Other])
def test_as_in_pytorch(torch: Any, kind: Any, name: str) -> None:
    def found(t: Any) -> Any:
        made: list[Any] = []
        for swapped in (False, True):
            operands = [t.ones(2, 2), kind()]
            try:
                made.append(getattr(operator, name)(*(operands[::-1] if swapped else operands)))
            except TypeError:
                made.append(TypeError)
        return made

    assert found(xtensor) == found(torch)


def test_equality_is_asked() -> None:
    assert (xtensor.ones(2) == Asked())[1] == ["Tensor", "Asked"]
    assert (xtensor.ones(2) == Other()) is False
