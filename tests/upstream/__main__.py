"""See `tests/upstream/__init__.py`."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.upstream.stand_in import FILES

ROOT = pathlib.Path(__file__).parents[2]
STARTS = 6
"""How often a file's process is started again behind a case that ended it."""


def taken(groups: dict[str, list[str]]) -> list[str]:
    """One or two cases of every test function, the first in float32 or float64 where there is one; none of PyTorch's Python references."""
    found: list[str] = []
    for name, cases in sorted(groups.items()):
        cases = sorted(c for c in cases if "_refs_" not in c)
        if len(cases) > 2:
            draw = random.Random(name)
            first = draw.choice([c for c in cases if "float32" in c or "float64" in c] or cases)
            cases = [first, draw.choice([c for c in cases if c != first])]
        found += cases
    return found


def ends(path: pathlib.Path) -> dict[str, dict[str, str]]:
    """How each case ended: what a case that ended its process wrote is its last line."""
    lines = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {line["name"]: line for line in lines}


def judged(folder: pathlib.Path, name: str, out: pathlib.Path, limit: int) -> str:
    """Run a file under both; a line of the table."""
    title = name.replace("/", "-")
    file = folder / f"{name}.py"
    env = os.environ | {"LIMIT": str(limit), "PYTHONPATH": str(ROOT)}

    def child(side: str, target: pathlib.Path, *names: str) -> int:
        command = [sys.executable, "-m", "tests.upstream.cases", side, str(file), str(target), *names]
        log = out / f"{title}.{side}.log"
        with log.open("w") as sink:
            return subprocess.run(command, cwd=file.parent, env=env, stdout=sink, stderr=sink).returncode

    cases = out / f"{title}.cases.json"
    if not cases.exists() and child("torch", cases):
        return f"{name}: cannot be read, see {title}.torch.log"
    names = taken(json.loads(cases.read_text()))
    for side in ("torch", "xtensor"):
        asked = out / f"{title}.{side}.json"
        asked.write_text(json.dumps(names))
        for _ in range(STARTS):
            if not child(side, out / f"{title}.{side}.lines", str(asked)):
                break
        found = ends(out / f"{title}.{side}.lines")
        names = [n for n in names if found.get(n, {}).get("state") == "pass"] if side == "torch" else names
    found = ends(out / f"{title}.xtensor.lines")
    states = Counter(found[n]["state"] if n in found else "crash" for n in names)
    count = sum(states.values()) - states["skip"]
    others = ", ".join(f"{k} {v}" for k, v in sorted(states.items()) if k != "pass")
    return f"{name:36} {states['pass']:5} of {count:5}   {100 * states['pass'] / max(count, 1):5.1f} %   {others}"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.upstream")
    parser.add_argument("folder", type=pathlib.Path, help="the folder `test` of PyTorch's sources")
    parser.add_argument("files", nargs="*", help="test files without their ending")
    parser.add_argument("--limit", type=int, default=60, help="seconds for a case")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=pathlib.Path, help="a folder for what is told of each case")
    given = parser.parse_args(arguments)
    out = (given.out or pathlib.Path(tempfile.mkdtemp())).resolve()
    out.mkdir(parents=True, exist_ok=True)
    folder = given.folder.resolve()
    names = [n for n in given.files or FILES if (folder / f"{n}.py").exists()]
    with ThreadPoolExecutor(given.processes) as pool:
        for line in pool.map(lambda n: judged(folder, n, out, given.limit), names):
            print(line, flush=True)
    print(f"what is told of each case: {out}")


if __name__ == "__main__":
    main(sys.argv[1:])
