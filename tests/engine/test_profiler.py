"""The profiler on events made by hand and on toy backward nodes."""

from __future__ import annotations

import gzip
import json
import re
import threading

import jax
import jax.numpy as jnp
import pytest

from xtensor import engine
from xtensor.engine import modes, profiler
from xtensor.engine.graph import Node
from xtensor.engine.profiler import ProfilerAction, ProfilerActivity


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests set, in microseconds."""

    class Clock:
        now = 0

    monkeypatch.setattr(profiler, "perf_counter_ns", lambda: Clock.now * 1000)
    return Clock


def operator(name, shapes=None, memory=0):
    token = profiler.begin(name, shapes)
    profiler.end(token, memory)


def nested(clock):
    """outer 0..100us around inner 10..30us and inner 40..50us."""
    outer = profiler.begin("outer", [(2, 3)])
    for start, end in ((10, 30), (40, 50)):
        clock.now = start
        inner = profiler.begin("inner", [(3,), ()])
        clock.now = end
        profiler.end(inner, 8)
    clock.now = 100
    profiler.end(outer, 1024)


def test_totals_and_self_times(clock):
    with engine.profile() as prof:
        nested(clock)
    outer, inner = prof.key_averages()
    assert (outer.key, outer.count, outer.cpu_time_total, outer.self_cpu_time_total) == (
        "outer",
        1,
        100.0,
        70.0,
    )
    assert (inner.key, inner.count, inner.cpu_time_total, inner.cpu_time) == ("inner", 2, 30.0, 15.0)
    assert (outer.cpu_memory_usage, outer.self_cpu_memory_usage) == (1040, 1024)
    assert inner.self_cpu_memory_usage == 16
    assert prof.events().self_cpu_time_total == 100.0
    assert [event.name for event in prof.events()] == ["outer", "inner", "inner"]
    total = prof.key_averages().total_average()
    assert (total.count, total.self_cpu_time_total) == (3, 100.0)


def test_table(clock):
    with engine.profile(profile_memory=True) as prof:
        nested(clock)
    table = prof.key_averages().table(sort_by="count", row_limit=1, header="Run")
    lines = table.splitlines()
    assert lines[0].strip() == "Run"
    assert re.split(r"\s{2,}", lines[2].strip()) == [
        *("Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"),
        *("CPU Mem", "Self CPU Mem", "# of Calls"),
    ]
    assert lines[4].split() == [
        *("inner", "30.00%", "30.000us", "30.00%", "30.000us", "15.000us", "16", "B", "16", "B", "2"),
    ]
    assert lines[-1] == "Self CPU time total: 100.000us"
    assert "outer" not in table and "1.02 KB" in prof.table()
    order = [line.split()[0] for line in prof.table(sort_by="self_cpu_time_total").splitlines()[3:5]]
    assert order == ["outer", "inner"]
    assert str(prof.key_averages()) == prof.table()
    with pytest.raises(ValueError, match="sort_by must be one of"):
        prof.table(sort_by="luck")
    long = "x" * 80
    with engine.profile() as prof:
        operator(long)
    assert "x" * 52 + "..." in prof.table() and long not in prof.table()


def test_group_by_shape(clock):
    with engine.profile(record_shapes=True) as prof:
        for shape in ((2, 3), (4,), (4,)):
            operator("add", [shape, ()])
    assert len(prof.key_averages()) == 1
    groups = prof.key_averages(group_by_input_shape=True)
    assert [(group.count, group.input_shapes) for group in groups] == [(1, [[2, 3], []]), (2, [[4], []])]
    assert "Input Shapes" in groups.table() and "[[2, 3], []]" in groups.table()


def test_record_function_nests_decorates_and_costs_nothing_outside():
    @engine.record_function("decorated")
    def work():
        operator("op")
        return 5

    assert work() == 5
    with engine.profile() as prof:
        with engine.record_function("outer"):
            work()
            with engine.record_function("inner"):
                operator("op")
        assert modes.state.mode & engine.PROFILING
    assert modes.state.mode == 0
    assert [(event.name, event.depth) for event in prof.events()] == [
        *(("outer", 0), ("decorated", 1), ("op", 2)),
        *(("inner", 1), ("op", 2)),
    ]
    assert profiler.begin("later") is None
    profiler.end(None)


def test_an_exception_closes_what_it_left_open():
    with engine.profile() as prof:
        with pytest.raises(KeyError), engine.record_function("region"):
            profiler.begin("left open")
            raise KeyError
        operator("after")
    assert [(event.name, event.depth) for event in prof.events()] == [("region", 0), ("after", 0)]


def test_backward_nodes_are_reported_from_every_thread():
    class Leaf:
        def _accumulate_grad(self, grad, create_graph):
            pass

    class Step(Node):
        __slots__ = ("device",)

        def apply(self, grads):
            operator("inside")
            return grads

    def step(edge, device):
        node = Step((edge,))
        node.device = device
        return (node, 0)

    x = Leaf()
    out = step(step(engine.LeafEdge(x).edge(), "cpu:1"), "cpu:0")
    before = engine.executors()
    engine.install(engine.Interpreter())
    try:
        with engine.profile() as prof:
            engine.run_backward((out,), (1.0,))
    finally:
        engine.install(*before[:-1])
    counts = {average.key: average.count for average in prof.key_averages()}
    assert counts == {"Step": 2, "inside": 2, "AccumulateGrad": 1}
    threads = {event.thread for event in prof.events() if event.name == "Step"}
    assert len(threads) == 2 and threading.get_ident() in threads


def test_one_profile_at_a_time():
    with (
        engine.profile() as prof,
        pytest.raises(RuntimeError, match="Profiler is already enabled on this thread"),
        engine.profile(),
    ):
        pass
    errors = []

    def elsewhere():
        try:
            engine.profile().start()
        except RuntimeError as error:
            errors.append(str(error))

    with prof:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert errors == ["Profiler is already enabled in another thread"]
    assert modes.state.mode == 0


def test_schedule():
    actions = engine.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    n, w, r, s = (
        ProfilerAction.NONE,
        ProfilerAction.WARMUP,
        ProfilerAction.RECORD,
        ProfilerAction.RECORD_AND_SAVE,
    )
    assert [actions(step) for step in range(11)] == [n, n, w, r, s, n, w, r, s, n, n]
    with pytest.raises(ValueError, match="Invalid profiler schedule arguments"):
        engine.schedule(wait=1, warmup=1, active=0)


def test_a_scheduled_profile_hands_over_each_cycle():
    traces = []

    def ready(prof):
        traces.append([event.name for event in prof.events()])

    with engine.profile(schedule=engine.schedule(wait=1, warmup=0, active=2), on_trace_ready=ready) as prof:
        for step in range(8):
            if modes.state.mode & engine.PROFILING:
                operator(f"op{step}")
            prof.step()
    assert traces == [
        ["ProfilerStep#1", "op1", "ProfilerStep#2", "op2"],
        ["ProfilerStep#4", "op4", "ProfilerStep#5", "op5"],
        ["ProfilerStep#7", "op7", "ProfilerStep#8"],
    ]
    back_to_back = []
    with engine.profile(
        schedule=engine.schedule(wait=0, warmup=0, active=1, repeat=2),
        on_trace_ready=lambda prof: back_to_back.append(len(prof.events())),
    ) as prof:
        for _ in range(4):
            prof.step()
    assert back_to_back == [1, 1]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_chrome_trace(clock, tmp_path, name):
    with engine.profile(record_shapes=True) as prof:
        clock.now = 0
        nested(clock)
        with engine.record_function("region", "argument"):
            pass
    path = tmp_path / name
    prof.export_chrome_trace(path)
    with (gzip.open if name.endswith("gz") else open)(path, "rt") as file:
        events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"], e["cat"]) for e in events] == [
        ("outer", 0.0, 100.0, "cpu_op"),
        ("inner", 10.0, 20.0, "cpu_op"),
        ("inner", 40.0, 10.0, "cpu_op"),
        ("region", 100.0, 0.0, "user_annotation"),
    ]
    assert events[0]["args"] == {"Input Dims": [[2, 3]], "Bytes": 1040}


def test_the_devices_own_trace_is_in_the_same_file(tmp_path):
    with engine.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.DEVICE]) as prof:
        token = profiler.begin("host side")
        jax.jit(lambda x: jnp.sin(x).sum(), inline=False)(jnp.ones(8)).block_until_ready()
        profiler.end(token)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    (host,) = [event for event in events if event.get("name") == "host side"]
    device = [event for event in events if event.get("pid") != host["pid"] and event["ph"] == "X"]
    executes = [event for event in device if "Execute" in event["name"]]
    assert executes, {event["name"] for event in device}
    inside = [e for e in executes if host["ts"] - 500 <= e["ts"] <= host["ts"] + host["dur"] + 500]
    assert inside, "the two clocks do not agree"
