"""`python -m xtensor.env`: versions, devices, settings and caches, for reports of bugs; `welcome` for who starts."""

from __future__ import annotations

import os
import pathlib
import platform
import sys
from importlib import metadata

from .. import __version__, devices
from ..devices.extras import EXTRAS, command
from ..xla import compile_cache

__all__ = ["report", "welcome"]

PACKAGES = ("jax", "jaxlib", "numpy", "ml_dtypes", "cloudpickle", "absl-py")
SETTINGS = ("XTENSOR_", "JAX_", "XLA_", "CUDA_VISIBLE_DEVICES", "MALLOC_", "OMP_NUM_THREADS")
TRY = (
    ("python -m xtensor script.py", "run an unmodified PyTorch program; --device says where"),
    ("python -m xtensor.selfcheck", "every operator against float64, on this machine"),
    ("python -m xtensor.env", "all of this and more, for a report of a bug"),
    ("python -m xtensor --help", "what else this command takes"),
)


def version_of(package: str) -> str | None:
    """The installed version of a package, None where it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def installed(extra: str) -> bool:
    """Whether all packages of an extra are there."""
    return all(version_of(package) is not None for package in EXTRAS[extra][0])


def processor() -> str:
    """What the processor calls itself."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text("utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def device_lines() -> list[str]:
    """A line for each device: its name, its maker's name, its memory."""
    lines = []
    for place in devices.list():
        found = devices.properties(place)
        size = "" if found.total_memory is None else f", {found.total_memory / 2**30:.1f} GiB"
        lines.append(f"{place}: {found.name}{size}")
    return lines


def cache_line() -> str:
    """Where compiled programs are kept, and how many there are."""
    folder = compile_cache.directory()
    if folder is None:
        own = os.environ.get("JAX_COMPILATION_CACHE_DIR")
        return f"{own} (JAX's own, by JAX_COMPILATION_CACHE_DIR)" if own else "off"
    files = [f for f in folder.iterdir() if f.is_file()] if folder.is_dir() else []
    return f"{folder}: {len(files)} files, {sum(f.stat().st_size for f in files) / 2**20:.1f} MiB"


def report() -> str:
    """Versions, machine, devices, caches, extras and settings, a line each, to be put into a report."""
    rows: list[tuple[str, str]] = [
        ("xtensor", f"{__version__} in {pathlib.Path(__file__).parent.parent}"),
        ("Python", f"{sys.version.split()[0]} ({platform.python_implementation()})"),
        ("system", platform.platform()),
        ("processor", f"{processor()}, {os.cpu_count()} cores"),
    ]
    rows += [(package, version_of(package) or "not installed") for package in PACKAGES]
    rows += [("device", line) for line in device_lines()]
    rows.append(("compile cache", cache_line()))
    for extra, (packages, _) in EXTRAS.items():
        versions = [f"{package} {version_of(package) or 'not installed'}" for package in packages]
        rows.append((f"extra {extra}", ", ".join(versions)))
    set_here = sorted(name for name in os.environ if name.startswith(SETTINGS))
    rows += [("setting", f"{name}={os.environ[name]}") for name in set_here]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def welcome() -> str:
    """What `python -m xtensor` alone says: version, devices, caches, extras, and what to try."""
    there = [extra for extra in EXTRAS if installed(extra)]
    absent = [extra for extra in EXTRAS if extra not in there]
    lines = [
        f"xtensor {__version__}, on jaxlib {version_of('jaxlib')} and Python {sys.version.split()[0]}",
        "",
    ]
    lines += [f"device         {line}" for line in device_lines()]
    lines.append(f"compile cache  {cache_line()}")
    lines.append(f"extras         {', '.join(there) or 'none'}")
    if absent:
        lines.append(f"not installed  {', '.join(absent)}: {command('NAME')}")
    width = max(len(name) for name, _ in TRY)
    lines += ["", "Try:", *[f"  {name:<{width}}  {what}" for name, what in TRY]]
    return "\n".join(lines)
