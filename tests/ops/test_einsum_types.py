"""`einsum` of operands of several dtypes: multiplied as PyTorch promotes them, and refused where it would contract them."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import xtensor

TYPES = "float32 float64 int64 bool complex64 float16".split()
EQUATIONS = "i,j->ij i,i-> i,j->j ij,j->i ij,j->ij bi,b->b ij,jk->ik".split()


def found(t: Any, equation: str, types: tuple[str, ...]) -> Any:
    args = []
    for n, (term, name) in enumerate(zip(equation.split("->", maxsplit=1)[0].split(","), types, strict=True)):
        sizes = [2 + ord(c) % 3 for c in term]
        args.append((t.arange(float(math.prod(sizes))).reshape(sizes) / 4 + n).to(getattr(t, name)))
    try:
        made = t.einsum(equation, *args)
    except (RuntimeError, NotImplementedError) as error:
        return type(error), str(error).partition(".")[0]
    return str(made.dtype).partition(".")[2], np.asarray(made.to(t.complex128))


@pytest.mark.parametrize("equation", EQUATIONS)
def test_operands_of_two_dtypes(torch: Any, equation: str) -> None:
    for types in itertools.product(TYPES, repeat=2):
        ours, theirs = found(xtensor, equation, types), found(torch, equation, types)
        assert ours[0] == theirs[0], types
        if isinstance(theirs[1], str):
            assert ours[1] == theirs[1]
        else:
            np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-2 if "float16" in types else 1e-5)


def test_a_gradient_of_two_dtypes(torch: Any) -> None:
    def run(t: Any) -> Any:
        a = t.arange(3.0).requires_grad_()
        b = (t.arange(4.0) + 1j).to(t.complex64).requires_grad_()
        t.einsum("i,j->ij", a, b).abs().sum().backward()
        return a.grad.tolist(), b.grad.tolist()

    for one, other in zip(run(xtensor), run(torch), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
