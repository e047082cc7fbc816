"""What `importlib.metadata` says of `torch` while it means xtensor, whether PyTorch is installed or not."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from ..compat import version

__all__ = ["Torch"]

FILES = {
    "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version.__version__}\nSummary: xtensor, under this name\n",
    "top_level.txt": "torch\n",
}


class Torch(importlib.metadata.Distribution):
    """The distribution `torch`: its name and version, and that it gives the module `torch`."""

    def read_text(self, filename: str) -> str | None:
        """One of the texts of its folder."""
        return FILES.get(filename)

    def locate_file(self, path: Any) -> Any:
        """The path itself: no file is its own."""
        return path
