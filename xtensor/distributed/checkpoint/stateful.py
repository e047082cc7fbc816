"""What programs name besides: objects with a state of their own, and the folder as an object."""

from __future__ import annotations

import os
from typing import Any, Protocol, runtime_checkable

__all__ = ["FileSystemReader", "FileSystemWriter", "Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """What has a `state_dict` and takes one: in a state that is saved it stands for it."""

    def state_dict(self) -> dict[str, Any]:
        """The state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take a state over."""
        ...


class FileSystemWriter:
    """The folder that a checkpoint is written to."""

    def __init__(self, path: str | os.PathLike[str], **_: Any) -> None:
        self.path = path


class FileSystemReader:
    """The folder that a checkpoint is read from."""

    def __init__(self, path: str | os.PathLike[str], **_: Any) -> None:
        self.path = path
