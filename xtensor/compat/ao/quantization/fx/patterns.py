"""Patterns of a backend found in a graph, and the qconfig of each node."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from .....fx.graph import Graph
from .....fx.node import Node
from .....nn.modules.module import Module
from ...nn.intrinsic.modules.fused import _FusedModule
from ..backend_config import BackendConfig, BackendPatternConfig
from ..qconfig_mapping import QConfigMapping

__all__ = ["Match", "kind_of", "matches", "module_of", "qconfigs"]


class Match(NamedTuple):
    """Nodes that follow one another, and the pattern that they are."""

    nodes: tuple[Node, ...]
    config: BackendPatternConfig


def module_of(node: Any, modules: dict[str, Module]) -> Any:
    """The module that a node calls; None for another node."""
    return modules[str(node.target)] if isinstance(node, Node) and node.op == "call_module" else None


def kind_of(node: Node, modules: dict[str, Module]) -> Any:
    """What a pattern calls a node: a class of modules, a function or a method's name."""
    if node.op == "call_module":
        return type(module_of(node, modules))
    return node.target if node.op in ("call_function", "call_method") else None


def matches(
    graph: Graph,
    modules: dict[str, Module],
    configs: Iterable[BackendPatternConfig],
    skipped: Collection[Node] = (),
) -> list[Match]:
    """The patterns in a graph, the last first; of several that end in a node the longest. A value within one has no other use."""
    ends: dict[Any, list[BackendPatternConfig]] = {}
    for config in configs:
        parts = config.pattern if isinstance(config.pattern, tuple) else (config.pattern,)
        ends.setdefault(parts[-1], []).append(config)
    for each in ends.values():
        each.sort(key=lambda c: -len(c.pattern) if isinstance(c.pattern, tuple) else -1)
    found: list[Match] = []
    taken = set(skipped)
    for node in reversed(graph.nodes):
        for config in ends.get(kind_of(node, modules), ()) if node not in taken else ():
            parts = config.pattern if isinstance(config.pattern, tuple) else (config.pattern,)
            nodes = followed(node, parts, modules, taken)
            if nodes:
                taken.update(nodes)
                found.append(Match(nodes, config))
                break
    return found


def followed(
    last: Node, parts: tuple[Any, ...], modules: dict[str, Module], taken: set[Node]
) -> tuple[Node, ...]:
    """The nodes that end in this one and are of these kinds; none where there are not."""
    nodes = [last]
    for part in reversed(parts[:-1]):
        before = nodes[-1].args[0] if nodes[-1].args else None
        if (
            not isinstance(before, Node)
            or before in taken
            or len(before.users) != 1
            or kind_of(before, modules) != part
        ):
            return ()
        nodes.append(before)
    return tuple(reversed(nodes))


def qconfigs(
    graph: Graph, modules: dict[str, Module], scopes: dict[str, tuple[str, Any]], mapping: QConfigMapping
) -> dict[str, Any]:
    """The qconfig of each node by its name; None for inputs and results."""
    counts: dict[Any, int] = {}
    found: dict[str, Any] = {}
    for node in graph.nodes:
        kind = kind_of(node, modules)
        path, owner = scopes.get(node.name, ("", None))
        if node.op == "call_module":
            parent = str(node.target).rpartition(".")[0]
            fallback = mapping.global_qconfig
            if (
                isinstance(module_of(node, modules), _FusedModule)
                and kind not in mapping.object_type_qconfigs
            ):
                kind = type(module_of(node, modules)[0])
            qconfig = of_module(mapping, kind, str(node.target), fallback)
        elif node.op in ("call_function", "call_method"):
            parent = path
            qconfig = of_module(
                mapping, owner, path, mapping.object_type_qconfigs.get(kind, mapping.global_qconfig)
            )
        elif node.op == "get_attr":
            found[node.name] = of_module(mapping, owner, path, mapping.global_qconfig)
            continue
        else:
            found[node.name] = None
            continue
        number = counts.get((parent, kind), 0)
        counts[parent, kind] = number + 1
        ordered = mapping.module_name_object_type_order_qconfigs
        found[node.name] = ordered.get((parent, kind, number), qconfig)
    return found


def of_module(mapping: QConfigMapping, kind: Any, name: str, fallback: Any) -> Any:
    """The qconfig of what is of a class and a name: by the name or that of a module around, by an expression, by the class."""
    found = mapping.object_type_qconfigs.get(kind, fallback)
    for expression, qconfig in mapping.module_name_regex_qconfigs.items():
        if re.match(expression, name):
            found = qconfig
            break
    while name:
        if name in mapping.module_name_qconfigs:
            return mapping.module_name_qconfigs[name]
        name = name.rpartition(".")[0]
    return found


def weighted(backend: BackendConfig, kind: Any) -> dict[str, int]:
    """Which arguments of a function are its weight and its bias."""
    config = backend._by_pattern.get(kind)
    return config._input_type_to_index if config is not None else {}
