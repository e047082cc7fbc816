"""A PyTorch program run as the main module, and its worker processes, with `torch` meaning xtensor."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import runpy
import sys
import traceback
import types
from collections.abc import Sequence
from typing import Any

from .. import devices
from ..nn.modules.module import Module
from ..tensor import Tensor
from .alias import install, sentence

__all__ = ["continue_in_worker", "run_module", "run_script"]

# Tells spawned processes, which import the main module anew, what that is.
VARIABLE = "XTENSOR_PROGRAM"
WORKER = f"{__package__}.spawned"
ALIAS = f"{__package__}.alias"


class _MainSpec(importlib.machinery.ModuleSpec):
    """The main module's: spawned processes import `WORKER` in its stead, which installs the alias first."""

    def __init__(self, package: str) -> None:
        super().__init__(WORKER, None)
        self.package = package

    @property
    def parent(self) -> str:
        return self.package


def run_script(path: str, arguments: Sequence[str], device: devices.DeviceLike = None) -> None:
    """Run a file as `python path arguments...` would, with `torch` meaning xtensor."""
    sys.path[0] = str(pathlib.Path(path).resolve().parent)
    _run({"path": path}, [path, *arguments], device, pathlib.Path(path), "")


def run_module(name: str, arguments: Sequence[str], device: devices.DeviceLike = None) -> None:
    """Run a module as `python -m name arguments...` would, with `torch` meaning xtensor."""
    install(device)
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name = f"{name}.__main__"
        spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{sys.executable}: No module named {name}")
    _run(
        {"module": name},
        [spec.origin, *arguments],
        device,
        pathlib.Path(spec.origin),
        name.rpartition(".")[0],
    )


def _run(
    target: dict[str, str], argv: list[str], device: devices.DeviceLike, path: pathlib.Path, package: str
) -> None:
    install(device)
    os.environ[VARIABLE] = json.dumps(target | ({} if device is None else {"device": str(device)}))
    sys.argv[:] = argv
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __file__=str(path), __builtins__=builtins, __package__=package or None, __spec__=_MainSpec(package)
    )
    sys.modules["__main__"] = main
    try:
        exec(_code(path), main.__dict__)
    except Exception as error:
        _explain(error)
        _print(error)
        sys.exit(1)


def _code(path: pathlib.Path) -> Any:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise SystemExit(f"{sys.executable}: can't open file {str(path)!r}: {error.strerror}") from None
    return compile(source, str(path), "exec")


def _print(error: BaseException) -> None:
    """The traceback from the program's own first frame on, without those of the alias."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
        trace = trace.tb_next
    trace = trace or error.__traceback__
    here = trace
    while here is not None and here.tb_next is not None:
        if here.tb_next.tb_frame.f_globals.get("__name__") == ALIAS:
            here.tb_next = None
            break
        here = here.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def _explain(error: BaseException) -> None:
    """A note on a missing attribute of a tensor or module, which Python's own words do not call torch's."""
    if not isinstance(error, AttributeError) or not isinstance(error.obj, (Tensor, Module)):
        return
    of = "torch.Tensor" if isinstance(error.obj, Tensor) else f"torch.nn.{type(error.obj).__name__}"
    if isinstance(error.obj, Module) and not type(error.obj).__module__.startswith(
        __name__.partition(".")[0]
    ):
        return
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    error.add_note(f"{sentence(f'{of}.{error.name}')}{where}")


def continue_in_worker(namespace: dict[str, Any]) -> None:
    """In a spawned process: the alias, then the program's definitions in the namespace of its main module."""
    target = json.loads(os.environ[VARIABLE])
    # Workers make batches on the CPU and leave accelerators to the program.
    install("cpu" if "device" in target else None)
    if "path" in target:
        path = pathlib.Path(target["path"])
        namespace.update(__file__=str(path), __package__=None, __spec__=None)
        exec(_code(path), namespace)
        return
    namespace.update(runpy.run_module(target["module"], run_name="__mp_main__"))
