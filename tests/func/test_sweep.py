"""A sample of the operator table under transforms; `python -m tests.transforms` runs all of it."""

import pytest

from tests.table import ROWS
from tests.transforms.sweep import differences

SOME = ("add", "softmax", "cumsum", "gather", "matmul", "conv2d", "layer_norm", "logsumexp", "max", "where")


@pytest.mark.parametrize("name", SOME)
def test_batches_and_tangents_agree_with_loops(name):
    (row,) = [r for r in ROWS if r.name == name]
    assert differences(row, sizes=(2, 0)) == []
