"""`QConfigMapping`: which qconfig a part of a model has, by its kind, its name, or both."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ....nn import functional as F
from ....nn.modules import activation as modules
from ....nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ....nn.modules.normalization import LayerNorm
from ....ops.pointwise.elementwise import sigmoid, tanh
from .fake_quantize import FixedQParamsFakeQuantize, default_weight_fake_quant
from .observer import (
    PlaceholderObserver,
    default_fixed_qparams_range_0to1_observer,
    default_fixed_qparams_range_neg1to1_observer,
    default_weight_observer,
)
from .qconfig import (
    QConfig,
    default_quint8_weight_qconfig,
    default_reuse_input_qconfig,
    get_default_qat_qconfig,
    get_default_qconfig,
)

__all__ = [
    "QConfigMapping",
    "get_default_qat_qconfig_dict",
    "get_default_qat_qconfig_mapping",
    "get_default_qconfig_dict",
    "get_default_qconfig_mapping",
]

BOUNDED: dict[Any, Any] = {
    **dict.fromkeys(
        (modules.Hardsigmoid, F.hardsigmoid, "hardsigmoid", "hardsigmoid_", modules.Sigmoid, sigmoid)
        + ("sigmoid", "sigmoid_", modules.Softmax),
        default_fixed_qparams_range_0to1_observer,
    ),
    **dict.fromkeys((modules.Tanh, tanh, "tanh", "tanh_"), default_fixed_qparams_range_neg1to1_observer),
}
"""What has results between known numbers, with the observer that knows them."""
STYLES = (
    ("object_type_qconfigs", "object_type", 1),
    ("module_name_regex_qconfigs", "module_name_regex", 1),
    ("module_name_qconfigs", "module_name", 1),
    ("module_name_object_type_order_qconfigs", "module_name_object_type_order", 3),
)


class QConfigMapping:
    """Which qconfig a part of a model has: the later of these that names it, of `set_global` to `set_module_name_object_type_order`.

    >>> Q = xtensor.ao.quantization
    >>> mapping = Q.QConfigMapping().set_global(Q.default_qconfig).set_object_type(xtensor.nn.Linear, None)
    >>> list(mapping.to_dict())
    ['', 'object_type', 'module_name_regex', 'module_name', 'module_name_object_type_order']
    """

    def __init__(self) -> None:
        self.global_qconfig: Any = None
        self.object_type_qconfigs: OrderedDict[Any, Any] = OrderedDict()
        self.module_name_regex_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_qconfigs: OrderedDict[str, Any] = OrderedDict()
        self.module_name_object_type_order_qconfigs: OrderedDict[Any, Any] = OrderedDict()

    def set_global(self, global_qconfig: Any) -> QConfigMapping:
        """For all that nothing else names."""
        self.global_qconfig = global_qconfig
        return self

    def set_object_type(self, object_type: Any, qconfig: Any) -> QConfigMapping:
        """For a class of modules, a function or a method's name."""
        self.object_type_qconfigs[object_type] = qconfig
        return self

    def set_module_name_regex(self, module_name_regex: str, qconfig: Any) -> QConfigMapping:
        """For modules whose names match; the first expression that does."""
        self.module_name_regex_qconfigs[module_name_regex] = qconfig
        return self

    def set_module_name(self, module_name: str, qconfig: Any) -> QConfigMapping:
        """For the module of a name."""
        self.module_name_qconfigs[module_name] = qconfig
        return self

    def set_module_name_object_type_order(
        self, module_name: str, object_type: Any, index: int, qconfig: Any
    ) -> QConfigMapping:
        """For the part of a kind that is the `index`-th within a module."""
        self.module_name_object_type_order_qconfigs[module_name, object_type, index] = qconfig
        return self

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} (", " global_qconfig", f"  {self.global_qconfig}"]
        for name, _, _ in STYLES:
            held = getattr(self, name)
            lines += [f" {name}", *([f"  {k}: {v}" for k, v in held.items()] or [f"  {held}"])]
        return "\n".join([*lines, ")"])

    def to_dict(self) -> dict[str, Any]:
        """The mapping as a dict of lists of tuples."""
        made: dict[str, Any] = {"": self.global_qconfig}
        for name, key, parts in STYLES:
            items = getattr(self, name).items()
            made[key] = [(*k, v) if parts > 1 else (k, v) for k, v in items]
        return made

    @classmethod
    def from_dict(cls, qconfig_dict: dict[str, Any]) -> QConfigMapping:
        """The mapping that `to_dict` gave."""
        made = cls().set_global(qconfig_dict.get(""))
        for name, key, parts in STYLES:
            for *named, qconfig in qconfig_dict.get(key, []):
                getattr(made, name)[tuple(named) if parts > 1 else named[0]] = qconfig
        return made


def mapped(trained: bool, backend: str, version: int) -> QConfigMapping:
    config = (get_default_qat_qconfig if trained else get_default_qconfig)(backend, version)
    weight = default_weight_fake_quant if trained else default_weight_observer
    transposed = QConfig(config.activation, weight)
    if backend not in ("fbgemm", "x86"):  # which have no scales of channels for these
        transposed = config
    norm = QConfig(config.activation, PlaceholderObserver)
    made = QConfigMapping().set_global(config).set_object_type("reshape", default_reuse_input_qconfig)
    for kind in (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d):
        made.set_object_type(kind, transposed)
    for function in (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d):
        made.set_object_type(function, transposed)
    made.set_object_type(F.layer_norm, norm).set_object_type(LayerNorm, norm)
    made.set_object_type(modules.PReLU, default_quint8_weight_qconfig)
    makers = {
        id(observer): QConfig(
            FixedQParamsFakeQuantize.with_args(observer=observer) if trained else observer, weight
        )
        for observer in BOUNDED.values()
    }
    for kind, observer in BOUNDED.items():
        made.set_object_type(kind, makers[id(observer)])
    return made


def get_default_qconfig_mapping(backend: str = "x86", version: int = 0) -> QConfigMapping:
    """What to quantise the parts of a trained model with."""
    return mapped(False, backend, version)


def get_default_qat_qconfig_mapping(backend: str = "x86", version: int = 1) -> QConfigMapping:
    """What to train the parts of a model with that is to be quantised."""
    return mapped(True, backend, version)


def get_default_qconfig_dict(backend: str = "x86", version: int = 0) -> dict[str, Any]:
    """`get_default_qconfig_mapping` as a dict."""
    return get_default_qconfig_mapping(backend, version).to_dict()


def get_default_qat_qconfig_dict(backend: str = "x86", version: int = 1) -> dict[str, Any]:
    """`get_default_qat_qconfig_mapping` as a dict."""
    return get_default_qat_qconfig_mapping(backend, version).to_dict()
