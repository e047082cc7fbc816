"""accelerate: a prepared loop with gradients gathered over two batches, clipped, and its state saved."""

import tempfile

import torch
from accelerate import Accelerator
from same import done, fill, integers, numbers, show
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = fill(nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 3)))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = DataLoader(TensorDataset(numbers(24, 6), integers(3, 24)), batch_size=4)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 6)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
losses = []
for x, y in loader:
    with accelerator.accumulate(model):
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    losses.append(float(accelerator.gather_for_metrics(loss).mean()))
show("train losses", losses)
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    before = accelerator.unwrap_model(model)[0].weight.detach().clone()
    with torch.no_grad():
        model[0].weight.zero_()
    accelerator.load_state(folder)
    show("train weight", accelerator.unwrap_model(model)[0].weight)
    show("restored", float((model[0].weight - before).abs().max()) == 0)
show("processes", accelerator.num_processes)
done()
