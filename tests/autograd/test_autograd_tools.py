"""The tools that look on: anomaly mode's forward traceback, the profiler on real operators, the picture of a graph."""

from __future__ import annotations

import gzip
import inspect
import json
import pathlib
import sys
import warnings
import xml.etree.ElementTree
from typing import Any

import pytest

import xtensor as xt
from xtensor import autograd
from xtensor.autograd import rows


def here() -> int:
    """The line of the caller."""
    return inspect.currentframe().f_back.f_lineno  # type: ignore[union-attr]


# -- anomaly mode


def failing_trace(forward: Any) -> str:
    """The warning of a backward pass that gives NaN, for a graph that `forward(x)` makes in anomaly mode."""
    x = xt.tensor([0.0, 4.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with (
            autograd.detect_anomaly(),
            pytest.raises(RuntimeError, match="returned nan values in its 0th output"),
        ):
            forward(x).backward()
    return next(str(w.message) for w in caught if "Error detected in" in str(w.message))


def test_the_forward_traceback_ends_in_the_users_line():
    lines = []

    def forward(x):
        lines.append(here() + 1)
        y = x.sqrt()
        return (y * 0.0).sum()

    text = failing_trace(forward)
    assert text.startswith(
        "Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n"
    )
    last = text.rstrip().splitlines()[-2]
    assert f'File "{__file__}", line {lines[0]}, in forward' in last
    assert "y = x.sqrt()" in text.rstrip().splitlines()[-1]


def test_views_and_in_place_operators_are_traced_too():
    def forward(x):
        y = x * 1.0
        y[0:1].sqrt_()
        return (y.view(2, 1) * 0.0).sum()

    text = failing_trace(forward)
    assert "y[0:1].sqrt_()" in text
    x = xt.ones(2, 2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with autograd.detect_anomaly():
            made = [
                x.t(),
                x[0],
                x.unbind()[0],
                x.clone(),
                x[xt.tensor([0])],
                x.to(xt.float64),
                x.reshape(4),
                x.sum(),
            ]
            written = x * 1
            written[0] = 2.0
    for tensor in [*made, written]:
        trace = tensor.grad_fn.metadata.get("traceback_")
        assert trace, tensor.grad_fn
        assert __file__ in trace[-1], tensor.grad_fn


def test_a_second_derivative_names_what_induced_it():
    x = xt.tensor([0.0], requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with autograd.detect_anomaly():
            (g,) = autograd.grad((x**1.5).sum(), x, create_graph=True)
            with pytest.raises(RuntimeError, match="nan"):
                (g * 0.0).sum().backward()
    text = "".join(str(w.message) for w in caught)
    assert "Error detected in MulBackward0" in text
    assert "Previous calculation was induced by PowBackward0" in text


def test_without_the_mode_nothing_is_kept():
    y = xt.ones(2, requires_grad=True) * 2
    assert y.grad_fn._xt_meta is None


def test_the_version_error_points_at_the_trace():
    x = xt.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with autograd.detect_anomaly(), pytest.raises(RuntimeError, match="Good luck!"):
            y = x * 2
            z = y * y
            y.add_(1)
            z.sum().backward()


# -- profiler


def profiled(**options: Any) -> Any:
    x = xt.ones(8, 4, requires_grad=True)
    w = xt.ones(4, 2, requires_grad=True)
    with xt.profiler.profile(**options) as found:
        with autograd.profiler.record_function("forward"):
            h = (x @ w).tanh()
            h.t()
            y = h * 2
            y.add_(1)
        y.sum().backward()
    return found


def test_operators_views_writes_and_backward_nodes_are_recorded():
    events = profiled(record_shapes=True).events()
    names = [e.name for e in events]
    for name in ("forward", "matmul", "tanh", "t", "mul", "add_", "sum", "MmBackward0", "TanhBackward0"):
        assert name in names, names
    (product,) = [e for e in events if e.name == "matmul"]
    assert product.input_shapes == [[8, 4], [4, 2]]
    (region,) = [e for e in events if e.name == "forward"]
    assert region.cpu_time_total >= product.cpu_time_total > 0


def test_memory_is_that_of_the_results():
    events = profiled(profile_memory=True).events()
    sizes = {e.name: e.self_cpu_memory_usage for e in events}
    assert sizes["matmul"] == sizes["tanh"] == sizes["mul"] == 8 * 2 * 4
    assert sizes["t"] == sizes["add_"] == 0
    assert sizes["sum"] == 4
    assert "CPU Mem" in profiled(profile_memory=True).key_averages().table(sort_by="self_cpu_memory_usage")


def test_counts_by_name_and_shape():
    x = xt.ones(3)
    with xt.profiler.profile(record_shapes=True) as found:
        for _ in range(5):
            x * x
        x.view(3, 1) * x
    by_name = {e.key: e.count for e in found.key_averages()}
    assert by_name["mul"] == 6
    by_shape = {(e.key, str(e.input_shapes)): e.count for e in found.key_averages(group_by_input_shape=True)}
    assert by_shape["mul", "[[3], [3]]"] == 5
    assert by_shape["mul", "[[3, 1], [3]]"] == 1


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_the_chrome_trace_nests(tmp_path: pathlib.Path, name: str):
    path = tmp_path / name
    profiled(record_shapes=True).export_chrome_trace(path)
    opener: Any = gzip.open if name.endswith(".gz") else open
    with opener(path, "rt") as file:
        events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    named = {e["name"]: e for e in events}
    region, product = named["forward"], named["matmul"]
    assert region["ts"] <= product["ts"]
    assert product["ts"] + product["dur"] <= region["ts"] + region["dur"] + 1e-3
    assert product["args"]["Input Dims"] == [[8, 4], [4, 2]]


# -- the picture


class Model:
    """Something with named parameters."""

    def __init__(self) -> None:
        self.weight = xt.ones(4, 3, requires_grad=True)
        self.bias = xt.zeros(4, requires_grad=True)

    def named_parameters(self) -> Any:
        return iter([("layer.weight", self.weight), ("layer.bias", self.bias)])


@pytest.fixture(params=["Graphviz", "rows"])
def viz(request: Any, monkeypatch: Any) -> None:
    """Both layouts: Graphviz's, and the one of where it is not installed."""
    if request.param == "Graphviz":
        pytest.importorskip("pygraphviz")
    else:
        monkeypatch.setitem(sys.modules, "pygraphviz", None)


def drawn(model: Model, break_it: bool = False, params: Any = None) -> Any:
    h = (xt.ones(5, 3) @ model.weight.t() + model.bias).tanh()
    h.register_hook(lambda g: g)
    a, b = h.split(2, 1)
    out = (a * b).sum()
    if break_it:
        h.detach().mul_(2)
    return autograd.draw(out, model if params is None else params)


def texts(picture: Any) -> list[str]:
    root = xml.etree.ElementTree.fromstring(picture.svg)
    return [t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_shows_operators_shapes_leaves_sizes_and_hooks(viz: None, tmp_path: pathlib.Path):
    picture = drawn(Model())
    found = texts(picture)
    for text in (
        "MmBackward0",
        "SplitBackward0",
        "[5, 4]",
        "layer.weight",
        "layer.bias",
        "saved 80 B",
        "1 hook",
    ):
        assert text in found, found
    assert not any("version" in t for t in found)
    assert "red" not in picture.svg
    assert picture._repr_svg_() == picture.svg
    assert picture.save(tmp_path / "graph.svg").read_text() == picture.svg


def test_version_conflicts_are_red_and_name_the_writer(viz: None):
    picture = drawn(Model(), break_it=True)
    found = texts(picture)
    assert "saved at version 0, now 1" in found
    assert any(t.startswith("by mul_ at test_autograd_tools.py:") for t in found)
    assert "red" in picture.svg


def test_leaves_are_named_by_a_mapping_or_not_at_all(viz: None):
    model = Model()
    assert "W" in texts(drawn(model, params={"W": model.weight}))
    assert "leaf" in texts(drawn(model, params={}))


def test_rows_go_up_and_hold_no_two_boxes_in_one_place():
    style = {"label": "a\nb", "style": "rounded,filled"}
    boxes = dict.fromkeys("abcdef", style)
    arrows = [("a", "b", ""), ("b", "d", "1"), ("c", "d", ""), ("d", "e", ""), ("a", "e", "")]
    root = xml.etree.ElementTree.fromstring(rows.in_rows(boxes, arrows))
    drawn = [r for r in root.iter("{http://www.w3.org/2000/svg}rect") if r.get("x")]
    assert len({(r.get("x"), r.get("y")) for r in drawn}) == len(boxes)
    row = rows.heights(boxes, arrows)
    assert all(row[start] < row[end] for start, end, _ in arrows)
    assert rows.dot_text(boxes, arrows).count(" -> ") == len(arrows)


def test_a_picture_of_a_deep_graph_needs_no_recursion():
    x = xt.ones(1, requires_grad=True)
    y = x
    for _ in range(sys.getrecursionlimit() * 2):
        y = y + 1
    assert len(autograd.drawing.walk([y.grad_fn])) == sys.getrecursionlimit() * 2 + 1


def test_nothing_to_draw(viz: None):
    with pytest.raises(RuntimeError, match="does not require grad"):
        autograd.draw(xt.ones(2))
