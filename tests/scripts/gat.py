"""Graph attention over an edge list: gathers, scatter_add, index_add, a softmax per neighbourhood."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill, tensor


def scatter_softmax(scores, index, count):
    top = torch.full((count, scores.size(1)), -1e9).scatter_reduce(
        0, index.unsqueeze(1).expand_as(scores), scores, reduce="amax"
    )
    weights = (scores - top.detach()[index]).exp()
    total = torch.zeros(count, scores.size(1)).index_add_(0, index, weights)
    return weights / (total[index] + 1e-16)


class GATLayer(nn.Module):
    def __init__(self, inputs, outputs, heads, concat=True):
        super().__init__()
        self.heads, self.outputs, self.concat = heads, outputs, concat
        self.linear = nn.Linear(inputs, heads * outputs, bias=False)
        self.a_source = nn.Parameter(torch.empty(1, heads, outputs))
        self.a_target = nn.Parameter(torch.empty(1, heads, outputs))
        self.bias = nn.Parameter(torch.zeros(heads * outputs if concat else outputs))
        self.leaky = nn.LeakyReLU(0.2)
        nn.init.xavier_uniform_(self.a_source)
        nn.init.xavier_uniform_(self.a_target)

    def forward(self, x, edges):
        source, target = edges
        h = self.linear(x).view(-1, self.heads, self.outputs)
        scores = (h * self.a_source).sum(-1)[source] + (h * self.a_target).sum(-1)[target]
        alpha = scatter_softmax(self.leaky(scores), target, x.size(0))
        messages = h[source] * alpha.unsqueeze(-1)
        out = torch.zeros_like(h).scatter_add_(0, target.view(-1, 1, 1).expand_as(messages), messages)
        out = out.flatten(1) if self.concat else out.mean(1)
        return out + self.bias


class GAT(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = GATLayer(5, 4, heads=2)
        self.second = GATLayer(8, 3, heads=2, concat=False)

    def forward(self, x, edges):
        return self.second(F.elu(self.first(x, edges)), edges)


def main():
    model = fill(GAT())
    edges = torch.cat([classes(2, 20, count=8, seed=1), torch.arange(8).repeat(2, 1)], dim=1)
    x, y = tensor(8, 5, seed=2), classes(8, count=3, seed=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edges), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    print(json.dumps(main()))
