"""Some of what `python -m tests.export` judges: modules equal to the bit through a replay and a file."""

import pytest

pytest.importorskip("flatbuffers")
pytest.importorskip("torch")
pytest.importorskip("expecttest")

from tests.export import __main__ as command
from tests.modules import judge_modules

SOME = [
    "nn.Linear",
    "nn.Conv2d",
    "nn.BatchNorm1d",
    "nn.LayerNorm",
    "nn.Embedding",
    "nn.GRU",
    "nn.TransformerEncoderLayer",
]


@pytest.mark.parametrize("name", SOME)
def test_modules_round_trip(name):
    case = next(iter(judge_modules.cases(judge_modules.names().index(name), name)))
    outcome = command.judge(case)
    assert not set(outcome) - {"jax"}, outcome
