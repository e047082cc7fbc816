"""Argument checks: PyTorch's classes and words, taken from PyTorch itself where a call of its own raises them."""

import datetime
import decimal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from xtensor import checks, dtypes
from xtensor.checks import Argument


def raised(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> str:
    """The class and message of what a call raises, under our name."""
    try:
        function(*arguments, **keywords)
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("torch.", "xtensor.")
    pytest.fail("nothing was raised")


def made(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


class Place(NamedTuple):
    """A device, as far as the checks look at one."""

    name: str

    @property
    def type(self) -> str:
        return self.name.partition(":")[0]

    def __str__(self) -> str:
        return self.name


def fake(*shape: int, dtype: dtypes.dtype = dtypes.float32, device: str = "cpu") -> Any:
    """Anything with a tensor's attributes."""
    return SimpleNamespace(shape=shape, dtype=dtype, device=Place(device))


# ---- conditions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("checker", "error"),
    [
        (checks.check, RuntimeError),
        (checks.check_type, TypeError),
        (checks.check_value, ValueError),
    ],
)
def test_conditions(checker: Callable[..., None], error: type[Exception]) -> None:
    calls: list[int] = []

    def message() -> str:
        calls.append(1)
        return "made when needed"

    checker(True, message)
    assert not calls
    with pytest.raises(error, match=r"^made when needed$"):
        checker(False, message)
    assert calls == [1]
    with pytest.raises(error, match=r"^2 of a$") as caught:
        checker(0, "{} of {}", 2, "a")
    assert type(caught.value) is error
    with pytest.raises(error, match=r"^a brace \{ stays$"):
        checker(None, "a brace { stays")


# ---- dimensions ----------------------------------------------------------------------------------------------------


def test_wrap_dim(torch: Any) -> None:
    for ndim in range(5):
        tensor = torch.zeros((2,) * ndim)
        for dim in range(-7, 7):
            if -max(ndim, 1) <= dim < max(ndim, 1):
                tensor.sum(dim)
                assert checks.wrap_dim(dim, ndim) == dim % max(ndim, 1)
            else:
                assert raised(checks.wrap_dim, dim, ndim) == raised(tensor.sum, dim)
    scalar = torch.tensor(1.0)
    for dim in (-2, -1, 0, 1):
        assert raised(checks.wrap_dim, dim, 0, wrap_scalar=False) == raised(scalar.size, dim)
    assert checks.wrap_dim(-1, 3, wrap_scalar=False) == 2


def test_wrap_dims(torch: Any) -> None:
    generator = np.random.default_rng(0)
    refused = 0
    for _ in range(500):
        ndim = int(generator.integers(0, 5))
        dims = [int(d) for d in generator.integers(-ndim - 1, ndim + 1, int(generator.integers(1, 4)))]
        tensor = torch.zeros((2,) * ndim)
        try:
            tensor.sum(dims)
        except (IndexError, RuntimeError):
            assert raised(checks.wrap_dims, dims, ndim) == raised(tensor.sum, dims)
            refused += 1
        else:
            assert checks.wrap_dims(dims, ndim) == tuple(d % max(ndim, 1) for d in dims)
    assert 100 < refused < 480
    with pytest.raises(IndexError, match="tensor has no dimensions"):
        checks.wrap_dims((0,), 0, wrap_scalar=False)


# ---- signatures ----------------------------------------------------------------------------------------------------


def test_argument_errors(torch: Any) -> None:
    x = torch.zeros(2, 3)

    class Local:
        pass

    values = [
        "a",
        None,
        1,
        1.5,
        1j,
        [1],
        (1,),
        {},
        len,
        Local(),
        Local,
        np.zeros(2),
        np.float32(1),
        np.int8(1),
    ]
    values += [
        datetime.date(2020, 1, 1),
        decimal.Decimal(1),
        np.dtype("f4"),
        slice(1),
        range(2),
        b"",
        object(),
    ]
    for value in values:
        ours = made(checks.argument_error("exp", "input", 1, "Tensor", value))
        assert ours == raised(torch.exp, value), value
    ours = made(checks.argument_error("add", "alpha", None, "Number", "a"))
    assert ours == raised(torch.add, x, x, alpha="a")
    for value in (True, 1.5, "a"):
        ours = made(checks.argument_error("cumsum", "dim", 2, "int", value))
        assert ours == raised(torch.cumsum, x, value)


def test_our_own_types_carry_our_name(torch: Any) -> None:
    for name in ("float32", "strided", "channels_last"):
        ours = made(checks.argument_error("exp", "input", 1, "Tensor", getattr(dtypes, name)))
        assert ours == raised(torch.exp, getattr(torch, name))
    for name in ("finfo", "iinfo"):
        limits = getattr(dtypes, name)(dtypes.float32 if name == "finfo" else dtypes.int8)
        expected = getattr(torch, name)(torch.float32 if name == "finfo" else torch.int8)
        ours = made(checks.argument_error("exp", "input", 1, "Tensor", limits))
        assert ours == raised(torch.exp, expected)


def test_sequence_errors(torch: Any) -> None:
    x = torch.zeros(2, 3)
    ours = made(checks.unpack_error("sum", "dim", "tuple of ints", 1, "a"))
    assert ours == raised(torch.sum, x, dim=(1, "a"))
    ours = made(checks.unpack_error("view", "size", "tuple of ints", 2, 1.5))
    assert ours == raised(x.view, 1, 2, 1.5)


def test_counting_errors(torch: Any) -> None:
    x = torch.zeros(2, 3)
    assert made(checks.missing_error("exp", ["input"])) == raised(torch.exp)
    assert made(checks.missing_error("transpose", ["dim1"])) == raised(x.transpose, 0)
    assert made(checks.missing_error("transpose", ["dim0", "dim1"])) == raised(x.transpose)
    missing = checks.missing_error("transpose", ["input", "dim0", "dim1"])
    assert made(missing) == raised(torch.transpose)
    assert made(checks.surplus_error("exp", 1, 1, 2)) == raised(torch.exp, x, x)
    assert made(checks.surplus_error("transpose", 3, 3, 4)) == raised(torch.transpose, x, 0, 1, 2)
    assert made(checks.surplus_error("clone", 0, 0, 1)) == raised(x.clone, 3)
    assert made(checks.surplus_error("sum", 1, 2, 3)) == raised(x.sum, 0, True, 3)
    assert made(checks.unexpected_error("exp", "y")) == raised(torch.exp, x, y=1)
    assert made(checks.repeated_error("exp", "input")) == raised(torch.exp, x, input=x)


def test_combination_errors(torch: Any) -> None:
    x = torch.zeros(2, 3)
    tensor = type("Tensor", (), {})()
    add = ["Tensor input, Tensor other, *, Number alpha = 1, Tensor out = None"]
    assert made(checks.combination_error("add", [tensor], {}, add)) == raised(torch.add, x)
    assert made(checks.combination_error("add", [], {}, add)) == raised(torch.add)
    maxima = [
        "Tensor input, *, Tensor out = None",
        "Tensor input, Tensor other, *, Tensor out = None",
        "Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None",
    ]
    for arguments, keywords in (([[1, 2]], {}), ([{}], {}), ([], {"dim": [1]})):
        ours = made(checks.combination_error("max", [tensor, *arguments], keywords, maxima))
        assert ours == raised(torch.max, x, *arguments, **keywords)
    ours = made(checks.combination_error("max", [], {"input": tensor, "dim": "a"}, maxima))
    assert ours == raised(torch.max, input=x, dim="a")


# ---- named arguments -----------------------------------------------------------------------------------------------


def test_dimension_checks(torch: Any) -> None:
    functional = torch.nn.functional
    targets, lengths = torch.zeros(2, 2).long(), torch.tensor([2, 2])
    ours = raised(checks.check_dim, "ctc_loss_allocate_outputs", Argument(fake(3, 2), "log_probs", 1), 3)
    assert ours == raised(torch._ctc_loss, torch.zeros(3, 2), targets, lengths, lengths)
    checks.check_dim("f", Argument(fake(3, 2), "a", 1), 2)
    ours = raised(checks.check_dim_range, "adaptive_avg_pool1d", Argument(fake(2), "self", 1), 2, 3)
    assert ours == raised(functional.adaptive_avg_pool1d, torch.zeros(2), 2)
    checks.check_dim_range("f", Argument(fake(2), "self"), 1, 2)
    checks.check_dim_range("f", Argument(fake(2, 3), "self"), 1, 2)
    with pytest.raises(
        RuntimeError, match="Expected 1 to 2 dimensions, but got 3-dimensional tensor for 'self' "
    ):
        checks.check_dim_range("f", Argument(fake(2, 3, 4), "self"), 1, 2)


def test_dtype_checks(torch: Any) -> None:
    embed = torch.nn.functional.embedding
    indices = Argument(fake(3), "indices", 1)
    ours = raised(checks.check_dtypes, "embedding", indices, dtypes.int64, dtypes.int32)
    assert ours == raised(embed, torch.zeros(3), torch.zeros(3, 3))
    checks.check_dtypes("embedding", indices, dtypes.int64, dtypes.float32)
    with pytest.raises(
        RuntimeError, match=r"have scalar type Long; but got xtensor\.cuda\.FloatTensor instead"
    ):
        checks.check_dtypes("f", Argument(fake(3, device="cuda:0"), "a", 1), dtypes.int64)
    double = Argument(fake(3, dtype=dtypes.float64), "other", 2)
    checks.check_same_dtype("f", indices, indices)
    with pytest.raises(
        RuntimeError,
        match="Expected tensor for argument #1 'indices' to have the same type as tensor for argument #2 'other'; "
        r"but type xtensor.FloatTensor does not equal xtensor.DoubleTensor \(while checking arguments for f\)",
    ):
        checks.check_same_dtype("f", indices, double)
    ours = made(checks.not_implemented_for("bitwise_and_cpu", dtypes.float32))
    assert ours == raised(torch.bitwise_and, torch.zeros(2), torch.zeros(2))


def test_device_checks() -> None:
    on_cpu, on_gpu, number = fake(2), fake(2, device="cuda:0"), fake()
    checks.check_same_device("f", [on_cpu, on_cpu, Argument(on_cpu, "a")])
    checks.check_same_device("f", [on_gpu, number], numbers=True)
    checks.check_same_device("f", [number, on_gpu], numbers=True)
    words = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    with pytest.raises(RuntimeError, match=f"^{words}"):
        checks.check_same_device("f", [on_gpu, number])
    with pytest.raises(RuntimeError, match=f"^{words}"):
        checks.check_same_device("f", [on_gpu, on_cpu], numbers=True)
    with pytest.raises(
        RuntimeError, match=rf"^{words} \(when checking argument for argument b in method f\)"
    ):
        checks.check_same_device("f", [Argument(on_gpu, "a"), Argument(on_cpu, "b")])


def test_matrix_checks(torch: Any) -> None:
    inverse = torch.linalg.inv
    for name, low in (("int32", True), ("bool", False), ("float16", False), ("bfloat16", False)):
        ours = raised(checks.check_floating, "linalg.inv", getattr(dtypes, name), low_precision=low)
        assert ours == raised(inverse, torch.zeros(2, 2, dtype=getattr(torch, name)))
    for name in ("float16", "float64", "complex64"):
        checks.check_floating("linalg.inv", getattr(dtypes, name))
    checks.check_floating("linalg.inv", dtypes.complex64, low_precision=False)
    for shape in ((2, 3), (5, 3, 2), (2,), ()):
        assert raised(checks.check_square, "linalg.inv", fake(*shape)) == raised(inverse, torch.zeros(shape))
    checks.check_square("linalg.inv", fake(4, 3, 3))
