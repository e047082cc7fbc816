"""Custom autograd Functions: a straight-through estimator, a two-output function, gradient reversal, gradcheck."""

import json

import torch
from same import fill, tensor
from torch import nn
from torch.autograd import Function, Variable, gradcheck


class Binarize(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.sign()

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[input.abs() > 1] = 0
        return grad_input


class Reverse(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class SinCos(Function):
    @staticmethod
    def forward(x):
        return x.sin(), x.cos()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad_sin, grad_cos):
        (x,) = ctx.saved_tensors
        grad = torch.zeros_like(x)
        if grad_sin is not None:
            grad = grad + grad_sin * x.cos()
        if grad_cos is not None:
            grad = grad - grad_cos * x.sin()
        return grad


def main():
    first, last, domain = (
        fill(nn.Linear(4, 6), seed=1),
        fill(nn.Linear(6, 2), seed=2),
        fill(nn.Linear(6, 1), seed=3),
    )
    optimizer = torch.optim.SGD([*first.parameters(), *last.parameters(), *domain.parameters()], lr=0.1)
    x = Variable(tensor(8, 4, seed=4), requires_grad=True)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        s, c = SinCos.apply(first(x))
        hidden = Binarize.apply(s) * 0.5 + s
        loss = last(hidden).pow(2).mean() + domain(Reverse.apply(hidden, 0.3)).sigmoid().mean()
        if len(losses) % 2:
            loss = loss + c.mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert gradcheck(lambda v: SinCos.apply(v)[0], (tensor(3, seed=5).double().requires_grad_(),))
    return [*losses, x.grad.norm().item()]


if __name__ == "__main__":
    print(json.dumps(main()))
