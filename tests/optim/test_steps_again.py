"""Steps that are the last one with other numbers: whatever is changed in between shows, as where every step is looked at anew."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

import xtensor as xt
from xtensor.optim.optimizer import RuleOptimizer

OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: xt.optim.SGD(p, lr=0.1),
    "momentum": lambda p: xt.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
    "AdamW": lambda p: xt.optim.AdamW(p, lr=0.1),
    "Rprop": lambda p: xt.optim.Rprop(p, lr=0.1),
}


def another_rate(opt: Any, params: list[Any]) -> None:
    opt.param_groups[0]["lr"] = 0.5


def maximize(opt: Any, params: list[Any]) -> None:
    opt.param_groups[0]["maximize"] = True


def write(opt: Any, params: list[Any]) -> None:
    with xt.no_grad():
        params[0].mul_(2)


def other_data(opt: Any, params: list[Any]) -> None:
    params[1].data = xt.full((3,), 5.0)


def a_view(opt: Any, params: list[Any]) -> None:
    params[1].data = xt.arange(6.0)[::2]


def no_gradient(opt: Any, params: list[Any]) -> None:
    params[0].requires_grad_(False)
    params[0].grad = None


def no_states(opt: Any, params: list[Any]) -> None:
    opt.state.clear()


def another_state(opt: Any, params: list[Any]) -> None:
    for own in opt.state.values():
        for name in own:
            own[name] = own[name] * 0.5 if name != "step" else own[name].clone()


def loaded(opt: Any, params: list[Any]) -> None:
    opt.load_state_dict(opt.state_dict())


def another_parameter(opt: Any, params: list[Any]) -> None:
    params.append(xt.ones(2, requires_grad=True))
    opt.add_param_group({"params": [params[-1]], "lr": 0.2})


def one_less(opt: Any, params: list[Any]) -> None:
    del opt.param_groups[0]["params"][0]


def tied(opt: Any, params: list[Any]) -> None:
    params[1].data = params[0].data[0]


def other_count(opt: Any, params: list[Any]) -> None:
    own = opt.state[params[0]]
    if "step" in own:
        own["step"] += 5


CHANGES = [
    another_rate,
    maximize,
    write,
    other_data,
    a_view,
    no_gradient,
    no_states,
    another_state,
    loaded,
    another_parameter,
    one_less,
    tied,
    other_count,
]


def trained(name: str, change: Callable[[Any, list[Any]], None], anew: bool) -> list[Any]:
    params = [
        xt.full((2, 3), 0.5, requires_grad=True),
        xt.tensor([1.0, -2.0, 3.0], requires_grad=True),
    ]
    opt = OPTIMIZERS[name](params)
    for at in range(8):
        if at == 4:
            change(opt, params)
        if anew:
            opt.state.kept = None
        opt.zero_grad()
        sum((p * p * (at + 1)).sin().sum() for p in params if p.requires_grad).backward()
        opt.step()
    states = [own[k].tolist() for own in opt.state.values() for k in sorted(own)]
    return [[p.tolist() for p in params], [p._version for p in params], states]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_is_changed_between_steps_shows(name: str, change: Callable[[Any, list[Any]], None]):
    assert trained(name, change, False) == trained(name, change, True)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_like_the_last_is_taken_for_it(name: str, monkeypatch: pytest.MonkeyPatch):
    told: list[bool] = []
    plain = RuleOptimizer._again

    def again(self: Any, kept: Any) -> bool:
        told.append(plain(self, kept))
        return told[-1]

    monkeypatch.setattr(RuleOptimizer, "_again", again)
    trained(name, another_rate, False)
    assert told.count(True) >= 6


@pytest.mark.parametrize("forget", ["clear", "replace"])
def test_states_that_are_dropped_are_freed(forget: str):
    weight = xt.ones(1031, requires_grad=True)
    opt = xt.optim.SGD([weight], lr=0.1, momentum=0.9)
    for _ in range(3):
        opt.zero_grad()
        (weight * weight).sum().backward()
        opt.step()
    assert opt.state.kept is not None
    held = weakref.ref(opt.state[weight]["momentum_buffer"])
    if forget == "clear":
        opt.state.clear()
    else:
        opt.state = defaultdict(dict)
    assert held() is None
