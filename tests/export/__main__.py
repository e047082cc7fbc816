"""Every module of PyTorch's module database, exported: replayed, through a file, and as StableHLO by JAX alone.

    python -m tests.export [--only NAME ...] [--limit N] [--record]

prints a row per entry and writes with `--record` what is not equal to eager code to the bit, with its reason, to `exceptions.json`. It
needs the CPU build of PyTorch, its test dependency `expecttest`, and flatbuffers.
"""

from __future__ import annotations

import argparse
import collections
import gc
import io
import json
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import jax
import numpy as np
import torch
from jax import export as jax_export
from torch.testing._internal.common_modules import module_db

import xtensor
from tests.modules import judge_modules
from tests.modules.translate import counterpart, ours
from xtensor.trees import tree_leaves
from xtensor.xla.cache import clear_all

EXCEPTIONS = Path(__file__).with_name("exceptions.json")


def tensors(value: Any) -> list[Any]:
    """All tensors in nested results."""
    return [leaf for leaf in tree_leaves(value) if is_tensor(leaf)]


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor."""
    return isinstance(value, xtensor.Tensor)


def same(expected: Any, got: Any) -> bool:
    """Whether values are equal to the bit."""
    ones, others = tensors(expected), tensors(got)
    return len(ones) == len(others) and all(
        a.dtype is b.dtype and a.shape == b.shape and bits(a) == bits(b)
        for a, b in zip(ones, others, strict=True)
    )


def bits(tensor: Any) -> bytes:
    """The values as bytes."""
    return np.ascontiguousarray(tensor.detach().numpy()).tobytes()


def built(case: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
    """The module of a case and the arguments of its call."""
    info = module_db[case.entry]
    sample = judge_modules.inputs(case)[case.index]
    call = sample.forward_input
    if call is None:
        return None
    made, given = ours(sample.constructor_input.args), ours(sample.constructor_input.kwargs)
    xtensor.manual_seed(case.entry)
    module = counterpart(info.module_cls)(*made, **given)
    module.train(case.training)
    args, kwargs = tuple(ours(call.args)), dict(ours(call.kwargs))
    module = module.to(ours(case.dtype))
    if info.is_lazy:
        with xtensor.no_grad():
            module(*args, **kwargs)
    return module, args, kwargs


def by_jax(raw: bytes, leaves: list[Any]) -> list[Any]:
    """The results of a file by JAX alone."""
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        program = jax_export.deserialize(bytearray(file.read("export/program.jax")))
        weights = xtensor.export.files.weights_from(file.read("export/weights.safetensors"))
        random = json.loads(file.read("export/signature.json"))["random"]
    state = xtensor.default_generator
    words = ((np.int64(state.initial_seed()), np.int64(0)),) if random else ()
    names = json.loads(zipfile.ZipFile(io.BytesIO(raw)).read("export/signature.json"))["inputs"]
    wanted = {e["target"] for e in names if e["target"] is not None}
    with jax.enable_x64(True):
        results, _ = jax.jit(program.call)({n: a for n, a in weights.items() if n in wanted}, leaves, *words)
    return [xtensor.interop.from_jax(r) for r in results]


def judge(case: Any) -> dict[str, str]:
    """What is not equal, with the reason: nothing where all is."""
    warnings.simplefilter("ignore")
    try:
        found = built(case)
        if found is None:
            return {}
        module, args, kwargs = found
        twin = built(case)[0]  # type: ignore[index]
        xtensor.manual_seed(7)
        expected = twin(*args, **kwargs)
    except Exception as error:  # what eager code refuses is not exported
        return {} if case.error else {"eager": short(error)}
    try:
        program = xtensor.export.export(module, args, kwargs)
    except Exception as error:
        return {"export": short(error)}
    outcome: dict[str, str] = {}

    def attempt(what: str, run: Any) -> None:
        try:
            xtensor.manual_seed(7)
            if not same(expected, run()):
                outcome[what] = f"differs by {distance(expected, run)}"
        except Exception as error:
            outcome[what] = short(error)

    attempt("module", lambda: program.module()(*args, **kwargs))
    try:
        file = io.BytesIO()
        xtensor.export.save(program, file)
    except Exception as error:
        return outcome | {"save": short(error)}
    loaded = xtensor.export.load(io.BytesIO(file.getvalue()))
    if any(getattr(n.target, "__name__", "") == "stablehlo" for n in loaded.graph.nodes):
        try:
            xtensor.export.codec.graph_to(program.graph)
        except Exception as error:
            outcome["graph"] = short(error)
    attempt("file", lambda: loaded.module()(*args, **kwargs))
    given = loaded._inputs.tensors(loaded._inputs.flat(args, kwargs))
    leaves = [xtensor.interop.to_jax(t.detach()) for t in given]
    attempt("jax", lambda: by_jax(file.getvalue(), leaves))
    return outcome


def distance(expected: Any, run: Any) -> str:
    """How far values are apart."""
    xtensor.manual_seed(7)
    pairs = zip(tensors(expected), tensors(run()), strict=False)
    apart = [float((a.detach().double() - b.detach().double()).abs().max()) for a, b in pairs if a.numel()]
    return f"{max(apart, default=0.0):.1e}"


def short(error: Exception) -> str:
    """An error in a line."""
    text = str(error).partition("\n")[0].partition(" (/")[0]  # without places of files
    return f"{type(error).__name__}: {text}"[:160]


def main(arguments: list[str]) -> int:
    """Run the entries; the status is 1 where something differs that the committed list does not have."""
    parser = argparse.ArgumentParser(prog="python -m tests.export")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    parser.add_argument(
        "--limit", type=int, default=0, metavar="N", help="at most N cases of an entry and mode"
    )
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    known = json.loads(EXCEPTIONS.read_text("utf-8")) if EXCEPTIONS.exists() else {}
    found: dict[str, dict[str, str]] = {}
    counts: collections.Counter[str] = collections.Counter()
    for entry, name in enumerate(judge_modules.names()):
        if options.only and not any(part in name for part in options.only):
            continue
        seen: collections.Counter[Any] = collections.Counter()
        for case in judge_modules.cases(entry, name):
            key = (case.dtype, case.training)
            seen[key] += 1
            if case.error or (options.limit and seen[key] > options.limit):
                continue
            if options.limit and case.dtype is not torch.float32:
                continue
            outcome = judge(case)
            counts["cases"] += 1
            for what in ("eager", "export", "module", "save", "graph", "file", "jax"):
                counts[what] += what in outcome
            if outcome:
                found[case.title] = outcome
                print(case.title, outcome, flush=True)
        clear_all()
        jax.clear_caches()
        gc.collect()
    print(dict(counts))
    if options.record:
        EXCEPTIONS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", "utf-8")
        return 0
    return int(any(set(outcome) - set(known.get(title, {})) for title, outcome in found.items()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
