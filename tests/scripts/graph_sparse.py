"""Graph networks over a sparse adjacency: convolution by sparse products, attention by a softmax over edges in two ways."""

import json

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill, numbers, tensor


def sparse_mx_to_torch_sparse_tensor(sparse_mx):
    sparse_mx = sparse_mx.tocoo().astype(np.float32)
    indices = torch.from_numpy(np.vstack((sparse_mx.row, sparse_mx.col)).astype(np.int64))
    values = torch.from_numpy(sparse_mx.data)
    shape = torch.Size(sparse_mx.shape)
    return torch.sparse_coo_tensor(indices, values, shape)


def normalize(mx):
    rowsum = np.array(mx.sum(1))
    r_inv = np.power(rowsum, -1).flatten()
    r_inv[np.isinf(r_inv)] = 0.0
    return sp.diags(r_inv).dot(mx)


class GraphConvolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x, adj):
        return torch.spmm(adj, torch.mm(x, self.weight)) + self.bias


class SpecialSpmmFunction(torch.autograd.Function):
    """Special function for only sparse region backpropagation layer."""

    @staticmethod
    def forward(ctx, indices, values, shape, b):
        assert not indices.requires_grad
        a = torch.sparse_coo_tensor(indices, values, shape)
        ctx.save_for_backward(a, b)
        ctx.N = shape[0]
        return torch.matmul(a, b)

    @staticmethod
    def backward(ctx, grad_output):
        a, b = ctx.saved_tensors
        grad_values = grad_b = None
        if ctx.needs_input_grad[1]:
            grad_a_dense = grad_output.matmul(b.t())
            edge_idx = a._indices()[0, :] * ctx.N + a._indices()[1, :]
            grad_values = grad_a_dense.view(-1)[edge_idx]
        if ctx.needs_input_grad[3]:
            grad_b = a.t().matmul(grad_output)
        return None, grad_values, None, grad_b


class SpGraphAttention(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.W = nn.Parameter(torch.zeros(inputs, outputs))
        self.a = nn.Parameter(torch.zeros(1, 2 * outputs))

    def forward(self, x, adj):
        count = x.size(0)
        edge = adj.coalesce().indices()
        h = torch.mm(x, self.W)
        edge_h = torch.cat((h[edge[0, :], :], h[edge[1, :], :]), dim=1).t()
        edge_e = torch.exp(-F.leaky_relu(self.a.mm(edge_h).squeeze(), 0.2))
        ones = torch.ones(size=(count, 1))
        e_rowsum = SpecialSpmmFunction.apply(edge, edge_e, torch.Size([count, count]), ones)
        h_prime = SpecialSpmmFunction.apply(edge, edge_e, torch.Size([count, count]), h)
        return F.elu(h_prime.div(e_rowsum))


class EdgeSoftmaxAttention(nn.Module):
    """Scores by edge, softmax over those that enter a node by `scatter`, messages by `index_add`."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.lin = nn.Linear(inputs, outputs, bias=False)
        self.att = nn.Linear(2 * outputs, 1, bias=False)

    def forward(self, x, adj):
        src, dst = adj._indices()
        h = self.lin(x)
        e = F.leaky_relu(self.att(torch.cat([h[src], h[dst]], 1)).squeeze(-1), 0.2)
        top = torch.full((x.size(0),), -float("inf")).scatter_reduce(0, dst, e, "amax")
        e = (e - top[dst]).exp()
        alpha = e / torch.zeros(x.size(0)).scatter_add(0, dst, e)[dst]
        weights = torch.sparse_coo_tensor(torch.stack([dst, src]), alpha, (x.size(0), x.size(0)))
        return torch.zeros_like(h).index_add(0, dst, alpha[:, None] * h[src]) + 0 * torch.sparse.mm(
            weights, h
        )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GraphConvolution(5, 6)
        self.att = SpGraphAttention(6, 6)
        self.edges = EdgeSoftmaxAttention(6, 6)
        self.out = GraphConvolution(6, 3)

    def forward(self, x, adj):
        x = F.relu(self.conv(x, adj))
        x = self.edges(self.att(x, adj), adj)
        return F.log_softmax(self.out(x, adj), dim=1)


def main():
    adj = sp.coo_matrix((numbers(9, 9, seed=1) > 0.9).astype(np.float32))
    adj = adj + adj.T.multiply(adj < adj.T) - adj.multiply(adj < adj.T)
    adj = sparse_mx_to_torch_sparse_tensor(normalize(adj + sp.eye(9))).coalesce()
    features, labels = tensor(9, 5, seed=2), classes(9, count=3, seed=3)
    model = fill(Net())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = F.nll_loss(model(features, adj), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    csr = adj.to_sparse_csr()
    hops = torch.sparse.mm(adj, torch.sparse.mm(adj, features))
    dense = (csr @ (csr @ features) - hops).abs().max()
    probabilities = torch.sparse.softmax(adj, dim=1)
    return [
        *losses,
        hops.sum().item(),
        dense.item(),
        torch.sparse.sum(probabilities, 1).to_dense().sum().item(),
    ]


if __name__ == "__main__":
    print(json.dumps(main()))
