"""Jacobians and Hessians by torch.func: rows one by one, by vjp and vmap, jacrev, jacfwd, batches, products with vectors."""

import json
from functools import partial

import torch
import torch.nn.functional as F
from same import tensor
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap


def predict(weight, bias, x):
    return F.linear(x, weight, bias).tanh()


def rows_one_by_one(out, x):
    return torch.stack(
        [torch.autograd.grad(out, x, row, retain_graph=True)[0] for row in torch.eye(len(out))]
    )


def main():
    size = 6
    weight, bias, x = tensor(size, size), tensor(size, seed=1), tensor(size, seed=2)
    followed = x.clone().requires_grad_()
    loop = rows_one_by_one(predict(weight, bias, followed), followed)
    _, pull = vjp(partial(predict, weight, bias), x)
    (by_vmap,) = vmap(pull)(torch.eye(size))
    reverse = jacrev(predict, argnums=2)(weight, bias, x)
    forward = jacfwd(predict, argnums=2)(weight, bias, x)
    for other in (by_vmap, reverse, forward):
        assert torch.allclose(loop, other, atol=1e-5)
    by_weight, by_bias = jacrev(predict, argnums=(0, 1))(weight, bias, x)

    second = hessian(predict, argnums=2)(weight, bias, x)
    assert torch.allclose(second, jacfwd(jacfwd(predict, argnums=2), argnums=2)(weight, bias, x), atol=1e-4)
    assert torch.allclose(second, jacrev(jacrev(predict, argnums=2), argnums=2)(weight, bias, x), atol=1e-4)

    batch = tensor(5, size, seed=3)
    jacobians = vmap(jacrev(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch)
    summed = jacrev(lambda w, b, each: predict(w, b, each).sum(0), argnums=2)(weight, bias, batch).movedim(
        1, 0
    )
    assert torch.allclose(jacobians, summed, atol=1e-5)
    hessians = vmap(hessian(predict, argnums=2), in_dims=(None, None, 0))(weight, bias, batch)

    def f(x):
        return x.sin().sum()

    def forward_over_reverse(f, primals, tangents):
        return jvp(grad(f), primals, tangents)[1]

    def reverse_over_reverse(f, primals, vectors):
        _, pull = vjp(grad(f), *primals)
        return pull(*vectors)[0]

    point, direction = tensor(8, seed=4), tensor(8, seed=5)
    product = forward_over_reverse(f, (point,), (direction,))
    assert torch.allclose(product, reverse_over_reverse(f, (point,), (direction,)), atol=1e-5)
    found = (loop, by_weight, by_bias, second, jacobians, hessians, product)
    return [v for each in found for v in (each.sum().item(), each.abs().sum().item())]


if __name__ == "__main__":
    print(json.dumps(main()))
