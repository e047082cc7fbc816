"""`torch.jit.annotations`: the types that TorchScript's signatures are written in."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035

from ...operators.generator import Generator
from ...tensor import Tensor

__all__ = [
    "Any",
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "Dict",
    "Generator",
    "List",
    "Optional",
    "Tensor",
    "Tuple",
    "Union",
]


class BroadcastingList:
    """`BroadcastingList2[int]`: a list of that length, or one number for all of it."""

    def __getitem__(self, kind: Any) -> None:
        return None


BroadcastingList1, BroadcastingList2, BroadcastingList3 = (BroadcastingList() for _ in range(3))
