"""What the tests of quantised layers share: the same program in both libraries, and how far its values are apart."""

import functools
import math
from types import SimpleNamespace

import numpy as np
import pytest

import xtensor
import xtensor.ao

torch = pytest.importorskip("torch")
pytest.importorskip("torch.ao.nn.intrinsic.quantized.dynamic")
pytest.importorskip("torch.ao.nn.intrinsic.qat")
pytest.importorskip("torch.ao.nn.quantizable")

LIBRARIES = (torch, xtensor)


@functools.cache
def saturates():
    """Whether PyTorch's products of eight bits add pairs within sixteen here, as on a CPU without VNNI: wrong past 32767."""
    x = torch.quantize_per_tensor(torch.full((1, 32), 255.0), 1.0, 0, torch.quint8)
    weight = torch.quantize_per_tensor(torch.full((1, 32), 127.0), 1.0, 0, torch.qint8)
    packed = torch.ops.quantized.linear_prepack(weight, None)
    found = torch.ops.quantized.linear(x, packed, 255.0 * 127 * 32 / 100, 0).dequantize().item()
    return not math.isclose(found, 255 * 127 * 32, rel_tol=0.01)


def names(lib):
    """The modules of quantisation by the names that programs use."""
    nn = lib.ao.nn
    return {
        "lib": lib,
        "F": nn.quantized.functional,
        "Q": lib.ao.quantization,
        "ops": lib.ops.quantized,
        "nnd": nn.quantized.dynamic,
        "nni": nn.intrinsic,
        "nnq": nn.quantized,
        "nnqa": nn.quantizable,
        "nnqat": nn.qat,
    }


def flat(value):
    """The tensors in a value, each as an array, integers where it is quantised; and the scales."""
    if isinstance(value, (tuple, list)):
        return [part for v in value for part in flat(v)]
    if isinstance(value, (torch.Tensor, xtensor.Tensor)):
        if not value.is_quantized:
            return [value.detach().numpy()]
        if "per_tensor" in str(value.qscheme()):
            return [value.int_repr().numpy(), np.array([value.q_scale(), value.q_zero_point()])]
        return [value.int_repr().numpy(), value.q_per_channel_scales().numpy()]
    return []


def outcome(function):
    """What a function gives, as arrays, or the text of its error."""
    try:
        return flat(function())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def assert_alike(expected, found, tolerance=1e-5):
    """Arrays or errors are the same: integers to one quantum, where few differ by that."""
    if isinstance(expected, str) or isinstance(found, str):
        assert found == expected
        return
    assert [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in expected]
    for wanted, got in zip(expected, found, strict=True):
        if wanted.dtype.kind in "iu":
            apart = np.abs(wanted.astype(int) - got.astype(int))
            assert apart.max(initial=0) <= 1
            assert (apart > 0).mean() <= 0.1
        else:
            np.testing.assert_allclose(
                got, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max(initial=1)
            )


def engine(monkeypatch):
    """PyTorch's with products that do not saturate."""
    monkeypatch.setattr(torch.backends.quantized, "engine", "fbgemm")


def quantised(lib, values, scale=0.05, point=100, dtype="quint8"):
    return lib.quantize_per_tensor(lib.tensor(values), scale, point, getattr(lib, dtype))


def weight(lib, values, channels=True):
    count = len(values)
    if not channels:
        return lib.quantize_per_tensor(lib.tensor(values), 0.025, 0, lib.qint8)
    scales, points = lib.linspace(0.02, 0.03, count), lib.zeros(count, dtype=lib.int64)
    return lib.quantize_per_channel(lib.tensor(values), scales, points, 0, lib.qint8)


def draws(seed=0):
    rng = np.random.default_rng(seed)
    return SimpleNamespace(draw=lambda *shape: rng.standard_normal(shape).astype(np.float32))
