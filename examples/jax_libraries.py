"""JAX's libraries and xtensor in one program: optax trains a module, and a flax model is a layer of a PyTorch-style network.

    python examples/jax_libraries.py

It needs `pip install flax optax`.
"""

import flax.linen as linen  # pyright: ignore[reportMissingImports]
import jax
import numpy as np
import optax  # pyright: ignore[reportMissingImports]

import xtensor as torch
from xtensor import nn

x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(-1, 1)
y = np.sin(3 * x)


def by_optax():
    """A module's parameters, trained by optax under `jax.jit`, and put back."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
    function, parameters = torch.jax.to_jax(net)
    optimizer = optax.adam(1e-2)
    state = optimizer.init(parameters)

    @jax.jit
    def step(parameters, state):
        loss, grads = jax.value_and_grad(lambda p: ((function(p, x) - y) ** 2).mean())(parameters)
        updates, state = optimizer.update(grads, state)
        return optax.apply_updates(parameters, updates), state, loss

    for _ in range(300):
        parameters, state, _ = step(parameters, state)
    net.load_state_dict({name: torch.from_numpy(np.array(p)) for name, p in parameters.items()})
    return (net(torch.from_numpy(x)) - torch.from_numpy(y)).pow(2).mean().item()


def with_flax():
    """A flax model within a network, trained by `torch.optim`."""
    torch.manual_seed(0)
    model = linen.Sequential([linen.Dense(32), linen.tanh])
    layer = torch.jax.from_jax(model.apply, model.init(jax.random.key(0), x))
    net = nn.Sequential(layer, nn.Linear(32, 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    inputs, truth = torch.from_numpy(x), torch.from_numpy(y)
    loss = torch.zeros(())
    for _ in range(300):
        optimizer.zero_grad()
        loss = (net(inputs) - truth).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    losses = {"by optax": by_optax(), "with flax": with_flax()}
    print(losses)
    assert all(loss < 0.05 for loss in losses.values())
