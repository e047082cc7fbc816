"""Tensors of dtypes that only store, against PyTorch: bytes seen and moved, what is refused, and the numbers of complex32."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor import dtypes

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:ComplexHalf support")
BYTES = [d.name for d in dtypes.STORED if d is not dtypes.complex32]


def made(library: Any, name: str, *shape: int) -> Any:
    dtype = getattr(library, name)
    whole = library.int16 if dtype.itemsize == 2 else library.uint8
    return library.arange(int(np.prod(shape)), dtype=whole).reshape(*shape).view(dtype)


def raw(tensor: Any) -> Any:
    """The bytes of a tensor, wherever it is of."""
    library = torch if isinstance(tensor, torch.Tensor) else xtensor
    return tensor.contiguous().view(library.int16 if tensor.element_size() == 2 else library.uint8).tolist()


def kind(value: Any) -> str:
    return str(value).replace("xtensor", "torch")


MOVES: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda lib, x: x[1:, ::2],
    "transpose": lambda lib, x: x.t(),
    "reshape": lambda lib, x: x.t().reshape(-1),
    "expand": lambda lib, x: x[:1].expand(4, 3),
    "cat": lambda lib, x: lib.cat([x, x[:1]]),
    "stack": lambda lib, x: lib.stack([x, x], 1),
    "clone": lambda lib, x: x.clone(),
    "as_strided": lambda lib, x: x.as_strided((2, 2), (1, 3), 1),
    "unbind": lambda lib, x: x.unbind(0)[1],
    "split": lambda lib, x: x.split(2, 1)[1],
    "zeros_like": lambda lib, x: lib.zeros_like(x),
    "new_zeros": lambda lib, x: x.new_zeros((2, 2)),
    "where": lambda lib, x: lib.where(lib.tensor([True, False, True]), x, lib.zeros_like(x)),
    "repeat": lambda lib, x: x.repeat(2, 1),
    "roll": lambda lib, x: x.roll(1, 0),
    "diagonal": lambda lib, x: x.diagonal(),
    "T": lambda lib, x: x.T,
    "data": lambda lib, x: x.data,
    "detach": lambda lib, x: x.detach(),
    "deepcopy": lambda lib, x: copy.deepcopy(x),
    "copy_": lambda lib, x: lib.empty_like(x).copy_(x.flipud()),
}


@pytest.mark.parametrize("name", ["bits8", "bits16"])
def test_bytes_are_moved_as_pytorch_moves_them(name: str) -> None:
    ours, theirs = made(xtensor, name, 2, 3), made(torch, name, 2, 3)
    for call, function in MOVES.items():
        got, want = function(xtensor, ours), function(torch, theirs)
        assert kind(got.dtype) == kind(want.dtype) == f"torch.{name}", call
        assert (tuple(got.shape), got.stride()) == (tuple(want.shape), want.stride()), call
        assert got.storage_offset() == want.storage_offset(), call
        assert raw(got) == raw(want), call


@pytest.mark.parametrize("name", [*BYTES, "complex32"])
def test_dtypes_are_pytorchs(name: str) -> None:
    ours, theirs = getattr(xtensor, name), getattr(torch, name)
    for attribute in ("itemsize", "is_floating_point", "is_complex"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert repr(ours) == f"xtensor.{name}" and pickle.loads(pickle.dumps(ours)) is ours
    x, y = xtensor.zeros(2, 3, dtype=ours), torch.zeros(2, 3, dtype=theirs)
    assert x.type() == kind(y.type()).replace("torch", "xtensor") and x.element_size() == y.element_size()
    assert x.untyped_storage().nbytes() == y.untyped_storage().nbytes()
    assert xtensor.zeros(1031, dtype=ours)[1030:].shape == (1,)
    assert xtensor.empty(2, dtype=ours, device="meta").dtype is ours
    assert isinstance(x, xtensor.Tensor) and repr(x).endswith(f"dtype=xtensor.{name})")


def test_views_share_memory() -> None:
    plain = xtensor.arange(4, dtype=xtensor.uint8)
    seen = plain.view(xtensor.bits8)
    before = plain._version
    seen[1:3] = seen[:2].clone()
    assert plain.tolist() == [0, 0, 1, 3] and plain._version == before + 1
    plain[0] = 7
    assert raw(seen) == [7, 0, 1, 3]
    assert seen.data_ptr() == plain.data_ptr()
    wide = xtensor.zeros(4, dtype=xtensor.float32).view(xtensor.bits16)
    assert wide.shape == (8,) and wide.view(xtensor.float32).shape == (4,)
    with pytest.raises(RuntimeError, match="divisible by 2 to view Byte as Bits16"):
        xtensor.zeros(3, dtype=xtensor.uint8).view(xtensor.bits16)


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda lib, x: x + x,
    "mul": lambda lib, x: x * x,
    "eq": lambda lib, x: x == x,
    "sum": lambda lib, x: x.sum(),
    "item": lambda lib, x: x[0, 0].item(),
    "fill": lambda lib, x: x.fill_(1),
    "number": lambda lib, x: lib.tensor([1], dtype=x.dtype),
    "ones": lambda lib, x: lib.ones(2, dtype=x.dtype),
    "float": lambda lib, x: x.float(),
    "from": lambda lib, x: lib.ones(2).to(x.dtype),
    "into": lambda lib, x: lib.ones(2, 3).copy_(x),
    "index": lambda lib, x: x[lib.tensor([0])],
    "sort": lambda lib, x: x.sort(),
    "softmax": lambda lib, x: x.softmax(1),
    "exp": lambda lib, x: x.exp(),
    "nonzero": lambda lib, x: x.nonzero(),
    "tril": lambda lib, x: x.tril(),
    "arange": lambda lib, x: lib.arange(3, dtype=x.dtype),
    "rand": lambda lib, x: lib.rand(3, dtype=x.dtype),
    "numpy": lambda lib, x: x.numpy(),
    "tolist": lambda lib, x: x.tolist(),
    "equal": lambda lib, x: lib.equal(x, x),
    "any": lambda lib, x: x.any(),
}


def failure(function: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises((RuntimeError, TypeError)) as caught:
        function()
    return type(caught.value).__name__, str(caught.value).split("\n")[0]


@pytest.mark.parametrize("name", ["bits4x2", "bits16"])
def test_refusals_are_pytorchs(name: str) -> None:
    ours, theirs = made(xtensor, name, 2, 3), made(torch, name, 2, 3)
    for call, function in REFUSED.items():
        assert failure(lambda f=function: f(xtensor, ours)) == failure(lambda f=function: f(torch, theirs)), (
            call
        )


def test_bits_do_not_promote() -> None:
    with pytest.raises(RuntimeError, match=r"Promotion from Bits8 and Float is unsupported\."):
        xtensor.promote_types(xtensor.bits8, xtensor.float32)
    assert xtensor.promote_types(xtensor.int4, xtensor.int4) is xtensor.int4


def test_float4_compares() -> None:
    x = made(xtensor, "float4_e2m1fn_x2", 2, 2)
    assert (x == x).all() and not (x != x).any() and xtensor.equal(x, x.clone())
    assert (
        repr(made(xtensor, "float4_e2m1fn_x2", 3)) == "tensor([0., 1., 2.], dtype=xtensor.float4_e2m1fn_x2)"
    )


def test_quantised_dtypes_are_not_made_by_factories() -> None:
    for make in (xtensor.zeros, xtensor.empty):
        with pytest.raises(NotImplementedError, match="quantize_per_tensor"):
            make(2, dtype=xtensor.qint8)
    with pytest.raises(RuntimeError, match="empty_strided not supported on quantized tensors yet"):
        xtensor.ones(2).to(xtensor.quint8)


@pytest.mark.parametrize("name", ["bits8", "bits16", "complex32", "float4_e2m1fn_x2"])
def test_files_go_both_ways(name: str) -> None:
    ours = made(xtensor, name, 2, 3) if name != "complex32" else numbers(xtensor, 2, 3)
    file = io.BytesIO()
    xtensor.save({"x": ours, "row": ours[1:]}, file)
    file.seek(0)
    theirs = torch.load(file)
    assert kind(theirs["x"].dtype) == f"torch.{name}" and raw(theirs["row"]) == raw(ours[1:])
    again = io.BytesIO()
    torch.save(theirs, again)
    again.seek(0)
    back = xtensor.load(again)
    assert back["x"].dtype is ours.dtype and raw(back["x"]) == raw(ours)
    assert back["row"].data_ptr() != 0 and raw(pickle.loads(pickle.dumps(ours))) == raw(ours)


# ---- complex32 -----------------------------------------------------------------------------------------------------


def numbers(library: Any, *shape: int) -> Any:
    values = np.random.default_rng(7).standard_normal((*shape, 2)).astype(np.float16)
    return library.view_as_complex(library.from_numpy(values.copy()))


def same(ours: Any, theirs: Any, call: object) -> None:
    assert kind(ours.dtype) == kind(theirs.dtype), call
    got, want = ours.to(xtensor.complex64).numpy(), theirs.to(torch.complex64).numpy()
    np.testing.assert_allclose(got, want, rtol=4e-3, atol=4e-3, err_msg=str(call))


COMPUTED: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda lib, x: x + x.conj(),
    "mul": lambda lib, x: x * x,
    "number": lambda lib, x: x * 2 + 1j,
    "half": lambda lib, x: x * lib.ones(3, dtype=lib.float16),
    "float": lambda lib, x: x * lib.ones(3),
    "scalar": lambda lib, x: x * lib.tensor(2.0, dtype=lib.float64),
    "abs": lambda lib, x: x.abs(),
    "real": lambda lib, x: x.real,
    "imag": lambda lib, x: x.imag,
    "neg": lambda lib, x: -x,
    "view_as_real": lambda lib, x: lib.view_as_real(x),
    "select": lambda lib, x: x[lib.tensor([1, 0])],
    "masked": lambda lib, x: x.masked_fill(x.real > 0, 1j),
    "where": lambda lib, x: lib.where(x.real > 0, x, x * 2),
    "cat": lambda lib, x: lib.cat([x, x.flipud()]),
    "to": lambda lib, x: x.to(lib.complex128),
    "chalf": lambda lib, x: lib.ones(2, 3).chalf() + x,
    "full": lambda lib, x: lib.full((2,), 1 + 2j, dtype=lib.complex32),
    "tensor": lambda lib, x: lib.tensor([1j, 2], dtype=lib.complex32),
    "ones": lambda lib, x: lib.ones(2, dtype=lib.chalf),
    "adjoint": lambda lib, x: x.mH,
    "isnan": lambda lib, x: x.isnan(),
    "std": lambda lib, x: x.std(),
}


def test_complex32_computes() -> None:
    ours, theirs = numbers(xtensor, 2, 3), numbers(torch, 2, 3)
    for call, function in COMPUTED.items():
        same(function(xtensor, ours), function(torch, theirs), call)
    assert ours[1, 2].item() == theirs[1, 2].item() and ours.tolist() == theirs.tolist()
    assert repr(ours) == kind(repr(theirs)).replace("torch", "xtensor")
    assert repr(xtensor.finfo(xtensor.complex32)) == repr(torch.finfo(torch.complex32))
    for other in ("float16", "bfloat16", "float32", "float64", "int64", "bool", "complex64", "complex32"):
        pair = [lib.promote_types(lib.complex32, getattr(lib, other)) for lib in (xtensor, torch)]
        assert kind(pair[0]) == kind(pair[1])


def test_complex32_is_written_in_place() -> None:
    ours, theirs = numbers(xtensor, 2, 3), numbers(torch, 2, 3)
    for lib, x in ((xtensor, ours), (torch, theirs)):
        view = x[1:]
        x.mul_(2).add_(1j)
        x[0, 0] = 3 - 1j
        x.real.zero_()
        x.imag[0] += 1
        x.masked_fill_(x.imag > 1, 5)
        x += lib.ones(3, dtype=lib.float16)
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        lib.add(x, x, out=view.new_empty((2, 3)))
    same(ours, theirs, "written")
    assert ours._version > 0


def test_complex32_has_gradients() -> None:
    grads = []
    for lib in (xtensor, torch):
        half = lib.from_numpy(np.linspace(-1, 1, 12, dtype=np.float16).reshape(6, 2)).requires_grad_()
        z = lib.view_as_complex(half)
        w = lib.ones(2, 3, dtype=lib.complex32, requires_grad=True)
        made = z.reshape(2, 3) * w + w.conj()
        lib.view_as_real(made.t().contiguous()).float().pow(2).sum().backward()
        grads.append((half.grad, w.grad))
    (half, leaf), (their_half, their_leaf) = grads
    np.testing.assert_allclose(half.numpy(), their_half.numpy(), rtol=4e-3, atol=4e-3)
    same(leaf, their_leaf, "gradient")
    assert leaf.dtype is xtensor.complex32 and half.dtype is xtensor.float16


def test_complex32_of_more_than_a_vector_loop() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = xtensor.randn(1031, dtype=xtensor.complex32)
    assert x.shape == (1031,) and bool((x.abs() > 0).all())
    assert (x[1000:].to(xtensor.complex64).conj() * x[1000:]).imag.abs().max() < 1e-2


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_complex32_is_optimized(name: str) -> None:
    made = []
    for lib in (xtensor, torch):
        w = lib.tensor([1 + 0.5j, -0.25 + 1j, 0.75 - 2j], dtype=lib.complex32, requires_grad=True)
        optimizer = getattr(lib.optim, name)([w], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (w * w.conj()).real.float().sum().backward()
            optimizer.step()
        made.append(w.detach())
    same(*made, name)


# ---- where a dtype is an argument ----------------------------------------------------------------------------------


def test_operators_refuse_dtypes_that_only_store() -> None:
    x = xtensor.ones(3)
    for call in (xtensor.sum, xtensor.cumsum, xtensor.softmax, xtensor.prod):
        for dtype in (xtensor.bits8, xtensor.complex32, xtensor.qint8):
            with pytest.raises(NotImplementedError, match=f"not implemented for '{dtype.scalar_name}'"):
                call(x, 0, dtype=dtype)


def test_they_are_no_default_and_have_no_limits() -> None:
    before = xtensor.get_default_dtype()
    for dtype in (xtensor.float4_e2m1fn_x2, xtensor.complex32, xtensor.bits8):
        with pytest.raises(TypeError):
            xtensor.set_default_dtype(dtype)
    assert xtensor.get_default_dtype() is before
    with pytest.raises(TypeError):
        xtensor.finfo(xtensor.float4_e2m1fn_x2)
    with pytest.raises(TypeError):
        xtensor.iinfo(xtensor.int4)


def test_transforms_and_exports_say_that_there_are_no_values() -> None:
    x = numbers(xtensor, 3)
    for transformed in (xtensor.func.vmap(lambda a: a * 2), xtensor.func.grad(lambda a: a.abs().sum())):
        with pytest.raises(NotImplementedError, match="dtypes that only store"):
            transformed(x)
    assert (x * 2).tolist() == xtensor.compile(lambda a: a * 2)(x).tolist()


@pytest.mark.parametrize("make", ["ones", "zeros", "full", "rand"])
def test_factories_write_to_halves_of_complex_numbers(make: str):
    out = xtensor.zeros(0, dtype=xtensor.complex32)
    function, sizes = getattr(xtensor, make), ((4,), 2j) if make == "full" else ((4,),)
    assert function(*sizes, out=out) is out
    assert out.dtype is xtensor.complex32 and out.shape == (4,)
    values = out.to(xtensor.complex64)
    if make == "rand":
        assert bool((values.imag > 0).any() and (values.real < 1).all())
    else:
        assert values.tolist() == [{"ones": 1, "zeros": 0, "full": 2j}[make]] * 4
