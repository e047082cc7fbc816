"""normflows and FrEIA: coupling flows, splines and invertible networks, and training by likelihood."""

import FrEIA.framework
import FrEIA.modules
import normflows
import torch
from same import done, fill, numbers, show, steps
from torch import nn

mask = torch.tensor([0.0, 1.0])
x = numbers(8, 2)
flows = []
for _ in range(2):
    flows += [
        normflows.flows.MaskedAffineFlow(mask, normflows.nets.MLP([2, 8, 2]), normflows.nets.MLP([2, 8, 2])),
        normflows.flows.AffineCouplingBlock(normflows.nets.MLP([1, 8, 2])),
        normflows.flows.Permute(2, mode="swap"),
    ]
model = fill(normflows.NormalizingFlow(normflows.distributions.DiagGaussian(2), flows))
show("likelihood", model.log_prob(x))
steps(model, lambda: model.forward_kld(x))
splines = [normflows.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8, num_bins=4)]
model = fill(normflows.NormalizingFlow(normflows.distributions.DiagGaussian(2, trainable=False), splines))
show("splines", model.log_prob(x))


def between(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, outputs))


block = fill(FrEIA.modules.GLOWCouplingBlock([(4,)], subnet_constructor=between))
(out,), logarithm = block([numbers(5, 4)], jac=True)
show("block", out)
show("jacobian", logarithm)
(back,), _ = block([out], rev=True)
show("back", back)
done()
