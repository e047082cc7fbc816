"""DistributedDataParallel in several processes: each has its own part of the data, and all have the same model.

python -m xtensor.distributed.run --standalone --nproc-per-node 4 examples/distributed/data_parallel.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    x = torch.randn(256, 16)
    numbers = TensorDataset(x, (x[:, :4].sum(1) > 0).long())
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 2)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    sampler = DistributedSampler(numbers)
    losses = []
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for inputs, labels in DataLoader(numbers, batch_size=16, sampler=sampler):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total, dist.ReduceOp.AVG)
        losses.append(total.item())
        if rank == 0:
            print(f"epoch {epoch}: loss {total.item():.3f} over {world} processes", flush=True)
    assert losses[-1] < 0.7 * losses[0]
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
