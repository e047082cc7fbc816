"""Expressions of sparse tensors, in every layout in which PyTorch answers: its values, layouts and gradients."""

from __future__ import annotations

import pathlib
import re
import warnings
from typing import Any

import numpy as np
import pytest

import xtensor
from tests.sparse.expressions import LAYOUTS, gradients_of, same, value_of

torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")

HERE = pathlib.Path(__file__).parent
VALUES = (HERE / "expressions.txt").read_text().splitlines()
GRADIENTS = (HERE / "gradients.txt").read_text().splitlines()
WRONG_IN_PYTORCH = re.compile(r"t\.(sparse\.)?mm\(s, ?p(\)|, ?out)")
"""Products of two CSC matrices whose result PyTorch leaves empty."""
PRODUCTS = re.compile(r"@|mm\(|mv\(|linear|matmul")
"""Where PyTorch's gradient of a sparse factor is dense, and ours has the elements that are stored."""
SHARE = 9
"""One expression of so many is run unless all are asked for."""


def chosen(lines: list[str], layout: str, full: bool) -> list[str]:
    return lines if full else lines[LAYOUTS.index(layout) :: SHARE]


def asked(function: Any, *args: Any) -> Any:
    """What a library makes of an expression; None where it refuses."""
    try:
        return function(*args)
    except Exception:  # PyTorch refuses about half of them in one layout or another
        return None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_are_pytorch_s(layout: str, full: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in chosen(VALUES, layout, full):
            expected = asked(value_of, torch, layout, text)
            if expected is None or (layout == "csc" and WRONG_IN_PYTORCH.search(text)):
                continue
            assert same(value_of(xtensor, layout, text), expected), (layout, text)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_are_pytorch_s(layout: str, full: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for text in chosen(GRADIENTS, layout, full):
            expected = asked(gradients_of, torch, layout, text)
            if expected is None:
                continue
            found = gradients_of(xtensor, layout, text)
            assert found.keys() == expected.keys(), (layout, text)
            for name, wanted in expected.items():
                # A product's sparse factor has a gradient where it is stored.
                stored = found[name] != 0 if PRODUCTS.search(text) else np.ones(wanted.shape, bool)
                assert np.allclose(found[name][stored], wanted[stored], rtol=1e-4, atol=1e-4), (
                    layout,
                    text,
                    name,
                )


FUNCTIONS: dict[str, Any] = {
    "dense": lambda t, s: s.to_dense(),
    "dense, whole gradient": lambda t, s: s.to_dense(masked_grad=False),
    "scaled": lambda t, s: (s * 2).to_dense(masked_grad=False),
    "sum": lambda t, s: s.sum(),
    "sparse": lambda t, s: s * 2,
    "product": lambda t, s: t.sparse.mm(s, t.ones(3, 2, dtype=t.float64)),
}


@pytest.mark.parametrize(
    ("layout", "name"),
    [(lay, n) for lay in ("coo", "csr", "bsr") for n in FUNCTIONS if (lay, n) != ("bsr", "product")],
)
@pytest.mark.parametrize("masked", [True, False])
def test_gradcheck_takes_sparse_tensors(layout: str, masked: bool, name: str) -> None:
    """With elements that are not stored as variables, and without; through the elements too."""

    def verdicts(t: Any) -> list[Any]:
        whole = t.tensor([[0.0, 2.0, 3.0], [1.0, 0.0, 0.0]], dtype=t.float64)
        options = {"blocksize": (1, 1)} if layout == "bsr" else {}
        found = []
        for check in (t.autograd.gradcheck, t.sparse.as_sparse_gradcheck(t.autograd.gradcheck)):
            s = whole.to_sparse(layout=getattr(t, f"sparse_{layout}"), **options).requires_grad_()
            try:
                found.append(check(lambda a: FUNCTIONS[name](t, a), (s,), masked=masked))
            except (ValueError, RuntimeError) as error:
                found.append((type(error).__name__, str(error).splitlines()[0][:40]))
        return found

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert verdicts(xtensor) == verdicts(torch)
