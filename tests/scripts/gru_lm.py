"""A bidirectional GRU classifier over sequences of different lengths, packed and padded."""

import json

import torch
import torch.nn as nn
from same import classes, fill
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Tagger(nn.Module):
    def __init__(self, vocabulary=12, width=6, hidden=5, tags=4):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=0)
        self.gru = nn.GRU(width, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, tags)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)
        output, hidden = self.gru(packed)
        output, _ = pad_packed_sequence(output, batch_first=True)
        return self.out(output), hidden


def main():
    sequences = [classes(n, count=11, seed=n) + 1 for n in (5, 3, 6)]
    lengths = torch.tensor([len(s) for s in sequences])
    tokens = pad_sequence(sequences, batch_first=True)
    tags = pad_sequence([s % 4 for s in sequences], batch_first=True, padding_value=-100)
    model = fill(Tagger())
    criterion = nn.CrossEntropyLoss(ignore_index=-100)
    optimizer = torch.optim.RAdam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        logits, hidden = model(tokens, lengths)
        loss = criterion(logits.flatten(0, 1), tags.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [*losses, hidden.abs().sum().item(), model.embed.weight.grad[0].abs().sum().item()]


if __name__ == "__main__":
    print(json.dumps(main()))
