"""LSTMs in parts: every sum, product and activation of a step is a module, so that its results can be seen."""

from __future__ import annotations

from typing import Any

from ...... import checks, dtypes
from ......nn.modules.activation import Sigmoid, Tanh
from ......nn.modules.container import ModuleDict, ModuleList
from ......nn.modules.linear import Linear
from ......nn.modules.module import Module
from ......nn.modules.rnn import LSTM as FloatLSTM
from ......nn.modules.rnncell import LSTMCell as FloatLSTMCell
from ......nn.parameter import Parameter
from ......ops.create.creation import zeros
from ......ops.pointwise.elementwise import tanh
from ......ops.shape.joining import cat, stack
from ......quantized.construct import quantize_per_tensor
from ......tensor import Tensor
from ...observing import observed
from ...seen import FloatFunctional

__all__ = ["LSTM", "LSTMCell"]

State = tuple[Tensor, Tensor]
GATES = ("input", "forget", "cell", "output")


class LSTMCell(Module):
    """A step of an LSTM, in parts; `split_gates` gives each gate a layer of its own."""

    _FLOAT_MODULE: Any = FloatLSTMCell

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_dim, hidden_dim
        self.bias, self.split_gates = bias, split_gates
        made = {"bias": bias, "device": device, "dtype": dtype}
        self.igates: Any
        self.hgates: Any
        self.gates: Any
        if split_gates:
            self.igates, self.hgates, self.gates = ModuleDict(), ModuleDict(), ModuleDict()
            for gate in GATES:
                self.igates[gate] = Linear(input_dim, hidden_dim, **made)
                self.hgates[gate] = Linear(hidden_dim, hidden_dim, **made)
                self.gates[gate] = FloatFunctional()
        else:
            self.igates = Linear(input_dim, 4 * hidden_dim, **made)
            self.hgates = Linear(hidden_dim, 4 * hidden_dim, **made)
            self.gates = FloatFunctional()
        self.input_gate, self.forget_gate = Sigmoid(), Sigmoid()
        self.cell_gate, self.output_gate = Tanh(), Sigmoid()
        self.fgate_cx, self.igate_cgate = FloatFunctional(), FloatFunctional()
        self.fgate_cx_igate_cgate, self.ogate_cy = FloatFunctional(), FloatFunctional()
        self.initial_hidden_state_qparams, self.initial_cell_state_qparams = (1.0, 0), (1.0, 0)
        self.hidden_state_dtype = self.cell_state_dtype = dtypes.quint8

    def forward(self, x: Tensor, hidden: Any = None) -> State:
        """The hidden state and the cell's after an input (B, in)."""
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        if self.split_gates:
            parts = [self.gates[g].add(self.igates[g](x), self.hgates[g](hx)) for g in GATES]
        else:
            parts = self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        enter, forget = self.input_gate(parts[0]), self.forget_gate(parts[1])
        new, leave = self.cell_gate(parts[2]), self.output_gate(parts[3])
        kept, added = self.fgate_cx.mul(forget, cx), self.igate_cgate.mul(enter, new)
        cy = self.fgate_cx_igate_cgate.add(kept, added)
        return self.ogate_cy.mul(leave, tanh(cy)), cy

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> State:
        """States of zeros."""
        hidden = cell = zeros(batch_size, self.hidden_size)
        if is_quantized:
            how = (*self.initial_hidden_state_qparams, self.hidden_state_dtype)
            hidden = quantize_per_tensor(hidden, *how)
            cell = quantize_per_tensor(cell, *self.initial_cell_state_qparams, self.cell_state_dtype)
        return hidden, cell

    def _get_name(self) -> str:
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(
        cls,
        wi: Tensor,
        wh: Tensor,
        bi: Tensor | None = None,
        bh: Tensor | None = None,
        split_gates: bool = False,
    ) -> Any:
        """Of the weights and biases of a float cell; AssertionError where there is one bias only."""
        if (bi is None) != (bh is None):
            raise AssertionError("bi and bh must both be None or both have values")
        made = cls(wi.shape[1], wh.shape[1], bias=bi is not None, split_gates=split_gates)
        for layers, weight, bias in ((made.igates, wi, bi), (made.hgates, wh, bh)):
            count = len(GATES) if split_gates else 1
            targets = [layers[gate] for gate in GATES] if split_gates else [layers]
            biases = [None] * count if bias is None else bias.detach().chunk(count)
            for layer, w, b in zip(targets, weight.detach().chunk(count), biases, strict=True):
                layer.weight = Parameter(w)
                layer.bias = None if b is None else Parameter(b)
        return made

    @classmethod
    def from_float(
        cls, other: Any, use_precomputed_fake_quant: bool = False, split_gates: bool = False
    ) -> Any:
        """Of a float cell with a qconfig."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        parameters = (other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh)
        made = cls.from_params(*parameters, split_gates=split_gates)
        made.qconfig = made.igates.qconfig = made.hgates.qconfig = other.qconfig
        if split_gates:
            for layer in (*made.igates.values(), *made.hgates.values()):
                layer.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(Module):
    """A cell over the steps of sequences (T, B, in)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.cell = LSTMCell(*args, **kwargs)

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Any]:
        """The hidden states of all steps, and the last of both kinds."""
        results = []
        for step in range(x.shape[0]):
            hidden = self.cell(x[step], hidden)
            results.append(hidden[0])
        return stack(results, 0), hidden

    @classmethod
    def from_params(cls, *args: Any, **kwargs: Any) -> Any:
        """Of the weights and biases of a float layer."""
        cell = LSTMCell.from_params(*args, **kwargs)
        made = cls(cell.input_size, cell.hidden_size, cell.bias, split_gates=cell.split_gates)
        made.cell = cell
        return made


class _LSTMLayer(Module):
    """A layer in one direction, or in both."""

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        bias: bool = True,
        batch_first: bool = False,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.batch_first, self.bidirectional = batch_first, bidirectional
        made = {"bias": bias, "split_gates": split_gates, "device": device, "dtype": dtype}
        self.layer_fw = _LSTMSingleLayer(input_dim, hidden_dim, **made)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(input_dim, hidden_dim, **made)

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, Any]:
        """Outputs (T, B, directions * hidden), and states, of each direction where there are two."""
        x = x.transpose(0, 1) if self.batch_first else x
        hx, cx = (None, None) if hidden is None else hidden
        if not self.bidirectional:
            result, states = self.layer_fw(x, None if hx is None else (hx, cx))
        else:
            pairs = [None if hx is None or cx is None else (hx[i], cx[i]) for i in range(2)]
            ahead, first = self.layer_fw(x, pairs[0])
            back, second = self.layer_bw(x.flip(0), pairs[1])
            result = cat([ahead, back.flip(0)], ahead.dim() - 1)
            states = tuple([stack([a, b], 0) for a, b in zip(first, second, strict=True)])
        return (result.transpose(0, 1) if self.batch_first else result), states

    @classmethod
    def from_float(cls, other: Any, layer_idx: int = 0, qconfig: Any = None, **given: Any) -> Any:
        """Of a layer of a float LSTM with a qconfig."""
        if not hasattr(other, "qconfig") and qconfig is None:
            raise AssertionError("other must have qconfig or qconfig must be provided")
        size, split = given.get("input_size", other.input_size), given.get("split_gates", False)
        made = cls(
            size, other.hidden_size, other.bias, given.get("batch_first", other.batch_first),
            other.bidirectional, split_gates=split,
        )  # fmt: skip
        made.qconfig = getattr(other, "qconfig", qconfig)
        for name, suffix in (("layer_fw", ""), ("layer_bw", "_reverse"))[: 1 + other.bidirectional]:
            kinds = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            parameters = [getattr(other, f"{kind}_l{layer_idx}{suffix}", None) for kind in kinds]
            setattr(made, name, _LSTMSingleLayer.from_params(*parameters, split_gates=split))
        return made


class LSTM(Module):
    """An LSTM in parts that can be seen and quantised; ValueError where `dropout` is no probability."""

    _FLOAT_MODULE: Any = FloatLSTM

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        split_gates: bool = False,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.bidirectional = bias, batch_first, bidirectional
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        self.dropout = float(dropout)
        self.training = False
        if dropout > 0:
            checks.warn(
                "dropout option for quantizable LSTM is ignored. If you are training, please, use nn.LSTM version "
                "followed by `prepare` step."
            )
        made = {"bidirectional": bidirectional, "split_gates": split_gates, "device": device, "dtype": dtype}
        wide = hidden_size * (2 if bidirectional else 1)
        sizes = [input_size, *[wide] * (num_layers - 1)]
        self.layers = ModuleList([_LSTMLayer(size, hidden_size, bias, **made) for size in sizes])

    def forward(self, x: Tensor, hidden: Any = None) -> tuple[Tensor, State]:
        """Outputs, and the last hidden states and those of the cells (layers * directions, B, hidden)."""
        x = x.transpose(0, 1) if self.batch_first else x
        directions, batch = 2 if self.bidirectional else 1, x.shape[1]
        shape = (directions, batch, self.hidden_size)
        if hidden is None:
            blank = zeros(*shape, device=x.device)
            blank = quantize_per_tensor(blank, 1.0, 0, x.dtype) if x.is_quantized else blank
            blank = blank.squeeze(0)
            given: Any = [(blank, blank)] * self.num_layers
        elif isinstance(hidden[0], Tensor):
            hx, cx = (h.reshape(self.num_layers, *shape) for h in hidden)
            given = [(hx[i].squeeze(0), cx[i].squeeze(0)) for i in range(self.num_layers)]
        else:
            given = hidden
        last: list[list[Tensor]] = [[], []]
        for layer, state in zip(self.layers, given, strict=True):
            x, ended = layer(x, state)
            for held, new in zip(last, ended, strict=True):
                held.append(new)
        hx, cx = (stack(held) for held in last)
        states = (hx.reshape(-1, *hx.shape[-2:]), cx.reshape(-1, *cx.shape[-2:]))
        return (x.transpose(0, 1) if self.batch_first else x), states

    def _get_name(self) -> str:
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other: Any, qconfig: Any = None, split_gates: bool = False) -> Any:
        """Of a float LSTM with a qconfig."""
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not (hasattr(other, "qconfig") or qconfig):
            raise AssertionError("The float module must have 'qconfig' or qconfig must be provided")
        made = cls(
            other.input_size, other.hidden_size, other.num_layers, other.bias, other.batch_first, other.dropout,
            other.bidirectional, split_gates=split_gates,
        )  # fmt: skip
        made.qconfig = getattr(other, "qconfig", qconfig)
        for index in range(other.num_layers):
            size = other.input_size if index == 0 else made.layers[index].layer_fw.cell.input_size
            made.layers[index] = _LSTMLayer.from_float(
                other, index, qconfig, input_size=size, batch_first=False, split_gates=split_gates
            )
        # The parts are seen, each on its own.
        return observed(made.train() if other.training else made.eval())

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """NotImplementedError: a quantised LSTM is made of an observed one."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-quantizable LSTM module. "
            "Please, see the examples on quantizable LSTMs."
        )
