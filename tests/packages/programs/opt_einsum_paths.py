"""opt_einsum: contractions of several tensors with torch behind it, and their gradients."""

import opt_einsum as oe
import torch
from same import done, numbers, show

a, b, c = numbers(3, 4), numbers(4, 5, 6, seed=1), numbers(6, 3, seed=2)
a.requires_grad_()
found = oe.contract("ij,jkl,li->k", a, b, c)
show("contracted", found)
show("gradient", torch.autograd.grad((found**2).sum(), a)[0])
expression = oe.contract_expression("ij,jkl,lm->ikm", a.shape, b.shape, (6, 3))
show("expression", expression(a, b, c, backend="torch"))
show(
    "batch",
    oe.contract("bij,bjk,bkl->bil", numbers(2, 3, 4), numbers(2, 4, 5), numbers(2, 5, 3), optimize="dp"),
)
show("path", [len(step) for step in oe.contract_path("ij,jkl,li->k", a, b, c)[0]])
show("torch's", torch.einsum("ij,jkl,li->k", a, b, c))
done()
