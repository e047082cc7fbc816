"""Programs of xtensor's are lowered in one MLIR context of their thread's; the user's have their own, as ever."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

import xtensor
from xtensor.xla import jax_internals, lowering_context
from xtensor.xla.lowering_context import sharing
from xtensor.xla.x64 import jit

pytestmark = pytest.mark.skipif(
    jax_internals.lowering is None, reason="this JAX makes its contexts elsewhere"
)


@pytest.fixture
def made(monkeypatch):
    """Contexts that JAX makes meanwhile; no thread has one at the beginning."""
    real = jax_internals.lowering
    contexts = []

    def make():
        contexts.append(real.make())
        return contexts[-1]

    monkeypatch.setattr(real.seat, "make_ir_context", make)
    monkeypatch.setattr(lowering_context, "lowering", SimpleNamespace(seat=real.seat, make=make))
    monkeypatch.setattr(lowering_context, "_shared", lowering_context._Shared())
    return contexts


def programs(count, start=0):
    """Lowers and compiles so many programs that no process has met."""
    for i in range(start, start + count):
        jit(lambda x, i=i: x * i + 1)(jnp.ones(3))


def test_programs_of_a_thread_share_one_context(made):
    ones = jnp.ones(3)
    made.clear()
    for i in range(5):
        jit(lambda x, i=i: x * i + 1)(ones)
    assert len(made) == 1


def test_operators_and_their_gradients_share_it(made, waits: None):
    x = xtensor.ones(3, 7, requires_grad=True)
    (x.sin() * x).sum().backward()
    assert len(made) <= 1


def test_programs_of_the_user_have_their_own(made):
    programs(1)
    ours = len(made)
    ones = jnp.ones(3)
    before = len(made)
    for i in range(3):
        jax.jit(lambda x, i=i: x - i)(ones)
    assert len(made) == before + 3
    assert ours <= before


def test_every_thread_has_its_own(made):
    threads = [threading.Thread(target=programs, args=(3, 10 * i)) for i in range(3)]
    ones = jnp.ones(3)
    assert ones.shape == (3,)
    made.clear()
    for thread in threads:
        thread.start()
        thread.join()
    assert len(made) == 3


def test_a_context_is_given_up_after_some_programs(made, monkeypatch):
    monkeypatch.setattr(lowering_context, "LIMIT", 4)
    ones = jnp.ones(3)
    made.clear()
    for i in range(9):
        jit(lambda x, i=i: x * i + 1)(ones)
    assert len(made) == 3


def test_what_is_lowered_is_the_same():
    def function(x, y):
        return jnp.tanh(x @ y).sum(0), jnp.linspace(0, 1, 50) * x[0, 0]

    a, b = jnp.ones((3, 4)), jnp.ones((4, 5))
    alone = jax.jit(function).lower(a, b).as_text()
    jax.clear_caches()
    with sharing:
        shared = [jax.jit(function).lower(a, b).as_text()]
        jax.clear_caches()
        shared.append(jax.jit(function).lower(a, b).as_text())
    assert shared == [alone, alone]


def test_an_error_while_lowering_leaves_the_context_usable(made):
    def broken(x):
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        jit(broken)(jnp.ones(3))
    assert lowering_context._shared.depth == 0
    programs(2)


def test_without_the_place_in_jax_programs_compile_as_ever(monkeypatch):
    monkeypatch.setattr(jax_internals.lowering.seat, "make_ir_context", jax_internals.lowering.make)
    monkeypatch.setattr(lowering_context, "lowering", None)
    assert jit(lambda x: x * 17)(jnp.ones(2)).tolist() == [17, 17]


def test_a_context_with_arguments_is_made_by_jax(made):
    with sharing, pytest.raises(TypeError):
        lowering_context._make(1)
    with sharing:
        assert lowering_context._make() is lowering_context._make()
