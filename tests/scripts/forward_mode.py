"""Forward mode: dual tensors, parameters with tangents, a Function with its jvp, gradcheck of it, and torch.func.jvp."""

import json
from functools import partial

import torch
import torch.autograd.forward_ad as fwAD
import torch.nn as nn
from same import fill, tensor
from torch.func import functional_call, jvp


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        result = torch.exp(a) * b
        ctx.result = result
        ctx.save_for_forward(a, b)
        ctx.save_for_backward(a, b)
        return result

    @staticmethod
    def jvp(ctx, ga, gb):
        a, _ = ctx.saved_tensors
        found = ctx.result * ga + torch.exp(a) * gb
        del ctx.result
        return found

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * torch.exp(a) * b, grad * torch.exp(a)


def main():
    primal, tangent = tensor(5, 5), tensor(5, 5, seed=1)

    def fn(a, b):
        return a**2 + b**2

    with fwAD.dual_level():
        dual = fwAD.make_dual(primal, tangent)
        assert fwAD.unpack_dual(dual).tangent is tangent
        along = fwAD.unpack_dual(fn(dual, tensor(5, 5, seed=2))).tangent
        assert fwAD.unpack_dual(fn(primal, primal)).tangent is None
    assert fwAD.unpack_dual(fn(dual, primal)).tangent is None

    model = fill(nn.Linear(5, 5))
    batch = tensor(16, 5, seed=3)
    params = dict(model.named_parameters())
    tangents = {name: tensor(*p.shape, seed=4) for name, p in params.items()}
    with fwAD.dual_level():
        for name, p in params.items():
            delattr(model, name)
            setattr(model, name, fwAD.make_dual(p, tangents[name]))
        of_module = fwAD.unpack_dual(model(batch)).tangent

    plain = {name: p.detach() for name, p in params.items()}
    other = fill(nn.Linear(5, 5))
    by_jvp = jvp(lambda p: functional_call(other, p, (batch,)), (plain,), (tangents,))[1]
    assert torch.allclose(of_module, by_jvp, atol=1e-5)

    a, b = tensor(5, seed=5).double().requires_grad_(), tensor(5, seed=6).double().requires_grad_()
    assert torch.autograd.gradcheck(Product.apply, (a, b), check_forward_ad=True, check_backward_ad=False)
    with fwAD.dual_level():
        mixed = fwAD.make_dual(a, torch.ones_like(a))
        product = Product.apply(mixed, b)
        value, rate = fwAD.unpack_dual(product)
        (second,) = torch.autograd.grad(rate.sum(), a)

    direction = jvp(partial(fn, b=primal), (primal,), (tangent,))[1]
    found = (along, of_module, value, rate, second, direction)
    return [v for each in found for v in (each.sum().item(), each.abs().sum().item())]


if __name__ == "__main__":
    print(json.dumps(main()))
