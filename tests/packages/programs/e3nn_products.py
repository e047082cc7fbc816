"""e3nn: spherical harmonics, tensor products and a rotation that a layer follows."""

import torch
from e3nn import o3
from e3nn.nn import FullyConnectedNet, Gate
from same import done, draw_from_numpy, fill, numbers, show

draw_from_numpy()  # what activations are scaled by is drawn
x = numbers(5, 3)
show("harmonics", o3.spherical_harmonics([0, 1, 2, 3], x, normalize=True, normalization="component"))
show("wigner", o3.wigner_3j(1, 2, 1))
linear = fill(o3.Linear("4x0e + 2x1o", "3x0e + 2x1o"))
features = numbers(5, 10, seed=2).requires_grad_()
show("linear", linear(features))
product = fill(o3.FullyConnectedTensorProduct("4x0e + 2x1o", "1x0e + 1x1o", "3x0e + 2x1o"))
out = product(features, o3.spherical_harmonics([0, 1], x, True))
show("product", out)
show("gradient", torch.autograd.grad((out**2).sum(), features)[0])
show("network", fill(FullyConnectedNet([3, 8, 4], torch.relu))(x))
gate = Gate("3x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
show("gate", gate(numbers(5, 11, seed=3)))
turn = o3.rand_matrix(1)[0] * 0 + o3.angles_to_matrix(torch.tensor(0.3), torch.tensor(0.5), torch.tensor(0.7))
show(
    "turned",
    float(
        (
            o3.spherical_harmonics(2, x @ turn.T, True)
            - o3.spherical_harmonics(2, x, True) @ o3.Irrep("2e").D_from_matrix(turn).T
        )
        .abs()
        .max()
    )
    < 1e-4,
)
done()
