"""Activation checkpointing: the same losses and gradients, what is kept, what is computed again, and its errors."""

import contextlib

import pytest

import xtensor
from xtensor import nn
from xtensor.utils import checkpoint as module
from xtensor.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    set_checkpoint_debug_enabled,
)


@pytest.fixture
def model():
    xtensor.manual_seed(0)
    return nn.Sequential(
        nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)
    )


def results(model, run):
    x = xtensor.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
    xtensor.manual_seed(1)
    model.zero_grad()
    loss = run(x).sum()
    loss.backward()
    return [loss.item(), x.grad.tolist(), *(p.grad.tolist() for p in model.parameters())]


@pytest.mark.parametrize("reentrant", [True, False])
def test_the_same_numbers_with_dropout(model, reentrant):
    plain = results(model, model)
    assert results(model, lambda x: checkpoint(model, x, use_reentrant=reentrant)) == plain
    for segments in (1, 2, 3):
        run = lambda x, n=segments: checkpoint_sequential(model, n, x, use_reentrant=reentrant)
        assert results(model, run) == plain


def test_random_state_is_kept_only_if_asked(model):
    calls = []

    def noisy(x):
        calls.append(xtensor.rand(1).item())
        return (x * calls[-1]).exp()

    x = xtensor.ones(2, requires_grad=True)
    checkpoint(noisy, x, use_reentrant=False).sum().backward()
    assert calls[0] == calls[1]
    calls.clear()
    checkpoint(noisy, x, use_reentrant=False, preserve_rng_state=False, early_stop=False).sum().backward()
    assert calls[0] != calls[1]


def test_computed_again_once_and_no_further_than_needed():
    calls = []

    def part(x):
        calls.append("first")
        y = x.exp().sin()
        calls.append("last")
        return y * 2

    x = xtensor.ones(3, requires_grad=True)
    y = checkpoint(part, x, use_reentrant=False)
    y.sum().backward()
    assert calls[:3] == ["first", "last", "first"]
    with xtensor.no_grad():
        calls.clear()
        checkpoint(part, x, use_reentrant=False)
        assert calls == ["first", "last"]


def test_nested_keywords_and_containers():
    x = xtensor.tensor([0.5, 1.0], requires_grad=True)

    def inner(z):
        return z.exp()

    def outer(z, *, factor):
        return {"out": checkpoint(inner, z * factor, use_reentrant=False), "other": 3}

    found = checkpoint(outer, x, factor=2.0, use_reentrant=False)
    found["out"].sum().backward()
    assert x.grad.tolist() == pytest.approx((2 * (2 * x.detach()).exp()).tolist())


def test_second_derivatives():
    x = xtensor.tensor([0.3, 0.7], requires_grad=True)

    def second(f):
        (first,) = xtensor.autograd.grad(f(x).sum(), x, create_graph=True)
        return xtensor.autograd.grad(first.sum(), x)[0].tolist()

    function = lambda z: (z**3).sin()
    assert second(lambda z: checkpoint(function, z, use_reentrant=False)) == second(function)


def test_context_fn_and_autocast():
    entered = []

    @contextlib.contextmanager
    def note(name):
        entered.append(name)
        yield

    dtypes = []

    def product(x):
        y = x @ x
        dtypes.append(y.dtype)
        return y

    x = xtensor.eye(2).requires_grad_()
    with xtensor.autocast("cpu"):
        y = checkpoint(product, x, use_reentrant=False, context_fn=lambda: (note("first"), note("second")))
    y.float().sum().backward()
    assert entered == ["first", "second"]
    assert dtypes[0] is xtensor.bfloat16 and set(dtypes) == {xtensor.bfloat16}


def test_what_differs_is_an_error():
    calls = []

    def growing(x):
        calls.append(1)
        return x[: len(calls)].exp().sum()

    x = xtensor.ones(3, requires_grad=True)
    with pytest.raises(CheckpointError, match="different metadata"):
        checkpoint(growing, x, use_reentrant=False).backward()

    calls.clear()

    def longer(x):
        calls.append(1)
        for _ in calls:
            x = x.exp()
        return x.sum()

    with pytest.raises(CheckpointError, match="trying to save more tensors"):
        checkpoint(longer, x, use_reentrant=False, early_stop=False).backward()
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(longer, x, use_reentrant=False, determinism_check="maybe")
    with pytest.raises(ValueError, match="Unexpected keyword arguments"):
        checkpoint(longer, x, use_reentrant=True, factor=2)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed"):
        checkpoint(lambda z: z * 1, x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        module.checkpoint(lambda z: z * 1, x.detach(), use_reentrant=True)


def test_what_was_computed_again_is_given_out_once():
    calls = []

    def run(v):
        calls.append(1)
        return v.exp()

    x = xtensor.tensor([1.0, 2.0], requires_grad=True)
    y = checkpoint(run, x, use_reentrant=False)
    assert xtensor.equal(y.grad_fn._saved_result, y)
    assert xtensor.equal(y.grad_fn._saved_result, y)
    assert len(calls) == 3
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    assert len(calls) == 5
    assert xtensor.equal(x.grad, 2 * y)


def test_saved_tensors_of_a_function_are_read_once():
    class Product(xtensor.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="already unpacked once"):
                _ = ctx.saved_tensors
            return grad * b, grad * a

    x = xtensor.tensor([1.0, 2.0], requires_grad=True)
    checkpoint(lambda v: Product.apply(v.sin(), v.cos()), x, use_reentrant=False).sum().backward()
    assert xtensor.allclose(x.grad, (2 * x).cos())


@pytest.mark.parametrize(
    ("debug", "block", "told"), [(True, None, True), (False, True, True), (True, False, False)]
)
def test_debug_says_more(debug, block, told):
    shapes = iter([(2,), (3,)])
    x = xtensor.tensor([1.0], requires_grad=True)
    with set_checkpoint_debug_enabled(block):
        y = checkpoint(lambda v: v.sin() * xtensor.ones(next(shapes)), x, use_reentrant=False, debug=debug)
        with pytest.raises(RuntimeError, match="different metadata") as caught:
            y.sum().backward()
    assert ("because you passed `debug=True`" in str(caught.value)) == told
