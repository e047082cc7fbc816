"""One process, as `worker.py`, whose rows are the entries of PyTorch's OpInfo database, their samples enlarged.

    python -m tests.flags.entries FOLDER write|compare DTYPES CALLS NAME...

`tests/parity/large.py` enlarges them: the same ones in every process.
"""

from __future__ import annotations

import functools
import pathlib
import pickle
import sys
from collections.abc import Callable
from typing import Any

import torch

import xtensor
from tests.parity.convert import copied, leaves, ours, rebind
from tests.parity.entries import dtypes_of, entries, left_out
from tests.parity.facets import UNWRAPPED, Subject, differentiable, differentiate
from tests.table.bridge import OURS, flat
from xtensor.tensor import Tensor

from .worker import serve, worst_of

__all__ = ["names"]


def names() -> list[str]:
    """Every entry that is run."""
    return [name for name, entry in entries().items() if not left_out(name) and dtypes_of(entry)]


def calls(name: str, dtype: str, count: int) -> list[tuple[str, Callable[[], list[Any]]]]:
    """What each enlarged sample is, and what runs it; none where the entry lacks the dtype, or none can be enlarged."""
    entry = entries()[name]
    if dtype not in dtypes_of(entry):
        return []
    subject = Subject(entry, dtype, large=True)
    grad = differentiable(subject)
    samples = list(subject.samples("forward", grad=grad))[:count]
    return [(f"{name}{shown(s)} with {dtype}", functools.partial(results, subject, s, grad)) for s in samples]


def write(name: str, dtypes: list[str], count: int, folder: pathlib.Path) -> dict[str, Any]:
    """The reference of an entry, to its file: a list per dtype, None for a call that we do not have."""
    found = [[attempted(call) for _, call in calls(name, dtype, count)] for dtype in dtypes]
    (folder / f"{name}.pickle").write_bytes(pickle.dumps(found))
    return {"calls": sum(case is not None for cases in found for case in cases)}


def compared(name: str, dtypes: list[str], count: int, folder: pathlib.Path) -> dict[str, Any]:
    """The same calls in this process against the file."""
    found = pickle.loads((folder / f"{name}.pickle").read_bytes())
    cases = [
        (what, call, expected)
        for dtype, held in zip(dtypes, found, strict=True)
        for (what, call), expected in zip(calls(name, dtype, count), held, strict=True)
        if expected is not None
    ]
    return {"calls": len(cases), **worst_of(cases, "general")}


def attempted(call: Callable[[], list[Any]]) -> list[Any] | None:
    """The results; what differs from PyTorch in raising is for parity to say."""
    try:
        return call()
    except Exception:
        return None


def shown(sample: Any) -> str:
    shapes = [
        f"{str(t.dtype).rpartition('.')[2]}{list(t.shape)}" for t in leaves(everything(sample), torch.Tensor)
    ]
    return f"({', '.join(shapes)})"


def everything(sample: Any) -> tuple[Any, ...]:
    return sample.input, sample.args, sample.kwargs


def results(subject: Subject, sample: Any, grad: bool) -> list[Any]:
    """As arrays with their dtypes' names, or as texts."""
    if subject.unset:
        return []
    function = subject.ours()
    first, args, kwargs = ours(copied(everything(sample)))
    xtensor.manual_seed(0)
    found = [kept(r) for r in flat(function(first, *args, **kwargs))]
    if not grad:
        return found
    wrapper = subject.entry.gradcheck_wrapper
    xtensor.manual_seed(0)
    try:
        made = differentiate(
            xtensor,
            subject,
            function,
            rebind(sample.output_process_fn_grad),
            None if wrapper is UNWRAPPED else rebind(wrapper),
            ours(copied(everything(sample))),
            weights,
            False,
        )
    except (RuntimeError, NotImplementedError) as error:
        return [*found, type(error).__name__]
    return found + [kept(g) for g in made["first"]]


def weights(outputs: list[Any]) -> list[Any]:
    """The same for every process."""
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(tuple(o.shape), dtype=torch.float64, generator=generator) for o in outputs]
    return [ours(d).to(o.dtype) for d, o in zip(drawn, outputs, strict=True)]


def kept(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return repr(value)
    return str(value.dtype).rpartition(".")[2], OURS.values(value.detach())


if __name__ == "__main__":
    serve(sys.argv[1:], {"write": write, "compare": compared})
