"""The functions of modules that `functorch` had before `torch.func`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor import nn
from xtensor.compat import functorch

pytestmark = pytest.mark.filterwarnings("ignore:We've integrated functorch:FutureWarning")


def network(width: int = 3) -> Any:
    return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 1))


def test_gradients_of_a_module_as_a_function() -> None:
    model, x = network(), xtensor.randn(5, 4)
    function, params = functorch.make_functional(model)
    assert all(p.requires_grad and p is not q for p, q in zip(params, model.parameters(), strict=True))
    found = functorch.grad(lambda p: function(p, x).square().sum())(params)
    model(x).square().sum().backward()
    for grad, param in zip(found, model.parameters(), strict=True):
        assert param.grad is not None
        np.testing.assert_allclose(grad.detach().numpy(), param.grad.numpy(), rtol=1e-5, atol=1e-6)
    assert not any(
        p.requires_grad for p in functorch.make_functional(model, disable_autograd_tracking=True)[1]
    )


def test_buffers_are_given_beside_parameters() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).eval()
    x = xtensor.randn(5, 4)
    function, params, buffers = functorch.make_functional_with_buffers(model)
    assert xtensor.equal(function(params, buffers, x), model(x))
    with pytest.raises(ValueError, match="`model` has buffers"):
        functorch.make_functional(model)


def test_an_ensemble() -> None:
    models, x = [network() for _ in range(3)], xtensor.randn(5, 4)
    function, params, buffers = functorch.combine_state_for_ensemble(models)
    found = functorch.vmap(function, in_dims=(0, 0, None))(params, buffers, x)
    for one, model in zip(found, models, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(RuntimeError, match="at least one model"):
        functorch.combine_state_for_ensemble([])
    with pytest.raises(RuntimeError, match="of the same class"):
        functorch.combine_state_for_ensemble([nn.Linear(1, 1), nn.Tanh()])


def test_it_says_what_is_newer() -> None:
    with pytest.warns(FutureWarning, match=r"Please use `torch.func.functional_call` instead"):
        functorch.make_functional(network())


def test_the_experimental_names_and_einops() -> None:
    from xtensor.compat.functorch import einops, experimental

    x = xtensor.arange(10.0).reshape(5, 2)
    calls = []

    def f(row: xtensor.Tensor) -> xtensor.Tensor:
        calls.append(0)
        return row.sum()

    assert experimental.chunk_vmap(f, chunks=2)(x).tolist() == x.sum(1).tolist()
    assert len(calls) == 2
    assert experimental.functionalize is xtensor.func.functionalize
    assert einops.rearrange(x, "a b -> b a").shape == (2, 5)
