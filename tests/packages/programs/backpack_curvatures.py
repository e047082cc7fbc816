"""backpack: gradients of single samples and curvatures beside the gradient, and steps by them."""

import torch
from backpack import backpack, extend, extensions
from backpack.hessianfree.hvp import hessian_vector_product
from same import done, fill, numbers, show
from torch import nn

x, y = numbers(6, 1, 8, 8), torch.arange(6) % 4
net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4))
model, loss_of = extend(fill(net)), extend(nn.CrossEntropyLoss())
for name in ("BatchGrad", "BatchL2Grad", "Variance", "DiagGGNExact", "DiagHessian", "KFLR"):
    extension = getattr(extensions, name)()
    model.zero_grad()
    with backpack(extension):
        loss_of(model(x), y).backward()
    for label, p in model.named_parameters():
        value = getattr(p, extension.savefield)
        parts = value if isinstance(value, (list, tuple)) else [value]
        show(f"{name} {label}", torch.cat([part.flatten() for part in parts]))
parameters = list(model.parameters())
product = hessian_vector_product(loss_of(model(x), y), parameters, [torch.ones_like(p) for p in parameters])
show("product", torch.cat([part.flatten() for part in product]))
losses = []
for _ in range(3):
    model.zero_grad()
    loss = loss_of(model(x), y)
    with backpack(extensions.DiagGGNExact()):
        loss.backward()
    with torch.no_grad():
        for p in parameters:
            p -= 0.1 * p.grad / (p.diag_ggn_exact + 1)
    losses.append(loss.item())
show("train losses", losses)
done()
