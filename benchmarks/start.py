"""How long until the first loss: a small network on handwritten digits in a fresh process, xtensor against PyTorch.

    python benchmarks/start.py
    python benchmarks/start.py --turns 9 --json start.json

Each turn starts one process per contender: xtensor with an empty compile cache (the first start), xtensor with the cache that
the turn before filled (any later start), and PyTorch. A figure is the wall-clock time of the process, imports included,
until the first loss is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from turns import ratio

PROGRAM = """
import sys
import numpy as np
from sklearn.datasets import load_digits
import {library} as lib
from {library} import nn
images, labels = load_digits(return_X_y=True)
x = lib.tensor((images[:64] / 16).astype(np.float32).reshape(-1, 1, 8, 8))
y = lib.tensor(labels[:64].astype(np.int64))
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Dropout(0.1),
    nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10),
)
loss = nn.functional.cross_entropy(model(x), y)
print(loss.item(), flush=True)
"""


def start(library: str, cache: str) -> float:
    """Seconds until a process has printed its first loss."""
    environment = {**os.environ, "XTENSOR_COMPILE_CACHE": cache, "OMP_NUM_THREADS": "2"}
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(library=library)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    took = time.perf_counter() - began
    process.communicate()
    if process.returncode or not float(line) > 0:
        raise SystemExit(f"{library} failed: {line}")
    return took


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--json", help="write the figures to this file")
    options = parser.parse_args(argv)
    found: dict[str, list[float]] = {"first": [], "later": [], "torch": []}
    for _ in range(options.turns):
        with tempfile.TemporaryDirectory() as cache:
            found["first"].append(start("xtensor", cache))
            found["later"].append(start("xtensor", cache))
            found["torch"].append(start("torch", cache))
    figures = {name: statistics.median(v) for name, v in found.items()}
    for name in ("first", "later"):
        figures[f"{name} to torch"] = ratio(found, name, "torch")
    print(
        f"first start {figures['first']:.2f} s, later {figures['later']:.2f} s, PyTorch {figures['torch']:.2f} s"
    )
    print(f"later over PyTorch {figures['later to torch']:.2f} (at most 2.0)")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
