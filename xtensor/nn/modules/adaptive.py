"""A softmax over many classes whose rare ones share small projections (Grave et al., 2017)."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from ...ops.shape.joining import cat
from ...tensor import Tensor
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log-probabilities of classes sorted by frequency, in clusters that begin at `cutoffs`, and the loss of targets.

    The clusters after the first get features projected to a size that falls by `div_value` (Grave et al., 2017).

    Shape: input `(N, in_features)`, target `(N)`; output `(N)` and a loss `()`.

    Raises: ValueError where `cutoffs` do not rise, or reach `n_classes`; RuntimeError where sizes do not fit.

    Source: Grave et al. 2017, arXiv:1609.04309.

    >>> head = nn.AdaptiveLogSoftmaxWithLoss(16, 100, cutoffs=[10, 50])
    >>> output, loss = head(xtensor.randn(3, 16), xtensor.tensor([0, 20, 99]))
    >>> output.shape, loss.shape
    (xtensor.Size([3]), xtensor.Size([]))
    >>> head.log_prob(xtensor.randn(3, 16)).shape
    xtensor.Size([3, 100])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        starts = list(cutoffs)
        if not starts:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rising = starts == sorted(set(starts)) and all(int(c) == c for c in starts)
        if not rising or starts[0] <= 0 or starts[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
                "value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*starts, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        factory = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // div_value ** (i + 1))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **factory),
                    Linear(hidden, size, bias=False, **factory),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for inner, outer in self.tail:
            inner.reset_parameters()
            outer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        """The log-probability of each target, and the mean loss: `(output, loss)`."""
        dims = target_.dim()
        if dims == 1:
            if input_.size(0) != target_.size(0):
                raise RuntimeError("Input and target should have the same size in the batch dimension.")
            if input_.dim() != 2:
                raise RuntimeError(
                    f"1D target tensor expects 2D input tensors, but found inputs with size {input_.size()}"
                )
        elif dims == 0:
            if input_.dim() != 1:
                raise RuntimeError(
                    f"0D target tensor expects 1D input tensors, but found inputs with size {input_.size()}"
                )
        else:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        input = input_ if dims else input_.unsqueeze(0)
        target = target_ if dims else target_.unsqueeze(0)
        if ((target < 0) | (target >= self.n_classes)).any():
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        output = input.new_zeros(target.size(0))
        places = target
        for i, (low, high) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            places = places.index_fill(0, rows, self.shortlist_size + i)
            log_probs = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            own = (target.index_select(0, rows) - low).unsqueeze(1)
            output = output.index_copy(0, rows, log_probs.gather(1, own).squeeze(1))
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, places.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if dims else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            own = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(own + head[:, self.shortlist_size + i].unsqueeze(1))
        return cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities (N, n_classes) of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The likeliest class of each sample: as `log_prob(input).argmax(1)`, without it where the head suffices."""
        head = self.head(input)
        output = head.argmax(dim=1)
        beyond = output >= self.shortlist_size
        if not beyond.any():
            return output
        if beyond.all():
            return self._get_full_log_prob(input, head).argmax(dim=1)
        rows = beyond.nonzero().squeeze(1)
        full = self._get_full_log_prob(input.index_select(0, rows), head.index_select(0, rows))
        return output.index_copy(0, rows, full.argmax(dim=1))
