"""Operands that are written to after a call: refused where a gradient is made of them, as in PyTorch, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xtensor

CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "mul": lambda t, x, c: x * c,
    "einsum": lambda t, x, c: t.einsum("ij,ij->ij", x, c),
    "einsum of three": lambda t, x, c: t.einsum("ij,jk,kl->il", x, c, c),
    "tensordot": lambda t, x, c: t.tensordot(x, c, 1),
    "ldexp": lambda t, x, c: t.ldexp(x, c),
    "vecdot": lambda t, x, c: t.linalg.vecdot(x, c),
    "cross": lambda t, x, c: t.linalg.cross(x[:, :3], c[:, :3]),
    "solve": lambda t, x, c: t.linalg.solve(c + 4 * t.eye(4), x),
    "kl_div": lambda t, x, c: t.nn.functional.kl_div(x, c, reduction="sum"),
    "mse_loss": lambda t, x, c: t.nn.functional.mse_loss(x, c),
    "l1_loss": lambda t, x, c: t.nn.functional.l1_loss(x, c),
    "gaussian_nll_loss": lambda t, x, c: t.nn.functional.gaussian_nll_loss(x, c, t.ones(4, 4)),
    "pairwise_distance": lambda t, x, c: t.nn.functional.pairwise_distance(x, c),
    "exp": lambda t, x, c: (x * c).exp(),
}


def gradient(t: Any, name: str, written: str) -> Any:
    values = [[0.1 * (4 * i + j + 1) ** 0.5 for j in range(4)] for i in range(4)]
    weight, other = t.tensor(values, requires_grad=True), t.tensor(values).T.contiguous()
    x = weight * 1.0
    made = CALLS[name](t, x, other)
    with t.no_grad():
        (x if written == "x" else other).add_(1.0)
    try:
        made.sum().backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return weight.grad.tolist()


@pytest.mark.parametrize("written", ["x", "other"])
@pytest.mark.parametrize("name", CALLS)
def test_what_no_gradient_is_made_of_may_be_written_to(torch: Any, name: str, written: str) -> None:
    found, wanted = gradient(xtensor, name, written), gradient(torch, name, written)
    if isinstance(wanted, bool):
        assert found == wanted
    else:
        assert not isinstance(found, bool)
        assert xtensor.tensor(found).allclose(xtensor.tensor(wanted), rtol=1e-4, atol=1e-6)


def test_stages_of_a_solver_are_written_into_one_tensor(torch: Any) -> None:
    def run(t: Any) -> Any:
        w = (t.arange(12.0).reshape(4, 3) / 10).requires_grad_()
        k = t.zeros(6, 4, 3)
        k[0] = w * 2
        for i in range(1, 4):
            k[i] = t.tanh(t.einsum("j,jbf->bf", t.ones(i), k[:i]) * w)
        k.sum().backward()
        return w.grad.tolist()

    assert xtensor.tensor(run(xtensor)).allclose(xtensor.tensor(run(torch)), rtol=1e-5)
