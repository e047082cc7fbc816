"""Deprecated orders of arguments, such as `add(input, alpha, other)`: what they compute, and PyTorch's warning."""

import re
import warnings

import pytest

import xtensor
from xtensor import checks

CALLS = [
    "lib.add(a, 2, a)",
    "lib.add(a, 2, 1.5)",
    "lib.add(a, lib.tensor(2), a)",
    "lib.add(a, 2.5, a, out=lib.empty(3, 3, dtype=lib.float64))",
    "a.add(2, a)",
    "a.clone().add_(2, a)",
    "lib.sub(a, 2, a)",
    "a.sub(2, a)",
    "a.clone().sub_(2, a)",
    "lib.addcmul(a, 2, a, a)",
    "a.addcmul(2, a, a)",
    "a.clone().addcmul_(2, a, a)",
    "lib.addcdiv(a, 2, a, a + 1)",
    "a.addcdiv(2, a, a + 1)",
    "a.clone().addcdiv_(2, a, a + 1)",
]
for name, target, rest in (
    ("addmm", "a", "a, a"),
    ("addmv", "v", "a, v"),
    ("addr", "a", "v, v"),
    ("addbmm", "a", "b, b"),
    ("baddbmm", "b", "b, b"),
):
    CALLS += [f"lib.{name}(2, {target}, {rest})", f"lib.{name}(2, {target}, 3, {rest})"]
    CALLS += [f"{target}.{name}(2, {rest})", f"{target}.{name}(2, 3, {rest})"]
    CALLS += [f"{target}.clone().{name}_(2, {rest})", f"{target}.clone().{name}_(2, 3, {rest})"]
CALLS += ["lib.addmm(2, a, a, a, out=lib.empty(3, 3, dtype=lib.float64))"]


def outcome(library, call: str):
    """Values, and the first lines of the warning: the spelling that is deprecated."""
    names = {
        "lib": library,
        "a": library.arange(9, dtype=library.float64).reshape(3, 3),
        "v": library.arange(3, dtype=library.float64),
        "b": library.arange(18, dtype=library.float64).reshape(2, 3, 3),
    }
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = eval(call, names)
    return (
        result.tolist(),
        [w.category for w in caught],
        [str(w.message) for w in caught],
        [w.filename for w in caught],
    )


@pytest.mark.parametrize("call", CALLS)
def test_older_orders_warn_and_work(torch, call, monkeypatch):
    monkeypatch.setattr(checks, "_told", set())
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        theirs, categories, messages, _ = outcome(torch, call)
    finally:
        torch.set_warn_always(before)
    ours, own_categories, own_messages, where = outcome(xtensor, call)
    assert ours == theirs
    assert own_categories == categories == [UserWarning]
    told, tells = (
        re.sub(r" \(Triggered internally.*", "", m[0], flags=re.DOTALL).splitlines()
        for m in (messages, own_messages)
    )
    if call.startswith(("a.add(", "a.sub(", "a.addcmul(", "a.addcdiv(")):
        # The method is the function itself: it names the tensor that it was called on too.
        told = [line.replace("(", "(Tensor input, ", 1).replace(")", ", Tensor out = None)") for line in told]
        told[1] = told[1].replace(", Tensor out", ", *, Tensor out")
    assert tells == [line for line in told if "out_dtype" not in line]
    assert where == ["<string>"], "the warning points at the caller"


def test_an_operator_warns_once(monkeypatch):
    monkeypatch.setattr(checks, "_told", set())
    assert len(outcome(xtensor, "a.add(2, a)")[2]) == 1
    assert outcome(xtensor, "a.add(2, a)")[2] == []
    assert len(outcome(xtensor, "a.sub(2, a)")[2]) == 1


def test_gradients_flow_through_older_orders(monkeypatch):
    told = {f"This overload of {name} is deprecated" for name in ("add", "addmm")}
    monkeypatch.setattr(checks, "_told", told)
    x = xtensor.ones(2, 2, requires_grad=True)
    x.add(3, x).sum().backward()
    assert x.grad.tolist() == [[4.0] * 2] * 2
    x.grad = None
    xtensor.addmm(2, x, 3, x, x).sum().backward()
    assert x.grad.tolist() == [[14.0] * 2] * 2


@pytest.mark.parametrize(
    "call", ["lib.add(a, a, 2)", "lib.addmm(a, a, a, 2, 3)", "a.add_(2, a, 3)", "lib.addmm('2', a, a, a)"]
)
def test_other_orders_are_refused(torch, call):
    for library in (xtensor, torch):
        with pytest.raises(TypeError):
            outcome(library, call)
