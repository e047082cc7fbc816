"""Operators that programs add: kernels, derivatives, meta kernels, and the names under `torch.ops`, as PyTorch's."""

import pytest

import xtensor
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
