"""How the house is built: which module may import which, what may be imported lazily, what no file may hold.

The tests read the sources with `ast`; nothing of the package is imported.
"""

import ast
import pathlib
import re
import subprocess
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "xtensor"

# A module imports from its own floor or below. Every name at the top of the package is listed.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("capture", "xla", "dtypes", "errors", "geometry", "checks", "printing", "trees", "ulps"),
    ("storage", "copied_storage", "shared_storage", "lowering", "devices"),
    ("engine",),
    ("tensor", "methods", "host"),
    ("operators",),
    ("return_types",),
    ("ops",),
    (
        "amp",
        "array_api",
        "autograd",
        "comparing",
        "compat",
        "compiler",
        "compiling",
        "control_flow",
        "distributed",
        "distributions",
        "explain",
        "export",
        "fft",
        "func",
        "functions",
        "fx",
        "gradients",
        "inspect",
        "interop",
        "jax",
        "library",
        "linalg",
        "masked",
        "masked_tensor",
        "memory",
        "nested",
        "nn",
        "optim",
        "plans",
        "profiler",
        "quantized",
        "selfcheck",
        "serialization",
        "signal",
        "sparse",
        "special",
        "stored",
        "testing",
        "transforms",
        "utils",
    ),
    ("__init__", "__main__", "env", "warm"),
)
EVERYTHING_ELSE = len(FLOORS) - 2
FLOOR_OF = {name: floor for floor, names in enumerate(FLOORS) for name in names}

# Packages of the extras, and slow imports of a rare path: only these may be imported inside a function.
LAZY = {"IPython", "matplotlib", "onnx", "onnxruntime", "orbax", "pygraphviz", "safetensors", "torch", "tqdm"}

TORCH_ALLOWED = {"xtensor/interop/torch.py"}


class Import(NamedTuple):
    """One import statement's target, and where it stands."""

    target: str  # dotted name: of a module of the package if it is one, else as written
    line: int
    in_function: bool
    type_only: bool


def module_name(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def read_modules() -> dict[str, pathlib.Path]:
    return {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def is_type_checking(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


def imports_of(name: str, tree: ast.Module, is_package: bool, modules: set[str]) -> list[Import]:
    """Every import of a module, `from package import submodule` resolved to the submodule."""
    found: list[Import] = []

    def add(target: str, node: ast.AST, in_function: bool, type_only: bool) -> None:
        found.append(Import(target, getattr(node, "lineno", 0), in_function, type_only))

    def walk(node: ast.AST, in_function: bool, type_only: bool) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                in_function = True
            case ast.If(test=test, body=body, orelse=orelse) if is_type_checking(test):
                for child in body:
                    walk(child, in_function, True)
                for child in orelse:
                    walk(child, in_function, type_only)
                return
            case ast.Import(names=names):
                for alias in names:
                    add(alias.name, node, in_function, type_only)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = module or ""
                if level:
                    parents = name.split(".")
                    up = level - 1 if is_package else level
                    base = ".".join(filter(None, [*parents[: len(parents) - up], module]))
                for alias in names:
                    inner = f"{base}.{alias.name}"
                    add(inner if inner in modules else base, node, in_function, type_only)
            case ast.Call(func=func, args=[ast.Constant(value=str(target)), *_]):
                called = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
                if called in {"import_module", "__import__"}:
                    add(target, node, in_function, type_only)
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            walk(child, in_function, type_only)

    walk(tree, False, False)
    return found


def read_imports() -> dict[str, list[Import]]:
    modules = read_modules()
    return {
        name: imports_of(
            name, ast.parse(path.read_text("utf-8"), str(path)), path.name == "__init__.py", set(modules)
        )
        for name, path in modules.items()
    }


def floor_of(name: str) -> int:
    parts = name.split(".")
    return FLOOR_OF["__init__"] if len(parts) == 1 else FLOOR_OF.get(parts[1], EVERYTHING_ELSE)


def inside(target: str) -> bool:
    return target.split(".", maxsplit=1)[0] == "xtensor"


def upward_imports(imports: dict[str, list[Import]]) -> list[str]:
    return [
        f"{name}:{found.line} on floor {floor_of(name)} imports {found.target} of floor {floor_of(found.target)}"
        for name, all_found in imports.items()
        for found in all_found
        if inside(found.target) and floor_of(found.target) > floor_of(name)
    ]


def runs(name: str, target: str) -> set[str]:
    """The modules that run when `name` imports `target`: itself, and packages around it that `name` is not in."""
    parts = target.split(".")
    around = {".".join(parts[:end]) for end in range(2, len(parts))}
    return ({target} | {package for package in around if not f"{name}.".startswith(f"{package}.")}) - {name}


def circular_imports(imports: dict[str, list[Import]]) -> list[str]:
    """Each circle once, as `a -> b -> a`, found by a depth-first walk over the modules."""
    edges = {
        name: sorted({t for f in found if inside(f.target) for t in runs(name, f.target)})
        for name, found in imports.items()
    }
    circles: list[str] = []
    done: set[str] = set()
    trail: list[str] = []

    def visit(name: str) -> None:
        if name in trail:
            circles.append(" -> ".join([*trail[trail.index(name) :], name]))
            return
        if name in done or name not in edges:
            return
        trail.append(name)
        for target in edges[name]:
            visit(target)
        trail.pop()
        done.add(name)

    for name in edges:
        visit(name)
    return circles


def hidden_imports(imports: dict[str, list[Import]]) -> list[str]:
    return [
        f"{name}:{found.line} imports {found.target} inside a function"
        for name, all_found in imports.items()
        for found in all_found
        if found.in_function and found.target.split(".")[0] not in LAZY
    ]


def test_no_module_imports_from_a_floor_above():
    assert upward_imports(read_imports()) == []


def unlisted_names() -> list[str]:
    """What stands at the top of the package and on no floor, or on one without being there."""
    there = {path.stem for path in PACKAGE.glob("*.py*") if path.suffix in (".py", ".pyi")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    return sorted(there ^ set(FLOOR_OF))


def test_every_name_at_the_top_stands_on_a_floor():
    assert unlisted_names() == []


def test_no_circular_imports():
    assert circular_imports(read_imports()) == []


def test_no_imports_inside_functions():
    assert hidden_imports(read_imports()) == []


def test_torch_is_imported_in_one_file_only():
    importers = {
        read_modules()[name].relative_to(ROOT).as_posix()
        for name, found in read_imports().items()
        if any(f.target.split(".")[0] in {"torch", "torchvision"} for f in found)
    }
    assert importers <= TORCH_ALLOWED


CROWDED = 27


def test_no_folder_is_crowded():
    folders = [PACKAGE, *[p for p in PACKAGE.rglob("*") if p.is_dir() and any(p.glob("*.py"))]]
    held = {
        str(f.relative_to(ROOT)): len([p for p in f.glob("*.py") if p.name != "__init__.py"]) for f in folders
    }
    assert {f: n for f, n in held.items() if n > CROWDED} == {}
    assert len([p for p in (PACKAGE / "ops").iterdir() if p.name != "__pycache__"]) <= 12


def test_private_jax_is_used_in_one_file_at_most():
    private = re.compile(r"\bjax\._src\b|\bjaxlib\._(?!_)")
    users = [name for name, path in read_modules().items() if private.search(path.read_text("utf-8"))]
    assert len(users) <= 1, users


# The checks above must be able to fail: each sees a small package that breaks its rule.
BROKEN = {
    "xtensor": "from xtensor.tensor import Tensor",
    "xtensor.dtypes": "import math\nif TYPE_CHECKING:\n    from xtensor.tensor import Tensor",
    "xtensor.geometry": "from xtensor import storage",
    "xtensor.storage": "from . import devices",
    "xtensor.devices": "from .storage import Storage",
    "xtensor.tensor": "def f():\n    from xtensor.ops import add\n    import matplotlib",
    "xtensor.ops": "def f():\n    import importlib\n    importlib.import_module('xtensor.nn')",
    "xtensor.nn": "from xtensor.ops import add\nfrom xtensor import dtypes, zeros",
}


@pytest.fixture
def broken() -> dict[str, list[Import]]:
    return {
        name: imports_of(name, ast.parse(text), name == "xtensor", set(BROKEN))
        for name, text in BROKEN.items()
    }


def test_upward_imports_are_found(broken):
    found = [line.split(":")[0] + " " + line.split()[5] for line in upward_imports(broken)]
    assert found == [
        "xtensor.dtypes xtensor.tensor",
        "xtensor.geometry xtensor.storage",
        "xtensor.tensor xtensor.ops",
        "xtensor.ops xtensor.nn",
        "xtensor.nn xtensor",
    ]


def test_circular_imports_are_found(broken):
    circles = circular_imports(broken)
    assert "xtensor.storage -> xtensor.devices -> xtensor.storage" in circles
    assert "xtensor.ops -> xtensor.nn -> xtensor.ops" in circles


def test_hidden_imports_are_found(broken):
    assert [line.split()[2] for line in hidden_imports(broken)] == ["xtensor.ops", "importlib", "xtensor.nn"]


def repository_files() -> Iterator[pathlib.Path]:
    """The files git knows or would take; without git, every file outside hidden and cache folders."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            capture_output=True,
            check=True,
        ).stdout.decode()
        paths = [ROOT / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        paths = [
            path
            for path in ROOT.rglob("*")
            if not any(part.startswith((".", "__pycache__", "venv")) for part in path.relative_to(ROOT).parts)
        ]
    for path in paths:
        if path.is_file():
            yield path


def machine_paths(text: str) -> list[str]:
    """Absolute paths of the machine that the text was written on."""
    return re.findall(r"(?<![\w.~}])/(?:work|opt|root|home|Users)/[\w.-]+", text)


def test_no_file_holds_a_path_of_a_machine():
    held = {
        path.relative_to(ROOT).as_posix(): found
        for path in repository_files()
        if (found := machine_paths(path.read_bytes().decode("utf-8", "replace")))
    }
    assert held == {}


def test_paths_of_a_machine_are_found():
    path = "/".join(["", "opt", "thing"])
    assert machine_paths(f"see {path}/a and '{path}'") == [path, path]
    assert machine_paths(f"https://example.org{path}, a relative x{path}, ~{path}") == []


def test_version_is_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = re.search(
        r"^__version__ = \"(.+)\"$", (PACKAGE / "__init__.py").read_text("utf-8"), re.MULTILINE
    )
    assert declared is not None, "xtensor/__init__.py has no __version__"
    assert declared.group(1) == project["version"]
    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")
