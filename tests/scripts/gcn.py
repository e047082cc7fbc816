"""A graph convolutional network on a normalised adjacency matrix, trained on some of the nodes."""

import json
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill, numbers, tensor
from torch.nn.modules.module import Module
from torch.nn.parameter import Parameter


class GraphConvolution(Module):
    def __init__(self, inputs, outputs, bias=True):
        super().__init__()
        self.in_features, self.out_features = inputs, outputs
        self.weight = Parameter(torch.FloatTensor(inputs, outputs))
        if bias:
            self.bias = Parameter(torch.FloatTensor(outputs))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, adj):
        support = torch.mm(input, self.weight)
        output = torch.mm(adj, support)
        return output + self.bias if self.bias is not None else output

    def __repr__(self):
        return f"{self.__class__.__name__} ({self.in_features} -> {self.out_features})"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, adj), dim=1)


def main():
    adj = torch.from_numpy((numbers(10, 10, seed=1) > 0.7).astype("float32"))
    adj = torch.maximum(adj, adj.t()) + torch.eye(10)
    degree = adj.sum(1).pow(-0.5)
    adj = degree.diag() @ adj @ torch.diag(degree)
    features, labels = tensor(10, 7, seed=2), classes(10, count=3, seed=3)
    idx_train, idx_test = torch.LongTensor(range(6)), torch.arange(6, 10)
    model = fill(GCN(7, 8, 3, dropout=0.0))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses = []
    for _ in range(4):
        model.train()
        optimizer.zero_grad()
        output = model(features, adj)
        loss = F.nll_loss(output[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    output = model(features, adj)
    preds = output.max(1)[1].type_as(labels)
    correct = preds[idx_test].eq(labels[idx_test]).double().sum()
    return [*losses, F.nll_loss(output[idx_test], labels[idx_test]).item(), correct.item() / len(idx_test)]


if __name__ == "__main__":
    print(json.dumps(main()))
