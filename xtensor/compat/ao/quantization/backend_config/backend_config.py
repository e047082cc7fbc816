"""What a backend can quantise: patterns of operators, each with the dtypes that it takes and how it is observed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from .....dtypes import dtype

__all__ = ["BackendConfig", "BackendPatternConfig", "DTypeConfig", "DTypeWithConstraints", "ObservationType"]


class ObservationType(Enum):
    """How the result of an operator is observed."""

    OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT = 0
    """By an observer of its own."""
    OUTPUT_SHARE_OBSERVER_WITH_INPUT = 1
    """By that of its first argument, whose numbers it keeps."""
    INPUT_OUTPUT_NOT_OBSERVED = 2
    """Not at all, nor are its arguments."""


@dataclass
class DTypeWithConstraints:
    """A dtype, and what quantised numbers of it have to keep to; None: whatever."""

    dtype: dtype | None = None
    quant_min_lower_bound: float | None = None
    quant_max_upper_bound: float | None = None
    scale_min_lower_bound: float | None = None
    scale_max_upper_bound: float | None = None
    scale_exact_match: float | None = None
    zero_point_exact_match: int | None = None


def constrained(value: Any) -> DTypeWithConstraints:
    return value if isinstance(value, DTypeWithConstraints) else DTypeWithConstraints(dtype=value)


class DTypeConfig:
    """The dtypes of an operator's arguments and result: quantised ones, float32 and float16.

    >>> Q = xtensor.ao.quantization
    >>> config = Q.backend_config.DTypeConfig(input_dtype=xtensor.quint8, output_dtype=xtensor.quint8, weight_dtype=xtensor.qint8)
    >>> config.weight_dtype
    xtensor.qint8
    """

    def __init__(
        self,
        input_dtype: Any = None,
        output_dtype: Any = None,
        weight_dtype: Any = None,
        bias_dtype: dtype | None = None,
        is_dynamic: bool | None = None,
    ) -> None:
        self.input_dtype_with_constraints = constrained(input_dtype)
        self.output_dtype_with_constraints = constrained(output_dtype)
        self.weight_dtype_with_constraints = constrained(weight_dtype)
        self.bias_dtype, self.is_dynamic = bias_dtype, is_dynamic

    @property
    def input_dtype(self) -> dtype | None:
        """Of the arguments."""
        return self.input_dtype_with_constraints.dtype

    @property
    def output_dtype(self) -> dtype | None:
        """Of the result."""
        return self.output_dtype_with_constraints.dtype

    @property
    def weight_dtype(self) -> dtype | None:
        """Of the weight."""
        return self.weight_dtype_with_constraints.dtype

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DTypeConfig) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        told = ("input_dtype", "output_dtype", "weight_dtype", "bias_dtype", "is_dynamic")
        return f"DTypeConfig({', '.join(f'{name}={getattr(self, name)}' for name in told)})"

    @classmethod
    def from_dict(cls, dtype_config_dict: dict[str, Any]) -> DTypeConfig:
        """The one that `to_dict` gave."""
        return cls(*[dtype_config_dict.get(name) for name in DTYPES])

    def to_dict(self) -> dict[str, Any]:
        """What is said, as a dict."""
        values = (
            self.input_dtype_with_constraints,
            self.output_dtype_with_constraints,
            self.weight_dtype_with_constraints,
            self.bias_dtype,
            self.is_dynamic,
        )
        return {name: value for name, value in zip(DTYPES, values, strict=True) if value is not None}


DTYPES = ("input_dtype", "output_dtype", "weight_dtype", "bias_dtype", "is_dynamic")


class BackendPatternConfig:
    """One pattern: a class of modules, a function, the name of a method, or a tuple of these that follow one another.

    >>> Q = xtensor.ao.quantization.backend_config
    >>> kind = Q.ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
    >>> Q.BackendPatternConfig(xtensor.nn.MaxPool2d).set_observation_type(kind).observation_type.name
    'OUTPUT_SHARE_OBSERVER_WITH_INPUT'
    """

    def __init__(self, pattern: Any = None) -> None:
        self.pattern = pattern
        self.observation_type = ObservationType.OUTPUT_USE_DIFFERENT_OBSERVER_AS_INPUT
        self.dtype_configs: list[DTypeConfig] = []
        self.root_module: Any = None
        self.qat_module: Any = None
        self.reference_quantized_module: Any = None
        self.fused_module: Any = None
        self.fuser_method: Callable[..., Any] | None = None
        self._num_tensor_args_to_observation_type: dict[int, ObservationType] = {}
        self._input_type_to_index: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"BackendPatternConfig({ {n: v for n, v in vars(self).items() if v} })"

    def set_pattern(self, pattern: Any) -> BackendPatternConfig:
        """What is matched."""
        self.pattern = pattern
        return self

    def set_observation_type(self, observation_type: ObservationType) -> BackendPatternConfig:
        """How results are observed."""
        self.observation_type = observation_type
        return self

    def add_dtype_config(self, dtype_config: DTypeConfig) -> BackendPatternConfig:
        """Dtypes that it takes, besides those before."""
        self.dtype_configs.append(dtype_config)
        return self

    def set_dtype_configs(self, dtype_configs: list[DTypeConfig]) -> BackendPatternConfig:
        """All the dtypes that it takes."""
        self.dtype_configs = dtype_configs
        return self

    def set_root_module(self, root_module: Any) -> BackendPatternConfig:
        """The class that has the weight."""
        self.root_module = root_module
        return self

    def set_qat_module(self, qat_module: Any) -> BackendPatternConfig:
        """The class that takes its place in training."""
        self.qat_module = qat_module
        return self

    def set_reference_quantized_module(self, reference_quantized_module: Any) -> BackendPatternConfig:
        """The class that computes in real numbers by a quantised weight."""
        self.reference_quantized_module = reference_quantized_module
        return self

    def set_fused_module(self, fused_module: Any) -> BackendPatternConfig:
        """The class of what the modules of the pattern become as one."""
        self.fused_module = fused_module
        return self

    def set_fuser_method(self, fuser_method: Callable[..., Any]) -> BackendPatternConfig:
        """What makes one module of those of the pattern: `fuser_method(is_qat, first, second, ...)`."""
        self.fuser_method = fuser_method
        return self

    def _set_num_tensor_args_to_observation_type(
        self, num_tensor_args_to_observation_type: dict[int, ObservationType]
    ) -> BackendPatternConfig:
        self._num_tensor_args_to_observation_type = num_tensor_args_to_observation_type
        return self

    def _set_input_type_to_index(self, input_type_to_index: dict[str, int]) -> BackendPatternConfig:
        self._input_type_to_index = input_type_to_index
        return self

    def to_dict(self) -> dict[str, Any]:
        """What is said, as a dict."""
        made = {n: v for n, v in vars(self).items() if v and n != "dtype_configs"}
        return made | {"dtype_configs": [c.to_dict() for c in self.dtype_configs]}

    @classmethod
    def from_dict(cls, backend_pattern_config_dict: dict[str, Any]) -> BackendPatternConfig:
        """The one that `to_dict` gave."""
        made = cls()
        vars(made).update(backend_pattern_config_dict)
        made.dtype_configs = [
            c if isinstance(c, DTypeConfig) else DTypeConfig.from_dict(c) for c in made.dtype_configs
        ]
        return made


class BackendConfig:
    """The patterns of a backend, by which `quantize_fx` decides what is fused, observed and quantised.

    >>> Q = xtensor.ao.quantization.backend_config
    >>> config = Q.BackendConfig("mine").set_backend_pattern_config(Q.BackendPatternConfig(xtensor.nn.Linear))
    >>> [c.pattern.__name__ for c in config.configs]
    ['Linear']
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._by_pattern: dict[Any, BackendPatternConfig] = {}

    def __repr__(self) -> str:
        return f"BackendConfig({self.name!r}, {len(self._by_pattern)} patterns)"

    def set_name(self, name: str) -> BackendConfig:
        """What it is called."""
        self.name = name
        return self

    def set_backend_pattern_config(self, config: BackendPatternConfig) -> BackendConfig:
        """One pattern, in the place of what was said of it."""
        self._by_pattern[config.pattern] = config
        return self

    def set_backend_pattern_configs(self, configs: Iterable[BackendPatternConfig]) -> BackendConfig:
        """Several patterns."""
        for config in configs:
            self.set_backend_pattern_config(config)
        return self

    @property
    def configs(self) -> list[BackendPatternConfig]:
        """All patterns."""
        return list(self._by_pattern.values())

    def to_dict(self) -> dict[str, Any]:
        """What is said, as a dict."""
        return {"name": self.name, "configs": [c.to_dict() for c in self.configs]}

    @classmethod
    def from_dict(cls, backend_config_dict: dict[str, Any]) -> BackendConfig:
        """The one that `to_dict` gave."""
        made = cls(backend_config_dict.get("name", ""))
        given = backend_config_dict.get("configs", [])
        return made.set_backend_pattern_configs(
            c if isinstance(c, BackendPatternConfig) else BackendPatternConfig.from_dict(c) for c in given
        )
