"""Split along two dimensions of a mesh: layers over one by a plan, and what each device has of them over the other.

JAX_NUM_CPU_DEVICES=8 python examples/distributed/two_dimensions.py
"""

import os

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import xtensor
from xtensor import nn
from xtensor.distributed.ahead import collectives
from xtensor.distributed.device_mesh import init_device_mesh
from xtensor.distributed.fsdp import fully_shard
from xtensor.distributed.tensor import Replicate, Shard, distribute_tensor
from xtensor.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 8)

    def forward(self, x):
        return self.down(nn.functional.gelu(self.up(x)))


def train(mesh=None, steps=20):
    """The losses of some steps, the model, and the step."""
    xtensor.manual_seed(0)
    model = Network()
    x, y = xtensor.randn(32, 16), xtensor.randint(0, 8, (32,))
    if mesh is not None:
        parallelize_module(model, mesh["model"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(model, mesh=mesh["data"])
        x, y = (distribute_tensor(t, mesh, [Shard(0), Replicate()]) for t in (x, y))
    optimizer = xtensor.optim.AdamW(model.parameters(), lr=1e-2)

    @xtensor.compile
    def step():
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return [step().item() for _ in range(steps)], model, step


if __name__ == "__main__":
    mesh = init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "model"))
    (alone, _, _), (split, model, step) = train(), train(mesh)
    apart = max(abs(a - b) for a, b in zip(alone, split))
    print(f"loss {alone[0]:.4f} to {alone[-1]:.4f}, furthest apart {apart:.1e}")
    for name, p in model.named_parameters():
        print(f"{name}: {tuple(p.shape)} lies as {p.placements}, {p.to_local().numel()} of {p.numel()} here")
    for kind, (count, size) in collectives(step).items():
        print(f"{count} {kind} of {size:,} bytes in a step")
    assert apart < 1e-4 and model.up.weight.to_local().numel() * 8 == model.up.weight.numel()
