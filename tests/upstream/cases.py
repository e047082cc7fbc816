"""One test file in a process of its own: lists its cases by test function, or runs some and writes a line for each.

python -m tests.upstream.cases SIDE FILE OUT [NAMES]      SIDE: torch or xtensor
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import os
import pathlib
import signal
import sys
import time
import traceback
import unittest
from typing import Any

from tests.upstream.stand_in import alike, stand_in

__all__ = ["listed", "run"]


class OutOfTime(BaseException):
    """A case ran past its limit."""


def loaded(file: pathlib.Path) -> tuple[dict[str, Any], dict[str, set[str]]]:
    """The test classes of a file, and of the classes that others are made of the names of their test functions."""
    generic: dict[str, set[str]] = {}

    def noted(module: Any, name: str) -> None:
        plain = getattr(module, name)

        def made(kind: type, *args: Any, **kwargs: Any) -> Any:
            generic.setdefault(kind.__name__, set()).update(n for n in dir(kind) if n.startswith("test"))
            return plain(kind, *args, **kwargs)

        setattr(module, name, made)

    internal = "torch.testing._internal"
    noted(importlib.import_module(f"{internal}.common_device_type"), "instantiate_device_type_tests")
    noted(importlib.import_module(f"{internal}.common_utils"), "instantiate_parametrized_tests")
    sys.path[:0] = [str(file.parent), str(file.parent.parent)]
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    own = (file.stem, f"{internal}.common_device_type")
    kinds = {
        name: kind
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, unittest.TestCase) and kind.__module__ in own
    }
    return kinds, generic


def listed(kinds: dict[str, Any], generic: dict[str, set[str]]) -> dict[str, list[str]]:
    """The cases of each test function."""
    groups: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        functions = set().union(*(names for of, names in generic.items() if name.startswith(of)))
        for case in dir(kind):
            if case.startswith("test") and callable(getattr(kind, case)):
                fitting = [f for f in functions if case == f or case.startswith(f + "_")]
                groups.setdefault(f"{name}.{max(fitting, key=len, default=case)}", []).append(
                    f"{name}.{case}"
                )
    return groups


def run(kind: Any, name: str, limit: int) -> tuple[str, str]:
    """How a case ends, and its last words."""
    if not hasattr(kind, name):
        name = name.replace("_nn_", "_xtensor_nn_", 1)  # of modules, which are named by where they are from
    result = unittest.TestResult()
    signal.alarm(limit)
    try:
        case = kind(name)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            unittest.TestSuite([case]).run(result)
    except OutOfTime:
        return "time", ""
    except BaseException as error:
        return "fail", "".join(traceback.format_exception(error))
    finally:
        signal.alarm(0)
    wrong = result.errors + result.failures
    if wrong:
        return "time" if "OutOfTime" in wrong[0][1] else "fail", wrong[0][1]
    if result.skipped or not result.testsRun:
        return "skip", ""
    return ("pass" if not (result.expectedFailures or result.unexpectedSuccesses) else "expected"), ""


def forget_hooks(side: str) -> None:
    """Hooks of all modules, which some files take away by assigning to PyTorch's private names."""
    if side == "xtensor":
        from xtensor.nn.hooks import everywhere

        everywhere.full = None

        for hooks in vars(everywhere).values():
            if isinstance(hooks, dict):
                hooks.clear()


def main(side: str, path: str, out: str, names: str = "") -> None:
    """Where NAMES (a JSON list) is not given, OUT gets the cases by test function; else a line for each case."""
    os.environ |= {"PYTORCH_TEST_WITH_SLOW": "0", "PYTORCH_TESTING_DEVICE_ONLY_FOR": "cpu"}
    sys.argv = [path]
    if side == "xtensor":
        stand_in()
    alike()
    kinds, generic = loaded(pathlib.Path(path))
    if not names:
        pathlib.Path(out).write_text(json.dumps(listed(kinds, generic)))
        return

    def ring(*args: Any) -> None:
        raise OutOfTime

    signal.signal(signal.SIGALRM, ring)
    limit = int(os.environ.get("LIMIT", "60"))
    before = pathlib.Path(out)
    done = (
        {json.loads(line)["name"] for line in before.read_text().splitlines()} if before.exists() else set()
    )
    with before.open("a") as sink:
        for whole in json.loads(pathlib.Path(names).read_text()):
            if whole in done:
                continue
            sink.write(json.dumps({"name": whole, "state": "crash", "text": ""}) + "\n")
            sink.flush()
            began = time.monotonic()
            state, text = run(kinds[whole.partition(".")[0]], whole.partition(".")[2], limit)
            forget_hooks(side)
            line = {"name": whole, "state": state, "seconds": round(time.monotonic() - began, 2)}
            sink.write(json.dumps(line | {"text": text[-3000:]}) + "\n")
            sink.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
