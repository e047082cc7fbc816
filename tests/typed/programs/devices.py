"""Devices, memory, comparisons, checks."""

import xtensor
from xtensor import Tensor, nn

place: xtensor.device = xtensor.device("cpu")
print(
    xtensor.devices.list(),
    xtensor.devices.count("cpu"),
    xtensor.devices.is_available("cuda"),
    xtensor.devices.current(),
)
print(xtensor.devices.properties(place), xtensor.devices.memory(place), place.type, place.index)
xtensor.devices.synchronize(place)
with xtensor.device("cpu"):
    x: Tensor = xtensor.zeros(2)
xtensor.set_default_device("cpu")
found = xtensor.devices.compare(nn.Linear(2, 2), x, devices=["cpu"])
print(found.max_ulps, found.rows, found.as_dict())
checked = xtensor.selfcheck.check("cpu", ["exp"])
print(checked.wrong, checked.findings)
meta = nn.Linear(4, 4, device="meta")
print(
    meta(xtensor.empty(2, 4, device="meta")).shape, xtensor.get_default_device(), xtensor.get_default_dtype()
)
print(
    xtensor.ops.explain("exp"),
    xtensor.ops.source("exp"),
    xtensor.compile_cache.stats(),
    xtensor.engine.stats(),
)
xtensor.help("X101")
