"""nflows: transforms with their log determinants and inverses, and a conditional density trained."""

import torch
from nflows.distributions.normal import ConditionalDiagonalNormal
from nflows.flows.base import Flow
from nflows.nn.nets import ResidualNet
from nflows.transforms.autoregressive import MaskedAffineAutoregressiveTransform
from nflows.transforms.base import CompositeTransform
from nflows.transforms.coupling import PiecewiseRationalQuadraticCouplingTransform
from nflows.transforms.lu import LULinear
from nflows.transforms.permutations import ReversePermutation
from nflows.transforms.svd import SVDLinear
from nflows.utils import torchutils
from same import done, fill, numbers, show, steps

x, c = numbers(32, 4), numbers(32, 2, seed=1)
parts = {
    "affine": MaskedAffineAutoregressiveTransform(features=4, hidden_features=8, context_features=2),
    "spline": PiecewiseRationalQuadraticCouplingTransform(
        torchutils.create_alternating_binary_mask(4, even=True),
        lambda i, o: ResidualNet(i, o, hidden_features=8, context_features=2, num_blocks=1),
        num_bins=5,
        tails="linear",
        tail_bound=3.0,
    ),
    "lu": LULinear(4, identity_init=True),
    "svd": SVDLinear(4, num_householder=2),
    "reverse": ReversePermutation(4),
}
for name, part in parts.items():
    y, logdet = fill(part, scale=0.2)(x, c)
    show(name, y)
    show(f"{name} determinant", logdet)
    show(f"{name} back", float((part.inverse(y, c)[0] - x).abs().max()) < 1e-3)
transform = CompositeTransform([parts[name] for name in ("affine", "reverse", "spline", "lu")])
flow = Flow(transform, ConditionalDiagonalNormal([4], context_encoder=fill(torch.nn.Linear(2, 8), scale=0.2)))
steps(flow, lambda: -flow.log_prob(inputs=x, context=c).mean())
show("drawn", list(flow.sample(3, context=c[:2]).shape))
done()
