"""What nodes saved, seen and hooked by hand, in the same words as PyTorch."""

import gc
import weakref

import pytest

import xtensor as x
from xtensor.autograd.graph import allow_mutation_on_saved_tensors
from xtensor.interop.private import NAMES


def leaf():
    return x.tensor([1.0, 2.0], requires_grad=True)


def test_a_saved_leaf_is_the_leaf_itself():
    a = leaf()
    assert (a * a).grad_fn._saved_self is a
    assert (a * a).grad_fn._saved_other is a


def test_a_saved_result_shares_its_memory_and_version():
    b = leaf().exp()
    found = b.grad_fn._saved_result
    assert found is not b
    with x.no_grad():
        b += 1
    assert x.equal(found, b)
    assert found._version == b._version == 1


def test_hooks_on_one_saved_value():
    a = leaf()
    y = a * a
    y.grad_fn._raw_saved_self.register_hooks(lambda t: 2 * t, lambda t: t)
    assert x.equal(y.grad_fn._saved_self, 2 * a)
    y.sum().backward()
    assert x.equal(a.grad, 3 * a)


def test_hooks_on_what_a_function_saved():
    class Square(x.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t, None)
            return t * t

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    a = leaf()
    y = Square.apply(a)
    assert type(y.grad_fn) is Square._backward_cls
    first, second = y.grad_fn._raw_saved_tensors
    first.register_hooks(lambda t: 3 * t, lambda t: t)
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        second.register_hooks(lambda t: t, lambda t: t)
    y.sum().backward()
    assert x.equal(a.grad, 6 * a)
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = y.grad_fn._raw_saved_tensors


@pytest.mark.parametrize(
    ("hooks", "kind", "words"),
    [
        ((lambda t: t,), TypeError, "incompatible function arguments"),
        ((1, 1), TypeError, "incompatible function arguments"),
        ((lambda t: t.mul_(2), lambda t: t), RuntimeError, "modifying its input in place"),
    ],
)
def test_hooks_that_cannot_be(hooks, kind, words):
    y = (leaf() * 1).exp()
    with pytest.raises(kind, match=words):
        y.grad_fn._raw_saved_result.register_hooks(*hooks)


def test_hooks_are_set_once():
    y = leaf().exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="already been set"):
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="is forbidden"):
        x.autograd.SavedTensor()


def test_mutation_keeps_the_values_that_were_saved():
    with allow_mutation_on_saved_tensors() as kept:
        a = leaf().clone()
        b, c = a**2, a**2
        a.sin_()
        assert len(kept.cloned) == 1
        d = a**2
        a.sin_()
        assert len(kept.cloned) == 2
        del b, c, d
        assert not kept.cloned


def test_mutation_is_for_its_block():
    with allow_mutation_on_saved_tensors():
        out = (leaf() ** 2).sum()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        out.backward()


def test_the_pass_that_runs():
    seen = []
    t = leaf().clone().sin().exp()
    t.register_hook(
        lambda g: seen.append([n.name() for n in NAMES["_C._current_graph_task_execution_order"]()])
    )
    t.register_hook(lambda g: seen.append(NAMES["_C._current_autograd_node"]().name()))
    t.register_hook(lambda g: seen.append(NAMES["_C._will_engine_execute_node"](t.grad_fn)))
    with x.autograd.set_multithreading_enabled(False):
        t.sum().backward()
    order = [
        "SumBackward0",
        "ExpBackward0",
        "SinBackward0",
        "CloneBackward0",
        "torch::autograd::AccumulateGrad",
    ]
    assert seen == [order, "ExpBackward0", True]
    with pytest.raises(RuntimeError, match="during the backward pass"):
        NAMES["_C._will_engine_execute_node"](t.grad_fn)


def test_callbacks_after_a_pass():
    log = []
    t = leaf().clone()
    queue = x.autograd.Variable._execution_engine.queue_callback
    t.register_hook(lambda g: queue(lambda: (log.append(1), queue(lambda: log.append(2)))))
    t.sum().backward()
    assert log == [1, 2]


def test_nodes_made_by_hand():
    a = leaf()
    with pytest.raises(RuntimeError, match="Boom"):
        NAMES["_C._functions.DelayedError"]("Boom", 1)(a).sum().backward()
    NAMES["_C._functions.UndefinedGrad"]()(a).sum().backward()
    assert a.grad is None


def test_sequence_numbers_decide_who_is_first():
    a = leaf()
    b, c = a + 1, a + 2
    out = b + c
    b.grad_fn._set_sequence_nr(100_000_000)
    order = []
    b.register_hook(lambda g: order.append("b"))
    c.register_hook(lambda g: order.append("c"))
    out.sum().backward()
    assert order == ["b", "c"]
    assert out.grad_fn._input_metadata[0].shape == (2,)
    assert out.grad_fn._input_metadata[0].dtype is x.float32


def test_attributes_that_cannot_be_deleted():
    a = leaf()
    a.grad = x.ones(2)
    del a.grad
    assert a.grad is None
    for name in ("data", "requires_grad", "_grad_fn", "_backward_hooks"):
        with pytest.raises(RuntimeError):
            delattr(a, name)


def test_the_gradient_of_what_is_no_leaf_is_warned_of():
    a = leaf().clone()
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert a.grad is None
    a.retain_grad()
    assert a.grad is None


def test_a_function_binds_the_defaults_of_its_forward():
    class Power(x.autograd.Function):
        @staticmethod
        def forward(t, exponent=3):
            return t**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.exponent = inputs[1]

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.exponent * ctx.saved_tensors[0] ** (ctx.exponent - 1), None

    a = leaf()
    Power.apply(a).sum().backward()
    assert x.equal(a.grad, 3 * a.detach() ** 2)


def test_reentrant_checkpoints_need_a_whole_pass():
    a = leaf()
    b = x.utils.checkpoint.checkpoint(x.exp, a, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match=r"torch.utils.checkpoint is incompatible with .grad\(\)"):
        x.autograd.grad(b, a)


def test_graphs_with_hooked_values_are_freed():
    def made():
        y = leaf().exp()
        y.grad_fn._raw_saved_result.register_hooks(lambda t: t, lambda t: t)
        return weakref.ref(y.grad_fn)

    found = made()
    gc.collect()
    assert found() is None


def test_gradients_of_views_are_retained_though_their_base_is_written():
    base = leaf().clone()
    first, second = base[:1], base[:1]
    first.retain_grad(), second.retain_grad()
    first.mul_(2)
    (first + 3 * second).sum().backward()
    assert first.grad.tolist() == [1.0]
    assert second.grad.tolist() == [3.0]


def test_a_gradient_that_is_a_part_of_something_goes_through_writes_to_views():
    r = x.ones(4, requires_grad=True)
    v = r.clone()
    v[1:3].mul_(2.0)
    rows = x.arange(8.0).reshape(2, 4)
    (found,) = x.autograd.grad(v, r, rows[1])
    assert found.tolist() == [4.0, 10.0, 12.0, 7.0]
