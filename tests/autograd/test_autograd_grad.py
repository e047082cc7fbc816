"""`.grad` of leaves and of intermediate results, judged by PyTorch: assigned, retained, accumulated, refused."""

from __future__ import annotations

import numpy as np
import pytest

import xtensor
from tests.oracle import Cases, attempt, graph, leaf

case = Cases()


@case
def grad_assigned(T):
    x = leaf(T, 3)
    x.grad = T.ones(3, dtype=T.float64)
    (x * 2).sum().backward()
    return x.grad


@case
def grad_assigned_wrong_shape(T):
    leaf(T, 3).grad = T.ones(2, dtype=T.float64)


@case
def grad_assigned_wrong_dtype(T):
    return attempt(lambda: setattr(leaf(T, 3), "grad", T.ones(3, dtype=T.float32)))[2][:170]


@case
def grad_assigned_no_tensor(T):
    leaf(T, 3).grad = 3.0


@case
def grad_assigned_itself(T):
    x = leaf(T, 3)
    x.grad = x


@case
def grad_deleted(T):
    x = leaf(T, 3)
    (x * 2).sum().backward()
    del x.grad
    return x.grad


@case
def assigned_grad_is_added_to_in_place(T):
    x = leaf(T, 3)
    given = T.ones(3, dtype=T.float64)
    x.grad = given
    (x * 2).sum().backward()
    return given, x.grad is given


@case
def retained_gradient(T):
    x, _w, y, z = graph(T)
    y.retain_grad()
    z.backward(retain_graph=True)
    first = y.grad
    z.backward()
    return first, y.grad, y.retains_grad, x.retains_grad, y.grad.requires_grad


@case
def retained_gradient_with_create_graph(T):
    _x, _w, y, z = graph(T)
    y.retain_grad()
    z.backward(create_graph=True)
    return y.grad, y.grad.requires_grad


@case
def retain_grad_of_leaf(T):
    x = leaf(T, 2)
    x.retain_grad()
    return x.retains_grad


@case
def retain_grad_of_plain(T):
    T.ones(2).retain_grad()


@case
def retain_grad_follows_in_place(T):
    x, _w, y, _ = graph(T)
    y.retain_grad()
    y.mul_(2)
    (y * y).sum().backward()
    return y.grad, x.grad


@case
def retain_grad_of_view_base_written(T):
    x, _w, y, _ = graph(T)
    y.retain_grad()
    y[0].mul_(2)
    (y * y).sum().backward()
    return y.grad, x.grad


@case
def retain_grad_twice(T):
    _x, _w, y, z = graph(T)
    y.retain_grad()
    y.retain_grad()
    z.backward()
    return y.grad


@case
def retain_grad_ignores_undefined(T):
    x = leaf(T, 4)
    a, b = (x * 2).split(2)
    a.retain_grad()
    b.retain_grad()
    a.sum().backward()
    return a.grad, b.grad


@case
def grad_of_nonleaf_read(T):
    return graph(T)[2].grad


@case
def requires_grad_changed(T):
    x, _, y, _ = graph(T)
    return (
        attempt(lambda: y.requires_grad_(False)),
        attempt(lambda: y.requires_grad_(True) is y),
        attempt(lambda: T.ones(2, dtype=T.int64).requires_grad_()),
        attempt(lambda: setattr(y, "requires_grad", False)),
        x.requires_grad_(False).requires_grad,
    )


@case
def integer_results_need_no_grad(T):
    x = leaf(T, 3)
    values, indices = x.max(0)
    return values.requires_grad, indices.requires_grad, (x > 1).requires_grad, x.to(T.int64).requires_grad


@case
def gradient_through_dtypes(T):
    x = leaf(T, 3)
    y = x.to(T.float32) * x
    y.sum().backward()
    return y.dtype, x.grad


@case
def broadcast_is_reduced(T):
    x, w, s = leaf(T, 3, 1), leaf(T, 1, 4), leaf(T)
    (x * w + s).sum().backward()
    return x.grad, w.grad, s.grad


@case
def complex_to_real(T):
    x = leaf(T, 3)
    z = T.complex(x, x * 2) if hasattr(T, "complex") else None
    (z * z.conj()).real.sum().backward()
    return x.grad


test_grad = case.test()


def test_a_batch_of_gradients_is_not_retained():
    leaf = xtensor.ones(3, requires_grad=True)
    middle = leaf * 2
    middle.retain_grad()
    result = middle.sin()
    (rows,) = xtensor.autograd.grad(result, leaf, xtensor.eye(3), is_grads_batched=True, retain_graph=True)
    assert middle.grad is None and rows.shape == (3, 3)
    result.backward(xtensor.ones(3))
    assert xtensor.allclose(middle.grad, middle.cos())


@pytest.mark.parametrize("kind", ["linear", "convolved", "pooled"])
def test_third_derivatives(torch, kind):
    """A derivative's derivative keeps all that its own may take, since nothing was traced to tell; one that was written to is refused."""

    def thrice(lib, touch=False):
        F = lib.nn.functional
        x = lib.linspace(-1.0, 1.0, 2 * 3 * 4 * 4).reshape(2, 3, 4, 4).requires_grad_()
        w = lib.sin(lib.arange(54.0)).reshape(2, 3, 3, 3)
        made = {
            "linear": lambda: F.linear(x.flatten(1), lib.sin(lib.arange(144.0)).reshape(3, 48)),
            "convolved": lambda: F.conv2d(x * x * x, w).flatten(1),
            "pooled": lambda: F.max_pool2d(lib.tanh(x), 2).flatten(1),
        }[kind]()
        loss = F.cross_entropy(made, lib.tensor([1, 0]))
        v, found = lib.cos(lib.arange(96.0)).reshape(2, 3, 4, 4), []
        value = loss
        for level in range(3):
            (grad,) = lib.autograd.grad(value, x, create_graph=True)
            found.append(grad.detach().numpy())
            value = (grad * v).sum()
            if touch and level == 1:
                with lib.no_grad():
                    x.add_(1)
        return found

    for ours, theirs in zip(thrice(xtensor), thrice(torch), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-5)
    if kind == "convolved":
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            thrice(xtensor, touch=True)
