"""A PyTorch program whose rank 1 ends early: killed, by an error, on the first start only, or never."""

import os
import signal
import sys

import torch
import torch.distributed as dist

start, how = os.environ["TORCHELASTIC_RESTART_COUNT"], sys.argv[1]
made_before = torch.zeros(2)
dist.init_process_group("gloo")
rank = dist.get_rank()
x = torch.ones(2) * rank
dist.all_reduce(x)
assert (x + made_before).tolist() == [1.0, 1.0]
if rank == 1 and how != "never" and (how != "once" or start == "0"):
    if how == "raise":
        raise ValueError("enough")
    os.kill(os.getpid(), signal.SIGKILL)
dist.barrier()
dist.destroy_process_group()
print(f"start {start}", flush=True)  # one write: two processes share the output
