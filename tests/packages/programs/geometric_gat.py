"""torch_geometric: attention, GraphSAGE, GIN and edge weights, each with a gradient."""

from same import done, fill, integers, numbers, show
from torch import nn
from torch_geometric.nn import GATConv, GATv2Conv, GINConv, SAGEConv, TransformerConv

x, edges, weight = numbers(10, 6), integers(10, 2, 24), numbers(24, 3, seed=2)
layers = {
    "gat": GATConv(6, 4, heads=2),
    "gat edges": GATConv(6, 4, heads=2, edge_dim=3),
    "gat2": GATv2Conv(6, 4, heads=2),
    "sage": SAGEConv(6, 4),
    "gin": GINConv(nn.Sequential(nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 4))),
    "transformer": TransformerConv(6, 4, heads=2),
}
for name, layer in layers.items():
    fill(layer)
    options = {"edge_attr": weight} if name == "gat edges" else {}
    out = layer(x, edges, **options)
    show(name, out)
    (out**2).sum().backward()
    show(f"{name} gradients", sum(float(p.grad.norm()) for p in layer.parameters()))
done()
