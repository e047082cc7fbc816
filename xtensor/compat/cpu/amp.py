"""`torch.cpu.amp`: `torch.amp` with the device type filled in."""

from __future__ import annotations

from ... import amp, checks, dtypes

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`torch.amp.autocast("cpu", ...)`."""

    def __init__(
        self, enabled: bool = True, dtype: dtypes.dtype = dtypes.bfloat16, cache_enabled: bool = True
    ) -> None:
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cpu", ...)`."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        checks.warn(
            f"`{checks.spelled('cpu.amp.GradScaler')}(args...)` is deprecated. Please use "
            f"`{checks.spelled('amp.GradScaler')}('cpu', args...)` instead.",
            FutureWarning,
        )
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
