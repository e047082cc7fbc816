"""`backends.cudnn.allow_tf32` and its newer spelling decide how exactly convolutions are computed where a device has TF32."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import xtensor
from xtensor.backends import cudnn  # pyright: ignore[reportMissingImports]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    cudnn.allow_tf32 = True


def precision_of_a_convolution() -> set[str]:
    """What the program of a convolution asks for."""
    x, w = xtensor.ones(1, 2, 5, 5), xtensor.ones(3, 2, 3, 3)
    text = str(xtensor.ops.explain("conv2d", x, w).programs[0].stablehlo)
    return {word for found in re.findall(r"precision = \[([A-Z, ]+)\]", text) for word in found.split(", ")}


def test_convolutions_follow_the_switch() -> None:
    assert cudnn.allow_tf32
    assert cudnn.conv.fp32_precision == "tf32"
    assert precision_of_a_convolution() == {"HIGH"}
    cudnn.allow_tf32 = False
    assert cudnn.conv.fp32_precision == "ieee"
    assert precision_of_a_convolution() == {"HIGHEST"}
    cudnn.conv.fp32_precision = "tf32"
    assert cudnn.allow_tf32


def test_flags_are_put_back() -> None:
    with cudnn.flags(allow_tf32=False):
        assert not cudnn.allow_tf32
    assert cudnn.allow_tf32
    with pytest.raises(ValueError, match="because"), cudnn.flags(enabled=False, allow_tf32=False):
        raise ValueError("because")
    assert cudnn.enabled
    assert cudnn.allow_tf32


def test_products_have_a_switch_of_their_own() -> None:
    cudnn.allow_tf32 = False
    assert not xtensor.backends.cuda.matmul.allow_tf32
    xtensor.backends.cuda.matmul.allow_tf32 = True
    try:
        assert not cudnn.allow_tf32
        assert xtensor.get_float32_matmul_precision() == "high"
    finally:
        xtensor.backends.cuda.matmul.allow_tf32 = False
