"""The public surface, and how much of it the programs beside this file use.

python -m tests.typed.surface            a table: of every namespace how much there is, and how much is used
python -m tests.typed.surface --unused   with the names that no program uses

The surface is every class and function that the reference shows of `xtensor` and of the namespaces below, and every public
method and property of Tensor. What is found under several names, as `xtensor.sin` and `Tensor.sin`, counts once; an in-place
form counts by itself. `distributed` is left out, for its programs need several devices, and `array_api`, whose names are a
standard's. A program uses what it names by a dotted path from an import; an attribute of anything else that has the name
of a method of Tensor is taken for that method.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import pathlib
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import xtensor
from xtensor import Tensor

PROGRAMS = sorted((pathlib.Path(__file__).parent / "programs").glob("*.py"))
NAMESPACES = """
    linalg fft special signal.windows masked sparse nn nn.functional nn.init nn.utils nn.utils.parametrizations
    nn.utils.parametrize nn.utils.rnn optim optim.lr_scheduler optim.swa_utils autograd autograd.functional autograd.graph
    autograd.forward_ad func random distributions utils.data utils.checkpoint amp serialization export jax fx devices profiler
    compiler testing
""".split()


def identity(value: Any) -> int:
    """The same number for all that is one thing: an operator's function and its method."""
    function = value.fget if isinstance(value, property) else value
    op = getattr(function, "operator", None)
    if op is not None and getattr(op, "inplace", None) is not function:
        return id(op)
    return id(function)


def is_public(name: str, value: Any) -> bool:
    """Whether a name is of the surface: a class, a function or a property, and the library's own."""
    if name.startswith("_") or not (callable(value) or isinstance(value, property)):
        return False
    function = value.fget if isinstance(value, property) else value
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "xtensor"


def names_of(module: ModuleType) -> list[str]:
    """What a module says that it exports; all that it has where it does not say."""
    return list(getattr(module, "__all__", None) or dir(module))


def surface() -> dict[str, dict[int, str]]:
    """Of every namespace what counts there, each by its first name: a thing counts where it is found first."""
    seen: set[int] = set()
    found: dict[str, dict[int, str]] = {}
    spaces = {
        "": xtensor,
        "Tensor": Tensor,
        **{name: import_module(f"xtensor.{name}") for name in NAMESPACES},
    }
    for space, holder in spaces.items():
        names = names_of(holder) if isinstance(holder, ModuleType) and space else dir(holder)
        values = {name: inspect.getattr_static(holder, name, None) for name in sorted(names)}
        if isinstance(holder, ModuleType):
            values = {name: getattr(holder, name) for name in values}
        own = {identity(value): name for name, value in reversed(values.items()) if is_public(name, value)}
        found[space] = {key: name for key, name in own.items() if key not in seen}
        seen |= set(own)
    return found


def used(path: pathlib.Path) -> Iterator[int]:
    """The identities of what a program names."""
    tree = ast.parse(path.read_text("utf-8"))
    imported: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                module = import_module(alias.name)
                imported[alias.asname or alias.name.partition(".")[0]] = (
                    module if alias.asname else import_module(alias.name.partition(".")[0])
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            module = import_module(node.module)
            imported |= {alias.asname or alias.name: getattr(module, alias.name) for alias in node.names}

    def resolved(node: ast.expr) -> Any:
        """What an expression names, None where it is no path from an import."""
        if isinstance(node, ast.Name):
            return imported.get(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(resolved(node.value), node.attr, None)
        return None

    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)) and (value := resolved(node)) is not None:
            yield identity(value)
        elif isinstance(node, ast.Attribute):
            method = inspect.getattr_static(Tensor, node.attr, None)
            if method is not None:
                yield identity(method)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--unused", action="store_true", help="the names that no program uses, too")
    options = parser.parse_args()
    named = {key for path in PROGRAMS for key in used(path)}
    total = of_all = 0
    for space, held in surface().items():
        count = len(named & set(held))
        print(f"{'xtensor.' + space if space else 'xtensor':35}{count:5} of {len(held):4}")
        if options.unused:
            print("   ", " ".join(sorted(name for key, name in held.items() if key not in named)))
        total, of_all = total + count, of_all + len(held)
    print(f"{'all':35}{total:5} of {of_all:4}, {100 * total / of_all:.1f} %")


if __name__ == "__main__":
    main()
