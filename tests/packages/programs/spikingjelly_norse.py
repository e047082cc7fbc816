"""spikingjelly and norse: networks of spiking neurons, trained through surrogate gradients."""

import norse.torch as norse
import torch
import torch.nn.functional as F
from same import done, fill, numbers, show, steps
from spikingjelly.activation_based import functional, layer, neuron, surrogate
from torch import nn

cell, state, spikes = norse.LIFCell(), None, 0
for _ in range(5):
    out, state = cell(numbers(4, 6).abs() * 20, state)
    spikes = spikes + out
show("spikes", spikes)
show("voltages", state.v)
network = fill(
    nn.Sequential(
        layer.Linear(6, 5),
        neuron.LIFNode(surrogate_function=surrogate.ATan()),
        layer.Linear(5, 3),
        neuron.IFNode(),
    )
)


def loss():
    functional.reset_net(network)
    total = sum(network(numbers(4, 6).abs() * 20) for _ in range(4))
    return F.mse_loss(total / 4, torch.full((4, 3), 0.5))


steps(network, loss)
done()
