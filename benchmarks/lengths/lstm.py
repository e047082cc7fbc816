"""An LSTM forward and backward over twenty lengths: prints the seconds, and those of the processor, that they took."""

import time

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
lstm = nn.LSTM(32, 64, batch_first=True)
head = nn.Linear(64, 10)
batches = [(torch.randn(8, length, 32), torch.randint(10, (8,))) for length in range(10, 30)]
wall, cpu = time.perf_counter(), time.process_time()
for x, y in batches:
    out, _ = lstm(x)
    loss = F.cross_entropy(head(out[:, -1]), y)
    loss.backward()
    loss.item()
print(time.perf_counter() - wall, time.process_time() - cpu)
