"""egnn-pytorch: graph networks that turn with their points."""

from egnn_pytorch import EGNN, EGNN_Network
from same import done, fill, integers, numbers, show, steps

layer = fill(EGNN(dim=8, m_dim=8))
features, places = layer(numbers(1, 6, 8), numbers(1, 6, 3))
show("features", features)
show("places", places)
network = fill(EGNN_Network(num_tokens=5, dim=8, depth=2, num_nearest_neighbors=3))
tokens, points = integers(5, 1, 6), numbers(1, 6, 3)
features, places = network(tokens, points)
show("network", features)
show("moved", places)
steps(network, lambda: network(tokens, points)[0].pow(2).mean())
done()
