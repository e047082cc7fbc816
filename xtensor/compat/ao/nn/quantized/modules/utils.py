"""What quantised layers have in common: weights made of real ones, and how they are shown."""

from __future__ import annotations

from typing import Any

from ...... import dtypes
from ......nn.modules.container import Sequential
from ......nn.modules.module import Module
from ......ops.create.ingest import tensor
from ......quantized.construct import quantize_per_channel, quantize_per_tensor
from ......sparse.layout import host
from ......tensor import Tensor

__all__ = ["WeightedQuantizedModule"]


class WeightedQuantizedModule(Module):
    """A layer with an integer weight and a real bias."""

    def set_weight_bias(self, w: Any, b: Tensor | None) -> None:
        """Hold a quantised weight and a real bias."""
        raise NotImplementedError

    def _weight_bias(self) -> tuple[Any, Tensor | None]:
        raise NotImplementedError

    def weight(self) -> Any:
        """The quantised weight."""
        return self._weight_bias()[0]

    def bias(self) -> Tensor | None:
        """The bias."""
        return self._weight_bias()[1]

    @classmethod
    def from_reference(cls, ref_module: Any, output_scale: Any, output_zero_point: Any) -> Any:
        """Of a layer that knows the scale of its weight, and computes with real numbers."""
        made = cls.like(ref_module)
        made.set_weight_bias(ref_module.get_quantized_weight(), ref_module.bias)
        made.scale, made.zero_point = float(output_scale), int(output_zero_point)
        return made

    @classmethod
    def like(cls, mod: Any) -> Any:
        """A layer of the same geometry."""
        raise NotImplementedError


def _quantize_weight(float_wt: Tensor, observer: Any) -> Any:
    """A weight, quantised by what an observer has seen of it; ValueError for a scheme that weights have not."""
    scale, point = observer.calculate_qparams()
    weight, name = float_wt.detach(), observer.qscheme.name
    if name.startswith("per_tensor"):
        return quantize_per_tensor(weight, float(host(scale)[0]), int(host(point)[0]), dtypes.qint8)
    if name == "per_channel_affine_float_qparams":
        return quantize_per_channel(weight, scale.float(), point.float(), observer.ch_axis, observer.dtype)
    if name.startswith("per_channel"):
        return quantize_per_channel(weight, scale.double(), point.long(), observer.ch_axis, dtypes.qint8)
    raise ValueError(f"Unexpected qscheme {observer.qscheme}")


def qparams(observer: Any) -> tuple[float, int]:
    """The scale and the zero point of results that an observer has seen."""
    scale, point = observer.calculate_qparams()
    return float(host(scale).reshape(-1)[0]), int(host(point).reshape(-1)[0])


def check_float(cls: Any, mod: Any) -> None:
    """Refuse a layer without a qconfig, and one that has no weight to quantise."""
    if not hasattr(mod, "weight") and not isinstance(mod, Sequential):
        kinds = cls._FLOAT_MODULE if isinstance(cls._FLOAT_MODULE, tuple) else (cls._FLOAT_MODULE,)
        named = ", ".join([kind.__name__ for kind in kinds])
        raise AssertionError(f"nnq.{cls.__name__}.from_float only works for {named}, but got: {type(mod)}")
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")


def shown(module: Module, hidden: type) -> str:
    """A module as text, without its packed parameters."""
    lines = [line for text in module.extra_repr().split("\n") if (line := text)]
    children = [
        f"({name}): " + repr(child).replace("\n", "\n  ")
        for name, child in module._modules.items()
        if not isinstance(child, hidden)
    ]
    name = module._get_name()
    if not lines + children:
        return f"{name}()"
    if len(lines) == 1 and not children:
        return f"{name}({lines[0]})"
    return f"{name}(\n  " + "\n  ".join(lines + children) + "\n)"


def saved_state(module: Any, destination: Any, prefix: str) -> None:
    """Write the scale and the zero point of results, as tensors."""
    destination[f"{prefix}scale"] = tensor(module.scale)
    destination[f"{prefix}zero_point"] = tensor(module.zero_point)
