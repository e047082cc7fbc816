"""Memory and communication of a step on 256 devices, compiled without them and without the memory for the model.

JAX_NUM_CPU_DEVICES=256 python examples/distributed/ahead.py
"""

import os

os.environ["JAX_NUM_CPU_DEVICES"] = "256"

import xtensor
from xtensor import nn
from xtensor.distributed.ahead import ahead
from xtensor.distributed.device_mesh import init_device_mesh
from xtensor.distributed.tensor import Replicate, Shard

mesh = init_device_mesh("cpu", (16, 16), mesh_dim_names=("data", "model"))
with xtensor.device("meta"):
    model = nn.Sequential(nn.Linear(4096, 16384), nn.GELU(), nn.Linear(16384, 4096))
    x = xtensor.zeros(512, 4096)
total = sum(p.nbytes for p in model.parameters())
plan = {
    "0.*": [Replicate(), Shard(0)],
    "2.weight": [Replicate(), Shard(1)],
    "2.bias": [Replicate(), Replicate()],
}
report = ahead(model, [x], mesh, plan, batch=[Shard(0), Replicate()])
print(f"{total:,} bytes of parameters, split over {mesh}"[:100])
print(report)
assert report.arguments < 1.05 * (total / 16 + x.nbytes / 16)
