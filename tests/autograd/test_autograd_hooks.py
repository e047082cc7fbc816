"""Hooks of every kind, judged by PyTorch: order, replacement, removal, and what is refused."""

from __future__ import annotations

from typing import Any

import xtensor
from tests.oracle import Cases, attempt, leaf

case = Cases()


# -- tensor hooks


@case
def order_of_everything(T):
    log = []
    x = leaf(T, 3)
    y = x * 2
    z = y.sum()
    y.grad_fn.register_hook(lambda gi, go: log.append("post y"))
    y.grad_fn.register_prehook(lambda go: log.append("pre y"))
    y.register_hook(lambda g: log.append("tensor y"))
    y.retain_grad()
    y.register_hook(lambda g: log.append(("tensor y 2", y.grad is None)))
    x.register_hook(lambda g: log.append("leaf x"))
    x.register_post_accumulate_grad_hook(lambda p: log.append(("after x", p.grad.sum().item())))
    z.register_hook(lambda g: log.append("tensor z"))
    z.grad_fn.register_hook(lambda gi, go: log.append("post z"))
    z.backward()
    return log, y.grad, x.grad


@case
def hook_replaces(T):
    x = leaf(T, 3)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: g * 10)
    y.sum().backward()
    return x.grad, y.grad


@case
def hook_sees_the_sum(T):
    log = []
    x = leaf(T, 3)
    y = x * 2
    y.register_hook(log.append)
    (y.sum() + (y * y).sum()).backward()
    return log


@case
def leaf_hook_runs_once_per_pass(T):
    log = []
    x = leaf(T, 3)
    x.register_hook(log.append)
    (x * 2 + x * x).sum().backward()
    (x * 3).sum().backward()
    return log, x.grad


@case
def hook_removed(T):
    x = leaf(T, 3)
    handle = x.register_hook(lambda g: g * 2)
    (x * 2).sum().backward()
    handle.remove()
    handle.remove()
    (x * 2).sum().backward()
    return x.grad


@case
def hook_removed_by_with(T):
    x = leaf(T, 3)
    with x.register_hook(lambda g: g * 2):
        (x * 2).sum().backward()
    (x * 2).sum().backward()
    return x.grad


@case
def hook_returns_wrong_type(T):
    x = leaf(T, 3)
    x.register_hook(lambda g: 3.0)
    x.sum().backward()


@case
def hook_returns_wrong_shape(T):
    x = leaf(T, 3)

    def halve(g):
        return g[:2]

    x.register_hook(halve)
    x.sum().backward()


@case
def hook_returns_wrong_dtype(T):
    x = leaf(T, 3)

    def narrow(g):
        return g.float()

    x.register_hook(narrow)
    x.sum().backward()


@case
def hook_on_plain(T):
    T.ones(2).register_hook(lambda g: g)


@case
def hook_raises(T):
    x = leaf(T, 3)

    def fail(g):
        raise ValueError("from hook")

    (x * 2).register_hook(fail)
    y = x * 2
    y.register_hook(fail)
    y.sum().backward()


@case
def hook_before_in_place_sees_old(T):
    log = []
    x = leaf(T, 3)
    y = x * 2
    y.register_hook(lambda g: log.append(("before", g)))
    y.mul_(3)
    y.register_hook(lambda g: log.append(("after", g)))
    y.sum().backward()
    return log


@case
def hook_on_view_then_base_written(T):
    log = []
    x = leaf(T, 3)
    y = x * 2
    v = y[1:]
    v.register_hook(lambda g: log.append(("view", g)))
    y.mul_(3)
    (v.sum() + y.sum()).backward()
    return log, x.grad


@case
def hook_on_intermediate_not_reached(T):
    log = []
    x = leaf(T, 3)
    y = x * 2
    y.register_hook(log.append)
    T.autograd.grad((x * 3).sum(), x)
    return log


@case
def hooks_run_for_grad(T):
    log = []
    x = leaf(T, 3)
    x.register_hook(lambda g: g * 2)
    y = x * 2
    y.register_hook(lambda g: log.append(g))
    found = T.autograd.grad(y.sum(), [x, y])
    return log, found, x.grad


@case
def captured_gradient_is_after_hooks(T):
    x = leaf(T, 3)
    y = x * 2
    y.register_hook(lambda g: g * 5)
    return T.autograd.grad(y.sum(), y), T.autograd.grad((x * 2).sum(), x)


@case
def hook_keeps_create_graph(T):
    x = leaf(T, 3)
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    g.sum().backward()
    return g, x.grad


# -- node hooks


@case
def node_hooks_replace(T):
    log = []
    x, w = leaf(T, 3), leaf(T, 3)
    y = x * w

    def post(inputs, outputs):
        log.append((inputs, outputs))
        return (inputs[0] * 10, None)

    def pre(outputs):
        log.append(outputs)
        return (outputs[0] * 2,)

    y.grad_fn.register_hook(post)
    y.grad_fn.register_prehook(pre)
    y.sum().backward()
    return log, x.grad, w.grad


@case
def node_hook_wrong_count(T):
    y = leaf(T, 3) * leaf(T, 3)

    def bad(inputs, outputs):
        return (inputs[0],)

    y.grad_fn.register_hook(bad)
    y.sum().backward()


@case
def node_hook_wrong_type(T):
    y = leaf(T, 3) * 2
    y.grad_fn.register_hook(lambda inputs, outputs: inputs[0])
    y.sum().backward()


@case
def node_prehook_wrong_count(T):
    y = leaf(T, 3) * 2

    def bad(outputs):
        return (outputs[0], None)

    y.grad_fn.register_prehook(bad)
    y.sum().backward()


@case
def node_hook_wrong_shape(T):
    y = leaf(T, 3) * 2

    def bad(inputs, outputs):
        return (inputs[0][:2], None)

    y.grad_fn.register_hook(bad)
    y.sum().backward()


@case
def node_hook_of_accumulator(T):
    log = []
    x = leaf(T, 3)
    y = x * 2
    node = y.grad_fn.next_functions[0][0]
    node.register_hook(lambda inputs, outputs: log.append((inputs, outputs, x.grad)))
    node.register_prehook(lambda outputs: (outputs[0] * 2,))
    y.sum().backward()
    return log, x.grad


@case
def node_hook_removed(T):
    log = []
    y = leaf(T, 3) * 2
    handle = y.grad_fn.register_hook(lambda i, o: log.append(1))
    y.sum().backward(retain_graph=True)
    handle.remove()
    y.sum().backward()
    return log


@case
def several_outputs_prehook(T):
    log = []
    x = leaf(T, 4)
    a, b = x.split(2)
    a.grad_fn.register_prehook(lambda outputs: log.append(outputs))
    b.sum().backward()
    return log


@case
def undefined_gradient_hook(T):
    log = []
    x = leaf(T, 4)
    a, b = x.split(2)
    a.register_hook(lambda g: log.append(g))
    b.sum().backward()
    return log


# -- post-accumulate and multi-grad hooks


@case
def post_accumulate(T):
    log = []
    x = leaf(T, 3)
    x.register_post_accumulate_grad_hook(lambda p: log.append((p is x, p.grad.clone())))

    def clear(p):
        p.grad = None

    handle = x.register_post_accumulate_grad_hook(clear)
    (x * 2).sum().backward()
    seen = x.grad
    handle.remove()
    (x * 2).sum().backward()
    return log, seen, x.grad


@case
def post_accumulate_on_result(T):
    (leaf(T, 3) * 2).register_post_accumulate_grad_hook(lambda p: None)


@case
def post_accumulate_on_plain(T):
    T.ones(3).register_post_accumulate_grad_hook(lambda p: None)


@case
def post_accumulate_returns_something(T):
    x = leaf(T, 3)
    x.register_post_accumulate_grad_hook(lambda p: 3)
    x.sum().backward()


@case
def post_accumulate_not_for_grad(T):
    log = []
    x = leaf(T, 3)
    x.register_post_accumulate_grad_hook(lambda p: log.append(1))
    T.autograd.grad(x.sum(), x)
    return log


@case
def optimizer_in_backward(T):
    x = leaf(T, 3)

    def step(p):
        with T.no_grad():
            p.sub_(p.grad)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * x).sum().backward()
    return x, x.grad


@case
def multi_grad_all(T):
    log = []
    x, w, u = leaf(T, 3), leaf(T, 3), leaf(T, 3)
    y = x * w
    T.autograd.graph.register_multi_grad_hook((x, y, u), lambda grads: log.append(list(grads)))
    y.sum().backward(retain_graph=True)
    (x * 2).sum().backward()
    return log


@case
def multi_grad_any(T):
    log = []
    x, w = leaf(T, 3), leaf(T, 3)
    y = x * w
    handle = T.autograd.graph.register_multi_grad_hook((x, y), log.append, mode="any")
    y.sum().backward(retain_graph=True)
    y.sum().backward(retain_graph=True)
    handle.remove()
    y.sum().backward()
    return log


@case
def multi_grad_wrong_mode(T):
    T.autograd.graph.register_multi_grad_hook((leaf(T, 2),), print, mode="some")


# -- hooks on what is saved


def packing(T: Any, log: list[Any]) -> Any:
    def pack(x):
        log.append(("pack", tuple(x.shape)))
        return x.detach().clone() * 2

    def unpack(x):
        log.append(("unpack", tuple(x.shape)))
        return x

    return T.autograd.graph.saved_tensors_hooks(pack, unpack)


@case
def saved_hooks(T):
    log = []
    x, w = leaf(T, 3), leaf(T, 3)
    with packing(T, log):
        y = x * w
        z = y.exp().sum()
    z.backward()
    return log, x.grad, w.grad


@case
def saved_hooks_double_backward(T):
    x = leaf(T, 3)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = (x * x * x).sum()
        (g,) = T.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    return g, x.grad


@case
def saved_hooks_innermost(T):
    x = leaf(T, 3)
    log = []
    outer = T.autograd.graph.saved_tensors_hooks(lambda t: log.append("outer") or t, lambda t: t)
    inner = T.autograd.graph.saved_tensors_hooks(lambda t: log.append("inner") or t, lambda t: t)
    with outer:
        (x * x).sum()
        with inner:
            (x * x).sum()
        (x * x).sum()
    return log


@case
def saved_hooks_see_no_integers(T):
    log = []
    x = leaf(T, 3)
    with packing(T, log):
        x * 2
        x + 1
        x[T.tensor([0, 1])]
    return len(log) > 0


@case
def saved_hooks_unpack_wrong(T):
    x = leaf(T, 3)
    with T.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = (x * x).sum()
    return attempt(lambda: y.backward())[1]


@case
def saved_hooks_pack_raises(T):
    x = leaf(T, 3)

    def fail(t):
        raise ValueError("no packing")

    with T.autograd.graph.saved_tensors_hooks(fail, lambda t: t):
        return x * x


@case
def saved_hooks_pack_writes(T):
    x = leaf(T, 3) * 1

    def write(t):
        t.mul_(2)
        return t

    with T.autograd.graph.saved_tensors_hooks(write, lambda t: t):
        return attempt(lambda: x * x)[:2]


@case
def saved_hooks_disabled(T):
    graph = T.autograd.graph
    seen = []
    with graph.disable_saved_tensors_hooks("not here"):
        seen.append(attempt(lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()))
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        seen.append(attempt(lambda: graph.disable_saved_tensors_hooks("not here").__enter__()))
    return seen


@case
def saved_hooks_for_functions(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(x, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y + x

    log = []
    x = leaf(T, 3)
    with packing(T, log):
        y = F.apply(x)
    y.sum().backward()
    return log, x.grad


@case
def save_on_cpu(T):
    x = leaf(T, 3)
    with T.autograd.graph.save_on_cpu():
        y = (x * x).exp().sum()
    y.backward()
    return x.grad


@case
def save_on_cpu_twice(T):
    x = leaf(T, 3)
    with T.autograd.graph.save_on_cpu(pin_memory=False):
        y = (x * x).exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@case
def mutation_allowed(T):
    x = leaf(T, 3)
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 2
        z = y * y
        y.mul_(100)
        y[0] = 0.0
        w = y.exp()
        w.zero_()
        (z.sum() + w.sum()).backward()
    return x.grad


@case
def mutation_allowed_for_functions(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    x = leaf(T, 3)
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        y = x * 2
        z = F.apply(y)
        y.mul_(100)
        z.sum().backward()
    return x.grad


@case
def mutation_contexts_do_not_nest(T):
    allow = T.autograd.graph.allow_mutation_on_saved_tensors
    with allow(), allow():
        pass


@case
def mutation_refused_again_afterwards(T):
    x = leaf(T, 3)
    with T.autograd.graph.allow_mutation_on_saved_tensors():
        pass
    y = x * 2
    z = y * y
    y.mul_(2)
    z.sum().backward()


@case
def version_incremented_by_hand(T):
    x = leaf(T, 3)
    y = x * 2
    z = y * y
    T.autograd.graph.increment_version(y)
    return y._version, attempt(lambda: z.sum().backward())[:2]


# -- anomaly mode


@case
def anomaly_nan(T):
    x = T.tensor([0.0, 1.0], dtype=T.float64, requires_grad=True)
    with T.autograd.detect_anomaly():
        y = (x.sqrt() * 0.0).sum()
        y.backward()


@case
def anomaly_nan_unchecked(T):
    x = T.tensor([0.0, 1.0], dtype=T.float64, requires_grad=True)
    with T.autograd.detect_anomaly(check_nan=False):
        (x.sqrt() * 0.0).sum().backward()
    return x.grad


@case
def anomaly_in_function(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise ValueError("mine")

    with T.autograd.detect_anomaly():
        F.apply(leaf(T, 2)).sum().backward()


@case
def anomaly_flag(T):
    seen = [T.is_anomaly_enabled(), T.is_anomaly_check_nan_enabled()]
    with T.autograd.detect_anomaly(check_nan=False):
        seen += [T.is_anomaly_enabled(), T.is_anomaly_check_nan_enabled()]
    with T.autograd.set_detect_anomaly(True):
        seen += [T.is_anomaly_enabled(), T.is_anomaly_check_nan_enabled()]
    return seen, T.is_anomaly_enabled()


test_hooks = case.test()


def test_saved_values_are_packed_where_they_are_saved():
    x = leaf(xtensor, 3)
    packed = []

    def pack(t: Any) -> int:
        packed.append(t.detach().clone())
        return len(packed) - 1

    with xtensor.autograd.graph.saved_tensors_hooks(pack, packed.__getitem__):
        y = (x * x).exp().sum()
    assert len(packed) == 3
    y.backward()
    assert x.grad is not None
