"""`torch._foreach_*`, `torch._assert` and `torch._check*` against PyTorch's."""

import pytest

import xtensor

CALLS = {
    "add scalar": lambda t, xs, ys: t._foreach_add(xs, 2.0),
    "add list": lambda t, xs, ys: t._foreach_add(xs, ys, alpha=0.5),
    "add scalars": lambda t, xs, ys: t._foreach_add(xs, [1.0, 2.0]),
    "sub": lambda t, xs, ys: t._foreach_sub(xs, ys),
    "div": lambda t, xs, ys: t._foreach_div(xs, ys),
    "pow": lambda t, xs, ys: t._foreach_pow(xs, 2.0),
    "scalar pow": lambda t, xs, ys: t._foreach_pow(2.0, xs),
    "sqrt": lambda t, xs, ys: t._foreach_sqrt(ys),
    "norm": lambda t, xs, ys: t._foreach_norm(xs, 2),
    "maximum": lambda t, xs, ys: t._foreach_maximum(xs, 0.5),
    "minimum": lambda t, xs, ys: t._foreach_minimum(xs, ys),
    "lerp": lambda t, xs, ys: t._foreach_lerp(xs, ys, 0.25),
    "addcdiv": lambda t, xs, ys: t._foreach_addcdiv(xs, ys, ys, [0.5, 2.0]),
    "addcmul": lambda t, xs, ys: t._foreach_addcmul(xs, ys, ys, 0.5),
    "addcmul named": lambda t, xs, ys: t._foreach_addcmul(xs, ys, ys, value=0.5),
    "mul_": lambda t, xs, ys: t._foreach_mul_(xs, 3.0) or xs,
    "mul_ tensor": lambda t, xs, ys: t._foreach_mul_(xs, t.tensor(2.0)) or xs,
    "addcdiv_": lambda t, xs, ys: t._foreach_addcdiv_(xs, ys, ys, t.tensor([0.5, 2.0])) or xs,
    "zero_": lambda t, xs, ys: t._foreach_zero_(xs) or xs,
    "copy_": lambda t, xs, ys: t._foreach_copy_(xs, ys) or xs,
    "neg_": lambda t, xs, ys: t._foreach_neg_(xs) or xs,
}


@pytest.mark.parametrize("name", CALLS)
def test_lists_are_pytorch_s(torch, name):
    def found(t):
        xs, ys = [t.tensor([1.0, -2.0]), t.tensor([[3.0]])], [t.tensor([4.0, 0.25]), t.tensor([[2.0]])]
        return [made.tolist() for made in CALLS[name](t, xs, ys)]

    for ours, theirs in zip(found(xtensor), found(torch), strict=True):
        assert ours == pytest.approx(theirs) if not isinstance(theirs, list) else ours == theirs


def test_lists_of_different_lengths_are_refused(torch):
    for t in (xtensor, torch):
        with pytest.raises(RuntimeError, match="same number of tensors, got 2 and 1"):
            t._foreach_add([t.ones(1)] * 2, [t.ones(1)])
    with pytest.raises(AttributeError, match="_foreach_nothing"):
        _ = xtensor._foreach_nothing


def test_conditions_are_pytorch_s(torch):
    def found(t):
        t._check(True)
        t._assert(t.tensor(True), "unused")
        for attempt in (
            lambda: t._assert(False, "words"),
            lambda: t._check(False, lambda: "words"),
            lambda: t._check_value(False, lambda: "words"),
            lambda: t._check_index(False, lambda: "words"),
            lambda: t._check_type(False, lambda: "words"),
            lambda: t._check_tensor_all(t.tensor([True, False]), lambda: "words"),
        ):
            with pytest.raises(Exception) as caught:
                attempt()
            yield type(caught.value), str(caught.value)

    assert list(found(xtensor)) == list(found(torch))
