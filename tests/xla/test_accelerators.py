"""What is done otherwise where the CPU is not JAX's default device, told from here: such a device is played by the CPU."""

import ctypes

import jax
import numpy as np
import pytest

import xtensor
from xtensor import nn
from xtensor.devices import placement
from xtensor.operators import dispatch
from xtensor.ops.network import attention
from xtensor.plans.plans import executor
from xtensor.xla import number_arrays, segments, sizes, store
from xtensor.xla.memory import out_of_memory
from xtensor.xla.pending import Pending


@pytest.fixture
def elsewhere(monkeypatch):
    """Python numbers are not kept by value alone, as where the CPU is not JAX's default; the numbers that were put beside arrays, and the
    arguments of programs that run in the complete way.
    """

    def missing(self, key):
        raise LookupError

    seen = []
    placed = number_arrays._number_on

    def number_on(value, device):
        seen.append(placed(value, device))
        return seen[-1]

    monkeypatch.setattr(number_arrays, "_number_on", number_on)
    monkeypatch.setattr(number_arrays, "_at_home", lambda: False)
    monkeypatch.setattr(number_arrays.NumberArrays, "__missing__", missing)
    monkeypatch.setattr(dispatch, "watchers", [lambda op, program, arrays: seen.extend(arrays)])
    kept = dict(number_arrays.NUMBER_ARRAYS)
    number_arrays.NUMBER_ARRAYS.clear()
    yield seen
    number_arrays.NUMBER_ARRAYS.update(kept)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x * 2.5,
        lambda x: x + 3,
        lambda x: 1 - x,
        lambda x: x.clone().add_(1.5),
        lambda x: x.clamp(-1, 0.5),
        lambda x: x[1:3].t() * 0.0,
        lambda x: x.clone().mul_(-0.0),
    ],
)
def test_numbers_are_arrays_beside_the_others(elsewhere, call):
    values = np.arange(1031 * 4, dtype=np.float32).reshape(4, 1031) / 999 - 2
    expected = values.copy()
    got = call(xtensor.tensor(values))
    assert elsewhere and not any(type(a) in (int, float) for a in elsewhere)
    elsewhere.clear()
    with pytest.MonkeyPatch.context() as here:
        here.setattr(number_arrays, "_at_home", lambda: True)
        right = call(xtensor.tensor(expected))
    assert got.dtype == right.dtype
    assert got.numpy().tobytes() == right.numpy().tobytes()


def test_numbers_that_are_saved_are_arrays_too(elsewhere):
    x = xtensor.randn(5, requires_grad=True)
    y = x**3.5
    assert not any(type(entry) in (int, float) for entry in y.grad_fn.saved)
    (x * 2.0).sum().backward()
    assert x.grad.tolist() == [2.0] * 5


def test_programs_for_another_platform_are_not_asked_for_their_memory():
    x = jax.numpy.zeros(3)
    assert store.on_host((x, 1.0))
    assert store.on_host((1.0,)) is (jax.default_backend() == "cpu")


def test_an_address_can_be_read_where_a_device_stands_in_for_the_cpu(monkeypatch):
    x = xtensor.arange(5, dtype=xtensor.float32)
    place = xtensor.device("cuda", 0)
    monkeypatch.setattr(xtensor.devices, "of_array", lambda array: place)
    monkeypatch.setattr(xtensor.devices, "redirected", lambda name: place)
    address = x.untyped_storage().data_ptr()
    assert list((ctypes.c_float * 5).from_address(address)) == [0, 1, 2, 3, 4]


def test_a_switch_of_precision_forgets_plans():
    executor.enabled, executor.background = True, False
    w = xtensor.randn(4, 3, requires_grad=True)
    try:
        for _ in range(4):
            (w @ w.t()).tanh().sum().backward()
        assert list(executor.patterns)
        xtensor.set_float32_matmul_precision("high")
        assert not list(executor.patterns)
    finally:
        xtensor.set_float32_matmul_precision("highest")
        executor.enabled, executor.background = False, True


def test_what_xla_says_of_memory_is_the_error_that_programs_catch(monkeypatch):
    text = "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 105.85GiB with allocator GPU_0_bfc on device 0."
    assert out_of_memory(text) is None  # the CPU's is a RuntimeError, as PyTorch's
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    error = out_of_memory(text)
    assert type(error) is xtensor.OutOfMemoryError is xtensor.cuda.OutOfMemoryError
    assert str(error).startswith("CUDA out of memory. Tried to allocate 105.85 GiB. ")
    assert out_of_memory("INVALID_ARGUMENT: no") is None


def test_a_device_without_an_index_is_the_current_one(monkeypatch):
    place, other = xtensor.device("cuda"), xtensor.device("cuda", 0)
    monkeypatch.setattr(placement, "jax_device", lambda p: p.index or 0)
    assert xtensor.devices.same(place, other) and xtensor.devices.same(other, place)
    assert not xtensor.devices.same(place, xtensor.device("cuda", 1))
    assert not xtensor.devices.same(other, xtensor.device("cpu"))


def test_only_tensors_on_a_gpu_lend_their_memory_by_cudas_protocol():
    x = xtensor.ones(3)
    assert not hasattr(x, "__cuda_array_interface__")
    with pytest.raises(AttributeError, match=r"non-CUDA tensor type: xtensor\.FloatTensor"):
        _ = x.__cuda_array_interface__


def test_accelerators_attend_to_more_queries_at_a_time():
    q = jax.ShapeDtypeStruct((2, 4, 1024, 16), np.float32)
    text = {
        kind: jax.jit(lambda q, k, v: attention.attend_generally(q, k, v, None, False, None, False))
        .trace(q, q, q)
        .lower(lowering_platforms=(kind,))
        .as_text()
        for kind in ("cpu", "cuda")
    }
    assert "while" in text["cpu"] and "while" not in text["cuda"]


def test_numbers_and_offsets_enter_calls_that_wait(elsewhere, monkeypatch):
    """Else each ends the segment, and travels to the device by itself."""
    monkeypatch.setattr(segments.structures.state, "background", False)
    segments.enable(True)
    try:
        with sizes.paused():
            x = xtensor.ones(6, 1031)
            segments.finish()
            y = x * 2.5
            z = y[2:4] + 1
            w = y[1].clone()
            p = nn.Parameter(xtensor.ones(7))
            p.grad = p.detach() * 3
            nn.utils.clip_grad_norm_(p, 1.0)
            assert all(
                type(t._xt_storage.raw) is Pending and t._xt_storage.raw.call for t in (y, z, w, p.grad)
            )
            assert (z[0, 0].item(), w[0].item()) == (3.5, 2.5)
            assert p.grad.norm().item() == pytest.approx(1, rel=1e-5)
    finally:
        segments.enable(True)
