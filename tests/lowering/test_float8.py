"""Casts to the float8 dtypes, bit by bit as PyTorch's: every 16-bit pattern, ties and their neighbours, integers, views."""

import numpy as np
import pytest

import xtensor

FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu")
PATTERNS = np.arange(65536, dtype=np.uint16)
WIDE = PATTERNS.astype(np.uint32) << 16
FLOATS = np.concatenate([WIDE, WIDE | 0x7FFF, WIDE | 0x8000, WIDE | 0x8001]).view(np.float32)
INTEGERS = [*range(-600, 600), 10**5, -(10**5), 2**30, -(2**31)]

SOURCES = {
    "bfloat16": lambda t: t.tensor(PATTERNS.view(np.int16)).view(t.bfloat16),
    "float16": lambda t: t.tensor(PATTERNS.view(np.int16)).view(t.float16),
    "float32": lambda t: t.tensor(FLOATS),
    "float64": lambda t: t.tensor(FLOATS.astype(np.float64)),
    "int64": lambda t: t.tensor([*INTEGERS, 10**18, -(10**18)]),
    "int32": lambda t: t.tensor(INTEGERS).to(t.int32),
    "int8": lambda t: t.tensor(INTEGERS).to(t.int8),
    "uint8": lambda t: t.tensor(INTEGERS).to(t.uint8),
    "bool": lambda t: t.tensor([True, False]),
    "complex64": lambda t: t.tensor([1 + 1j, 1e9 - 3j, -2e9, 0]),
    "a view": lambda t: t.tensor(FLOATS[:4096]).view(64, 64).t(),
}
SOURCES |= {
    name: lambda t, name=name: t.tensor(PATTERNS[:256].astype(np.uint8)).view(getattr(t, name))
    for name in FLOAT8
}


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", FLOAT8)
def test_every_value(torch, target, source):
    def bits(t):
        return np.array(SOURCES[source](t).to(getattr(t, target)).contiguous().view(t.uint8).numpy())

    ours, theirs = bits(xtensor), bits(torch)
    wrong = np.flatnonzero((ours != theirs).reshape(-1))
    assert ours.shape == theirs.shape and not len(wrong), (wrong[:5], ours.reshape(-1)[wrong[:5]])


WAYS = {
    "tensor": lambda t, d: t.tensor([1e9, -1e9, float("inf"), float("nan"), 0.0, -2.0, 500.0], dtype=d),
    "tensor of ints": lambda t, d: t.tensor([10**9, -3, 0], dtype=d),
    "zeros": lambda t, d: t.zeros(2, dtype=d),
    "many zeros": lambda t, d: t.zeros(300, 300, dtype=d),
    "zeros_like": lambda t, d: t.zeros_like(t.ones(2), dtype=d),
    "zero_": lambda t, d: t.ones(2, dtype=d).zero_(),
    "fill_": lambda t, d: t.ones(2, dtype=d).fill_(-3),
    "copy_": lambda t, d: t.ones(2, dtype=d).copy_(t.tensor([1e9, -0.0])),
    "copy_ to a view": lambda t, d: t.ones(4, dtype=d)[::2].copy_(t.tensor([-1e9, 0.0])).contiguous(),
    "index": lambda t, d: assigned(t, d, 0, t.tensor(-1e9)),
    "slice": lambda t, d: assigned(t, d, slice(0, 1), t.tensor([0.0])),
    "out": lambda t, d: t.add(t.tensor([1e9, -5.0]), 1, out=t.ones(2, dtype=d)),
    "type": lambda t, d: t.tensor([1e9]).type(d),
}


def assigned(t, dtype, at, value):
    made = t.ones(2, dtype=dtype)
    made[at] = value
    return made


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("target", FLOAT8)
def test_every_way(torch, target, way):
    ours, theirs = (WAYS[way](t, getattr(t, target)).view(t.uint8).tolist() for t in (xtensor, torch))
    assert ours == theirs
