"""`torch.utils._pytree`: the names of `xtensor.trees`, under which public programs import a private module of PyTorch's."""

from __future__ import annotations

from ..trees import *  # noqa: F403
from ..trees import __all__  # noqa: F401  # pyright: ignore[reportUnsupportedDunderAll]
