"""torchsde: stochastic differential equations by several methods along known noise, and the adjoint."""

import torch
import torchsde
from same import done, fill, numbers, show
from torch import nn


class Equation(nn.Module):
    noise_type = "diagonal"

    def __init__(self, sde_type):
        super().__init__()
        self.sde_type = sde_type
        self.drift = fill(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3)))
        self.spread = fill(nn.Linear(3, 3), seed=2)

    def f(self, t, y):
        return self.drift(y)

    def g(self, t, y):
        return self.spread(y).sigmoid()


class Noise(torchsde.BaseBrownian):
    """A path that is a known function of the time."""

    dtype, device, shape, levy_area_approximation = torch.float32, torch.device("cpu"), (4, 3), "none"

    def at(self, t):
        return torch.sin(5 * torch.as_tensor(t, dtype=torch.float32) * numbers(4, 3, seed=3))

    def __call__(self, ta, tb=None, return_U=False, return_A=False):
        return self.at(ta) if tb is None else self.at(tb) - self.at(ta)

    def __repr__(self):
        return "Noise()"


times, start = torch.linspace(0, 1, 5), numbers(4, 3)
for kind, method in (
    ("ito", "euler"),
    ("ito", "milstein"),
    ("stratonovich", "midpoint"),
    ("stratonovich", "heun"),
    ("stratonovich", "reversible_heun"),
):
    equation = Equation(kind)
    y = start.clone().requires_grad_()
    path = torchsde.sdeint(equation, y, times, bm=Noise(), method=method, dt=0.05)
    path[-1].pow(2).sum().backward()
    show(method, path)
    show(f"{method} gradient", [float(p.grad.norm()) for p in (y, *equation.parameters())])
equation = Equation("stratonovich")
path = torchsde.sdeint_adjoint(
    equation,
    start,
    times,
    bm=Noise(),
    method="reversible_heun",
    adjoint_method="adjoint_reversible_heun",
    dt=0.05,
)
path.pow(2).mean().backward()
show("adjoint", [float(p.grad.norm()) for p in equation.parameters()])
motion = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(20, 3), entropy=7)
show("adds", float((motion(0.0, 0.3) + motion(0.3, 0.6) - motion(0.0, 0.6)).abs().max()) < 1e-5)
done()
