"""Modules and optimizers of JAX's libraries beside those of this one: optax trains a module, and models of flax and equinox are trained as modules.

    python examples/other_libraries.py

All three fit the same curve; prints their losses. Needs the packages optax, flax and equinox; what is not installed is left out.
"""

import importlib
import importlib.util

import jax
import jax.numpy as jnp
import numpy as np

import xtensor as torch
from xtensor import nn

STEPS = 200


def curve():
    """Points of a sine."""
    x = np.linspace(-3, 3, 64, dtype=np.float32)[:, None]
    return x, np.sin(x)


def by_optax():
    """A module of this library as a pure function, trained by JAX's `grad` and `jit` and by optax."""
    optax = importlib.import_module("optax")  # of no extra, so that it is asked for when it is there

    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    function, parameters = torch.jax.to_jax(net)
    x, y = curve()
    optimizer = optax.adam(1e-2)
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters, state):
        loss, gradients = jax.value_and_grad(lambda p: ((function(p, x) - y) ** 2).mean())(parameters)
        updates, state = optimizer.update(gradients, state, parameters)
        return optax.apply_updates(parameters, updates), state, loss

    for _ in range(STEPS):
        parameters, state, loss = step(parameters, state)
    with torch.no_grad():  # the module goes on with what was learned
        for name, parameter in net.named_parameters():
            parameter.copy_(torch.interop.from_jax(parameters[name]))
        found = (net(torch.from_numpy(x)) - torch.from_numpy(y)).pow(2).mean()
    assert abs(found.item() - float(loss)) < 1e-3
    return found.item()


def trained(module):
    """The last loss of a module that an optimizer of this library trains."""
    x, y = map(torch.from_numpy, curve())
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-2)

    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = (module(x) - y).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


def by_flax():
    """A model of flax as a module, with a layer of this library behind it."""
    linen = importlib.import_module("flax.linen")

    model = linen.Sequential([linen.Dense(32), linen.tanh])
    parameters = model.init(jax.random.key(0), jnp.zeros((1, 1)))
    return trained(nn.Sequential(torch.jax.from_jax(model.apply, parameters), nn.Linear(32, 1)))


def by_equinox():
    """A model of equinox as a module: its arrays are the parameters, what is left of it is code."""
    eqx = importlib.import_module("equinox")

    model = eqx.nn.MLP(1, 1, 32, 1, activation=jax.nn.tanh, key=jax.random.key(0))
    arrays, rest = eqx.partition(model, eqx.is_array)
    return trained(torch.jax.from_jax(lambda arrays, x: jax.vmap(eqx.combine(arrays, rest))(x), arrays))


def main():
    torch.manual_seed(0)
    for package, run in (("optax", by_optax), ("flax", by_flax), ("equinox", by_equinox)):
        if importlib.util.find_spec(package) is None:
            print(f"{package}: not installed")
        else:
            print(f"{package}: loss {run():.4f}")


if __name__ == "__main__":
    main()
