"""Programs as lists of statements in torch syntax, their execution on a library, comparison and shrinking."""

from __future__ import annotations

import re
import signal
import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import CodeType, ModuleType
from typing import Any


@dataclass(frozen=True)
class Step:
    """One statement; `makes` and `reads` are the names it binds and needs, `kind` its row in the histogram."""

    kind: str
    source: str
    makes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """A seed and the steps drawn from it; `script()` is the same as a file that runs with torch alone."""

    seed: int
    steps: tuple[Step, ...]

    def script(self, note: str = "") -> str:
        lines = [f"# seed {self.seed}{note}", "import torch"]
        for step in self.steps:
            lines.extend(step.source.split("\n"))
        return "\n".join(lines)

    def without(self, dropped: set[int]) -> Program:
        """The program less the steps numbered in `dropped` and every step that needs a name they made."""
        gone: set[str] = set()
        kept: list[Step] = []
        for number, step in enumerate(self.steps):
            if number in dropped or gone.intersection(step.reads):
                gone.update(step.makes)
            else:
                gone.difference_update(step.makes)
                kept.append(step)
        return replace(self, steps=tuple(kept))


@dataclass
class Outcome:
    """What a step left behind: the error it raised, if any, and everything seen of each live name."""

    error: tuple[str, str] | None
    seen: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """The first step at which two libraries part, in which field, and what each of them said."""

    number: int
    kind: str
    name: str
    aspect: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"step {self.number} ({self.kind}): {self.name}.{self.aspect}: expected {self.expected}, got {self.got}"


@dataclass
class Verdict:
    """The outcome of comparing one program, with the wording of every error raised on both sides."""

    difference: Difference | None
    wordings: list[tuple[str, str]] = field(default_factory=list)


class Hang(Exception):
    """A program that did not end in time."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raises `Hang` in the main thread after `seconds`; without SIGALRM (Windows) it does nothing."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return

    def ring(number: int, frame: object) -> None:
        raise Hang(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@lru_cache(maxsize=4096)
def compiled(source: str) -> CodeType:
    """The code object of a statement, shared by the libraries that run it."""
    return compile(source, "<fuzz>", "exec")


def error_class(error: BaseException) -> str:
    """The name of an exception's class, or the one that a model's exception stands for.

    One kernel of PyTorch's `index_select` raises RuntimeError where its others raise IndexError: taken for the latter.
    """
    if str(error).startswith("INDICES element is out of DATA bounds"):
        return "IndexError"
    return getattr(error, "torch_class", None) or type(error).__name__


def first_line(error: BaseException) -> str:
    return (str(error).strip() or "(no message)").splitlines()[0]


NUMBERS = re.compile(r"-?\b\d+(\.\d+)?(e[-+]?\d+)?\b")


def normalised(wording: str) -> str:
    """An error's first line with numbers, quotes, the library's name and runs of spaces evened out."""
    text = NUMBERS.sub("N", wording.lower()).replace("xtensor", "torch")
    return re.sub(r"[\s`'\".,;:]+", " ", text).strip()


Observer = Callable[[dict[str, Any]], dict[str, dict[str, Any]]]
Guard = Callable[[dict[str, Any]], Callable[[], None]]


def run(
    program: Program,
    lib: ModuleType | Any,
    observe: Observer,
    guard: Guard | None = None,
    prelude: dict[str, Any] | None = None,
) -> Iterator[Outcome]:
    """Executes a program step by step; `guard` gives a function that undoes what a failed step half did."""
    names: dict[str, Any] = {"torch": lib, **(prelude or {})}
    given = set(names)

    def live_names() -> dict[str, Any]:
        return {k: v for k, v in names.items() if k not in given and not k.startswith("_")}

    for step in program.steps:
        restore = guard(live_names()) if guard else None
        error = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compiled(step.source), names)
        except Hang:
            raise
        except Exception as raised:
            error = (error_class(raised), first_line(raised))
            if restore is not None:
                restore()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seen = observe(live_names())
        except Hang:
            raise
        except Exception as raised:
            seen = {"(observing)": {"error": f"{error_class(raised)}: {first_line(raised)}"}}
        yield Outcome(error, seen)


Same = Callable[[Any, Any], bool]


def equal(expected: Any, got: Any) -> bool:
    return bool(expected == got)


def same_error(left: tuple[str, str] | None, right: tuple[str, str] | None, alike: bool) -> bool:
    """Whether two outcomes raise the same class; a model may leave the class open with `*`."""
    if left is None or right is None:
        return left is right
    kinds = {left[0], right[0]}
    return len(kinds) == 1 or "*" in kinds or (alike and kinds == {"IndexError", "RuntimeError"})


def judge(
    program: Program,
    expected: Iterator[Outcome],
    got: Iterator[Outcome],
    same: Same = equal,
    alike: Container[str] = (),
    ignore: Container[str] = (),
) -> Verdict:
    """Compares two executions and stops at the first step where they part.

    For the kinds of step in `alike` IndexError and RuntimeError count as one; aspects in `ignore` are not compared. After
    a backward that raised on both sides `.grad` is no longer compared: which leaves it had reached is nobody's promise.
    """
    verdict = Verdict(None)
    unsettled = False
    for number, (step, left, right) in enumerate(zip(program.steps, expected, got, strict=True)):

        def part(name: str, aspect: str, left: Any, right: Any) -> Verdict:
            verdict.difference = Difference(number, step.kind, name, aspect, str(left), str(right))  # noqa: B023
            return verdict

        if left.error and "INTERNAL ASSERT FAILED" in left.error[1]:
            return verdict  # a bug of the reference's own, which nobody need repeat
        if not same_error(left.error, right.error, step.kind in alike):
            say = [f"{e[0]}: {e[1]}" if e else "no error" for e in (left.error, right.error)]
            return part("(step)", "raises", *say)
        if left.error and right.error:
            verdict.wordings.append((left.error[1], right.error[1]))
            unsettled = unsettled or step.kind == "backward"
        if left.seen.keys() != right.seen.keys():
            gone = set(left.seen) ^ set(right.seen)
            live = [x.seen.get("(observing)", sorted(x.seen)) for x in (left, right)]
            return part(sorted(gone)[0], "live", *live)
        for name, aspects in left.seen.items():
            other = right.seen[name]
            for aspect in [*aspects, *(a for a in other if a not in aspects)]:
                if aspect in ignore or (unsettled and aspect == "grad"):
                    continue
                if aspect not in aspects or aspect not in other or not same(aspects[aspect], other[aspect]):
                    return part(name, aspect, aspects.get(aspect, "(absent)"), other.get(aspect, "(absent)"))
    return verdict


def minimise(program: Program, fails: Callable[[Program], bool], rounds: int = 4) -> Program:
    """A smaller program that still fails: steps go, in halves first and then one by one, with what needs them."""
    size = max(1, len(program.steps) // 2)
    while size:
        start, changed = 0, False
        while start < len(program.steps):
            smaller = program.without(set(range(start, min(start + size, len(program.steps)))))
            if len(smaller.steps) < len(program.steps) and fails(smaller):
                program, changed = smaller, True
            else:
                start += size
        if size > 1:
            size //= 2
        elif not changed or not (rounds := rounds - 1):
            break
    return program


def names_in(source: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names among `known` that a statement mentions."""
    found = set(re.findall(r"\b[a-z]\d+\b", source))
    return tuple(name for name in known if name in found)
