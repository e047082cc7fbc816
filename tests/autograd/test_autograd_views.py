"""Views and in-place writes under autograd, judged by PyTorch: histories, flags, versions and every refusal."""

from __future__ import annotations

from typing import Any

import pytest

import xtensor
from tests.oracle import Cases, attempt, facts, leaf

case = Cases()


# -- histories rebased


@case
def write_to_view_rebases_base(T):
    x, w = leaf(T, 2, 3), leaf(T, 3)
    y = x * 2
    y[0].mul_(w)
    (y * y).sum().backward()
    return facts(y), x.grad, w.grad


@case
def write_to_base_regenerates_view(T):
    x = leaf(T, 4)
    y = x * 2
    v = y[1:3]
    y.mul_(y.detach() + 1)
    (v * v).sum().backward()
    return facts(v), facts(y), x.grad


@case
def write_to_view_of_view(T):
    x, w = leaf(T, 3, 4), leaf(T, 2)
    y = x.clone()
    v = y.t()[1:]
    v[0:2, 1].mul_(w)
    (y * v.sum()).sum().backward()
    return facts(v), facts(y), x.grad, w.grad


@case
def sibling_views_see_each_other(T):
    x = leaf(T, 4)
    y = x * 1
    a, b = y[:3], y[1:]
    a.mul_(2)
    b.add_(1)
    out = (a * b).sum()
    out.backward()
    return facts(a), facts(b), x.grad


@case
def write_through_transposed_view(T):
    x, w = leaf(T, 2, 3), leaf(T, 3, 2)
    y = x * 3
    y.t().mul_(w)
    y.sum().backward()
    return facts(y), x.grad, w.grad


@case
def write_to_noncontiguous_base(T):
    x, w = leaf(T, 2, 3), leaf(T, 2)
    y = (x * 3).t().clone(memory_format=T.preserve_format)
    y[1].mul_(w)
    (y * y).sum().backward()
    return y.stride(), facts(y), x.grad, w.grad


@case
def write_to_expanded_results(T):
    x = leaf(T, 1, 3)
    y = x.expand(2, 3).clone()
    y[1] = 2.0
    (y * y).sum().backward()
    return x.grad


@case
def setitem_with_gradient(T):
    x, w = leaf(T, 3), leaf(T, 2)
    y = x * 2
    y[1:] = w * w
    y[0] *= 3
    (y * T.tensor([1.0, 2.0, 3.0], dtype=T.float64)).sum().backward()
    return facts(y), x.grad, w.grad


@case
def setitem_broadcasts_gradient(T):
    w = leaf(T, 3)
    y = T.zeros(2, 3, dtype=T.float64)
    y[...] = w
    y[1, :] = w.sum()
    y.cumsum(1).sum().backward()
    return facts(y), w.grad


@case
def copy_into_view_of_zeros(T):
    w = leaf(T, 2)
    buffer = T.zeros(4, dtype=T.float64)
    buffer[1:3].copy_(w)
    before = facts(buffer)
    buffer[0] = w.prod()
    (buffer * buffer).sum().backward()
    return before, facts(buffer), w.grad


@case
def copy_into_view_casts_gradient(T):
    w = leaf(T, 2)
    buffer = T.zeros(2, 2, dtype=T.float32)
    buffer[:, 0].copy_(w)
    (buffer * 3).sum().backward()
    return facts(buffer), w.grad


@case
def write_twice_to_same_view(T):
    x = leaf(T, 4)
    y = x * 2
    v = y[::2]
    v.sin_()
    v.mul_(3)
    w = v.exp()
    (w.sum() + y.sum()).backward()
    return facts(v), facts(y), x.grad


@case
def view_of_leaf_then_requires_grad(T):
    x = T.ones(3, dtype=T.float64)
    v = x[1:]
    x.requires_grad_()
    return facts(v), facts(x)


@case
def view_then_base_written_then_requires_grad(T):
    x = T.ones(3, dtype=T.float64)
    v = x[1:]
    x.mul_(2)
    x.requires_grad_()
    (v * 3).sum().backward()
    return facts(v), x.grad


@case
def double_backward_through_written_view(T):
    x, w = leaf(T, 2, 2), leaf(T, 2)
    y = x * x
    y[0].mul_(w * w)
    (g,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
    g.sum().backward()
    return g, x.grad, w.grad


@case
def masked_fill_in_place_on_view(T):
    x = leaf(T, 2, 3)
    y = x * 2
    y[0].masked_fill_(T.tensor([True, False, True]), 7.0)
    (y * y).sum().backward()
    return y, x.grad


@case
def zero_and_fill_views(T):
    x, v = leaf(T, 4), leaf(T)
    y = x * 2
    y[0].zero_()
    y[1].fill_(v)
    y[2].fill_(3.0)
    (y * y).sum().backward()
    return y, y.grad_fn, x.grad, v.grad


@case
def integer_write_keeps_history_away(T):
    x = leaf(T, 3)
    n = T.zeros(3, dtype=T.int64)
    n.copy_(x)
    return facts(n)


# -- views of another dtype or with bits


def complex_leaf(T: Any, *shape: int) -> Any:
    return (leaf(T, *shape).detach() * (1 + 2j)).requires_grad_()


@case
def write_to_view_as_real(T):
    x = complex_leaf(T, 3)
    y = x * 2
    T.view_as_real(y)[0].mul_(3)
    (y * y.conj()).real.sum().backward()
    return facts(y), y, x.grad


@case
def write_to_imag(T):
    x, w = complex_leaf(T, 3), leaf(T, 3)
    y = x * 2
    y.imag.copy_(w)
    y.real.mul_(2)
    (y * y.conj()).real.sum().backward()
    return y, x.grad, w.grad


@case
def write_to_conj(T):
    x = complex_leaf(T, 3)
    y = x * 2
    y.conj()[1:].mul_(1 + 1j)
    (y * (1 + 3j)).abs().sum().backward()
    return y, x.grad


@case
def view_as_real_after_base_written(T):
    x = complex_leaf(T, 3)
    y = x * 2
    v, c = T.view_as_real(y), y.conj()
    y.mul_(1 + 1j)
    ((v * v).sum() + (c * (1 + 2j)).abs().sum()).backward()
    return v, c, x.grad


@case
def reinterpreted_view(T):
    x = leaf(T, 2, 2)
    y = x.to(T.float32) * 1
    v = T.view_as_complex(y)
    v.mul_(2j)
    (y * y).sum().backward()
    return facts(y), y, x.grad


# -- strides of gradients


@case
def gradient_follows_strides_of_leaf(T):
    x = T.ones(2, 3, dtype=T.float64).t().detach().requires_grad_()
    (x * 2).sum().backward()
    first = x.grad.stride()
    y = T.ones(2, 3, dtype=T.float64).t().detach().requires_grad_()
    (y * y).sum().backward(create_graph=True)
    z = T.ones(2, 6, dtype=T.float64)[:, ::2].detach().requires_grad_()
    (z * z).sum().backward()
    return first, y.grad.stride(), z.grad.stride(), x.grad


# -- leaves and their views


@case
def write_to_leaf(T):
    x = leaf(T, 3)
    x.mul_(2)


@case
def write_to_view_of_leaf(T):
    x = leaf(T, 3)
    x[0].mul_(2)


@case
def setitem_on_leaf(T):
    x = leaf(T, 3)
    x[0] = 1.0


@case
def write_leaf_without_gradient_value(T):
    x, y = T.ones(3), leaf(T, 3).float()
    x.mul_(y)
    return facts(x)


@case
def leaf_written_under_no_grad(T):
    x = leaf(T, 3)
    with T.no_grad():
        x.mul_(2)
        x[0] = 0.0
    (x * x).sum().backward()
    return facts(x), x.grad


@case
def view_of_leaf_written_under_no_grad(T):
    x = leaf(T, 3)
    v = x[1:]
    with T.no_grad():
        v.add_(1)
    (v * v).sum().backward()
    return facts(v), facts(x), x.grad


@case
def result_written_under_no_grad(T):
    x = leaf(T, 3)
    y = x * 2
    with T.no_grad():
        y.add_(1)
    y.sum().backward()
    return facts(y), x.grad


@case
def detached_written_after_save(T):
    x = leaf(T, 3)
    y = x * x
    x.detach().mul_(2)
    y.sum().backward()


@case
def data_has_its_own_version(T):
    x = leaf(T, 3)
    d = x.data
    d.mul_(2)
    return d._version, x._version, d.requires_grad, d._base is None, d


@case
def detach_shares_version(T):
    x = leaf(T, 3)
    d = x.detach()
    d.mul_(2)
    return d._version, x._version, facts(d)


# -- several views at once


@case
def unbind_output_written(T):
    a, _ = (leaf(T, 2, 3) * 2).unbind()
    a.mul_(2)


@case
def split_output_written(T):
    a, _ = (leaf(T, 4) * 2).split(2)
    a.mul_(2)


@case
def chunk_output_view_written(T):
    a, _ = (leaf(T, 4, 2) * 2).chunk(2)
    a[0].mul_(2)


@case
def split_base_written_then_read(T):
    y = leaf(T, 4) * 2
    a, _ = y.split(2)
    y.mul_(2)
    return a * 2


@case
def split_base_written_then_written(T):
    y = leaf(T, 4) * 2
    a, _ = y.split(2)
    y.mul_(2)
    a.mul_(2)


@case
def split_of_plain_tensor_written(T):
    a, b = T.ones(4).split(2)
    a.mul_(2)
    return a, b, a._base


@case
def split_output_written_under_no_grad(T):
    y = leaf(T, 4) * 2
    a, b = y.split(2)
    with T.no_grad():
        a.mul_(2)
    return attempt(lambda: b.grad_fn), attempt(lambda: (a * 2).sum().backward())


@case
def several_outputs_facts(T):
    x = leaf(T, 4, 3)
    made = [
        *x.unbind(),
        *x.split(2),
        *x.split([1, 3]),
        *x.chunk(2),
        *x.tensor_split(2),
        *x.tensor_split([1], 1),
    ]
    made += [*x.hsplit([1]), *x.vsplit(2), *x.split_with_sizes([2, 2])]
    return [facts(m) for m in made]


@case
def several_outputs_gradient(T):
    x = leaf(T, 4, 3)
    a, b = x.split([1, 3])
    c, d, e = x.unbind(1)
    (a.sum() * 2 + (b * b).sum() + d.prod()).backward()
    return c.shape, e.shape, x.grad


@case
def split_written_by_gradient_carrier(T):
    a, _ = T.zeros(4, dtype=T.float64).split(2)
    a.mul_(leaf(T, 2))


# -- detach


@case
def detach_of_result_in_place(T):
    y = leaf(T, 3) * 2
    y.detach_()
    return facts(y)


@case
def detach_in_place_of_leaf(T):
    x = leaf(T, 3)
    x.detach_()
    return facts(x)


@case
def detach_in_place_of_view(T):
    y = leaf(T, 3) * 2
    y[0].detach_()


@case
def detach_in_place_of_view_of_plain(T):
    y = T.ones(3)
    v = y[0]
    v.detach_()
    return facts(v)


@case
def detach_in_place_of_split(T):
    a, _ = (leaf(T, 4) * 2).split(2)
    a.detach_()


@case
def detach_of_split_then_write(T):
    y = leaf(T, 4) * 2
    a, _ = y.split(2)
    a.detach().mul_(2)
    return y


@case
def detached_view_written(T):
    y = leaf(T, 4) * 2
    v = y.detach()[1:]
    v.mul_(leaf(T, 3))
    return facts(v), facts(y), y


# -- set_, data, resize_


@case
def data_assigned_other_shape(T):
    x = leaf(T, 3)
    x.data = T.ones(2, dtype=T.float64)
    (x * 2).sum().backward()
    return x.grad, x._version


@case
def data_assigned_other_kind(T):
    x = leaf(T, 3)
    x.data = T.ones(3, dtype=T.int64)


@case
def resize_of_what_requires_grad(T):
    return leaf(T, 3).resize_(2)


@case
def set_of_leaf(T):
    x = leaf(T, 3)
    with T.no_grad():
        x.set_(T.zeros(2, dtype=T.float64))
    return facts(x), x


@case
def transposed_in_place(T):
    x = leaf(T, 2, 3)
    y = x * 2
    y.t_()
    (y * y).sum().backward()
    return facts(y), x.grad


@case
def squeezed_in_place(T):
    y = leaf(T, 1, 3) * 2
    y.squeeze_(0).unsqueeze_(1)
    return facts(y), y.shape


@case
def transposed_leaf_in_place(T):
    leaf(T, 2, 3).t_()


test_views = case.test()


@pytest.mark.parametrize(
    "size, stride, offset",
    [((2, 3), (4, 1), 0), ((6,), (1,), 2), ((4,), (1,), 14), ((2, 2), (1, 2), 3), ((0,), (1,), 0)],
)
@pytest.mark.parametrize("form", ["rows", "columns"])
def test_what_as_strided_reads_outside_of_its_input_has_no_part_in_the_gradient(size, stride, offset, form):
    torch = pytest.importorskip("torch")

    def gradient(lib):
        part = lib.arange(24.0)[4:16].view(3, 4)
        x = (part if form == "rows" else part.t()).detach().requires_grad_()
        read = lib.as_strided(x, size, stride, offset)
        (found,) = lib.autograd.grad((read * lib.arange(1.0, read.numel() + 1).reshape(read.shape)).sum(), x)
        return found.tolist()

    assert gradient(xtensor) == gradient(torch)


def test_pieces_at_places_that_a_tensor_says_have_gradients():
    x = xtensor.arange(10.0).reshape(5, 2).requires_grad_()
    pieces = xtensor.tensor_split(x, xtensor.tensor([1, 3]))
    assert [p.shape[0] for p in pieces] == [1, 2, 2]
    (pieces[1] * pieces[1]).sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0], [4.0, 6.0], [8.0, 10.0], [0.0, 0.0], [0.0, 0.0]]


def test_a_view_of_more_dimensions_than_numpy_has_is_read():
    x = xtensor.arange(1.0).view([1] * 65)
    assert (x + 1).dim() == 65 and x.clone().dim() == 65
