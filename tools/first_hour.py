"""A stranger's path, timed as commands: clone, environment, install, trained digits, and a drawn graph three lines later.

python tools/first_hour.py                     in a temporary folder, with nothing compiled before
python tools/first_hour.py --python python3.13
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
DRAWN = "import xtensor\nw = xtensor.randn(3, requires_grad=True)\nxtensor.autograd.draw((w * 2).sum(), {'w': w}).save('graph.svg')"


def steps(folder: pathlib.Path, python: str) -> list[tuple[str, list[str]]]:
    """What a stranger types, by what it is for."""
    inside = folder / "venv" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    clone = folder / "xtensor"
    return [
        ("clone", ["git", "clone", "--quiet", "--depth", "1", ROOT.as_uri(), str(clone)]),
        ("environment", [python, "-m", "venv", str(folder / "venv")]),
        (
            "install",
            [str(inside), "-m", "pip", "install", "-qq", "--progress-bar", "off", f"{clone}[examples]"],
        ),
        (
            "trained digits",
            [str(inside), str(clone / "examples" / "digits.py"), f"--out={folder / 'out'}", "--noplot"],
        ),
        ("a drawn graph", [str(inside), "-c", DRAWN]),
    ]


def main(arguments: list[str] | None = None) -> int:
    """Run the steps, and print how long each took; the download is the network's, and said apart."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", default=sys.executable, help="the interpreter to begin with")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kept = {
            n: v
            for n, v in os.environ.items()
            if n not in ("PYTHONPATH", "JAX_COMPILATION_CACHE_DIR", "VIRTUAL_ENV")
        }
        kept |= {"XTENSOR_COMPILE_CACHE": str(folder / "cache"), "MPLBACKEND": "agg"}
        took: dict[str, float] = {}
        for what, command in steps(folder, options.python):
            begun = time.perf_counter()
            done = subprocess.run(command, cwd=folder, env=kept, capture_output=True, text=True, check=False)
            took[what] = time.perf_counter() - begun
            if done.returncode:
                print(f"{what} failed: {' '.join(command)}\n{done.stdout}{done.stderr}", file=sys.stderr)
                return 1
            said = [line for line in done.stdout.splitlines() if "accuracy" in line]
            print(f"{what:16} {took[what]:6.1f} s   {said[-1] if said else ''}".rstrip(), flush=True)
        print(
            f"{'in all':16} {sum(took.values()):6.1f} s, {sum(took.values()) - took['install']:.1f} s of it without the install"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
