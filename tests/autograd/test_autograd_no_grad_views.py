"""Views made under no_grad and in inference mode, judged by PyTorch: histories, flags and refusals."""

from __future__ import annotations

from tests.oracle import Cases, attempt, facts, leaf

case = Cases()


# -- views made without recording


@case
def no_grad_view_flags(T):
    x = leaf(T, 2, 3)
    y = x * 2
    with T.no_grad():
        views = [x.view(6), x[0], y.t(), y[0][1:], x.detach(), y.chunk(2)[0]]
    return [facts(v) for v in views]


@case
def no_grad_view_in_a_graph(T):
    x = leaf(T, 3)
    with T.no_grad():
        v = x.view(3)
    y = (v * 2).sum()
    before = facts(y)
    y.backward()
    return before, x.grad, v.grad


@case
def no_grad_view_written_with_grad(T):
    y = leaf(T, 3) * 2
    with T.no_grad():
        v = y[1:]
    v.mul_(2)


@case
def no_grad_view_written_with_grad_of_another(T):
    y, w = T.zeros(3, dtype=T.float64), leaf(T, 2)
    with T.no_grad():
        v = y[1:]
    v.mul_(w)


@case
def view_of_no_grad_view_written(T):
    y = leaf(T, 3) * 2
    with T.no_grad():
        v = y[1:]
    w = v[0]
    w.mul_(2)


@case
def no_grad_view_after_base_written(T):
    y = leaf(T, 3) * 2
    with T.no_grad():
        v = y[1:]
    y.mul_(2)
    return v * 2


@case
def no_grad_view_written_under_no_grad(T):
    y = leaf(T, 3) * 2
    with T.no_grad():
        v = y[1:]
        v.mul_(2)
    return y, attempt(lambda: v.grad_fn)


@case
def no_grad_view_of_plain_tensor(T):
    y = T.ones(3)
    with T.no_grad():
        v = y[1:]
    v.mul_(2)
    return y, facts(v)


@case
def no_grad_view_made_leaf(T):
    y = T.ones(3)
    with T.no_grad():
        v = y[1:]
    v.requires_grad_()
    (v * 3).sum().backward()
    return facts(v), v.grad


@case
def backward_of_no_grad_view(T):
    x = leaf(T)
    with T.no_grad():
        v = x.view(())
    v.backward()


@case
def gradient_with_respect_to_no_grad_view(T):
    x = leaf(T, 3)
    with T.no_grad():
        v = x.view(3)
    return T.autograd.grad((v * 2).sum(), v, allow_unused=True)


@case
def hook_on_no_grad_view(T):
    x = leaf(T, 3)
    with T.no_grad():
        v = x.view(3)
    v.register_hook(lambda g: g * 2)
    (v * 2).sum().backward()
    return x.grad


# -- inference mode


@case
def inference_facts(T):
    x = leaf(T, 3)
    with T.inference_mode():
        y, v = x * 2, x[1:]
        inside = [y.is_inference(), v.is_inference(), y.requires_grad, v.requires_grad, v.is_leaf]
    return inside, y.is_inference(), attempt(lambda: y._version), v.requires_grad


@case
def inference_tensor_saved(T):
    x = leaf(T, 3)
    with T.inference_mode():
        y = T.ones(3, dtype=T.float64)
    return x * y


@case
def inference_tensor_unsaved(T):
    x = leaf(T, 3)
    with T.inference_mode():
        y = T.ones(3, dtype=T.float64)
    z = x + y
    z.sum().backward()
    return facts(z), x.grad


@case
def inference_tensor_written_outside(T):
    with T.inference_mode():
        y = T.ones(3)
    y.add_(1)


@case
def inference_tensor_made_leaf(T):
    with T.inference_mode():
        y = T.ones(3)
    y.requires_grad_()


@case
def inference_view_written_outside(T):
    x = leaf(T, 3) * 2
    with T.inference_mode():
        v = x[1:]
    v.add_(1)


@case
def inference_clone_outside(T):
    with T.inference_mode():
        y = T.ones(3)
    z = y.clone().requires_grad_()
    (z * 2).sum().backward()
    return z.is_inference(), z.grad


@case
def inference_view_outside(T):
    with T.inference_mode():
        y = T.ones(3)
    v = y[1:]
    return v.is_inference(), attempt(lambda: v.add_(1))


@case
def normal_tensor_written_in_inference(T):
    x = T.ones(3)
    with T.inference_mode():
        x.add_(1)
    return x, x._version, x.is_inference()


@case
def graph_tensor_written_in_inference(T):
    x = leaf(T, 3)
    y = x * 2
    with T.inference_mode():
        y.add_(1)
    y.sum().backward()
    return y._version, x.grad


@case
def views_of_inference_tensors(T):
    with T.inference_mode():
        made = T.ones(2, requires_grad=True)
        inside = made[:]
        other = T.ones(2, requires_grad=True)
        other.resize_(1, 2)
    outside = made[:]
    flags = [(v.requires_grad, v._is_view(), v.is_inference()) for v in (inside, outside)]
    return flags, tuple(other.shape)


@case
def backward_in_inference(T):
    with T.inference_mode():
        x = T.ones(3, requires_grad=True)
        y = (x * 2).sum()
        return facts(y)


@case
def what_is_made_of_a_no_grad_view_has_a_node_that_no_gradient_flows_through(T):
    """Its node saved no result, which the first backward pass, node by node, looked for."""
    made_by = [
        lambda x: x.relu(),
        lambda x: x.tanh(),
        lambda x: x.sort()[0],
        lambda x: x.exp().min(0)[0],
        lambda x: T.cat([x, x * 2]),
        lambda x: x * x,
        lambda x: x @ x,
        lambda x: T.softmax(x, 0),
    ]
    found = []
    for make in made_by:
        base = T.tensor([[0.559, 1.543, 0.637]], dtype=T.float64, requires_grad=True)
        with T.no_grad():
            view = base[0]
        made, other = make(view), T.ones(2, requires_grad=True)
        (made.sum() + (other * 3).sum()).backward()
        found.append((made.requires_grad, made.grad_fn.name(), base.grad, other.grad.tolist()))
    return found


test_views_without_history = case.test()
