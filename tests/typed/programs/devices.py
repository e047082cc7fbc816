"""Devices, memory, comparisons, checks, settings."""

import xtensor
from xtensor import Tensor, nn

place: xtensor.device = xtensor.device("cpu")
print(
    xtensor.devices.list(),
    xtensor.devices.count("cpu"),
    xtensor.devices.is_available("cuda"),
    xtensor.devices.current(),
)
kind: xtensor.devices.Properties = xtensor.devices.properties(place)
used: xtensor.devices.Memory = xtensor.devices.memory(place)
print(kind, used, place.type, place.index, xtensor.devices.jax_device(place))
xtensor.devices.synchronize(place)
with xtensor.device("cpu"), xtensor.devices.use("cpu"):
    x: Tensor = xtensor.zeros(2)
assert x.get_device() == -1 and xtensor.get_device(x) == -1
xtensor.set_default_device("cpu")
found = xtensor.devices.compare(nn.Linear(2, 2), x, devices=["cpu"])
print(found.max_ulps, found.rows, found.as_dict())
checked = xtensor.selfcheck.check("cpu", ["exp"])
print(checked.wrong, checked.findings)
meta = nn.Linear(4, 4, device="meta")
print(meta(xtensor.empty(2, 4, device="meta")).shape, xtensor.get_default_device())
print(
    xtensor.ops.explain("exp"),
    xtensor.ops.source("exp"),
    xtensor.compile_cache.stats(),
    xtensor.engine.stats(),
)
xtensor.help("X101")

# Settings
xtensor.set_default_dtype(xtensor.float64)
assert xtensor.get_default_dtype() == xtensor.ones(1).dtype == xtensor.float64
xtensor.set_default_dtype(xtensor.float32)
xtensor.set_printoptions(precision=2)
print(xtensor.get_printoptions(), xtensor.tensor([1.2345]))
xtensor.use_deterministic_algorithms(True)
assert xtensor.are_deterministic_algorithms_enabled() and xtensor.get_deterministic_debug_mode() == 2
xtensor.set_deterministic_debug_mode("default")
xtensor.set_float32_matmul_precision("high")
assert xtensor.get_float32_matmul_precision() == "high" and xtensor.get_num_threads() > 0
xtensor.set_warn_always(False)
assert not xtensor.is_warn_always_enabled() and xtensor.amp.is_autocast_available("cpu")
