"""Modules trained by optax, and models of flax and equinox as modules; each where it is installed."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from xtensor import nn


def test_optax_trains_a_module(seed):
    optax = pytest.importorskip("optax")
    xtensor.manual_seed(seed)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
    function, parameters = xtensor.jax.to_jax(net)
    x, y = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3), np.ones((4, 1), np.float32)
    optimizer = optax.sgd(0.1, momentum=0.9)
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters, state):
        loss, grads = jax.value_and_grad(lambda p: ((function(p, x) - y) ** 2).mean())(parameters)
        updates, state = optimizer.update(grads, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    losses = []
    for _ in range(5):
        parameters, state, loss = step(parameters, state)
        losses.append(float(loss))

    own = xtensor.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    expected = []
    for _ in range(5):
        own.zero_grad()
        loss = (net(xtensor.from_numpy(x)) - xtensor.from_numpy(y)).pow(2).mean()
        loss.backward()
        own.step()
        expected.append(loss.item())
    np.testing.assert_allclose(losses, expected, 1e-4, 1e-6)
    samples = jax.vmap(function, (None, 0))(parameters, x)
    np.testing.assert_allclose(samples, function(parameters, x), 1e-5, 1e-6)


def trained(module, x):
    """The losses of three steps of SGD."""
    optimizer = xtensor.optim.SGD(module.parameters(), lr=0.05)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = module(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_flax_model_is_a_module():
    linen = pytest.importorskip("flax.linen")
    model = linen.Sequential([linen.Dense(5), linen.relu, linen.Dense(2)])
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    parameters = model.init(jax.random.key(0), x)
    module = xtensor.jax.from_jax(model.apply, parameters)
    assert len(list(module.parameters())) == 4
    np.testing.assert_allclose(
        module(xtensor.from_numpy(x)).detach().numpy(), model.apply(parameters, x), 1e-6
    )
    losses = trained(module, xtensor.from_numpy(x))
    assert losses[0] > losses[1] > losses[2]


def test_an_equinox_model_is_a_module():
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    arrays, rest = eqx.partition(model, eqx.is_array)
    module = xtensor.jax.from_jax(lambda arrays, x: jax.vmap(eqx.combine(arrays, rest))(x), arrays)
    x = jnp.linspace(-1, 1, 12).reshape(4, 3)
    given = xtensor.from_numpy(np.asarray(x))
    np.testing.assert_allclose(module(given).detach().numpy(), jax.vmap(model)(x), 1e-6)
    losses = trained(nn.Sequential(module, nn.Linear(2, 2)), given)
    assert losses[0] > losses[2]


def test_the_example_trains_with_each_library_that_is_installed():
    root = pathlib.Path(__file__).resolve().parents[2]
    run = subprocess.run(
        [sys.executable, "examples/other_libraries.py"],
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-2000:]
    said = dict(line.split(": ") for line in run.stdout.splitlines())
    assert list(said) == ["optax", "flax", "equinox"]
    for package, outcome in said.items():
        if importlib.util.find_spec(package) is None:
            assert outcome == "not installed"
        else:
            assert float(outcome.removeprefix("loss ")) < 0.05
