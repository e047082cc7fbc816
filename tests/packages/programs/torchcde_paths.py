"""torchcde: controlled differential equations along splines, with gaps in the data, and a few training steps."""

import torch
import torchcde
from same import done, fill, numbers, show, steps
from torch import nn


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = fill(nn.Linear(4, 8))

    def forward(self, t, z):
        return self.linear(z).tanh().view(3, 4, 2)


x = numbers(3, 7, 2)
coeffs = torchcde.hermite_cubic_coefficients_with_backward_differences(x)
path = torchcde.CubicSpline(coeffs)
show("coefficients", coeffs)
show("value", path.evaluate(torch.tensor(2.3)))
show("slope", path.derivative(torch.tensor(1.7)))
gaps = x.clone()
gaps[0, 2, 1] = float("nan")
show("linear", torchcde.linear_interpolation_coeffs(gaps))
show("natural", torchcde.natural_cubic_coeffs(gaps))
field = Field()


def solved():
    options = dict(step_size=1.0)
    return torchcde.cdeint(
        path, field, torch.zeros(3, 4), path.interval, adjoint=False, method="rk4", options=options
    )


show("solution", solved())
steps(field, lambda: solved()[:, -1].pow(2).mean())
done()
