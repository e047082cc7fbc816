"""Programs at any price, and questions about open sizes that have no answer."""

import pytest

import xtensor
from xtensor import nn
from xtensor.export import Dim, draft_export, export


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


ASKS = {
    "equal": lambda x: x + 1 if x.shape[0] == 4 else x,
    "another": lambda x: x + 1 if x.shape[0] != 5 else x,
    "one of": lambda x: x + 1 if x.size(0) in (1, 4) else x,
    "a multiple": lambda x: x + 1 if x.shape[0] % 2 == 0 else x,
    "truth": lambda x: x + 1 if x.shape[0] % 2 else x,
    "a key": lambda x: x + {4: 1}.get(x.shape[0], 7),
    "sizes": lambda x: x + 1 if x.shape == (4, 6) else x,
    "another size": lambda x: x + 1 if x.shape[0] == x.shape[1] else x,
    "a count": lambda x: x + 1 if x.numel() == 24 else x,
    "larger": lambda x: x + 1 if x.shape[0] > 3 else x,
}


@pytest.mark.parametrize("what", ASKS)
def test_a_question_that_only_some_sizes_answer_is_refused(what):
    module, x = Calls(ASKS[what]), xtensor.ones(4, 6)
    with pytest.raises(RuntimeError, match=r"Constraints violated \(b\).*test_draft\.py"):
        export(module, (x,), dynamic_shapes=({0: Dim("b", min=2, max=10)},))
    closed = export(module, (x,), dynamic_shapes=({0: Dim.AUTO},))
    assert xtensor.equal(closed.module()(x), module(x)) and not closed.range_constraints


DECIDED = {
    "one": lambda x: x + 1 if x.shape[0] == 1 else x,
    "none": lambda x: x + 1 if x.shape[0] != 0 else x,
    "too large": lambda x: x + 1 if x.size(0) == 20 else x,
    "itself": lambda x: x + 1 if x.shape[0] == x.size(0) else x,
    "twice": lambda x: x + 1 if x.shape[0] * 2 == x.shape[0] + x.shape[0] else x,
    "no size": lambda x: x + 1 if x.shape[0] == "4" else x,
    "true": lambda x: x + 1 if x.shape[0] else x,
}


@pytest.mark.parametrize("what", DECIDED)
def test_a_question_of_one_answer_is_answered(what):
    module = Calls(DECIDED[what])
    program = export(module, (xtensor.ones(4, 6),), dynamic_shapes=({0: Dim("b", min=2, max=10)},))
    for rows in (2, 5, 10):
        x = xtensor.ones(rows, 6)
        assert xtensor.equal(program.module()(x), module(x))


def test_a_draft_of_what_can_be_exported_is_sound():
    program = draft_export(Calls(xtensor.sin), (xtensor.ones(3),), dynamic_shapes=({0: Dim("b", min=2)},))
    assert program._report.successful() and "b" in program.range_constraints
    assert "No issues" in str(program._report)


def test_a_draft_closes_sizes_that_the_code_fixes():
    module, x = Calls(ASKS["equal"]), xtensor.ones(4, 6)
    with pytest.warns(UserWarning, match="1 issue"):
        program = draft_export(module, (x,), dynamic_shapes=({0: Dim("b", min=2, max=10)},))
    (failure,) = program._report.failures
    assert failure.failure_type.name == "GUARD_ADDED" and "b" in failure.data["reason"]
    assert xtensor.equal(program.module()(x), module(x))
    with pytest.raises(AssertionError):
        program.module()(xtensor.ones(5, 6))


def test_a_draft_takes_the_values_of_the_example():
    module, x = Calls(lambda x: x + 1 if x.sum().item() > 0 else x - 1), xtensor.ones(3)
    with pytest.raises(RuntimeError):
        export(module, (x,))
    with pytest.warns(UserWarning, match="1 issue"):
        program = draft_export(module, (x,))
    (failure,) = program._report.failures
    assert failure.failure_type.name == "DATA_DEPENDENT_ERROR" and "test_draft.py" in failure.data["line"]
    assert "a Python number" in str(program._report)
    assert xtensor.equal(program.module()(-x), -x + 1)


def test_a_draft_raises_the_errors_of_the_code():
    with pytest.raises(RuntimeError, match=r"shape|size"):
        draft_export(Calls(lambda x: x + xtensor.ones(7)), (xtensor.ones(3),))
