"""PyTorch's functions of its own builds: packed weights, steps and layers over them, limits of rows; the engine's name."""

import numpy as np
import pytest

import xtensor

from .compared import assert_alike, draws, engine, names, outcome, quantised, saturates, torch

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, which deprecates all of this

PROGRAMS = """lib.choose_qparams_optimized(x[0], 64, 200, .16, 8)
lib.choose_qparams_optimized(x[1], 64, 200, .16, 4)
lib.choose_qparams_optimized(x[1], 65, 200, .16, 4)
lib.empty_quantized([2, 2], q).shape
lib.empty_quantized([2], x)
lib.quantized_max_pool1d(q[0, 0], 2)
lib.quantized_max_pool2d(q[0], 2)
lib.quantized_max_pool3d(q, 2)
lib.quantized_max_pool2d(x, 2)
lib.quantized_batch_norm(q[0], v, v, v, v.abs(), 1e-5, .1, 60)
lib.fbgemm_linear_quantize_weight(w)[:2]
lib.fbgemm_linear_int8_weight_fp32_activation(a, *held[:1], pack(held[0]), *held[1:], b)
lib.fbgemm_linear_int8_weight(a, *held[:1], pack(held[0]), *held[1:], b)
lib.fbgemm_linear_fp16_weight(a, lib.fbgemm_pack_gemm_matrix_fp16(w), b)
lib.fbgemm_linear_fp16_weight_fp32_activation(a, lib.fbgemm_pack_gemm_matrix_fp16(w), b)
lib.quantized_lstm_cell(a, [h, h], *cell(32))
lib.quantized_gru_cell(a, h, *cell(24))
lib.quantized_rnn_tanh_cell(a, h, *cell(8))
lib.quantized_rnn_relu_cell(a, h, *cell(8))
lib.quantized_lstm(s, [z, z], lstm, True, 1, 0., False, False, False, dtype=lib.qint8, use_dynamic=True)
lib.quantized_gru(s, z, gru, True, 1, 0., False, False, False)
lib.quantized_lstm(s[:, 0], lib.tensor([1, 1, 1]), [z[:, :1], z[:, :1]], lstm, True, 1, 0., False, False)
lib.quantized_gru(s[:, 0], lib.tensor([1, 1, 1]), z[:, :1], gru, True, 1, 0., False, False)""".split("\n")


def made(lib, program):
    draw = draws(0).draw
    values = {name: lib.tensor(draw(*size)) for name, size in {"x": (2, 64), "v": (3,), "w": (5, 8)}.items()}
    values |= {name: lib.tensor(draw(*size)) for name, size in {"a": (3, 8), "b": (5,), "h": (3, 8)}.items()}
    values |= {name: lib.tensor(draw(*size)) for name, size in {"s": (3, 2, 8), "z": (1, 2, 8)}.items()}
    pack = lib.fbgemm_pack_quantized_matrix
    ops = names(lib)["ops"]

    def cell(rows):
        halves = [lib.fbgemm_linear_quantize_weight(lib.tensor(draw(rows, 8))) for _ in range(2)]
        biases = [lib.tensor(draw(rows)) for _ in range(2)]
        parts = zip(*[(half[0], pack(half[0]), half[1], half[2], half[3]) for half in halves], strict=True)
        weights, packs, sums, scales, points = parts
        return (*weights, *biases, *packs, *sums, *scales, *points)

    def params(rows):
        halves = []
        for _ in range(2):
            weight = lib.quantize_per_tensor(lib.tensor(draw(rows, 8)), 0.02, 0, lib.qint8)
            halves.append((ops.linear_prepack(weight, lib.tensor(draw(rows))), lib.zeros(rows)))
        (ih, bias_ih), (hh, bias_hh) = halves
        return [ops.make_quantized_cell_params_dynamic(ih, hh, bias_ih, bias_hh, True)]

    values["q"] = quantised(lib, draw(2, 3, 3, 4, 4))
    values["held"] = lib.fbgemm_linear_quantize_weight(values["w"])
    values |= {"lstm": params(32), "gru": params(24), "cell": cell, "pack": pack, "lib": lib}
    return eval(program, values)


@pytest.mark.parametrize("program", PROGRAMS)
def test_as_pytorch(monkeypatch, program):
    engine(monkeypatch)
    expected, found = (outcome(lambda lib=lib: made(lib, program)) for lib in (torch, xtensor))
    if isinstance(expected, str) and isinstance(found, str):
        expected, found = expected.partition("This could")[0], found.partition("This could")[0]
    if "rnn_tanh_cell" not in program or not saturates():  # its numbers take all eight bits
        assert_alike(expected, found, 2e-3)


def test_engines():
    """The setting keeps what is set, and refuses what there is not."""
    found = []
    for lib in (torch, xtensor):
        backend, seen = lib.backends.quantized, []
        before = backend.engine
        try:
            for name in ("fbgemm", "none", "other"):
                try:
                    backend.engine = name
                except RuntimeError as error:
                    seen.append(str(error))
                seen.append(backend.engine)
            seen.append(sorted(backend.supported_engines))
            with pytest.raises(RuntimeError, match="Assignment not supported"):
                backend.supported_engines = []
        finally:
            backend.engine = before
        found.append(seen)
    assert found[1] == found[0]


def test_fused_observation():
    """Looking, choosing and rounding as one program: results, gradients and what is written."""
    x = draws(1).draw(4, 6) + 1
    for channels, symmetric, least, most in ((False, False, 0, 127), (True, True, -128, 127)):
        found = []
        for lib in (torch, xtensor):
            one, values = lib.ones(1, dtype=lib.int64), lib.tensor(x, requires_grad=True)
            limits = [lib.tensor([]) if channels else lib.tensor(s * float("inf")) for s in (1, -1)]
            scale, point = lib.ones(1), lib.zeros(1, dtype=lib.int32)
            for factor in (1.0, 1.5):
                how = (0.1, least, most, 0, channels, symmetric)
                made = lib.fused_moving_avg_obs_fake_quant(
                    values * factor, one, one, *limits, scale, point, *how
                )
            made.sum().backward()
            found.append([made, values.grad, *limits, scale, point])
        for theirs, ours in zip(*found, strict=True):
            np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5)
        assert found[0][0].grad_fn.name() == found[1][0].grad_fn.name()
