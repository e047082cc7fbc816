"""`torch.cuda.amp`: `torch.amp` with the device type filled in, as older programs call it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import amp, checks, dtypes

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

# PyTorch's is a package, whose modules programs import from.
__path__: list[str] = []


class autocast(amp.autocast):
    """`torch.amp.autocast("cuda", ...)`."""

    def __init__(
        self, enabled: bool = True, dtype: dtypes.dtype = dtypes.float16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        checks.warn(
            f"`{checks.spelled('cuda.amp.GradScaler')}(args...)` is deprecated. Please use "
            f"`{checks.spelled('amp.GradScaler')}('cuda', args...)` instead.",
            FutureWarning,
        )
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Callable[..., Any] | None = None, *, cast_inputs: dtypes.dtype | None = None) -> Any:
    """`torch.amp.custom_fwd` for CUDA."""
    if fwd is None:
        return functools.partial(custom_fwd, cast_inputs=cast_inputs)
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable[..., Any]) -> Any:
    """`torch.amp.custom_bwd` for CUDA."""
    return amp.custom_bwd(bwd, device_type="cuda")
