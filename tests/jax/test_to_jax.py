"""Modules as pure functions of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from xtensor import nn


@pytest.fixture
def net(seed):
    xtensor.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2))


def test_value_and_gradient_are_the_modules(net, rng):
    net.eval()
    x = rng.standard_normal((5, 3)).astype(np.float32)
    function, parameters = xtensor.jax.to_jax(net)
    loss = net(xtensor.from_numpy(x)).pow(2).sum()
    loss.backward()
    value, gradients = jax.jit(jax.value_and_grad(lambda p: (function(p, x) ** 2).sum()))(parameters)
    assert float(value) == pytest.approx(loss.item(), rel=1e-6)
    assert set(gradients) == {name for name, _ in net.named_parameters()}
    for name, parameter in net.named_parameters():
        np.testing.assert_allclose(gradients[name], parameter.grad.numpy(), rtol=2e-5, atol=1e-6)


def test_samples_are_mapped(net, rng):
    net.eval()
    x = jnp.asarray(rng.standard_normal((5, 3)), jnp.float32)
    function, parameters = xtensor.jax.to_jax(net)
    one_by_one = jax.vmap(lambda row: function(parameters, row[None])[0])(x)
    np.testing.assert_allclose(one_by_one, function(parameters, x), rtol=1e-5, atol=1e-6)
    perturbed = jax.vmap(lambda s: function({**parameters, "4.bias": parameters["4.bias"] * s}, x))(
        jnp.arange(3.0)
    )
    assert perturbed.shape == (3, 5, 2)


def test_second_derivatives(net):
    net.eval()
    function, parameters = xtensor.jax.to_jax(net)
    hessian = jax.hessian(lambda b: function({**parameters, "0.bias": b}, jnp.ones((1, 3))).sum())(
        parameters["0.bias"]
    )
    ours = xtensor.func.hessian(
        lambda b: xtensor.func.functional_call(net, {"0.bias": b}, (xtensor.ones(1, 3),)).sum()
    )(net[0].bias.detach())
    np.testing.assert_allclose(hessian, ours.detach().numpy(), rtol=1e-4, atol=1e-6)


def test_buffers_are_constants_or_results(net):
    x = jnp.arange(15.0).reshape(5, 3)
    function, parameters = xtensor.jax.to_jax(net)
    with pytest.raises(RuntimeError, match=r"writes its buffers 1\.running_mean"):
        function(parameters, x, seed=0)
    function, parameters, buffers = xtensor.jax.to_jax(net, buffers=True)
    before = net[1].running_mean.clone()
    _, new = jax.jit(function)(parameters, buffers, x, seed=0)
    assert xtensor.equal(net[1].running_mean, before) and int(new["1.num_batches_tracked"]) == 1
    net(xtensor.from_numpy(np.asarray(x)))
    np.testing.assert_allclose(new["1.running_mean"], net[1].running_mean.numpy(), rtol=1e-6)


def test_random_numbers_follow_the_seed():
    function, parameters = xtensor.jax.to_jax(nn.Dropout(0.5))
    x = jnp.ones((64,))
    drawn = jax.jit(function)
    with pytest.raises(RuntimeError, match=r"draws random numbers, and no seed is given.*test_to_jax"):
        function(parameters, x)
    first, again, other = (drawn(parameters, x, seed=s) for s in (1, 1, 2))
    assert (first == again).all() and not (first == other).all()
    both = jax.vmap(lambda s: function(parameters, x, seed=s))(jnp.array([1, 2]))
    assert (both[0] == first).all() and (both[1] == other).all()


def test_a_value_that_python_asks_for_is_named():
    flips = xtensor.jax.to_jax(lambda x: x if x.sum() > 0 else -x)
    assert flips(jnp.ones(2)).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match=r"needs the value of a tensor.*test_to_jax\.py:\d+"):
        jax.jit(flips)(jnp.ones(2))


def test_nothing_leaks(net):
    function, parameters = xtensor.jax.to_jax(net.eval())
    own = [p._xt_storage for p in net.parameters()]
    with pytest.raises(TypeError):
        jax.jit(function)(parameters)
    jax.jit(function)(parameters, jnp.ones((1, 3)))
    assert [p._xt_storage for p in net.parameters()] == own
    net[0].bias.data.fill_(7)
    assert not (parameters["0.bias"] == 7).any()


def test_pytrees_and_numbers_pass():
    class Pair(nn.Module):
        def forward(self, both, scale, shift=None):
            return {"sum": (both["a"] + both["b"]) * scale, "shift": shift}

    function, _ = xtensor.jax.to_jax(Pair())
    found = function({}, {"a": jnp.ones(2), "b": np.ones(2, np.float32)}, 3, shift=jnp.zeros(1))
    assert found["sum"].tolist() == [6.0, 6.0] and isinstance(found["shift"], jax.Array)
