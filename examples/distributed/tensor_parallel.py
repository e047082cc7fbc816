"""Tensor and data parallel on a mesh: the losses are those of one device.

JAX_NUM_CPU_DEVICES=8 python examples/distributed/tensor_parallel.py
"""

import os

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import xtensor
from xtensor import nn
from xtensor.distributed.device_mesh import init_device_mesh
from xtensor.distributed.tensor import Replicate, Shard, distribute_tensor
from xtensor.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 4)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


def train(mesh=None, steps=20):
    """The losses of some steps, on a mesh or on one device."""
    xtensor.manual_seed(0)
    model = Network()
    x, y = xtensor.randn(32, 16), xtensor.randint(0, 4, (32,))
    if mesh is not None:
        parallelize_module(model, mesh["model"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        x, y = (distribute_tensor(t, mesh, [Shard(0), Replicate()]) for t in (x, y))
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-2)

    @xtensor.compile
    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step().item() for _ in range(steps)]
    if mesh is not None:
        print("weights:", {name: p.placements for name, p in model.named_parameters()})
    return losses


if __name__ == "__main__":
    mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "model"))
    alone, split = train(), train(mesh)
    print(
        f"loss {alone[0]:.4f} to {alone[-1]:.4f}, furthest apart {max(abs(a - b) for a, b in zip(alone, split)):.1e}"
    )
    assert all(abs(a - b) < 1e-4 for a, b in zip(alone, split))
