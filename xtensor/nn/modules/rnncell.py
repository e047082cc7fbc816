"""One step of a recurrent layer: Elman, LSTM and GRU cells."""

from __future__ import annotations

import math
from typing import Any

from ...ops.create.creation import zeros
from ...ops.network.cells import gru_cell, lstm_cell, rnn_relu_cell, rnn_tanh_cell
from ...tensor import Tensor
from .. import init
from ..parameter import register_empty
from .module import Module

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


def draw_by_size(module: Module, size: int) -> None:
    """Draw all parameters uniformly within 1/sqrt(size)."""
    bound = 1.0 / math.sqrt(size) if size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNCellBase(Module):
    """The base of cells: weight_ih (gates * hidden, input), weight_hh (gates * hidden, hidden), and biases.

    Shape: input `(N, input_size)`, hidden `(N, hidden_size)`; a subclass says what comes out.

    Raises: NotImplementedError where a subclass has no `forward`.

    >>> nn.RNNCellBase(4, 8, bias=True, num_chunks=3).weight_ih.shape
    xtensor.Size([24, 4])
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        register_empty(self, device, dtype, weight_ih=(rows, input_size), weight_hh=(rows, hidden_size))
        register_empty(self, device, dtype, bias_ih=rows if bias else None, bias_hh=rows if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weights and biases uniformly within 1/sqrt(hidden_size)."""
        draw_by_size(self, self.hidden_size)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        if nonlinearity != "tanh":
            parts.append(f"nonlinearity={nonlinearity}")
        return ", ".join(parts)

    def _check(self, input: Tensor, states: dict[str, Tensor]) -> None:
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        for which, state in states.items():
            if state.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected {which} to be 1D or 2D, got {state.dim()}D instead")

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _step(self, function: Any, input: Tensor, hx: Tensor | None) -> Tensor:
        """A step with one state."""
        self._check(input, {} if hx is None else {"hidden": hx})
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            hx = zeros((x.size(0), self.hidden_size), dtype=x.dtype, device=x.device)
        elif not batched:
            hx = hx.unsqueeze(0)
        made = function(x, hx, *self._weights())
        return made if batched else made.squeeze(0)


class RNNCell(RNNCellBase):
    """A step of an Elman layer: `tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with ReLU.

    Shape: input `(N, input_size)` or `(input_size)`, hidden `(N, hidden_size)` or `(hidden_size)`; output as
    the hidden state.

    Raises: RuntimeError for an input of another size.

    Source: Elman 1990, Cognitive Science 14.

    >>> nn.RNNCell(4, 8)(xtensor.zeros(3, 4), xtensor.zeros(3, 8)).shape
    xtensor.Size([3, 8])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        functions = {"tanh": rnn_tanh_cell, "relu": rnn_relu_cell}
        if self.nonlinearity not in functions:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(functions[self.nonlinearity], input, hx)


class LSTMCell(RNNCellBase):
    """A step of a long short-term memory: the next (hidden, cell).

    Shape: input `(N, input_size)` or `(input_size)`, hidden and cell `(N, hidden_size)` or `(hidden_size)`;
    output as hidden and cell.

    Raises: RuntimeError for an input of another size.

    Source: Hochreiter and Schmidhuber 1997, Neural Computation 9.

    >>> hidden, cell = nn.LSTMCell(4, 8)(xtensor.zeros(3, 4))
    >>> hidden.shape, cell.shape
    (xtensor.Size([3, 8]), xtensor.Size([3, 8]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check(input, {} if hx is None else {f"hx[{i}]": state for i, state in enumerate(hx)})
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        if hx is None:
            start = zeros((x.size(0), self.hidden_size), dtype=x.dtype, device=x.device)
            states = [start, start]
        else:
            states = [state if batched else state.unsqueeze(0) for state in hx]
        hidden, cell = lstm_cell(x, states, *self._weights())
        return (hidden, cell) if batched else (hidden.squeeze(0), cell.squeeze(0))


class GRUCell(RNNCellBase):
    """A step of a gated recurrent unit.

    Shape: input `(N, input_size)` or `(input_size)`, hidden `(N, hidden_size)` or `(hidden_size)`; output as
    the hidden state.

    Raises: RuntimeError for an input of another size.

    Source: Cho et al. 2014, arXiv:1406.1078.

    >>> nn.GRUCell(4, 8)(xtensor.zeros(3, 4)).shape
    xtensor.Size([3, 8])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(gru_cell, input, hx)
