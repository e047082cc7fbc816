"""`torch.distributed.tensor.debug`: looking at tensors that lie on a mesh."""

from __future__ import annotations

from typing import Any, NoReturn

from ...tensor import Tensor
from ..visualize import visualize

__all__ = ["CommDebugMode", "visualize_sharding"]


def visualize_sharding(dtensor: Tensor, header: str = "", use_rich: bool = False) -> None:
    """Print which device holds which part of a tensor."""
    print(f"{header}\n{visualize(dtensor)}" if header else visualize(dtensor))


class CommDebugMode:
    """NotImplementedError: no operator communicates by itself. `xtensor.distributed.ahead.collectives(step)` counts what a compiled step does."""

    def __init__(self, *_: Any) -> None:
        refuse()


def refuse() -> NoReturn:
    """Say where to look instead."""
    raise NotImplementedError(
        "CommDebugMode is not in xtensor: XLA adds the communication when it compiles, and "
        "torch.distributed.ahead.collectives(step) counts that of a compiled step by kind and bytes"
    )
