"""Which dtype autocast gives an operator's arguments, and the casts, of which those of parameters are kept.

Autocast holds the AUTOCAST bit, which sends calls to `dispatch`; while it is off, nothing here is ever reached.
An operator's declaration says its policy, which is PyTorch's: `autocast="float32"`, or where the CPU and the accelerators
differ, `autocast=dict(cpu="float32", accelerator="widest")`. A policy may be a function of the call's arguments; a composite asks `cast_for`. The policies:

    short      the short dtype of the device
    float32    float32, unless the call names a dtype
    widest     float32 where any argument has it, else the short dtype
    banned     the operator is refused
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import dtypes
from ..engine import modes
from ..tensor import Tensor, counter_of
from . import dispatch
from .operator import Operator

__all__ = ["DEFAULTS", "cast_for", "clear_cache", "short_dtype"]

# The dtypes of devices for which none was set; a TPU's short float is bfloat16.
DEFAULTS = {"cpu": dtypes.bfloat16, "tpu": dtypes.bfloat16}

SHORT, FLOAT32, WIDEST, BANNED = "short", "float32", "widest", "banned"


def short_dtype(kind: str) -> dtypes.dtype:
    """The short dtype of autocast on a kind of device."""
    return modes.state.autocast_dtypes.get(kind) or DEFAULTS.get(kind, dtypes.float16)


def clear_cache() -> None:
    """Forget the casts of parameters."""
    modes.state.autocast_cache = None


def tensors_in(values: tuple[Any, ...]) -> Iterator[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif type(value) in (list, tuple):
            yield from (v for v in value if isinstance(v, Tensor))


def cast(op: Operator, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call with the dtypes that autocast wants."""
    policies = op.autocast
    if not policies:
        return values
    kind = kind_of(values)
    policy = policy_of(policies, kind, values)
    if policy == BANNED:
        raise RuntimeError(
            f"torch.nn.functional.{op.name} and torch.nn.BCELoss are unsafe to autocast.\n"
            "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
            "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
            "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\nsafe to autocast."
        )
    if policy == FLOAT32:
        named = op.schema.names()
        if "dtype" in named and values[named.index("dtype")] is not None:
            return values
    return values if policy is None else cast_all(policy, kind, values)


def cast_for(*values: Any, **policies: str) -> tuple[Any, ...]:
    """The arguments of a composite operator as autocast wants them, given its policies for `cpu` and `accelerator`."""
    if not modes.state.mode & modes.AUTOCAST:
        return values
    kind = kind_of(values)
    policy = policy_of(policies, kind, values)
    return values if policy is None else cast_all(policy, kind, values)


def kind_of(values: tuple[Any, ...]) -> str:
    """The kind of device that a call is made on."""
    return next((kind for t in tensors_in(values) if (kind := t.device.type) != "cpu"), "cpu")


def policy_of(policies: dict[str, Any], kind: str, values: tuple[Any, ...]) -> str | None:
    """What an operator's declaration says for a kind of device."""
    if kind not in modes.state.autocast_enabled or kind == "meta":
        return None
    policy: Any = policies.get("cpu" if kind == "cpu" else "accelerator")
    return policy if policy is None or isinstance(policy, str) else policy(*values)


def cast_all(policy: str, kind: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with every float tensor in the dtype of a policy."""
    short = short_dtype(kind)
    wanted = dtypes.float32 if policy == FLOAT32 else short if policy == SHORT else widest(short, values)
    return tuple([cast_argument(value, wanted, short, kind) for value in values])


def widest(short: dtypes.dtype, values: tuple[Any, ...]) -> dtypes.dtype:
    """float32 where any argument has it, else the short dtype."""
    found = [t.dtype for t in tensors_in(values) if t.dtype.is_floating_point]
    return dtypes.float32 if dtypes.float32 in found else short


def cast_argument(value: Any, wanted: dtypes.dtype, short: dtypes.dtype, kind: str) -> Any:
    if isinstance(value, Tensor):
        return cast_tensor(value, wanted, short, kind)
    if type(value) in (list, tuple) and any(isinstance(v, Tensor) for v in value):
        return [cast_argument(v, wanted, short, kind) for v in value]
    return value


def cast_tensor(tensor: Tensor, wanted: dtypes.dtype, short: dtypes.dtype, kind: str) -> Tensor:
    dtype = tensor.dtype
    if (
        dtype is wanted
        or not dtype.is_floating_point
        or dtype is dtypes.float64
        or tensor.device.type != kind
    ):
        return tensor
    state = modes.state
    keeps = wanted is short and dtype is dtypes.float32 and state.autocast_caching
    if not keeps or not tensor.is_leaf or not tensor.requires_grad or tensor._base is not None:
        return without_autocast(tensor, wanted)
    if state.autocast_cache is None:
        state.autocast_cache = {}
    key = (id(tensor), wanted, state.mode & modes.NO_GRAD)
    held = state.autocast_cache.get(key)
    version = counter_of(tensor).version
    # Differs from PyTorch, which would go on using the old values of a parameter that was written since.
    if held is None or held[0] is not tensor or held[1] != version:
        held = state.autocast_cache[key] = (tensor, version, without_autocast(tensor, wanted))
    return held[2]


def without_autocast(tensor: Tensor, wanted: dtypes.dtype) -> Tensor:
    with modes.flag(modes.AUTOCAST, False):
        return tensor.to(wanted)


dispatch.autocast = cast
