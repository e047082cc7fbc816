"""Arguments of the wrong kind, in methods and functions: PyTorch's error, word for word, and never a result."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

import xtensor

torch = pytest.importorskip("torch")

METHODS: dict[str, Callable[[Any], Any]] = {
    "transpose, str": lambda x: x.transpose("a", 0),
    "transpose, float": lambda x: x.transpose(0, 1.5),
    "transpose, bool": lambda x: x.transpose(0, True),
    "unsqueeze": lambda x: x.unsqueeze(None),
    "select, bool": lambda x: x.select(0, True),
    "select, dim": lambda x: x.select(1.0, 0),
    "diagonal": lambda x: x.diagonal(1.5),
    "unbind": lambda x: x.unbind("a"),
    "permute, later": lambda x: x.permute(0, "a"),
    "flip": lambda x: x.flip("a"),
    "flip, elements": lambda x: x.flip([1.5]),
    "unflatten": lambda x: x.unflatten("A", (1, 1)),
    "unflatten, sizes": lambda x: x.unflatten(0, 2),
    "unflatten, elements": lambda x: x.unflatten(0, ["a", 2]),
    "expand": lambda x: x.expand("a"),
    "sum, keepdim": lambda x: x.sum(0, 2),
    "sum, keepdim of NumPy's": lambda x: x.sum(0, None),
    "mean, two dims": lambda x: x.mean(0, 1),
    "amax": lambda x: x.amax(0, "a"),
    "topk": lambda x: x.topk(1, 0, 1),
    "argmax": lambda x: x.argmax(0, 1),
    "cumsum": lambda x: x.cumsum("a"),
    "softmax": lambda x: x.softmax("a"),
    "unique": lambda x: x.unique(0),
    "unique_consecutive": lambda x: x.unique_consecutive(0),
    "as_subclass": lambda x: x.as_subclass(int),
}
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "transpose": lambda lib, x: lib.transpose(x, 0, "a"),
    "unsqueeze": lambda lib, x: lib.unsqueeze(x, 1.0),
    "flatten": lambda lib, x: lib.flatten(x, 0, 1.5),
    "flip": lambda lib, x: lib.flip(x, "a"),
    "sum": lambda lib, x: lib.sum(x, 0, 2),
    "topk": lambda lib, x: lib.topk(x, 1, 0, 1),
    "unique": lambda lib, x: lib.unique(x, True, 0),
    "softshrink": lambda lib, x: lib.nn.functional.softshrink(x, -1),
    "softshrink, too large": lambda lib, x: lib.nn.functional.softshrink(x.half(), 7e4),
    "softshrink, nan": lambda lib, x: lib.nn.functional.softshrink(x, float("nan")),
    "fold": lambda lib, x: lib.nn.functional.fold(lib.ones(1, 3, 4), (4, 4), 2**33),
    "Size of floats": lambda lib, x: lib.Size([1, 2.0]),
    "Size of tensors": lambda lib, x: lib.Size(lib.ones(3)),
    "Size of text": lambda lib, x: lib.Size("12"),
    "Size and a list": lambda lib, x: x.shape + [1],
    "Size and floats": lambda lib, x: x.shape + (1.5,),
    "Size and a tensor": lambda lib, x: x.shape + lib.tensor([1]),
    "signs of quantised types": lambda lib, x: lib.qint8.is_signed,
}


def refusal(call: Callable[[], Any]) -> tuple[type[BaseException], str]:
    with pytest.raises((TypeError, RuntimeError, ValueError)) as caught:
        call()
    # Signatures that are listed differ by overloads that PyTorch has for named dimensions alone.
    text = str(caught.value).partition("\n")[0].strip()
    return caught.type, re.sub(r"\b(torch|xtensor)\.", "", text)


@pytest.mark.parametrize("case", METHODS)
def test_methods(case: str) -> None:
    ours, theirs = (refusal(lambda lib=lib: METHODS[case](lib.ones(2, 3))) for lib in (xtensor, torch))
    assert ours == theirs


@pytest.mark.parametrize("case", FUNCTIONS)
def test_functions(case: str) -> None:
    ours, theirs = (refusal(lambda lib=lib: FUNCTIONS[case](lib, lib.ones(2, 3))) for lib in (xtensor, torch))
    assert ours == theirs


def test_flags_that_equal_a_bool_are_refused_after_it_was_used() -> None:
    x = xtensor.ones(2, 3)
    assert x.sum(0, True).shape == (1, 3) and x.transpose(0, 1).shape == (3, 2)
    with pytest.raises(TypeError, match=r"'keepdim' \(position 2\) must be bool, not int"):
        x.sum(0, 1)
    with pytest.raises(TypeError, match=r"'dim1' \(position 2\) must be int, not float"):
        x.transpose(0, 1.0)


def test_a_size_holds_ints() -> None:
    import numpy as np

    made = xtensor.Size([xtensor.tensor(3), np.int64(4), True])
    assert made == (3, 4, 1) and all(type(size) is int for size in made)
    assert type(made[1:] + (xtensor.tensor(5),)) is xtensor.Size
    assert made[1:] + (xtensor.tensor(5),) == (4, 1, 5)

    class Own:
        def __radd__(self, other: object) -> int:
            return 42

    assert made + Own() == 42


def test_methods_are_pickled() -> None:
    import pickle

    for method in (xtensor.Tensor.sum, xtensor.Tensor.transpose, xtensor.sum, xtensor.transpose):
        assert pickle.loads(pickle.dumps(method)) is method
