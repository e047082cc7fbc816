"""Calls that fit no signature: a wrong keyword, an argument too few, too many. The error is PyTorch's in class, form and facts."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import xtensor
from tests.table import ROWS, Row
from tests.table.bridge import OURS, THEIRS, operator_named, reference_of
from xtensor.operators.functions.unknown import is_strict
from xtensor.operators.operator import REGISTRY

SEVERAL = sorted(name for name, op in REGISTRY.items() if is_strict(op))
FORMS = {
    "combination": "invalid combination of arguments",
    "keyword": "got an unexpected keyword argument",
    "missing": "missing ",
    "many": "positional argument",
}


def said(function: Any, args: Any, kwargs: Any) -> tuple[str, str]:
    try:
        function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
    return "", ""


def form(message: str) -> str:
    return next((name for name, words in FORMS.items() if words in message), "")


def wrong(args: list[Any], kwargs: dict[str, Any]) -> dict[str, tuple[list[Any], dict[str, Any]]]:
    return {
        "keyword": (args, {**kwargs, "dims": 1}),
        "missing": (args[:-1], kwargs),
        "many": ([*args, *args[:1] * 12], kwargs),
    }


def test_there_are_many() -> None:
    assert len(SEVERAL) > 60


@pytest.mark.parametrize("name", SEVERAL)
def test_what_is_missing_or_too_much_lists_the_signatures(name: str) -> None:
    op, x = REGISTRY[name], xtensor.ones(2, 2)
    required = [p for p in op.schema.parameters if p.required]
    for args in ([x] * (len(required) - 1), [x] * 20):
        kind, message = said(op.function, args, {})
        assert (kind, form(message)) == ("TypeError", "combination"), message
        assert f"{name}() received" in message and f"got ({', '.join(['Tensor'] * len(args))})" in message
        assert "Missing" not in message and "<missing>" not in message
    if op.inplace is not None:
        assert f"{name}_() received an invalid" in said(op.inplace, [x] * 20, {})[1]
    if op.several:
        message = said(op.function, [x] * len(required), {"dims": 1})[1]
        assert form(message) == "combination" and "dims=int" in message
    parameters = inspect.signature(op.function).parameters
    assert not {"rest", "unknown"} & set(parameters)
    assert [n for n, p in parameters.items() if p.default is p.empty] == [p.name for p in required]


def test_operators_of_python_and_the_commonest_collect_nothing() -> None:
    x = xtensor.ones(2)
    assert (x == x).all() and (x + 1).sum() == 4
    for function in (xtensor.add, xtensor.sub, xtensor.mul, xtensor.Tensor.__eq__, xtensor.Tensor.__lt__):
        function(x, x)
        assert not function.__code__.co_flags & inspect.CO_VARKEYWORDS


COMPARED: list[Row] = [row for row in ROWS if row.samples]
# PyTorch has them counted out: the signature with a number takes no `out=`, so a wrong keyword leaves one signature.
ONE_LEFT = {("floor_divide", "keyword"), ("addcdiv", "missing"), ("addcmul", "missing")}
ONE_LEFT |= {("median", "keyword"), ("nanmedian", "keyword"), ("random_", "keyword")}
ONE_LEFT |= {("flip", "many"), ("repeat", "many")}  # which take any number of sizes
# Python's own words: what is called often and written in Python, copies of views, two names of one function,
# and functions that also take `nn.functional`'s arguments. `Tensor.view` words its errors before it comes to `view`.
PLAIN = {
    "where",
    "view",
    "squeeze_copy",
    "view_copy",
    "true_divide",
    "copy_",
    "type",
    "embedding_bag",
    "istft",
}
PLAIN |= {"batch_norm", "instance_norm", "_native_batch_norm_legit"}


@pytest.mark.parametrize("row", COMPARED, ids=lambda row: row.name)
def test_the_form_is_pytorch_s(row: Row) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")
    try:
        theirs, ours = reference_of(row), operator_named(row.name)
    except LookupError:
        pytest.skip("PyTorch has it not")
    if callable(row.reference) or inspect.isfunction(theirs) or row.name in PLAIN:
        pytest.skip("not PyTorch's signatures, or Python's own words")
    expected, actual = [
        wrong(*library.arguments(row.samples[0], "signatures", row.dtype)[:2]) for library in (THEIRS, OURS)
    ]
    for case, call in expected.items():
        kind, message = said(theirs, *call)
        if form(message) not in FORMS or (row.name, case) in ONE_LEFT:
            continue  # another error comes first, or it is no error
        mine = said(ours, *actual[case])
        assert (mine[0], form(mine[1])) == (kind, form(message)), (case, mine, message)
        assert case != "keyword" or "dims" in mine[1]
