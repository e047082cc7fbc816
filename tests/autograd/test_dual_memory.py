"""Dual tensors and memory, against PyTorch's: what is written where shows in values, tangents, views and what they were made of."""

from collections.abc import Callable
from typing import Any

import pytest

import xtensor

# PyTorch's own, as it loads its decompositions.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


class Case:
    """A library with a level that is open, a primal and a tangent."""

    def __init__(self, lib: Any) -> None:
        self.lib, self.fw = lib, lib.autograd.forward_ad
        self.p, self.t = lib.tensor([1.0, 2.0, 3.0]), lib.tensor([4.0, 5.0, 6.0])

    def dual(self) -> Any:
        return self.fw.make_dual(self.p, self.t)

    def parts(self, tensor: Any) -> list[Any]:
        return list(self.fw.unpack_dual(tensor))


def written(c: Case) -> Any:
    d = c.dual()
    d.mul_(2)
    return c.p, c.t, c.parts(d), d._version, c.p._version, c.t._version


def primal_written(c: Case) -> Any:
    d = c.dual()
    c.p.mul_(3)
    return d, c.parts(d), c.parts(d * 2)


def tangent_written(c: Case) -> Any:
    d = c.dual()
    c.t.mul_(3)
    return d, c.parts(d), c.parts(d * 2)


def view_written(c: Case) -> Any:
    d = c.dual()
    v = d[1:]
    v.mul_(2)
    return c.p, c.t, c.parts(d), c.parts(v)


def tangent_of_a_view_written(c: Case) -> Any:
    d = c.dual()
    c.parts(d[1:])[1].zero_()
    return c.parts(d), c.t


def parts_written(c: Case) -> Any:
    d = c.dual()
    value, along = c.parts(d)
    value.add_(1)
    along.add_(1)
    return c.p, c.t, d, c.parts(d)


def parts_of_a_result_written(c: Case) -> Any:
    d = c.dual() * 2
    c.parts(d)[1].add_(1)
    c.parts(d[:2])[0].mul_(10)
    return d, c.parts(d), c.parts(d * 1), c.p, c.t


def identities(c: Case) -> Any:
    d = c.dual()
    value, along = c.parts(d)
    return along is c.t, value is c.p, value.data_ptr() == c.p.data_ptr(), type(c.fw.unpack_dual(d))._fields


def of_a_view(c: Case) -> Any:
    whole = c.lib.tensor([0.0, 1.0, 2.0, 3.0])
    d = c.fw.make_dual(whole[1:], c.t)
    d.mul_(2)
    return whole, c.t, c.parts(d), c.parts(whole), c.parts(d[1:])


def strided(c: Case) -> Any:
    p, t = c.lib.ones(2, 3).t(), c.lib.arange(6.0).reshape(3, 2)
    d = c.fw.make_dual(p, t)
    v = d.t()[0]
    v.add_(v)
    return p, t, c.parts(d), d.stride(), c.parts(d)[1].stride()


def expanded(c: Case) -> Any:
    t = c.lib.ones(1).expand(3)
    d = c.fw.make_dual(c.p, t)
    d.mul_(2)
    return c.parts(d), t


def into_plain(c: Case) -> Any:
    z, y = c.lib.zeros(3), c.lib.zeros(4)
    z.copy_(c.dual())
    v = y[1:]
    v.copy_(c.dual())
    y[0] = z[2]
    return c.parts(z), c.parts(z[1:]), c.parts(y), c.parts(v)


def constants(c: Case) -> Any:
    d = c.dual()
    d.view(3, 1).fill_(2)
    return c.p, c.parts(d), c.t


def replaced(c: Case) -> Any:
    d = c.dual()
    d.copy_(c.lib.ones(3))
    return c.p, c.parts(d), c.t


def cut_off(c: Case) -> Any:
    d = c.dual()
    return [c.parts(x) for x in (d.detach(), d.data, d.clone(), (d * 1).detach_())]


def plain(c: Case) -> Any:
    c.dual()
    return c.parts(c.p), c.parts(c.p * 2)


def other_dtype(c: Case) -> Any:
    return c.parts(c.fw.make_dual(c.p, c.t.double()))[1].tolist()


def with_autograd(c: Case) -> Any:
    w = c.lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    d = c.fw.make_dual(w * 1, c.t)
    d[1:].mul_(2)
    value, along = c.parts(d * w)
    return c.lib.autograd.grad(value.sum() + along.sum(), w), along.detach()


def within(c: Case) -> Any:
    F = c.lib.func
    d = c.dual()
    return c.parts(F.grad(lambda x: (x**3).sum())(d)), c.parts(F.vmap(lambda x: x**3)(d))


def text(c: Case) -> Any:
    return repr(c.dual()), repr(c.fw.unpack_dual(c.dual()))


def resized(c: Case) -> Any:
    return c.dual().resize_(2)


def jvp_within(c: Case) -> Any:
    return c.lib.func.jvp(lambda x: x * 2, (c.p,), (c.t,))


def another_level(c: Case) -> Any:
    return c.fw.unpack_dual(c.dual(), level=1)


def the_tangent_itself(c: Case) -> Any:
    leaf = c.lib.ones(3, requires_grad=True)
    d = c.fw.make_dual(leaf, c.t)
    same = c.fw.unpack_dual(d).tangent is c.t
    z, w = c.lib.ones(2, dtype=c.lib.complex64).conj(), c.lib.ones(2, dtype=c.lib.complex64).conj()
    return same, c.fw.unpack_dual(c.fw.make_dual(z, w)).tangent is w, c.parts(d)


def a_tangent_that_lies_otherwise(c: Case) -> Any:
    leaf, t = c.lib.ones(2, 2, requires_grad=True), c.lib.ones(2, 2).t()
    z = c.lib.ones(2, dtype=c.lib.complex64)
    made = c.fw.make_dual(z.conj(), z)
    return c.fw.unpack_dual(c.fw.make_dual(leaf, t)).tangent is t, c.fw.unpack_dual(made).tangent is z


def of_a_custom_function(c: Case) -> Any:
    class Both(c.lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2, x

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 2, t.view_as(t)

    leaf = c.lib.ones(3, requires_grad=True)
    given = [Both.apply(c.fw.make_dual(x, c.t))[1] for x in (leaf, c.p)]
    return [c.fw.unpack_dual(g).tangent._base is c.t for g in given]


def unwritten_in_place(c: Case) -> Any:
    class Twice(c.lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t

    return Twice.apply(c.dual())


CASES: list[Callable[[Case], Any]] = [
    written,
    primal_written,
    tangent_written,
    view_written,
    tangent_of_a_view_written,
    parts_written,
    parts_of_a_result_written,
    identities,
    of_a_view,
    strided,
    expanded,
    into_plain,
    constants,
    replaced,
    cut_off,
    plain,
    other_dtype,
    with_autograd,
    within,
    text,
    resized,
    jvp_within,
    another_level,
    the_tangent_itself,
    a_tangent_that_lies_otherwise,
    of_a_custom_function,
    unwritten_in_place,
]


def told(lib: Any, case: Callable[[Case], Any]) -> Any:
    def flat(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [flat(v) for v in value]
        return value.tolist() if hasattr(value, "tolist") else value

    c = Case(lib)
    try:
        with c.fw.dual_level():
            return flat(case(c))
    except RuntimeError as error:
        return type(error), str(error)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_as_in_pytorch(torch, case):
    assert told(xtensor, case) == told(torch, case)


def levels(lib: Any) -> list[Any]:
    fw = lib.autograd.forward_ad
    found: list[Any] = [fw._current_level]
    with fw.dual_level() as level:
        found += [level, fw._current_level]
    with pytest.raises(KeyError), fw.dual_level():
        raise KeyError
    found += [fw._current_level, fw.enter_dual_level(), fw._current_level]
    for attempt in (
        lambda: fw.exit_dual_level(level=3),
        fw.enter_dual_level,
        lambda: fw.exit_dual_level(level=0),
        fw.exit_dual_level,
        lambda: fw.make_dual(lib.ones(1), lib.ones(1), level=0),
        lambda: lib.func.jvp(lambda x: fw.dual_level().__enter__(), (lib.ones(1),), (lib.ones(1),)),
    ):
        try:
            found.append(attempt())
        except RuntimeError as error:
            found.append(str(error))
        found.append(fw._current_level)
    dual = fw.dual_level()(lambda: fw.make_dual(lib.ones(2), lib.ones(2)))()
    found += [fw.unpack_dual(dual).tangent, (dual * 2).tolist(), dual.add_(1).tolist()]
    return found


def test_levels(torch):
    assert levels(xtensor) == levels(torch)


def test_the_tangent_of_a_function_s_result_has_a_gradient():
    class Square(xtensor.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_forward(a)
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def jvp(ctx, along):
            return 2 * ctx.saved_tensors[0] * along

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0] * grad

    a = xtensor.tensor([3.0, 4.0], requires_grad=True)
    forward_ad = xtensor.autograd.forward_ad
    with forward_ad.dual_level():
        rate = forward_ad.unpack_dual(Square.apply(forward_ad.make_dual(a, xtensor.ones(2)))).tangent
        assert xtensor.autograd.grad(rate.sum(), a)[0].tolist() == [2, 2]
