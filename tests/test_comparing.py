"""`xtensor.devices.compare`: the same function on several devices."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import xtensor
from xtensor import nn
from xtensor.comparing import compare

BOTH = ("cpu", "cpu:1")


@pytest.fixture
def model() -> nn.Sequential:
    xtensor.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.Dropout(0.5), nn.Linear(7, 3))


def named(comparison) -> dict[str, float]:
    return {row.name: row.difference for row in comparison.rows}


def test_it_is_found_at_devices():
    assert xtensor.devices.compare is compare
    assert "compare" in xtensor.devices.__all__


def test_outputs_and_gradients_of_a_model(model):
    x = xtensor.randn(4, 5, requires_grad=True)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = xtensor.get_rng_state()
    found = xtensor.devices.compare(model, x, devices=BOTH, repeat=2)
    parameters = [f"gradient of function.{name}" for name, _ in model.named_parameters()]
    # What is drawn is the same, and so is all that follows.
    assert named(found) == dict.fromkeys(["output", *parameters, "gradient of args[0]"], 0.0)
    assert found.max_ulps == 0
    # Nothing of the user's has changed.
    assert x.grad is None and all(p.grad is None for p in model.parameters())
    assert all(bool((value == before[name]).all()) for name, value in model.state_dict().items())
    assert bool((xtensor.get_rng_state() == state).all())
    assert [str(t.device) for t in found.times] == ["cpu", "cpu:1"]
    assert all(t.first > 0 and t.forward > 0 and t.backward > 0 for t in found.times)


def test_devices_run_programs_of_the_same_sizes(model):
    """What a process did before on one of them is no difference between them."""
    for rows in (4, 9, 11, 13, 14, 15, 17, 18, 19, 21, 22):
        model(xtensor.randn(rows, 5)).sum().backward()
    assert compare(model, xtensor.randn(23, 5, requires_grad=True), devices=BOTH, repeat=1).max_ulps == 0


def wrong_elsewhere(x):
    y = x.sin()
    return y if x.device.index is None else y * (1 + 2.0**-20)


def test_differences_are_measured():
    x = xtensor.linspace(0, 1, 9, requires_grad=True)
    found = compare(wrong_elsewhere, x, devices=BOTH, repeat=1)
    rows = {row.name: row for row in found.rows}
    assert rows["output"].dtype == "float32" and rows["output"].shape == (9,)
    assert rows["output"].size == pytest.approx(math.sin(1))
    assert rows["output"].difference == pytest.approx(math.sin(1) * 2**-20, rel=0.1)
    assert 8 < rows["output"].ulps < 32 and rows["gradient of args[0]"].ulps > 4
    assert found.max_ulps == max(row.ulps for row in found.rows)


def test_the_gradients_are_those_of_all_results_times_the_same_numbers():
    x = xtensor.ones(3, requires_grad=True)
    found = compare(lambda x: (x * 2, x * (3 if x.device.index is None else 4)), x, devices=BOTH, repeat=0)
    assert named(found)["output[0]"] == 0 and named(found)["output[1]"] == 1
    assert 0.5 <= named(found)["gradient of args[0]"] <= 1.5


def test_structures_keywords_shared_tensors_and_numbers():
    x = xtensor.ones(3, requires_grad=True)

    def function(inputs, *, scale, layer):
        assert inputs["a"] is inputs["b"][0] and inputs["a"].device == scale.device
        return {
            "sum": (inputs["a"] * scale).sum(),
            "count": 3,
            "text": "left out",
            "y": [layer(inputs["b"][0])],
        }

    found = compare(
        function, {"a": x, "b": (x,)}, scale=xtensor.ones(3), layer=nn.Linear(3, 2), devices=BOTH, repeat=0
    )
    assert list(named(found)) == [
        "output['sum']",
        "output['count']",
        "output['y'][0]",
        "gradient of args[0]['a']",
        "gradient of kwargs['layer'].weight",
        "gradient of kwargs['layer'].bias",
    ]


def test_without_gradients(model):
    found = compare(model, xtensor.ones(4, 5), devices=BOTH, backward=False, repeat=1)
    assert list(named(found)) == ["output"]
    assert [t.backward for t in found.times] == [None, None]
    assert "backward" not in str(found)


def test_nan_whole_numbers_and_shapes():
    def function(x):
        other = x.device.index is not None
        return {
            "nan": x / 0 * (0 if other else 1),
            "same nan": x / 0 * 0,
            "count": xtensor.arange(3, device=x.device) + int(other),
            "shape": x[:2] if other else x,
            "dtype": x.double() if other else x,
            "empty": x[:0],
            **({"more": x} if other else {}),
        }

    rows = {
        row.name.split("'")[1]: row for row in compare(function, xtensor.ones(3), devices=BOTH, repeat=0).rows
    }
    assert {name: row.difference for name, row in rows.items()} == {
        "nan": math.inf,
        "same nan": 0,
        "count": 1,
        "shape": math.inf,
        "dtype": math.inf,
        "empty": 0,
        "more": math.inf,
    }
    assert str(rows["shape"]) == "another"
    assert [name for name, row in rows.items() if row.ulps] == ["nan", "count", "shape", "dtype", "more"]


def test_an_error_on_another_device_is_part_of_the_answer():
    def function(x):
        if x.device.index is not None:
            raise RuntimeError("not here")
        return x

    found = compare(function, xtensor.ones(3), devices=BOTH, repeat=0)
    assert found.times[1].error == "RuntimeError: not here"
    assert found.max_ulps == math.inf
    assert "cpu:1: RuntimeError: not here" in str(found)
    with pytest.raises(RuntimeError, match="not here"):
        compare(function, xtensor.ones(3), devices=["cpu:1", "cpu"])


def test_it_takes_all_devices_by_default_and_needs_one():
    found = compare(lambda x: x, xtensor.ones(3), repeat=0)
    assert [t.device for t in found.times] == list(xtensor.devices.list())
    with pytest.raises(ValueError, match="needs a device"):
        compare(lambda x: x, xtensor.ones(3), devices=[])


def test_the_tables():
    found = compare(wrong_elsewhere, xtensor.linspace(0, 1, 9, requires_grad=True), devices=BOTH, repeat=1)
    head, first, *_ = str(found).splitlines()
    assert head.split() == ["dtype", "shape", "cpu", "cpu:1"]
    assert first.startswith("output") and "[9]" in first and "up to 0.841" in first and "ulps)" in first
    shown = found._repr_html_()
    assert shown.count("<tr>") == len(str(found).splitlines()) and "gradient of args[0]" in shown
    written = json.loads(json.dumps(found.as_dict()))
    assert written["times"][1]["device"] == "cpu:1" and written["rows"][0]["name"] == "output"


def test_a_function_that_writes_to_its_arguments():
    x = xtensor.zeros(3)

    def function(x):
        return x.add_(1)

    found = compare(function, x, devices=BOTH, repeat=3)
    assert found.rows[0].size == 1  # the first run's
    np.testing.assert_array_equal(x.numpy(), 0)
