"""How often derivative rules are traced: once for a signature where all gradients are computed."""

from __future__ import annotations

import pytest

import xtensor
from xtensor.operators import pullback
from xtensor.xla import sizes


def gradient(x: xtensor.Tensor) -> xtensor.Tensor:
    """A leaf's gradient, which is there."""
    assert x.grad is not None
    return x.grad


@pytest.fixture
def traced(monkeypatch):
    """The names of the operators whose rules Python runs meanwhile, once for each run."""
    monkeypatch.setattr(
        sizes.families._State, "enabled", False
    )  # what is traced for several sizes is traced once more
    real = pullback.rules_function
    names = []

    def counting(node, mask):
        rules = real(node, mask)

        def counted(*args):
            names.append(node.op.name)
            return rules(*args)

        return counted

    monkeypatch.setattr(pullback, "rules_function", counting)
    return names


def test_rules_are_traced_once(traced):
    x = xtensor.linspace(0, 1, 173, requires_grad=True)
    x.sin().backward(xtensor.ones(173))
    assert traced == ["sin"]
    assert xtensor.allclose(gradient(x), x.cos())


def test_another_array_of_the_signature_traces_nothing(traced):
    for _ in range(3):
        x = xtensor.linspace(0, 1, 179, requires_grad=True)
        x.exp().backward(xtensor.ones(179))
    assert traced == ["exp"]


def test_gradients_that_are_passed_on_leave_a_program_of_the_others(traced):
    x = xtensor.ones(181, requires_grad=True)
    y = xtensor.ones(2, 181, requires_grad=True)
    (x + y).backward(xtensor.ones(2, 181))
    assert gradient(x).tolist() == [2.0] * 181
    assert gradient(y).tolist() == [[1.0] * 181] * 2
    assert traced == ["add", "add"]


def test_a_gradient_that_is_a_view_is_read_in_the_program(traced):
    x = xtensor.linspace(0, 1, 5 * 37).reshape(5, 37).requires_grad_()
    x.sin().backward(xtensor.arange(5.0 * 37).reshape(37, 5).t())
    assert xtensor.allclose(gradient(x), x.cos() * xtensor.arange(5.0 * 37).reshape(37, 5).t())


def test_several_results_of_which_one_has_a_gradient(traced):
    x = xtensor.linspace(0, 1, 191, requires_grad=True)
    values, _ = x.sort(descending=True)
    values.backward(xtensor.arange(191.0))
    assert gradient(x).tolist() == list(reversed(range(191)))


def test_a_saved_number_is_an_operand(traced):
    for factor in (2.0, 3.0, 4.0):
        x = xtensor.full((193,), 2.0, requires_grad=True)
        (x * factor).backward(xtensor.ones(193))
        assert gradient(x).tolist() == [factor] * 193
    assert traced == ["mul"]


def test_without_what_is_taken_from_jax_rules_are_traced_apart(monkeypatch, traced):
    monkeypatch.setattr(pullback, "jit", lambda function: function)
    x = xtensor.linspace(0, 1, 197, requires_grad=True)
    x.sin().backward(xtensor.ones(197))
    assert xtensor.allclose(gradient(x), x.cos())
