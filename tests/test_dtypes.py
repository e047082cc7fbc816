"""The dtype objects, their limits and promotion, against PyTorch over every pair and category."""

import copy
import itertools
import pickle
import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from xtensor import dtypes

NAMES = [d.name for d in dtypes.ALL]
CATEGORIES = [dtypes.DIM, dtypes.ZERO_DIM, dtypes.WRAPPED]


@pytest.fixture
def default_dtype() -> Iterator[None]:
    """Restore the default dtype after the test."""
    before = dtypes.get_default_dtype()
    yield
    dtypes.set_default_dtype(before)


@pytest.fixture
def torch(torch: Any) -> Iterator[Any]:
    """PyTorch, with its default dtype restored after the test."""
    before = torch.get_default_dtype()
    yield torch
    torch.set_default_dtype(before)


def outcome(function: Any, *args: Any) -> str:
    """What a call gives, as text that PyTorch's and ours share: the value, or the error's class and message."""
    try:
        value = function(*args)
    except Exception as error:
        value = f"{type(error).__name__}: {error}"
    return str(value).replace("torch.", "").replace("xtensor.", "")


@pytest.mark.parametrize("name", NAMES)
def test_attributes(name: str, torch: Any) -> None:
    ours, theirs = getattr(dtypes, name), getattr(torch, name)
    assert repr(ours) == f"xtensor.{name}"
    for attribute in ("itemsize", "is_floating_point", "is_complex", "is_signed", "abbr"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert ours.is_integral == (not (ours.is_floating_point or ours.is_complex or name == "bool"))
    assert outcome(ours.to_real) == outcome(theirs.to_real)
    assert outcome(ours.to_complex) == outcome(theirs.to_complex)


def test_scalar_names(torch: Any) -> None:
    """The names in error messages, read off PyTorch's own message."""
    for name in NAMES:
        with pytest.raises(RuntimeError, match="attempted to promote") as caught:
            torch.promote_types(
                getattr(torch, name), torch.float8_e5m2 if name != "float8_e5m2" else torch.float8_e4m3fn
            )
        assert f"promote {getattr(dtypes, name).scalar_name} and" in str(caught.value)


def test_aliases(torch: Any) -> None:
    for alias in ("half", "float", "double", "short", "int", "long", "cfloat", "cdouble"):
        assert repr(getattr(dtypes, alias)) == repr(getattr(torch, alias)).replace("torch", "xtensor")


def test_numpy_types() -> None:
    for d in dtypes.ALL:
        assert d.numpy.name == d.name
        assert d.numpy.itemsize == d.itemsize
        assert dtypes.from_numpy(d.numpy) is d
        assert dtypes.FROM_NUMPY[d.numpy] is d
    assert dtypes.from_numpy(np.dtype("q")) is dtypes.int64
    assert dtypes.from_numpy(np.dtype("l")).itemsize == np.dtype("l").itemsize
    assert dtypes.bfloat16.numpy == np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("code", ["O", "U1", "M8[s]", "V3", "longdouble", ">f4", ">i8", "i4,f4"])
def test_numpy_types_without_a_counterpart(code: str, torch: Any) -> None:
    array = np.zeros(2, code)
    assert outcome(dtypes.from_numpy, array.dtype) == outcome(torch.from_numpy, array)


def test_objects_are_single() -> None:
    constants = [*dtypes.ALL, dtypes.strided, dtypes.sparse_csr, dtypes.channels_last, dtypes.preserve_format]
    for constant in constants:
        assert pickle.loads(pickle.dumps(constant)) is constant
        assert copy.deepcopy(constant) is constant
        assert copy.copy(constant) is constant
        with pytest.raises(AttributeError):
            constant.name = "other"
    assert len(set(constants)) == len(constants)
    assert dtypes.float32 != "float32"
    for cls in (dtypes.dtype, dtypes.layout, dtypes.memory_format):
        with pytest.raises(TypeError, match=f"cannot create 'xtensor.{cls.__name__}' instances"):
            cls()


def test_layouts_and_memory_formats(torch: Any) -> None:
    for cls, theirs in ((dtypes.layout, torch.layout), (dtypes.memory_format, torch.memory_format)):
        for name, constant in vars(torch).items():
            if isinstance(constant, theirs) and not name.startswith(("_", "legacy")):
                assert isinstance(getattr(dtypes, name), cls)
                assert repr(getattr(dtypes, name)) == f"xtensor.{name}"


def test_promote_types_and_can_cast(torch: Any) -> None:
    for a, b in itertools.product(NAMES, NAMES):
        ours, theirs = (getattr(dtypes, a), getattr(dtypes, b)), (getattr(torch, a), getattr(torch, b))
        assert outcome(dtypes.promote_types, *ours) == outcome(torch.promote_types, *theirs), (a, b)
        assert dtypes.can_cast(*ours) is torch.can_cast(*theirs), (a, b)


@pytest.mark.parametrize("function", ["promote_types", "can_cast"])
def test_promotion_arguments_must_be_dtypes(function: str, torch: Any) -> None:
    for wrong in (1, "float32", None, np.float32):
        first = outcome(getattr(dtypes, function), wrong, dtypes.int8)
        assert first == outcome(getattr(torch, function), wrong, torch.int8)
        second = outcome(getattr(dtypes, function), dtypes.int8, wrong)
        assert second == outcome(getattr(torch, function), torch.int8, wrong)


def operand(torch: Any, name: str, category: int) -> Any:
    """PyTorch's operand for a dtype and category."""
    if category == dtypes.WRAPPED:
        return {"bool": True, "int64": 1, "float32": 1.0, "complex64": 1j}[name]
    return torch.empty((1,) if category == dtypes.DIM else (), dtype=getattr(torch, name))


def operands() -> Iterator[tuple[str, int]]:
    for category in CATEGORIES:
        wrapped = ["bool", "int64", "float32", "complex64"]
        yield from ((name, category) for name in (wrapped if category == dtypes.WRAPPED else NAMES))


def theirs_without_complex32(ours: str, theirs: str) -> bool:
    """Whether two results agree, allowing for complex32, in which no operator of ours answers unless it is given some."""
    return ours == (theirs if theirs != "complex32" else "complex64")


@pytest.mark.parametrize("default", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.usefixtures("default_dtype")
def test_result_type_of_pairs(default: str, torch: Any) -> None:
    torch.set_default_dtype(getattr(torch, default))
    dtypes.set_default_dtype(getattr(dtypes, default))
    count = 0
    for a, b in itertools.product(list(operands()), list(operands())):
        ours = outcome(dtypes.result_type_of, [(getattr(dtypes, n), c) for n, c in (a, b)])
        theirs = outcome(torch.result_type, operand(torch, *a), operand(torch, *b))
        assert theirs_without_complex32(ours, theirs), (a, b, ours, theirs)
        count += 1
    assert count == 44 * 44


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_result_type_of_three(torch: Any) -> None:
    """Three operands, through an operator of PyTorch that has three."""
    names = ["int8", "int64", "bfloat16", "float16", "float32", "float64", "complex64", "complex128"]
    kinds = list(itertools.product(names, [dtypes.DIM, dtypes.ZERO_DIM]))
    compared = 0
    for chosen in itertools.product(kinds, repeat=3):
        tensors = [torch.zeros((1,) if c == dtypes.DIM else (), dtype=getattr(torch, n)) for n, c in chosen]
        try:
            theirs = str(torch.addcmul(*tensors).dtype).removeprefix("torch.")
        except RuntimeError as error:
            assert "not implemented for" in str(error)
            continue
        ours = dtypes.result_type_of([(getattr(dtypes, n), c) for n, c in chosen]).name
        assert theirs_without_complex32(ours, theirs), chosen
        compared += 1
    assert compared > 3000


def test_result_type_of_nothing() -> None:
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type_of([])


@pytest.mark.usefixtures("default_dtype")
def test_scalar_dtype() -> None:
    for default, complex_default in (
        ("float32", "complex64"),
        ("float64", "complex128"),
        ("float16", "complex64"),
    ):
        dtypes.set_default_dtype(getattr(dtypes, default))
        for value in (True, np.bool_(True)):
            assert dtypes.scalar_dtype(value) is dtypes.bool
        for value in (1, 2**63, np.int8(1), np.uint64(2**63)):
            assert dtypes.scalar_dtype(value) is dtypes.int64
        for value in (1.0, np.float16(1), np.float64(1)):
            assert dtypes.scalar_dtype(value) is getattr(dtypes, default)
        for value in (1j, np.complex64(1j), np.complex128(1j)):
            assert dtypes.scalar_dtype(value) is getattr(dtypes, complex_default)
    for wrong in ("1", None, [1], np.zeros(2)):
        with pytest.raises(TypeError, match="is not a number"):
            dtypes.scalar_dtype(wrong)


@pytest.mark.usefixtures("default_dtype")
def test_default_dtype(torch: Any) -> None:
    for name in NAMES:
        ours = outcome(dtypes.set_default_dtype, getattr(dtypes, name))
        assert ours == outcome(torch.set_default_dtype, getattr(torch, name))
        assert outcome(dtypes.get_default_dtype) == outcome(torch.get_default_dtype)
    for wrong in (1, "float32", None, np.float32, np.dtype("float32")):
        assert outcome(dtypes.set_default_dtype, wrong) == outcome(torch.set_default_dtype, wrong)


@pytest.mark.usefixtures("default_dtype")
def test_default_dtype_tells_those_who_asked() -> None:
    dtypes.set_default_dtype(dtypes.float32)
    heard: list[str] = []
    dtypes.on_default_dtype_change.append(lambda: heard.append(dtypes.get_default_dtype().name))
    try:
        dtypes.set_default_dtype(dtypes.float64)
        assert dtypes.get_default_complex_dtype() is dtypes.complex128
        dtypes.set_default_dtype(dtypes.float64)
        dtypes.set_default_dtype(dtypes.bfloat16)
        assert dtypes.get_default_complex_dtype() is dtypes.complex64
        with pytest.raises(TypeError):
            dtypes.set_default_dtype(dtypes.int8)
    finally:
        dtypes.on_default_dtype_change.pop()
    assert heard == ["float64", "bfloat16"]


@pytest.mark.parametrize("kind", ["finfo", "iinfo"])
def test_limits(kind: str, torch: Any) -> None:
    for name in NAMES:
        ours = outcome(getattr(dtypes, kind), getattr(dtypes, name))
        assert ours == outcome(getattr(torch, kind), getattr(torch, name))
        if "Error" in ours:
            continue
        limits, expected = (
            getattr(dtypes, kind)(getattr(dtypes, name)),
            getattr(torch, kind)(getattr(torch, name)),
        )
        attributes = [attribute for attribute in dir(expected) if not attribute.startswith("_")]
        assert set(attributes) >= {"bits", "max", "min", "dtype"}
        for attribute in attributes:
            value = getattr(limits, attribute)
            assert value == getattr(expected, attribute), (name, attribute)
            assert type(value) is type(getattr(expected, attribute))
        assert limits == getattr(dtypes, kind)(getattr(dtypes, name))
        assert hash(limits) == hash(getattr(dtypes, kind)(getattr(dtypes, name)))
        assert pickle.loads(pickle.dumps(limits)) == limits
        with pytest.raises(AttributeError, match="is not writable"):
            limits.max = 0
    for wrong in (1, "float32", None, np.float32):
        assert outcome(getattr(dtypes, kind), wrong) == outcome(getattr(torch, kind), wrong)


@pytest.mark.usefixtures("default_dtype")
def test_limits_compare_by_type(torch: Any) -> None:
    dtypes.set_default_dtype(dtypes.float64)
    assert dtypes.finfo() == dtypes.finfo(type=dtypes.float64)
    for a, b in itertools.product(["float16", "float32", "complex64", "float64", "complex128"], repeat=2):
        ours = dtypes.finfo(getattr(dtypes, a)) == dtypes.finfo(getattr(dtypes, b))
        assert ours == (torch.finfo(getattr(torch, a)) == torch.finfo(getattr(torch, b))), (a, b)
    assert dtypes.finfo(dtypes.float32) != dtypes.iinfo(dtypes.int32)


def test_compute_type() -> None:
    short = {d for d in dtypes.ALL if dtypes.compute_type(d) is not d}
    assert short == {dtypes.float16, dtypes.bfloat16} | dtypes.FLOAT8
    assert {dtypes.compute_type(d) for d in short} == {dtypes.float32}


def test_c_names_are_those_of_pytorch_s_messages(torch: Any) -> None:
    for d in set(dtypes.ALL) - {dtypes.float32}:
        theirs = getattr(torch, d.name)
        with pytest.raises(RuntimeError, match=f"but got {re.escape(dtypes.c_name(d))} instead"):
            torch.diag(torch.ones(2, 2), out=torch.empty(2, dtype=theirs))
        if not d.is_complex and d not in (dtypes.float64, dtypes.bool, dtypes.float8_e8m0fnu):
            with pytest.raises(RuntimeError, match=f"type {re.escape(dtypes.c_name(d, sized=True))} without"):
                torch.zeros(2, dtype=theirs).fill_(1e300)
