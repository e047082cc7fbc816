"""`backward` and `grad` with all their options, judged by PyTorch: what is returned, accumulated and refused."""

from __future__ import annotations

import pytest

import xtensor
from tests.oracle import Cases, attempt, graph, leaf

case = Cases()


# -- roots


@case
def implicit_gradient(T):
    x, w, _, z = graph(T)
    z.backward()
    return x.grad, w.grad, x.grad.requires_grad


@case
def implicit_gradient_of_vector(T):
    graph(T)[2].backward()


@case
def implicit_gradient_of_one_element(T):
    x = leaf(T, 1, 1)
    (x * 2).backward()
    return x.grad


@case
def implicit_gradient_of_complex(T):
    x = T.tensor(1 + 2j, dtype=T.complex128, requires_grad=True)
    (x * 2).backward()


@case
def explicit_gradient(T):
    x, w, y, _ = graph(T)
    y.backward(T.tensor([1.0, 2.0, 3.0], dtype=T.float64))
    return x.grad, w.grad


@case
def explicit_gradient_of_wrong_shape(T):
    graph(T)[2].backward(T.ones(2, dtype=T.float64))


@case
def explicit_gradient_of_broadcast_shape(T):
    graph(T)[2].backward(T.ones(1, dtype=T.float64))


@case
def explicit_gradient_of_other_dtype(T):
    x, _, y, _ = graph(T)
    y.backward(T.ones(3, dtype=T.float32))
    return x.grad


@case
def explicit_complex_gradient_for_real(T):
    graph(T)[2].backward(T.ones(3, dtype=T.complex128))


@case
def explicit_gradient_of_no_tensor(T):
    graph(T)[2].backward(2.0)


@case
def root_without_graph(T):
    T.ones(()).backward()


@case
def root_is_leaf(T):
    x = leaf(T)
    x.backward()
    x.backward()
    return x.grad


@case
def gradient_of_leaf_itself(T):
    x = leaf(T, 2)
    g = T.ones(2, dtype=T.float64)
    (h,) = T.autograd.grad(x, x, g)
    return h, h is g


@case
def several_roots(T):
    x, w, y, z = graph(T)
    T.autograd.backward([y, z], [T.ones(3, dtype=T.float64), None])
    return x.grad, w.grad


@case
def several_roots_too_few_gradients(T):
    _, _, y, z = graph(T)
    T.autograd.backward([z, y], [None])


@case
def same_root_twice(T):
    x, _, _, z = graph(T)
    T.autograd.backward([z, z])
    return x.grad


@case
def second_root_without_graph(T):
    _, _, _, z = graph(T)
    T.autograd.backward([z, T.ones(())])


@case
def grad_of_root_without_graph(T):
    T.autograd.grad(T.ones(()), leaf(T))


@case
def grad_variables(T):
    x, _, y, _ = graph(T)
    T.autograd.backward(y, grad_variables=T.ones(3, dtype=T.float64))
    return x.grad


# -- retain_graph, create_graph


@case
def twice_without_retain(T):
    z = graph(T)[3]
    z.backward()
    z.backward()


@case
def twice_with_retain(T):
    x, _, _, z = graph(T)
    z.backward(retain_graph=True)
    z.backward()
    return x.grad


@case
def retain_is_implied_by_create(T):
    x, _, _, z = graph(T)
    z.backward(create_graph=True)
    g = x.grad
    z.backward(retain_graph=False)
    return g, g.requires_grad


@case
def create_without_retain(T):
    _x, _, _, z = graph(T)
    z.backward(create_graph=True, retain_graph=False)
    return attempt(lambda: z.backward())


@case
def create_graph_accumulates_out_of_place(T):
    x, _, _, z = graph(T)
    z.backward(retain_graph=True)
    first = x.grad
    z.backward(create_graph=True)
    return x.grad is first, x.grad.grad_fn, x.grad, first


@case
def plain_accumulates_in_place(T):
    x, _, _, z = graph(T)
    z.backward(retain_graph=True)
    first = x.grad
    version = first._version
    z.backward()
    return x.grad is first, first._version - version, first


@case
def second_order(T):
    x, w, _, z = graph(T)
    gx, gw = T.autograd.grad(z, (x, w), create_graph=True)
    (gx * gw).sum().backward()
    return x.grad, w.grad


@case
def third_order(T):
    x = leaf(T, 3)
    y = (x * x * x).sum()
    seen = []
    for _ in range(3):
        (g,) = T.autograd.grad(y, x, create_graph=True)
        seen.append(g)
        y = g.sum()
    return seen, attempt(lambda: T.autograd.grad(y, x))


@case
def linear_has_no_second_derivative(T):
    x, w = leaf(T, 3), leaf(T, 3)
    (g,) = T.autograd.grad((x * w).sum(), x, create_graph=True)
    before = g.requires_grad
    g.sum().backward()
    return before, x.grad, w.grad


@case
def shared_part_of_two_graphs(T):
    _x, _, y, z = graph(T)
    u = y.exp().sum()
    z.backward()
    return attempt(lambda: u.backward())


@case
def shared_part_that_saves_nothing(T):
    x = leaf(T, 3)
    y = x + 1
    a, b = y.sum(), (y * 2).sum()
    a.backward()
    b.backward()
    return x.grad


# -- inputs


@case
def backward_inputs(T):
    x, w, _, z = graph(T)
    z.backward(inputs=[w])
    return x.grad, w.grad


@case
def backward_inputs_one_tensor(T):
    x, w, _, z = graph(T)
    z.backward(inputs=w)
    return x.grad, w.grad


@case
def backward_inputs_intermediate(T):
    x, w, y, z = graph(T)
    z.backward(inputs=[y, x])
    return x.grad, w.grad, y.grad, y.retains_grad


@case
def backward_inputs_empty(T):
    graph(T)[3].backward(inputs=[])


@case
def backward_inputs_unrelated(T):
    x, _w, _, z = graph(T)
    u = leaf(T, 2)
    z.backward(inputs=[u])
    return x.grad, u.grad


@case
def backward_inputs_without_grad(T):
    graph(T)[3].backward(inputs=[T.ones(2)])


@case
def grad_of_intermediate(T):
    x, _w, y, z = graph(T)
    gy, gx = T.autograd.grad(z, (y, x))
    return gy, gx, x.grad, y.grad


@case
def grad_of_root_itself(T):
    z = graph(T)[3]
    return T.autograd.grad(z, z)


@case
def grad_of_same_input_twice(T):
    x, _, _, z = graph(T)
    return T.autograd.grad(z, (x, x))


@case
def grad_unused(T):
    z = graph(T)[3]
    T.autograd.grad(z, leaf(T, 2))


@case
def grad_unused_second(T):
    x, _, _, z = graph(T)
    T.autograd.grad(z, [x, leaf(T, 2)])


@case
def grad_unused_allowed(T):
    x, _, _, z = graph(T)
    return T.autograd.grad(z, [x, leaf(T, 2)], allow_unused=True)


@case
def grad_unused_materialized(T):
    x, _, _, z = graph(T)
    found = T.autograd.grad(z, [x, leaf(T, 2)], materialize_grads=True, retain_graph=True)
    created = T.autograd.grad(z, [leaf(T, 2)], materialize_grads=True, create_graph=True)
    return found, created


@case
def grad_materialized_but_not_allowed(T):
    x, _, _, z = graph(T)
    T.autograd.grad(z, [x], allow_unused=False, materialize_grads=True)


@case
def grad_without_requires_grad(T):
    T.autograd.grad(graph(T)[3], T.ones(3))


@case
def grad_returns_fresh_tuple(T):
    x, _, _, z = graph(T)
    found = T.autograd.grad(z, x)
    return type(found).__name__, len(found), found[0].requires_grad, found[0].grad_fn


@case
def grad_with_grad_outputs(T):
    x, w, y, z = graph(T)
    return T.autograd.grad([y, z], [x, w], [T.ones(3, dtype=T.float64) * 2, None])


@case
def grad_frees_only_what_ran(T):
    x, w = leaf(T, 3), leaf(T, 3)
    a, b = x.exp(), w.exp()
    z = (a * b).sum()
    T.autograd.grad(z, x)
    return attempt(lambda: b.sum().backward()), w.grad, attempt(lambda: a.sum().backward())


@case
def batched(T):
    x, w, y, _ = graph(T)
    rows = T.eye(3, dtype=T.float64)
    return T.autograd.grad(y, (x, w), rows, is_grads_batched=True)


@case
def batched_wrong_shape(T):
    x, _, y, _ = graph(T)
    return attempt(lambda: T.autograd.grad(y, x, T.ones(2, 2, dtype=T.float64), is_grads_batched=True))[:2]


@case
def batched_create_graph(T):
    x, w, y, _ = graph(T)
    (g,) = T.autograd.grad(y, x, T.eye(3, dtype=T.float64), is_grads_batched=True, create_graph=True)
    g.sum().backward()
    return g, w.grad


# -- modes


@case
def modes_nest(T):
    seen = []
    with T.no_grad():
        seen.append(T.is_grad_enabled())
        with T.enable_grad():
            seen.append(T.is_grad_enabled())
            with T.set_grad_enabled(False):
                seen.append(T.is_grad_enabled())
            seen.append(T.is_grad_enabled())
        seen.append(T.is_grad_enabled())
    T.set_grad_enabled(False)
    seen.append(T.is_grad_enabled())
    T.set_grad_enabled(True)
    return seen, T.is_grad_enabled()


@case
def modes_as_decorators(T):
    @T.no_grad()
    def a(x):
        return (x * 2).requires_grad

    @T.enable_grad()
    def b(x):
        return (x * 2).requires_grad

    @T.inference_mode()
    def c(x):
        return (x * 2).is_inference()

    @T.no_grad
    def d(x):
        return (x * 2).requires_grad

    x = leaf(T, 2)
    with T.no_grad():
        inner = b(x)
    return a(x), inner, c(x), d(x)


@case
def no_grad_result(T):
    x = leaf(T, 2)
    with T.no_grad():
        y = x * 2
        z = x.clone().requires_grad_()
    return y.requires_grad, z.requires_grad, z.is_leaf, attempt(lambda: y.sum().backward())


@case
def backward_inside_no_grad(T):
    x, _, _, z = graph(T)
    with T.no_grad():
        z.backward()
    return x.grad


@case
def grad_inside_no_grad_with_create(T):
    x, _, _, z = graph(T)
    with T.no_grad():
        (g,) = T.autograd.grad(z, x, create_graph=True)
    return g.requires_grad, T.is_grad_enabled()


@case
def mode_after_error(T):
    z = graph(T)[3]
    z.register_hook(lambda g: 1 / 0)
    return attempt(lambda: z.backward()), T.is_grad_enabled()


@case
def out_with_grad(T):
    x = leaf(T, 2)
    T.add(x, 1, out=T.empty(2, dtype=T.float64))


@case
def numpy_of_what_requires_grad(T):
    leaf(T, 2).numpy()


@case
def item_of_what_requires_grad(T):
    return leaf(T).item(), leaf(T, 2).tolist()


# -- the graph as users see it


@case
def next_functions(T):
    x, _w, _y, z = graph(T)
    node = z.grad_fn
    mul = node.next_functions[0][0]
    inner = mul.next_functions[0][0]
    edges = [(f.name().rpartition("::")[2], nr) for f, nr in inner.next_functions]
    return node, mul, inner, edges, inner.next_functions[0][0].variable is x


@case
def edge_of_what_needs_no_gradient(T):
    y = leaf(T, 2) * T.ones(2, dtype=T.float64)
    return y.grad_fn.next_functions[1], len(y.grad_fn.next_functions)


@case
def saved_attributes(T):
    x, w = leaf(T, 3), leaf(T, 3)
    y = x * w
    node, e = y.grad_fn, x.exp()
    seen = [node._saved_self, node._saved_other, e.grad_fn._saved_result]
    y.sum().backward()
    return seen, attempt(lambda: node._saved_self)


@case
def metadata_of_node(T):
    node = (leaf(T, 3) * 2).grad_fn
    node.metadata["mine"] = 1
    return dict(node.metadata)


@case
def gradient_edges(T):
    x, _, y, z = graph(T)
    edge = T.autograd.graph.get_gradient_edge(y)
    found = T.autograd.grad(z, edge)
    leaf_edge = T.autograd.graph.get_gradient_edge(x)
    return (
        edge.node,
        edge.output_nr,
        found,
        leaf_edge.node,
        attempt(lambda: T.autograd.graph.get_gradient_edge(T.ones(2))),
    )


@case
def backward_from_gradient_edge(T):
    x, _, y, _z = graph(T)
    edge = T.autograd.graph.get_gradient_edge(y)
    T.autograd.backward(edge, T.ones(3, dtype=T.float64))
    return x.grad


@case
def node_called_by_hand(T):
    _x, _w, y, _ = graph(T)
    return y.grad_fn(T.ones(3, dtype=T.float64)), attempt(lambda: y.grad_fn())[:2]


test_backward = case.test()


def test_names_of_nodes(torch):
    def names(T):
        a, b, v = leaf(T, 2, 2), leaf(T, 2, 2), leaf(T, 2)
        made = [
            a @ b, a @ v, v @ v, T.addmm(a, a, b), a + b, a - b, a * b, a / b, -a, a.exp(), a.log(), a.tanh(),
            a.sum(), a.sum(0), a.mean(), a.mean(0), a.max(), a.max(0)[0], a.t(), a.view(4), a.reshape(4), a[0], a[0:1],
            a[:, None], a.permute(1, 0), a.transpose(0, 1), a.clone(), a.expand(3, 2, 2), a.unsqueeze(0), a.pow(2),
            a**b, T.cat([a, b]), T.stack([a, b]), a.abs(), a.sqrt(), a.sigmoid(), a.unbind()[0], a.split(1)[0],
            a.prod(), a.prod(0), a.to(T.float32), T.where(a > 1, a, b), a.diagonal(), a.index_select(0, T.tensor([0])),
            a.squeeze(), a.clamp(0, 1), a[T.tensor([0])], a.amax(0), 2 * a, a.std(), a.std(0), a.var(0),
        ]  # fmt: skip
        return [m.grad_fn.name() for m in made]

    assert names(xtensor) == names(torch)


def test_version_is_checked_when_saved_values_are_read_by_hand():
    y = leaf(xtensor, 3) * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _ = z.grad_fn._saved_self


@pytest.mark.parametrize("shape", [(4, 0, 5), (0, 3), (3, 0)])
def test_sorting_nothing_has_a_gradient(shape: tuple[int, ...]) -> None:
    x = xtensor.rand(*shape, requires_grad=True)
    x.sort(-1)[0].sum().backward()
    assert x.grad is not None
    assert x.grad.shape == shape
