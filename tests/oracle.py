"""Cases that PyTorch judges: a function of the library, run with both; values and errors must agree.

A case returns anything made of tensors, nodes and plain values, or raises; its error's class and wording count.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor

Case = Callable[[Any], Any]


class Cases:
    """A list of cases: `@case` adds one, `case.test()` makes the test over all of them."""

    def __init__(self, wording: bool = True) -> None:
        self.found: dict[str, Case] = {}
        self.wording = wording

    def __call__(self, function: Case) -> Case:
        assert function.__name__ not in self.found, f"two cases are called {function.__name__}"
        self.found[function.__name__] = function
        return function

    def test(self) -> Callable[..., None]:
        """The test function, one parameter per case."""

        @pytest.mark.parametrize("name", list(self.found))
        def check(name: str, torch: Any) -> None:
            expected, got = outcome(self.found[name], torch), outcome(self.found[name], xtensor)
            assert alike(expected, got), f"torch:   {expected}\nxtensor: {got}"

        return check


def outcome(case: Case, lib: Any) -> Any:
    """What a case gives under a library: its value in plain form, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(case(lib))
        except NameError:  # a mistake in the case, with both libraries alike
            raise
        except Exception as error:
            return raised(error)


def raised(error: BaseException) -> tuple[str, str, str]:
    """An error as its class and its wording, less the library's name and what follows a first sentence of PyTorch's."""
    text = str(error).replace("torch.", "LIB.").replace("xtensor.", "LIB.")
    text = re.sub(r"0x[0-9a-f]+|<class '[^']*'>", "…", text)
    # PyTorch names the node that the written tensor has by then, xtensor the one that made what was saved.
    text = re.sub(r", which is output \d+ of \w+,", "", text)
    text = re.sub(r" It was saved for .*? \(in \w+\)\.", "", text)
    return ("raises", type(error).__name__, " ".join(text.split()))


def attempt(function: Callable[[], Any]) -> Any:
    """What a function returns, or its error as a value: for cases with several errors."""
    try:
        return function()
    except NameError:
        raise
    except Exception as error:
        return raised(error)


def plain(value: Any) -> Any:
    """A value of either library in a form that can be compared."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if hasattr(value, "requires_grad") and hasattr(value, "tolist"):
        values = value.detach().tolist()
        return (
            "tensor",
            str(value.dtype).rpartition(".")[2],
            tuple(value.shape),
            value.requires_grad,
            values,
        )
    if hasattr(value, "next_functions"):
        return value.name().rpartition("::")[2]
    if isinstance(value, (bool, int, float, complex, str, type(None))):
        return value
    return str(value).replace("torch", "LIB").replace("xtensor", "LIB")


def alike(a: Any, b: Any) -> bool:
    """Equality, of numbers up to rounding."""
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(alike(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, (float, complex)) and isinstance(b, (float, complex)):
        return bool(np.isclose(a, b, rtol=1e-5, atol=1e-7, equal_nan=True))
    return type(a) is type(b) and a == b


def differences(cases: Cases, torch: Any) -> list[str]:
    """The cases that differ, with both outcomes: for use by hand."""
    lines = []
    for name, case in cases.found.items():
        expected, got = outcome(case, torch), outcome(case, xtensor)
        if not alike(expected, got):
            lines.append(f"{name}\n   torch:   {expected}\n   xtensor: {got}")
    return lines


def leaf(T: Any, *shape: int) -> Any:
    """A leaf of distinct values."""
    count = 1
    for s in shape:
        count *= s
    return (T.arange(count, dtype=T.float64).reshape(shape) * 0.25 + 0.5).requires_grad_()


def facts(t: Any) -> Any:
    """What autograd says of a tensor."""
    return (t.requires_grad, t.is_leaf, t.grad_fn, t._base is not None, t._version, t.output_nr)


def graph(T: Any) -> tuple[Any, Any, Any, Any]:
    """Two leaves, an intermediate result and a scalar."""
    x, w = leaf(T, 3), leaf(T, 3)
    y = x * w
    return x, w, y, (y * y).sum()


def same_error(
    make: Callable[[Any], Any], torch: Any, *, kinds: tuple[type[BaseException], ...] = (Exception,)
) -> str:
    """What `make(library)` raises, for us and for PyTorch, with our name for PyTorch's."""
    raised = []
    for library in (xtensor, torch):
        with pytest.raises(kinds) as info:
            make(library)
        raised.append((info.type, str(info.value)))
    ours, theirs = raised
    theirs = (theirs[0], re.sub(r"\btorch\b", "xtensor", theirs[1]))
    assert ours == theirs
    return theirs[1]
