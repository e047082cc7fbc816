"""Values, coefficients and older constructors that PyTorch refuses, and what it says; judged by PyTorch."""

from __future__ import annotations

import warnings

import numpy as np

from tests.oracle import Cases, attempt

case = Cases()


@case
def coefficients(T):
    i, v = T.ones(2, 2, dtype=T.int8), T.ones(2, dtype=T.int8)
    x = T.ones(2)
    return [
        attempt(lambda: T.addr(i, v, v, beta=2.0)),
        attempt(lambda: T.addr(i, v, v, alpha=1.0)),
        attempt(lambda: T.addr(i.float(), v.float(), v.float(), beta=True)),
        attempt(lambda: T.addmm(i.float(), i.float(), i.float(), alpha=1j)),
        attempt(lambda: T.add(v, v, alpha=1.0)),
        attempt(lambda: T.add(x, x, alpha=True)),
        T.add(x, x, alpha=1.0),
    ]


@case
def constructors(T):
    class Asked(T.Tensor):
        """As long as there is such a class, lists are looked through for its tensors."""

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    knot: list = [0]
    knot.append(knot)
    i = T.tensor([1])
    return [
        attempt(lambda: T.tensor([0, "a"])),
        attempt(lambda: T.tensor(["a"])),
        attempt(lambda: T.tensor([[1, 2], knot])),
        attempt(lambda: T.Tensor(i, device="cpu")),
        attempt(lambda: i.new(i, device="cpu")),
        attempt(lambda: i.new(device="meta")),
        attempt(lambda: T.asarray(np.float64(0.5), copy=False)),
        attempt(lambda: T.empty([0, 4, 2**61])),
        attempt(lambda: T.linspace(0, 1j, 3, dtype=T.float32)),
        T.roll(T.arange(4), 1, None),
    ]


@case
def ranges_of_random_numbers(T):
    x = T.empty(3)
    return [attempt(lambda: x.uniform_(-3e38, 3e38)), attempt(lambda: x.half().uniform_(-6e4, 6e4))]


@case
def strangers_in_place(T):
    class Stranger:
        def __radd__(self, other):
            return "taken"

    x = T.ones(2)
    y = x
    y += Stranger()
    dunders = ["__iadd__", "__isub__", "__imul__", "__itruediv__", "__ipow__", "__ifloordiv__", "__imod__"]
    return y, [getattr(x, d)(object()) is NotImplemented for d in dunders]


@case
def matrices(T):
    nan = T.eye(2)
    nan[1, 1] = float("nan")
    m, lu = T.eye(2), T.linalg.lu_factor(T.eye(2))
    pivots = lu[1].clone()
    pivots[0] = 0
    v = T.ones(2)
    return [
        attempt(lambda: T.linalg.eig(nan)),
        attempt(lambda: T.linalg.lu_solve(lu[0], pivots, m)),
        attempt(lambda: T.linalg.norm(m, 1 + 2j)),
        attempt(lambda: T.linalg.norm(v, "nuc")),
        attempt(lambda: T.linalg.lstsq(m, T.ones(3))),
        attempt(lambda: T.linalg.pinv(m, rcond=T.tensor(1j))),
        attempt(lambda: T.linalg.multi_dot([m, m.double()])),
        T.linalg.cond(T.diag(T.tensor([1.0, 0.0])), "nuc"),
    ]


@case
def segments(T):
    data = T.tensor([float("nan"), 3.0, 2.0], requires_grad=True)
    lengths = T.tensor([2, 1, 0])
    reduce = T._segment_reduce if hasattr(T, "_segment_reduce") else T.segment_reduce
    mean = reduce(data, "mean", lengths=lengths, initial=0)
    made = reduce(data, "prod", lengths=lengths, initial=2)
    made.sum().backward()
    return mean.detach(), made.detach(), data.grad


@case
def arguments_of_two_signatures(T):
    x = T.ones(3)
    return [
        attempt(lambda: T.trapezoid(x, x, dx=2)),
        attempt(lambda: T.cumulative_trapezoid(x, x=x, dx=2)),
        attempt(lambda: T.histogram(x, x, range=(0.0, 1.0))),
        attempt(lambda: T.histogram(x, "ten")),
        T.trapezoid(x, dx=2),
        T.histogram(x, 2, range=(0.0, 1.0)).hist,
    ]


@case
def results_that_autograd_follows(T):
    found = [
        make(out=T.zeros(3), requires_grad=True)
        for make in (
            lambda **options: T.ones(3, **options),
            lambda **options: T.full((3,), 2.0, **options),
            lambda **options: T.arange(3, **options),
            lambda **options: T.linspace(0, 1, 3, **options),
        )
    ]
    return [*found, T.rand(3, out=T.zeros(3), requires_grad=True).requires_grad]


@case
def sparse_sums_into_other_kinds(T):
    sparse, whole = T.eye(2).to_sparse(), T.ones(2, 2, dtype=T.int64)
    return [
        attempt(lambda: whole.add_(sparse)),
        attempt(lambda: whole.float().add_(sparse * 1j)),
        whole.add_(sparse.long()),
    ]


@case
def integers_that_floats_do_not_hold(T):
    found = []
    for dtype, bounds in ((T.float32, (2**25, 2**25 + 2)), (T.float16, (0, 2**12)), (T.float32, (0, 2**24))):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            T.empty(2, dtype=dtype).random_(*bounds)
        found.append([str(w.message).partition(" (Trigger")[0].partition(" (function")[0] for w in caught])
    return found


test_as_pytorch = case.test()
