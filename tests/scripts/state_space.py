"""A selective state-space model: a recurrence in a Python loop, einsum, causal depthwise convolution."""

import json
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill


class SelectiveSSM(nn.Module):
    def __init__(self, width=8, state=4, rank=2, kernel=3):
        super().__init__()
        inner = 2 * width
        self.inner, self.state, self.rank = inner, state, rank
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv1d = nn.Conv1d(inner, inner, kernel, groups=inner, padding=kernel - 1)
        self.x_proj = nn.Linear(inner, rank + 2 * state, bias=False)
        self.dt_proj = nn.Linear(rank, inner)
        A = torch.arange(1, state + 1, dtype=torch.float32).repeat(inner, 1)
        self.A_log = nn.Parameter(torch.log(A))
        self.D = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, width, bias=False)
        nn.init.uniform_(self.dt_proj.weight, -1 / math.sqrt(rank), 1 / math.sqrt(rank))

    def forward(self, x):
        _, length, _ = x.shape
        x, gate = self.in_proj(x).chunk(2, dim=-1)
        x = self.conv1d(x.transpose(1, 2))[..., :length].transpose(1, 2)
        x = F.silu(x)
        delta, B, C = self.x_proj(x).split([self.rank, self.state, self.state], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        A = -torch.exp(self.A_log.float())
        decay = torch.exp(torch.einsum("bld,dn->bldn", delta, A))
        drive = torch.einsum("bld,bln,bld->bldn", delta, B, x)
        h = x.new_zeros(x.shape[0], self.inner, self.state)
        outputs = []
        for t in range(length):
            h = decay[:, t] * h + drive[:, t]
            outputs.append(torch.einsum("bdn,bn->bd", h, C[:, t]))
        y = torch.stack(outputs, dim=1) + x * self.D
        return self.out_proj(y * F.silu(gate))


class Model(nn.Module):
    def __init__(self, vocabulary=9, width=8):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.norm = nn.RMSNorm(width)
        self.mixer = SelectiveSSM(width)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.head(x + self.mixer(self.norm(x)))


def main():
    model = fill(Model(), gain=0.8)
    optimizer = torch.optim.NAdam(model.parameters(), lr=5e-3)
    tokens = classes(2, 6, count=9, seed=1)
    losses = []
    for _ in range(4):
        loss = F.cross_entropy(model(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    print(json.dumps(main()))
