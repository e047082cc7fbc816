"""Random programs of views, writes and indexing, judged step by step: `python -m tests.fuzz.views --programs 10000`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterator
from typing import Any

from tests.fuzz import draw_views, draw_writes, model
from tests.fuzz.draw import Drawing
from tests.fuzz.judging import Outcome, Program, Verdict, judge, minimise, run

FALLBACK = model
REGISTERED = (draw_views, draw_writes)
# PyTorch's own class for an index out of range depends here on which of its kernels is taken.
ALIKE = frozenset(("write:index_add_", "write:index_reduce_"))


def generate(seed: int, reference: Any = None) -> Program:
    """The program of a seed: the same on every machine and for every reference."""
    return Drawing(seed).program()


def observe(live: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Everything a user can see of every live tensor, in plain comparable values."""
    seen: dict[str, dict[str, Any]] = {}
    objects = {id(t): name for name, t in reversed(live.items())}
    storages: dict[int, str] = {}
    for name, t in live.items():
        storage = t.untyped_storage()
        place, bytes_held = storage.data_ptr(), storage.nbytes()
        base = t._base
        rank4 = t.dim() == 4
        seen[name] = {
            "same object as": objects[id(t)],
            "dtype": str(t.dtype).rpartition(".")[2],
            "size": tuple(t.shape),
            # Strides that address nothing are not compared: broadcasting leaves odd ones in PyTorch's empty results.
            "stride": tuple(t.stride()) if t.numel() else None,
            "storage_offset": t.storage_offset(),
            "is_contiguous": t.is_contiguous(),
            "channels_last": t.is_contiguous(memory_format=_channels_last(t)) if rank4 else None,
            "_version": t._version,
            "_base": None if base is None else objects.get(id(base), "(unnamed)"),
            "storage bytes": bytes_held,
            "shares storage with": storages.setdefault(place, name) if bytes_held else None,
            "data_ptr": t.data_ptr() - place if t.numel() else None,
            "is_conj": t.is_conj(),
            "is_neg": t.is_neg(),
            "values": _text(t.tolist()),
        }
    return seen


def _channels_last(t: Any) -> Any:
    return getattr(sys.modules[type(t).__module__.partition(".")[0]], "channels_last", "channels_last")


def _text(values: Any) -> str:
    """Values as text: every NaN the same, and -0.0 the same as 0.0, which kernels choose between freely."""
    return repr(_plain(values))


def _plain(values: Any) -> Any:
    if isinstance(values, list):
        return [_plain(v) for v in values]
    return values + 0.0 if isinstance(values, (complex, float)) else values


def torch_guard(live: dict[str, Any]) -> Callable[[], None]:
    """Takes a copy of every storage; what is given back undoes a write that PyTorch abandoned half way."""
    kept = {}
    for t in live.values():
        storage = t.untyped_storage()
        kept.setdefault(storage.data_ptr(), (storage, storage.clone()))

    def restore() -> None:
        for storage, copy in kept.values():
            storage.copy_(copy)

    return restore


def execute(program: Program, lib: Any) -> Iterator[Outcome]:
    """Runs a program on torch, on the model or on the library under test."""
    guard = torch_guard if getattr(lib, "__name__", "") == "torch" else None
    return run(program, lib, observe, guard)


def compare(program: Program, reference: Any, subject: Any, ignore: Container[str] = ()) -> Verdict:
    """Where `subject` parts from `reference` on a program, if it does, in aspects that are not ignored."""
    return judge(program, execute(program, reference), execute(program, subject), alike=ALIKE, ignore=ignore)


def shrink(program: Program, reference: Any, subject: Any, ignore: Container[str] = ()) -> Program:
    """A smaller program on which the two still differ."""
    return minimise(program, lambda p: compare(p, reference, subject, ignore).difference is not None)


if __name__ == "__main__":
    from tests.fuzz.runner import main

    sys.exit(main("tests.fuzz.views", "random programs of views, writes and indexing", 10_000))
