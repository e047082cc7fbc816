"""Peak memory of a training step on the CPU: xtensor, eager, against the same step by hand under `jax.jit` and PyTorch.

    python benchmarks/memory.py
    python benchmarks/memory.py gpt-large --json memory.json

Each contender runs in processes of its own, of which the median counts: what `malloc` has at hand differs from one to the next,
for a step of a few megabytes by as much as that. Resident memory at rest is read after some steps (parameters and optimizer states,
with what programs and libraries occupy), then the highest it reaches during further steps. A figure is the rise
plus the bytes of parameters and states. Linux only: it reads `/proc`.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
from typing import Any

CASES = ("mlp-512x1024-adam", "cnn", "depthwise-cnn", "gpt-mid", "gpt-large")
CONTENDERS = ("xtensor", "jit", "torch")
MIB = 2**20


def status(field: str) -> int:
    """A field of `/proc/self/status` in bytes."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(field)


def rise(contender: str, name: str) -> int:
    """Bytes that a step of this contender adds at its peak, with those of parameters and states."""
    import handwritten
    import steps
    import torch

    import xtensor
    from xtensor.plans.plans import executor

    torch.set_num_threads(2)
    case = steps.CASES[name]
    xtensor.manual_seed(0)
    step, model = steps.eager(xtensor, case, None)
    weights = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    size = sum(p.numel() * 4 for p in model.parameters()) * (1 if case.optimizer == "SGD" else 3)
    if contender != "xtensor":
        del model, step
    if contender == "torch":
        step, _ = steps.eager(torch, case, weights)
    elif contender == "jit":
        data = steps.data_of(case)
        step = handwritten.step_of(case.by_hand, weights, data, case.optimizer, case.clip)
    for _ in range(8):
        step().item()  # pyright: ignore[reportPossiblyUnboundVariable]
    executor.wait()
    step().item()  # pyright: ignore[reportPossiblyUnboundVariable]
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    rest = status("VmRSS")
    for _ in range(4):
        step().item()  # pyright: ignore[reportPossiblyUnboundVariable]
    return status("VmHWM") - rest + size


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help="parts of case names; every case without any")
    parser.add_argument("--runs", type=int, default=3, help="processes per figure (default: 3)")
    parser.add_argument("--contender", choices=CONTENDERS, help=argparse.SUPPRESS)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(argv)
    if options.contender:
        print(rise(options.contender, options.cases[0]))
        return 0
    figures: dict[str, Any] = {}
    print(
        f"{'case':<20}{'MiB':>8}{'jit':>8}{'ratio':>8}{'torch':>8}{'ratio':>8}   at most 1.5 of jit, 1.1 of torch"
    )
    for name in CASES:
        if options.cases and not any(part in name for part in options.cases):
            continue
        found = {}
        for contender in CONTENDERS:
            command = [sys.executable, "-W", "ignore", __file__, name, "--contender", contender]
            runs = [
                subprocess.run(command, check=True, capture_output=True, text=True)
                for _ in range(options.runs)
            ]
            found[contender] = statistics.median([int(run.stdout) for run in runs])
        jit, torch = (found["xtensor"] / found[other] for other in ("jit", "torch"))
        figures[name] = {**found, "ratio to jit": jit, "ratio to torch": torch}
        row = [found["xtensor"] / MIB, found["jit"] / MIB, jit, found["torch"] / MIB, torch]
        print(f"{name:<20}{row[0]:>8.1f}{row[1]:>8.1f}{row[2]:>8.2f}{row[3]:>8.1f}{row[4]:>8.2f}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
