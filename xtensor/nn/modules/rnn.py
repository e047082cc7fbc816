"""Recurrent layers over sequences, each a single compiled scan: Elman, LSTM and GRU."""

from __future__ import annotations

import numbers
from typing import Any

from ... import checks
from ...ops.create.creation import empty, zeros
from ...ops.network.recurrent import run_stack
from ...tensor import Tensor
from ..packed_sequence import PackedSequence
from ..parameter import Parameter
from .module import Module
from .rnncell import draw_by_size

__all__ = ["GRU", "LSTM", "RNN", "RNNBase"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def check_flag(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")


def check_size(name: str, value: Any) -> None:
    if not isinstance(value, int):
        raise TypeError(f"{name} should be of type int, got: {type(value).__name__}")
    if value <= 0:
        raise ValueError(f"{name} must be greater than zero")


class RNNBase(Module):
    """The base of recurrent layers: weights `weight_ih_l0`, `weight_hh_l0`, ... per layer and direction.

    Shape: input `(L, N, input_size)`; output `(L, N, D * hidden_size)` and hidden
    `(D * num_layers, N, hidden_size)`; D is 2 if bidirectional, else 1. N is left out without a batch; with
    `batch_first`, input and output begin `(N, L)`.

    Raises: ValueError for an unknown `mode`, a `dropout` outside [0, 1], and a `proj_size` that is not below
    `hidden_size`.

    >>> layer = nn.RNNBase("GRU", 4, 8)
    >>> [name for name, _ in layer.named_parameters()]
    ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            checks.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            )
        check_flag("bias", bias)
        check_flag("batch_first", batch_first)
        check_size("input_size", input_size)
        check_size("hidden_size", hidden_size)
        if num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        gates = GATES[mode] * hidden_size
        out = proj_size or hidden_size
        directions = 2 if bidirectional else 1
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            size = input_size if layer == 0 else out * directions
            for suffix in ("", "_reverse")[:directions]:
                shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, size), "weight_hh": (gates, out)}
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                names = []
                for name, shape in shapes.items():
                    names.append(f"{name}_l{layer}{suffix}")
                    self.register_parameter(names[-1], Parameter(empty(shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights and biases uniformly within 1/sqrt(hidden_size)."""
        draw_by_size(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Nothing: weights need no common memory here."""

    @property
    def _flat_weights(self) -> list[Any]:
        given = self.__dict__.get("_flat_given")
        if given is not None:
            return given
        own = self._parameters
        return [own[n] if n in own else getattr(self, n) for n in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        # Others to compute with, as functional copies of modules set them; a weight that is set later takes its place again.
        self.__dict__["_flat_given"] = weights

    def __setattr__(self, name: str, value: Any) -> None:
        given = self.__dict__.get("_flat_given")
        if given is not None and name in self._flat_weights_names:
            given[self._flat_weights_names.index(name)] = value
        super().__setattr__(name, value)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.__dict__.pop("_flat_given", None)
        return super()._apply(fn, recurse)

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights of every layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    # -- checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse an input of another dtype, rank or size."""
        weight = self._flat_weights[0]
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). Convert input: "
                f"input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        rank = 2 if batch_sizes is not None else 3
        if input.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _state_size(self, input: Tensor, batch_sizes: Tensor | None, size: int) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The size of the hidden state for an input."""
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Refuse a state of another size."""
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse inputs and states that do not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    # -- calls

    def _states(self, hx: Any) -> list[Tensor]:
        return [hx]

    def _check_rank(self, states: list[Tensor], batched: bool) -> None:
        wanted, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        if states[0].dim() != wanted:
            raise RuntimeError(
                f"For {kind} input, hx should also be {wanted}-D but got {states[0].dim()}-D tensor"
            )

    def _wrong_rank(self, input: Tensor) -> ValueError:
        return ValueError(f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead")

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """(output, last state): over a batch, a single sequence or a packed one; states are zero unless given."""
        packed = input if isinstance(input, PackedSequence) else None
        batch_sizes = order = None
        batched = True
        x: Any = input
        states = None if hx is None else self._states(hx)
        if packed is not None:
            x, batch_sizes, order = packed.data, packed.batch_sizes, packed.sorted_indices
        else:
            if x.dim() not in (2, 3):
                raise self._wrong_rank(x)
            batched = x.dim() == 3
            if states is not None:
                self._check_rank(states, batched)
            if not batched:
                x = x.unsqueeze(0 if self.batch_first else 1)
                states = None if states is None else [state.unsqueeze(1) for state in states]
        if states is None:
            states = [zeros(shape, dtype=x.dtype, device=x.device) for shape in self._sizes(x, batch_sizes)]
        elif order is not None:
            states = [state.index_select(1, order) for state in states]
        self.check_forward_args(x, states if len(states) > 1 else states[0], batch_sizes)
        output, *last = run_stack(
            self.mode,
            x,
            batch_sizes,
            states,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first and packed is None,
        )
        if packed is not None:
            back = packed.unsorted_indices
            if back is not None:
                last = [state.index_select(1, back) for state in last]
            output = PackedSequence(output, batch_sizes, order, back)
        elif not batched:
            output = output.squeeze(0 if self.batch_first else 1)
            last = [state.squeeze(1) for state in last]
        return output, tuple(last) if len(last) > 1 else last[0]

    def _sizes(self, input: Tensor, batch_sizes: Tensor | None) -> list[tuple[int, int, int]]:
        return [self.get_expected_hidden_size(input, batch_sizes)]

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """A state with its samples in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        plain = dict(proj_size=0, num_layers=1, bias=True, batch_first=False, dropout=0, bidirectional=False)
        for name, usual in plain.items():
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)}")
        return ", ".join(parts)


def refuse_projection(kwargs: dict[str, Any]) -> None:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    """Elman layers (1990): `h = tanh(W_ih x + b_ih + W_hh h + b_hh)`, or with ReLU by `nonlinearity="relu"`.

    Arguments: input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, device=None, dtype=None.

    Shape: input `(L, N, input_size)`; output `(L, N, D * hidden_size)` and hidden
    `(D * num_layers, N, hidden_size)`; D is 2 if bidirectional, else 1. N is left out without a batch; with
    `batch_first`, input and output begin `(N, L)`.

    Raises: RuntimeError for an input of another size; ValueError for a `nonlinearity` that is neither.

    Source: Elman 1990, Cognitive Science 14.

    >>> output, hidden = nn.RNN(4, 8, num_layers=2)(xtensor.zeros(5, 3, 4))
    >>> output.shape, hidden.shape
    (xtensor.Size([5, 3, 8]), xtensor.Size([2, 3, 8]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse_projection(kwargs)
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        modes = {"tanh": "RNN_TANH", "relu": "RNN_RELU"}
        if nonlinearity not in modes:
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        self.nonlinearity = nonlinearity
        super().__init__(modes[nonlinearity], *args, **kwargs)

    def _wrong_rank(self, input: Tensor) -> ValueError:
        return ValueError(f"RNN: Expected input to be 2D or 3D, got {input.dim()}D tensor instead")


class GRU(RNNBase):
    """Gated recurrent units (Cho et al., 2014).

    Arguments: input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    device=None, dtype=None.

    Shape: input `(L, N, input_size)`; output `(L, N, D * hidden_size)` and hidden
    `(D * num_layers, N, hidden_size)`; D is 2 if bidirectional, else 1. N is left out without a batch; with
    `batch_first`, input and output begin `(N, L)`.

    Raises: RuntimeError for an input of another size.

    Source: Cho et al. 2014, arXiv:1406.1078.

    >>> output, hidden = nn.GRU(4, 8, bidirectional=True)(xtensor.zeros(5, 3, 4))
    >>> output.shape, hidden.shape
    (xtensor.Size([5, 3, 16]), xtensor.Size([2, 3, 8]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997), with a projected hidden state on request.

    Arguments: input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    proj_size=0, device=None, dtype=None. The state is the pair (hidden, cell).

    Shape: input `(L, N, input_size)`; output `(L, N, D * H)`, hidden `(D * num_layers, N, H)` and cell
    `(D * num_layers, N, hidden_size)`; H is `proj_size`, or `hidden_size` where that is 0; D is 2 if
    bidirectional, else 1. N is left out without a batch; with `batch_first`, input and output begin `(N, L)`.

    Raises: RuntimeError for an input of another size.

    Source: Hochreiter and Schmidhuber 1997, Neural Computation 9.

    >>> output, (hidden, cell) = nn.LSTM(4, 8, batch_first=True)(xtensor.zeros(3, 5, 4))
    >>> output.shape, hidden.shape, cell.shape
    (xtensor.Size([3, 5, 8]), xtensor.Size([1, 3, 8]), xtensor.Size([1, 3, 8]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The size of the cell state for an input."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        sizes = self._sizes(input, batch_sizes)
        self.check_hidden_size(hidden[0], sizes[0], "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], sizes[1], "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        return hx if permutation is None else tuple(state.index_select(1, permutation) for state in hx)

    def _states(self, hx: Any) -> list[Tensor]:
        return [hx[0], hx[1]]

    def _check_rank(self, states: list[Tensor], batched: bool) -> None:
        wanted, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        ranks = [state.dim() for state in states]
        if ranks != [wanted, wanted]:
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {wanted}-D but got ({ranks[0]}-D, {ranks[1]}-D) tensors"
            )

    def _sizes(self, input: Tensor, batch_sizes: Tensor | None) -> list[tuple[int, int, int]]:
        return [
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        ]

    def _wrong_rank(self, input: Tensor) -> ValueError:
        return ValueError(f"LSTM: Expected input to be 2D or 3D, got {input.dim()}D instead")
