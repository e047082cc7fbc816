"""tensorly: decompositions of a tensor with torch behind it, with a gradient through one."""

import tensorly as tl
import torch
from same import done, numbers, show
from tensorly.decomposition import parafac, tensor_train, tucker

tl.set_backend("pytorch")
x = numbers(4, 5, 6)
show("unfolded", tl.unfold(x, 1))
show("product", tl.tenalg.mode_dot(x, numbers(3, 5, seed=2), 1))
core, factors = tucker(x, rank=[2, 3, 3], init="svd", n_iter_max=10)
show("tucker", tl.tucker_to_tensor((core, factors)))
cp = parafac(x, rank=3, init="svd", n_iter_max=10)
show("train parafac", tl.cp_to_tensor(cp))
show("train", tl.tt_to_tensor(tensor_train(x, rank=[1, 3, 3, 1])))
show("khatri-rao", tl.tenalg.khatri_rao([numbers(4, 2), numbers(5, 2, seed=3)]))
weight = numbers(2, 3, 3).requires_grad_()
loss = tl.norm(tl.tucker_to_tensor((weight, [f.detach() for f in factors])) - x) ** 2
show("gradient", torch.autograd.grad(loss, weight)[0])
done()
