"""Recurrent layers and cells of integer weights over real numbers."""

from __future__ import annotations

from typing import Any

from ....... import dtypes
from .......nn import functional as F
from .......nn.modules import rnn as floating
from .......nn.modules.container import ModuleList
from .......nn.modules.module import Module
from .......nn.utils.rnn import PackedSequence
from .......ops.create.creation import zeros
from .......quantized.construct import _empty_affine_quantized
from .......quantized.packed import ScriptObject, cell_packed, half_packed, linear_packed
from .......quantized.recurrent import cell, layers
from .......tensor import Tensor
from ...modules.utils import _quantize_weight

__all__ = ["GRU", "LSTM", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase", "pack_weight_bias"]

GATES = {"LSTM": 4, "GRU": 3, "LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}


def pack_weight_bias(qweight: Tensor, bias: Tensor | None, dtype: dtypes.dtype) -> ScriptObject:
    """A weight and a bias, packed; RuntimeError for a dtype that weights have not."""
    if dtype is dtypes.qint8:
        return linear_packed(qweight, bias)
    if dtype is dtypes.float16:
        return half_packed(qweight, bias)
    raise RuntimeError("Unsupported dtype specified for quantized LSTM!")


def prepared(weight: Tensor, observer: Any) -> Tensor:
    """A weight of the dtype of its observer: quantised by what that sees, or real."""
    if observer.dtype is not dtypes.qint8:
        return weight.detach().float()
    observer(weight)
    return _quantize_weight(weight.float(), observer)


def blank(rows: int, columns: int, dtype: dtypes.dtype) -> Tensor:
    if dtype is dtypes.qint8:
        return _empty_affine_quantized(rows, columns, scale=1.0, zero_point=0, dtype=dtypes.qint8)
    return zeros(rows, columns)


class PackedParameter(Module):
    """The parameters of a cell, packed."""

    def __init__(self, param: ScriptObject) -> None:
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}param"] = self.param

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        self.param = state_dict[f"{prefix}param"]
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )


class RNNBase(Module):
    """What LSTM and GRU have in common: packed parameters for each layer and direction."""

    _FLOAT_MODULE: Any = floating.RNNBase
    _version = 2

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
        dtype: dtypes.dtype = dtypes.qint8,
    ) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size = mode, input_size, hidden_size
        self.num_layers, self.bias, self.batch_first = num_layers, bias, batch_first
        self.dropout, self.bidirectional, self.dtype = float(dropout), bidirectional, dtype
        self.version, self.training = 2, False
        if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        directions, rows = 2 if bidirectional else 1, GATES[mode] * hidden_size
        made = []
        for layer in range(num_layers):
            width = input_size if layer == 0 else hidden_size * directions
            for _ in range(directions):
                halves = [
                    pack_weight_bias(blank(rows, w, dtype), zeros(rows), dtype) for w in (width, hidden_size)
                ]
                made.append(PackedParameter(self._packed(*halves)))
        self._all_weight_values: Any = ModuleList(made)

    def _packed(self, ih: ScriptObject, hh: ScriptObject) -> ScriptObject:
        return cell_packed(ih, hh, True if self.dtype is dtypes.qint8 else None)

    def _get_name(self) -> str:
        return "DynamicQuantizedRNN"

    proj_size = 0
    extra_repr: Any = floating.RNNBase.extra_repr

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuse inputs of another rank or width."""
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.shape[-1]:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}"
            )

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The size of states for an input."""
        batch = input.shape[0 if self.batch_first else 1] if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * (2 if self.bidirectional else 1), batch, self.hidden_size

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: Any, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuse states of another size."""
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuse what does not fit."""
        self.check_input(input, batch_sizes)
        size = self.get_expected_hidden_size(input, batch_sizes)
        states = hidden if isinstance(hidden, tuple) else (hidden,)
        for state in states:
            self.check_hidden_size(state, size)

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """States with their sequences in another order."""
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return tuple([h.index_select(1, permutation) for h in hx])
        return hx.index_select(1, permutation)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Outputs (T, B, directions * hidden), a packed sequence of them for one, and the last states."""
        sizes, orders = None, (None, None)
        given = input
        if isinstance(input, PackedSequence):
            given, sizes, *orders = input
        two = self.mode == "LSTM"
        if hx is None:
            blank = zeros(
                *self.get_expected_hidden_size(given, sizes), dtype=given.dtype, device=given.device
            )
            hx = (blank, blank) if two else blank
        else:
            hx = self.permute_hidden(hx, orders[0])
        self.check_forward_args(given, hx, sizes)
        drop = None
        if self.dropout and self.training:
            drop = lambda x: F.dropout(x, self.dropout, True)
        turned = self.batch_first and sizes is None
        made, last = layers(
            self.mode.lower(),
            given.transpose(0, 1) if turned else given,
            hx if two else (hx,),
            [held.param for held in self._all_weight_values],
            self.num_layers,
            drop,
            self.bidirectional,
            sizes,
        )
        states = self.permute_hidden(tuple(last) if two else last[0], orders[1])
        if sizes is not None:
            return PackedSequence(made, sizes, *orders), states
        return (made.transpose(0, 1) if turned else made), states

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Hold weights and biases by their names, as `get_weight` and `get_bias` give them."""
        for name, place in self._places():
            halves = [
                pack_weight_bias(
                    weight_bias_dict[f"weight_{half}_{name}"],
                    weight_bias_dict[f"bias_{half}_{name}"],
                    self.dtype,
                )
                for half in ("ih", "hh")
            ]
            self._all_weight_values[place].param = self._packed(*halves)

    def _places(self) -> list[tuple[str, int]]:
        suffixes = ("", "_reverse") if self.bidirectional else ("",)
        names = [f"l{layer}{suffix}" for layer in range(self.num_layers) for suffix in suffixes]
        return [(name, place) for place, name in enumerate(names)]

    def _halves(self, which: int) -> dict[str, Any]:
        found, kind = {}, ("weight", "bias")[which]
        for name, place in self._places():
            parts = self._all_weight_values[place].param.__getstate__()[0][4]
            for half, part in zip(("ih", "hh"), parts, strict=True):
                found[f"{kind}_{half}_{name}"] = part.unpack()[which]
        return found

    def get_weight(self) -> dict[str, Any]:
        """The weights by name."""
        return self._halves(0)

    def get_bias(self) -> dict[str, Any]:
        """The biases by name."""
        return self._halves(1)

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a float layer with a qconfig; AssertionError for another kind."""
        if type(mod) not in (floating.LSTM, floating.GRU):
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        make = mod.qconfig.weight
        dtype = make().dtype
        if dtype not in (dtypes.qint8, dtypes.float16):
            raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {dtype}")
        made = cls(
            mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout,
            mod.bidirectional, dtype,
        )  # fmt: skip
        if not mod.bias:
            raise AssertionError("bias must be True for dynamic RNN quantization")
        named = dict(mod.named_parameters())
        made.set_weight_bias(
            {
                name: prepared(p, make()) if name.startswith("weight") else p.detach()
                for name, p in named.items()
            }
        )
        return made


class LSTM(RNNBase):
    """An LSTM with integer weights, whose inputs and states are quantised as they come.

    >>> layer = xtensor.ao.nn.quantized.dynamic.LSTM(3, 4)
    >>> layer(xtensor.zeros(2, 1, 3))[0].shape
    xtensor.Size([2, 1, 4])
    """

    _FLOAT_MODULE = floating.LSTM

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedLSTM"


class GRU(RNNBase):
    """A GRU with integer weights, whose inputs and states are quantised as they come."""

    _FLOAT_MODULE = floating.GRU

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedGRU"


class RNNCellBase(Module):
    """What cells have in common: two packed weights."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        num_chunks: int = 4,
        dtype: dtypes.dtype = dtypes.qint8,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.weight_dtype = dtype
        rows = num_chunks * hidden_size
        self.bias_ih = zeros(rows) if bias else None
        self.bias_hh = zeros(rows) if bias else None
        self._packed_weight_ih = pack_weight_bias(blank(rows, input_size, dtype), self.bias_ih, dtype)
        self._packed_weight_hh = pack_weight_bias(blank(rows, hidden_size, dtype), self.bias_hh, dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedRNNBase"

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        parts += [] if self.bias else ["bias=False"]
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        parts += [] if nonlinearity == "tanh" else [f"nonlinearity={nonlinearity}"]
        return ", ".join(parts)

    def check_forward_input(self, input: Tensor) -> None:
        """Refuse inputs of another width."""
        if input.shape[1] != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.shape[1]}, expected {self.input_size}"
            )

    def check_forward_hidden(self, input: Tensor, hx: Tensor, hidden_label: str = "") -> None:
        """Refuse states of another size."""
        if input.shape[0] != hx.shape[0]:
            raise RuntimeError(
                f"Input batch size {input.shape[0]} doesn't match hidden{hidden_label} batch size {hx.shape[0]}"
            )
        if hx.shape[1] != self.hidden_size:
            raise RuntimeError(
                f"hidden{hidden_label} has inconsistent hidden_size: got {hx.shape[1]}, expected {self.hidden_size}"
            )

    def _step(self, kind: str, input: Tensor, hx: Any, count: int) -> Any:
        self.check_forward_input(input)
        if hx is None:
            hx = (zeros(input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device),) * count
        for label, state in zip(("[0]", "[1]") if count > 1 else ("",), hx, strict=True):
            self.check_forward_hidden(input, state, label)
        return cell(kind, input, hx, self._packed_weight_ih, self._packed_weight_hh)

    def get_weight(self) -> dict[str, Any]:
        """The weights by name."""
        return {
            "weight_ih": self._packed_weight_ih.unpack()[0],
            "weight_hh": self._packed_weight_hh.unpack()[0],
        }

    def get_bias(self) -> dict[str, Any]:
        """The biases by name."""
        return {"bias_ih": self._packed_weight_ih.unpack()[1], "bias_hh": self._packed_weight_hh.unpack()[1]}

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Hold the weights and biases of `weight` and `bias`, dicts as `get_weight` and `get_bias` give them."""
        weights, biases = weight_bias_dict["weight"], weight_bias_dict["bias"]
        for half in ("ih", "hh"):
            packed = pack_weight_bias(weights[f"weight_{half}"], biases[f"bias_{half}"], self.weight_dtype)
            setattr(self, f"_packed_weight_{half}", packed)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        for name in ("_packed_weight_ih", "_packed_weight_hh"):
            setattr(self, name, state_dict.pop(prefix + name))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """Of a float cell with a qconfig."""
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        make = mod.qconfig.weight
        dtype = make().dtype
        if dtype not in (dtypes.qint8, dtypes.float16):
            raise RuntimeError(f"Unsupported dtype for dynamic RNN quantization: {dtype}")
        given = {"bias": mod.bias, "dtype": dtype}
        if hasattr(mod, "nonlinearity"):
            given["nonlinearity"] = mod.nonlinearity
        made = cls(mod.input_size, mod.hidden_size, **given)
        names = ("weight_ih", "weight_hh")
        weights = {name: prepared(getattr(mod, name), make()) for name in names}
        biases = {name: getattr(mod, name) for name in ("bias_ih", "bias_hh")}
        made.set_weight_bias({"weight": weights, "bias": biases})
        return made


class RNNCell(RNNCellBase):
    """An Elman cell with integer weights; RuntimeError for another nonlinearity than tanh and relu."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        dtype: dtypes.dtype = dtypes.qint8,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, dtype)
        self.nonlinearity = nonlinearity

    def _get_name(self) -> str:
        return "DynamicQuantizedRNNCell"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The state (B, hidden) after an input (B, in)."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}", input, None if hx is None else (hx,), 1)[0]


class LSTMCell(RNNCellBase):
    """An LSTM cell with integer weights."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, num_chunks=4, **kwargs)

    def _get_name(self) -> str:
        return "DynamicQuantizedLSTMCell"

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, ...]:
        """The hidden state and the cell's (B, hidden) after an input (B, in)."""
        return self._step("lstm", input, hx, 2)


class GRUCell(RNNCellBase):
    """A GRU cell with integer weights."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: dtypes.dtype = dtypes.qint8
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, dtype)

    def _get_name(self) -> str:
        return "DynamicQuantizedGRUCell"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The state (B, hidden) after an input (B, in)."""
        return self._step("gru", input, None if hx is None else (hx,), 1)[0]
