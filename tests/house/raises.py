"""The errors that docstrings tell, against those that are raised: every row of the operator table is called wrongly.

A docstring tells its errors in a paragraph `Raises: CLASS when; CLASS when.` The clauses below have fixed words, and are
checked of every function with a row: it says them where, and only where, the calls made here raise. Clauses in other words
are checked by the cases of `raises.txt`. What raises `nothing of its own` is read, or called, on tensors of every kind; a module
that raises `as FUNCTION when called` is called wrongly beside the function.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import xtensor
from tests.table import Row
from tests.table.bridge import META, OURS, operator_named
from tests.table.facets import key_of

OTHER_KINDS = "TypeError for arguments of other kinds"
NOTHING = "nothing of its own"
NO_SUCH_DIM = "IndexError where `dim` is out of range"
SIZES = "where sizes do not fit"
DTYPES = {"complex": "complex64", "bool": "bool", "integer": "int64"}
OF_DTYPES = re.compile(r"(\w+) for ((?:complex|bool|integer|, | and )+) tensors")
AS_WHEN_CALLED = re.compile(r"as `([\w.]+)` when called")


def clauses(doc: str) -> list[str]:
    """The errors that a docstring tells."""
    for paragraph in doc.split("\n\n"):
        if paragraph.startswith("Raises: "):
            return " ".join(paragraph.removeprefix("Raises: ").split()).rstrip(".").split("; ")
    return []


def is_fixed(clause: str) -> bool:
    """Whether a clause has the words that are checked here."""
    return (
        clause in (OTHER_KINDS, NO_SUCH_DIM, NOTHING)
        or clause.endswith(SIZES)
        or OF_DTYPES.fullmatch(clause) is not None
    )


def spelled(clause: str) -> Iterator[str]:
    """A clause as several: `ERROR for complex and bool tensors` tells of two dtypes."""
    if kinds := OF_DTYPES.fullmatch(clause):
        yield from (f"{kinds[1]} for {kind} tensors" for kind in re.split(", | and ", kinds[2]))
    else:
        yield clause


def kinds_of_tensors() -> dict[str, xtensor.Tensor]:
    """A tensor of each kind that a query could refuse."""
    made = {
        str(dtype): xtensor.zeros(2, 3, dtype=dtype)
        for dtype in (
            xtensor.float32,
            xtensor.bfloat16,
            xtensor.float64,
            xtensor.int64,
            xtensor.uint8,
            xtensor.bool,
            xtensor.complex64,
        )
    }
    leaf = xtensor.ones(2, 3, requires_grad=True)
    return made | {
        "a number": xtensor.tensor(1.0),
        "nothing": xtensor.zeros(0, 3),
        "meta": xtensor.ones(2, 3, device="meta"),
        "a view": xtensor.ones(3, 2).t()[1:],
        "a leaf": leaf,
        "a result": leaf.exp(),
        "conjugated": xtensor.ones(2, 3, dtype=xtensor.complex64).conj(),
        "a parameter": xtensor.nn.Parameter(xtensor.ones(2)),
        "sparse": xtensor.eye(3).to_sparse(),
        "compressed": xtensor.eye(3).to_sparse_csr(),
        "quantised": xtensor.quantize_per_tensor(xtensor.ones(2, 3), 0.1, 10, xtensor.quint8),
    }


def raised(call: Callable[[], Any]) -> str | None:
    """The name of the class of what a call raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call()
        except Exception as error:
            return type(error).__name__
    return None


def is_tensor(value: Any) -> bool:
    return isinstance(value, xtensor.Tensor)


def in_dtype(value: Any, dtype: xtensor.dtype) -> Any:
    """An argument whose tensors of floats have another dtype."""
    if type(value) in (list, tuple):
        return type(value)([in_dtype(item, dtype) for item in value])
    return value.to(dtype) if is_tensor(value) and value.is_floating_point() else value


class Observed:
    """What a row's operator raises for wrong arguments.

    told: the clauses that its docstring should have. asked: the clauses that can be said to be right or wrong here: of one
    tensor no sizes differ, and what takes a list takes no text for a tensor.
    """

    def __init__(self, row: Row, whole: bool) -> None:
        self.function = operator_named(row.name)
        self.told: set[str] = set()
        self.asked: set[str] = set()
        for library in (OURS,) if whole else (META, OURS):
            calls = [library.arguments(s, key_of(row, s), row.dtype)[:2] for s in row.samples[:4]]
            right = [c for c in calls if raised(lambda c=c: self.function(*c[0], **c[1])) is None]
            if right:
                args, self.kwargs = max(right, key=lambda c: sum(is_tensor(a) and a.dim() > 0 for a in c[0]))
                self.args = list(args)
                self.observe()
                break

    def instead(self, place: int, value: Any) -> str | None:
        args = [*self.args[:place], value, *self.args[place + 1 :]]
        return raised(lambda: self.function(*args, **self.kwargs))

    def observe(self) -> None:
        tensors = [i for i, a in enumerate(self.args) if is_tensor(a)]
        if tensors:
            self.asked.add(OTHER_KINDS)
            if {self.instead(i, "text") for i in tensors} == {"TypeError"}:
                self.told.add(OTHER_KINDS)
        sized = [i for i in tensors if self.args[i].dim()]
        if len(sized) > 1:
            self.asked.add(SIZES)
            self.told |= {f"{e} {SIZES}" for i in sized if (e := self.instead(i, self.larger(i)))}
        self.observe_dim()
        for kind, name in DTYPES.items():
            dtype = getattr(xtensor, name)
            args = [in_dtype(a, dtype) for a in self.args]
            kwargs = {k: in_dtype(v, dtype) for k, v in self.kwargs.items()}
            self.asked.add(f"for {kind} tensors")
            if error := raised(lambda args=args, kwargs=kwargs: self.function(*args, **kwargs)):
                self.told.add(f"{error} for {kind} tensors")

    def larger(self, place: int) -> Any:
        """A tensor of other sizes, which do not broadcast with the right ones where those are more than 1."""
        like = self.args[place]
        return xtensor.empty([n + 2 for n in like.shape], dtype=like.dtype, device=like.device)

    def observe_dim(self) -> None:
        parameters = list(inspect.signature(self.function).parameters.values())
        names = [p.name for p in parameters]
        if "dim" not in names:
            return
        place = names.index("dim")
        now = (
            self.args[place] if place < len(self.args) else self.kwargs.get("dim", parameters[place].default)
        )
        wrong = [77] * len(now) if isinstance(now, (list, tuple)) else 77
        if place < len(self.args):
            error = self.instead(place, wrong)
        else:
            error = raised(lambda: self.function(*self.args, **{**self.kwargs, "dim": wrong}))
        self.asked.add(NO_SUCH_DIM)
        if error == "IndexError":
            self.told.add(NO_SUCH_DIM)

    def is_asked(self, clause: str) -> bool:
        return any(clause.endswith(asked) for asked in self.asked)
