"""What `quantize_fx` is told of modules that it shall leave alone, or treat in another way."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..qconfig_mapping import QConfigMapping
from ..quant_type import QuantType

__all__ = ["ConvertCustomConfig", "FuseCustomConfig", "PrepareCustomConfig", "StandaloneModuleConfigEntry"]

Kinds = dict[Any, Any]


class StandaloneModuleConfigEntry(NamedTuple):
    """How a module is prepared by itself; `qconfig_mapping` None: as the model's."""

    qconfig_mapping: QConfigMapping | None
    example_inputs: tuple[Any, ...]
    prepare_custom_config: PrepareCustomConfig | None
    backend_config: Any


class PrepareCustomConfig:
    """What `prepare_fx` and `prepare_qat_fx` are told.

    >>> Q = xtensor.ao.quantization
    >>> Q.fx.custom_config.PrepareCustomConfig().set_non_traceable_module_names(["head"]).non_traceable_module_names
    ['head']
    """

    def __init__(self) -> None:
        self.standalone_module_names: dict[str, StandaloneModuleConfigEntry] = {}
        self.standalone_module_classes: Kinds = {}
        self.float_to_observed_mapping: dict[QuantType, Kinds] = {}
        self.non_traceable_module_names: list[str] = []
        self.non_traceable_module_classes: list[type] = []
        self.input_quantized_indexes: list[int] = []
        self.output_quantized_indexes: list[int] = []
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return f"PrepareCustomConfig({ {n: v for n, v in vars(self).items() if v} })"

    def set_standalone_module_name(
        self,
        module_name: str,
        qconfig_mapping: QConfigMapping | None,
        example_inputs: tuple[Any, ...],
        prepare_custom_config: PrepareCustomConfig | None,
        backend_config: Any,
    ) -> PrepareCustomConfig:
        """Have a module prepared by itself."""
        self.standalone_module_names[module_name] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_standalone_module_class(
        self,
        module_class: type,
        qconfig_mapping: QConfigMapping | None,
        example_inputs: tuple[Any, ...],
        prepare_custom_config: PrepareCustomConfig | None,
        backend_config: Any,
    ) -> PrepareCustomConfig:
        """Have all modules of a class prepared by themselves."""
        self.standalone_module_classes[module_class] = StandaloneModuleConfigEntry(
            qconfig_mapping, example_inputs, prepare_custom_config, backend_config
        )
        return self

    def set_float_to_observed_mapping(
        self, float_class: type, observed_class: type, quant_type: QuantType = QuantType.STATIC
    ) -> PrepareCustomConfig:
        """Have modules of a class replaced by `observed_class.from_float(module)`."""
        if quant_type is not QuantType.STATIC:
            raise ValueError(
                "set_float_to_observed_mapping is currently only supported for static quantization"
            )
        self.float_to_observed_mapping.setdefault(quant_type, {})[float_class] = observed_class
        return self

    def set_non_traceable_module_names(self, module_names: list[str]) -> PrepareCustomConfig:
        """Modules that are called and not looked into."""
        self.non_traceable_module_names = module_names
        return self

    def set_non_traceable_module_classes(self, module_classes: list[type]) -> PrepareCustomConfig:
        """Classes of such modules."""
        self.non_traceable_module_classes = module_classes
        return self

    def set_input_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Which arguments are quantised tensors."""
        self.input_quantized_indexes = indexes
        return self

    def set_output_quantized_indexes(self, indexes: list[int]) -> PrepareCustomConfig:
        """Which results are to be quantised tensors."""
        self.output_quantized_indexes = indexes
        return self

    def set_preserved_attributes(self, attributes: list[str]) -> PrepareCustomConfig:
        """Attributes of the model that the prepared one has, too."""
        self.preserved_attributes = attributes
        return self

    def to_dict(self) -> dict[str, Any]:
        """What is said, as a dict."""
        return {name: value for name, value in vars(self).items() if value}

    @classmethod
    def from_dict(cls, prepare_custom_config_dict: dict[str, Any]) -> PrepareCustomConfig:
        """The one that `to_dict` gave."""
        return filled(cls(), prepare_custom_config_dict)


class ConvertCustomConfig:
    """What `convert_fx` is told.

    >>> xtensor.ao.quantization.fx.custom_config.ConvertCustomConfig().set_preserved_attributes(["name"]).preserved_attributes
    ['name']
    """

    def __init__(self) -> None:
        self.observed_to_quantized_mapping: dict[QuantType, Kinds] = {}
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return f"ConvertCustomConfig({ {n: v for n, v in vars(self).items() if v} })"

    def set_observed_to_quantized_mapping(
        self, observed_class: type, quantized_class: type, quant_type: QuantType = QuantType.STATIC
    ) -> ConvertCustomConfig:
        """Have modules of a class replaced by `quantized_class.from_observed(module)`."""
        self.observed_to_quantized_mapping.setdefault(quant_type, {})[observed_class] = quantized_class
        return self

    def set_preserved_attributes(self, attributes: list[str]) -> ConvertCustomConfig:
        """Attributes of the model that the converted one has, too."""
        self.preserved_attributes = attributes
        return self

    def to_dict(self) -> dict[str, Any]:
        """What is said, as a dict."""
        return {name: value for name, value in vars(self).items() if value}

    @classmethod
    def from_dict(cls, convert_custom_config_dict: dict[str, Any]) -> ConvertCustomConfig:
        """The one that `to_dict` gave."""
        return filled(cls(), convert_custom_config_dict)


class FuseCustomConfig:
    """What `fuse_fx` is told.

    >>> xtensor.ao.quantization.fx.custom_config.FuseCustomConfig().set_preserved_attributes(["name"]).preserved_attributes
    ['name']
    """

    def __init__(self) -> None:
        self.preserved_attributes: list[str] = []

    def __repr__(self) -> str:
        return f"FuseCustomConfig({ {n: v for n, v in vars(self).items() if v} })"

    def set_preserved_attributes(self, attributes: list[str]) -> FuseCustomConfig:
        """Attributes of the model that the fused one has, too."""
        self.preserved_attributes = attributes
        return self

    def to_dict(self) -> dict[str, Any]:
        """What is said, as a dict."""
        return {name: value for name, value in vars(self).items() if value}

    @classmethod
    def from_dict(cls, fuse_custom_config_dict: dict[str, Any]) -> FuseCustomConfig:
        """The one that `to_dict` gave."""
        return filled(cls(), fuse_custom_config_dict)


def filled(config: Any, given: dict[str, Any]) -> Any:
    """The config with attributes of a dict; ValueError for others."""
    for name, value in given.items():
        if name not in vars(config):
            raise ValueError(f"{type(config).__name__} has no {name!r}")
        setattr(config, name, value)
    return config
