"""`autocast`: matrix products and convolutions in a short dtype, what needs range in float32; context and decorator."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from .. import checks, devices, dtypes
from ..engine import modes
from ..operators import autocast as casting
from ..tensor import Tensor
from ..xla.signals import from_start

__all__ = [
    "autocast",
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "clear_autocast_cache",
    "custom_bwd",
    "custom_fwd",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_available",
    "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled",
    "is_autocast_enabled",
    "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_dtype",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
]

SHORT = (dtypes.bfloat16, dtypes.float16)


def kind_of(device_type: str) -> str:
    """The kind of device that a name means here, where requests may be redirected."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if ":" in device_type:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
    return devices.device(device_type).type


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast knows the kind of device."""
    try:
        return kind_of(device_type) != "meta"
    except RuntimeError:
        return False


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on in this thread for a kind of device."""
    return kind_of(device_type) in modes.state.autocast_enabled


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switch autocast on or off in this thread for a kind of device (`cuda`, where only a bool is given)."""
    if enabled is None:
        device_type, enabled = "cuda", bool(device_type)
    kind = kind_of(device_type)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    state = modes.state
    state.autocast_enabled = state.autocast_enabled | {kind} if enabled else state.autocast_enabled - {kind}
    modes.set_flag(modes.AUTOCAST, bool(state.autocast_enabled))


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The short dtype of autocast on a kind of device."""
    return casting.short_dtype(kind_of(device_type))


def set_autocast_dtype(device_type: str, dtype: dtypes.dtype) -> None:
    """Choose the short dtype of autocast on a kind of device, in this thread."""
    if not isinstance(dtype, dtypes.dtype):
        raise checks.argument_error("set_autocast_dtype", "dtype", 2, "xtensor.dtype", dtype)
    modes.state.autocast_dtypes = MappingProxyType(
        {**modes.state.autocast_dtypes, kind_of(device_type): dtype}
    )


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters are kept until the outermost autocast block ends."""
    return modes.state.autocast_caching


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Keep casts of parameters from now on, or stop keeping them."""
    modes.state.autocast_caching = bool(enabled)


def clear_autocast_cache() -> None:
    """Forget the casts of parameters."""
    casting.clear_cache()


def autocast_increment_nesting() -> int:
    """One block deeper; the depth."""
    modes.state.autocast_nesting += 1
    return modes.state.autocast_nesting


def autocast_decrement_nesting() -> int:
    """One block less deep; the depth."""
    modes.state.autocast_nesting -= 1
    return modes.state.autocast_nesting


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for CPU tensors."""
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast on or off for CPU tensors."""
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> dtypes.dtype:
    """The short dtype of autocast on the CPU."""
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: dtypes.dtype) -> None:
    """Choose the short dtype of autocast on the CPU."""
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> dtypes.dtype:
    """The short dtype of autocast on a GPU."""
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: dtypes.dtype) -> None:
    """Choose the short dtype of autocast on a GPU."""
    set_autocast_dtype("cuda", dtype)


class autocast:
    """Inside the block, or the decorated function, operators choose their dtypes by PyTorch's lists.

    `device_type` says for tensors of which devices; `dtype` is the short one (bfloat16 on a CPU, float16 on a GPU).
    Differs from PyTorch: a parameter written inside the block is cast anew, instead of its old values being used.
    """

    def __init__(
        self,
        device_type: str,
        dtype: dtypes.dtype | None = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        kind = kind_of(device_type)
        self.device = device_type
        self.fast_dtype: Any = casting.short_dtype(kind) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda" and kind == "cuda" and not devices.is_available("cuda"):
            checks.warn(
                "CUDA is not available or torch_xla is imported. Disabling autocast.",
                UserWarning,
            )
            enabled = False
        if enabled and self.fast_dtype not in SHORT:
            named = "CPU" if device_type == "cpu" else device_type.upper()
            checks.warn(
                f"In {named} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{named} Autocast only supports dtypes of {', '.join(map(repr, SHORT))} currently.",
                UserWarning,
            )
            enabled = False
        self._enabled = enabled
        self._before: list[tuple[frozenset[str], bool, Mapping[str, Any], bool]] = []

    def __enter__(self) -> autocast:
        state = modes.state
        kind = kind_of(self.device)
        before = state.autocast_enabled
        kinds = frozenset((kind,))
        self._before.append((kinds, kind in before, state.autocast_dtypes, state.autocast_caching))
        own = MappingProxyType({**state.autocast_dtypes, kind: self.fast_dtype})
        # From here on nothing is called: a signal finds the block entered, or not.
        state.autocast_dtypes = own
        state.autocast_caching = self._cache_enabled
        state.autocast_nesting += 1
        state.autocast_enabled = before | kinds if self._enabled else before - kinds
        state.mode = state.mode | modes.AUTOCAST if state.autocast_enabled else state.mode & ~modes.AUTOCAST
        return self

    @from_start
    def __exit__(self, *exc: object) -> None:
        try:
            self._before  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            state = modes.state
            kinds, enabled, own, caching = self._before[-1]
            state.autocast_enabled = (
                state.autocast_enabled | kinds if enabled else state.autocast_enabled - kinds
            )
            state.mode = (
                state.mode | modes.AUTOCAST if state.autocast_enabled else state.mode & ~modes.AUTOCAST
            )
            state.autocast_dtypes = own
            state.autocast_caching = caching
            state.autocast_nesting -= 1
            if state.autocast_nesting == 0:
                state.autocast_cache = None
            self._before.pop()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                result = func(*args, **kwargs)
            return result

        return wrapped


def _cast(value: Any, kind: str, dtype: dtypes.dtype) -> Any:
    """The short and float32 tensors of a kind of device, in containers too, as another dtype."""
    if isinstance(value, Tensor):
        eligible = value.dtype.is_floating_point and value.dtype is not dtypes.float64
        return value.to(dtype) if eligible and value.device.type == kind else value
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, kind, dtype): _cast(v, kind, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        made = [_cast(v, kind, dtype) for v in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    return value


def custom_fwd(
    fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtypes.dtype | None = None
) -> Any:
    """Decorate the `forward` of a custom Function for autocast; with `cast_inputs` it runs in that dtype, without it."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)
    function = fwd

    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        args[0]._dtype = get_autocast_dtype(device_type)
        enabled = is_autocast_enabled(device_type)
        if cast_inputs is None or not enabled:
            args[0]._fwd_used_autocast = enabled if cast_inputs is None else False
            return function(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        kind = kind_of(device_type)
        with autocast(device_type, enabled=False):
            return function(*_cast(args, kind, cast_inputs), **_cast(kwargs, kind, cast_inputs))

    return decorated


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """Decorate the `backward` of a custom Function: it runs with autocast as its `custom_fwd` did."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)
    function = bwd

    @functools.wraps(function)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, dtype=args[0]._dtype, enabled=args[0]._fwd_used_autocast):
            return function(*args, **kwargs)

    return decorated
