"""The errors that docstrings tell are raised, and those of usual mistakes are told."""

from __future__ import annotations

import functools
import inspect
import pathlib

import pytest

import xtensor
import xtensor.distributed.tensor  # it gives Tensor methods
import xtensor.nn.functional as F
from tests.house.raises import NO_SUCH_DIM, OTHER_KINDS, Observed, clauses, is_fixed, raised, spelled
from tests.house.test_docstrings import commonest, public_names
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


def test_the_commonest_names_tell_their_errors():
    lacking = {name for name in commonest() if not clauses(inspect.getdoc(named(name)) or "")}
    assert lacking == NOTHING_TO_REFUSE


def test_public_names_tell_their_errors():
    """The others take no arguments that could be wrong, or hand them on; a new name tells its own."""
    docs = {
        n: inspect.getdoc(v.fget if isinstance(v, property) else v) or "" for n, v in public_names().items()
    }
    assert len([name for name, doc in docs.items() if not clauses(doc)]) <= 167


# They take no arguments that could be wrong, or only hand them on.
NOTHING_TO_REFUSE = set(
    """
    inference_mode is_grad_enabled is_tensor Tensor.bfloat16 Tensor.bool Tensor.contiguous Tensor.cpu
    Tensor.cuda Tensor.detach Tensor.device Tensor.dim Tensor.double Tensor.dtype Tensor.float Tensor.half Tensor.int
    Tensor.is_contiguous Tensor.is_floating_point Tensor.is_leaf Tensor.long Tensor.ndim Tensor.numel Tensor.shape
    Tensor.type_as nn.ELU nn.GELU nn.Identity nn.LeakyReLU nn.ReLU nn.SiLU nn.Sigmoid nn.Softplus nn.Tanh
    nn.functional.elu nn.functional.hardtanh nn.functional.leaky_relu nn.functional.relu nn.functional.silu
    nn.init.constant_ nn.init.ones_ nn.init.trunc_normal_ nn.init.zeros_
    """.split()
)
