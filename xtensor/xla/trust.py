"""Whose files may be run: folders that are the user's own, and entries that carry a seal of theirs.

Compiled programs are machine code, so a folder that holds them is as much to be trusted as the program that reads them.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import pathlib
import secrets
import stat
import tempfile
from collections.abc import Iterator

try:
    import grp
    import pwd
except ImportError:  # Windows, where a user's folder is guarded by its access list
    grp = pwd = None

__all__ = ["Seal", "fault", "make_folder", "open_seal", "write_file", "write_once"]

OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
LINKS = 40
"""Symbolic links followed on the way to a folder, as many as Linux follows."""


class Seal:
    """What binds an entry to its name: a digest over both, keyed with a secret that only the user can read.

    Another way to trust (entries of a shared store, signed by its maker) is another class with these two methods.
    """

    MAGIC = b"xtensor\x01"
    SIZE = 32

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def close(self, name: str, content: bytes) -> bytes:
        """The content with its seal in front."""
        return self.MAGIC + self._digest(name, content) + content

    def open(self, name: str, sealed: bytes) -> bytes | None:
        """The content; None where it is not what was sealed under that name, or not by this user."""
        start = len(self.MAGIC) + self.SIZE
        content = sealed[start:]
        if sealed.startswith(self.MAGIC) and hmac.compare_digest(
            sealed[len(self.MAGIC) : start], self._digest(name, content)
        ):
            return content
        return None

    def _digest(self, name: str, content: bytes) -> bytes:
        spelled = name.encode()
        digest = hashlib.blake2b(
            len(spelled).to_bytes(8, "big") + spelled, key=self._secret, digest_size=self.SIZE
        )
        digest.update(content)
        return digest.digest()


# -- folders


def fault(folder: pathlib.Path, roots: bool = False) -> str | None:
    """What keeps a folder from being the user's own, in words: who else may write to it or move it. None where nothing does.

    Every folder on the way counts, links included; one that everybody may write to passes where it is sticky, as `/tmp` is.
    What is not there yet is no fault: `make_folder` makes it. roots: one of root's will do as well.
    """
    if not hasattr(os, "getuid"):
        return None
    mine = os.getuid()
    try:
        for path, status in _steps(folder):
            own = status.st_uid == mine
            if not own and status.st_uid not in _administrators():
                return f"{path} belongs to user {status.st_uid}"
            if stat.S_ISLNK(status.st_mode):
                continue
            if not stat.S_ISDIR(status.st_mode):
                return f"{path} is no folder"
            if status.st_mode & OTHERS_MAY_WRITE and not (
                status.st_mode & stat.S_ISVTX or _private(status, mine)
            ):
                return f"others may write to {path} (mode {stat.S_IMODE(status.st_mode):04o})"
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(folder)
            if status.st_uid != mine and not (roots and status.st_uid == 0):
                return f"{folder} belongs to user {status.st_uid}"
            if status.st_mode & OTHERS_MAY_WRITE:
                return f"others may write to {folder} (mode {stat.S_IMODE(status.st_mode):04o})"
    except OSError as error:
        return f"{folder} cannot be looked at: {error.strerror}"
    return None


def _steps(folder: pathlib.Path) -> Iterator[tuple[pathlib.Path, os.stat_result]]:
    """Every folder and link on the way, from the root on, as far as there are any."""
    absolute = pathlib.Path(os.path.abspath(folder))
    here = pathlib.Path(absolute.anchor)
    waiting = list(reversed(absolute.parts[1:]))
    links = 0
    yield here, os.lstat(here)
    while waiting:
        part = waiting.pop()
        if part == os.pardir:
            here = here.parent
            continue
        try:
            status = os.lstat(here / part)
        except FileNotFoundError:
            return
        yield here / part, status
        if not stat.S_ISLNK(status.st_mode):
            here = here / part
            continue
        links += 1
        if links > LINKS:
            raise OSError(0, "too many symbolic links")
        target = pathlib.Path(os.readlink(here / part))
        if target.is_absolute():
            here = pathlib.Path(target.anchor)
        waiting += reversed(target.parts[1:] if target.is_absolute() else target.parts)


def _administrators() -> set[int]:
    """The users who can do anything anyway; inside a user namespace, where root shows as nobody, nobody."""
    found = {0}
    with contextlib.suppress(OSError, ValueError):
        if pathlib.Path("/proc/self/uid_map").read_text().split() != ["0", "0", "4294967295"]:
            found.add(int(pathlib.Path("/proc/sys/kernel/overflowuid").read_text()))
    return found


def _private(status: os.stat_result, mine: int) -> bool:
    """Whether those who may write are the user alone: the group of that name without members, as many systems make one."""
    if status.st_mode & stat.S_IWOTH or grp is None or pwd is None:
        return False
    try:
        user, group = pwd.getpwuid(mine), grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return (
        group.gr_name == user.pw_name and group.gr_gid == user.pw_gid and set(group.gr_mem) <= {user.pw_name}
    )


def make_folder(folder: pathlib.Path, mode: int = 0o700) -> None:
    """Make a folder and those on the way to it that are missing, by default the user's own, whatever the umask."""
    missing = [folder]
    while not missing[-1].parent.exists() and missing[-1].parent != missing[-1]:
        missing.append(missing[-1].parent)
    for path in reversed(missing):
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            continue  # another process of the user's, or not: `fault` tells
        os.chmod(path, mode)


def write_file(file: pathlib.Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file, by default one that only the user can read, aside and renamed, so that it is there whole or not at all."""
    aside = _aside(file.parent, content, mode)
    try:
        os.replace(aside, file)
    except OSError:
        pathlib.Path(aside).unlink(missing_ok=True)
        raise


def write_once(file: pathlib.Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file unless there is one: of processes that do so at once, one's stays."""
    aside = _aside(file.parent, content, mode)
    try:
        os.link(aside, file)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        os.replace(aside, file)
    finally:
        pathlib.Path(aside).unlink(missing_ok=True)


def _aside(folder: pathlib.Path, content: bytes, mode: int = 0o600) -> str:
    handle, aside = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            if hasattr(os, "fchmod"):
                os.fchmod(handle, mode)
            file.write(content)
    except OSError:
        pathlib.Path(aside).unlink(missing_ok=True)
        raise
    return aside


# -- the secret

SECRET = "secret"
LENGTH = 32


def open_seal(folder: pathlib.Path, make: bool) -> Seal | None:
    """The seal of a folder that is the user's own, by the secret that lies in it; made where it is missing and `make` says so.

    Processes that make it at once agree on one of theirs.
    """
    file = folder / SECRET
    secret = _read_secret(file)
    if secret is None and make:
        made = secrets.token_bytes(LENGTH)
        write_once(file, made)
        if _read_secret(file) is None:  # what it holds is no secret
            write_file(file, made)
        secret = _read_secret(file)
    return None if secret is None else Seal(secret)


def _read_secret(file: pathlib.Path) -> bytes | None:
    """None where it is not there, not whole, or where others own it or can read it."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    with os.fdopen(handle, "rb") as opened:
        status = os.fstat(handle)
        guarded = not hasattr(os, "getuid") or (
            status.st_uid == os.getuid() and not stat.S_IMODE(status.st_mode) & 0o077
        )
        secret = opened.read(LENGTH + 1) if guarded and stat.S_ISREG(status.st_mode) else b""
    return secret if len(secret) == LENGTH else None
