"""Every operator, from its row in the operator table (see `tests/table/__init__.py`)."""

from __future__ import annotations

import functools
import inspect

import numpy as np
import pytest

from tests.table import ROWS, Row, Sample, T, facets, on_meta, unary
from tests.table.bridge import composites, declared, families, operator_named
from tests.table.odd import ODD
from xtensor.operators.operator import REGISTRY
from xtensor.operators.views import VIEWS
from xtensor.tensor import Tensor
from xtensor.xla import sizes

FACETS = {**facets.FACETS, "meta": on_meta.meta}


SAMPLED = {"gradient": 3, "second_gradient": 8, "layouts": 6, "inplace": 3, "meta": 3}
"""Facets that compile much and break seldom, and one in how many rows a sampled run has them for."""


@pytest.mark.parametrize(
    "facet", [pytest.param(f, marks=pytest.mark.one_in(SAMPLED[f])) if f in SAMPLED else f for f in FACETS]
)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_operator(row: Row, facet: str, full: bool):
    FACETS[facet](row, full and (row.name, facet) not in ODD)


def missing_rows(rows: list[Row]) -> list[str]:
    """Operators, views and composites that no row names."""
    named = {row.name for row in rows}
    named |= {row.name + "_" for row in rows}
    covered = {name for row in rows for name in row.covers}
    public = {name for module in families().values() for name in module.__all__}
    missing = []
    for op in (*REGISTRY.values(), *VIEWS.values()):
        internal = op.name not in public and not op.is_method
        if op.name not in (named | covered if internal else named):
            missing.append(op.name)
    spelled: dict[int, list[str]] = {}
    for name, function in composites().items():
        spelled.setdefault(id(function), []).append(name)
    for names in spelled.values():
        if not any(name in named or name.partition(".")[2] in named for name in names):
            missing.append(names[0])
    return sorted(missing)


def test_every_operator_has_a_row():
    assert missing_rows(ROWS) == []


def test_every_row_has_an_operator():
    for row in ROWS:
        assert callable(operator_named(row.name)), row.name


def test_what_is_left_out_has_a_row():
    named = {row.name for row in ROWS}
    assert {(name, facet) for name, facet in ODD if name not in named or facet not in FACETS} == set()


def test_no_operator_has_two_rows():
    names = [row.name for row in ROWS]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize(
    "row",
    [r for r in ROWS if (op := declared(r.name)) is not None and op.kind in ("pointwise", "reduction")],
    ids=str,
)
def test_pointwise_and_reducing_rows_try_0d_and_empty_tensors(row: Row):
    shapes = {t.shape for sample in row.samples for t in sample.tensors}
    assert () in shapes
    assert any(0 in shape for shape in shapes)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("row", [r for r in ROWS if r.covers], ids=str)
def test_internal_operators_run_in_their_row(row: Row, monkeypatch):
    """What a row says it covers runs: an operator shows in its kernel, traced anew; a view in its node."""
    seen = set()
    # Which answers views of many sizes in the host's memory.
    monkeypatch.setattr(sizes.families._State, "enabled", False)

    def spy(name, function):
        def spied(*args, **kwargs):
            seen.add(name)
            return function(*args, **kwargs)

        return functools.wraps(function)(spied)

    for name in row.covers:
        if name in VIEWS:
            seen |= {name} & views_in(row)
        else:
            REGISTRY[name].forget()
            monkeypatch.setattr(REGISTRY[name], "kernel", spy(name, REGISTRY[name].kernel))
    facets.value(row, False)
    facets.gradient(row, False)
    facets.second_gradient(row, False)
    for name in row.covers:
        if name in REGISTRY:
            REGISTRY[name].forget()
    assert seen == set(row.covers)


def views_in(row: Row) -> set[str]:
    """The view operators that made the results of a row's samples, by their nodes."""
    names = {view.node_class: name for name, view in VIEWS.items()}
    found = set()
    for sample in row.samples:
        args, kwargs, _ = facets.OURS.arguments(sample, facets.key_of(row, sample), "float64", grad=True)
        result, _ = facets.attempt(operator_named(row.name), args, kwargs)
        for leaf in facets.flat(result):
            node = getattr(leaf, "grad_fn", None)
            while node is not None:
                found.add(names.get(type(node), ""))
                node = node.next_functions[0][0] if node.next_functions else None
    return found


# Tested in test_devices.py, test_tensor_methods.py, test_older_storages.py and tests/stored.
ELSEWHERE = {
    "cuda",
    "tpu",
    "apply_",
    "map_",
    "map2_",
    "as_subclass",
    "chalf",
    "dim_order",
    "module_load",
    "storage",
    "storage_type",
    "to_padded_tensor",
}


def test_every_method_has_a_row_too():
    """Methods of Tensor that are written by hand are composites of some family, or properties of the tensor itself."""
    named = {row.name.rpartition(".")[2] for row in ROWS}
    loose = [
        name
        for name, value in vars(Tensor).items()
        if inspect.isfunction(value)
        and value.__module__.startswith("xtensor.ops")
        and not name.startswith("_")
        and name.removesuffix("_") not in named
        and name not in named
    ]
    assert set(loose) <= ELSEWHERE


# The table must be able to fail: each facet sees an operator that is wrong in it.


def test_a_missing_row_is_found():
    assert "tanh" in missing_rows([row for row in ROWS if row.name != "tanh"])


def wrong(monkeypatch: pytest.MonkeyPatch, name: str, function) -> None:
    monkeypatch.setattr(facets, "operator_named", lambda _: function)


def test_a_wrong_value_is_found(monkeypatch):
    row = Row("tanh", [Sample(T(2, 3))], numpy=np.tanh)
    tanh = operator_named("tanh")
    wrong(monkeypatch, "tanh", lambda x: tanh(x) * 1.0001)
    with pytest.raises(AssertionError) as failure:
        facets.value(row, False)
    assert "tanh(T(2, 3)) with float32" in failure.value.__notes__[-1]


def test_a_wrong_shape_is_found(monkeypatch):
    row = Row("tanh", [Sample(T(2, 3))], numpy=np.tanh)
    tanh = operator_named("tanh")
    wrong(monkeypatch, "tanh", lambda x: tanh(x).select(0, 0))
    with pytest.raises(AssertionError, match="shape"):
        facets.value(row, False)


@pytest.mark.parametrize("second", [False, True])
def test_a_wrong_gradient_is_found(monkeypatch, second):
    row = Row("tanh", [Sample(T(2, 3))])
    tanh = operator_named("tanh")

    # Detached in part: the value is right, the gradient is not.
    def half(x):
        y = tanh(x)
        return y * y.data.tanh() if second else y + y.data * 0.0 + (y - y.data) * 0.5

    wrong(monkeypatch, "tanh", half)
    with pytest.raises(AssertionError):
        (facets.second_gradient if second else facets.gradient)(row, False)


def test_a_finite_difference_finds_a_wrong_gradient(monkeypatch):
    monkeypatch.setattr(facets, "torch", None)
    row = Row("tanh", unary())
    facets.gradient(row, False)
    facets.second_gradient(row, False)
    tanh = operator_named("tanh")
    wrong(monkeypatch, "tanh", lambda x: tanh(x) + (x - x.data) * 0.5)
    with pytest.raises(AssertionError):
        facets.gradient(row, False)


@pytest.mark.parametrize(
    "change",
    [
        lambda y: y.t(),  # strides
        lambda y: y.double(),  # dtype
        lambda y: y[:1],  # shape
        lambda y: operator_named("ones_like")(y, device="cpu"),  # device
    ],
)
def test_a_wrong_result_on_meta_is_found(monkeypatch, change):
    row = Row("tanh", [Sample(T(3, 3))])
    tanh = operator_named("tanh")
    on_meta.meta(row, False)
    monkeypatch.setattr(
        on_meta, "operator_named", lambda _: lambda x: change(tanh(x)) if x.is_meta else tanh(x)
    )
    with pytest.raises(AssertionError):
        on_meta.meta(row, False)


def test_an_operator_that_needs_values_must_say_that_meta_has_none(monkeypatch):
    row = Row("nonzero", [Sample(T(2, 3))], meta=False)
    on_meta.meta(row, False)
    nonzero = operator_named("nonzero")

    def obscure(x):
        return nonzero(x) if not x.is_meta else {}[x]

    monkeypatch.setattr(on_meta, "operator_named", lambda _: obscure)
    with pytest.raises(AssertionError):
        on_meta.meta(row, False)
