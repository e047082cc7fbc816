"""`__torch_dispatch__`: operators below autograd, as objects; classes that wrap tensors, and modes."""

from __future__ import annotations

import copy
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
        xtensor.add(Silent(xtensor.ones(2)), 1)
    with pytest.raises(TypeError, match="unsupported operand"):
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


def test_a_class_is_not_asked_about_what_it_lets_happen() -> None:
    seen: list[str] = []

    class Above(xtensor.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = xtensor.Tensor._make_subclass(Above, xtensor.ones(2))
    y = x + x
    assert type(y) is xtensor.Tensor and y.tolist() == [2.0, 2.0] and seen == ["aten.add.Tensor"]
    assert x.data.tolist() == [1.0, 1.0] and seen.pop() == "aten.detach.default"
    x.set_(xtensor.zeros(2))
    assert seen.pop() == "aten.set_.default" and type(x) is Above


def answering(answers: dict[str, Any], **asked: Any) -> Any:
    """A tensor of sizes (2, 3) of a class that answers these questions, and gives None to others."""

    class Answering(xtensor.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            SEEN.append(str(func))
            return answers.get(func.overloadpacket.__name__)

    return xtensor.Tensor._make_wrapper_subclass(Answering, (2, 3), **asked)


def test_a_class_answers_for_what_its_tensors_say_of_themselves() -> None:
    sized = answering({"sym_size": (5, 3), "dim": 2}, dispatch_sizes_strides_policy="sizes")
    assert sized.shape == sized.size() == (5, 3) and sized.size(0) == 5 and sized.ndim == 2
    assert sized.stride() == (3, 1) and sized.numel() == 6 and sized.is_contiguous()
    strided = answering({"sym_stride": (1, 2)}, dispatch_sizes_strides_policy="strides")
    SEEN.clear()
    assert strided.shape == (2, 3) and not SEEN
    assert strided.stride() == (1, 2) and SEEN == ["aten.sym_stride.default"]
    placed = answering({"device": xtensor.device("meta")}, dispatch_device=True, dispatch_layout=True)
    assert placed.device.type == "meta" and placed.layout is xtensor.strided
    with pytest.raises(ValueError, match="Unknown sizes_strides_policy"):
        answering({}, dispatch_sizes_strides_policy="shapes")
    mute = answering({"dim": NotImplemented}, dispatch_sizes_strides_policy="sizes")
    with pytest.raises(TypeError, match=r"failed for 'xtensor.ops.aten.dim'"):
        mute.dim()


def test_wrappers_have_no_memory() -> None:
    x = Wrapped(xtensor.ones(2))
    storage = x.untyped_storage()
    assert storage.size() == 8
    for use in (storage.data_ptr, lambda: storage.fill_(0), storage.tolist, lambda: storage.resize_(0)):
        with pytest.raises(RuntimeError, match="invalid python storage"):
            use()
    for method in ("numpy", "tolist"):
        with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
            getattr(x, method)()

    class Other(xtensor.Tensor):
        pass

    makers = (x.as_subclass, lambda kind: kind(x), lambda kind: xtensor.Tensor._make_subclass(kind, x))
    for make in makers:
        with pytest.raises(RuntimeError, match="already associated to a python object of type Wrapped"):
            make(Other)
    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        xtensor.Tensor._make_wrapper_subclass(Other, (2,))


class Unwrapping(Wrapped):
    """One whose operators give plain tensors."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*[a.elem if isinstance(a, Unwrapping) else a for a in args], **(kwargs or {}))


def test_wrappers_are_copied_and_pickled_by_what_they_hold() -> None:
    x = Wrapped(xtensor.arange(3))
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is Wrapped and y.dtype is xtensor.int64 and y.elem.tolist() == [0, 1, 2]
        assert y.elem is not x.elem
    plain = Unwrapping(xtensor.ones(2))
    with pytest.raises(RuntimeError, match="cloning returns another instance"):
        copy.deepcopy(plain)
    with pytest.raises(RuntimeError, match=r"requires that detach\(\) returns an instance of the same type"):
        nn.Parameter(plain)


def test_versions_of_wrappers_are_shared_by_what_is_detached() -> None:
    x = Wrapped(xtensor.ones(2))
    x.detach().add_(1)
    assert x._version == 1
    x.data.add_(1)
    assert x._version == 1


class Reentering(Wrapped):
    """One that has autograd follow what it holds."""

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with xtensor.overrides.enable_reentrant_dispatch():
            return cls(func(*[a.elem if isinstance(a, Reentering) else a for a in args], **(kwargs or {})))


def test_what_a_class_holds_may_be_recorded() -> None:
    held = xtensor.ones(2, requires_grad=True)
    made = Reentering(held) * 3
    assert not made.requires_grad and made.elem.requires_grad
    made.elem.sum().backward()
    assert held.grad is not None and held.grad.tolist() == [3.0, 3.0]


class Makers(TorchDispatchMode):
    """Notes operators and their arguments."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(f"{func} {list(args)} {kwargs}".replace("xtensor.", ""))
        return func(*args, **(kwargs or {}))


def test_makers_are_asked_about_as_pytorch_s_dispatcher_has_them() -> None:
    x = xtensor.ones(())
    SEEN.clear()
    with Makers():
        xtensor.zeros(2, dtype=xtensor.int32)
        xtensor.randint(1, 3, (2,))
        x.new_full((2,), 1)
        xtensor.eye(2, 2)
        xtensor.arange(0, 2, 1)
    place = "'device': device(type='cpu'), 'pin_memory': False}"
    assert [
        f"aten.zeros.default [[2]] {{'dtype': int32, {place}",
        f"aten.randint.low [1, 3, [2]] {{{place}",
        "aten.new_full.default [tensor(1.), [2], 1] {'pin_memory': False}",
        f"aten.eye.m [2, 2] {{{place}",
        f"aten.arange.start_step [0, 2, 1] {{{place}",
    ] == SEEN


def test_a_mode_s_method_is_a_plain_one() -> None:
    members = {"__torch_dispatch__": classmethod(lambda cls, func, types, args=(), kwargs=None: func(*args))}
    wrong: Any = type("Wrong", (TorchDispatchMode,), members)
    with wrong(), pytest.raises(RuntimeError, match="as a classmethod is not supported"):
        xtensor.ones(2) + 1


def test_a_result_is_a_tensor() -> None:
    class Odd(xtensor.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "odd"

    x = xtensor.Tensor._make_subclass(Odd, xtensor.ones(2))
    for call in (lambda: xtensor.neg(x), x.detach):
        with pytest.raises(RuntimeError, match="Unable to cast odd to Tensor"):
            call()


def test_aten_index_takes_a_tensor_or_none_for_each_dimension() -> None:
    x = xtensor.arange(6.0).reshape(2, 3)
    picked = xtensor.tensor([0, 1])
    aten = xtensor.ops.aten
    for index in (aten.index, aten.index.Tensor, aten._unsafe_index.Tensor):
        assert index(x, [picked]).tolist() == x.tolist()
        assert index(x, [None, picked]).tolist() == [[0, 1], [3, 4]]
