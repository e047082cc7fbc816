"""Recurrent layers of quantised layers."""

from __future__ import annotations

from typing import Any

from ...observing import converted
from ...quantizable.modules.rnn import LSTM as ObservedLSTM

__all__ = ["LSTM"]


class LSTM(ObservedLSTM):
    """An LSTM whose layers are quantised: made of an observed one."""

    _FLOAT_MODULE: Any = ObservedLSTM

    def _get_name(self) -> str:
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args: Any, **kwargs: Any) -> Any:
        """NotImplementedError: it is made of an observed one."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed LSTM module. "
            "Please, see the examples on quantizable LSTMs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """Of an LSTM whose layers were seen."""
        made = converted(other)
        made.__class__ = cls
        return made
