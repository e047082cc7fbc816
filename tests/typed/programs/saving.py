"""Files, random states, checkpoints, arrays of others."""

import io
import pickle
from typing import Any

import numpy as np

import xtensor
from xtensor import nn, serialization
from xtensor.utils import checkpoint

model = nn.Linear(2, 2)
file = io.BytesIO()
xtensor.save({"model": model.state_dict(), "epoch": 3}, file)
file.seek(0)
state: dict[str, Any] = xtensor.load(file, map_location="cpu")
model.load_state_dict(state["model"], strict=False)
with serialization.safe_globals([]):
    serialization.add_safe_globals([nn.Linear])
    assert nn.Linear in serialization.get_safe_globals()
    serialization.clear_safe_globals()
file.seek(0)
assert serialization.get_unsafe_globals_in_checkpoint(file) == []
serialization.safetensors.save_file({"x": xtensor.ones(2)}, "x.safetensors")
print(serialization.describe("x.safetensors"), serialization.get_crc32_options())
try:
    xtensor.load(io.BytesIO(b"no file of tensors"))
except pickle.UnpicklingError as error:
    print(error)

# Random states
kept = xtensor.get_rng_state()
first = xtensor.rand(2)
xtensor.set_rng_state(kept)
assert xtensor.rand(2).equal(first)
generator = xtensor.Generator().manual_seed(3)
print(xtensor.rand(2, generator=generator), xtensor.randperm(4, generator=generator), xtensor.initial_seed())
with xtensor.random.fork_rng():
    xtensor.manual_seed(1)

# Arrays of others
array = np.arange(6.0).reshape(2, 3)
x = xtensor.from_numpy(array)
back: np.ndarray[Any, Any] = x.numpy()
again = np.asarray(x)
print(back.sum(), again.shape, xtensor.as_tensor(array), xtensor.asarray([1, 2]), xtensor.from_dlpack(x))
assert x.is_shared() is False and x.storage().size() == 6 and xtensor.is_storage(x.untyped_storage())

# Checkpoints: values that are computed again
out = checkpoint.checkpoint(model, xtensor.rand(1, 2), use_reentrant=False)
stack = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
both = checkpoint.checkpoint_sequential(stack, 2, xtensor.rand(1, 2), use_reentrant=False)
with checkpoint.set_checkpoint_debug_enabled(False):
    print(out, both)
