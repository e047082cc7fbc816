"""A sample of PyTorch's module and optimizer databases, on both libraries; `python -m tests.modules` runs all of them."""

import zlib

import pytest

pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tests.modules import judge_modules, judge_optimizers
from tests.modules.__main__ import spread

SAMPLED = 3  # one entry in so many is run in CI, its first case
JUDGES = {"module": judge_modules, "optimizer": judge_optimizers}
ENTRIES = [(kind, entry, name) for kind, judge in JUDGES.items() for entry, name in enumerate(judge.names())]


def in_sample(kind: str, name: str) -> bool:
    """Whether an entry is in the sample: the same ones every time, spread over the databases."""
    return kind == "optimizer" or zlib.crc32(name.encode()) % SAMPLED == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind, entry, name", ENTRIES, ids=[name for *_, name in ENTRIES])
def test_entry(kind, entry, name, request):
    whole = request.config.getoption("--full")
    if not whole and not in_sample(kind, name):
        pytest.skip("not in the sample; --full runs it")
    found = list(JUDGES[kind].cases(entry, name))
    if whole:
        found = [case for case in found if case.title not in UNSUPPORTED]
    else:
        found = [case for case in spread(found, 2) if case.title not in UNSUPPORTED][:1]
    differences = {case.title: JUDGES[kind].run(case) for case in found}
    assert {title: text for title, text in differences.items() if text is not None} == {}


def test_the_judge_sees_a_difference(monkeypatch):
    """A module whose forward is wrong is told apart."""
    names = judge_modules.names()
    entry = names.index("nn.Identity") if "nn.Identity" in names else 0
    case = next(iter(judge_modules.cases(entry, names[entry])))
    wrong = judge_modules.counterpart(judge_modules.module_db[entry].module_cls)
    right = wrong.forward
    monkeypatch.setattr(wrong, "forward", lambda self, *args, **kwargs: right(self, *args, **kwargs) + 1)
    assert "forward" in judge_modules.run(case)


# There are no sparse tensors here.
UNSUPPORTED = {"optim.SparseAdam float32 error 8"}
