"""The StableHLO of exported files by IREE's and TensorFlow's tools: `python -m tests.export.runtimes [NAME ...]`.

Models of `tests/export/architectures` are saved with the sizes of their examples for the CPU; what is read is the file's records
`export/module.stablehlo`, `export/weights.safetensors` and `export/signature.json`. Each tool that is installed (`iree-base-compiler` and
`iree-base-runtime`; `tensorflow-cpu`) runs them;
results may be at most 1e-5 apart, relative to the largest. The last line
tells which tools are missing.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

import xtensor
from tests.export import models

NAMES = ("resnet", "unet", "vit", "bert", "llama", "diffusion_unet")
BOUND = 1e-5


def records(model: Any, folder: Path) -> tuple[bytes, list[Any], list[Any]]:
    """The StableHLO of a model's file, the arrays that its main function takes, and the shapes and dtypes of what it gives."""
    path = folder / "model.xtx"
    program = xtensor.export.export(model.module, model.args)
    xtensor.export.save(program, path, platforms=("cpu",))
    with zipfile.ZipFile(path) as file:
        module = file.read("export/module.stablehlo")
        told = json.loads(file.read("export/signature.json"))
        (folder / "weights.safetensors").write_bytes(file.read("export/weights.safetensors"))
    weights = xtensor.serialization.safetensors.load_file(folder / "weights.safetensors")
    targets = sorted({entry["target"] for entry in told["inputs"] if entry["target"]})
    flat = [*[weights[target].numpy() for target in targets], *[t.numpy() for t in model.args]]
    exported = program.stablehlo(("cpu",))
    return module, [flat[i] for i in exported.module_kept_var_idx], list(exported.out_avals)


def by_iree(module: bytes, arrays: list[Any], results: list[Any]) -> list[Any]:
    """The results by IREE, compiled for this processor."""
    compiler = importlib.import_module("iree.compiler")
    runtime = importlib.import_module("iree.runtime")
    options = dict(
        input_type="stablehlo", target_backends=["llvm-cpu"], extra_args=["--iree-llvmcpu-target-cpu=host"]
    )
    compiled = compiler.compile_str(module, **options)
    config = runtime.Config("local-task")
    loaded = runtime.load_vm_modules(
        runtime.VmModule.copy_buffer(config.vm_instance, compiled), config=config
    )[0]
    found = loaded.main(*arrays)
    return [np.asarray(v) for v in (found if isinstance(found, (tuple, list)) else [found])]


def by_tensorflow(module: bytes, arrays: list[Any], results: list[Any]) -> list[Any]:
    """The results by TensorFlow's XlaCallModule."""
    tf = importlib.import_module("tensorflow")
    xla = importlib.import_module("tensorflow.compiler.tf2xla.python.xla")
    kinds, shapes = [tf.as_dtype(r.dtype) for r in results], [r.shape for r in results]

    @tf.function(jit_compile=True, autograph=False)
    def run(*given: Any) -> Any:
        return xla.call_module(given, version=9, module=module, Tout=kinds, Sout=shapes, platforms=["CPU"])

    return [v.numpy() for v in run(*map(tf.constant, arrays))]


TOOLS = {"iree": ("iree.compiler", by_iree), "tensorflow": ("tensorflow", by_tensorflow)}


def installed(name: str) -> bool:
    """Whether a package is there."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def main(names: list[str]) -> int:
    """A row for each model; 1 where one is too far off."""
    warnings.simplefilter("ignore")
    tools = {tool: run for tool, (package, run) in TOOLS.items() if installed(package)}
    bad = 0
    for name in names or NAMES:
        model = models.built(name)
        expected = models.expected_of(model, model.args)
        with tempfile.TemporaryDirectory() as folder:
            module, arrays, results = records(model, Path(folder))
        found: dict[str, Any] = {}
        for tool, run in tools.items():
            try:
                found[tool] = models.apart(expected, run(module, arrays, results)[: len(expected)])
            except Exception as error:
                found[tool] = models.short(error)
        good = all(isinstance(v, float) and v <= BOUND for v in found.values())
        bad += not good
        print(f"{name}: {'agrees' if good else 'DIFFERS'} {json.dumps(found)}", flush=True)
    missing = [tool for tool in TOOLS if tool not in tools]
    print(
        f"by {', '.join(tools) or 'nothing'}{f'; not installed: {chr(44).join(missing)}' if missing else ''}"
    )
    return int(bad > 0 or not tools)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
