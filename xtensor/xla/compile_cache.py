"""The persistent compile cache: what one process compiled, the next one loads, without tracing it where it can.

It is on by default, in a folder of the user's own, keyed by jaxlib, platform and processor. It holds each program twice: under the
signature of the call that needed it (`store.py`), and under JAX's key, which needs the program traced and lowered, but finds what another
version of xtensor has compiled. `XTENSOR_COMPILE_CACHE=<folder>` moves it, `XTENSOR_COMPILE_CACHE=off` switches it off; so do
`set_directory(folder)` and `set_directory(None)` before anything has been compiled, or later for what comes.

It holds xtensor's own programs only. JAX's configuration is left alone, and where the user has given JAX a cache
(`jax_compilation_cache_dir`) that one is used instead, by its own rules. Entries are written aside and renamed, so
processes may share the folder, and carry a seal over key and content: one whose seal does not fit is removed and compiled
again. What lies there is run, so the folder must be the user's own (`xtensor/xla/trust.py`): another is refused with a warning.
What it lacks is looked for among programs made ahead for many (`xtensor/xla/shared_store.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import pathlib
import platform
import sys
import threading
from collections.abc import Callable, Iterator

import jax

from .. import checks
from . import shared_store
from .cache import bounded
from .jax_internals import CacheInterface, caching
from .trust import Seal, fault, make_folder, open_seal, write_file

__all__ = [
    "Seen",
    "clear",
    "compiling",
    "count",
    "default_directory",
    "directory",
    "has",
    "in_use",
    "read",
    "set_directory",
    "stats",
    "write",
]

LIMIT = 2 << 30
"""Bytes that the folder may hold; the oldest entries go when it has grown past them."""

SUFFIX = ".xla"
CALL = "call_"
"""What the names of entries by signature begin with."""
_own = threading.local()
_lock = threading.Lock()
_counts: dict[str, float] = {"hits": 0, "misses": 0, "damaged": 0, "seconds": 0.0, "saved": 0.0}


def _made_ahead(key: str) -> bytes | None:
    """An entry that was made ahead for many, or None."""
    store = shared_store.named(machine())
    return None if store is None else store.get(key + SUFFIX)


figures: list[Callable[[], dict[str, float]]] = []
"""More of what `stats` tells."""


class Seen:
    """What one program's compiling brought to light: JAX's key of it, and its code, None where JAX keeps none of it."""

    def __init__(self) -> None:
        self.key = ""
        self.content: bytes | None = None


def default_directory() -> pathlib.Path | None:
    """Where the cache is unless told otherwise: the user's cache folder, by jaxlib's version and the processor.

    None where the user has no home folder.
    """
    told = {"win32": "LOCALAPPDATA", "darwin": ""}.get(sys.platform, "XDG_CACHE_HOME")
    base = pathlib.Path(os.environ.get(told, ""))
    if not base.is_absolute():
        try:
            home = pathlib.Path.home()
        except RuntimeError:
            return None
        base = home.joinpath(
            *{"win32": ("AppData", "Local"), "darwin": ("Library", "Caches")}.get(sys.platform, (".cache",))
        )
    return base / "xtensor" / machine()


@bounded(1)
def machine() -> str:
    """What programs depend on besides JAX's keys, as a folder's name."""
    return f"jaxlib-{importlib.metadata.version('jaxlib')}-{platform.machine()}-{_processor()}"


def _processor() -> str:
    """The processor's features, shortened: a program compiled for one may not run on another."""
    told = platform.processor()
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        told = next((line for line in file if line.startswith(("flags", "Features"))), told)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


class Cache(CacheInterface):
    """A folder of compiled programs under JAX's keys, for what is compiled inside `compiling()` alone."""

    def __init__(self, path: pathlib.Path, limit: int) -> None:
        self._path = path
        self.limit = limit
        self.size: int | None = None
        self._seal: Seal | None = None

    def _opened(self, make: bool) -> Seal | None:
        """The folder's seal; None where there is none yet, or where the folder is not the user's own."""
        if self._seal is None:
            with contextlib.suppress(OSError):
                if make:
                    make_folder(self._path)
                if fault(self._path) is None:
                    self._seal = open_seal(self._path, make)
        return self._seal

    def get(self, key: str) -> bytes | None:
        """The program of JAX's key, or None."""
        seen: Seen | None = getattr(_own, "seen", None)
        if seen is None:
            return None
        seen.key = key
        seen.content = self.read(key)
        _counts["misses" if seen.content is None else "hits"] += 1
        return seen.content

    def put(self, key: str, value: bytes) -> None:
        """Keep the program of JAX's key."""
        seen: Seen | None = getattr(_own, "seen", None)
        if seen is not None:
            seen.key, seen.content = key, value
            self.write(key, value)

    def read(self, key: str) -> bytes | None:
        """An entry, or None."""
        file = self._path / (key + SUFFIX)
        seal = self._opened(make=False)
        try:
            data = file.read_bytes() if seal is not None else None
        except OSError:
            data = None
        if seal is None or data is None:
            return _made_ahead(key)
        content = seal.open(key, data)
        if content is None:
            # What an earlier version kept has no seal, and is no damage.
            _counts["damaged"] += Seal.MAGIC.startswith(data[: len(Seal.MAGIC)])
            with contextlib.suppress(OSError):
                file.unlink()
            return _made_ahead(key)
        with contextlib.suppress(OSError):
            os.utime(file)
        return content

    def has(self, key: str) -> bool:
        """Whether there is such an entry."""
        return (self._path / (key + SUFFIX)).exists() or _made_ahead(key) is not None

    def write(self, key: str, value: bytes) -> None:
        """Keep an entry; a folder that cannot be written to keeps nothing."""
        if len(value) > self.limit:
            return
        seal = self._opened(make=True)
        if seal is None:
            return
        with contextlib.suppress(OSError):
            sealed = seal.close(key, value)
            write_file(self._path / (key + SUFFIX), sealed)
            with _lock:
                if self.size is None:
                    self.size = sum(size for _, size, _ in self.entries())
                else:
                    self.size += len(sealed)
                if self.size > self.limit:
                    self.trim()

    def entries(self) -> list[tuple[float, int, str]]:
        """Age, size and path of every entry, and of what a process that was killed left behind."""
        found = []
        with contextlib.suppress(OSError), os.scandir(self._path) as files:
            for file in files:
                if file.name.endswith((SUFFIX, ".part")):
                    with contextlib.suppress(OSError):
                        status = file.stat()
                        found.append((status.st_mtime, status.st_size, file.path))
        return found

    def trim(self) -> None:
        """Remove the entries that were used longest ago until half the limit is left."""
        entries = sorted(self.entries())
        size = sum(entry[1] for entry in entries)
        for _, bytes_held, path in entries:
            if size <= self.limit // 2:
                break
            with contextlib.suppress(OSError):
                os.unlink(path)
            size -= bytes_held
        self.size = size


class _Choice:
    """Where the cache shall be: None until it is first needed, then a folder or False."""

    path: pathlib.Path | bool | None = None


def set_directory(path: str | os.PathLike[str] | None) -> None:
    """Keep compiled programs in `path` from now on; None switches the cache off."""
    _Choice.path = False if path is None else _unless_refused(pathlib.Path(path).expanduser())
    if caching is not None and isinstance(caching.seat._cache, Cache):
        caching.seat.reset_cache()


def directory() -> pathlib.Path | None:
    """The folder in use; None where the cache is off or JAX has one of the user's."""
    if _Choice.path is None:
        told = os.environ.get("XTENSOR_COMPILE_CACHE", "")
        if told.lower() in ("off", "0", "no", "false"):
            _Choice.path = False
        else:
            try:
                path = pathlib.Path(told).expanduser() if told else default_directory()
            except RuntimeError:  # `~` of a user without a home folder
                path = None
            _Choice.path = False if path is None else _unless_refused(path)
    if caching is None or jax.config.jax_compilation_cache_dir:  # pyright: ignore[reportAttributeAccessIssue]
        return None
    return _Choice.path if isinstance(_Choice.path, pathlib.Path) else None


def _unless_refused(path: pathlib.Path) -> pathlib.Path | bool:
    """The folder, or False with a warning where others could put programs into it."""
    why = fault(path)
    if why is None:
        return path
    _Choice.path = False  # also where the warning is made an error
    checks.warn(
        f"xtensor's compile cache is off: {why}. Programs in it are run, so {path} and the folders it is in must be "
        "yours, with nobody else allowed to write to them: correct that (chown, chmod go-w), name another folder by "
        "XTENSOR_COMPILE_CACHE, or set XTENSOR_COMPILE_CACHE=off to do without one.",
    )
    return False


def count(what: str, amount: float = 1) -> None:
    """Add to the figures that `stats` tells."""
    _counts[what] += amount


def stats() -> dict[str, float]:
    """What this process has done for its programs.

    hits, misses, damaged: programs found on disk, not found there and so compiled, and found damaged. seconds: spent compiling.
    saved: what compiling those that were found had taken. programs: those in memory now. evicted: those that others took the
    place of.
    """
    return {**_counts, **{name: figure for read in figures for name, figure in read().items()}}


def clear() -> None:
    """Remove every entry of the folder in use."""
    path = directory()
    if path is not None:
        for _, _, file in Cache(path, LIMIT).entries():
            with contextlib.suppress(OSError):
                os.unlink(file)


def _cache() -> Cache | None:
    """The cache of the folder in use, in JAX's seat."""
    path = directory()
    if path is None:
        if caching is not None and isinstance(caching.seat._cache, Cache):
            caching.seat.reset_cache()  # the user has given JAX a cache since
        return None
    present = caching.seat._cache
    if present is None or (isinstance(present, Cache) and present._path != path):
        with _lock:
            caching.seat.reset_cache()
            present = caching.seat._cache = Cache(path, LIMIT)
            caching.seat._cache_initialized = True
    return present if isinstance(present, Cache) else None


def in_use() -> bool:
    """Whether JAX has a cache, this one or another: what it gave was loaded, and cannot be taken apart again."""
    return caching is None or caching.seat._cache is not None


def read(name: str) -> bytes | None:
    """The entry of a name, or None."""
    cache = _cache()
    return None if cache is None else cache.read(name)


def has(name: str) -> bool:
    """Whether there is an entry of a name."""
    cache = _cache()
    return cache is not None and cache.has(name)


def write(name: str, content: bytes) -> None:
    """Keep an entry."""
    cache = _cache()
    if cache is not None:
        cache.write(name, content)


@contextlib.contextmanager
def compiling() -> Iterator[Seen]:
    """A context for compiling one program: it comes from the cache, or goes there; what is seen of it on the way."""
    seen, outer = Seen(), getattr(_own, "seen", None)
    if _cache() is None:
        yield seen
        return
    _own.seen = seen
    try:
        with caching.seconds(0.0), caching.size(-1):
            yield seen
    finally:
        _own.seen = outer
