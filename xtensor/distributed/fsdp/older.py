"""The first interface of fully sharded training: its names, and what of its options means something here."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from ... import dtypes
from ..device_mesh import DeviceMesh
from .shard import MixedPrecisionPolicy, fully_shard

__all__ = ["BackwardPrefetch", "CPUOffload", "FullyShardedDataParallel", "MixedPrecision", "ShardingStrategy"]


class ShardingStrategy(enum.Enum):
    """How much is split: XLA gathers what a program needs in each case."""

    FULL_SHARD = enum.auto()
    SHARD_GRAD_OP = enum.auto()
    NO_SHARD = enum.auto()
    HYBRID_SHARD = enum.auto()
    _HYBRID_SHARD_ZERO2 = enum.auto()


class BackwardPrefetch(enum.Enum):
    """What is gathered ahead, which XLA decides."""

    BACKWARD_PRE = enum.auto()
    BACKWARD_POST = enum.auto()


@dataclass(frozen=True)
class MixedPrecision:
    """The dtypes of a forward pass; see `MixedPrecisionPolicy`."""

    param_dtype: dtypes.dtype | None = None
    reduce_dtype: dtypes.dtype | None = None
    buffer_dtype: dtypes.dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass(frozen=True)
class CPUOffload:
    """Whether parameters are kept in the host's memory, which is refused."""

    offload_params: bool = False


def FullyShardedDataParallel(
    module: Any,
    process_group: Any = None,
    sharding_strategy: ShardingStrategy | None = None,
    cpu_offload: CPUOffload | None = None,
    auto_wrap_policy: Any = None,
    backward_prefetch: BackwardPrefetch | None = None,
    mixed_precision: MixedPrecision | None = None,
    ignored_modules: Any = None,
    device_id: Any = None,
    device_mesh: DeviceMesh | None = None,
    **_: Any,
) -> Any:
    """`fully_shard(module)`, under the older name.

    Differs from PyTorch: it gives the module itself, not a wrapper, and takes `auto_wrap_policy` without a use for it.
    """
    if cpu_offload is not None and cpu_offload.offload_params:
        raise NotImplementedError("CPUOffload is not in xtensor: parameters stay on the devices")
    if sharding_strategy is ShardingStrategy.NO_SHARD:
        raise NotImplementedError("ShardingStrategy.NO_SHARD: use DistributedDataParallel")
    given = mixed_precision or MixedPrecision()
    policy = MixedPrecisionPolicy(given.param_dtype, given.reduce_dtype)
    ignored = {p for m in ignored_modules or () for p in m.parameters()}
    return fully_shard(module, mesh=device_mesh, mp_policy=policy, ignored_params=ignored)
