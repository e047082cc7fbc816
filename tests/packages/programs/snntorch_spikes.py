"""snntorch: a spiking network trained through surrogate gradients, and its spike codes."""

import snntorch as snn
import torch
from same import done, fill, numbers, show
from snntorch import functional, spikegen, surrogate
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(10, 16), nn.Linear(16, 3)
        self.leaky = snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid(slope=25), learn_beta=True)
        self.synaptic = snn.Synaptic(alpha=0.8, beta=0.9, spike_grad=surrogate.atan())

    def forward(self, x):
        inner, (current, outer), spikes = self.leaky.init_leaky(), self.synaptic.init_synaptic(), []
        for step in x:
            spike, inner = self.leaky(self.first(step), inner)
            spike, current, outer = self.synaptic(self.last(spike), current, outer)
            spikes.append(spike)
        return torch.stack(spikes), outer


net, x, y = fill(Net(), scale=0.5), numbers(8, 6, 10).abs() * 2, torch.arange(6) % 3
optimizer = torch.optim.Adam(net.parameters(), lr=2e-2)
for name in ("ce_rate_loss", "mse_count_loss", "ce_count_loss"):
    spikes, outer = net(x)
    loss = getattr(functional, name)()(spikes, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    show(f"train {name}", [loss.item(), float(net.first.weight.grad.norm())])
    show(f"train {name} membrane", outer)
seq = fill(nn.Sequential(nn.Linear(10, 4), snn.Leaky(beta=0.7, init_hidden=True, output=True)), scale=0.6)
show("hidden", sum(seq(step)[1].sum() for step in x))
cell = fill(snn.SLSTM(10, 5, init_hidden=True, threshold=0.1), scale=0.7)
show("lstm", sum(cell(step).sum() for step in x))
show("latency", spikegen.latency(x[0] / x.max(), num_steps=5, normalize=True, linear=True))
show("delta", spikegen.delta(numbers(10, 3), threshold=0.4))
show("rate", spikegen.rate(torch.ones(2, 3), num_steps=5))
done()
