"""torch_geometric: a layer of one's own over message passing, scatter, softmax and sorted edges."""

import torch
from same import done, fill, integers, numbers, show
from torch import nn
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import coalesce, remove_self_loops, scatter, softmax, sort_edge_index, subgraph


class Difference(MessagePassing):
    def __init__(self, aggr):
        super().__init__(aggr=aggr)
        self.lin = nn.Linear(8, 5)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_i, x_j):
        return self.lin(torch.cat([x_i, x_j - x_i], -1)).relu()

    def update(self, out):
        return out + 1


x, edges = numbers(9, 4), integers(9, 2, 20)
for aggr in ("add", "mean", "max", "mul"):
    layer = fill(Difference(aggr))
    out = layer(x, edges)
    show(aggr, out)
    out.sum().backward()
    show(f"{aggr} gradient", layer.lin.weight.grad)
index = edges[1]
for reduce in ("sum", "mean", "min", "max"):
    show(f"scatter {reduce}", scatter(numbers(20, 3, seed=6), index, 0, 9, reduce))
show("softmax", softmax(numbers(20, seed=7), index, num_nodes=9))
kept, _ = remove_self_loops(edges)
show("sorted", sort_edge_index(kept).float())
show("coalesced", coalesce(kept, torch.ones(kept.shape[1]), 9)[1])
show("part", subgraph(torch.tensor([0, 1, 2, 3, 4]), edges, num_nodes=9)[0].float())
done()
