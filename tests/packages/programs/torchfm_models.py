"""torchfm: factorization machines and the deep and attentive models built on them."""

import numpy as np
import torch
import torch.nn.functional as F
from same import done, fill, integers, show, steps
from torchfm.model.afi import AutomaticFeatureInteractionModel
from torchfm.model.dcn import DeepCrossNetworkModel
from torchfm.model.dfm import DeepFactorizationMachineModel
from torchfm.model.fm import FactorizationMachineModel
from torchfm.model.xdfm import ExtremeDeepFactorizationMachineModel

fields = np.array([3, 4, 5])
x = torch.stack([integers(int(n), 8, seed=i) for i, n in enumerate(fields)], 1)
y = integers(2, 8).float()
for name, model in dict(
    fm=FactorizationMachineModel(fields, 4),
    deep=DeepFactorizationMachineModel(fields, 4, (8,), 0.0),
    cross=DeepCrossNetworkModel(fields, 4, 2, (8,), 0.0),
    extreme=ExtremeDeepFactorizationMachineModel(fields, 4, (8,), 0.0, (4, 4)),
    attentive=AutomaticFeatureInteractionModel(fields, 4, 8, 2, 1, (8,), (0.0, 0.0, 0.0)),
).items():
    fill(model)
    steps(model, lambda model=model: F.binary_cross_entropy(model(x), y))
    show(name, model(x))
done()
