"""Communication hooks: how a bucket of gradients is reduced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .... import dtypes
from ....tensor import Tensor
from ... import collectives
from ...data_parallel.buckets import GradBucket
from ...group import chosen

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Any]


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Tensor:
    """The mean, as it is without a hook."""
    return compressed(process_group, bucket, bucket.buffer().dtype)


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Tensor:
    """The mean, sent as float16."""
    return compressed(process_group, bucket, dtypes.float16)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Tensor:
    """The mean, sent as bfloat16."""
    return compressed(process_group, bucket, dtypes.bfloat16)


def compressed(process_group: Any, bucket: GradBucket, dtype: dtypes.dtype) -> Tensor:
    """The mean of a bucket, reduced in a dtype."""
    own = bucket.buffer()
    sent = own.to(dtype) / chosen(process_group).size()
    collectives.all_reduce(sent, group=process_group)
    return sent.to(own.dtype)


def wrapper(hook: Hook, dtype: dtypes.dtype) -> Hook:
    """A hook that is given the bucket in a dtype."""

    def run(state: Any, bucket: GradBucket) -> Any:
        own = bucket.buffer().dtype
        bucket.set_buffer(bucket.buffer().to(dtype))
        made = hook(state, bucket)
        return (made if isinstance(made, Tensor) else made.wait()).to(own)

    return run


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that is given the bucket in float16."""
    return wrapper(hook, dtypes.float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """A hook that is given the bucket in bfloat16."""
    return wrapper(hook, dtypes.bfloat16)
