"""A model in four stages, a process each, through which a batch goes in parts: the losses are those of one process.

python -m xtensor.distributed.run --standalone --nproc-per-node 4 examples/distributed/pipelined.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import Schedule1F1B, SplitPoint, pipeline


def network():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(16, 32),
        nn.GELU(),
        nn.Linear(32, 32),
        nn.GELU(),
        nn.Linear(32, 32),
        nn.GELU(),
        nn.Linear(32, 4),
    )


def main(steps=10, parts=8):
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    x, y = torch.randn(32, 16), torch.randint(0, 4, (32,))

    # Every process cuts the whole model the same way, and keeps its stage.
    pipe = pipeline(network(), (x[:4],), split_spec=dict.fromkeys("246", SplitPoint.BEGINNING))
    stage = pipe.build_stage(rank)
    schedule = Schedule1F1B(stage, parts, nn.functional.cross_entropy)
    optimizer = torch.optim.AdamW(stage.submod.parameters(), lr=1e-2)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        losses = []
        if rank == 0:
            schedule.step(x)
        else:
            schedule.step(target=y, losses=losses)
        optimizer.step()
        if rank == world - 1:
            found.append(torch.stack(losses).mean().item())

    if rank == world - 1:
        model = network()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        alone = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            alone.append(loss.item())
        apart = max(abs(a - b) for a, b in zip(alone, found))
        print(
            f"loss {found[0]:.4f} to {found[-1]:.4f}, furthest apart {apart:.1e} over {world} stages",
            flush=True,
        )
        assert apart < 1e-4
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
