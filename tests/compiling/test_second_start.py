"""A second process finds the programs that an earlier one captured: it runs the Python once, and lowers and compiles nothing."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import xtensor
from xtensor.compiling.joint import text_of

PROGRAM = """
import collections, json
from jax import monitoring
seen = collections.Counter()
monitoring.register_event_duration_secs_listener(lambda event, _, **__: seen.update([event.rpartition("/")[2]]))
import xtensor
from xtensor import nn
from xtensor.plans.plans import executor
executor.enabled = False
xtensor.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.2), nn.Linear(8, 3))
other = xtensor.compile(nn.Sequential(nn.Linear(4, 4), nn.Tanh()))
opt = xtensor.optim.AdamW(model.parameters())

@xtensor.compile
def step(x, y):
    opt.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    return loss.detach()

x, y = xtensor.randn(5, 4), xtensor.tensor([0, 1, 2, 1, 0])
losses = []
for _ in range(3):
    losses.append(step(x, y).item())
    other(x).sum().backward()
inner = step._xt_compiled
print(json.dumps(dict(losses=losses, stats=xtensor.compile_cache.stats(), seen=seen, calls=inner.entries[0].program.calls)))
"""


def started(folder: pathlib.Path) -> Any:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    file = folder / "program.py"
    file.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(file)],
        env={**kept, "XTENSOR_COMPILE_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_second_start_lowers_and_compiles_nothing(tmp_path: pathlib.Path) -> None:
    first, second = started(tmp_path), started(tmp_path)
    assert first["stats"]["misses"] > 5 and first["calls"] == second["calls"] == 2
    assert second["stats"]["misses"] == 0
    assert not second["seen"].get("jaxpr_to_mlir_module_duration")
    assert not second["seen"].get("backend_compile_duration")
    assert second["seen"]["jaxpr_trace_duration"] <= 3  # the captures themselves
    assert second["losses"] == first["losses"]


def test_traces_that_differ_have_other_texts() -> None:
    def told(function: Any, *args: Any) -> Any:
        return text_of(jax.make_jaxpr(function)(*args))

    x = jnp.ones(3)
    small = [
        np.array([1.0, 2.0, number], np.float32) for number in (3.0, 3.0, np.nextafter(np.float32(3), 4))
    ]
    texts = [told(lambda v, k=k: v * jnp.asarray(k), x) for k in small]
    assert isinstance(texts[0], str) and texts[0] == texts[1] != texts[2]
    assert told(lambda v: v * 2.0, x) != told(lambda v: v * 2.0000002, x)
    assert told(lambda v: v + v, x) != told(lambda v: v + v, jnp.ones(4))

    def calls_back(v: Any) -> Any:
        return jax.pure_callback(lambda a: a, v, v)

    assert not isinstance(told(calls_back, x), str)
    assert xtensor.compile_cache.stats()["damaged"] == 0
