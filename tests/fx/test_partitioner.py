"""Graphs cut by what operators are supported: the same parts and the same text as PyTorch's."""

from __future__ import annotations

import operator
from typing import Any

import pytest

import xtensor


def passes(library: Any) -> Any:
    """The modules that a partitioner needs."""
    from importlib import import_module

    names = ("infra.partitioner", "operator_support", "utils.fuser_utils")
    return [import_module(f"{library.__name__}.fx.passes.{name}") for name in names]


def several_results(lib: Any) -> Any:
    def f(a, b):
        x = a + b
        y = lib.relu(x)
        z = y * 2
        return lib.sigmoid(x), lib.sigmoid(y), lib.sigmoid(z)

    return f


def around(lib: Any) -> Any:
    def f(a, b):
        c = a + b
        d = lib.sigmoid(c)
        return lib.relu(d + a) * lib.relu(c)

    return f


def module(lib: Any) -> Any:
    class Net(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.l = lib.nn.Linear(2, 2)
            self.w = lib.nn.Parameter(lib.ones(2))

        def forward(self, x):
            return lib.relu(self.l(x) + self.w)

    return Net()


FUNCTIONS = {
    "one part": lambda lib: lambda a, b: lib.sigmoid(lib.relu(a + b)) + b,
    "two parts": lambda lib: lambda a, b: lib.relu(a + b) * 2 + lib.relu(b - a),
    "several results": several_results,
    "around a node": around,
    "single nodes": lambda lib: lambda a: lib.relu(lib.sigmoid(lib.relu(a))),
    "module": module,
}


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_parts(torch: Any, name: str, alone: bool) -> None:
    told = []
    for lib in (torch, xtensor):
        partitioner, support, _ = passes(lib)
        targets = (lib.relu, operator.add, operator.mul, "l")
        graph = lib.fx.symbolic_trace(FUNCTIONS[name](lib))
        taken = support.create_op_support(lambda modules, node, targets=targets: node.target in targets)
        found = partitioner.CapabilityBasedPartitioner(graph, taken, allows_single_node_partition=alone)
        parts = found.propose_partitions()
        made = found.fuse_partitions(parts)
        codes = [made.code, *[c.code for c in made.children() if isinstance(c, lib.fx.GraphModule)]]
        cut = [(part.id, part.size(), sorted(node.name for node in part.nodes)) for part in parts]
        told.append((cut, [code.replace("xtensor", "torch") for code in codes]))
    assert told[0] == told[1]


def test_a_cut_graph_computes_the_same() -> None:
    partitioner, support, _ = passes(xtensor)
    net = module(xtensor)
    taken = support.create_op_support(lambda modules, node: node.op.startswith("call_"))
    graph = xtensor.fx.symbolic_trace(net)
    made = partitioner.CapabilityBasedPartitioner(graph, taken).partition_and_fuse()
    x = xtensor.ones(1, 2)
    assert xtensor.equal(made(x), net(x))


def test_support(torch: Any) -> None:
    told = []
    for lib in (torch, xtensor):
        _, support, _ = passes(lib)
        graph = lib.fx.symbolic_trace(module(lib))
        from importlib import import_module

        import_module(f"{lib.__name__}.fx.passes.shape_prop").ShapeProp(graph).propagate(lib.ones(1, 2))
        modules = dict(graph.named_modules())
        table = support.OperatorSupport(
            {f"{lib.__name__}.relu": None, "_operator.add": (((lib.float32,), (lib.float64,)), {})}
        )
        kinds = support.OpSupports
        each = [
            table,
            support.chain(table, kinds.decline_if_node_in_names({"relu"})),
            support.any_chain(
                table, support.create_op_support(lambda modules, node: node.op == "call_module")
            ),
            kinds.decline_if_input_dtype(lib.float32),
        ]
        told.append([[one.is_node_supported(modules, node) for node in graph.graph.nodes] for one in each])
    assert told[0] == told[1]


def test_nodes_that_cannot_be_one(torch: Any) -> None:
    told = []
    for lib in (torch, xtensor):
        _, _, fuser = passes(lib)
        graph = lib.fx.symbolic_trace(several_results(lib))
        nodes = {node.name: node for node in graph.graph.nodes}
        apart, together = [nodes["add"], nodes["mul"]], [nodes["add"], nodes["relu"]]
        told.append([fuser.validate_partition(apart), fuser.validate_partition(together)])
        told[-1].append([node.name for node in fuser.topo_sort([nodes["mul"], nodes["relu"], nodes["add"]])])
        with pytest.raises(AssertionError, match="cycle"):
            fuser.fuse_by_partitions(graph, [dict.fromkeys(apart)])
    assert told[0] == told[1]
