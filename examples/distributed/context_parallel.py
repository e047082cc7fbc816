"""Long sequences over eight devices: attention goes round a ring, and no device has the scores of more than a block of keys.

JAX_NUM_CPU_DEVICES=8 python examples/distributed/context_parallel.py
"""

import os

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "8")

import xtensor
from xtensor import nn
from xtensor.distributed.device_mesh import init_device_mesh
from xtensor.distributed.tensor import distribute_module
from xtensor.distributed.tensor.experimental import context_parallel


class Block(nn.Module):
    def __init__(self, width=32, heads=4):
        super().__init__()
        self.heads = heads
        self.mixed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.mixed(x).chunk(3, -1))
        made = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(made.transpose(1, 2).flatten(-2))


def loss_and_gradient(mesh=None):
    """The loss of a long sequence, and the gradient of the first weight."""
    xtensor.manual_seed(0)
    model = Block()
    x = xtensor.randn(2, 256, 32)
    if mesh is None:
        loss = model(x).pow(2).mean()
        loss.backward()
    else:
        distribute_module(model, mesh)
        x = x.to(mesh.device)
        with context_parallel(mesh["context"], buffers=[x], buffer_seq_dims=[1]):
            print(f"a device has {tuple(x.to_local().shape)} of {tuple(x.shape)}")
            loss = model(x).pow(2).mean()
            loss.backward()
    return loss.item(), model.mixed.weight.grad


if __name__ == "__main__":
    mesh = init_device_mesh("cpu", (8,), mesh_dim_names=("context",))
    (alone, one), (split, other) = loss_and_gradient(), loss_and_gradient(mesh)
    apart = (one - other.full_tensor()).abs().max().item()
    print(f"loss {alone:.6f} and {split:.6f}, gradients {apart:.1e} apart")
    assert abs(alone - split) < 1e-5 and apart < 1e-5
