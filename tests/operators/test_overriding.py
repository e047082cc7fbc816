"""`__torch_function__`: who is asked about a call, in which order, and of which class results are. PyTorch says so."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
import pathlib
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor
import xtensor.nn.functional as F
from tests.oracle import attempt
from xtensor import nn, overrides

SEEN: list[tuple[str, list[str]]] = []


def logging(library: Any) -> Any:
    """A class of tensors that notes what it is asked."""

    class Logged(library.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            SEEN.append((func.__name__, [kind.__name__ for kind in types]))
            return super().__torch_function__(func, types, args, kwargs or {})

    return Logged


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "x + 1": lambda t, x, p: x + 1,
    "p + x": lambda t, x, p: p + x,
    "add": lambda t, x, p: t.add(p, x),
    "p.add": lambda t, x, p: p.add(x),
    "cat": lambda t, x, p: t.cat([p, x]),
    "add_": lambda t, x, p: x.add_(1),
    "p.add_": lambda t, x, p: p.add_(x),
    "getitem": lambda t, x, p: x[0],
    "setitem": lambda t, x, p: x.__setitem__(0, 1.0),
    "shape": lambda t, x, p: x.shape,
    "T": lambda t, x, p: x.T,
    "data": lambda t, x, p: x.data,
    "grad": lambda t, x, p: x.grad,
    "requires_grad": lambda t, x, p: setattr(x, "requires_grad", False),
    "transpose": lambda t, x, p: t.transpose(x, 0, 1),
    "reshape": lambda t, x, p: t.reshape(x, (3, 2)),
    "view": lambda t, x, p: x.view(6),
    "split": lambda t, x, p: x.split(1),
    "unbind": lambda t, x, p: t.unbind(x),
    "relu": lambda t, x, p: t.nn.functional.relu(x),
    "linear": lambda t, x, p: t.nn.functional.linear(x, p),
    "dropout": lambda t, x, p: t.nn.functional.dropout(x, 0.0),
    "Linear": lambda t, x, p: t.nn.Linear(3, 2)(x),
    "std": lambda t, x, p: t.std(x),
    "max": lambda t, x, p: x.max(0),
    "where": lambda t, x, p: t.where(p > 0, p, x),
    "zeros_like": lambda t, x, p: t.zeros_like(x),
    "new_zeros": lambda t, x, p: x.new_zeros(2),
    "clone": lambda t, x, p: x.clone(),
    "detach": lambda t, x, p: x.detach(),
    "to": lambda t, x, p: x.to(t.float64),
    "size": lambda t, x, p: x.size(),
    "dim": lambda t, x, p: x.dim(),
    "len": lambda t, x, p: len(x),
    "iter": lambda t, x, p: next(iter(x)),
    "bool": lambda t, x, p: bool(x.sum() > 0),
    "item": lambda t, x, p: x.sum().item(),
    "numpy": lambda t, x, p: x.numpy(),
    "contains": lambda t, x, p: 1 in x,
    "out": lambda t, x, p: t.add(p, p, out=x),
    "equal": lambda t, x, p: t.equal(x, p),
    "is_tensor": lambda t, x, p: t.is_tensor(x),
    "tensor": lambda t, x, p: t.as_tensor(x),
    "backward": lambda t, x, p: (x.clone().requires_grad_() * 2).sum().backward(),
    "repr": lambda t, x, p: type(repr(x)),
    "pickle": lambda t, x, p: type(pickle.dumps(p)),
    "special": lambda t, x, p: t.special.entr(x),
}

PYTHONS = "eq ne lt le gt ge add sub mul truediv floordiv mod pow".split()
BITS = "and_ or_ xor lshift rshift".split()
for _name in PYTHONS + BITS:
    _call = getattr(operator, _name)
    _kind = "int64" if _name in BITS else "float32"
    CALLS[f"{_name} 2"] = lambda t, x, p, f=_call, k=_kind: f(x.to(getattr(t, k)), 2)
    CALLS[f"2 {_name}"] = lambda t, x, p, f=_call, k=_kind: f(2, x.to(getattr(t, k)))
    CALLS[f"p {_name} x"] = lambda t, x, p, f=_call, k=_kind: f(p.to(getattr(t, k)), x.to(getattr(t, k)))
    if hasattr(operator, f"i{_name.strip('_')}"):
        _inplace = getattr(operator, f"i{_name.strip('_')}")
        CALLS[f"{_name} = 2"] = lambda t, x, p, f=_inplace, k=_kind: f(x.to(getattr(t, k)), 2)
for _name in ("floordiv", "pow"):
    del CALLS[f"p {_name} x"]  # PyTorch has them in Python, and counts plain tensors among the types there
CALLS["matmul"] = lambda t, x, p: x @ p.T
CALLS["p matmul"] = lambda t, x, p: p @ x.T
for _name in ("neg", "pos", "abs"):
    _unary = getattr(operator, _name)
    CALLS[_name] = lambda t, x, p, f=_unary: f(x)


def told(library: Any, kind: Any, name: str) -> Any:
    SEEN.clear()
    x, p = library.ones(2, 3).as_subclass(kind), library.ones(2, 3)
    made = CALLS[name](library, x, p)
    parts = made if isinstance(made, (tuple, list)) else [made]
    return [type(part).__name__ for part in parts], list(SEEN)


@pytest.mark.parametrize("name", CALLS)
def test_who_is_asked_is_as_in_pytorch(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")
    assert told(xtensor, logging(xtensor), name) == told(torch, logging(torch), name)


@pytest.fixture(scope="module", name="Plain")
def plain_class() -> Any:
    """A class that overrides nothing; made when it is needed, since functions get other code when there is one."""

    class Plain(xtensor.Tensor):
        pass

    return Plain


def test_results_are_of_the_class_and_hold_the_same_values(Plain: Any) -> None:
    x = xtensor.arange(6.0).reshape(2, 3).as_subclass(Plain)
    y = x.t()[1:] * 2 + xtensor.ones(2)
    assert type(y) is Plain and y.tolist() == [[3.0, 9.0], [5.0, 11.0]]
    assert type(xtensor.stack([x, x]).sum(0)) is Plain and type(F.softmax(x, 1)) is Plain
    x[0] = 7.0
    x += 1
    assert type(x) is Plain and x.tolist() == [[8.0] * 3, [4.0, 5.0, 6.0]] and x._version == 2
    made = x.max(dim=1)
    assert type(made.values) is Plain and type(made).__name__ == "max"
    assert type(x.resize_(3, 3)) is Plain and x.shape == (3, 3) and x.sum().shape == ()


def test_gradients_reach_a_leaf_of_a_class(Plain: Any) -> None:
    w = xtensor.tensor([1.0, 2.0]).as_subclass(Plain).requires_grad_()
    loss = (w * w).sum() + xtensor.dot(xtensor.ones(2), w)
    assert type(loss) is Plain and loss.requires_grad
    loss.backward()
    assert w.grad.tolist() == [3.0, 5.0]
    v = xtensor.ones(3, requires_grad=True)
    (v.as_subclass(Plain) * 2).sum().backward()
    assert v.grad.tolist() == [2.0, 2.0, 2.0]


def test_parameters_are_plain_and_may_be_of_a_class(Plain: Any) -> None:
    p = nn.Parameter(xtensor.ones(2))
    assert type(p * 2) is xtensor.Tensor and not overrides.has_torch_function((p,))
    q = nn.Parameter(xtensor.ones(2).as_subclass(Plain))
    assert isinstance(q, nn.Parameter) and type(q) is Plain and q.requires_grad
    module = nn.Module()
    module.q = q
    optimizer = xtensor.optim.SGD(module.parameters(), lr=0.5)
    (module.q * 2).sum().backward()
    optimizer.step()
    assert module.q.tolist() == [0.0, 0.0]
    again = copy.deepcopy(q)
    assert type(again) is Plain and again.tolist() == [0.0, 0.0]


def test_attributes_do_not_collide_with_slots() -> None:
    class Marked(xtensor.Tensor):
        pass

    x = xtensor.ones(2).as_subclass(Marked)
    for name in ("_meta", "_view", "_storage", "_edge", "_base_"):
        setattr(x, name, name)
    assert (x + 1).tolist() == [2.0, 2.0] and x._meta == "_meta"
    made = xtensor.Tensor._make_subclass(Marked, xtensor.ones(2), True)
    assert type(made) is Marked and made.requires_grad and made.is_leaf


HANDLED: dict[Any, Callable[..., Any]] = {}


class Scaled:
    """No tensor at all: a number on the diagonal."""

    def __init__(self, size: int, value: float) -> None:
        self.size, self.value = size, value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func not in HANDLED or not all(issubclass(t, (xtensor.Tensor, Scaled)) for t in types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))


HANDLED[xtensor.mean] = lambda x, *rest: x.value / x.size
HANDLED[xtensor.matmul] = lambda a, b: ("matmul", type(a).__name__, type(b).__name__)
HANDLED[xtensor.stack] = lambda tensors, dim=0: len(tensors)


def test_objects_that_are_no_tensors_answer() -> None:
    s = Scaled(4, 2.0)
    assert xtensor.mean(s) == 0.5
    assert xtensor.matmul(xtensor.ones(2), s) == ("matmul", "Tensor", "Scaled")
    assert xtensor.stack([xtensor.ones(2), s]) == 2
    with pytest.raises(TypeError, match=r"Multiple dispatch failed for 'xtensor.add'[\s\S]*Scaled"):
        xtensor.add(s, 1)


def test_a_subclass_is_asked_before_the_class_above_and_the_next_where_one_declines() -> None:
    order: list[str] = []

    def kind(name: str, base: type, gives: Any) -> Any:
        def ask(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append(name)
            return gives

        return type(name, (base,), {"__torch_function__": classmethod(ask)})

    a = kind("A", xtensor.Tensor, "a")
    b = kind("B", a, NotImplemented)
    other = kind("C", xtensor.Tensor, NotImplemented)
    x, y, z = (xtensor.ones(1).as_subclass(k) for k in (a, b, other))
    assert xtensor.add(x, y) == "a" and order == ["B", "A"]
    order.clear()
    assert xtensor.cat([z, x]) == "a" and order == ["C", "A"]
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        xtensor.add(y, z)
    with pytest.raises(TypeError, match="unsupported operand"):
        y + 1


class Counting(overrides.TorchFunctionMode):
    """A mode that notes names."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_modes_nest_and_are_asked_from_the_inside() -> None:
    x = xtensor.ones(2, requires_grad=True)
    with Counting() as outer, Counting() as inner:
        assert overrides._len_torch_function_stack() == 2
        y = xtensor.stack([x + 1, F.relu(x)]).std(0).reshape(1, 2)
        with overrides.DisableTorchFunction():
            y.mul(2)
        xtensor.zeros(2)
    assert inner.names == outer.names == ["add", "relu", "stack", "std", "reshape", "zeros"]
    assert y.requires_grad and x.add(1).tolist() == [2.0, 2.0] and len(inner.names) == 6
    with pytest.raises(RuntimeError, match="boom"):

        class Failing(overrides.TorchFunctionMode):
            def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                raise RuntimeError("boom")

        with Failing():
            x + 1
    assert (x + 1).tolist() == [2.0, 2.0] and not overrides._len_torch_function_stack()


def test_a_mode_sees_what_a_class_is_asked_first(Plain: Any) -> None:
    x = xtensor.ones(2).as_subclass(Plain)
    with Counting() as mode:
        made = x + 1
    assert mode.names == ["add"] and type(made) is Plain


def test_questions_about_functions(Plain: Any) -> None:
    found = overrides.get_overridable_functions()
    assert (
        xtensor.add in found[xtensor] and F.linear in found[F] and xtensor.Tensor.add in found[xtensor.Tensor]
    )
    assert xtensor.ones in overrides.get_ignored_functions()
    assert overrides.resolve_name(xtensor.add) == "xtensor.add"
    assert overrides.resolve_name(F.conv2d) in ("xtensor.conv2d", "xtensor.nn.functional.conv2d")
    assert overrides.resolve_name(xtensor.Tensor.shape.__get__) == "xtensor.Tensor.shape.__get__"
    assert overrides.is_tensor_method_or_property(xtensor.Tensor.add_)
    assert not overrides.is_tensor_method_or_property(xtensor.add)
    assert overrides.get_testing_overrides()[xtensor.add](1, 2) == -1
    x = xtensor.ones(2).as_subclass(Plain)
    assert overrides.has_torch_function_unary(x) and not overrides.has_torch_function_variadic(
        xtensor.ones(2)
    )

    @overrides.wrap_torch_function(lambda a, b: (a, b))
    def both(a: Any, b: Any) -> Any:
        return type(a).__name__, type(b).__name__

    assert both(1, 2) == ("int", "int") and both(x, 2) == ("Plain", "int")


def test_every_function_that_can_be_overridden_asks() -> None:
    """Whatever comes first is our object: each asks it before it looks at anything else."""
    asked: list[Any] = []

    class Anything(xtensor.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(func)
            return "answered"

    silent = []
    with overrides.DisableTorchFunctionSubclass():
        x = xtensor.ones(2, 2).as_subclass(Anything)
    for owner, functions in overrides.get_overridable_functions().items():
        for function in functions:
            if overrides.is_property(function):
                continue
            asked.clear()
            call = functools.partial(function, *[x] * needed(function), **dict.fromkeys(named(function), x))
            try:
                made = call()
            except (TypeError, RuntimeError, ValueError, AttributeError, IndexError) as error:
                made = error
            if made != "answered" and not asked:
                silent.append(
                    (getattr(owner, "__name__", owner), getattr(function, "__name__", function), made)
                )
    assert not silent, silent


def needed(function: Any) -> int:
    """How many positional arguments a function needs; one of those that take any number."""
    places = [p for p in inspect.signature(function).parameters.values() if p.kind <= p.VAR_POSITIONAL]
    return sum(p.default is p.empty for p in places)


def named(function: Any) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]


def test_properties_ask() -> None:
    asked: list[str] = []

    class Asked(xtensor.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(func)
            return "answered"

    with overrides.DisableTorchFunctionSubclass():
        x = xtensor.ones(2, 2).as_subclass(Asked)
    for name in ("shape", "dtype", "T", "grad", "requires_grad", "is_leaf", "device"):
        assert getattr(x, name) == "answered" and asked.pop() == getattr(xtensor.Tensor, name).__get__
    x.requires_grad = True
    assert asked.pop() == xtensor.Tensor.requires_grad.__set__


def test_plain_calls_take_the_inline_path_with_classes_about(Plain: Any) -> None:
    xtensor.ones(2).as_subclass(Plain) + 1
    add = xtensor.ops.source("add")
    assert "claimed" not in add and "armed" not in add
    x = xtensor.ones(3)
    assert type(x + x) is xtensor.Tensor and np.asarray(x + 1).tolist() == [2.0, 2.0, 2.0]


def test_the_page_s_examples_run() -> None:
    page = (pathlib.Path(__file__).parents[2] / "docs" / "extending.md").read_text("utf-8")
    code = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert len(code) == 4
    assert all(len(block.splitlines()) < 60 for block in code)
    exec("\n".join(code), {})


def test_frames_of_functions_that_ask_can_be_looked_at(Plain: Any) -> None:
    """Debuggers and test runners read the variables of every frame of a traceback."""
    xtensor.ones(2).as_subclass(Plain) + 1
    seen = 0
    try:
        xtensor.ones(2).as_subclass(Plain).reshape(3)
    except RuntimeError as error:
        at: Any = error.__traceback__
        while at is not None:
            seen += len(at.tb_frame.f_locals) >= 0
            at = at.tb_next
    assert seen
    for function in list(xtensor.operators.overriding._routed.values()):
        assert function.__code__.co_freevars == function.__wrapped__.__code__.co_freevars
        assert not function.__code__.co_freevars or function.__code__.co_code[0:1] == copying()


def copying() -> bytes:
    """The instruction by which a function takes in its surroundings' variables."""
    variable = 0
    return (lambda: variable).__code__.co_code[0:1]


def test_who_is_asked_about_gradients_and_what_a_mode_must_be(torch: Any) -> None:
    def found(T: Any) -> Any:
        class Own:
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func.__name__, args == ((x,), (x,)), sorted(kwargs)

        class Wrong(T.overrides.TorchFunctionMode):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        def called():
            with Wrong():
                return T.ones(2)

        x = Own()
        return (
            T.autograd.grad(x, x),
            attempt(called),
            attempt(lambda: T.overrides.has_torch_function(object())),
        )

    assert found(xtensor) == found(torch)


def test_a_tensor_of_a_class_keeps_the_history(Plain: Any) -> None:
    w = xtensor.ones(2, requires_grad=True)
    for x in (Plain(w), xtensor.Tensor(w)):
        assert x._is_view() and x._base is w
        x.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [2.0, 2.0]


def test_a_call_may_go_on_without_asking_about_itself() -> None:
    seen: list[str] = []

    class Inner(xtensor.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    x = xtensor.ones(2).as_subclass(Inner)
    assert type(xtensor.neg(x)) is xtensor.Tensor and seen == ["neg"]
    seen.clear()
    F.softmin(x, dim=0)
    assert seen[0] == "softmin" and len(seen) > 1


def test_the_other_operand_is_asked_where_one_declines() -> None:
    class Mute(xtensor.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return -1 if cls.__name__ == "Raised" and func is xtensor.Tensor.__rpow__ else NotImplemented

    raised = type("Raised", (Mute,), {})
    assert Mute(1) ** raised(1) == -1


def test_modes_are_asked_about_sparse_tensors() -> None:
    class One(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return 1

    with One():
        made: Any = xtensor.sparse_coo_tensor([[0]], [1.0], (1,))
    assert made == 1
