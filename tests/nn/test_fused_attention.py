"""cuDNN's fused attention: chosen by name, for what it computes, in programs for CUDA alone; looked at without a GPU."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xtensor
from xtensor.nn.attention import SDPBackend, sdp_kernel, sdpa_kernel
from xtensor.ops.network import attention

F = xtensor.nn.functional
kernel: Callable[..., Any] = attention.attend.operator.kernel  # pyright: ignore[reportFunctionMemberAccess]


@pytest.fixture
def cudnn(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if there were a GPU: what JAX asks of one before it lowers is answered."""
    inside = importlib.import_module("jax._src.cudnn.fused_attention_stablehlo")
    monkeypatch.setattr(inside, "check_cudnn_version", lambda: 91000)
    monkeypatch.setattr(inside, "check_compute_capability", lambda capability: True)
    monkeypatch.setattr(inside, "is_cuda_compute_capability_equal", lambda capability: False)
    monkeypatch.setattr(attention, "has_cudnn", lambda: True)
    yield
    jax.clear_caches()


def form(*sizes: int, dtype: Any = jnp.bfloat16) -> Any:
    return jax.ShapeDtypeStruct(sizes, dtype)


def lowered(function: Callable[..., Any], platform: str, *args: Any) -> str:
    return jax.jit(function).trace(*args).lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("causal", [False, True])
def test_a_program_for_cuda_calls_cudnn_in_both_passes(cudnn: None, causal: bool) -> None:
    q = form(2, 4, 64, 32)

    def forward(q: Any, k: Any, v: Any) -> Any:
        return kernel(q, k, v, None, 0.0, causal, None, False, True)

    def both(q: Any, k: Any, v: Any) -> Any:
        return jax.vjp(forward, q, k, v)[1](q)

    text = lowered(forward, "cuda", q, q, q)
    assert "__cudnn$fmhaSoftmax" in text
    assert "exponential" not in text
    assert "__cudnn$fmhaSoftmaxBackward" in lowered(both, "cuda", q, q, q)
    assert ("CAUSAL" in text) == causal


def test_a_program_for_the_cpu_does_not(cudnn: None) -> None:
    q = form(2, 4, 64, 32)
    text = lowered(lambda q, k, v: kernel(q, k, v, None, 0.0, False, None, False, True), "cpu", q, q, q)
    assert "cudnn" not in text
    assert "exponential" in text


@pytest.mark.parametrize(
    ("query", "key", "causal", "gqa", "takes"),
    [
        (form(2, 4, 64, 32), form(2, 4, 64, 32), True, False, True),
        (form(2, 4, 64, 32, dtype=jnp.float16), form(2, 4, 48, 32, dtype=jnp.float16), False, False, True),
        (form(2, 4, 64, 32), form(2, 2, 64, 32), False, True, True),
        (form(2, 4, 64, 32), form(2, 2, 64, 32), False, False, False),
        (form(2, 4, 64, 32), form(2, 4, 48, 32), True, False, False),
        (form(2, 4, 64, 32, dtype=jnp.float32), form(2, 4, 64, 32, dtype=jnp.float32), False, False, False),
        (form(2, 4, 64, 30), form(2, 4, 64, 30), False, False, False),
        (form(2, 4, 64, 256), form(2, 4, 64, 256), False, False, False),
        (form(4, 64, 32), form(4, 64, 32), False, False, False),
        (form(0, 4, 64, 32), form(0, 4, 64, 32), False, False, False),
    ],
)
def test_what_it_computes(cudnn: None, query: Any, key: Any, causal: bool, gqa: bool, takes: bool) -> None:
    assert attention.takes_cudnn(query, key, key, causal, gqa) is takes


def test_without_a_gpu_there_is_none() -> None:
    if not xtensor.devices.is_available("cuda"):
        assert not attention.has_cudnn()


def test_it_is_asked_for_by_name() -> None:
    assert not attention.fused_allowed.get()
    for backends, allowed in (
        (SDPBackend.MATH, False),
        (SDPBackend.CUDNN_ATTENTION, True),
        ([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH], True),
    ):
        with sdpa_kernel(backends):
            assert attention.fused_allowed.get() is allowed
            with sdpa_kernel(SDPBackend.MATH):
                assert not attention.fused_allowed.get()
        assert not attention.fused_allowed.get()
    with sdp_kernel(enable_flash=False):
        assert not attention.fused_allowed.get()
    with pytest.raises(AssertionError, match="SDPBackend"), sdpa_kernel("flash"):
        pass


def test_where_there_is_none_the_formula_computes_it() -> None:
    q = xtensor.tensor(np.random.default_rng(0).normal(size=(1, 2, 8, 8)).astype(np.float32)).bfloat16()
    plain = F.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        fused = F.scaled_dot_product_attention(q, q, q)
    if not xtensor.devices.is_available("cuda"):
        assert fused.tolist() == plain.tolist()
