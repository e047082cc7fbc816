"""Cross entropy and its first two derivatives, which read what its kernel keeps, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xtensor

TOLERANCES = {"float32": 1e-5, "float64": 1e-11, "bfloat16": 2e-2, "float16": 3e-3}
"""By the logits' type: how far values may be off, by the largest (or by one), from what PyTorch computes in float64."""


def derivatives(lib: Any, logits: Any, target: Any, weight: Any, computed: str, **options: Any) -> list[Any]:
    x = lib.tensor(logits).to(getattr(lib, computed)).requires_grad_()
    w = None if weight is None else lib.tensor(weight).to(x.dtype)
    loss = lib.nn.functional.cross_entropy(x, lib.tensor(target), weight=w, **options)
    (first,) = lib.autograd.grad((loss * loss).sum(), x, create_graph=True)
    (second,) = lib.autograd.grad((first * first).sum(), x)
    return [t.detach().to(lib.float64).numpy() for t in (loss, first, second)]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(
    ("shape", "weighted", "options"),
    [
        ((7, 13), False, {}),
        ((7, 13), True, {"reduction": "sum", "label_smoothing": 0.1}),
        ((2, 5, 3), True, {"reduction": "none"}),
        ((13,), False, {"label_smoothing": 0.2}),
    ],
    ids=str,
)
def test_first_and_second_derivatives(
    torch: Any,
    rng: np.random.Generator,
    dtype: str,
    shape: tuple[int, ...],
    weighted: bool,
    options: dict[str, Any],
):
    classes = shape[0] if len(shape) == 1 else shape[1]
    target = np.asarray(rng.integers(0, classes, shape[:1][: len(shape) - 1] + shape[2:]))
    if target.ndim:
        target.flat[0] = -100  # ignored
    rounded = lambda values: torch.tensor(values).to(getattr(torch, dtype)).double().numpy()
    logits = rounded(3 * rng.normal(size=shape))
    weight = rounded(rng.uniform(0.1, 1, classes)) if weighted else None
    expected = derivatives(torch, logits, target, weight, "float64", **options)
    found = derivatives(xtensor, logits, target, weight, dtype, **options)
    for want, got in zip(expected, found, strict=True):
        assert np.abs(want - got).max() <= TOLERANCES[dtype] * max(1, np.abs(want).max())


def test_extreme_logits(torch: Any):
    rows = [[-np.inf, 0.0, 1.0], [1e30, 0.0, -1e30], [-np.inf] * 3, [np.inf, 0.0, 0.0], [-200.0, 0.0, -100.0]]
    for row in rows:
        made = []
        for lib in (torch, xtensor):
            x = lib.tensor([row], dtype=lib.float32, requires_grad=True)
            loss = lib.nn.functional.cross_entropy(x, lib.tensor([1]))
            loss.backward()
            made.append((loss.item(), x.grad.numpy()))
        np.testing.assert_allclose(made[0][0], made[1][0], rtol=1e-6)
        np.testing.assert_allclose(made[0][1], made[1][1], rtol=1e-5, atol=1e-38)


def test_logits_may_be_written_before_backward(torch: Any):
    gradients = []
    for lib in (torch, xtensor):
        x = lib.tensor([[0.5, -1.0, 2.0]], requires_grad=True)
        logits = x * 2
        loss = lib.nn.functional.cross_entropy(logits, lib.tensor([1]))
        logits.zero_()
        loss.backward()
        gradients.append(x.grad.numpy())
    np.testing.assert_allclose(*gradients, rtol=1e-6)
