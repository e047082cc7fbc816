"""Schedulers given Tensors keep copies of them, and states of older versions go on."""

import pytest

import xtensor as x
from xtensor.optim.lr_scheduler import EPOCH_DEPRECATION_WARNING, CyclicLR, ExponentialLR, OneCycleLR
from xtensor.optim.swa_utils import SWALR


def made(lr):
    return x.optim.SGD([x.nn.Parameter(x.ones(1))], lr=lr, momentum=0.9)


@pytest.mark.parametrize(
    "schedule",
    [
        lambda o, low, high: CyclicLR(o, 0.1, 0.2, base_momentum=low, max_momentum=high),
        lambda o, low, high: OneCycleLR(o, 0.2, total_steps=9, base_momentum=low, max_momentum=high),
    ],
)
def test_momentums_are_copied(schedule):
    low, high = x.tensor(0.8), x.tensor(0.9)
    optimizer = made(0.1)
    schedule(optimizer, low, high)
    low.mul_(0.5), high.mul_(0.5)
    group = optimizer.param_groups[0]
    assert float(group["base_momentum"]) == pytest.approx(0.8)
    assert float(group["max_momentum"]) == pytest.approx(0.9)


def test_the_rate_of_averaging_is_copied():
    rate = x.tensor(0.05)
    optimizer = made(0.1)
    SWALR(optimizer, swa_lr=rate)
    rate.mul_(0.5)
    assert float(optimizer.param_groups[0]["swa_lr"]) == pytest.approx(0.05)


def test_a_state_that_holds_its_function():
    optimizer, plain = made(1.0), made(1.0)
    old, new = OneCycleLR(optimizer, 2.0, total_steps=6), OneCycleLR(plain, 2.0, total_steps=6)
    state = old.state_dict()
    del old._anneal_func_type
    state.pop("_anneal_func_type")
    old.load_state_dict(state | {"anneal_func": OneCycleLR._annealing_cos})
    for _ in range(4):
        optimizer.step(), plain.step(), old.step(), new.step()
        assert old.get_last_lr() == new.get_last_lr()


def test_an_epoch_is_warned_of_in_one_sentence():
    optimizer = made(1.0)
    schedule = ExponentialLR(optimizer, 0.9)
    optimizer.step()
    with pytest.warns(UserWarning) as caught:
        schedule.step(1)
    assert str(caught[0].message) == EPOCH_DEPRECATION_WARNING


def test_fused_steps_need_values():
    parameter = x.nn.Parameter(x.ones(2, device="meta"))
    optimizer = x.optim.Adam([parameter], fused=True)
    parameter.grad = x.ones(2, device="meta")
    with pytest.raises(RuntimeError, match="requires all the params to be floating point Tensors"):
        optimizer.step()
