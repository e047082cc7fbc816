"""`QConfig`: what observes, or rounds, a layer's results and its weight."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

from .... import dtypes
from ....nn.modules.linear import Identity
from ....nn.modules.module import Module
from .fake_quantize import (
    FakeQuantize,
    FusedMovingAvgObsFakeQuantize,
    default_dynamic_fake_quant,
    default_embedding_fake_quant,
    default_embedding_fake_quant_4bit,
    default_fake_quant,
    default_fused_act_fake_quant,
    default_fused_per_channel_wt_fake_quant,
    default_fused_wt_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
    fused_per_channel_wt_fake_quant_range_neg_127_to_127,
    fused_wt_fake_quant_range_neg_127_to_127,
)
from .limits import PartialWrapper
from .observer import (
    HistogramObserver,
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    NoopObserver,
    PlaceholderObserver,
    ReuseInputObserver,
    default_debug_observer,
    default_dynamic_quant_observer,
    default_float_qparams_observer,
    default_float_qparams_observer_4bit,
    default_observer,
    default_per_channel_weight_observer,
    default_placeholder_observer,
    default_weight_observer,
    per_channel_weight_observer_range_neg_127_to_127,
    weight_observer_range_neg_127_to_127,
)

__all__ = [
    "QConfig",
    "QConfigAny",
    "QConfigDynamic",
    "default_activation_only_qconfig",
    "default_debug_qconfig",
    "default_dynamic_qat_qconfig",
    "default_dynamic_qconfig",
    "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit",
    "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig",
    "default_per_channel_symmetric_qnnpack_qconfig",
    "default_qat_qconfig",
    "default_qat_qconfig_v2",
    "default_qconfig",
    "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig",
    "default_symmetric_qnnpack_qat_qconfig",
    "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig",
    "float16_dynamic_qconfig",
    "float16_static_qconfig",
    "float_qparams_weight_only_qconfig",
    "float_qparams_weight_only_qconfig_4bit",
    "get_default_qat_qconfig",
    "get_default_qconfig",
    "per_channel_dynamic_qconfig",
    "qconfig_equals",
]


class QConfig(NamedTuple("QConfig", [("activation", Any), ("weight", Any)])):
    """Makers of the observer of a layer's results, and of that of its weight."""

    __slots__ = ()

    def __new__(cls, activation: Any, weight: Any) -> QConfig:
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


class QConfigDynamic(NamedTuple("QConfigDynamic", [("activation", Any), ("weight", Any)])):
    """What quantises a layer as it runs, before `QConfig` could say it."""

    __slots__ = ()

    def __new__(cls, activation: Any = Identity, weight: Any = Identity) -> QConfigDynamic:
        if isinstance(weight, Module):
            raise ValueError(
                "QConfigDynamic received observer instance, please pass observer class instead. "
                "Use MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


QConfigAny: TypeAlias = QConfig | None

default_qconfig = QConfig(default_observer, default_weight_observer)
default_debug_qconfig = QConfig(default_debug_observer, default_weight_observer)
default_per_channel_qconfig = QConfig(default_observer, default_per_channel_weight_observer)
default_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_weight_observer)
float16_dynamic_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=dtypes.float16, is_dynamic=True),
    PlaceholderObserver.with_args(dtype=dtypes.float16),
)
float16_static_qconfig = QConfig(
    PlaceholderObserver.with_args(dtype=dtypes.float16), PlaceholderObserver.with_args(dtype=dtypes.float16)
)
per_channel_dynamic_qconfig = QConfig(default_dynamic_quant_observer, default_per_channel_weight_observer)
float_qparams_weight_only_qconfig = QConfig(default_placeholder_observer, default_float_qparams_observer)
float_qparams_weight_only_qconfig_4bit = QConfig(
    default_placeholder_observer, default_float_qparams_observer_4bit
)
default_qat_qconfig = QConfig(default_fake_quant, default_weight_fake_quant)
default_dynamic_qat_qconfig = QConfig(default_dynamic_fake_quant, default_weight_fake_quant)
default_weight_only_qconfig = QConfig(Identity, default_weight_fake_quant)
default_activation_only_qconfig = QConfig(default_fake_quant, Identity)
default_qat_qconfig_v2 = QConfig(default_fused_act_fake_quant, default_fused_wt_fake_quant)
default_reuse_input_qconfig = QConfig(ReuseInputObserver, NoopObserver)
default_embedding_qat_qconfig = QConfig(
    NoopObserver.with_args(dtype=dtypes.float32), default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    NoopObserver.with_args(dtype=dtypes.float32), default_embedding_fake_quant_4bit
)
default_quint8_weight_qconfig = QConfig(HistogramObserver, MinMaxObserver)

NARROW = {"dtype": dtypes.qint8, "reduce_range": False, "eps": 2**-12}
SYMMETRIC = HistogramObserver.with_args(**NARROW)
SYMMETRIC_QAT = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=-128, quant_max=127, **NARROW
)
default_symmetric_qnnpack_qconfig = QConfig(SYMMETRIC, weight_observer_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    SYMMETRIC, per_channel_weight_observer_range_neg_127_to_127
)
default_symmetric_qnnpack_qat_qconfig = QConfig(SYMMETRIC_QAT, fused_wt_fake_quant_range_neg_127_to_127)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    SYMMETRIC_QAT, fused_per_channel_wt_fake_quant_range_neg_127_to_127
)

BACKENDS = ["fbgemm", "x86", "qnnpack", "onednn"]


def check_backend(backend: str) -> None:
    if backend not in BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {BACKENDS}")


def get_default_qconfig(backend: str = "x86", version: int = 0) -> QConfig:
    """What to quantise a trained model with; AssertionError for a back end or a version that there is not."""
    check_backend(backend)
    if version != 0:
        raise AssertionError(
            f"Version number: {version} in get_default_qconfig is not supported. Version number must be 0"
        )
    weight = default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    return QConfig(HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86")), weight)


def get_default_qat_qconfig(backend: str = "x86", version: int = 1) -> QConfig:
    """What to train a model with that is to be quantised; AssertionError for a back end or a version that there is not."""
    check_backend(backend)
    if version not in (0, 1):
        raise AssertionError(
            f"Version number: {version}in get_default_qat_qconfig is not supported. Version number must be 0 or 1"
        )
    reduced = {} if backend == "onednn" else {"reduce_range": backend != "qnnpack"}
    kind = FusedMovingAvgObsFakeQuantize if version else FakeQuantize
    results = kind.with_args(observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **reduced)
    whole = (default_weight_fake_quant, default_fused_wt_fake_quant)
    each = (default_per_channel_weight_fake_quant, default_fused_per_channel_wt_fake_quant)
    return QConfig(results, (whole if backend == "qnnpack" else each)[version])


def same_maker(one: Any, other: Any) -> bool:
    if not (isinstance(one, PartialWrapper) and isinstance(other, PartialWrapper)):
        return one == other
    given, given_other = dict(one.p.keywords), dict(other.p.keywords)
    makers = [given.pop("observer", None), given_other.pop("observer", None)]
    return (
        one.p.func == other.p.func
        and one.p.args == other.p.args
        and given == given_other
        and same_maker(*makers)
    )


def qconfig_equals(q1: QConfigAny, q2: QConfigAny) -> bool:
    """Whether two make the same observers."""
    if q1 is None or q2 is None:
        return q1 == q2
    return same_maker(q1.activation, q2.activation) and same_maker(q1.weight, q2.weight)
