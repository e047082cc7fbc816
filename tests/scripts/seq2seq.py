"""Sequence to sequence with additive attention: an encoder GRU, decoder cells, teacher forcing."""

import json

import torch
import torch.nn as nn
import torch.nn.functional as F
from same import classes, fill


class BahdanauAttention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.Wa = nn.Linear(hidden, hidden)
        self.Ua = nn.Linear(hidden, hidden)
        self.Va = nn.Linear(hidden, 1)

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys))).squeeze(2).unsqueeze(1)
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class Seq2Seq(nn.Module):
    def __init__(self, vocabulary=10, hidden=8):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.encoder = nn.GRU(hidden, hidden, batch_first=True)
        self.attention = BahdanauAttention(hidden)
        self.cell = nn.GRUCell(2 * hidden, hidden)
        self.out = nn.Linear(hidden, vocabulary)

    def forward(self, source, target=None, steps=4):
        keys, hidden = self.encoder(self.embedding(source))
        hidden = hidden.squeeze(0)
        token = torch.zeros(source.size(0), dtype=torch.long)
        outputs, attentions = [], []
        for i in range(steps):
            context, weights = self.attention(hidden.unsqueeze(1), keys)
            step = torch.cat((self.embedding(token), context.squeeze(1)), dim=1)
            hidden = self.cell(step, hidden)
            logits = self.out(hidden)
            outputs.append(logits)
            attentions.append(weights)
            token = target[:, i] if target is not None else logits.topk(1)[1].squeeze(-1).detach()
        return torch.stack(outputs, dim=1), torch.cat(attentions, dim=1)


def main():
    model = fill(Seq2Seq())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    source, target = classes(3, 5, count=10, seed=1), classes(3, 4, count=10, seed=2)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        outputs, _ = model(source, target)
        loss = nn.NLLLoss()(F.log_softmax(outputs, dim=-1).view(-1, 10), target.view(-1))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        outputs, attentions = model(source)
    return [*losses, outputs.sum().item(), attentions.std().item()]


if __name__ == "__main__":
    print(json.dumps(main()))
