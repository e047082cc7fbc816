"""Functions of functions, forward mode."""

import xtensor
import xtensor.autograd.forward_ad as fwAD
from xtensor import Tensor
from xtensor.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)


def energy(x: Tensor) -> Tensor:
    return (x**3).sum()


x = xtensor.rand(3)
print(grad(energy)(x), hessian(energy)(x), jacrev(energy)(x), jacfwd(energy)(x), grad_and_value(energy)(x))
value, slope = jvp(energy, (x,), (x,))
result = vjp(energy, x)
print(value, slope, result[1](xtensor.ones(())), linearize(energy, x))
print(vmap(energy)(xtensor.rand(4, 3)), xtensor.vmap(energy, in_dims=0, chunk_size=2)(xtensor.rand(4, 3)))
net = xtensor.nn.Linear(3, 1)
weights = {name: p.detach() for name, p in net.named_parameters()}
print(functional_call(net, weights, (x,)), stack_module_state([net, net]))
with fwAD.dual_level():
    dual = fwAD.make_dual(x, x)
    print(fwAD.unpack_dual(dual.exp()).tangent)
