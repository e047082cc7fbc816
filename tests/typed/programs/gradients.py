"""Autograd: backward, grad, hooks, functions of one's own, modes; functions of functions, forward mode."""

import warnings
from typing import Any

import xtensor
import xtensor.autograd.forward_ad as fwAD
from xtensor import Tensor
from xtensor.autograd import Function, detect_anomaly, functional, gradcheck, gradgradcheck, graph
from xtensor.func import (
    functional_call,
    functionalize,
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
slope: Tensor | None = x.grad
if slope is not None:
    assert slope.tolist() == [3.0, 3.0, 3.0]
assert gradcheck(Cube.apply, (x,)) and gradgradcheck(Cube.apply, (x,))
(first,) = xtensor.autograd.grad((x**2).sum(), x, create_graph=True)
first.sum().backward(retain_graph=True)
xtensor.autograd.backward([first.sum()])


# Hooks, and what is saved
def clip(grad: Tensor) -> Tensor:
    return grad.clamp(-1, 1)


def keep(tensor: Tensor) -> Tensor:
    return tensor


def nothing(tensor: Tensor) -> None:
    return None


handle = x.register_hook(clip)
handle.remove()
x.register_post_accumulate_grad_hook(nothing).remove()
with graph.saved_tensors_hooks(keep, keep), graph.save_on_cpu():
    saved = (x * x).sum()
saved.backward()
with graph.allow_mutation_on_saved_tensors():
    x.sin().sum().backward()
with graph.disable_saved_tensors_hooks("not here"):
    x.cos().sum().backward()
hidden = x * 2
hidden.retain_grad()
seen: list[Any] = []
graph.register_multi_grad_hook((x, hidden), seen.append)
hidden.sum().backward()
graph.increment_version(hidden)
edge: graph.GradientEdge = graph.get_gradient_edge(hidden)
node: graph.Node = edge.node
assert node.name() == "MulBackward0" and hidden.output_nr == 0 and len(seen) == 1

# Modes
with xtensor.no_grad():
    x -= 0.1 * x
with xtensor.enable_grad(), xtensor.set_grad_enabled(True):
    z = (x * 2).detach()
    assert xtensor.is_grad_enabled()
with warnings.catch_warnings(action="ignore"), detect_anomaly():  # it warns that it is slow
    assert xtensor.is_anomaly_enabled()
with xtensor.inference_mode():
    w = x * 2
    assert w.is_inference() and xtensor.is_inference_mode_enabled()


@xtensor.no_grad()
def evaluate(value: Tensor) -> Tensor:
    return value * 2


print(evaluate(x).requires_grad, x.grad_fn, x.is_leaf, x.requires_grad_(False), z.retains_grad, w.shape)
picture = xtensor.autograd.draw((x.requires_grad_() * 2).sum(), {"x": x})
print(picture.svg, picture.save("graph.svg"))


# Functions of functions
def energy(x: Tensor) -> Tensor:
    return (x**3).sum()


x = xtensor.rand(3)
close = xtensor.allclose
assert close(grad(energy)(x), 3 * x**2) and close(hessian(energy)(x), functional.hessian(energy, x))
assert close(jacrev(energy)(x), jacfwd(energy)(x)) and close(grad_and_value(energy)(x)[1], energy(x))
assert close(functional.jacobian(energy, x), functionalize(grad(energy))(x))
value, directional = jvp(energy, (x,), (x,))
result = vjp(energy, x)
assert close(functional.jvp(energy, x, x)[1], directional) and close(functional.vjp(energy, x)[0], value)
assert close(functional.hvp(energy, x, x)[1], functional.vhp(energy, x, x)[1])
print(result[1](xtensor.ones(())), linearize(energy, x))
print(vmap(energy)(xtensor.rand(4, 3)), xtensor.vmap(energy, in_dims=0, chunk_size=2)(xtensor.rand(4, 3)))
net = xtensor.nn.Linear(3, 1)
weights = {name: p.detach() for name, p in net.named_parameters()}
print(functional_call(net, weights, (x,)), stack_module_state([net, net]))
with fwAD.dual_level():
    dual = fwAD.make_dual(x, x)
    unpacked: fwAD.UnpackedDualTensor = fwAD.unpack_dual(dual.exp())
    print(unpacked.tangent)


# Control flow
def halve(x: Tensor) -> Tensor:
    return x / 2


def above(x: Tensor) -> Tensor:
    return x.sum() > 1


def running(carry: Tensor, item: Tensor) -> tuple[Tensor, Tensor]:
    return carry + item, carry * item


assert xtensor.cond(x.sum() > 0, halve, Tensor.neg, (x,)).equal(x / 2)
print(xtensor.while_loop(above, halve, (x,)), xtensor.scan(running, xtensor.zeros(()), x))
