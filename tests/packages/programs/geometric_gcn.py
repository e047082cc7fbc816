"""torch_geometric: a GCN on a small graph, trained, with a batch of graphs pooled."""

import torch
from same import done, fill, integers, numbers, show, steps
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, global_add_pool, global_mean_pool
from torch_geometric.utils import add_self_loops, degree, to_dense_adj, to_undirected

edges = to_undirected(integers(12, 2, 30), num_nodes=12)
data = Data(x=numbers(12, 5), edge_index=edges, y=integers(3, 12, seed=4))
show("edges", edges.float())
show("degrees", degree(edges[0], 12))
show("dense", to_dense_adj(add_self_loops(edges, num_nodes=12)[0], max_num_nodes=12))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = GCNConv(5, 16), GCNConv(16, 3)

    def forward(self, x, edge_index):
        return self.two(self.one(x, edge_index).relu(), edge_index)


net = fill(Net())
show("out", net(data.x, data.edge_index))
steps(
    net,
    lambda: nn.functional.cross_entropy(net(data.x, data.edge_index), data.y),
    optimizer=torch.optim.Adam(net.parameters(), lr=0.01),
)
batch = Batch.from_data_list(
    [data, Data(x=numbers(4, 5, seed=8), edge_index=integers(4, 2, 6, seed=9), y=integers(3, 4))]
)
out = net(batch.x, batch.edge_index)
show("mean", global_mean_pool(out, batch.batch))
show("sum", global_add_pool(out, batch.batch))
done()
