"""A progress bar in one line, for where tqdm is not installed."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["tqdm"]


class tqdm:
    """The part of tqdm's interface that downloads use: how far along, on the error stream."""

    def __init__(
        self, total: int | None = None, disable: bool = False, unit: Any = None, **options: Any
    ) -> None:
        self.total, self.disable, self.n = total, disable, 0

    def update(self, n: int) -> None:
        """Count `n` more."""
        self.n += n
        if not self.disable:
            sys.stderr.write(f"\r{100 * self.n / self.total:.1f}%" if self.total else f"\r{self.n:.1f} bytes")
            sys.stderr.flush()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is shown of it."""

    def close(self) -> None:
        """End the line."""
        self.disable = True

    def __enter__(self) -> tqdm:
        return self

    def __exit__(self, *error: object) -> None:
        if not self.disable:
            sys.stderr.write("\n")
