"""The errors that docstrings tell are raised, and those of usual mistakes are told."""

from __future__ import annotations

import functools
import inspect
import pathlib
from collections.abc import Callable

import pytest

import xtensor
import xtensor.distributed.tensor  # it gives Tensor methods
import xtensor.nn.functional as F
from tests.house.raises import (
    AS_WHEN_CALLED,
    DTYPES,
    NO_SUCH_DIM,
    NOTHING,
    OTHER_KINDS,
    Observed,
    clauses,
    is_fixed,
    kinds_of_tensors,
    raised,
    spelled,
)
from tests.house.test_docstrings import commonest, modules, public_names
from tests.table import ROWS, Row
from xtensor import nn
from xtensor.operators.operator import REGISTRY

CASES = pathlib.Path(__file__).parent / "raises.txt"
# What a user names in a case.
NAMES = {"__name__": "case", "xtensor": xtensor, "nn": nn, "F": F, "t": xtensor.tensor, "ones": xtensor.ones}


def differing(row: Row, whole: bool) -> tuple[set[str], set[str]]:
    """The clauses of a row's docstring that are not true, and those that it lacks."""
    found = Observed(row, whole)
    told = {s for c in clauses(inspect.getdoc(found.function) or "") for s in spelled(c)}
    wrong = {c for c in told if is_fixed(c) and found.is_asked(c)} - found.told
    return wrong, found.told - told


@pytest.mark.parametrize("part", range(8))
def test_the_errors_of_usual_mistakes_are_told_and_true(part, full):
    """On meta tensors, which compile nothing, an eighth of the rows in each test; in full runs on real ones."""
    for row in ROWS[part::8] if full else ROWS[part::32]:
        wrong, lacking = differing(row, full)
        assert wrong == set(), row.name
        assert lacking == set() or full, (
            row.name
        )  # real values are refused for reasons of their own: a division by 0


def test_what_is_not_true_and_what_is_lacking_are_found(monkeypatch):
    row = next(row for row in ROWS if row.name == "sum")
    doc = "A sum.\n\nRaises: TypeError for arguments of other kinds; NotImplementedError for complex and bool\ntensors."
    monkeypatch.setattr(xtensor.sum, "__doc__", doc)
    wrong = {"NotImplementedError for complex tensors", "NotImplementedError for bool tensors"}
    assert differing(row, False) == (wrong, {NO_SUCH_DIM})


def test_every_operator_tells_what_its_declaration_implies():
    for op in REGISTRY.values():
        assert OTHER_KINDS in clauses(inspect.getdoc(op.function) or ""), op.name
        if op.inplace is not None:
            assert clauses(inspect.getdoc(op.inplace) or "")[1] == f"else as `{op.name}`", op.name


@pytest.mark.parametrize(
    "name", sorted(n for n, o in REGISTRY.items() if o.inplace and o.kind == "pointwise")
)
def test_a_leaf_that_requires_grad_is_not_written(name):
    op = REGISTRY[name]
    leaf = xtensor.ones(2, device="meta", requires_grad=True)
    others = [leaf.detach() if p.kind == "Array" else 1 for p in op.schema.parameters[1:] if p.required]
    assert raised(lambda: op.inplace(leaf, *others)) == "RuntimeError"


def cases() -> list[tuple[str, str, str]]:
    """Name, class of the error, and what raises it."""
    lines = [
        line.split(None, 2) for line in CASES.read_text("utf-8").splitlines() if line[:1] not in ("", "#")
    ]
    return [(name, error, expression) for name, error, expression in lines]


def named(name: str) -> object:
    found: object = functools.reduce(getattr, name.split("."), xtensor)
    return found.fget if isinstance(found, property) else found


@pytest.mark.parametrize(("name", "error", "expression"), [pytest.param(*c, id=c[0]) for c in cases()])
def test_an_error_that_a_docstring_tells_is_raised(name, error, expression):
    assert error in {c.partition(" ")[0] for c in clauses(inspect.getdoc(named(name)) or "")}
    assert raised(lambda: eval(expression, dict(NAMES))) == error


def test_every_error_in_other_words_has_a_case():
    shown = {(name, error) for name, error, _ in cases()}
    objects = {id(named(name)) for name, _ in shown}
    for name, value in public_names().items():
        told = clauses(inspect.getdoc(value.fget if isinstance(value, property) else value) or "")
        own = {c.partition(" ")[0] for c in told if not is_fixed(c) and "as `" not in c}
        if own and "a leaf that requires grad" not in told[0]:
            assert id(value.fget if isinstance(value, property) else value) in objects, (name, own)


def told_by_public_names() -> dict[str, list[str]]:
    return {
        n: clauses(inspect.getdoc(v.fget if isinstance(v, property) else v) or "")
        for n, v in public_names().items()
    }


def test_the_commonest_names_tell_their_errors():
    assert [name for name in commonest() if not clauses(inspect.getdoc(named(name)) or "")] == []


def test_public_names_tell_their_errors():
    assert [name for name, told in told_by_public_names().items() if not told] == []


def test_what_raises_nothing_of_its_own_does_not():
    """Properties are read and methods called, with what their signatures ask for, on tensors of every kind."""
    silent = [name for name, told in told_by_public_names().items() if NOTHING in told]
    queries = [name for name in silent if name.startswith("Tensor.")]
    assert set(silent) - set(queries) == {
        "masked.is_masked_tensor",
        "nn.DataParallel",
        "nn.Identity",
    }
    assert len(queries) > 30
    for name in queries:
        for kind, tensor in kinds_of_tensors().items():
            held = vars(xtensor.Tensor)[name.removeprefix("Tensor.")]
            read = held.fget if isinstance(held, property) else held
            assert raised(lambda read=read, tensor=tensor: read(tensor)) is None, (name, kind)


def wrong_calls(function: Callable[..., object]) -> dict[str, str | None]:
    """What a function of one tensor raises for text, and for tensors of other dtypes."""
    given = {"text": "text"} | {k: xtensor.ones(2, 3).to(getattr(xtensor, n)) for k, n in DTYPES.items()}
    return {kind: raised(lambda value=value: function(value)) for kind, value in given.items()}


def test_modules_that_raise_as_a_function_do():
    """A module of one tensor with nothing but defaults, and the function that its docstring names."""
    compared = 0
    for name, module in modules().items():
        for told in clauses(inspect.getdoc(module) or ""):
            found = AS_WHEN_CALLED.fullmatch(told)
            if found is None or name in ("NLLLoss2d", "Threshold"):
                continue
            function = getattr(F, found[1].removeprefix("functional."))
            assert wrong_calls(module()) == wrong_calls(function), name
            compared += 1
    assert compared >= 20


@pytest.mark.parametrize(
    "name",
    "elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 silu softshrink softsign tanhshrink".split(),
)
def test_activations_tell_the_dtypes_that_they_refuse(name):
    """They have rows under other names, so that the table does not reach their docstrings."""
    function = getattr(F, name)
    told = {clause for c in clauses(inspect.getdoc(function) or "") for clause in spelled(c) if is_fixed(c)}
    found = wrong_calls(function)
    assert found.pop("text") == "TypeError"
    assert told == {OTHER_KINDS} | {f"{error} for {kind} tensors" for kind, error in found.items() if error}
