"""What who starts meets: `python -m xtensor` alone, `python -m xtensor.env`, and extras that are not installed."""

from __future__ import annotations

import ast
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import xtensor
from xtensor import env
from xtensor.devices import extras

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = pathlib.Path(xtensor.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
# Imports of packages that no extra brings to users, and why nothing is said.
SILENT = {
    "xtensor/autograd/drawing.py": "has a layout of its own",
    "xtensor/compat/hub.py": "has a progress bar of its own",
}


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *arguments], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stderr == ""
    return done.stdout


def test_alone_it_says_what_there_is_and_what_to_try():
    told = run("xtensor")
    assert told.startswith(f"xtensor {xtensor.__version__}, on jaxlib ")
    for what in (
        "device         cpu",
        "compile cache",
        "extras",
        "python -m xtensor script.py",
        "xtensor.selfcheck",
    ):
        assert what in told


def test_the_report_has_versions_devices_caches_and_settings(monkeypatch):
    monkeypatch.setenv("XTENSOR_LOG", "compiles")
    told = env.report()
    rows = [re.split(r" {2,}", line, maxsplit=1) for line in told.splitlines()]
    assert all(len(row) == 2 for row in rows)
    names = [row[0] for row in rows]
    for name in (
        "xtensor",
        "Python",
        "system",
        "processor",
        "jax",
        "jaxlib",
        "numpy",
        "device",
        "compile cache",
    ):
        assert name in names
    assert names.count("device") == len(xtensor.devices.list())
    assert ["setting", "XTENSOR_LOG=compiles"] in rows
    assert {name.removeprefix("extra ") for name in names if name.startswith("extra ")} == set(extras.EXTRAS)


def test_what_the_commands_of_a_first_screen_name_is_there():
    for command, _ in env.TRY:
        module = re.match(r"python -m (\S+)", command)
        assert module is not None
        path = PACKAGE.parent / module[1].replace(".", os.sep)
        assert (path / "__main__.py").exists() or path.with_suffix(".py").exists()


def test_the_table_of_extras_is_that_of_the_project():
    optional = PROJECT["optional-dependencies"]
    assert set(extras.EXTRAS) == set(optional) - {"browser", "dev", "docs"}
    for name, (packages, _) in extras.EXTRAS.items():
        brought = {re.split(r"[\[<>=]", requirement)[0] for requirement in optional[name]}
        assert set(packages) <= brought or brought == {"jax"}, name


PROGRAMS = {
    "pygraphviz": (
        "viz",
        "import xtensor.fx.passes.graph_drawer as g; g.FxGraphDrawer(xtensor.fx.symbolic_trace(xtensor.nn.ReLU()), 'x').get_dot_graph().create()",
    ),
    "safetensors": ("safetensors", "xtensor.serialization.safetensors.save_file({}, 'x')"),
    "matplotlib": ("examples", "xtensor.record_memory().__enter__().plot()"),
    "orbax": ("orbax", "xtensor.serialization.orbax.load('x')"),
    "tensorboard": ("tensorboard", "import xtensor.utils.tensorboard"),
    "torch": ("parity", "xtensor.interop.to_torch(xtensor.ones(1))"),
}


def test_first_use_of_a_missing_extra_says_the_command():
    """In one process in which no import finds them."""
    lines = ["import sys", f"for name in {list(PROGRAMS)}: sys.modules[name] = None", "import xtensor"]
    for _, program in PROGRAMS.values():
        lines += [f"try: {program}", "except ImportError as error: print(error)"]
    told = run_code("\n".join(lines)).splitlines()
    assert len(told) == len(PROGRAMS)
    for line, (extra, _) in zip(told, PROGRAMS.values(), strict=True):
        assert extras.command(extra) in line


def run_code(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_optional_import_says_the_command_where_it_fails():
    tops = {
        "matplotlib",
        "onnx",
        "onnxruntime",
        "orbax",
        "pygraphviz",
        "safetensors",
        "torch",
        "tqdm",
        "tensorboard",
    }
    silent = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
        within = path.parent.name == "tensorboard"  # whose `__init__.py` says it
        if {top_of(node) for node in nodes} & tops and "missing(" not in text and not within:
            silent.append(path.relative_to(PACKAGE.parent).as_posix())
    assert silent == list(SILENT)


def top_of(node: ast.Import | ast.ImportFrom) -> str:
    if isinstance(node, ast.ImportFrom):
        return "" if node.level else (node.module or "").partition(".")[0]
    return node.names[0].name.partition(".")[0]
