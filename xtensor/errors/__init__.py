"""Codes of errors: which class an error belongs to, and what helps. `xtensor.help("X101")` prints it, without a network."""

from __future__ import annotations

import re
import sys
import textwrap
from typing import TypeVar

from ..xla.cache import bounded
from .table import ENTRIES, GROUPS, Entry

E = TypeVar("E", bound=BaseException)
__all__ = ["ENTRIES", "GROUPS", "Entry", "entry_of", "help", "noted"]


@bounded(4)
def _searched() -> re.Pattern[str]:
    """All messages of the table as one expression: the name of the group that is found is the code."""
    parts = (f"(?P<{entry.code}>{'|'.join(f'(?:{m})' for m in entry.messages)})" for entry in ENTRIES)
    return re.compile("|".join(parts))


@bounded(4)
def _by_code() -> dict[str, Entry]:
    return {entry.code: entry for entry in ENTRIES}


def entry_of(error: BaseException | str) -> Entry | None:
    """The class that an error belongs to by its message, or None.

    >>> xtensor.errors.entry_of("shape '[4, 2]' is invalid for input of size 6").code
    'X203'
    """
    found = _searched().search(str(error))
    return None if found is None or found.lastgroup is None else _by_code()[found.lastgroup]


def noted(error: E) -> E:
    """The error with a line under it that says where its class is explained. Its message and arguments stay."""
    if "__notes__" not in vars(error) and (entry := entry_of(error)) is not None:
        error.add_note(f'xtensor.help("{entry.code}") tells more')
    return error


def help(what: str | BaseException | None = None) -> None:
    """Print what an error means and what helps: of a code, of an error, or of the last one that Python showed.

    Raises LookupError for a code that is none.

    >>> xtensor.help("X305")
    X305: One value is wanted, and there are several
    <BLANKLINE>
    `if x`, `float(x)`, `x.item()` and the like take a tensor of one element.
    <BLANKLINE>
    - `(x > 0).all()` or `.any()` for a condition; `x.tolist()` for all values; `x.sum().item()` for one.
    <BLANKLINE>
    docs/guide/tensors.md; all codes: docs/reference/errors.md
    """
    if what is None:
        what = getattr(sys, "last_value", None)
        if what is None:
            print(
                'No error was shown yet. A code is told by xtensor.help("X101"); all of them: docs/reference/errors.md'
            )
            return
    entry = _by_code().get(what) if isinstance(what, str) else entry_of(what)
    if entry is None:
        if isinstance(what, str):
            raise LookupError(
                f"no error has the code {what!r}: they go from {ENTRIES[0].code} to {ENTRIES[-1].code}"
            )
        print(f"{type(what).__name__} of this kind has no code: {what}")
        return
    print(text_of(entry))


def text_of(entry: Entry, width: int = 110) -> str:
    """A class of errors as text, for a terminal."""
    lines = [f"{entry.code}: {entry.title}", "", textwrap.fill(plain(entry.meaning), width), ""]
    lines += [textwrap.fill(f"- {plain(help_)}", width, subsequent_indent="  ") for help_ in entry.helps]
    return "\n".join([*lines, "", f"docs/{entry.page}; all codes: docs/reference/errors.md"])


def plain(text: str) -> str:
    """Text without links."""
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)
