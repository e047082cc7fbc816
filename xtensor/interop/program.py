"""A PyTorch program run as the main module, and its worker processes, with `torch` meaning xtensor."""

from __future__ import annotations

import builtins
import code
import importlib.machinery
import importlib.util
import json
import multiprocessing.spawn
import os
import pathlib
import pkgutil
import runpy
import sys
import textwrap
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any

from .. import devices
from ..nn.modules.module import Module
from ..tensor import Tensor
from .absent import sentence
from .alias import install

__all__ = ["continue_in_worker", "run_code", "run_input", "run_module", "run_script"]

# Tells spawned processes, which import the main module anew, what that is.
VARIABLE = "XTENSOR_PROGRAM"
WORKER = f"{__package__}.spawned"
ALIAS = f"{__package__}.alias"


def run_script(path: str, arguments: Sequence[str], device: devices.DeviceLike = None) -> None:
    """Run a file, or a folder or zip file with a `__main__.py`, as `python path arguments...` would."""
    argv = [path, *arguments]
    path = os.getcwd() if path in (".", "./") else os.path.join(os.getcwd(), path)
    importer = pkgutil.get_importer(path)
    if importer is not None:
        _search_first(path)
        spec = importer.find_spec("__main__")
        if spec is None or spec.loader is None:
            raise SystemExit(f"{sys.executable}: can't find '__main__' module in {path!r}")
        main = _main(argv, device, {}, spec.origin, spec.loader, spec)
        _run(main, lambda: _code_of(spec))
        return
    file = pathlib.Path(path)
    _search_first(str(file.resolve().parent))
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    main = _main(argv, device, {"path": path}, path, loader)
    _run(main, lambda: _code(file))


def run_module(name: str, arguments: Sequence[str], device: devices.DeviceLike = None) -> None:
    """Run a module, or a package's `__main__`, as `python -m name arguments...` would."""
    install(device)
    sys.argv[:] = ["-m", *arguments]  # as long as its parents are imported
    spec = _find(name)
    if spec is not None and spec.submodule_search_locations is not None:
        package, name = name, f"{name}.__main__"
        spec = _find(name)
        if spec is None:
            raise SystemExit(
                f"{sys.executable}: No module named {name}; {package!r} is a package and cannot be directly executed"
            )
    if spec is None or spec.loader is None:
        raise SystemExit(f"{sys.executable}: No module named {name}")
    found = spec
    main = _main([str(spec.origin), *arguments], device, {"module": name}, spec.origin, spec.loader, spec)
    _run(main, lambda: _code_of(found))


def run_code(text: str, arguments: Sequence[str], device: devices.DeviceLike = None) -> None:
    """Run code as `python -c text arguments...` would."""
    _search_first("")
    if sys.version_info >= (3, 14):
        text = textwrap.dedent(text)
    main = _main(["-c", *arguments], device, {}, None, importlib.machinery.BuiltinImporter)
    _run(main, lambda: _compiled(text, "<string>"))


def run_input(arguments: Sequence[str], device: devices.DeviceLike = None) -> None:
    """Run what the standard input holds as `python - arguments...` would; at a terminal, line by line."""
    _search_first("")
    loader = importlib.machinery.BuiltinImporter
    if sys.stdin.isatty():
        main = _main(["-", *arguments], device, {}, None, loader)
        code.interact(
            banner=f"Python {sys.version} on {sys.platform}\n`torch` is xtensor", local=main.__dict__
        )
        return
    main = _main(["-", *arguments], device, {}, "<stdin>", loader)
    _run(main, lambda: _compiled(sys.stdin.buffer.read(), "<stdin>"))


def _search_first(folder: str) -> None:
    """Modules are looked for there first, where Python put the folder it was started in."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _find(name: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise SystemExit(
            f"{sys.executable}: Error while finding module specification for {name!r} ({type(error).__name__}: {error})"
        ) from None


def _main(
    argv: list[str],
    device: devices.DeviceLike,
    target: dict[str, str],
    file: str | None,
    loader: Any,
    spec: importlib.machinery.ModuleSpec | None = None,
) -> types.ModuleType:
    """The main module as Python makes it, in the place of the runner's. target: what spawned processes run again."""
    install(device)
    os.environ[VARIABLE] = json.dumps(target | ({} if device is None else {"device": str(device)}))
    multiprocessing.spawn.get_preparation_data = _preparation_data
    sys.argv[:] = argv
    main = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=builtins, __loader__=loader, __spec__=spec)
    if sys.version_info < (3, 14):
        main.__dict__.update(__annotations__={})
    if spec is not None:
        main.__dict__.update(__package__=spec.parent)
    if file is not None:
        main.__dict__.update(__file__=file, __cached__=spec.cached if spec is not None else None)
    sys.modules["__main__"] = main
    return main


_standard_preparation = multiprocessing.spawn.get_preparation_data


def _preparation_data(name: str) -> dict[str, Any]:
    """What spawned processes are told: to import `WORKER` as the main module, which installs the alias first."""
    told: dict[str, Any] = dict(_standard_preparation(name))
    told.pop("init_main_from_path", None)
    return told | {"init_main_from_name": WORKER}


def _run(main: types.ModuleType, compiled: Callable[[], Any]) -> None:
    try:
        exec(compiled(), main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        _explain(error)
        _show_from_the_program(error)
        raise


def _compiled(source: str | bytes, name: str) -> Any:
    # Not with this file's own __future__ imports.
    return compile(source, name, "exec", dont_inherit=True)


def _code(path: pathlib.Path) -> Any:
    try:
        source = path.read_bytes()
    except OSError as error:
        raise SystemExit(_cannot_open(path, error)) from None
    return _compiled(source, str(path))


def _cannot_open(path: pathlib.Path, error: OSError) -> int:
    """Python's words, and its exit status for a file that is not there."""
    print(
        f"{sys.executable}: can't open file {str(path)!r}: [Errno {error.errno}] {error.strerror}",
        file=sys.stderr,
    )
    return 2


def _code_of(spec: importlib.machinery.ModuleSpec) -> Any:
    loader: Any = spec.loader
    found = loader.get_code(spec.name)
    if found is None:
        raise SystemExit(f"{sys.executable}: No code object available for {spec.name}")
    return found


def _show_from_the_program(error: BaseException) -> None:
    """Let Python, when it ends with this error, show the frames from the program's own first on, without those of the alias."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
        trace = trace.tb_next
    # Of a file that cannot be compiled no frame is the program's.
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith("<frozen importlib"):
        trace = trace.tb_next
    here = trace
    while here is not None and here.tb_next is not None:
        if here.tb_next.tb_frame.f_globals.get("__name__") == ALIAS:
            here.tb_next = None
            break
        here = here.tb_next
    shown = sys.excepthook

    def hook(kind: type[BaseException], value: BaseException, found: types.TracebackType | None) -> None:
        sys.excepthook = shown
        if value is error:
            found = sys.last_traceback = trace
            value = value.with_traceback(trace)
        shown(kind, value, found)

    sys.excepthook = hook


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
    multiprocessing.spawn.get_preparation_data = _preparation_data
    # Workers make batches on the CPU and leave accelerators to the program.
    install("cpu" if "device" in target else None)
    # Python too leaves a package's `__main__` alone, and has nothing to run again of code or of the standard input.
    if "path" in target:
        path = pathlib.Path(target["path"])
        namespace.update(__file__=str(path), __package__=None, __spec__=None)
        exec(_code(path), namespace)
    elif "module" in target and not target["module"].endswith(".__main__"):
        namespace.update(runpy.run_module(target["module"], run_name="__mp_main__"))
