"""One process: the enlarged calls of some rows, either kept as the reference or compared with it.

    python -m tests.flags.worker FOLDER write|compare DTYPES CALLS ROW...

A line of JSON per row goes to the standard output when the row is done.
"""

from __future__ import annotations

import faulthandler
import functools
import json
import math
import pathlib
import pickle
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import xtensor
from tests.table import ROWS, Row
from tests.table.bridge import META, OURS, declared, flat, operator_named
from tests.table.facets import cotangents
from tests.table.samples import Sample
from xtensor.plans.plans import executor
from xtensor.tensor import Tensor

from .compare import Case, compare
from .enlarge import ALONE, ELEMENTS, EXTRA, LIMIT, candidates, form_of

try:
    import resource
except ImportError:  # Windows
    resource: Any = None

__all__ = ["file_of", "kind_of", "serve", "worst_of"]

SECONDS = 120
"""How long a row may take; then the process ends, and the row counts as one that ended it."""
BYTES = 8 << 30
"""What the process may map: an enlarged call that wants more ends it too, not its neighbours."""


def kind_of(row: Row) -> str:
    """What the row's operator is: decides what counts as rounding."""
    return getattr(declared(row.name), "kind", "composite")


def file_of(folder: pathlib.Path, row: Row) -> pathlib.Path:
    return folder / f"{row.name}.pickle"


def fits(row: Row, sample: Sample, dtype: str) -> bool:
    """Whether the operator takes the call, and its results are of a size that can be kept; found on the meta device."""
    if not row.meta:
        return True
    args, kwargs, _ = META.arguments(sample, "meta", dtype)
    try:
        results = [r for r in flat(operator_named(row.name)(*args, **kwargs)) if isinstance(r, Tensor)]
    except Exception:
        return False
    return sum(math.prod(r.shape) for r in results) <= 8 * LIMIT


def run(row: Row, sample: Sample, dtype: str) -> list[Any]:
    """Results and gradients of a call, as arrays with their dtypes' names or as texts."""
    xtensor.manual_seed(0)
    key = f"{row.name}/flags"
    args, kwargs, leaves = OURS.arguments(sample, key, dtype, grad=row.grad and not row.empty)
    results = flat(operator_named(row.name)(*args, **kwargs))
    if row.empty:
        return []
    outputs = [r for r in results if isinstance(r, Tensor)]
    found = [kept(r) for r in results]
    asking = [o for o in outputs if o.requires_grad]
    if leaves and asking:
        try:
            gradients = OURS.grad(asking, leaves, cotangents(OURS, asking, key), False)
        except (RuntimeError, NotImplementedError) as error:
            return [*found, type(error).__name__]
        found += [kept(g) for g in gradients]
    return found


def kept(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return repr(value)
    return str(value.dtype).rpartition(".")[2], OURS.values(value.detach())


def chosen(row: Row, dtype: str, calls: int) -> Iterator[tuple[Sample, list[Any]]]:
    """Enlarged calls that the operator takes, with their results: the extra ones, one of each sample, then further ways."""
    for sample in EXTRA.get(row.name, ()):
        yield sample, run(row, sample, dtype)
    waiting = [candidates(sample) for sample in row.samples if row.name not in ALONE]
    seen: set[str] = set()
    count = 0
    while waiting:
        for way in list(waiting):
            for sample in way:
                form = form_of(sample)
                if form in seen or not fits(row, sample, dtype):
                    continue
                seen.add(form)
                try:
                    results = run(row, sample, dtype)
                except Exception:
                    continue
                sizes = [t.shape for t in sample.tensors] + [r[1].shape for r in results if type(r) is tuple]
                if max(map(math.prod, sizes), default=0) < ELEMENTS:
                    continue
                yield sample, results
                count += 1
                if count == calls:
                    return
                break
            else:
                waiting.remove(way)


def write(row: Row, dtypes: list[str], calls: int, folder: pathlib.Path) -> dict[str, Any]:
    """The reference of a row, to its file."""
    cases = [
        (dtype, sample, results)
        for dtype in dict.fromkeys(row.dtype if d == "float32" else d for d in dtypes)
        for sample, results in chosen(row, dtype, calls)
    ]
    file_of(folder, row).write_bytes(pickle.dumps(cases))
    return {"calls": len(cases)}


def compared(row: Row, folder: pathlib.Path) -> dict[str, Any]:
    """The same calls in this process against the file."""
    cases = pickle.loads(file_of(folder, row).read_bytes())
    calls = [(f"{row.name}{s} with {d}", functools.partial(run, row, s, d), e) for d, s, e in cases]
    return {"calls": len(calls), **worst_of(calls, kind_of(row))}


def worst_of(cases: Iterable[tuple[str, Callable[[], list[Any]], list[Any]]], kind: str) -> dict[str, Any]:
    """The largest difference of calls, each with what it is called and what is expected of it."""
    worst: Case | None = None
    for what, call, expected in cases:
        try:
            case = compare(call(), expected, kind)
        except Exception as error:
            case = Case(math.inf, f"{type(error).__name__}: {error}")
        if worst is None or case.error > worst.error:
            worst = case._replace(what=f"{what}: {case.what}"[:2000])
    return {} if worst is None else worst._asdict()


def serve(arguments: list[str], tasks: dict[str, Callable[..., dict[str, Any]]]) -> None:
    """Do a task, by its name, for every row that the command line names."""
    folder, task, dtypes, calls, *names = arguments
    executor.enabled = False
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for name in names:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        told = tasks[task](name, dtypes.split(","), int(calls), pathlib.Path(folder))
        print(json.dumps({"row": name, **told}), flush=True)


if __name__ == "__main__":
    rows = {row.name: row for row in ROWS}
    serve(
        sys.argv[1:],
        {
            "write": lambda name, *rest: write(rows[name], *rest),
            "compare": lambda name, dtypes, calls, folder: compared(rows[name], folder),
        },
    )
