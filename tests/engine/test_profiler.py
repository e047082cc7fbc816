"""The profiler on events made by hand and on toy backward nodes."""

from __future__ import annotations

import gzip
import inspect
import json
import re
import threading
import time
import types

import jax
import jax.numpy as jnp
import pytest

import xtensor
from tests.table import ROWS
from tests.table.bridge import OURS, flat, operator_named
from tests.table.facets import attempt, key_of
from xtensor import engine
from xtensor.engine import modes, profiler
from xtensor.engine.graph import Node
from xtensor.engine.profiler import ProfilerAction, ProfilerActivity
from xtensor.explain.seen import written_by_hand
from xtensor.xla import compiles, x64


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
        __slots__ = ("_xt_device",)

        def apply(self, grads):
            operator("inside")
            return grads

    def step(edge, device):
        node = Step((edge,))
        node._xt_device = device
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
    assert counts == {"Step": 2, "inside": 2, "torch::autograd::AccumulateGrad": 1}
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


def rows_of(prof):
    return {average.key: average for average in prof.key_averages()}


def test_compiling_is_a_row_of_its_own(clock, monkeypatch, tmp_path):
    monkeypatch.setattr(compiles, "LOADED", "")  # the tests' own cache may have it

    def slow(x):
        clock.now += 1000  # runs while it is traced, which is once
        return x + 1

    program = x64.jit(slow)
    x = jnp.ones(3)

    def call():
        token = profiler.begin("grow")
        clock.now += 5
        program(x)
        profiler.end(token)

    with engine.profile() as prof:
        with engine.record_function("region"):
            call()
            call()
        program(jnp.ones(4))
    rows = rows_of(prof)
    assert {name: row.count for name, row in rows.items()} == {
        "region": 1,
        "grow": 2,
        "compile: grow": 1,
        "compile: slow": 1,
    }
    assert (rows["grow"].cpu_time_total, rows["grow"].cpu_time) == (10.0, 5.0)
    assert rows["compile: grow"].cpu_time_total == rows["compile: slow"].cpu_time_total == 1000.0
    assert (rows["region"].cpu_time_total, rows["region"].self_cpu_time_total) == (1010.0, 0.0)
    assert prof.events().self_cpu_time_total == clock.now == 2010.0
    assert "compile: grow" in prof.table()
    prof.export_chrome_trace(tmp_path / "trace.json")
    entries = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [(e["name"], e["dur"]) for e in entries if e.get("cat") == "compile"] == [
        ("compile: grow", 1000.0),
        ("compile: slow", 1000.0),
    ]
    with engine.profile() as prof:
        call()
    assert list(rows_of(prof)) == ["grow"]


def test_what_the_cache_had_is_told_apart():
    made = []
    compiles.watch(watcher := lambda name: lambda cached: made.append((name, cached)))
    try:
        with compiles.watched("new"):
            compiles._on_duration(compiles.BUILT, 0.1)
        with compiles.watched("kept"):
            compiles._on_event(compiles.LOADED)
            compiles._on_duration(compiles.BUILT, 0.1)
        with compiles.watched("there"):
            pass
    finally:
        compiles.unwatch(watcher)
    assert made == [("new", False), ("kept", True), ("there", None)]
    assert not compiles._watchers
    with engine.profile() as prof, compiles.watched("kept"):
        compiles._on_event(compiles.LOADED)
        compiles._on_duration(compiles.BUILT, 0.1)
    assert list(rows_of(prof)) == ["compile: kept (from cache)"]


def test_what_another_thread_compiles_is_no_time_of_the_one_that_asks():
    def made():
        with asked:
            compiles._on_duration(compiles.BUILT, 0.1)

    with engine.profile() as prof:
        token = profiler.begin("asks")
        asked = compiles.watched("program")
        thread = threading.Thread(target=made)
        thread.start()
        thread.join()
        profiler.end(token)
    events = {event.name: event for event in prof.events()}
    assert set(events) == {"asks", "compile: program"}
    assert events["compile: program"].thread == thread.ident != events["asks"].thread == threading.get_ident()
    assert events["asks"].inner == 0
    # What is still being made as the profile ends is no part of the next one.
    with engine.profile():
        still = compiles.watched("program")
        still.__enter__()
    with engine.profile() as prof:
        compiles._on_duration(compiles.BUILT, 0.1)
        still.__exit__(None, None, None)
    assert not prof.events()


def test_a_miss_that_compiles_nothing_leaves_no_row(clock):
    with engine.profile() as prof:
        token = profiler.begin("outer")
        with compiles.watched("program"):
            inner = profiler.begin("inner")
            clock.now = 3
            profiler.end(inner, 8)
            clock.now = 5
        profiler.end(token)
    rows = rows_of(prof)
    assert {n: (r.self_cpu_time_total, r.cpu_memory_usage) for n, r in rows.items()} == {
        "outer": (2.0, 8),
        "inner": (3.0, 8),
    }


def test_every_operator_of_the_table_is_seen(full):
    unseen = []
    for row in ROWS if full else ROWS[::15]:
        sample = row.samples[0]
        args, kwargs, _ = OURS.arguments(sample, key_of(row, sample), row.dtype)
        with engine.profile() as prof:
            result, error = attempt(operator_named(row.name), args, kwargs)
        # What a tensor tells of itself, a flag or a size, is no work.
        facts = all(isinstance(r, (bool, int, str, xtensor.dtype)) for r in flat(result))
        if error is None and not facts and not [r for r in rows_of(prof) if not r.startswith("compile: ")]:
            unseen.append(row.name)
    assert unseen == []


def test_creation_conversion_random_numbers_and_host_reads_are_seen():
    made = xtensor.tensor([1.0, 2.0])
    xtensor.full((2,), 1.0)
    with engine.profile(record_shapes=True) as prof:
        xtensor.zeros(2, 3)
        xtensor.tensor([1.0, 2.0])
        xtensor.randn(4)
        xtensor.arange(5)
        made.to(xtensor.float64)
        made.detach().numpy()
        float(made[0])
        made.tolist()
        made.clone()
        made.nonzero()
        made.fill_(3.0)
    rows = rows_of(prof)
    names = "zeros tensor randn arange to detach numpy select item tolist clone nonzero fill_".split()
    assert [name for name in names if name not in rows] == []
    # One call is one event where function and operator share their name.
    assert rows["clone"].count == rows["fill_"].count == rows["to"].count == 1
    assert rows["zeros"].cpu_memory_usage == 24
    assert ("tolist", [[2]]) in [(e.name, e.input_shapes) for e in prof.events()]


def test_a_step_of_a_model_is_seen_whole_and_its_times_add_up():
    model = xtensor.nn.Sequential(xtensor.nn.Linear(29, 31), xtensor.nn.ReLU(), xtensor.nn.Linear(31, 37))
    optimizer = xtensor.optim.SGD(model.parameters(), lr=0.1)

    def step():
        loss = xtensor.nn.functional.cross_entropy(
            model(xtensor.ones(23, 29)), xtensor.zeros(23, dtype=xtensor.int64)
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def profiled():
        start = time.perf_counter_ns()
        with engine.profile() as prof:
            step()
        wall = (time.perf_counter_ns() - start) / 1000
        assert all(event.self_cpu_time_total >= 0 for event in prof.events())
        # Other threads compile meanwhile.
        own = [event for event in prof.events() if event.thread == threading.get_ident()]
        assert sum([event.self_cpu_time_total for event in own]) <= wall
        return set(rows_of(prof)), {event.name for event in own}

    # What waited for its operands in the first step may have another form in the second.
    (first, _), _, (later, of_step) = profiled(), profiled(), profiled()
    whole = {"linear", "relu", "cross_entropy", "AddmmBackward0", "ReluBackward0"} | {
        "torch::autograd::AccumulateGrad"
    }
    whole |= {"Optimizer.step#SGD.step", "ones", "zeros"}
    assert whole <= later
    assert {name for name in first if name.startswith("compile: ")}
    assert not {name for name in of_step if name.startswith("compile: ")}


def test_functions_are_what_they_were_once_the_profile_has_ended():
    functions = [f for _, f in written_by_hand()]
    before = [(f.__code__, dict(f.__dict__)) for f in functions]
    signature = inspect.signature(xtensor.zeros)
    elsewhere = []

    def other():
        xtensor.zeros(2)
        elsewhere.append(modes.state.mode)

    with pytest.raises(KeyError), engine.profile() as prof:
        assert inspect.signature(xtensor.zeros) == signature
        with pytest.raises(TypeError, match=r"^new_full\(\)"):
            xtensor.Tensor.new_full()
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        raise KeyError
    assert elsewhere == [0]
    assert "zeros" not in rows_of(prof)  # of a thread that is not profiled
    assert [(f.__code__, dict(f.__dict__)) for f in functions] == before
    assert isinstance(xtensor.zeros, types.FunctionType)


def test_a_start_that_is_interrupted_leaves_nothing(monkeypatch):
    own = xtensor.zeros.__code__

    def interrupted():
        assert xtensor.zeros.__code__ is not own
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(profiler, "at_start", [*profiler.at_start, interrupted])
        with pytest.raises(KeyboardInterrupt), engine.profile():
            pass
    assert xtensor.zeros.__code__ is own
    assert modes.state.mode == 0
    assert not compiles._watchers
    with engine.profile() as prof:
        xtensor.zeros(2)
    assert rows_of(prof)["zeros"].count == 1
