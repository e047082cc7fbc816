"""Activation checkpointing, both kinds, and over a sequence."""

import json

import torch
import torch.nn as nn
import torch.utils.checkpoint as checkpoint
from same import fill, tensor
from torch.utils.checkpoint import checkpoint_sequential


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.inner(self.norm(x))


class Stack(nn.Module):
    def __init__(self, kind, width=6):
        super().__init__()
        self.kind = kind
        self.stem = nn.Linear(4, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(3)])
        self.head = nn.Linear(width, 1)

    def forward(self, x):
        x = self.stem(x)
        if self.kind == "sequential":
            x = checkpoint_sequential(self.blocks, 2, x, use_reentrant=False)
        elif self.kind == "none" or not self.training:
            x = self.blocks(x)
        else:
            for block in self.blocks:
                x = checkpoint.checkpoint(block, x, use_reentrant=self.kind == "reentrant")
        return self.head(x)


def main():
    x, y = tensor(10, 4, seed=1), tensor(10, 1, seed=2)
    results = []
    for kind in ("none", "reentrant", "saved", "sequential"):
        model = fill(Stack(kind))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(3):
            loss = nn.functional.huber_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        results.append(loss.item())
    return results


if __name__ == "__main__":
    print(json.dumps(main()))
