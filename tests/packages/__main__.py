"""The programs on xtensor, and on PyTorch where a Python with it is named, as a table: how far their figures are from PyTorch's, its wall
time in seconds, and xtensor's with an empty compile cache (cold) and with what that run left there (warm).
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import venv

from . import NAMES, ROOT, Failed, difference, missing, run

HERE = pathlib.Path(__file__).resolve().parent
TORCH = "2.13.0"


def install(folder: pathlib.Path) -> None:
    """Make two environments: `xtensor` with the packages and without PyTorch, `torch` with both."""
    for name in ("xtensor", "torch"):
        venv.create(folder / name, with_pip=True)
    ours, theirs = (python_of(folder, name) for name in ("xtensor", "torch"))
    pip = ["-m", "pip", "install", "--quiet"]
    subprocess.run([ours, *pip, "-e", str(ROOT)], check=True)
    # --no-deps: what the packages need is in the list, PyTorch aside, which most of them would bring.
    subprocess.run([ours, *pip, "--no-deps", "-r", str(HERE / "requirements.txt")], check=True)
    subprocess.run([theirs, *pip, f"torch=={TORCH}", "numpy"], check=True)
    subprocess.run([theirs, *pip, "--no-deps", "-r", str(HERE / "requirements.txt")], check=True)


def python_of(folder: pathlib.Path, name: str) -> str:
    return str(folder / name / "bin" / "python")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.packages", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="of the programs (all of them)")
    parser.add_argument(
        "--install", type=pathlib.Path, metavar="FOLDER", help="make both environments there first"
    )
    parser.add_argument("--folder", type=pathlib.Path, help="the environments of an earlier --install")
    parser.add_argument("--ours", help="a Python with the packages and xtensor (this one)")
    parser.add_argument("--torch", help="a Python with the packages and PyTorch")
    parser.add_argument(
        "--figures", type=pathlib.Path, help="a file that keeps PyTorch's figures between runs"
    )
    options = parser.parse_args(arguments)
    if unknown := sorted({*options.names} - {*NAMES}):
        parser.error(f"no program is called {', '.join(unknown)}")
    folder = options.install or options.folder
    if options.install:
        install(options.install)
    ours = options.ours or (python_of(folder, "xtensor") if folder else sys.executable)
    theirs = options.torch or (python_of(folder, "torch") if folder else None)
    kept = json.loads(options.figures.read_text()) if options.figures and options.figures.exists() else {}
    right = ran = 0
    seconds: list[tuple[float, float, float]] = []
    print(f"{'program':28} {'difference':>10} {'torch s':>8} {'cold s':>8} {'warm s':>8}", flush=True)
    for name in options.names or NAMES:
        if ours == sys.executable and (absent := missing(name)):
            print(f"{name:28} skipped: {', '.join(sorted(absent))}", flush=True)
            continue
        ran += 1
        if name not in kept and theirs:
            try:
                kept[name] = run([theirs], name)
            except Failed as error:
                print(f"{name:28} on PyTorch: {str(error).splitlines()[-1]}", flush=True)
                continue
            if options.figures:
                options.figures.write_text(json.dumps(kept))
        try:
            with tempfile.TemporaryDirectory() as cache:
                found, cold = run([ours, "-m", "xtensor"], name, cache=cache)
                _, warm = run([ours, "-m", "xtensor"], name, cache=cache)
        except Failed as error:
            print(f"{name:28} {str(error).splitlines()[-1][:200]}", flush=True)
            continue
        if name not in kept:
            print(f"{name:28} {'runs':>10} {'':8} {cold:8.1f} {warm:8.1f}", flush=True)
            right += 1
            continue
        seconds.append((kept[name][1], cold, warm))
        gap = difference(found, kept[name][0])
        right += gap <= 1
        print(
            f"{name:28} {gap:10.2g} {kept[name][1]:8.1f} {cold:8.1f} {warm:8.1f}{'' if gap <= 1 else '  differs'}",
            flush=True,
        )
    if seconds:
        theirs_s, cold_s, warm_s = (sum(column) for column in zip(*seconds))
        print(f"{'together':28} {'':10} {theirs_s:8.1f} {cold_s:8.1f} {warm_s:8.1f}")
    print(f"{right} of {ran} run and agree (a difference of 1 is what is allowed: 1e-4, of training 1e-3)")
    return int(right < ran)


if __name__ == "__main__":
    sys.exit(main())
