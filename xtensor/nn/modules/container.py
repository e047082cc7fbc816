"""Containers: modules and parameters in sequences and dictionaries."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

from ... import capture, checks
from ...checks import tensor_type
from ...tensor import Tensor
from ..parameter import Parameter
from .module import Module

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]

S = TypeVar("S", bound="Sequential")
L = TypeVar("L", bound="ModuleList")
P = TypeVar("P", bound="ParameterList")
D = TypeVar("D", bound="ParameterDict")


def indent_all(text: str, spaces: int) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first, *[" " * spaces + line for line in rest]])


def absolute(index: Any, size: int) -> int:
    """An index counted from the front."""
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index + size if index < 0 else index


def pairs(given: Any, kind: str) -> Iterator[tuple[Any, Any]]:
    """The key/value pairs of an iterable, each checked to be one."""
    for j, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(
                f"{kind} update sequence element #{j} should be Iterable; is{type(pair).__name__}"
            )
        listed: Any = pair
        if len(listed) != 2:
            raise ValueError(f"{kind} update sequence element #{j} has length {len(listed)}; 2 is required")
        yield listed[0], listed[1]


class Container(Module):
    """Modules by keyword (deprecated: Module itself does this).

    Shape: none, for it is not called.

    Raises: TypeError for what is no module.
    """

    def __init__(self, **kwargs: Any) -> None:
        checks.warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that "
            "instead.",
            FutureWarning,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


def taken(container: Any, key: Any) -> Any:
    """An item, which is taken out."""
    found = container[key]
    del container[key]
    return found


def check_sequential(other: Any) -> None:
    """Refuse to add what is no Sequential."""
    if not isinstance(other, Sequential):
        raise ValueError(
            f"add operator supports only objects of Sequential class, but {type(other)} is given."
        )


class Sequential(Module):
    """Modules called one after the other, each on the result of the one before: `Sequential(a, b)` or of a dict.

    Shape: input that of the first module, output that of the last.

    Raises: TypeError for what is no module.

    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> model(xtensor.zeros(3, 4)).shape
    xtensor.Size([3, 2])
    >>> model[0]
    Linear(in_features=4, out_features=8, bias=True)
    """

    _modules: dict[str, Any]

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _key(self, index: Any) -> str:
        return list(self._modules)[absolute(index, len(self))]

    def _renumber(self) -> None:
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._key(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._key(idx), module)

    def __delitem__(self, idx: Any) -> None:
        if isinstance(idx, slice):
            for key in list(self._modules)[idx]:
                delattr(self, key)
        else:
            delattr(self, self._key(idx))
        self._renumber()

    def __len__(self) -> int:
        return len(self._modules)

    def __add__(self, other: Any) -> Sequential:
        check_sequential(other)
        return Sequential(*self, *other)

    def pop(self, key: Any) -> Module:
        """Take a module out."""
        return taken(self, key)

    def __iadd__(self: S, other: Any) -> S:
        check_sequential(other)
        offset = len(self)
        for i, module in enumerate(other):
            self.add_module(str(i + offset), module)
        return self

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*self._repeated(other, "*"))

    __rmul__ = __mul__

    def _repeated(self, times: Any, sign: str) -> list[Module]:
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for {sign}: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return list(self) * times

    def __imul__(self: S, other: int) -> S:
        every = self._repeated(other, "*=")
        for i in range(len(self), len(every)):
            self.add_module(str(i), every[i])
        return self

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input

    def append(self: S, module: Module) -> S:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self: S, index: int, module: Module) -> S:
        """Add a module before `index`."""
        capture.moved()
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self._modules)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        every = list(self._modules.values())
        every.insert(index + n if index < 0 else index, module)
        self._modules = {str(i): m for i, m in enumerate(every)}
        return self

    def extend(self: S, sequential: Iterable[Module]) -> S:
        """Add modules at the end."""
        for layer in sequential:
            self.append(layer)
        return self


class ModuleList(Module):
    """A list of modules, all registered.

    Shape: none, for it is not called.

    Raises: TypeError for what is no module.

    >>> layers = nn.ModuleList([nn.Linear(4, 4), nn.ReLU()])
    >>> layers.append(nn.Linear(4, 2))
    ModuleList(
      (0): Linear(in_features=4, out_features=4, bias=True)
      (1): ReLU()
      (2): Linear(in_features=4, out_features=2, bias=True)
    )
    """

    _modules: dict[str, Any]

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _get_abs_string_index(self, idx: Any) -> str:
        return str(absolute(idx, len(self)))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[self._get_abs_string_index(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._get_abs_string_index(idx), module)

    def __delitem__(self, idx: Any) -> None:
        if isinstance(idx, slice):
            for k in range(len(self._modules))[idx]:
                delattr(self, str(k))
        else:
            delattr(self, self._get_abs_string_index(idx))
        self._modules = {str(i): module for i, module in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __iadd__(self: L, modules: Iterable[Module]) -> L:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __repr__(self) -> str:
        """Equal neighbours are shown once, with their number."""
        texts = [repr(module) for module in self]
        if not texts:
            return f"{self._get_name()}()"
        runs: list[list[Any]] = []
        for i, text in enumerate(texts):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = []
        for first, last, text in runs:
            label = f"({first})" if first == last else f"({first}-{last})"
            count = "" if first == last else f"{last - first + 1} x "
            lines.append(indent_all(f"{label}: {count}{text}", 2))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def insert(self, index: int, module: Module) -> None:
        """Add a module before `index`."""
        for i in range(len(self._modules), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module

    def append(self: L, module: Module) -> L:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Take a module out."""
        return taken(self, key)

    def extend(self: L, modules: Iterable[Module]) -> L:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self


class ModuleDict(Module):
    """A dictionary of modules, all registered.

    Shape: none, for it is not called.

    Raises: TypeError for what is no module.

    >>> heads = nn.ModuleDict({"age": nn.Linear(4, 1)})
    >>> heads["name"] = nn.Linear(4, 10)
    >>> list(heads)
    ['age', 'name']
    """

    _modules: dict[str, Any]

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        capture.moved()
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take everything out."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take the module of that key out."""
        return taken(self, key)

    def keys(self) -> Any:
        """The names of the modules, in order."""
        return self._modules.keys()

    def items(self) -> Any:
        """The names with the modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules, in order."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a mapping or of key/value pairs."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        mapping = isinstance(modules, (ModuleDict, Mapping))
        for key, module in modules.items() if mapping else pairs(modules, "ModuleDict"):
            self[key] = module


def described(value: Any, kind: Any) -> str:
    """A parameter in the text of a list or dictionary of them."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.size())
    place = f" ({value.device})" if value.device.type not in ("cpu", "meta") else ""
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{name} containing: [{kind(value)} of size {size}{place}]"


class ParameterList(Module):
    """A list of parameters, all registered; a Tensor becomes a Parameter, anything else is kept as it is.

    Shape: none, for it is not called.

    Raises: TypeError for what cannot be iterated; IndexError for an index out of range.

    >>> nn.ParameterList([xtensor.zeros(2), xtensor.zeros(3)])[1].shape
    xtensor.Size([3])
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            made = type(self)()
            for i in range(*idx.indices(len(self))):
                made.append(self[i])
            return made
        return getattr(self, str(absolute(idx, len(self))))

    def __setitem__(self, idx: int, param: Any) -> None:
        if isinstance(param, Tensor) and not isinstance(param, Parameter):
            param = Parameter(param)
        setattr(self, str(absolute(idx, len(self))), param)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self: P, parameters: Iterable[Any]) -> P:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [key for key in super().__dir__() if not key.isdigit()]

    def append(self: P, value: Any) -> P:
        """Add a value at the end."""
        index = len(self)
        self._size += 1
        self[index] = value
        return self

    def extend(self: P, values: Iterable[Any]) -> P:
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join([f"  ({k}): {described(p, lambda t: t.dtype)}" for k, p in enumerate(self)])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dictionary of parameters, all registered; a Tensor becomes a Parameter, anything else is kept as it is.

    Shape: none, for it is not called.

    Raises: TypeError for keys that are no text.

    >>> nn.ParameterDict({"left": xtensor.zeros(2), "right": xtensor.zeros(3)})["right"].shape
    xtensor.Size([3])
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        if isinstance(value, Tensor) and not isinstance(value, Parameter):
            value = Parameter(value)
        setattr(self, self._key_to_attr(key), value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Another dictionary of the same parameters."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of `key`, which is `default` if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take everything out."""
        for key in self._keys.copy():
            del self[key]

    def pop(self, key: str) -> Any:
        """Take the value of that key out."""
        return taken(self, key)

    def popitem(self) -> tuple[str, Any]:
        """Take the last key and its value out."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return self[key] if key in self else default  # noqa: SIM401  # this is get

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """A dictionary of these keys, all with the value `default`."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Any:
        """The keys of the parameters, in order."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """The keys with the parameters."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterator[Any]:
        """The parameters, in order."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add the values of a mapping (by sorted keys, unless it is ordered) or of key/value pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                + type(parameters).__name__
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            found = parameters.items()
        elif isinstance(parameters, Mapping):
            found = sorted(parameters.items())
        else:
            found = pairs(parameters, "ParameterDict")
        for key, value in found:
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join([f"  ({k}): {described(p, tensor_type)}" for k, p in self.items()])

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> ParameterDict:
        made = other.copy()
        made.update(self)
        return made

    def __ior__(self: D, other: Any) -> D:
        self.update(other)
        return self
