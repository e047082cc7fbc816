"""Printing, compared character by character with PyTorch over generated arrays, dtypes and options."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from xtensor import dtypes, printing

SPECIAL = [0.0, -0.0, np.nan, np.inf, -np.inf]


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    """Every test starts and ends with the default options and dtype."""
    printing.set_printoptions(profile="default")
    before = dtypes.get_default_dtype()
    yield
    printing.set_printoptions(profile="default")
    dtypes.set_default_dtype(before)


@pytest.fixture
def torch(torch: Any) -> Iterator[Any]:
    """PyTorch, with its own printing options and default dtype restored after the test."""
    before = torch.get_default_dtype()
    yield torch
    torch.set_printoptions(profile="default")
    torch.set_default_dtype(before)


def to_torch(torch: Any, array: np.ndarray[Any, Any]) -> Any:
    """A PyTorch tensor with the same elements, for the dtypes that NumPy proper lacks too."""
    d = dtypes.from_numpy(array.dtype)
    if array.dtype.kind in "biufc" and d not in dtypes.FLOAT8:
        return torch.from_numpy(array.copy())
    return torch.from_numpy(array.view(f"i{d.itemsize}").copy()).view(getattr(torch, d.name))


def printed(
    array: np.ndarray[Any, Any], *suffix_arguments: Any, shape: tuple[int, ...] | None = None, **keywords: Any
) -> str:
    """Our text, with PyTorch's name in it: the width of the name decides where a line is broken."""
    shape = array.shape if shape is None else shape
    found = printing.suffixes(dtypes.from_numpy(array.dtype), shape, *suffix_arguments, **keywords)
    found = [suffix.replace("xtensor.", "torch.") for suffix in found]
    return printing.format_tensor(array, shape=shape, suffixes=found)


def random_shape(generator: np.random.Generator) -> tuple[int, ...]:
    ndim = int(generator.integers(0, 5))
    largest = generator.choice([2, 5, 9]) if ndim > 2 else generator.choice([3, 8, 30, 50])
    return tuple(int(size) for size in generator.integers(generator.random() > 0.1, largest, ndim))


def random_floats(generator: np.random.Generator, count: int) -> np.ndarray[Any, Any]:
    match generator.integers(7):
        case 0:
            return generator.standard_normal(count)
        case 1:
            return generator.integers(-50, 50, count).astype(float)
        case 2:
            return generator.standard_normal(count) * 10.0 ** generator.integers(-12, 12, count)
        case 3:
            return generator.standard_normal(count) * 10.0 ** generator.integers(-6, 9)
        case 4:
            return generator.choice(SPECIAL, count)
        case 5:
            return generator.choice([*SPECIAL, 1, 2.5, 1000, -3], count)
        case _:
            return np.round(generator.standard_normal(count) * 10.0 ** generator.integers(0, 10))


def random_array(generator: np.random.Generator, d: dtypes.dtype) -> np.ndarray[Any, Any]:
    shape = random_shape(generator)
    count = int(np.prod(shape))
    if d is dtypes.bool:
        array = generator.random(count) < generator.choice([0, 0.5, 1])
    elif d.is_integral:
        limits = dtypes.iinfo(d)
        small = generator.random() < 0.5
        low, high = (max(limits.min, -20), min(limits.max, 100)) if small else (limits.min, limits.max)
        array = generator.integers(low, high, count, dtype=d.numpy, endpoint=True)
    else:
        array = random_floats(generator, count)
        if d.is_complex:
            array = np.stack([array, random_floats(generator, count)], axis=-1).view(complex).reshape(count)
        elif d is dtypes.float8_e8m0fnu:
            array = np.abs(array)
        array = array.astype(d.numpy)
    return array.reshape(shape)


def random_options(generator: np.random.Generator) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if generator.random() < 0.4:
        options["precision"] = int(generator.integers(0, 9))
    if generator.random() < 0.5:
        options["threshold"] = int(generator.choice([0, 5, 50, 300]))
    if generator.random() < 0.4:
        options["edgeitems"] = int(generator.integers(0, 6))
    if generator.random() < 0.4:
        options["linewidth"] = int(generator.integers(1, 160))
    if generator.random() < 0.3:
        options["sci_mode"] = bool(generator.random() < 0.5)
    if generator.random() < 0.2:
        options["profile"] = str(generator.choice(["short", "full", "default"]))
    return options


@pytest.mark.parametrize("d", dtypes.ALL, ids=str)
@pytest.mark.filterwarnings("ignore:(overflow|invalid value) encountered in cast:RuntimeWarning")
def test_generated_arrays(d: dtypes.dtype, torch: Any) -> None:
    generator = np.random.default_rng(dtypes.ALL.index(d))
    for _ in range(150):
        array, options = random_array(generator, d), random_options(generator)
        tensor = to_torch(torch, array)
        differentiable = (d.is_floating_point or d.is_complex) and d not in dtypes.FLOAT8
        requires_grad = differentiable and bool(generator.random() < 0.3)
        if requires_grad:
            tensor.requires_grad_()
        torch.set_printoptions(**{"profile": "default", **options})
        printing.set_printoptions(**{"profile": "default", **options})
        indices = printing.summary_indices(array.shape)
        edges = array if indices is None else array[np.ix_(*indices)]
        expected = repr(tensor)
        assert printed(array, None, requires_grad) == expected, (array.shape, options)
        assert printed(edges, None, requires_grad, shape=array.shape) == expected, (array.shape, options)


@pytest.mark.parametrize("d", [d for d in dtypes.ALL if d.itemsize <= 2 and d.is_floating_point], ids=str)
def test_every_short_float(d: dtypes.dtype, torch: Any) -> None:
    """Every value of the one-byte types, and a sample of the two-byte ones, alone and in neighbourhoods."""
    count = 256**d.itemsize
    values = np.arange(0, count, 1 if d.itemsize == 1 else 97).astype(f"u{d.itemsize}").view(d.numpy)
    for chunk in (1, 7):
        for start in range(0, len(values) - chunk, chunk):
            array = values[start : start + chunk]
            if chunk == 1:
                array = array.reshape(())
            assert printed(array) == repr(to_torch(torch, array))


def test_known_text() -> None:
    """What a reader expects to see; the comparisons above need PyTorch, these do not."""
    cases: list[tuple[Any, str]] = [
        (np.float32(1.5), "tensor(1.5000)"),
        (np.array([1, 2, 300]), "tensor([  1,   2, 300])"),
        (np.array([True, False]), "tensor([ True, False])"),
        (np.array([1.0, np.nan, -np.inf], np.float32), "tensor([1., nan, -inf])"),
        (np.array([0.00001, 1.0], np.float32), "tensor([1.0000e-05, 1.0000e+00])"),
        (np.array([1 - 2j, 0.5j], np.complex64), "tensor([1.-2.0000j, 0.+0.5000j])"),
        (np.array([1 - 2j, 3j], np.complex64), "tensor([1.-2.j, 0.+3.j])"),
        (np.zeros((0, 3), np.float32), "tensor([], size=(0, 3))"),
        (np.zeros(0, np.int64), "tensor([], dtype=torch.int64)"),
        (np.arange(4, dtype=np.int32).reshape(2, 2), "tensor([[0, 1],\n        [2, 3]], dtype=torch.int32)"),
        (np.zeros(2, np.float64), "tensor([0., 0.], dtype=torch.float64)"),
        (np.arange(1001), "tensor([   0,    1,    2,  ...,  998,  999, 1000])"),
    ]
    for array, text in cases:
        assert printed(np.asarray(array)) == text


def test_default_dtype_decides_what_is_named(torch: Any) -> None:
    for default, name in itertools.product(
        ["float16", "float32", "float64"], ["float16", "float32", "float64"]
    ):
        torch.set_default_dtype(getattr(torch, default))
        dtypes.set_default_dtype(getattr(dtypes, default))
        for shape in ((2,), (0,), (0, 2), ()):
            array = np.zeros(shape, name)
            assert printed(array) == repr(to_torch(torch, array))
        for complex_name in ("complex64", "complex128"):
            array = np.zeros(2, complex_name)
            assert printed(array) == repr(to_torch(torch, array))


def test_gradient_suffixes(torch: Any) -> None:
    array = np.ones((2, 2), np.float64)
    leaf = to_torch(torch, array).requires_grad_()
    assert printed(array, None, True) == repr(leaf)
    result = leaf + 0
    assert printed(array, None, True, type(result.grad_fn).__name__) == repr(result)
    long = np.arange(30.0)
    result = to_torch(torch, long).requires_grad_() + 0
    assert printed(long, None, True, "AddBackward0") == repr(result)


def test_device_and_tangent() -> None:
    array = np.ones(2, np.float32)
    assert printed(array, "cuda:0") == "tensor([1., 1.], device='cuda:0')"
    named = printing.suffixes(dtypes.int8, (2,), "cuda:0", tangent="tensor([1., 1.])")
    assert named == ["device='cuda:0'", "dtype=xtensor.int8", "tangent=tensor([1., 1.])"]


def test_tensors_without_values(torch: Any) -> None:
    for name, shape in itertools.product(["float32", "int64", "bool", "float16"], [(2, 3), (0,), (0, 3), ()]):
        found = printing.suffixes(getattr(dtypes, name), shape, "meta", meta=True)
        text = printing.format_tensor(None, suffixes=[s.replace("xtensor.", "torch.") for s in found])
        assert text == repr(torch.zeros(shape, dtype=getattr(torch, name), device="meta"))


def test_prefix_sets_the_indent(torch: Any) -> None:
    class Image(torch.Tensor):
        pass

    array = np.arange(60.0, dtype=np.float32).reshape(3, 20)
    text = printing.format_tensor(array, prefix="Image(")
    assert text == repr(to_torch(torch, array).as_subclass(Image))


def test_summary_indices() -> None:
    assert printing.summary_indices((10, 100)) is None
    assert printing.summary_indices(()) is None
    assert printing.summary_indices((2,) * 12) is None  # long, but no dimension has a middle
    rows, columns, few = printing.summary_indices((100, 7, 2)) or ()
    assert rows.tolist() == [0, 1, 2, 97, 98, 99]
    assert columns.tolist() == [0, 1, 2, 4, 5, 6]
    assert few.tolist() == [0, 1]
    options = printing.PrintOptions(threshold=4, edgeitems=0)
    assert [part.size for part in printing.summary_indices((2, 3), options) or ()] == [0, 0]
    edges = np.zeros((0, 0))
    assert printing.format_values(edges, shape=(2, 3), options=options) == "[...]"


def test_explicit_options_leave_the_global_ones_alone() -> None:
    array = np.array([1 / 3], np.float32)
    assert printing.format_tensor(array, options=printing.PrintOptions(precision=2)) == "tensor([0.33])"
    assert printing.format_tensor(array) == "tensor([0.3333])"


def test_printoptions(torch: Any) -> None:
    tensor_str = pytest.importorskip("torch._tensor_str")
    calls: list[dict[str, Any]] = [
        {"profile": "short"},
        {"precision": 2, "sci_mode": True},
        {"edgeitems": 1},  # sets sci_mode back
        {"profile": "full", "precision": 7},
        {"profile": "unknown", "linewidth": 33, "threshold": 5},
        {"profile": "default"},
    ]
    assert printing.get_printoptions() == tensor_str.get_printoptions()
    for options in calls:
        printing.set_printoptions(**options)
        torch.set_printoptions(**options)
        assert printing.get_printoptions() == tensor_str.get_printoptions()
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        printing.set_printoptions(colour=True)  # type: ignore[call-arg]


def test_printoptions_context() -> None:
    before = printing.get_printoptions()
    with printing.printoptions(precision=1, sci_mode=True):
        assert printing.get_printoptions() == {**before, "precision": 1, "sci_mode": True}
        assert printing.format_tensor(np.ones(1)) == "tensor([1.0e+00])"
    with pytest.raises(ZeroDivisionError), printing.printoptions(edgeitems=1):
        1 / 0  # noqa: B018
    assert printing.get_printoptions() == before


def test_bad_precision_is_refused_as_in_pytorch(torch: Any) -> None:
    tensor = torch.tensor([0.5])
    torch.set_printoptions(precision=-1)
    with pytest.raises(ValueError, match="Format specifier missing precision"):
        repr(tensor)
    with (
        printing.printoptions(precision=-1),
        pytest.raises(ValueError, match="Format specifier missing precision"),
    ):
        printing.format_tensor(np.array([0.5]))
