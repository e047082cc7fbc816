"""Gradients in buckets, in the order in which backward makes them, each reduced over the processes as one flat tensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...engine.modes import no_grad
from ...nn.parameter import Parameter
from ...ops.create.creation import zeros
from ...ops.shape.joining import cat
from ...tensor import Tensor
from .. import collectives

__all__ = ["Bucket", "GradBucket", "buckets_of", "flat", "spread"]

FIRST = 1 << 20
"""Bytes of the first bucket, so that reducing begins early."""


class GradBucket:
    """What a communication hook is given: the gradients of a bucket as one flat tensor."""

    def __init__(self, index: int, buffer: Tensor, parameters: Sequence[Tensor], last: bool) -> None:
        self._index, self._buffer, self._parameters, self._last = index, buffer, list(parameters), last

    def index(self) -> int:
        """The bucket's number."""
        return self._index

    def buffer(self) -> Tensor:
        """The gradients, one after the other."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Another tensor of as many elements in their place."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradient of each parameter."""
        return spread(self._buffer, self._parameters)

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether it is the last of a backward pass."""
        return self._last


class Bucket:
    """Parameters whose gradients are reduced together. waiting: how many have none yet in this backward pass."""

    def __init__(self, parameters: list[Parameter]) -> None:
        self.parameters = parameters
        self.waiting = 0


def buckets_of(parameters: Sequence[Parameter], megabytes: float) -> list[Bucket]:
    """Buckets of so many megabytes, the last parameters first, each of one dtype."""
    made: list[Bucket] = []
    limit: float = FIRST
    size = 0
    for parameter in reversed(parameters):
        current = made[-1].parameters if made else []
        if (
            not current
            or current[0].dtype is not parameter.dtype
            or size >= min(limit, megabytes * (1 << 20))
        ):
            if made:
                limit = megabytes * (1 << 20)
            made.append(Bucket([]))
            size = 0
        made[-1].parameters.append(parameter)
        size += parameter.nbytes
    return made


def flat(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors one after the other."""
    return cat([t.reshape(-1) for t in tensors])


def spread(joined: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """A flat tensor as tensors of these sizes."""
    parts = joined.split([t.numel() for t in like])
    return [part.reshape(t.shape) for part, t in zip(parts, like, strict=True)]


def gradients(parameters: Sequence[Parameter]) -> list[Tensor]:
    """Their gradients, zeros where there are none."""
    return [zeros(p.shape, dtype=p.dtype, device=p.device) if p.grad is None else p.grad for p in parameters]


def reduce(
    bucket: Bucket, index: int, last: bool, group: Any, share: float, hook: Callable[[GradBucket], Any] | None
) -> Tensor:
    """The mean of a bucket's gradients over the processes; `share` is one over their number."""
    with no_grad():
        joined = flat(gradients(bucket.parameters))
        if hook is not None:
            return hook(GradBucket(index, joined, bucket.parameters, last))
        joined = joined * share
        collectives.all_reduce(joined, group=group)
        return joined


def share_out(parameters: Sequence[Tensor], source: int, group: Any, limit: int = 25 << 20) -> None:
    """Give all processes the values that tensors have at rank `source`, many in a message."""
    with no_grad():
        queue: list[Tensor] = []

        def send() -> None:
            if queue:
                joined = flat(queue)
                collectives.broadcast(joined, source, group)
                for tensor, values in zip(queue, spread(joined, queue), strict=True):
                    tensor.copy_(values)
                queue.clear()

        for tensor in parameters:
            if queue and (queue[0].dtype is not tensor.dtype or sum(t.nbytes for t in queue) > limit):
                send()
            queue.append(tensor.detach())
        send()
