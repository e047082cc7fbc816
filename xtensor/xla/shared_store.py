"""Programs made ahead and shared: a folder that many read and nobody writes to, behind the user's own compile cache.

`XTENSOR_COMPILE_CACHE_SHARED=<folder>` names it, and `python -m xtensor.warm --to <folder>` fills it: for an image, a cluster, a lab. What
the own cache lacks is looked for there, and is never copied, written or removed.

What lies there is run. So it is read only where nobody but the user and root can write: neither to the folder, nor to those that it
is in, nor to the file. The key of its seals lies beside the entries, for all to read: here a seal tells damage, and entries under
another's name; whom to trust is told by owners and modes.
"""

from __future__ import annotations

import os
import pathlib
import secrets
import stat

from .. import checks
from .trust import OTHERS_MAY_WRITE, Seal, fault, make_folder, write_file, write_once

__all__ = ["VARIABLE", "SharedStore", "named", "publish"]

VARIABLE = "XTENSOR_COMPILE_CACHE_SHARED"
KEY = "key"
LENGTH = 32


class SharedStore:
    """The entries of one kind of machine, by the names of their files."""

    def __init__(self, folder: pathlib.Path, machine: str) -> None:
        """machine: what programs depend on besides their keys, as a folder's name: another one's are not looked at."""
        self.path = folder / machine
        self._seal: Seal | None = None

    def get(self, name: str) -> bytes | None:
        """The content of an entry; None where it is not there, damaged, or somebody else could have written it."""
        sealed = _read(self.path / name)
        if sealed is None:
            return None
        if self._seal is None:
            self._seal = self._opened()
        return None if self._seal is None else self._seal.open(name, sealed)

    def put(self, name: str, content: bytes) -> None:
        """Keep an entry that all may read; an OSError where the folder cannot be written to.

        A PermissionError where others could write to it: nobody would read it then.
        """
        if self._seal is None:
            make_folder(self.path, 0o755)
            why = fault(self.path, roots=True)
            if why is not None:
                raise PermissionError(why)
            if _read_key(self.path / KEY) is None:
                write_once(self.path / KEY, secrets.token_bytes(LENGTH), 0o644)
            self._seal = self._opened()
            if self._seal is None:
                raise PermissionError(f"{self.path / KEY} is no key: remove the folder")
        write_file(self.path / name, self._seal.close(name, content), 0o644)

    def _opened(self) -> Seal | None:
        key = _read_key(self.path / KEY)
        return None if key is None or fault(self.path, roots=True) is not None else Seal(key)


def _read(file: pathlib.Path) -> bytes | None:
    """What a file holds; None where there is none, or others than the user and root may have written it."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    try:
        with os.fdopen(handle, "rb") as opened:
            return opened.read() if _trusted(os.fstat(handle)) else None
    except OSError:
        return None


def _trusted(status: os.stat_result) -> bool:
    """Whether a file is one, and nobody but the user and root can have written it."""
    if not stat.S_ISREG(status.st_mode):
        return False
    return not hasattr(os, "getuid") or (
        status.st_uid in (0, os.getuid()) and not status.st_mode & OTHERS_MAY_WRITE
    )


def _read_key(file: pathlib.Path) -> bytes | None:
    key = _read(file)
    return key if key is not None and len(key) == LENGTH else None


_opened: dict[str, SharedStore | None] = {}


def named(machine: str) -> SharedStore | None:
    """The store that the environment names; None where it names none, or, with a warning, one that others may write to."""
    told = os.environ.get(VARIABLE, "")
    if told not in _opened:
        # At most one more than the environment has had values.
        _opened[told] = None
        if told:
            folder = pathlib.Path(
                os.path.expanduser(told)
            )  # which leaves the `~` of a user without a home as it is
            why = fault(folder / machine, roots=True)
            if why is None:
                _opened[told] = SharedStore(folder, machine)
            else:
                checks.warn(
                    f"{VARIABLE} is not used: {why}. Programs in it are run, so {folder} and the folders it is in must be root's or "
                    "yours, with nobody else allowed to write to them (chown, chmod go-w)."
                )
    return _opened[told]


def publish(own: pathlib.Path, seal: Seal, store: SharedStore) -> int:
    """Put every entry of an own cache's folder into a shared store; how many bytes there were.

    An own entry is sealed under its file's name, with or without the suffix.
    """
    size = 0
    for file in sorted(own.iterdir()):
        if not file.is_file():
            continue
        sealed = file.read_bytes()
        for name in (file.stem, file.name):
            content = seal.open(name, sealed)
            if content is not None:
                store.put(file.name, content)
                size += len(content)
                break
    return size
