"""Edges of layers and losses that PyTorch's own tests look at; judged by PyTorch."""

from __future__ import annotations

import pytest

import xtensor
from tests.oracle import Cases, attempt

case = Cases()
SMOOTH = "celu elu gelu hardsigmoid hardswish leaky_relu logsigmoid mish selu silu softplus".split()


@case
def a_variance_is_not_negative(T):
    x = T.zeros(3)
    return [
        attempt(lambda v=v: T.nn.functional.gaussian_nll_loss(x, x, v))
        for v in (x - 1, x + 1, x * float("nan"))
    ]


@case
def margins_of_nothing(T):
    F = T.nn.functional
    given = [(T.ones(0), T.ones(10).long()), (T.ones(10, 0), T.ones(10, 0).long())]
    return [
        attempt(lambda f=f, g=g: f(*g))
        for f in (F.multi_margin_loss, F.multilabel_margin_loss)
        for g in given
    ]


@case
def sizes_beyond_integers(T):
    x = T.ones(1, 1, 2, 2)
    return [
        attempt(lambda s=s: T.nn.functional.interpolate(x, scale_factor=s, mode="bilinear"))
        for s in (1e20, -1e20)
    ]


@case
def a_batch_of_nothing_moves_no_parameter(T):
    layer = T.nn.BatchNorm2d(3)
    x = T.ones(0, 3, 2, 2, requires_grad=True)
    layer(x).sum().backward()
    return layer.weight.grad, layer.bias.grad, x.grad, layer.running_mean, layer.running_var


@case
def running_statistics_have_no_tangent(T):
    forward = T.autograd.forward_ad
    with forward.dual_level():
        x, mean = (forward.make_dual(T.ones(s), T.ones(s)) for s in ((3, 2), (2,)))
        F = T.nn.functional
        return [
            attempt(lambda: F.batch_norm(x, mean, T.ones(2))),
            attempt(lambda: F.batch_norm(T.ones(3, 2), mean, T.ones(2)).shape),
        ]


@case
def slopes_that_turn_the_sign(T):
    F = T.nn.functional
    found = []
    for write in (
        lambda x: F.elu_(x, -2),
        lambda x: F.celu(x, -2, inplace=True),
        lambda x: F.leaky_relu_(x, -2),
        lambda x: F.rrelu_(x, -5.0, 1.0),
        lambda x: F.leaky_relu_(x, 2),
    ):
        x = T.tensor([-1.0, 1.0], requires_grad=True)
        made = write(x.clone())
        # One of PyTorch's sentences ends with the place in its source.
        failed = attempt(lambda made=made: made.sum().backward())
        found.append((made, x.grad, failed and failed[2].partition(" File")[0]))
    return found


@case
def bounds_of_short_floats(T):
    x = T.tensor([0.1, 0.2, 1.3], dtype=T.bfloat16, requires_grad=True)
    made = T.nn.functional.threshold(x, 0.1, 20)
    made.sum().backward()
    return made, x.grad


@case
def nested_tensors_of_no_rows(T):
    layer = T.nn.MultiheadAttention(4, 2, batch_first=True)
    empty = T.nested.nested_tensor([])
    return layer(empty, empty, empty)


@case
def layers_copied_for_other_devices(T):
    layer = T.nn.Sequential(T.nn.BatchNorm1d(1))
    made = layer[0]._replicate_for_data_parallel()
    return [list(made._parameters), list(made._buffers), made._buffers is layer[0]._buffers, made._is_replica]


@case
def another_layout_makes_another_parameter(T):
    layer = T.nn.Linear(2, 3)
    weight, grad = layer.weight, T.ones(3, 2)
    weight.grad = grad
    layer._apply(lambda t: t.to_sparse())
    return [
        layer.weight is weight,
        isinstance(layer.weight, T.nn.Parameter),
        layer.weight.layout,
        layer.weight.grad.layout,
        grad.layout,
    ]


test_pytorchs_edges = case.test()


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_gradients_of_short_floats_are_rounded_once(name, dtype):
    short = xtensor.linspace(-6, 6, 97).to(getattr(xtensor, dtype)).requires_grad_()
    wide = short.detach().float().requires_grad_()
    grad = xtensor.linspace(-1, 2, 97).to(short.dtype)
    for x in (short, wide):
        getattr(xtensor.nn.functional, name)(x).backward(grad.to(x.dtype))
    assert short.grad.tolist() == wide.grad.to(short.dtype).tolist()


def test_recurrent_layers_compute_with_other_weights_that_they_are_given() -> None:
    layer = xtensor.nn.LSTM(3, 4)
    x = xtensor.ones(2, 1, 3)
    before = layer(x)[0]
    layer._flat_weights = [p * 2.0 for p in layer._flat_weights]
    changed = layer(x)[0]
    assert not xtensor.equal(changed, before) and layer._flat_weights[0]._xt_edge is not None
    layer.weight_ih_l0 = xtensor.nn.Parameter(xtensor.zeros(16, 3))
    assert layer._flat_weights[0] is layer.weight_ih_l0
    layer.double()
    assert all(a is b for a, b in zip(layer._flat_weights, layer.parameters(), strict=True))


def test_parameters_without_sizes_are_not_computed_with() -> None:
    lazy = xtensor.nn.LazyLinear(3)
    weight = lazy.weight
    for use in (
        lambda: weight + weight,
        lambda: 2 * weight,
        weight.numel,
        weight.sum,
        lambda: weight[0],
        weight.clone,
    ):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
            use()
    lazy.float().requires_grad_(True)
    xtensor.memory_summary()
    assert lazy(xtensor.ones(2, 4)).shape == (2, 3) and weight.numel() == 12
