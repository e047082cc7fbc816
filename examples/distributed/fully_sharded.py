"""Parameters, gradients and optimizer states split over all devices: the losses are those of one device.

JAX_NUM_CPU_DEVICES=8 python examples/distributed/fully_sharded.py
"""

import os

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import xtensor
from xtensor import nn
from xtensor.distributed.device_mesh import init_device_mesh
from xtensor.distributed.fsdp import fully_shard


def train(mesh=None, steps=20):
    """The losses of some steps, and the model."""
    xtensor.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 8))
    if mesh is not None:
        fully_shard(model, mesh=mesh)
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-2)
    x, y = xtensor.randn(32, 16), xtensor.randint(0, 8, (32,))
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


if __name__ == "__main__":
    mesh = init_device_mesh("cpu", (8,))
    (alone, _), (split, model) = train(), train(mesh)
    total = sum(p.nbytes for p in model.parameters())
    here = sum(p.to_local().nbytes for p in model.parameters())
    print(
        f"loss {alone[0]:.4f} to {alone[-1]:.4f}, furthest apart {max(abs(a - b) for a, b in zip(alone, split)):.1e}"
    )
    print(f"a device holds {here} of {total} bytes of parameters")
    assert all(abs(a - b) < 1e-4 for a, b in zip(alone, split)) and here <= 1.05 * total / 8
