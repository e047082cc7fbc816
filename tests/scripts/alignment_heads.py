"""Speech: an encoder and a decoder whose cross attention is kept by hooks, and the heads that align words, a sparse buffer."""

import json

import numpy as np
import torch
import torch.nn.functional as F
from same import classes, fill, tensor
from torch import Tensor, nn


class LayerNorm(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.float()).type(x.dtype)


class Linear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))


def sinusoids(length, channels, max_timescale=10000):
    step = np.log(max_timescale) / (channels // 2 - 1)
    inv = torch.exp(-step * torch.arange(channels // 2))
    scaled = torch.arange(length)[:, np.newaxis] * inv[np.newaxis, :]
    return torch.cat([torch.sin(scaled), torch.cos(scaled)], dim=1)


class MultiHeadAttention(nn.Module):
    def __init__(self, n_state, n_head):
        super().__init__()
        self.n_head = n_head
        self.query, self.key = Linear(n_state, n_state), Linear(n_state, n_state, bias=False)
        self.value, self.out = Linear(n_state, n_state), Linear(n_state, n_state)

    def forward(self, x, xa=None, mask=None):
        q, k, v = self.query(x), self.key(x if xa is None else xa), self.value(x if xa is None else xa)
        scale = (q.shape[-1] // self.n_head) ** -0.25
        q, k, v = [t.view(*t.shape[:2], self.n_head, -1).permute(0, 2, 1, 3) for t in (q, k, v)]
        qk = (q * scale) @ (k * scale).transpose(-1, -2)
        if mask is not None:
            qk = qk + mask[: q.shape[2], : q.shape[2]]
        qk = qk.float()
        w = F.softmax(qk, dim=-1).to(q.dtype)
        return self.out((w @ v).permute(0, 2, 1, 3).flatten(start_dim=2)), qk.detach()


class Block(nn.Module):
    def __init__(self, n_state, n_head, cross=False):
        super().__init__()
        self.attn, self.attn_ln = MultiHeadAttention(n_state, n_head), LayerNorm(n_state)
        self.cross_attn = MultiHeadAttention(n_state, n_head) if cross else None
        self.cross_ln = LayerNorm(n_state) if cross else None
        self.mlp = nn.Sequential(Linear(n_state, 2 * n_state), nn.GELU(), Linear(2 * n_state, n_state))
        self.mlp_ln = LayerNorm(n_state)

    def forward(self, x, xa=None, mask=None):
        x = x + self.attn(self.attn_ln(x), mask=mask)[0]
        if self.cross_attn:
            x = x + self.cross_attn(self.cross_ln(x), xa)[0]
        return x + self.mlp(self.mlp_ln(x))


class Speech(nn.Module):
    def __init__(self, state=8, heads=2, layers=2, vocab=11, audio=6, text=7):
        super().__init__()
        self.heads, self.layers = heads, layers
        self.conv1 = nn.Conv1d(4, state, kernel_size=3, padding=1)
        self.conv2 = nn.Conv1d(state, state, kernel_size=3, stride=2, padding=1)
        self.register_buffer("positions", sinusoids(audio, state))
        self.encoder = nn.ModuleList([Block(state, heads)])
        self.token = nn.Embedding(vocab, state)
        self.place = nn.Parameter(torch.empty(text, state))
        self.decoder = nn.ModuleList([Block(state, heads, cross=True) for _ in range(layers)])
        self.ln = LayerNorm(state)
        self.register_buffer("mask", torch.empty(text, text).fill_(-np.inf).triu_(1), persistent=False)
        all_heads = torch.zeros(layers, heads, dtype=torch.bool)
        all_heads[layers // 2 :] = True
        self.register_buffer("alignment_heads", all_heads.to_sparse(), persistent=False)

    def set_alignment_heads(self, dump):
        mask = torch.from_numpy(np.frombuffer(dump, dtype=bool).copy()).reshape(self.layers, self.heads)
        self.register_buffer("alignment_heads", mask.to_sparse(), persistent=False)

    def forward(self, mel, tokens):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).permute(0, 2, 1)
        x = (x + self.positions).to(x.dtype)
        for block in self.encoder:
            x = block(x)
        y = self.token(tokens) + self.place[: tokens.shape[-1]]
        for block in self.decoder:
            y = block(y, x, mask=self.mask)
        return (self.ln(y) @ torch.transpose(self.token.weight.to(y.dtype), 0, 1)).float()


def dtw(x):
    cost = np.full((x.shape[0] + 1, x.shape[1] + 1), np.inf)
    cost[0, 0] = 0
    for i in range(1, cost.shape[0]):
        for j in range(1, cost.shape[1]):
            cost[i, j] = x[i - 1, j - 1] + min(cost[i - 1, j - 1], cost[i - 1, j], cost[i, j - 1])
    return cost[-1, -1]


def alignment(model, mel, tokens):
    kept = [None] * len(model.decoder)
    hooks = [
        block.cross_attn.register_forward_hook(
            lambda _, ins, outs, index=i: kept.__setitem__(index, outs[-1][0])
        )
        for i, block in enumerate(model.decoder)
    ]
    with torch.no_grad():
        model(mel, tokens)
    for hook in hooks:
        hook.remove()
    weights = torch.stack([kept[_l][_h] for _l, _h in model.alignment_heads.indices().T])
    weights = (weights * 1.0).softmax(dim=-1)
    std, mean = torch.std_mean(weights, dim=-2, keepdim=True, unbiased=False)
    weights = (weights - mean) / std
    return weights.mean(axis=0)


def main():
    model = fill(Speech())
    mel, tokens = tensor(1, 4, 12, seed=4), classes(1, 6, count=11, seed=5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(3):
        logits = model(mel, tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    found = []
    for dump in (None, np.array([[True, False], [False, True]]).tobytes()):
        if dump is not None:
            model.set_alignment_heads(dump)
        matrix = alignment(model, mel, tokens)
        found += [matrix.abs().sum().item(), float(dtw(-matrix.double().cpu().numpy()))]
    model = model.double()
    heads = model.alignment_heads
    return [*losses, *found, heads._nnz(), float(heads.is_sparse), len(model.state_dict())]


if __name__ == "__main__":
    print(json.dumps(main()))
