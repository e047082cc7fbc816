"""Write `xtensor/interop/names.txt`: which modules PyTorch has, and what each of their names is.

Run it with a PyTorch of the version whose interface this is: `python tools/torch_names.py`.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
import inspect
import io
import pathlib
import pkgutil
import sys
import types
import typing
import warnings
from collections import defaultdict
from collections.abc import Container, Iterator
from typing import Any

TARGET = pathlib.Path(__file__).resolve().parents[1] / "xtensor" / "interop" / "names.txt"
# The inside of PyTorch's compilers and of its own tests: nothing outside them takes names from there.
LEFT_OUT = (
    "_custom_op. _decomp _export _lazy _meta_registrations _native _numpy _prims _refs _strobelight _vendor "
    "ao.ns ao.pruning._ ao.quantization.fx ao.quantization.pt2e backends._coreml backends._nnapi bin contrib "
    "cuda._gpu_trace distributed._ distributed.benchmarks distributed.tensor._ops export._ fx.experimental fx.passes "
    "include lib. onnx._ onnx.ops testing._ utils.benchmark. utils.hipify utils.tensorboard utils.viz utils._strobelight"
).split()
# Of its compilers, what stands outside for others.
KEPT = (
    "_dynamo _dynamo._trace_wrapped_higher_order_op _dynamo.config _dynamo.decorators _dynamo.eval_frame _dynamo.exc _dynamo.external_utils "
    "_dynamo.mutation_guard _dynamo.testing _dynamo.trace_rules _dynamo.utils _functorch _functorch.apis "
    "_functorch.autograd_function _functorch.config _functorch.deprecated _functorch.eager_transforms "
    "_functorch.functional_call _functorch.make_functional _functorch.utils _functorch.vmap _inductor "
    "_inductor.codecache _inductor.config _inductor.cpu_vec_isa _inductor.exc _inductor.utils _inductor.cudagraph_trees "
    "distributed._composable distributed._composable.replicate distributed._composable_state distributed._functional_collectives "
    "distributed._shard distributed._shard.sharded_tensor distributed._shard.checkpoint distributed._sharded_tensor "
    "distributed._sharding_spec distributed._tensor distributed._tensor.api distributed._tensor.placement_types "
    "fx.experimental fx.experimental.proxy_tensor fx.experimental.symbolic_shapes fx.experimental.optimization fx.passes "
    "fx.passes.shape_prop fx.passes.split_module fx.passes.graph_drawer"
).split()
PRIVATE_HOMES = ("_dynamo.", "_functorch.", "_inductor.")
KINDS = ("class", "function", "value")
LITERALS = (bool, int, float, str, type(None))


def modules(path: Any, prefix: str) -> Iterator[tuple[str, types.ModuleType]]:
    """PyTorch's modules below a package, those aside that fail to import here."""
    for found in pkgutil.iter_modules(path, prefix):
        name = found.name.removeprefix("torch.")
        left_out = any(f"{name}.".startswith(left) for left in (*LEFT_OUT, *PRIVATE_HOMES))
        if name.endswith("__main__") or (left_out and name not in KEPT):
            continue
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                module = importlib.import_module(found.name)
        except Exception:
            continue
        yield name, module
        if found.ispkg:
            yield from modules(getattr(module, "__path__", ()), f"{found.name}.")


def below_the_core(core: types.ModuleType, name: str) -> Iterator[tuple[str, types.ModuleType]]:
    """The modules that are attributes of `torch._C` only."""
    yield name, core
    for child, value in sorted(vars(core).items()):
        if isinstance(value, types.ModuleType) and value.__name__ == f"{core.__name__}.{child}":
            yield from below_the_core(value, f"{name}.{child}")


def bases(kind: type) -> str:
    """What of an exception's or a tuple's nature a program relies on."""
    for base in kind.__mro__[1:]:
        if base.__module__ == "builtins" and issubclass(base, BaseException):
            return f":{base.__name__}"
    return ""


def of_typing(value: Any) -> bool:
    """Whether a name stands for a type that is written with others."""
    return typing.get_origin(value) is not None or isinstance(value, types.UnionType | typing.TypeVar)


def told(name: str, value: Any) -> tuple[str, str]:
    """The kind of a name, and how it is written."""
    if isinstance(value, type):
        members = getattr(value, "__members__", None)
        if members and (issubclass(value, enum.Enum) or "pybind11" in type(value).__name__):
            return "class", f"{name}({','.join(members)})"
        return "class", name + bases(value)
    if isinstance(value, LITERALS):
        written = "" if value in (float("inf"), float("-inf")) or value != value else repr(value)
        return "value", f"{name}={written}" if 0 < len(written) < 40 and not set(" \n/") & set(
            written
        ) else name
    return ("function" if callable(value) else "value"), name


def entries(
    module_name: str, module: types.ModuleType, listed_modules: Container[str]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The names of a module by kind, and those that it has from others of the table by where they stand."""
    own: dict[str, list[str]] = defaultdict(list)
    others: dict[str, list[str]] = defaultdict(list)

    def put(name: str, value: Any, home: str) -> None:
        if home in listed_modules:
            others[home].append(name)
        else:
            kind, text = told(name, value)
            own[kind].append(text)

    listed = set(getattr(module, "__all__", ()))
    full = module.__name__
    private = module_name.startswith(("_dynamo.", "_higher_order_ops.", "_inductor.", "_subclasses."))
    for name, value in sorted(vars(module).items()):
        if name.startswith("__") or isinstance(value, types.ModuleType) or not name.isidentifier():
            continue
        thing = inspect.isclass(value) or inspect.isroutine(value)
        home = getattr(value, "__module__", None) if thing else None
        called = getattr(value, "__qualname__", None) if thing else None
        if name.startswith("_") and private and inspect.isroutine(value):
            continue
        if thing and home != full and name not in listed and isinstance(home, str):
            core = home.startswith("torch._C") and full.startswith("torch._C")
            if home.startswith("torch.") and called == name and name in vars(sys.modules.get(home, module)):
                if not private or "__path__" in vars(module):
                    put(name, value, home.removeprefix("torch."))
                continue
            if not core and not home.startswith("torch"):
                continue
        elif (
            thing and home != full and isinstance(home, str) and home.startswith("torch.") and called == name
        ):
            put(name, value, home.removeprefix("torch."))
            continue
        elif not thing and name not in listed and not name.lstrip("_").isupper() and not of_typing(value):
            if not (full.startswith("torch._C") and callable(value)):
                continue
        kind, text = told(name, value)
        own[kind].append(text)
    return own, others


def main() -> None:
    warnings.simplefilter("ignore")
    torch = importlib.import_module("torch")
    found = {"": torch, **dict(modules(torch.__path__, "torch.")), **dict(below_the_core(torch._C, "_C"))}
    lines = [f"# PyTorch {torch.__version__.partition('+')[0]}, written by tools/torch_names.py"]
    for module_name in sorted(found):
        lines.append(f"[{module_name}]")
        own, others = entries(module_name, found[module_name], found)
        lines += [f"{kind} {' '.join(own[kind])}" for kind in KINDS if own[kind]]
        lines += [f"from {home} {' '.join(names)}" for home, names in sorted(others.items())]
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
