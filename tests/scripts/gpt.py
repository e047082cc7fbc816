"""A GPT with a causal mask in a buffer, tied weights, and AdamW with two groups."""

import json
import math

import torch
import torch.nn as nn
from same import classes, fill
from torch.nn import functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        assert width % heads == 0
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        self.attn_dropout = nn.Dropout(0.0)
        self.heads, self.width = heads, width
        self.register_buffer("bias", torch.tril(torch.ones(context, context)).view(1, 1, context, context))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.width, dim=2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = self.attn_dropout(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class Block(nn.Module):
    def __init__(self, width, heads, context):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = CausalSelfAttention(width, heads, context)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.ModuleDict(
            dict(
                c_fc=nn.Linear(width, 4 * width),
                c_proj=nn.Linear(4 * width, width),
                act=nn.GELU(approximate="tanh"),
            )
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        m = self.mlp
        return x + m.c_proj(m.act(m.c_fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self, vocabulary=17, context=8, width=16, heads=2, layers=2):
        super().__init__()
        self.context = context
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(vocabulary, width),
                wpe=nn.Embedding(context, width),
                drop=nn.Dropout(0.0),
                h=nn.ModuleList([Block(width, heads, context) for _ in range(layers)]),
                ln_f=nn.LayerNorm(width),
            )
        )
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        _, t = idx.size()
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, count):
        for _ in range(count):
            logits, _ = self(idx[:, -self.context :])
            logits = logits[:, -1, :]
            v, _ = torch.topk(logits, 5)
            logits[logits < v[:, [-1]]] = -float("Inf")
            nxt = torch.argmax(F.softmax(logits, dim=-1), dim=-1, keepdim=True)
            idx = torch.cat((idx, nxt), dim=1)
        return idx


def main():
    model = fill(GPT(), gain=0.5)
    decay = {n for n, p in model.named_parameters() if p.dim() >= 2}
    params = dict(model.named_parameters())
    groups = [
        {"params": [params[n] for n in sorted(decay)], "weight_decay": 0.1},
        {"params": [p for n, p in params.items() if n not in decay], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    data = classes(4, 9, count=17, seed=1)
    x, y = data[:, :-1].contiguous(), data[:, 1:].contiguous()
    y[0, :2] = -1
    losses = []
    for step in range(5):
        for group in optimizer.param_groups:
            group["lr"] = 1e-2 * min(1.0, (step + 1) / 3)
        _, loss = model(x, y)
        model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    text = model.generate(x[:1, :3], 4)
    return [*losses, float(text.sum().item())]


if __name__ == "__main__":
    print(json.dumps(main()))
