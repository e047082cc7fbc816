"""Grad modes, inference mode and the hooks on what is saved, on toy gradients."""

from __future__ import annotations

import threading

import pytest

from tests.toy_graph import SOON, backward, leaf, scale
from tests.toy_graph import toy_rules as toy_rules
from xtensor import engine
from xtensor.engine import modes


def test_create_graph_sets_the_grad_mode_of_nodes_and_hooks():
    x = leaf()
    seen = []
    out = scale(x)
    out.register_hook(lambda g: seen.append(engine.is_grad_enabled()))
    with engine.no_grad(), pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        backward(out, create_graph=True, keep_graph=True)
        assert not engine.is_grad_enabled()
    backward(out)
    assert seen == [True, False]


def test_grad_modes_nest_and_reuse():
    off = engine.no_grad()
    with off:
        with off, engine.enable_grad():
            assert engine.is_grad_enabled()
        assert not engine.is_grad_enabled()
        with engine.set_grad_enabled(True):
            assert engine.is_grad_enabled()
        assert not engine.is_grad_enabled()
    assert engine.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), engine.no_grad():
        raise ZeroDivisionError
    assert engine.is_grad_enabled()


def test_set_grad_enabled_acts_at_once_except_as_decorator():
    switch = engine.set_grad_enabled(False)
    assert not engine.is_grad_enabled() and "mode=False" in repr(switch)
    engine.set_grad_enabled(True)

    @engine.set_grad_enabled(False)
    def enabled():
        return engine.is_grad_enabled()

    assert (engine.is_grad_enabled(), enabled(), engine.is_grad_enabled()) == (True, False, True)
    with pytest.raises(TypeError, match=r"argument 'enabled' \(position 1\) must be bool, not int"):
        engine.set_grad_enabled(1)  # pyright: ignore[reportArgumentType]


def test_modes_decorate_with_and_without_parentheses():
    @engine.no_grad
    def bare():
        return engine.is_grad_enabled()

    @engine.no_grad()
    def called():
        """Documented."""
        return engine.is_grad_enabled()

    @engine.inference_mode
    def inference():
        return engine.is_inference_mode_enabled(), engine.is_grad_enabled()

    assert bare() is False and called() is False and called.__doc__ == "Documented."
    assert inference() == (True, False)
    with engine.no_grad():
        assert engine.enable_grad(engine.is_grad_enabled)() is True
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @engine.no_grad()
        class Made:
            def __init__(self):
                self.mode = engine.is_grad_enabled()

    assert Made().mode is False


def test_decorated_generators_hold_the_mode_only_while_they_run():
    log = []

    @engine.no_grad
    def generate():
        try:
            log.append((engine.is_grad_enabled(), (yield 1)))
            yield 2
        except KeyError:
            log.append(("caught", engine.is_grad_enabled()))
            yield 3
        finally:
            log.append(("closed", engine.is_grad_enabled()))
        return 4

    generator = generate()
    assert next(generator) == 1 and engine.is_grad_enabled()
    assert generator.send("sent") == 2 and engine.is_grad_enabled()
    assert generator.throw(KeyError()) == 3 and engine.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == 4
    assert log == [(False, "sent"), ("caught", False), ("closed", False)]
    generator = generate()
    next(generator)
    generator.close()
    assert log[-1] == ("closed", False) and engine.is_grad_enabled()


def test_inference_mode():
    with engine.inference_mode():
        assert (engine.is_grad_enabled(), engine.is_inference_mode_enabled()) == (False, True)
        assert modes.state.mode > 1
        with engine.enable_grad():
            assert (engine.is_grad_enabled(), engine.is_inference_mode_enabled()) == (True, True)
        with engine.inference_mode(False):
            assert (engine.is_grad_enabled(), engine.is_inference_mode_enabled()) == (True, False)
    with engine.no_grad(), engine.inference_mode(False):
        assert engine.is_grad_enabled()
    assert modes.state.mode == 0


def test_modes_are_per_thread():
    seen = []
    with engine.no_grad():
        thread = threading.Thread(target=lambda: seen.append(engine.is_grad_enabled()))
        thread.start()
        thread.join(SOON)
    assert seen == [True]


def test_flags_nest():
    with engine.flag(engine.AUTOCAST):
        with engine.flag(engine.AUTOCAST, False):
            assert not modes.state.mode & engine.AUTOCAST
        assert modes.state.mode & engine.AUTOCAST
    assert not modes.state.mode


def test_saved_tensors_hooks():
    def same(value):
        return value

    with engine.saved_tensors_hooks(same, repr):
        with engine.saved_tensors_hooks(str, same):
            assert modes.state.saved_hooks == [(same, repr), (str, same)]
        assert modes.state.mode & engine.SAVED_HOOKS and modes.state.saved_hooks == [(same, repr)]
        with pytest.raises(RuntimeError, match="nope"), engine.disable_saved_tensors_hooks("nope"):
            pass
    assert not modes.state.mode & engine.SAVED_HOOKS
    with engine.disable_saved_tensors_hooks("nope"):
        with engine.disable_saved_tensors_hooks("inner"):
            pass
        with pytest.raises(RuntimeError, match="nope"), engine.saved_tensors_hooks(same, same):
            pass
    with pytest.raises(TypeError, match="must be callable"), engine.saved_tensors_hooks(1, 2):  # pyright: ignore[reportArgumentType]
        pass
    assert modes.state.saved_hooks == [] and modes.state.mode == 0
