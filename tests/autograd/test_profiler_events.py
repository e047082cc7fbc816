"""The profiler's events under PyTorch's names, `torch.autograd.profiler` and `profiler_util`."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

import xtensor
from tests.oracle import Cases

case = Cases()


def utils(T: Any) -> Any:
    return T.autograd.profiler_util


@case
def events_are_nested_by_thread(T):
    u = utils(T)
    events = u.EventList()
    for number, (thread, start, end) in enumerate([(1, 0, 1), (1, 1, 2), (0, 0, 2), (0, 1, 2), (0, 1, 3)]):
        events.append(u.FunctionEvent(id=number, name="", thread=thread, start_us=start, end_us=end))
    events._populate_cpu_children()
    return [[child.id for child in event.cpu_children] for event in events]


@case
def averages_add(T):
    u = utils(T)
    average = u.FunctionEventAvg()
    average.add(u.FunctionEvent(id=0, name="foo", thread=0, start_us=10, end_us=15))
    average.add(u.FunctionEvent(id=1, name="foo", thread=0, start_us=20, end_us=30))
    average.add(average)
    return average.key, average.count, average.cpu_time_total, average.self_cpu_time_total, average.cpu_time


test_as_pytorch = case.test()


def test_function_events_have_pytorch_s_names(tmp_path):
    x = xtensor.ones(2, 2, requires_grad=True)
    with xtensor.autograd.profiler.profile(record_shapes=True) as found:
        with xtensor.autograd.profiler.record_function("outer"):
            y = x * 2
        y.sum().backward()
    names = [event.name for event in found.function_events]
    assert names.index("outer") < names.index("aten::mul") < names.index("aten::sum")
    assert "autograd::engine::evaluate_function: MulBackward0" in names
    outer = found.function_events[names.index("outer")]
    assert "aten::mul" in [child.name for child in outer.cpu_children]
    (mul,) = [event for event in found.key_averages() if event.key == "aten::mul"]
    assert mul.count == 1
    assert mul.cpu_time_total > 0
    assert str(found) == found.table()
    path = tmp_path / "trace.json"
    found.export_chrome_trace(path)
    assert "mul" in [event.get("name") for event in json.loads(path.read_text())["traceEvents"]]


def test_an_unfinished_profile_has_no_events():
    with pytest.raises(RuntimeError, match="finish"):
        xtensor.autograd.profiler.profile().key_averages()


def test_regions_as_operators():
    ops = xtensor.library.ops.profiler
    with xtensor.autograd.profiler.profile() as found:
        region = ops._record_function_enter("bar", None)
        xtensor.ones(2) + 1
        ops._record_function_exit(region)
    assert [event.count for event in found.function_events if event.name == "bar"] == [1]


def test_volatile_warns():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert xtensor.ones(2).volatile is False
    assert "volatile" in str(told[0].message)
    assert "volatile" not in dir(xtensor.ones(2))


def test_an_operator_and_its_backward_have_one_sequence_number() -> None:
    x = xtensor.ones(2, requires_grad=True)
    with xtensor.autograd.profiler.profile() as p:
        (x * 3).sum().backward()
        xtensor.ones(2) * 3
    numbers = {e.name: e.sequence_nr for e in p.function_events if not e.name.endswith("mul")}
    forward = [e.sequence_nr for e in p.function_events if e.name == "aten::mul"]
    assert forward == [numbers["MulBackward0"], -1] and forward[0] >= 0
    assert numbers["aten::sum"] == numbers["SumBackward0"] == forward[0] + 1
