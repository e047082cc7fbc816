"""A graph cut into as few parts as can be for what another compiler or device takes of it."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from ...graph_module import GraphModule
from ...names import qualified_name
from ...node import Node
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions, leads_back

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """Nodes that become one module. nodes: a dict, as it keeps their order."""

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None) -> None:
        self.id = id
        self.nodes: dict[Node, int | None] = dict.fromkeys(nodes or ())

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """One more."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """One less."""
        del self.nodes[node]

    def size(self) -> int:
        """How many there are."""
        return len(self.nodes)


class CapabilityBasedPartitioner:
    """Finds the parts of a graph that `operator_support` takes, and makes modules of them.

    allows_single_node_partition: whether a part may have one node alone. non_compute_ops: paths of functions that count for nothing there, since they
    compute nothing; allowed_single_node_partition_ops: paths of those that may be alone all the same.

    >>> from xtensor.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    >>> from xtensor.fx.passes.operator_support import create_op_support
    >>> graph = xtensor.fx.symbolic_trace(lambda a, b: xtensor.relu(a + b).sin())
    >>> taken = create_op_support(lambda modules, node: node.name in ("add", "relu"))
    >>> made = CapabilityBasedPartitioner(graph, taken).partition_and_fuse()
    >>> [node.name for node in made.graph.nodes]
    ['a', 'b', 'fused_0', 'sin', 'output']
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
    ) -> None:
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []

    def propose_partitions(self) -> list[Partition]:
        """The parts, the last in the graph first: each as large as can be without using, by way of others, what it makes."""
        home: dict[Node, Partition] = {}
        modules = dict(self.graph_module.named_modules())
        count = 0
        parts: dict[int, Partition] = {}

        def along(node: Node) -> Iterable[Node]:
            return home[node].nodes if node in home else (node,)

        for node in reversed(self.graph_module.graph.nodes):
            if not self.operator_support.is_node_supported(modules, node):
                continue
            own = home[node] = parts[count] = Partition(count, [node])
            count += 1
            for user in node.users:
                other = home.get(user)
                if other is None or other is own or leads_back({*own.nodes, *other.nodes}, along):
                    continue
                into, gone = (own, other) if own.size() >= other.size() else (other, own)
                into.nodes.update(gone.nodes)
                home.update(dict.fromkeys(gone.nodes, into))
                del parts[gone.id]  # type: ignore[arg-type]
                own = into
        for node in self.graph_module.graph.nodes:
            if node.op == "call_function" and node.target is operator.getitem:
                self._follow(node, home)
        return [part for part in parts.values() if part.size() and self._is_worth(part)]

    def _follow(self, node: Node, home: dict[Node, Partition]) -> None:
        """Have the choice of a result in the part that makes it."""
        maker = node.all_input_nodes[0]
        if maker in home and home.get(node) is not home[maker]:
            if node in home:
                home[node].remove_node(node)
            home[maker].add_node(node)
            home[node] = home[maker]

    def _is_worth(self, part: Partition) -> bool:
        """Whether a part has more than one node that computes."""
        if self.allows_single_node_partition:
            return True
        idle = {*self.non_compute_ops, "_operator.getitem"}
        names = [qualified_name(n.target) if n.op == "call_function" else "" for n in part.nodes]
        if any(name in self.allowed_single_node_partition_ops for name in names):
            return True
        return sum(name not in idle for name in names) > 1

    def fuse_partitions(self, partitions: Sequence[Partition], prefix: str = "fused_") -> GraphModule:
        """Make modules of the parts, in place; see `fuse_by_partitions`."""
        return fuse_by_partitions(self.graph_module, [part.nodes for part in partitions], prefix)

    def remove_bookend_non_compute_ops(self, partitions: Sequence[Partition]) -> None:
        """Take what computes nothing out of the parts where they begin and end."""
        idle = set(self.non_compute_ops)

        def is_idle(node: Node) -> bool:
            return node.op == "call_function" and qualified_name(node.target) in idle

        for part in partitions:
            gone: set[Node] = set()
            more = True
            while more:
                left = set(part.nodes) - gone
                edge = {
                    node
                    for node in left
                    if is_idle(node)
                    and (left.isdisjoint(node.all_input_nodes) or left.isdisjoint(node.users))
                }
                gone |= edge
                more = bool(edge)
            for node in gone:
                part.remove_node(node)

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Find the parts and make modules of them."""
        return self.fuse_partitions(self.propose_partitions(), prefix)
