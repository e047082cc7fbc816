"""Schedules: in which order a stage makes the forward and backward passes of the parts of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from ...engine.modes import no_grad
from ...ops.shape.joining import cat, stack
from ...tensor import Tensor
from .stage import PipelineStage

__all__ = ["Schedule1F1B", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleLoopedBFS"]


Pass = tuple[str, int, int]
"""A pass: `forward` or `backward`, which of the process's stages, and the number of the part of the batch."""


class _Schedule:
    """What all schedules have in common."""

    def __init__(
        self,
        stage: PipelineStage | Sequence[PipelineStage],
        n_microbatches: int,
        loss_fn: Callable[..., Tensor] | None = None,
        scale_grads: bool = True,
        **_: Any,
    ) -> None:
        self.stages = [stage] if isinstance(stage, PipelineStage) else list(stage)
        if len({s.num_stages for s in self.stages}) > 1 or not self.stages:
            raise ValueError("a schedule takes the stages of one pipeline that are in this process")
        self.count = n_microbatches
        self.loss_fn = loss_fn
        self.scale_grads = scale_grads

    def order(self) -> Iterator[Pass]:
        """The passes of this process."""
        raise NotImplementedError

    def step(self, *args: Any, target: Any = None, losses: list[Tensor] | None = None, **kwargs: Any) -> Any:
        """One step over a batch, whose arguments the first stage is given and whose target the last; the last gives the whole output.

        Gradients are those of the mean of the parts' losses; with `losses`, the list is filled with these.
        """
        return self._run(self.order(), args, kwargs, target, losses)

    def eval(self, *args: Any, target: Any = None, losses: list[Tensor] | None = None, **kwargs: Any) -> Any:
        """The forward passes of a step alone, without gradients."""
        with no_grad():
            forward = (p for p in self.order() if p[0] == "forward")
            return self._run(forward, args, kwargs, target, losses)

    def _run(self, order: Any, args: Any, kwargs: Any, target: Any, losses: list[Tensor] | None) -> Any:
        parts = split((args, kwargs), self.count)
        targets = split(target, self.count)
        made: list[Any] = [None] * self.count
        values: list[Any] = [None] * self.count
        for kind, which, number in order:
            stage = self.stages[which]
            if kind == "forward":
                given, named = parts[number]
                found = stage.forward(number, given, named)
                if stage.is_last:
                    made[number] = found
                    if self.loss_fn is not None:
                        values[number] = self.loss_fn(found, targets[number])
            elif self.loss_fn is not None or not stage.is_last:
                loss = values[number] if stage.is_last else None
                share = loss if loss is None or not self.scale_grads else loss / self.count
                stage.backward(number, share)
        for stage in self.stages:
            stage.inputs.clear()
            stage.outputs.clear()
        if not any(stage.is_last for stage in self.stages):
            return None
        if losses is not None and self.loss_fn is not None:
            losses[:] = [value.detach() for value in values]
        return joined(made)


class _Single(_Schedule):
    """The schedules of one stage in a process."""

    def __init__(self, stage: PipelineStage, *args: Any, **options: Any) -> None:
        super().__init__(stage, *args, **options)
        self.stage = self.stages[0]
        if len(self.stages) > 1:
            raise ValueError(
                f"{type(self).__name__} has one stage in a process, and was given {len(self.stages)}"
            )


class ScheduleGPipe(_Single):
    """All forward passes, then all backward passes (Huang et al., 2019)."""

    def order(self) -> Iterator[Pass]:
        """The passes of this process: `forward` or `backward`, which of its stages, and the number of the part."""
        for kind in ("forward", "backward"):
            for number in range(self.count):
                yield kind, 0, number


class Schedule1F1B(_Single):
    """Backward passes as soon as they can be, so that a stage holds no more parts than there are stages behind it (Narayanan et al., 2019)."""

    def order(self) -> Iterator[Pass]:
        """The passes of this process: `forward` or `backward`, which of its stages, and the number of the part."""
        ahead = min(self.stage.num_stages - self.stage.stage_index - 1, self.count)
        for number in range(ahead):
            yield "forward", 0, number
        for number in range(ahead, self.count):
            yield "forward", 0, number
            yield "backward", 0, number - ahead
        for number in range(self.count - ahead, self.count):
            yield "backward", 0, number


class ScheduleLoopedBFS(_Schedule):
    """Several stages in a process: each stage takes all parts before the next does (Lamy-Poirier, 2022)."""

    def order(self) -> Iterator[Pass]:
        """The passes of this process: `forward` or `backward`, which of its stages, and the number of the part."""
        for which in range(len(self.stages)):
            for number in range(self.count):
                yield "forward", which, number
        for which in reversed(range(len(self.stages))):
            for number in range(self.count):
                yield "backward", which, number


class ScheduleInterleaved1F1B(_Schedule):
    """Several stages in a process, which take turns after a round of parts, and backward passes as soon as they can be (Narayanan et al., 2021).

    Raises: ValueError where the parts make no whole rounds of about as many as there are processes.
    """

    def __init__(
        self, stages: Sequence[PipelineStage], n_microbatches: int, *args: Any, **options: Any
    ) -> None:
        super().__init__(stages, n_microbatches, *args, **options)
        self.rounds = max(1, n_microbatches // self.stages[0].group.size())
        if n_microbatches % self.rounds:
            raise ValueError(
                "Interleaved 1F1B requires the number of microbatches to be a multiple of the number of rounds "
                f"({self.rounds}), but got {n_microbatches}."
            )

    def order(self) -> Iterator[Pass]:
        """The passes of this process: `forward` or `backward`, which of its stages, and the number of the part."""
        group, stages = self.stages[0].group, len(self.stages)
        size = self.count // self.rounds
        total = self.count * stages
        ahead = min((stages - 1) * size + 2 * (group.size() - 1 - group.rank()), total)

        def nth(kind: str, step: int) -> Pass:
            turn, within = divmod(step, size * stages)
            which, number = divmod(within, size)
            return kind, which if kind == "forward" else stages - 1 - which, turn * size + number

        for step in range(total + ahead):
            if step < total:
                yield nth("forward", step)
            if step >= ahead:
                yield nth("backward", step - ahead)


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
