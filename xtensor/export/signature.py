"""What the inputs and outputs of an exported program are: parameters, buffers, constants, what users give and get."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

__all__ = [
    "ConstantArgument",
    "ExportGraphSignature",
    "InputKind",
    "InputSpec",
    "OutputKind",
    "OutputSpec",
    "TensorArgument",
]


class InputKind(Enum):
    """What an input is."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()


class OutputKind(Enum):
    """What an output is."""

    USER_OUTPUT = auto()
    BUFFER_MUTATION = auto()
    PARAMETER_MUTATION = auto()
    USER_INPUT_MUTATION = auto()


@dataclass(frozen=True)
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass(frozen=True)
class ConstantArgument:
    """A value that is no tensor, as it was when the program was exported."""

    name: str
    value: Any


@dataclass(frozen=True)
class InputSpec:
    """One input. target: the name of the parameter, buffer or constant. persistent: whether a buffer is in the state."""

    kind: InputKind
    arg: TensorArgument | ConstantArgument
    target: str | None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        kept = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{kept}"


@dataclass(frozen=True)
class OutputSpec:
    """One output. target: what it is the new value of."""

    kind: OutputKind
    arg: TensorArgument | ConstantArgument
    target: str | None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target='{self.target}'"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclass
class ExportGraphSignature:
    """The inputs and outputs of a program, in order."""

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _targets(self, kind: InputKind) -> tuple[str, ...]:
        return tuple([s.target for s in self.input_specs if s.kind is kind and s.target is not None])

    def _named(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind and s.target is not None}

    def _written(self, kind: OutputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.output_specs if s.kind is kind and s.target is not None}

    @staticmethod
    def _shown(arg: TensorArgument | ConstantArgument) -> Any:
        return arg.value if isinstance(arg, ConstantArgument) else arg.name

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return self._targets(InputKind.PARAMETER)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers."""
        return self._targets(InputKind.BUFFER)

    @property
    def non_persistent_buffers(self) -> frozenset[str]:
        """The names of the buffers that are not in the state."""
        return frozenset(
            s.target for s in self.input_specs if s.kind is InputKind.BUFFER and not s.persistent and s.target
        )

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of the constants."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The names of what users give, and the values that are fixed."""
        return tuple([self._shown(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT])

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The names of what users get, and the values that are fixed."""
        return tuple([self._shown(s.arg) for s in self.output_specs if s.kind is OutputKind.USER_OUTPUT])

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """The parameters' names by those of their nodes."""
        return self._named(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """The buffers' names by those of their nodes."""
        return self._named(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """The constants' names by those of their nodes."""
        return self._named(InputKind.CONSTANT_TENSOR)

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """The buffers that the program writes, by the nodes that have the new values."""
        return self._written(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self) -> dict[str, str]:
        """The parameters that the program writes, by the nodes that have the new values."""
        return self._written(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """The given tensors that the program writes, by the nodes that have the new values."""
        return self._written(OutputKind.USER_INPUT_MUTATION)

    def __str__(self) -> str:
        inputs = "".join(f"{spec}\n" for spec in self.input_specs)
        outputs = "".join(f"{spec}\n" for spec in self.output_specs)
        return f"\n# inputs\n{inputs}\n# outputs\n{outputs}"
