"""Datasets and loaders of every kind: custom, tensors, streams, subsets, weighted samplers, collation, splits."""

import json
import math

import numpy as np
import torch
from same import fill, numbers
from torch import nn
from torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)


class Curve(Dataset):
    def __init__(self, count, transform=None):
        self.x = numbers(count, 3, seed=5)
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        sample = {"x": x, "y": np.float32(np.sin(x).sum()), "name": f"row {i}", "pair": (i, float(i))}
        return self.transform(sample) if self.transform else sample


class Stream(IterableDataset):
    def __init__(self, start, end):
        self.start, self.end = start, end

    def __iter__(self):
        info = get_worker_info()
        if info is None:
            return iter(range(self.start, self.end))
        per = math.ceil((self.end - self.start) / info.num_workers)
        first = self.start + info.id * per
        return iter(range(first, min(first + per, self.end)))


def pad(batch):
    longest = max(len(b) for b in batch)
    return torch.stack([nn.functional.pad(b, (0, longest - len(b))) for b in batch])


def main():
    results = []
    dataset = Curve(10, transform=lambda s: {**s, "x": s["x"] * 2})
    model = fill(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    loader = DataLoader(dataset, batch_size=4, drop_last=True, num_workers=0, pin_memory=False)
    for batch in loader:
        loss = (model(batch["x"]).squeeze(1) - batch["y"]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        results += [
            loss.item(),
            batch["pair"][0].sum().item(),
            batch["pair"][1].dtype.itemsize,
            len(batch["name"]),
        ]
    first, second = random_split(range(9), [6, 3], generator=torch.Generator().manual_seed(0))
    results += [len(first), len(second), sum(first) + sum(second)]
    pairs = TensorDataset(torch.arange(6.0), torch.arange(6) ** 2)
    joined = ConcatDataset([pairs, Subset(pairs, [1, 3])])
    results += [len(joined), sum(float(y) for _, y in joined), joined[-1][1].item()]
    order = BatchSampler(SequentialSampler(joined), batch_size=3, drop_last=False)
    results += [float(len(y)) for _, y in DataLoader(joined, batch_sampler=order)]
    chosen = WeightedRandomSampler([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], num_samples=4, replacement=True)
    results += [y.sum().item() for _, y in DataLoader(pairs, sampler=chosen, batch_size=2)]
    stream = ChainDataset([Stream(0, 5), Stream(10, 13)])
    results += [b.sum().item() for b in DataLoader(stream, batch_size=3)]
    ragged = [torch.ones(n) for n in (1, 3, 2)]
    results += [b.shape[1] + b.sum().item() for b in DataLoader(ragged, batch_size=2, collate_fn=pad)]
    seen = sorted(int(i) for b in DataLoader(list(range(7)), batch_size=2, shuffle=True) for i in b)
    results += [float(i) for i in seen]
    nested = default_collate([[torch.tensor(1), {"a": 2.0}], [torch.tensor(3), {"a": 4.0}]])
    return [*results, nested[0].sum().item(), nested[1]["a"].sum().item()]


if __name__ == "__main__":
    print(json.dumps(main()))
