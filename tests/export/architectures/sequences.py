"""Models of sequences: recurrent and convolutional ones, transformers of text and sound."""

from __future__ import annotations

import math

import xtensor as torch
from xtensor import nn
from xtensor.nn import functional as F

from . import Model, batch, length, model


def words(*shape, count=30):
    return torch.randint(0, count, shape)


class Tagger(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.words = nn.Embedding(30, 12, padding_idx=0)
        self.rnn = kind(12, 10, 2, bidirectional=True, batch_first=True, dropout=0.1)
        self.out = nn.Linear(20, 5)

    def forward(self, ids):
        return F.log_softmax(self.out(self.rnn(self.words(ids))[0]), -1)


def tagger(kind):
    return Model(Tagger(kind), (words(2, 6),), (words(3, 9),), ({0: batch(), 1: length()},))


@model
def lstm_tagger():
    return tagger(nn.LSTM)


@model
def gru():
    return tagger(nn.GRU)


class Residual(nn.Module):
    """Causal convolutions with a distance between what they see."""

    def __init__(self, inputs, outputs, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.one = nn.utils.parametrizations.weight_norm(
            nn.Conv1d(inputs, outputs, 3, padding=self.pad, dilation=dilation)
        )
        self.two = nn.Conv1d(outputs, outputs, 3, padding=self.pad, dilation=dilation)
        self.same = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x):
        y = F.relu(self.one(x)[:, :, : -self.pad].contiguous())
        return F.relu(F.relu(self.two(y)[:, :, : -self.pad]) + self.same(x))


@model
def tcn():
    net = nn.Sequential(Residual(4, 8, 1), Residual(8, 8, 2), Residual(8, 6, 4))
    return Model(net, (torch.randn(2, 4, 16),), (torch.randn(3, 4, 21),), ({0: batch(), 2: length()},))


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.query, self.key, self.value, self.out = [nn.Linear(dim, dim) for _ in range(4)]

    def cut(self, x):
        return x.view(x.shape[0], x.shape[1], self.heads, self.width).permute(0, 2, 1, 3)

    def forward(self, x, mask=None, source=None):
        source = x if source is None else source
        scores = (
            self.cut(self.query(x)) @ self.cut(self.key(source)).transpose(-1, -2) / math.sqrt(self.width)
        )
        if mask is not None:
            scores = scores + mask
        mixed = (scores.softmax(-1) @ self.cut(self.value(source))).permute(0, 2, 1, 3).contiguous()
        return self.out(mixed.view(*mixed.shape[:2], self.heads * self.width))


class BertLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention = SelfAttention(dim, heads)
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps=1e-12), nn.LayerNorm(dim, eps=1e-12)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, mask):
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.words, self.places, self.kinds = (
            nn.Embedding(30, dim),
            nn.Embedding(64, dim),
            nn.Embedding(2, dim),
        )
        self.register_buffer("position_ids", torch.arange(64).expand((1, -1)), persistent=False)
        self.norm = nn.LayerNorm(dim, eps=1e-12)
        self.layers = nn.ModuleList([BertLayer(dim, 2) for _ in range(2)])
        self.pooler = nn.Linear(dim, dim)

    def forward(self, input_ids, attention_mask):
        places = self.position_ids[:, : input_ids.shape[1]]
        x = self.words(input_ids) + self.places(places) + self.kinds(torch.zeros_like(input_ids))
        mask = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


@model
def bert():
    def given(rows, columns):
        mask = torch.ones(rows, columns, dtype=torch.int64)
        mask[0, -2:] = 0
        return words(rows, columns), mask

    size = {0: batch(), 1: length(64)}
    return Model(Bert(), given(2, 6), given(3, 9), (size, size))


class GPT2Block(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.c_attn, self.c_proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)

    def forward(self, x, past_key, past_value):
        batch, new, dim = x.shape
        q, k, v = [
            t.view(batch, new, self.heads, dim // self.heads).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).split(dim, dim=2)
        ]  # fmt: skip
        k, v = torch.cat((past_key, k), dim=-2), torch.cat((past_value, v), dim=-2)
        seen = torch.ones(new, k.shape[2], dtype=torch.bool).tril(k.shape[2] - new)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen, float("-inf"))
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, new, dim)
        x = x + self.c_proj(y)
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh")), k, v


class GPT2(nn.Module):
    def __init__(self, dim=16, heads=2):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(30, dim), nn.Embedding(64, dim)
        self.h = nn.ModuleList([GPT2Block(dim, heads) for _ in range(2)])
        self.ln_f = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, 30, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids, keys, values):
        past = keys.shape[3]
        x = self.wte(ids) + self.wpe(torch.arange(past, past + ids.shape[1]))
        kept = []
        for at, block in enumerate(self.h):
            x, key, value = block(x, keys[at], values[at])
            kept.append((key, value))
        return (
            self.lm_head(self.ln_f(x)),
            torch.stack([k for k, _ in kept]),
            torch.stack([v for _, v in kept]),
        )


@model
def gpt2_with_cache():
    past = torch.export.Dim("past", min=2, max=32)
    cache = {1: (size := batch()), 3: past}

    def given(rows, columns, seen):
        return words(rows, columns), torch.randn(2, rows, 2, seen, 8), torch.randn(2, rows, 2, seen, 8)

    return Model(GPT2(), given(2, 3, 4), given(3, 5, 7), ({0: size, 1: length(16)}, cache, cache))


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


def rotate_half(x):
    one, two = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-two, one), dim=-1)


class Llama(nn.Module):
    """A block with rotary places, shared keys and values, and a gated hidden layer."""

    def __init__(self, dim=16, heads=4, shared=2):
        super().__init__()
        self.heads, self.shared, self.width = heads, shared, dim // heads
        self.embed = nn.Embedding(30, dim)
        self.q_proj, self.o_proj = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, shared * self.width, bias=False)
        self.v_proj = nn.Linear(dim, shared * self.width, bias=False)
        self.gate, self.up, self.down = (
            nn.Linear(dim, 40, bias=False),
            nn.Linear(dim, 40, bias=False),
            nn.Linear(40, dim, bias=False),
        )
        self.norm1, self.norm2 = RMSNorm(dim), RMSNorm(dim)
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, self.width, 2).float() / self.width))

    def forward(self, ids):
        x = self.embed(ids)
        batch, count, dim = x.shape
        y = self.norm1(x)
        q = self.q_proj(y).view(batch, count, self.heads, self.width).transpose(1, 2)
        k = self.k_proj(y).view(batch, count, self.shared, self.width).transpose(1, 2)
        v = self.v_proj(y).view(batch, count, self.shared, self.width).transpose(1, 2)
        angles = torch.outer(torch.arange(count).float(), self.inv_freq)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos(), angles.sin()
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        times = self.heads // self.shared
        k, v = [
            t[:, :, None].expand(batch, self.shared, times, count, self.width).reshape(batch, self.heads, count, self.width) for t in (k, v)
        ]  # fmt: skip
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, count, dim)
        x = x + self.o_proj(y)
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


@model
def llama():
    return Model(Llama(), (words(2, 6),), (words(3, 9),), ({0: batch(), 1: length()},))


class Whisper(nn.Module):
    """Whisper's encoder: two convolutions over a spectrogram, sinusoids for places, blocks with the norm first."""

    def __init__(self, dim=16, frames=24):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(8, dim, 3, padding=1), nn.Conv1d(dim, dim, 3, stride=2, padding=1)
        rates = torch.exp(-math.log(10000) / (dim // 2 - 1) * torch.arange(dim // 2))
        times = torch.arange(frames // 2)[:, None] * rates[None]
        self.register_buffer("places", torch.cat([times.sin(), times.cos()], dim=1))
        self.attentions = nn.ModuleList([SelfAttention(dim, 2) for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(5)])
        self.mlps = nn.ModuleList(
            [nn.Sequential(nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, dim)) for _ in range(2)]
        )

    def forward(self, mel):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).permute(0, 2, 1) + self.places
        for at, (attention, mlp) in enumerate(zip(self.attentions, self.mlps, strict=True)):
            x = x + attention(self.norms[2 * at](x))
            x = x + mlp(self.norms[2 * at + 1](x))
        return self.norms[4](x)


@model
def whisper_encoder():
    return Model(Whisper(), (torch.randn(2, 8, 24),), (torch.randn(3, 8, 24),), ({0: batch()},))


class T5Attention(SelfAttention):
    def __init__(self, dim, heads, buckets=8):
        super().__init__(dim, heads)
        self.table, self.buckets = nn.Embedding(buckets, heads), buckets

    def bias(self, count, other):
        apart = torch.arange(other)[None] - torch.arange(count)[:, None]
        half = self.buckets // 2
        bucket = (apart > 0).long() * half
        apart = apart.abs()
        exact = half // 2
        far = (
            exact
            + (torch.log(apart.float().clamp(min=1) / exact) / math.log(16 / exact) * (half - exact)).long()
        )
        bucket = bucket + torch.where(apart < exact, apart, far.clamp(max=half - 1))
        return self.table(bucket).permute(2, 0, 1)[None]


class T5(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.words = nn.Embedding(30, dim)
        self.encoder, self.decoder, self.cross = (
            T5Attention(dim, 2),
            T5Attention(dim, 2),
            SelfAttention(dim, 2),
        )
        self.norms = nn.ModuleList([RMSNorm(dim) for _ in range(5)])
        self.wi, self.wo = nn.Linear(dim, 32, bias=False), nn.Linear(32, dim, bias=False)

    def forward(self, source, target):
        x = self.words(source)
        x = x + self.encoder(self.norms[0](x), self.encoder.bias(x.shape[1], x.shape[1]))
        x = x + self.wo(F.relu(self.wi(self.norms[1](x))))
        y = self.words(target)
        count = y.shape[1]
        hidden = torch.full((count, count), float("-inf")).triu(1)
        y = y + self.decoder(self.norms[2](y), self.decoder.bias(count, count) + hidden)
        y = y + self.cross(self.norms[3](y), source=x)
        return self.norms[4](y) @ self.words.weight.T


@model
def t5():
    size = batch()
    other = torch.export.Dim("target", min=2, max=4096)
    return Model(
        T5(),
        (words(2, 6), words(2, 4)),
        (words(3, 9), words(3, 7)),
        ({0: size, 1: length()}, {0: size, 1: other}),
    )


class Translator(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.words = nn.Embedding(30, dim)
        self.transformer = nn.Transformer(dim, 2, 2, 2, 32, batch_first=True)
        self.out = nn.Linear(dim, 30)

    def forward(self, source, target):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        return self.out(self.transformer(self.words(source), self.words(target), tgt_mask=mask))


@model
def transformer():
    size = batch()
    other = torch.export.Dim("target", min=2, max=4096)
    return Model(
        Translator(),
        (words(2, 6), words(2, 4)),
        (words(3, 9), words(3, 7)),
        ({0: size, 1: length()}, {0: size, 1: other}),
    )
