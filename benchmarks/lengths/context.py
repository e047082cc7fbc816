"""Sixty tokens from a small GPT whose context grows by each: prints the seconds, and those of the processor, that generating took."""

import time

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, HEADS, LAYERS, TOKENS = 65, 64, 4, 4, 60


class Attention(nn.Module):
    mask: torch.Tensor

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.tril(torch.ones(TOKENS + 1, TOKENS + 1)))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).split(WIDTH, dim=2)
        q, k, v = (t.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2) for t in (q, k, v))
        scores = q @ k.transpose(-2, -1) * (WIDTH // HEADS) ** -0.5
        scores = scores.masked_fill(self.mask[:length, :length] == 0, float("-inf"))
        mixed = F.softmax(scores, dim=-1) @ v
        return self.out(mixed.transpose(1, 2).contiguous().view(batch, length, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.places = nn.Embedding(TOKENS + 1, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.places(places))))

    @torch.no_grad()
    def generate(self, ids, count):
        for _ in range(count):
            probabilities = F.softmax(self(ids)[:, -1, :], dim=-1)
            ids = torch.cat((ids, torch.multinomial(probabilities, num_samples=1)), dim=1)
        return ids


torch.manual_seed(0)
model = GPT()
start = torch.zeros((1, 1), dtype=torch.long)
wall, cpu = time.perf_counter(), time.process_time()
ids = model.generate(start, TOKENS).tolist()
print(time.perf_counter() - wall, time.process_time() - cpu)
assert len(ids[0]) == TOKENS + 1
