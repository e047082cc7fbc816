"""Which quantised layer takes the place of which: before training ends, in it, or as a model runs."""

from __future__ import annotations

import copy
from typing import Any

from ....nn import functional as F
from ....nn.modules import (
    activation,
    batchnorm,
    conv,
    instancenorm,
    linear,
    normalization,
    rnn,
    rnncell,
    sparse,
)
from ....nn.modules.container import Sequential
from ....nn.modules.dropout import Dropout
from ....quantized.functions import OPERATORS
from ..nn import intrinsic, qat, quantizable, quantized
from ..nn.intrinsic import qat as intrinsic_qat
from ..nn.intrinsic import quantized as intrinsic_quantized
from .fake_quantize import (
    default_fixed_qparams_range_0to1_fake_quant,
    default_fixed_qparams_range_neg1to1_fake_quant,
)
from .stubs import DeQuantStub, QuantStub

__all__ = [
    "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS",
    "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS",
    "DEFAULT_MODULE_TO_ACT_POST_PROCESS",
    "DEFAULT_QAT_MODULE_MAPPINGS",
    "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
    "get_default_compare_output_module_list",
    "get_default_dynamic_quant_module_mappings",
    "get_default_float_to_quantized_operator_mappings",
    "get_default_qat_module_mappings",
    "get_default_qconfig_propagation_list",
    "get_default_static_quant_module_mappings",
    "get_dynamic_quant_module_class",
    "get_embedding_qat_module_mappings",
    "get_embedding_static_quant_module_mappings",
    "get_quantized_operator",
    "get_static_quant_module_class",
    "no_observer_set",
]

Mapping = dict[Any, Any]


def named(holder: Any, target: Any, names: str) -> Mapping:
    """The classes of one module, with those of the same names in another."""
    return {getattr(holder, name): getattr(target, name) for name in names.split()}


DEFAULT_STATIC_QUANT_MODULE_MAPPINGS: Mapping = {
    QuantStub: quantized.Quantize,
    DeQuantStub: quantized.DeQuantize,
    **named(batchnorm, quantized, "BatchNorm2d BatchNorm3d"),
    Dropout: quantized.Dropout,
    **named(conv, quantized, "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d"),
    **named(sparse, quantized, "Embedding EmbeddingBag"),
    **named(normalization, quantized, "GroupNorm LayerNorm"),
    **named(instancenorm, quantized, "InstanceNorm1d InstanceNorm2d InstanceNorm3d"),
    **named(activation, quantized, "ELU Hardswish LeakyReLU ReLU6 PReLU"),
    linear.NonDynamicallyQuantizableLinear: quantized.Linear,
    linear.Linear: quantized.Linear,
    quantized.FloatFunctional: quantized.QFunctional,
    **named(
        intrinsic,
        intrinsic_quantized,
        "BNReLU2d BNReLU3d ConvReLU1d ConvReLU2d ConvReLU3d ConvAdd2d ConvAddReLU2d LinearReLU LinearLeakyReLU LinearTanh",
    ),
    intrinsic_qat.ConvBn1d: quantized.Conv1d,
    intrinsic_qat.ConvBn2d: quantized.Conv2d,
    intrinsic_qat.ConvBn3d: quantized.Conv3d,
    intrinsic_qat.ConvBnReLU1d: intrinsic_quantized.ConvReLU1d,
    intrinsic_qat.ConvBnReLU2d: intrinsic_quantized.ConvReLU2d,
    intrinsic_qat.ConvBnReLU3d: intrinsic_quantized.ConvReLU3d,
    **named(intrinsic_qat, intrinsic_quantized, "ConvReLU2d ConvReLU3d LinearReLU"),
    intrinsic_qat.LinearBn1d: quantized.Linear,
    **named(qat, quantized, "Linear Conv2d Conv3d"),
}
DEFAULT_QAT_MODULE_MAPPINGS: Mapping = {
    **named(conv, qat, "Conv2d Conv3d"),
    **named(linear, qat, "Linear"),
    linear.NonDynamicallyQuantizableLinear: qat.Linear,
    **named(
        intrinsic,
        intrinsic_qat,
        "ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d ConvReLU2d ConvReLU3d LinearReLU LinearBn1d",
    ),
}
DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS: Mapping = {
    **named(rnncell, quantized.dynamic, "GRUCell LSTMCell RNNCell"),
    linear.Linear: quantized.dynamic.Linear,
    qat.dynamic.Linear: quantized.dynamic.Linear,
    linear.NonDynamicallyQuantizableLinear: quantized.dynamic.Linear,
    **named(rnn, quantized.dynamic, "LSTM GRU"),
    intrinsic.LinearReLU: intrinsic_quantized.dynamic.LinearReLU,
    **named(sparse, quantized, "EmbeddingBag Embedding"),
}
DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS: Mapping = {
    getattr(F, name): OPERATORS[name]
    for name in ("elu", "hardswish", "instance_norm", "layer_norm", "leaky_relu", "dropout")
}
DEFAULT_MODULE_TO_ACT_POST_PROCESS: Mapping = {
    activation.Hardsigmoid: default_fixed_qparams_range_0to1_fake_quant,
    activation.Sigmoid: default_fixed_qparams_range_0to1_fake_quant,
    activation.Softmax: default_fixed_qparams_range_0to1_fake_quant,
    activation.Tanh: default_fixed_qparams_range_neg1to1_fake_quant,
}


def no_observer_set() -> set[Any]:
    """The layers whose parts are observed, and that are not themselves."""
    return {quantizable.LSTM, quantizable.MultiheadAttention}


def get_default_static_quant_module_mappings() -> Mapping:
    """What takes the place of which layer in a trained model: a copy."""
    return copy.copy(DEFAULT_STATIC_QUANT_MODULE_MAPPINGS)


def get_embedding_static_quant_module_mappings() -> Mapping:
    """The same, with tables trained to be rounded."""
    return get_default_static_quant_module_mappings() | named(qat, quantized, "EmbeddingBag Embedding")


def get_default_qat_module_mappings() -> Mapping:
    """What takes the place of which layer in training: a copy."""
    return copy.copy(DEFAULT_QAT_MODULE_MAPPINGS)


def get_embedding_qat_module_mappings() -> Mapping:
    """The same, with tables."""
    return get_default_qat_module_mappings() | named(sparse, qat, "EmbeddingBag Embedding")


def get_default_dynamic_quant_module_mappings() -> Mapping:
    """What takes the place of which layer where numbers are quantised as they come."""
    return DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS


def get_static_quant_module_class(
    float_module_class: Any,
    additional_static_quant_mapping: Mapping | None = None,
    is_reference: bool = False,
) -> Any:
    """What takes the place of a layer in a trained model; AssertionError where there is nothing."""
    kinds = get_default_static_quant_module_mappings() | (additional_static_quant_mapping or {})
    if float_module_class not in kinds:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding quantized module class"
        )
    return kinds[float_module_class]


def get_dynamic_quant_module_class(
    float_module_class: Any, additional_dynamic_quant_mapping: Mapping | None = None
) -> Any:
    """What takes the place of a layer where numbers are quantised as they come; AssertionError where there is nothing."""
    kinds = DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS | (additional_dynamic_quant_mapping or {})
    if float_module_class not in kinds:
        raise AssertionError(
            f"Floating point module class {float_module_class} does not have a corresponding quantized module class"
        )
    return kinds[float_module_class]


def get_default_qconfig_propagation_list() -> set[Any]:
    """The layers that are observed."""
    tables = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        DEFAULT_QAT_MODULE_MAPPINGS,
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )
    return {kind for table in tables for kind in table} | {Sequential}


def get_default_compare_output_module_list() -> set[Any]:
    """The layers whose results are compared between a float model and a quantised one."""
    tables = (
        DEFAULT_STATIC_QUANT_MODULE_MAPPINGS,
        DEFAULT_QAT_MODULE_MAPPINGS,
        DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS,
    )
    return get_default_qconfig_propagation_list() | {kind for table in tables for kind in table.values()}


def get_default_float_to_quantized_operator_mappings() -> Mapping:
    """What takes the place of which function: a copy."""
    return copy.copy(DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS)


def get_quantized_operator(float_op: Any) -> Any:
    """What takes the place of a function; AssertionError where there is nothing."""
    found = DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS.get(float_op)
    if found is None:
        raise AssertionError(f"Operator {float_op} does not have corresponding quantized op")
    return found
