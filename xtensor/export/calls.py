"""Which modules' calls an operator is part of, and the form of calls that are to be had again as modules."""

from __future__ import annotations

import contextlib
import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .. import trees
from ..nn.hooks import register_module_forward_hook, register_module_forward_pre_hook
from ..nn.modules.module import Module
from ..tensor import Tensor
from .dims import size_of
from .graph import Node
from .signature import ConstantArgument, TensorArgument

__all__ = ["CallSpec", "ModuleCallEntry", "ModuleCallSignature", "Stack", "forward_names"]

Argument = TensorArgument | ConstantArgument
Modules = dict[str, tuple[str, str]]
"""The modules that run, the outermost first: by the key of the call, the module's name and that of its class."""
ROOT = "L__self__"


@dataclass
class CallSpec:
    """The form of arguments `(args, kwargs)` and of the result, as trees."""

    in_spec: trees.TreeSpec | None
    out_spec: trees.TreeSpec | None


@dataclass
class ModuleCallSignature:
    """A module's call: the leaves of its arguments `(args, kwargs)` and of its result, and their form."""

    inputs: list[Argument]
    outputs: list[Argument]
    in_spec: trees.TreeSpec
    out_spec: trees.TreeSpec
    forward_arg_names: list[str] | None = None


@dataclass
class ModuleCallEntry:
    """A module by its name, with the form of its call where that was to be kept."""

    fqn: str
    signature: ModuleCallSignature | None = None


def forward_names(forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str] | None:
    """The names of the parameters that arguments are for, in their order; None where the function does not tell."""
    try:
        bound = inspect.signature(forward).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return None
    names: list[str] = []
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}_{at}" for at in range(len(value))]
        elif kind is inspect.Parameter.VAR_KEYWORD:
            names += list(value)
        else:
            names.append(name)
    return names


class Stack:
    """The calls of modules that run while operators are recorded.

    root: the module whose parts have names. preserved: the names of modules whose calls' form is noted. node_of: the node that gave a tensor.
    """

    node_of: Callable[[Tensor], Node]

    def __init__(self, root: Module | None = None, preserved: Iterable[str] = ()) -> None:
        self.names: dict[int, str] = {}
        self.every: list[str] = []
        for name, part in root.named_modules(remove_duplicate=False) if root is not None else ():
            self.names.setdefault(id(part), name)
            self.every.append(name)
        self.preserved = set(preserved)
        self.signatures: dict[str, ModuleCallSignature] = {}
        self.now: Modules = {}
        self._counts: Counter[str] = Counter()
        self._thread = threading.get_ident()

    def entries(self, whole: ModuleCallSignature) -> list[ModuleCallEntry]:
        """All modules, the root with this form of its call, and the others with what was noted of theirs."""
        rest = [ModuleCallEntry(name, self.signatures.get(name)) for name in self.every if name]
        return [ModuleCallEntry("", whole), *rest]

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """A block in which calls of modules on this thread are noted."""
        outer: list[Modules] = []

        def name_of(module: Module) -> str | None:
            return self.names.get(id(module)) if threading.get_ident() == self._thread else None

        def enter(module: Module, args: Any) -> None:
            name = name_of(module)
            if name is not None:
                number, kind = self._counts[name], type(module)
                self._counts[name] += 1
                key = f"{ROOT}{name}@{number}" if number else f"{ROOT}{name}"
                outer.append(self.now)
                self.now = {**self.now, key: (name, f"{kind.__module__}.{kind.__qualname__}")}

        def leave(module: Module, args: Any, *rest: Any) -> None:
            name = name_of(module)
            if name is not None and outer:
                # A call of another thread's that has outlived the block brings no keyword arguments.
                kwargs, result = rest
                self.now = outer.pop()
                if name in self.preserved and name not in self.signatures:
                    self.signatures[name] = signature_of(module, args, kwargs, result, self.node_of)

        handles = [
            register_module_forward_pre_hook(enter),
            register_module_forward_hook(leave, with_kwargs=True, always_call=True),
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()


def signature_of(
    module: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    result: Any,
    node_of: Callable[[Tensor], Node],
) -> ModuleCallSignature:
    """The form of one call."""

    def told(value: Any) -> Argument:
        if isinstance(value, Tensor):
            return TensorArgument(node_of(value).name)
        return ConstantArgument("", size_of(value))

    inputs, in_spec = trees.tree_flatten((args, kwargs))
    outputs, out_spec = trees.tree_flatten(result)
    names = forward_names(module.forward, args, kwargs)
    return ModuleCallSignature(list(map(told, inputs)), list(map(told, outputs)), in_spec, out_spec, names)
