"""The encoder-decoder transformer of `torch.nn`, with padding and causal masks."""

import json
import math

import torch
import torch.nn as nn
from same import classes, fill


class PositionalEncoding(nn.Module):
    def __init__(self, width, longest=20):
        super().__init__()
        den = torch.exp(-torch.arange(0, width, 2) * math.log(10000) / width)
        pos = torch.arange(0, longest).reshape(longest, 1)
        embedding = torch.zeros((longest, width))
        embedding[:, 0::2] = torch.sin(pos * den)
        embedding[:, 1::2] = torch.cos(pos * den)
        self.register_buffer("pos_embedding", embedding.unsqueeze(-2))

    def forward(self, x):
        return x + self.pos_embedding[: x.size(0), :]


class Translator(nn.Module):
    def __init__(self, vocabulary=11, width=8):
        super().__init__()
        self.transformer = nn.Transformer(
            d_model=width,
            nhead=2,
            num_encoder_layers=1,
            num_decoder_layers=1,
            dim_feedforward=16,
            dropout=0.0,
        )
        self.generator = nn.Linear(width, vocabulary)
        self.source = nn.Embedding(vocabulary, width)
        self.target = nn.Embedding(vocabulary, width)
        self.positional_encoding = PositionalEncoding(width)
        self.width = width

    def forward(self, src, trg, tgt_mask, src_padding_mask, tgt_padding_mask):
        src_emb = self.positional_encoding(self.source(src) * math.sqrt(self.width))
        tgt_emb = self.positional_encoding(self.target(trg) * math.sqrt(self.width))
        outs = self.transformer(
            src_emb, tgt_emb, None, tgt_mask, None, src_padding_mask, tgt_padding_mask, src_padding_mask
        )
        return self.generator(outs)


def main():
    model = fill(Translator())
    src, tgt = classes(5, 3, count=10, seed=1) + 1, classes(6, 3, count=10, seed=2) + 1
    src[4, 0] = src[3:, 2] = tgt[5, 1] = 0
    loss_fn = torch.nn.CrossEntropyLoss(ignore_index=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, betas=(0.9, 0.98), eps=1e-9)
    tgt_input = tgt[:-1, :]
    mask = (torch.triu(torch.ones((5, 5))) == 1).transpose(0, 1)
    mask = mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, 0.0)
    assert torch.equal(mask, nn.Transformer.generate_square_subsequent_mask(5))
    src_pad = torch.zeros(3, 5).masked_fill((src == 0).transpose(0, 1), float("-inf"))
    tgt_pad = torch.zeros(3, 5).masked_fill((tgt_input == 0).transpose(0, 1), float("-inf"))
    losses = []
    for _ in range(3):
        model.train()
        logits = model(src, tgt_input, mask, src_pad, tgt_pad)
        optimizer.zero_grad()
        loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt[1:, :].reshape(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    print(json.dumps(main()))
