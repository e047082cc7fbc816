"""Files, random states, checkpoints."""

import io
from typing import Any

import numpy as np

import xtensor
from xtensor import nn

model = nn.Linear(2, 2)
file = io.BytesIO()
xtensor.save({"model": model.state_dict(), "epoch": 3}, file)
file.seek(0)
state: dict[str, Any] = xtensor.load(file, map_location="cpu")
model.load_state_dict(state["model"], strict=False)
kept = xtensor.get_rng_state()
xtensor.set_rng_state(kept)
generator = xtensor.Generator().manual_seed(3)
print(xtensor.rand(2, generator=generator), xtensor.randperm(4, generator=generator), xtensor.initial_seed())
array = np.arange(6.0).reshape(2, 3)
x = xtensor.from_numpy(array)
back: np.ndarray[Any, Any] = x.numpy()
again = np.asarray(x)
print(back.sum(), again.shape, xtensor.as_tensor(array), xtensor.asarray([1, 2]), xtensor.from_dlpack(x))
with xtensor.serialization.safe_globals([]):
    pass
xtensor.serialization.safetensors.save_file({"x": x}, "x.safetensors")
out = xtensor.utils.checkpoint.checkpoint(model, xtensor.rand(1, 2), use_reentrant=False)
print(out)
