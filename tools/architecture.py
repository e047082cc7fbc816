"""What `docs/architecture.md` shows of the running library: the code of `x + y`, and the files that calls pass in order.

python tools/architecture.py    print the files as JSON, traced in this process, whose calls must be its first
"""

from __future__ import annotations

import ast
import gc
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import xtensor

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "xtensor"

GENERATED = "generated"

Passed = dict[str, list[str]]
"""The files that a call passes, in the order in which it enters them, each with the public functions that it enters there."""


def sections() -> dict[str, str]:
    """The generated sections of the page, by the names of their markers."""
    lives = traced()
    return {
        "add": f"```python\n{source('add')}```\n",
        "first call": table(lives["first"]),
        "second call": table(lives["second"]),
        "first backward": table(lives["backward"]),
        "planned backward": table(lives["planned"]),
        "families": rows(PACKAGE / "ops"),
        "everything else": rows(PACKAGE, everything_else()),
    }


def source(name: str) -> str:
    """The generated function of an operator, as `ops.source` prints it."""
    return xtensor.ops.source(name).strip() + "\n"


def table(passed: Passed) -> str:
    """The files of a call as a table, each with the first sentence of its documentation."""
    lines = ["| | file | functions | what it is |", "|---|---|---|---|"]
    for number, (file, functions) in enumerate(passed.items(), 1):
        names = " ".join(f"`{name}`" for name in functions)
        if file == GENERATED:
            lines.append(f"| {number} | {GENERATED} | {names} | The operator's own function. |")
        else:
            lines.append(f"| {number} | `xtensor/{file}` | {names} | {summary(PACKAGE / file)} |")
    return "\n".join(lines) + "\n"


def rows(folder: pathlib.Path, names: list[str] | None = None) -> str:
    """The packages and modules of a folder as a table."""
    lines = ["| | what it is |", "|---|---|"]
    for name in names if names is not None else sorted(p.parent.name for p in folder.glob("*/__init__.py")):
        candidates = (folder / name / "__init__.py", folder / f"{name}.py", folder / f"{name}.pyi")
        path = next(path for path in candidates if path.exists())
        shown = path.relative_to(ROOT).as_posix().removesuffix("__init__.py")
        lines.append(f"| `{shown}` | {summary(path)} |")
    return "\n".join(lines) + "\n"


def everything_else() -> list[str]:
    """The top-level names of the last floor, as the test of the house lists them."""
    tree = ast.parse((ROOT / "tests" / "house" / "test_house.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and getattr(node.target, "id", "") == "FLOORS" and node.value:
            return sorted(ast.literal_eval(node.value)[-2])
    raise SystemExit("tests/house/test_house.py has lost FLOORS")


def summary(path: pathlib.Path) -> str:
    """The first sentence of a file's docstring."""
    if path.suffix == ".pyi":
        return "Signatures of what declarations make, generated for type checkers."
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def traced() -> dict[str, Passed]:
    """What calls pass in a fresh process, whose settings are the defaults, but that no call waits: the page tells apart how calls wait."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_", "XTENSOR_"))}
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {"JAX_PLATFORMS": "cpu", "XTENSOR_COMPILE_CACHE": "off", "XTENSOR_SEGMENTS": "off"}
    settings["PYTHONPATH"] = os.pathsep.join(paths)
    run = subprocess.run(
        [sys.executable, __file__], env={**kept, **settings}, capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


def lives() -> dict[str, Passed]:
    """Trace the calls of the page, in this process."""
    xtensor.plans.plans.executor.background = False
    # A collection in the middle of a call would enter what runs when objects go.
    gc.disable()
    x, y = xtensor.ones(3, requires_grad=True), xtensor.ones(3)
    first = passed_by(lambda: x + y)
    second = passed_by(lambda: x + y)

    def backward() -> Passed:
        x.grad = None
        loss = (x * y).sum()
        return passed_by(loss.backward)

    passes = [backward() for _ in range(6)]
    return {"first": first, "second": second, "backward": passes[0], "planned": passes[-1]}


def passed_by(call: Callable[[], Any]) -> Passed:
    """The files of the library that a call enters."""
    passed: Passed = {}

    def look(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        # JAX's own late imports ask the library's finders, too.
        if event != "call" or code.co_name == "find_spec":
            return
        file, public = code.co_filename, frame.f_globals.get("__all__", ())
        if file.startswith("<xtensor operator"):
            file, public = GENERATED, (code.co_name,)
        elif pathlib.Path(file).is_relative_to(PACKAGE):
            file = pathlib.Path(file).relative_to(PACKAGE).as_posix()
        else:
            return
        names = passed.setdefault(file, [])
        name = code.co_qualname
        first, *inner = name.split(".")
        hidden = name == "<module>" or any(n.startswith(("_", "<")) for n in inner)
        if first in public and name not in names and not hidden:
            names.append(name)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return passed


if __name__ == "__main__":
    print(json.dumps(lives()))
