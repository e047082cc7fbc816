"""Whole models exported both ways: `python -m tests.export.models [NAME ...]`.

Each model of `tests/export/architectures` is saved as one file and called by plain JAX, in a process where `import xtensor` fails, and is run by
onnxruntime; both at the sizes of the example and at others. Results may be at most 1e-5 apart, relative to the largest of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

import xtensor
from tests.export.architectures import MODELS

BOUND = 1e-5
READER = """
import json, pathlib, sys, zipfile
sys.modules["xtensor"] = None
try:
    import xtensor
except ImportError:
    pass
else:
    raise SystemExit("xtensor is here")
import jax, numpy as np
from jax import export
from safetensors.numpy import load
for path in map(pathlib.Path, sys.argv[1:]):
    with zipfile.ZipFile(path) as file:
        program = export.deserialize(bytearray(file.read("export/program.jax")))
        weights = load(file.read("export/weights.safetensors"))
        inputs = json.loads(file.read("export/signature.json"))["inputs"]
    state = {entry["target"]: weights[entry["target"]] for entry in inputs if entry["target"]}
    for call in ("args", "others"):
        given = np.load(path.with_suffix(f".{call}.npz"))
        with jax.enable_x64(True):
            results, _ = program.call(state, [given[f"arr_{i}"] for i in range(len(given))])
        np.savez(path.with_suffix(f".{call}.results.npz"), *map(np.asarray, results))
"""


def tensors(value: Any) -> list[Any]:
    """The tensors in nested results."""
    found = jax.tree.leaves(value, is_leaf=lambda v: isinstance(v, xtensor.Tensor))
    return [t for t in found if isinstance(t, xtensor.Tensor)]


def built(name: str) -> Any:
    """A model, always the same."""
    xtensor.manual_seed(0)
    made = MODELS[name]()
    made.module.eval()
    return made


def apart(expected: list[Any], found: list[Any]) -> float:
    """How far results are apart, relative to the largest of each tensor; inf where sizes or dtypes are others."""
    worst = 0.0
    for one, two in zip(expected, found, strict=True):
        if one.shape != two.shape or one.dtype != two.dtype:
            return float("inf")
        one, two = one.astype(np.float64), two.astype(np.float64)
        worst = max(worst, float(np.abs(one - two).max() / max(np.abs(one).max(), 1e-30)))
    return worst


def expected_of(model: Any, args: Any) -> list[Any]:
    """The results of eager code."""
    with xtensor.no_grad():
        return [t.numpy() for t in tensors(model.module(*args))]


def by_onnx(model: Any) -> dict[str, float]:
    """How far onnxruntime's results are from eager code's."""
    program: Any = xtensor.onnx.export(model.module, model.args, dynamic_shapes=model.sizes)
    return {
        call: apart(expected_of(model, args), [t.numpy() for t in program(*args)])
        for call, args in (("args", model.args), ("others", model.others))
    }


def by_jax(models: dict[str, Any]) -> dict[str, Any]:
    """How far the results of plain JAX are from eager code's, for each model, in one process without xtensor; or why there are none."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.xtx" for name in models}
        for name, model in models.items():
            try:
                program = xtensor.export.export(model.module, model.args, dynamic_shapes=model.sizes)
                xtensor.export.save(program, paths[name])
            except Exception as error:
                found[name] = short(error)
                continue
            for call in ("args", "others"):
                np.savez(paths[name].with_suffix(f".{call}.npz"), *[t.numpy() for t in getattr(model, call)])
        kept = {name: path for name, path in paths.items() if name not in found}
        subprocess.run([sys.executable, "-c", READER, *map(str, kept.values())], check=True)
        for name, path in kept.items():
            found[name] = {}
            for call in ("args", "others"):
                raw = np.load(path.with_suffix(f".{call}.results.npz"))
                results = [raw[f"arr_{i}"] for i in range(len(raw.files))]
                found[name][call] = apart(expected_of(models[name], getattr(models[name], call)), results)
    return found


def short(error: Exception) -> str:
    """What is wrong, in one line."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:300]


def main(names: list[str]) -> int:
    """A row for each model; 1 where one is too far off."""
    warnings.simplefilter("ignore")
    models = {name: built(name) for name in names or MODELS}
    files = by_jax(models)
    bad = 0
    for name, model in models.items():
        try:
            results = {"jax": files[name], "onnx": by_onnx(model)}
        except Exception as error:
            results = {"jax": files[name], "onnx": short(error)}
        good = all(isinstance(r, dict) and max(r.values()) <= BOUND for r in results.values())
        bad += not good
        print(f"{name}: {'agrees' if good else 'DIFFERS'} {json.dumps(results)}", flush=True)
    print(f"{len(models) - bad} of {len(models)} models agree both ways")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
