"""Device names, placement and transfer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .inspection import Memory, Properties, count, is_available, memory, properties, synchronize
from .inspection import present as list
from .placement import (
    ELSEWHERE,
    DeviceLike,
    current,
    default,
    device,
    jax_device,
    meeting,
    move,
    of_array,
    of_mesh,
    put,
    redirect,
    redirected,
    replicating,
    resolve,
    same,
    set_default_device,
    sharding_of,
    spread,
    use,
)

__all__ = [
    "ELSEWHERE",
    "DeviceLike",
    "Memory",
    "Properties",
    "compare",
    "count",
    "current",
    "default",
    "device",
    "is_available",
    "jax_device",
    "meeting",
    "list",
    "memory",
    "move",
    "of_array",
    "of_mesh",
    "properties",
    "put",
    "redirect",
    "redirected",
    "replicating",
    "resolve",
    "same",
    "set_default_device",
    "sharding_of",
    "spread",
    "synchronize",
    "use",
]

# Set by `xtensor.comparing`, which stands above the operators: how far a function's results on several devices are apart.
compare: Callable[..., Any]
