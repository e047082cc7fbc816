"""torchdiffeq: a neural differential equation by two solvers, its gradient by the adjoint."""

import torch
from same import done, fill, numbers, show
from torch import nn
from torchdiffeq import odeint, odeint_adjoint


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


field, start, times = fill(Field()), numbers(4, 2), torch.linspace(0, 1, 5)
show("dopri5", odeint(field, start, times, rtol=1e-6, atol=1e-7))
show("rk4", odeint(field, start, times, method="rk4"))
loss = (odeint_adjoint(field, start, times, method="rk4")[-1] ** 2).sum()
loss.backward()
show("gradient", [float(p.grad.norm()) for p in field.parameters()])
done()
