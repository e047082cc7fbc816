"""Build what a release uploads, and check it as a stranger meets it: nothing here uploads.

python tools/release.py OUT                         wheel and sdist of the last commit into the folder OUT, checked
python tools/release.py OUT --python python3.13     installed and tried with another Python
python tools/release.py OUT --jax 0.10.0            and with this version of JAX
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRY = """
import xtensor
w = xtensor.ones(3, requires_grad=True)
(w * xtensor.arange(3.0)).sum().backward()
assert w.grad.tolist() == [0, 1, 2]
assert "site-packages" in xtensor.__file__, xtensor.__file__
print(xtensor.__version__, xtensor.__file__)
"""


# What a checkout's user has set, and a stranger has not: with them another copy than the wheel's would be tried.
OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "JAX_COMPILATION_CACHE_DIR")


def run(*command: object, cwd: pathlib.Path | None = None) -> None:
    """Run a command, and stop where it fails."""
    print("+", *command, flush=True)
    kept = {name: value for name, value in os.environ.items() if name not in OURS}
    subprocess.run([str(part) for part in command], cwd=cwd, env=kept, check=True)


def committed(folder: pathlib.Path) -> None:
    """The files of the last commit, and none that merely lie about."""
    packed = folder / "src.tar"
    run("git", "archive", "--format=tar", f"--output={packed}", "HEAD", cwd=ROOT)
    with tarfile.open(packed) as archive:
        archive.extractall(folder / "src", filter="data")


def left_out(out: pathlib.Path) -> list[str]:
    """The files of the package that the wheel lacks."""
    (wheel,) = out.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    listed = subprocess.run(
        ["git", "ls-files", "xtensor"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return sorted(set(listed.stdout.splitlines()) - held)


def python_of(environment: pathlib.Path) -> pathlib.Path:
    """The interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def main(arguments: list[str] | None = None) -> int:
    """Build, check, install in a new environment, and try."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--jax", help="the version to install; the newest by default")
    given = parser.parse_args(arguments)
    out = given.out.resolve()
    if out.exists() and any(out.iterdir()):
        parser.error(f"{out} is not empty")
    with tempfile.TemporaryDirectory() as place:
        work = pathlib.Path(place)
        venv.create(work / "tools", with_pip=True)
        tools = python_of(work / "tools")
        run(tools, "-m", "pip", "install", "-q", "build", "twine")
        committed(work)
        run(tools, "-m", "build", "--outdir", out, cwd=work / "src")
        run(tools, "-m", "twine", "check", "--strict", *sorted(out.iterdir()))
        if missing := left_out(out):
            print("not in the wheel:", *missing)
            return 1
        run(given.python, "-m", "venv", work / "fresh")
        fresh = python_of(work / "fresh")
        pins = [f"jax=={given.jax}", f"jaxlib=={given.jax}"] if given.jax else []
        run(fresh, "-m", "pip", "install", "-q", *out.glob("*.whl"), *pins)
        run(fresh, "-c", TRY, cwd=work)
        run(fresh, "-m", "xtensor", cwd=work)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
