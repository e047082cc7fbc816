"""Schedules: in which order a stage makes the forward and backward passes of the parts of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax

from ...ops.shape.joining import cat, stack
from ...tensor import Tensor
from .stage import PipelineStage

__all__ = ["Schedule1F1B", "ScheduleGPipe"]


class _Schedule:
    """What all schedules have in common."""

    def __init__(
        self,
        stage: PipelineStage,
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        scale_grads: bool = True,
        **_: Any,
    ) -> None:
        self.stage = stage
        self.count = n_microbatches
        self.loss_fn = loss_fn
        self.scale_grads = scale_grads

    def order(self) -> Iterator[tuple[str, int]]:
        """The passes of this stage: `forward` or `backward`, and the number of the part."""
        raise NotImplementedError

    def step(self, *args: Any, target: Any = None, losses: list[Tensor] | None = None, **kwargs: Any) -> Any:
        """One step over a batch, whose arguments the first stage is given and whose target the last; the last gives the whole output.

        Gradients are those of the mean of the parts' losses; with `losses`, the list is filled with these.
        """
        stage = self.stage
        parts = split((args, kwargs), self.count)
        targets = split(target, self.count)
        made: list[Any] = [None] * self.count
        values: list[Any] = [None] * self.count
        for kind, number in self.order():
            if kind == "forward":
                given, named = parts[number]
                made[number] = stage.forward(number, given, named)
                if stage.is_last and self.loss_fn is not None:
                    values[number] = self.loss_fn(made[number], targets[number])
            elif self.loss_fn is not None or not stage.is_last:
                loss = values[number]
                share = loss if loss is None or not self.scale_grads else loss / self.count
                stage.backward(number, share)
        if losses is not None and stage.is_last and self.loss_fn is not None:
            losses[:] = [value.detach() for value in values]
        stage.inputs.clear()
        stage.outputs.clear()
        return joined(made) if stage.is_last else None


class ScheduleGPipe(_Schedule):
    """All forward passes, then all backward passes (Huang et al., 2019)."""

    def order(self) -> Iterator[tuple[str, int]]:
        """See `Schedule1F1B.order`."""
        for kind in ("forward", "backward"):
            for number in range(self.count):
                yield kind, number


class Schedule1F1B(_Schedule):
    """Backward passes as soon as they can be, so that a stage holds no more parts than there are stages behind it (Narayanan et al., 2019)."""

    def order(self) -> Iterator[tuple[str, int]]:
        """The passes of this stage: `forward` or `backward`, and the number of the part."""
        ahead = min(self.stage.num_stages - self.stage.stage_index - 1, self.count)
        for number in range(ahead):
            yield "forward", number
        for number in range(ahead, self.count):
            yield "forward", number
            yield "backward", number - ahead
        for number in range(self.count - ahead, self.count):
            yield "backward", number


def split(value: Any, count: int) -> list[Any]:
    """Tensors in a structure split along their first dimension into so many parts."""

    def part(leaf: Any, number: int) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        if leaf.shape[0] % count:
            raise ValueError(f"a batch of {leaf.shape[0]} is not divided by {count} parts")
        return leaf.chunk(count)[number]

    return [
        jax.tree.map(lambda leaf, n=number: part(leaf, n), value, is_leaf=lambda v: isinstance(v, Tensor))
        for number in range(count)
    ]


def joined(parts: list[Any]) -> Any:
    """What the parts of a batch gave, as one."""
    first = parts[0]
    if isinstance(first, tuple):
        return tuple([joined(list(each)) for each in zip(*parts, strict=True)])
    if not isinstance(first, Tensor):
        return parts
    return cat(parts) if first.dim() else stack(parts)
