"""`torch.package`: its archives hold Python code and pickles that run when they are read, so they are neither read nor written here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["PackageExporter", "PackageImporter", "is_from_package"]

INSTEAD = (
    "save a program with torch.export.save (xtensor.export), which plain JAX reads as well, or a state_dict with torch.save, and "
    "load it into a module of the same class"
)


def refuse(what: str) -> NoReturn:
    """NotImplementedError that says what to do."""
    raise NotImplementedError(
        f"{what}: archives of torch.package hold Python code and pickles, which run when they are read; {INSTEAD}."
    )


class PackageExporter:
    """Refused: NotImplementedError says what to do instead.

    Differs from PyTorch: archives of code are not written.
    """

    def __init__(self, f: Any, importer: Any = None, debug: bool = False) -> None:
        refuse("torch.package.PackageExporter")


class PackageImporter:
    """Refused: NotImplementedError says what to do instead.

    Differs from PyTorch: archives of code are not read.
    """

    def __init__(self, file_or_buffer: Any, module_allowed: Any = None) -> None:
        refuse("torch.package.PackageImporter")


def is_from_package(obj: Any) -> bool:
    """Whether an object's code came out of such an archive: never.

    >>> xtensor.package.is_from_package(3)
    False
    """
    return False
