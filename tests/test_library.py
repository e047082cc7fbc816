"""Operators that programs add: kernels, derivatives, meta kernels, and the names under `torch.ops`, as PyTorch's."""

import pytest

import xtensor
from tests.operators.test_subclass_laws import wrapping
from xtensor import interop
from xtensor.library import CustomOpDef, Library, custom_op, define, impl, infer_schema, ops


def cube_of(t, name):
    """`x ** 3 + k` as a custom operator of either library, with a derivative."""

    @t.library.custom_op(f"tests::{name}", mutates_args=())
    def cube(x: t.Tensor, k: float = 1.0) -> t.Tensor:
        return x.clone() ** 3 + k

    def setup(ctx, inputs, output):
        x, k = inputs
        ctx.save_for_backward(x)
        ctx.k = k

    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2, None

    cube.register_autograd(backward, setup_context=setup)

    @cube.register_fake
    def _(x, k=1.0):
        return x.new_empty(x.shape)

    return cube


def test_a_custom_op_is_pytorch_s(torch):
    def found(t):
        cube = cube_of(t, "cube")
        x = t.tensor([1.0, -2.0], requires_grad=True)
        y = cube(x, k=2.0)
        y.sum().backward()
        again = t.ops.tests.cube(x.detach())
        return y.tolist(), x.grad.tolist(), again.tolist(), tuple(cube(t.empty(3, device="meta")).shape)

    with interop.installed() as t:
        ours = found(t)
    assert ours == found(torch)


def test_without_a_derivative_backward_says_so():
    @custom_op("tests::plain", mutates_args=())
    def plain(x: xtensor.Tensor) -> xtensor.Tensor:
        return x * 2

    made = plain(xtensor.ones(2, requires_grad=True))
    assert isinstance(plain, CustomOpDef) and made.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        made.sum().backward()


def test_lists_of_tensors_get_their_gradients():
    @custom_op("tests::total", mutates_args=())
    def total(xs: list[xtensor.Tensor], scale: float) -> xtensor.Tensor:
        return sum(x.sum() for x in xs) * scale

    def setup(ctx, inputs, output):
        assert ctx.needs_input_grad == ([True, False], False)
        ctx.scale = inputs[1]

    def backward(ctx, grad):
        return [grad * ctx.scale * xtensor.ones(2), None], None

    total.register_autograd(backward, setup_context=setup)
    x, y = xtensor.ones(2, requires_grad=True), xtensor.ones(3)
    total([x, y], 3.0).backward()
    assert x.grad.tolist() == [3.0, 3.0] and y.grad is None


def test_mutated_arguments_are_written():
    @custom_op("tests::increase", mutates_args={"x"})
    def increase(x: xtensor.Tensor, by: float) -> None:
        x.add_(by)

    x = xtensor.zeros(2)
    version = x._version
    increase(x, 2.0)
    assert x.tolist() == [2.0, 2.0] and x._version > version


def test_a_library_of_kernels():
    lib = Library("tests_lib", "DEF")
    assert lib.define("shift(Tensor x, int n=1, *, float s=2.0) -> Tensor") == "shift"
    lib.impl("shift", lambda x, n=1, *, s=2.0: x * s + n, "CompositeExplicitAutograd")
    assert ops.tests_lib.shift(xtensor.ones(1), 3).item() == 5.0
    assert ops.tests_lib.shift.default(xtensor.ones(1), s=4.0).item() == 5.0
    define("tests_lib::square", "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="Could not run 'tests_lib::square'"):
        ops.tests_lib.square(xtensor.ones(1))
    impl("tests_lib::square", "cpu", lambda x: x * x)
    assert ops.tests_lib.square(xtensor.full((1,), 3.0)).item() == 9.0
    with pytest.raises(AttributeError, match="has no attribute 'missing'"):
        _ = ops.tests_lib.missing
    with pytest.raises(OSError, match="compiled extensions"):
        ops.load_library("some.so")


def test_aten_names_the_operators_here():
    x = xtensor.ones(2, requires_grad=True)
    made = ops.aten.add.Tensor(x, x)
    made.sum().backward()
    assert made.tolist() == [2.0, 2.0] and x.grad.tolist() == [2.0, 2.0]


def test_schemas_are_pytorch_s(torch):
    def schema(t):
        def one(x: t.Tensor, n: int, f: float = 1.5, *, flag: bool = False) -> t.Tensor: ...
        def two(x: t.Tensor, y: t.Tensor | None) -> tuple[t.Tensor, t.Tensor]: ...

        return t.library.infer_schema(one, mutates_args=()), t.library.infer_schema(two, mutates_args={"x"})

    assert schema(xtensor) == schema(torch)
    with pytest.raises(ValueError, match="must have a type annotation"):
        infer_schema(lambda x: x, mutates_args=())


def seen_by(t, wrapped):
    """What classes and modes are asked about operators that programs add."""
    dispatch, tag = t.utils._python_dispatch, "lib_seen"
    notes = []

    class Below(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            notes.append(f"below {func}")
            return func(*args, **(kwargs or {}))

    class Above(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            notes.append(f"above {func.__name__}")
            return func(*args, **(kwargs or {}))

    class Logged(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            notes.append(f"class {func}")
            return super().__torch_function__(func, types, args, kwargs or {})

    @t.library.custom_op(f"{tag}::scale", mutates_args=())
    def scale(x: t.Tensor, k: float) -> t.Tensor:
        return x * k

    scale.register_autograd(
        lambda ctx, grad: (grad * ctx.k, None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
    )

    @t.library.custom_op(f"{tag}::bump", mutates_args=("x",))
    def bump(x: t.Tensor) -> None:
        x.add_(1)

    lib = t.library.Library(tag, "FRAGMENT")
    lib.define("two(Tensor x, int n=1) -> (Tensor, Tensor)")
    lib.impl("two", lambda x, n=1: (x + n, x - n), "CPU")
    lib.define("composed(Tensor x) -> Tensor")
    lib.impl("composed", lambda x: (x + 1).exp(), "CompositeImplicitAutograd")
    space = getattr(t.ops, tag)
    calls = [
        lambda x: scale(x, 2.0),
        lambda x: space.scale(x, 2.0),
        lambda x: space.scale.default(x, 2.0),
        lambda x: space.two(x, n=3)[1],
        lambda x: space.composed(x),
        lambda x: bump(x),
    ]
    found = []
    for call in calls:
        for mode in (Below, Above):
            x = t.ones(2)
            with mode():
                call(x)
        x = t.ones(2).as_subclass(Logged)
        notes.append("of a class")
        kind = type(call(x)).__name__
        inner = wrapped(t)(t.ones(2))
        made = call(inner)
        found.append((kind, (inner if made is None else made).inner.tolist()))
    x = t.ones(2, requires_grad=True)
    with Below():
        scale(x, 3.0).sum().backward()
    y = wrapped(t)(t.ones(2)).requires_grad_()
    scale(y, 3.0).sum().backward()
    found += [
        x.grad.tolist(),
        y.grad.inner.tolist(),
        str(space.scale.default._schema),
        space.two.default.name(),
    ]
    found += [str(space.two), str(space.two.default), space.bump.default._schema.is_mutable]
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'q' for operator"):
        space.two(t.ones(1), q=3)
    own = [n for n in notes if tag in n or n.startswith(("above", "of")) or "scale" in n]
    return found, own


def test_classes_and_modes_see_operators_as_in_pytorch(torch):
    with interop.installed() as t:
        ours = seen_by(t, wrapping)
    assert ours == seen_by(torch, wrapping)


def test_a_rule_for_a_class_stands_before_its_own():
    kind = wrapping(xtensor)

    @custom_op("tests::ruled", mutates_args=())
    def ruled(x: xtensor.Tensor) -> xtensor.Tensor:
        return x * 2

    @ruled.register_torch_dispatch(kind)
    def _(cls, func, types, args, kwargs):
        return xtensor.full((2,), 5.0)

    assert ruled(kind(xtensor.ones(2))).tolist() == [5.0, 5.0] and ruled(xtensor.ones(2)).tolist() == [
        2.0,
        2.0,
    ]


def test_operators_of_triton_kernels() -> None:
    """spikingjelly declares such operators whether or not there is a kernel."""

    @xtensor.library.triton_op("tests_triton::twice", mutates_args={})
    def twice(x: xtensor.Tensor) -> xtensor.Tensor:
        return x * 2

    assert twice(xtensor.ones(2)).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="Triton kernel"):
        xtensor.library.wrap_triton(lambda: None)
