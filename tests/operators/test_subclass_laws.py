"""What PyTorch's notes on extending promise of classes and modes, one law each, kept by both libraries with the same code."""

from __future__ import annotations

import copy
import importlib
import io
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

LAWS: dict[str, Callable[[Any], Any]] = {}


@pytest.fixture(params=["torch", "xtensor"])
def t(request: pytest.FixtureRequest) -> Any:
    """Either library."""
    if request.param == "torch":
        pytest.importorskip("torch", reason="torch is not installed: pip install -e '.[parity]'")
    found = importlib.import_module(request.param)
    importlib.import_module(f"{request.param}.utils._python_dispatch")
    importlib.import_module(f"{request.param}.overrides")
    return found


def law(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    LAWS[function.__name__] = function
    return function


def plain(t: Any) -> Any:
    class Plain(t.Tensor):
        """A class that changes nothing."""

    return Plain


def of(t: Any, kind: Any, *values: float) -> Any:
    return t.tensor(values or (1.0, 2.0, 3.0)).as_subclass(kind)


@law
def operators_keep_the_class(t: Any) -> None:
    x = of(t, plain(t))
    for made in (x + 1, 1 + x, x * x, t.exp(x), x.sum(), x[None] @ x[:, None], t.cat([x, x]), t.stack([x])):
        assert type(made) is type(x)


@law
def indexing_keeps_the_class(t: Any) -> None:
    x = of(t, plain(t))
    for made in (
        x[0],
        x[1:],
        x[x > 1],
        x[None],
        x[t.tensor([0, 2])],
        x.view(3, 1),
        x.unbind()[0],
        *x.split(1),
    ):
        assert type(made) is type(x)


@law
def in_place_operators_return_the_tensor_itself(t: Any) -> None:
    x = of(t, plain(t))
    assert x.add_(1) is x and x.mul_(2) is x and x.tolist() == [4.0, 6.0, 8.0]
    y = x
    y += 1
    assert y is x


@law
def out_is_written_and_the_result_is_of_the_class(t: Any) -> None:
    x, out = of(t, plain(t)), t.empty(3)
    made = t.add(x, 1, out=out)
    assert type(made) is type(x) and type(out) is t.Tensor and out.tolist() == [2.0, 3.0, 4.0]


@law
def a_subclass_of_a_subclass_wins(t: Any) -> None:
    kind = plain(t)
    below = type("Below", (kind,), {})
    assert type(of(t, kind) + of(t, below)) is below and type(of(t, below) + of(t, kind)) is below


@law
def unrelated_classes_do_not_mix_by_default(t: Any) -> None:
    a, b = of(t, type("A", (t.Tensor,), {})), of(t, type("B", (t.Tensor,), {}))
    with pytest.raises(TypeError):
        t.add(a, b)


@law
def the_left_argument_is_asked_first(t: Any) -> None:
    asked = []

    def handler(name: str) -> Any:
        def answer(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(name)
            return NotImplemented

        return classmethod(answer)

    a, b = [of(t, type(n, (t.Tensor,), {"__torch_function__": handler(n)})) for n in "AB"]
    with pytest.raises(TypeError):
        t.add(b, a)
    assert asked == ["B", "A"]


@law
def not_implemented_leaves_it_to_the_next(t: Any) -> None:
    class No(t.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    class Yes(t.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return [kind.__name__ for kind in types]

    assert t.mul(of(t, No), of(t, Yes)) == ["No", "Yes"]


@law
def arguments_in_sequences_are_asked(t: Any) -> None:
    class Named(t.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func.__name__

    x, p = of(t, Named), t.ones(3)
    assert t.cat([p, x]) == "cat" and t.stack((x, p)) == "stack" and t.where(p > 0, p, x) == "where"


@law
def the_default_implementation_can_be_called(t: Any) -> None:
    calls = []

    class Logged(t.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    made = t.exp(of(t, Logged)) + 1
    assert type(made) is Logged and calls == ["exp", "add"]


@law
def the_disabled_implementation_gives_plain_tensors(t: Any) -> None:
    class Quiet(t.Tensor):
        __torch_function__ = t.nn.Parameter.__torch_function__

    x = of(t, Quiet)
    assert type(x) is Quiet and type(x + 1) is t.Tensor and not t.overrides.has_torch_function((x,))


@law
def dunder_attributes_are_asked_with_their_getters(t: Any) -> None:
    got = []

    class Watched(t.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in (t.Tensor.shape.__get__, t.Tensor.grad.__get__, t.Tensor.requires_grad.__set__):
                got.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = of(t, Watched)
    assert tuple(x.shape) == (3,) and x.grad is None
    x.requires_grad = True
    assert got == ["__get__", "__get__", "__set__"]


@law
def factories_make_plain_tensors(t: Any) -> None:
    x = of(t, plain(t))
    assert type(t.zeros(2)) is t.Tensor and type(t.tensor([1.0])) is t.Tensor
    for made in (t.zeros_like(x), x.new_zeros(2), t.full_like(x, 2.0), x.new_tensor([1.0]), t.rand_like(x)):
        assert type(made) is type(x)


@law
def as_subclass_shares_memory_and_history(t: Any) -> None:
    base = t.tensor([1.0, 2.0], requires_grad=True)
    x = (base * 2).as_subclass(plain(t))
    x.sum().backward()
    assert base.grad.tolist() == [2.0, 2.0]
    p = t.zeros(2)
    p.as_subclass(plain(t)).add_(1)
    assert p.tolist() == [1.0, 1.0]


@law
def a_constructor_makes_the_class_and_keeps_attributes(t: Any) -> None:
    class Unit(t.Tensor):
        @staticmethod
        def __new__(cls: Any, data: Any, unit: str) -> Any:
            return t.Tensor._make_subclass(cls, t.as_tensor(data))

        def __init__(self, data: Any, unit: str) -> None:
            self.unit = unit

    x = Unit([1.0, 2.0], "m")
    assert type(x) is Unit and x.unit == "m" and not hasattr(x + 1, "unit")


@law
def gradients_pass_through_a_class(t: Any) -> None:
    x = of(t, plain(t)).requires_grad_()
    y = (x * x).sum()
    y.backward()
    assert type(y) is type(x) and x.grad.tolist() == [2.0, 4.0, 6.0]


@law
def deepcopy_keeps_class_and_attributes(t: Any) -> None:
    class Noted(t.Tensor):
        def new_empty(self, *size: Any, **options: Any) -> Any:
            return super().new_empty(*size, **options).as_subclass(type(self))

    x = of(t, Noted)
    x.note = [1]
    y = copy.deepcopy(x)
    assert type(y) is type(x) and y.note == [1] and y.note is not x.note and y.tolist() == x.tolist()
    y.add_(1)
    assert x.tolist() == [1.0, 2.0, 3.0]


def importable(t: Any) -> Any:
    """A class that pickle finds."""
    name = f"law_of_{t.__name__}"
    module = sys.modules.setdefault(name, types.ModuleType(name))
    if not hasattr(module, "Kept"):
        setattr(module, "Kept", type("Kept", (t.Tensor,), {"__module__": name}))  # noqa: B010
    return vars(module)["Kept"]


@law
def pickle_keeps_class_and_attributes(t: Any) -> None:
    x = of(t, importable(t))
    x.note = "here"
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is type(x) and y.note == "here" and y.tolist() == x.tolist()


@law
def saving_keeps_the_class(t: Any) -> None:
    x = of(t, importable(t))
    x.note = "here"
    file = io.BytesIO()
    t.save({"x": x}, file)
    file.seek(0)
    y = t.load(file, weights_only=False)["x"]
    assert type(y) is type(x) and y.note == "here"


@law
def parameters_of_a_class_keep_it(t: Any) -> None:
    p = t.nn.Parameter(of(t, plain(t)))
    assert isinstance(p, t.nn.Parameter) and p.requires_grad and p.is_leaf
    m = t.nn.Module()
    m.p = p
    assert next(iter(m.parameters())) is p


@law
def buffers_of_a_class_keep_it_through_to(t: Any) -> None:
    m, x = t.nn.Module(), of(t, plain(t))
    m.register_buffer("b", x)
    assert type(m.b) is type(x)
    m.double()
    assert type(m.b) is type(x) and m.b.dtype is t.float64
    assert type(m.state_dict()["b"]) is type(x)


@law
def modules_take_a_class(t: Any) -> None:
    layer = t.nn.Linear(3, 2)
    made = layer(of(t, plain(t)))
    assert issubclass(type(made), plain(t).__mro__[1]) and type(made).__name__ == "Plain"
    made.sum().backward()
    assert type(layer.weight.grad).__name__ in ("Tensor", "Plain")


@law
def optimizers_write_to_the_parameters_themselves(t: Any) -> None:
    x = of(t, plain(t)).requires_grad_()
    step = t.optim.SGD([x], lr=0.5, momentum=0.9)
    before = id(x)
    for _ in range(2):
        step.zero_grad()
        (x * x).sum().backward()
        step.step()
    assert id(x) == before and type(x).__name__ == "Plain"
    assert [round(v, 4) for v in x.tolist()] == [-0.9, -1.8, -2.7]


@law
def modes_nest_from_the_inside(t: Any) -> None:
    seen = []

    class Mode(t.overrides.TorchFunctionMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((self.name, func.__name__))
            return func(*args, **(kwargs or {}))

    x = t.ones(2)
    with Mode("outer"), Mode("inner"):
        t.exp(x)
    t.exp(x)
    assert seen == [("inner", "exp"), ("outer", "exp")]


@law
def an_error_in_a_handler_leaves_the_modes_as_they_were(t: Any) -> None:
    class Fails(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise KeyError(func.__name__)

    class Counts(t.overrides.TorchFunctionMode):
        count = 0

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.count += 1
            return func(*args, **(kwargs or {}))

    x = t.ones(2)
    with Counts() as counts:
        with pytest.raises(KeyError), Fails():
            t.exp(x)
        t.exp(x)
    assert counts.count == 1 and t.exp(x).shape == (2,)


@law
def a_mode_stands_before_classes(t: Any) -> None:
    order = []

    class Mode(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append("mode")
            return func(*args, **(kwargs or {}))

    class Kind(t.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            order.append("class")
            return super().__torch_function__(func, types, args, kwargs or {})

    x = of(t, Kind)
    order.clear()
    with Mode():
        t.exp(x)
    assert order == ["mode", "class"]


@law
def subclasses_can_be_switched_off(t: Any) -> None:
    x = of(t, plain(t))
    with (t._C if hasattr(t, "_C") else t.overrides).DisableTorchFunctionSubclass():
        assert type(x + 1) is t.Tensor
    assert type(x + 1) is type(x)


@law
def duck_types_answer_for_functions(t: Any) -> None:
    class Scalar:
        def __init__(self, n: int, value: float) -> None:
            self.n, self.value = n, value

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is t.mean:
                return args[0].value / args[0].n
            if func is t.add:
                return "sum"
            return NotImplemented

    s = Scalar(4, 2.0)
    assert t.mean(s) == 0.5 and t.add(s, t.ones(2)) == "sum" and t.add(t.ones(2), s) == "sum"
    with pytest.raises(TypeError):
        t.exp(s)


def wrapping(t: Any) -> Any:
    """A class around a tensor, below autograd."""
    dispatch = t.utils._python_dispatch
    tree = t.utils._pytree

    class Wrapped(t.Tensor):
        @staticmethod
        def __new__(cls: Any, inner: Any) -> Any:
            return t.Tensor._make_wrapper_subclass(
                cls, inner.shape, dtype=inner.dtype, device=inner.device, requires_grad=inner.requires_grad
            )

        def __init__(self, inner: Any) -> None:
            self.inner = inner.detach()

        def __tensor_flatten__(self) -> Any:
            return ["inner"], "context"

        @classmethod
        def __tensor_unflatten__(cls, parts: Any, context: Any, size: Any, stride: Any) -> Any:
            assert context == "context"
            return cls(parts["inner"])

        __torch_function__ = t.nn.Parameter.__torch_function__

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            def open_(x: Any) -> Any:
                return x.inner if isinstance(x, cls) else x

            opened = tree.tree_map(open_, args)
            made = func(*opened, **tree.tree_map(open_, kwargs or {}))
            made = tree.tree_map(lambda x: cls(x) if isinstance(x, t.Tensor) else x, made)
            return dispatch.return_and_correct_aliasing(func, args, kwargs or {}, made)

    return Wrapped


@law
def a_wrapper_has_gradients(t: Any) -> None:
    kind = wrapping(t)
    x = kind(t.tensor([1.0, 2.0, 3.0])).requires_grad_()
    y = (x * x + 1).sum()
    assert type(y) is kind and y.inner.item() == 17.0
    y.backward()
    assert type(x.grad) is kind and x.grad.inner.tolist() == [2.0, 4.0, 6.0]


@law
def a_wrapper_s_in_place_operators_return_it(t: Any) -> None:
    x = wrapping(t)(t.zeros(3))
    assert x.add_(1) is x and x.inner.tolist() == [1.0, 1.0, 1.0]


@law
def a_wrapper_can_be_flattened(t: Any) -> None:
    kind = wrapping(t)
    x = kind(t.ones(3))
    names, context = x.__tensor_flatten__()
    y = kind.__tensor_unflatten__({n: getattr(x, n) for n in names}, context, x.shape, x.stride())
    assert type(y) is kind and t.utils._python_dispatch.is_traceable_wrapper_subclass(x)
    assert not t.utils._python_dispatch.is_traceable_wrapper_subclass(t.ones(2))


@law
def a_wrapper_may_be_a_parameter(t: Any) -> None:
    kind = wrapping(t)
    p = t.nn.Parameter(kind(t.ones(2, 3)))
    assert isinstance(p, t.nn.Parameter) and type(p.data) is kind
    (t.nn.functional.linear(kind(t.ones(1, 3)), p)).sum().backward()
    assert p.grad.inner.tolist() == [[1.0] * 3] * 2


@law
def optimizers_step_wrappers(t: Any) -> None:
    p = t.nn.Parameter(wrapping(t)(t.ones(3)))
    for kind in (t.optim.SGD, t.optim.Adam):
        step = kind([p], lr=0.25)
        step.zero_grad()
        (p * p).sum().backward()
        step.step()
    assert [round(v, 4) for v in p.inner.tolist()] == [0.25] * 3


@law
def modules_of_wrappers_change_their_dtype(t: Any) -> None:
    m = t.nn.Module()
    m.register_buffer("b", wrapping(t)(t.ones(3)))
    m.double()
    assert type(m.b).__name__ == "Wrapped" and m.b.inner.dtype is t.float64


@law
def functions_save_tensors_of_a_class(t: Any) -> None:
    kinds = []

    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            ctx.save_for_backward(y)
            return x * y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (y,) = ctx.saved_tensors
            kinds.append(type(y))
            return grad * t.as_tensor(y.tolist()), None

    x, y = t.ones(3, requires_grad=True), of(t, plain(t))
    Twice.apply(x, y).sum().backward()
    assert kinds == [type(y)] and t.as_tensor(x.grad.tolist()).tolist() == [1.0, 2.0, 3.0]


@law
def a_dispatch_mode_sees_a_wrapper_s_inner_calls(t: Any) -> None:
    names = []

    class Mode(t.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = wrapping(t)(t.ones(2))
    with Mode():
        t.exp(x)
    assert set(names) >= {"aten.exp.default"}


@law
def views_of_a_wrapper_share_its_memory(t: Any) -> None:
    x = wrapping(t)(t.zeros(2, 2))
    x[0].inner.add_(1)
    assert x.inner.tolist() == [[1.0, 1.0], [0.0, 0.0]]


@law
def operators_are_equal_to_themselves_below(t: Any) -> None:
    seen = []

    class Mode(t.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is t.ops.aten.add.Tensor:
                return t.full((2,), 7.0)
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = t.ones(2)
    with Mode():
        made = x + x
    assert made.tolist() == [7.0, 7.0] and t.ops.aten.add.Tensor.overloadpacket is t.ops.aten.add


@law
def resolving_names_of_functions(t: Any) -> None:
    names = [t.overrides.resolve_name(f) for f in (t.add, t.Tensor.add_, t.nn.functional.relu)]
    assert [n.replace(t.__name__, "torch") for n in names] == [
        "torch.add",
        "torch.Tensor.add_",
        "torch.nn.functional.relu",
    ]
    assert t.overrides.is_tensor_method_or_property(t.Tensor.shape.__get__)


@pytest.mark.parametrize("name", LAWS)
def test_the_law_is_kept(t: Any, name: str) -> None:
    LAWS[name](t)
