"""Modules' calls in an exported program's file: which modules each operator is of, and the form of calls that was kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..trees import TreeSpec, tree_structure, tree_unflatten
from .calls import ModuleCallEntry, ModuleCallSignature, Modules
from .codec import LARGEST_NODES, decode, encode, wrong
from .graph import Node
from .signature import ConstantArgument, TensorArgument
from .tracing import Slot

__all__ = ["calls_from", "calls_to", "stacks_from"]


def stacks_from(value: Any) -> list[Modules]:
    """The modules that run, for each list of them; FileFormatError where one is none."""
    found: list[Modules] = []
    for stack in value if isinstance(value, list) else [None]:
        if not isinstance(stack, list) or len(stack) > LARGEST_NODES:
            raise wrong("the modules of its operators")
        made: Modules = {}
        for entry in stack:
            match entry:
                case [str(key), str(name), str(kind)]:
                    made[key] = (name, kind)
                case _:
                    raise wrong("the modules of its operators")
        found.append(made)
    return found


def calls_to(calls: Iterable[ModuleCallEntry]) -> list[Any]:
    """Modules and the form of their calls as JSON."""
    return [[call.fqn, None if call.signature is None else form_to(call.signature)] for call in calls]


def form_to(form: ModuleCallSignature) -> Any:
    """The form of a call as JSON."""

    def tree(spec: TreeSpec) -> Any:
        return encode(tree_unflatten([Slot(at) for at in range(spec.num_leaves)], spec))

    def argument(value: TensorArgument | ConstantArgument) -> Any:
        return [value.name] if isinstance(value, TensorArgument) else [value.name, encode(value.value)]

    inputs, outputs = list(map(argument, form.inputs)), list(map(argument, form.outputs))
    return [inputs, outputs, tree(form.in_spec), tree(form.out_spec), form.forward_arg_names]


def calls_from(value: Any, nodes: dict[str, Node]) -> list[ModuleCallEntry]:
    """Modules and the form of their calls; FileFormatError where one is none."""
    found = []
    for entry in value if isinstance(value, list) else [None]:
        match entry:
            case [str(name), None]:
                found.append(ModuleCallEntry(name))
            case [str(name), [list(inputs), list(outputs), arguments, result, names]]:
                if names is not None and not (
                    isinstance(names, list) and all(isinstance(each, str) for each in names)
                ):
                    raise wrong("the form of a module's call")
                trees = decode(arguments, {}), decode(result, {})
                if not isinstance(trees[0], tuple) or [*map(type, trees[0])] != [tuple, dict]:
                    raise wrong("the form of a module's call")
                specs = list(map(tree_structure, trees))
                told = [[argument_from(each, nodes) for each in leaves] for leaves in (inputs, outputs)]
                if name and any(
                    len(leaves) != spec.num_leaves for leaves, spec in zip(told, specs, strict=True)
                ):
                    raise wrong("the form of a module's call")
                found.append(
                    ModuleCallEntry(name, ModuleCallSignature(told[0], told[1], specs[0], specs[1], names))
                )
            case _:
                raise wrong("the form of a module's call")
    return found


def argument_from(value: Any, nodes: dict[str, Node]) -> TensorArgument | ConstantArgument:
    """A leaf of a call's arguments or result."""
    match value:
        case [str(name)] if name in nodes:
            return TensorArgument(name)
        case [str(name), inner]:
            return ConstantArgument(name, decode(inner, nodes))
    raise wrong("the form of a module's call")
