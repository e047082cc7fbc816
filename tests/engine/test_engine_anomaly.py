"""Anomaly mode, on toy gradients."""

from __future__ import annotations

import pytest

from tests.toy_graph import Fails, Linear, Var, backward, leaf, linear, scale
from tests.toy_graph import toy_rules as toy_rules
from xtensor import engine
from xtensor.engine import anomaly, modes


def culprit(x):
    out = Var(0.0, (Fails((x._gradient_edge(),), ((1.0,),)), 0))
    if modes.state.mode & engine.ANOMALY:
        anomaly.record(out.edge[0])
    return out


def detect(**options):
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        return engine.detect_anomaly(**options)


def test_anomaly_mode_shows_the_forward_traceback():
    with detect():
        assert engine.is_anomaly_enabled() and engine.is_anomaly_check_nan_enabled()
        out = scale(culprit(leaf()))
        with (
            pytest.warns(
                UserWarning, match="Error detected in Fails. Traceback of forward call that caused"
            ) as warned,
            pytest.raises(KeyError),
        ):
            backward(out)
    assert not engine.is_anomaly_enabled()
    text = str(warned[0].message)
    assert "in culprit" in text and anomaly.__file__ not in text


def test_anomaly_mode_without_forward_information():
    out = culprit(leaf())
    with (
        detect(),
        pytest.warns(
            UserWarning, match="No forward pass information available. Enable detect anomaly during"
        ),
        pytest.raises(KeyError),
    ):
        backward(out)


def test_anomaly_mode_names_the_node_that_induced_another():
    x = leaf()
    made = []

    class Makes(Linear):
        def apply(self, grads):
            made.append(culprit(x))
            return super().apply(grads)

    with detect():
        node = Makes((x._gradient_edge(),), ((1.0,),))
        anomaly.record(node)
        backward(Var(0.0, (node, 0)))
        assert made[0].edge[0].metadata["parent_"] is node
        with (
            pytest.warns(
                UserWarning, match="Previous calculation was induced by Makes. Traceback of forward call that"
            ),
            pytest.warns(UserWarning, match="Error detected in Fails"),
            pytest.raises(KeyError),
        ):
            backward(made[0])


def test_anomaly_mode_refuses_nan():
    run = engine.Interpreter(is_nan=lambda g: g != g).run
    out = linear((leaf(), leaf()), (1.0, float("nan")))[0]
    with (
        detect(),
        pytest.warns(UserWarning, match="Error detected in Linear"),
        pytest.raises(RuntimeError, match=r"Function .Linear. returned nan values in its 1th output\."),
    ):
        run((out.edge,), (1.0,), None, True, False, True)
    with detect(check_nan=False):
        run((out.edge,), (1.0,), None, True, False, True)


def test_set_detect_anomaly():
    engine.set_detect_anomaly(True, check_nan=False)
    assert engine.is_anomaly_enabled() and not engine.is_anomaly_check_nan_enabled()
    with engine.set_detect_anomaly(False):
        assert not engine.is_anomaly_enabled() and engine.is_anomaly_check_nan_enabled()
    assert engine.is_anomaly_enabled() and not engine.is_anomaly_check_nan_enabled()
    engine.set_detect_anomaly(False)
    assert modes.state.mode == 0
