"""`__torch_dispatch__`: operators below autograd, as objects; classes that wrap tensors, and modes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import xtensor
from xtensor import nn
from xtensor.library import ops
from xtensor.operators.below.dispatching import disabled
from xtensor.operators.overriding import DISABLED
from xtensor.utils._python_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)
from xtensor.utils._pytree import tree_map
from xtensor.utils.flop_counter import FlopCounterMode

SEEN: list[str] = []


class Noting(TorchDispatchMode):
    """Notes the operators that run."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(str(func))
        assert not xtensor.is_grad_enabled()
        return func(*args, **(kwargs or {}))


class Wrapped(xtensor.Tensor):
    """A tensor around another, whose operators are noted."""

    elem: xtensor.Tensor
    __slots__ = ("elem",)
    __torch_function__ = DISABLED

    @staticmethod
    def __new__(cls, elem: Any, requires_grad: bool = False) -> Any:
        made: Any = xtensor.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            dtype=elem.dtype,
            device=elem.device,
            requires_grad=requires_grad,
        )
        made.elem = elem
        return made

    def __repr__(self) -> str:
        return f"Wrapped({self.elem})"

    def __tensor_flatten__(self) -> Any:
        return ["elem"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Wrapped(inner["elem"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(str(func))
        inner = tree_map(lambda e: e.elem if isinstance(e, Wrapped) else e, (args, kwargs or {}))
        made = tree_map(
            lambda e: Wrapped(e) if isinstance(e, xtensor.Tensor) else e, func(*inner[0], **inner[1])
        )
        return return_and_correct_aliasing(func, args, kwargs or {}, made)


def seen(body: Any) -> list[str]:
    SEEN.clear()
    with Noting():
        body()
    return list(SEEN)


def test_operators_are_seen_as_declared() -> None:
    x = xtensor.ones(2, 3, requires_grad=True)
    other = xtensor.ones(2, 3)
    assert seen(lambda: x + 1) == ["aten.add.Tensor"]
    assert seen(lambda: other.add_(1)) == ["aten.add_.Tensor"]
    assert seen(lambda: other > 1) == ["aten.gt.Scalar"]
    assert seen(lambda: other > other) == ["aten.gt.Tensor"]
    assert seen(lambda: (x.sum(), x.sum(0))) == ["aten.sum.default", "aten.sum.dim_IntList"]
    assert seen(lambda: (x.max(), x.max(0))) == ["aten.max.default", "aten.max.dim"]
    assert seen(lambda: x**2.0) == ["aten.pow.Tensor_Scalar"]
    assert seen(lambda: (x[0], x[:, 1:], x.view(6), x.t())) == [
        "aten.select.int",
        "aten.slice.Tensor",
        "aten.view.default",
        "aten.t.default",
    ]
    assert seen(lambda: (other.clone(), other.t().contiguous())) == [
        "aten.clone.default",
        "aten.t.default",
        "aten.clone.default",
    ]
    assert seen(lambda: xtensor.zeros(2)) == ["aten.zeros.default"]
    assert seen(lambda: xtensor.add(other, other, out=xtensor.empty_like(other))) == [
        "aten.empty_like.default",
        "aten.add.out",
    ]
    assert seen(lambda: nn.functional.layer_norm(x, (3,))) == ["aten.native_layer_norm.default"]


def test_the_graph_is_the_operator_s_whatever_a_mode_does() -> None:
    x = xtensor.tensor([1.0, 2.0], requires_grad=True)
    with Noting():
        y = (x * x).relu()
        view = y.view(2, 1)
        assert type(y.grad_fn).__name__ == "ReluBackward0"
        SEEN.clear()
        view.sum().backward()
    assert SEEN == ["aten.sum.default", "aten.sum_backward.default"] + [
        "aten.permute.default",  # what the gradient passes on its way through the view
        "aten.view.default",
        "aten.relu_backward.default",
        "aten.mul_backward.default",
        "aten.mul_backward.default",
        "aten.add.Tensor",
    ]
    assert x.grad is not None and x.grad.tolist() == [2.0, 4.0]


def test_modes_nest_and_may_answer_themselves() -> None:
    class Twice(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {})) * 2

    x = xtensor.ones(2)
    SEEN.clear()
    with Noting(), Twice():
        y = x + 1
    assert y.tolist() == [4.0, 4.0] and SEEN == ["aten.add.Tensor", "aten.mul.Tensor"]
    assert (x + 1).tolist() == [2.0, 2.0]


def test_an_operator_knows_its_name_overload_and_schema() -> None:
    func = ops.aten.add.Tensor
    assert func is ops.aten.add.Tensor and func.overloadpacket is ops.aten.add
    assert (str(func), func.name(), func.__name__) == ("aten.add.Tensor", "aten::add.Tensor", "add.Tensor")
    assert repr(func) == "<OpOverload(op='aten.add', overload='Tensor')>"
    assert str(func._schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert func(xtensor.ones(1), 2, alpha=3).tolist() == [7.0]
    assert ops.aten.add(xtensor.ones(1), 2).tolist() == [3.0]
    assert ops.aten.add_.Tensor._schema.is_mutable and not func._schema.is_mutable
    assert ops.aten.transpose.int.is_view and not func.is_view
    assert ops.aten.relu.default.name() == "aten::relu"
    assert pickle.loads(pickle.dumps(func)) is func


@pytest.mark.parametrize(
    "name",
    ["add.Tensor", "mul.Tensor", "relu.default", "mm.default", "gt.Scalar", "add_.Tensor", "t.default"],
)
def test_names_and_schemas_are_pytorch_s(name: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")
    packet, _, overload = name.partition(".")
    ours, theirs = (
        getattr(getattr(ops.aten, packet), overload),
        getattr(getattr(torch.ops.aten, packet), overload),
    )
    assert (str(ours), repr(ours), ours.name(), ours.__name__) == (
        str(theirs),
        repr(theirs),
        theirs.name(),
        theirs.__name__,
    )
    assert str(ours._schema) == str(theirs._schema)
    assert ours._schema.is_mutable == theirs._schema.is_mutable and ours.is_view == theirs.is_view


def test_a_class_wraps_tensors_below_autograd() -> None:
    x = Wrapped(xtensor.tensor([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
    weight = xtensor.ones(3, 2, requires_grad=True)
    y = nn.functional.linear(x, weight).relu()
    assert type(y) is Wrapped and type(y.grad_fn).__name__ == "ReluBackward0"
    y.sum().backward()
    assert type(x.grad) is Wrapped and x.grad.elem.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert type(weight.grad) is Wrapped and weight.grad.elem.tolist() == [[4.0, 6.0]] * 3
    (grad,) = xtensor.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = xtensor.autograd.grad(grad.sum(), x)
    assert second.elem.tolist() == [[6.0, 12.0], [18.0, 24.0]]


def test_views_writes_and_factories_of_a_class() -> None:
    x = Wrapped(xtensor.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert x.add_(1) is x and x.elem.tolist() == [[2.0, 3.0], [4.0, 5.0]]
    row = x[0]
    row.mul_(10)
    assert type(row) is Wrapped and x.elem.tolist() == [[20.0, 30.0], [4.0, 5.0]]
    assert row._xt_storage is x._xt_storage and x._version == 2
    parts = [x.t(), x.view(4), x[:, 1:], *x.unbind(), xtensor.cat([x, x]), xtensor.zeros_like(x), x.detach()]
    assert {type(p) for p in parts} == {Wrapped}
    assert x.sum().item() == 59.0
    assert is_traceable_wrapper_subclass(x) and not is_traceable_wrapper_subclass(xtensor.ones(1))
    assert transform_subclass(x, lambda name, inner: inner + 1).elem.tolist() == [[21.0, 31.0], [5.0, 6.0]]


def test_a_class_may_decline() -> None:
    class Silent(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    with pytest.raises(
        TypeError, match=r"Multiple dispatch failed for 'aten.add.Tensor'; all __torch_dispatch__"
    ):
        Silent(xtensor.ones(2)) + 1
    assert xtensor.Tensor.__torch_dispatch__ is disabled


def test_operations_are_counted() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    with FlopCounterMode(display=False) as counter:
        model(xtensor.ones(3, 4)).sum().backward()
    assert counter.get_total_flops() == 672
    counts = counter.get_flop_counts()
    assert (
        counts["Sequential.0"][ops.aten.linear] == 192 and counts["Global"][ops.aten.linear_backward] == 384
    )
    with FlopCounterMode(display=False) as counter:
        x = xtensor.ones(2, 3, 8, 8, requires_grad=True)
        nn.Conv2d(3, 8, 3, padding=1)(x).sum().backward()
    assert counter.get_total_flops() == 3 * 55296
    assert "aten.conv2d" in counter.get_table()


def test_memory_is_tracked() -> None:
    class Bytes(TorchDispatchMode):
        made = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            if not func.is_view and not func._schema.is_mutable:
                self.made += out.nbytes
            return out

    with Bytes() as tracker:
        x = xtensor.zeros(4, 4)
        x.add_(1)
        (x.view(16) * 2).sum()
    assert tracker.made == 64 + 64 + 4
