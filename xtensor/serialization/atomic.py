"""Files that are whole or not there: written aside, flushed to the disk, then renamed over what was there."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

__all__ = ["replacing", "replacing_path"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write to that takes the place of `path` at the end; after an error `path` is what it was."""
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target) and not os.path.isdir(target):
        # A pipe or a device cannot be replaced.
        with open(target, "wb") as stream:
            yield stream
        return
    with replacing_path(path) as aside, open(aside, "wb") as stream:
        yield stream


@contextmanager
def replacing_path(path: str | os.PathLike[str]) -> Iterator[str]:
    """The path of an empty file next to `path`, which takes its place at the end."""
    # A link stays a link: what it leads to is replaced.
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {os.path.dirname(os.fspath(path))} does not exist.")
    if os.path.isdir(target):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    mode = stat.S_IMODE(os.stat(target).st_mode) if os.path.exists(target) else 0o666 & ~umask()
    handle, aside = tempfile.mkstemp(prefix=f".{os.path.basename(target)[:80]}.", suffix=".part", dir=folder)
    os.close(handle)
    try:
        yield aside
        with open(aside, "rb+") as stream:
            os.fsync(stream.fileno())
        os.chmod(aside, mode)
        os.replace(aside, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(aside)
        raise
    flush_folder(folder)


def flush_folder(folder: str) -> None:
    """Make the new name in a folder last, where the system has a way to."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def umask() -> int:
    # There is no way to ask that does not set it.
    current = os.umask(0o077)
    os.umask(current)
    return current
