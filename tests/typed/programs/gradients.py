"""Autograd: backward, grad, hooks, functions of one's own, modes."""

from typing import Any

import xtensor
from xtensor import Tensor
from xtensor.autograd import Function, detect_anomaly, gradcheck


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:
        ctx.save_for_backward(value)
        return value**3

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        value: Tensor = ctx.saved_tensors[0]
        return grads[0] * (3 * value**2)


x = xtensor.ones(3, dtype=xtensor.float64, requires_grad=True)
out = Cube.apply(x)
out.sum().backward()
grad: Tensor | None = x.grad
if grad is not None:
    print(grad.sum())
print(gradcheck(Cube.apply, (x,)))
(first,) = xtensor.autograd.grad((x**2).sum(), x, create_graph=True)
first.sum().backward(retain_graph=True)


def clip(grad: Tensor) -> Tensor:
    return grad.clamp(-1, 1)


handle = x.register_hook(clip)
handle.remove()
with xtensor.no_grad():
    x -= 0.1 * x
with xtensor.enable_grad(), detect_anomaly():
    z = (x * 2).detach()
with xtensor.inference_mode():
    w = x * 2


@xtensor.no_grad()
def evaluate(value: Tensor) -> Tensor:
    return value * 2


print(evaluate(x).requires_grad, x.grad_fn, x.is_leaf, x.requires_grad_(False), z.retains_grad, w.shape)
picture = xtensor.autograd.draw((x.requires_grad_() * 2).sum(), {"x": x})
print(picture.svg, picture.save("graph.svg"))
