"""Tensors and functions of PyTorch among those of xtensor, in one process: converted where that is meant, else refused in words."""

from __future__ import annotations

import pytest

import xtensor
from xtensor.interop.torch import from_torch

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    "call",
    [
        lambda x, t: x + t,
        lambda x, t: t + x,
        lambda x, t: xtensor.exp(t),
        lambda x, t: xtensor.cat([x, t]),
        lambda x, t: xtensor.nn.Linear(3, 2)(t),
        lambda x, t: xtensor.nn.Parameter(t),
        lambda x, t: x.add_(t),
    ],
)
def test_a_tensor_of_the_other_library_is_refused(call):
    with pytest.raises(TypeError, match="convert it by xtensor"):
        call(xtensor.ones(3), torch.ones(3))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.exp(x),
        lambda x: torch.nn.functional.gelu(x),
        lambda x: torch.stack([x, x]),
        lambda x: torch.nn.Linear(3, 2)(x),
        lambda x: torch.nn.functional.dropout(x),
    ],
)
def test_a_function_of_the_other_library_is_refused(call):
    with pytest.raises(TypeError, match="a function of PyTorch's own was called with a tensor of xtensor"):
        call(xtensor.ones(3))


def test_weights_and_indices_of_the_other_library_are_taken():
    theirs, ours = torch.nn.Linear(3, 2), xtensor.nn.Linear(3, 2)
    ours.load_state_dict(theirs.state_dict())
    assert ours.weight.equal(from_torch(theirs.weight.detach()))
    x = xtensor.arange(3.0)
    assert x[torch.tensor([2, 0])].tolist() == [2.0, 0.0]
    x[torch.tensor([True, False, False])] = 5.0
    assert x.tolist() == [5.0, 1.0, 2.0]
