"""A stage of a pipeline: a process's part of a model, whose inputs come from the stage before and whose gradients from the one behind."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ... import devices
from ...nn.modules.module import Module
from ...tensor import Tensor, host_array, wrap
from .. import messages
from ..group import ProcessGroup, chosen

__all__ = ["PipelineStage"]


def tag_of(stage: int, kind: str) -> int:
    """The tag of what comes to a stage: activations in a forward pass, gradients in a backward pass."""
    return -2 - 2 * stage - (kind == "backward")


class PipelineStage:
    """The module of stage `stage_index` of `num_stages`, in the process of that rank in the group; more stages than processes go round them."""

    def __init__(
        self,
        submodule: Module,
        stage_index: int,
        num_stages: int,
        device: Any = None,
        input_args: Any = None,
        output_args: Any = None,
        group: ProcessGroup | None = None,
        dw_builder: Any = None,
    ) -> None:
        self.group = chosen(group)
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        if num_stages % self.group.size() or stage_index % self.group.size() != self.group.rank():
            raise ValueError(
                f"a stage is a process, and more stages go round them: stage {stage_index} of {num_stages} in rank "
                f"{self.group.rank()} of {self.group.size()}"
            )
        self.submod = submodule
        self.stage_index, self.num_stages = stage_index, num_stages
        self.is_first, self.is_last = stage_index == 0, stage_index == num_stages - 1
        self.device = devices.resolve(device) if device is not None else devices.device("cpu")
        self.inputs: dict[int, tuple[Tensor, ...]] = {}
        self.outputs: dict[int, tuple[Tensor, ...]] = {}

    def _rank_of(self, stage: int) -> int:
        return self.group.ranks[stage % self.group.size()]

    def send(self, tensors: tuple[Tensor, ...], to: int, kind: str) -> None:
        """Send tensors to another stage."""
        content = pickle.dumps([np.asarray(host_array(t.detach())) for t in tensors])
        box = messages.post()
        box.senders.submit(box.give, self._rank_of(to), self.group.group_name, tag_of(to, kind), content)

    def take(self, source: int, kind: str) -> tuple[Tensor, ...]:
        """The tensors that another stage has sent to this."""
        tag = tag_of(self.stage_index, kind)
        _, content = messages.post().take(self._rank_of(source), self.group.group_name, tag)
        return tuple([wrap(devices.put(values, self.device)) for values in pickle.loads(content)])

    def forward(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward pass of a part of the batch; what it gives goes to the next stage."""
        if not self.is_first:
            given = self.take(self.stage_index - 1, "forward")
            args = tuple([t.requires_grad_() if t.is_floating_point() else t for t in given])
        made = self.submod(*args, **kwargs)
        self.inputs[number] = args
        self.outputs[number] = made if isinstance(made, tuple) else (made,)
        if not self.is_last:
            self.send(self.outputs[number], self.stage_index + 1, "forward")
        return made

    def backward(self, number: int, loss: Tensor | None) -> None:
        """The backward pass of a part of the batch; the gradients of what came go to the stage before."""
        outputs, inputs = self.outputs.pop(number), self.inputs.pop(number)
        if self.is_last:
            if loss is not None:
                loss.backward()
        else:
            asking = [t for t in outputs if t.requires_grad]
            given = self.take(self.stage_index + 1, "backward")
            first, *more = asking
            if more:
                total = sum([(t * g).sum() for t, g in zip(asking, given, strict=True)], (first * 0).sum())
                total.backward()
            else:
                first.backward(given[0])
        if not self.is_first:
            grads = tuple([t.grad for t in inputs if t.requires_grad and t.grad is not None])
            self.send(grads, self.stage_index - 1, "backward")
