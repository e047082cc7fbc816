"""Quantised layers and functions compute what PyTorch's do, to a quantum."""

import numpy as np
import pytest

from .compared import assert_alike, draws, engine, names, outcome, quantised, torch, weight, xtensor

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, which deprecates all of this

LAYERS = [
    ("nnq.Linear(8, 5)", (6, 8), (5, 8), 5),
    ("nni.quantized.LinearReLU(8, 5)", (2, 3, 8), (5, 8), 5),
    ("nnq.Conv1d(4, 6, 3, stride=2, padding=1)", (3, 4, 9), (6, 4, 3), 6),
    ("nnq.Conv2d(4, 6, 3, stride=2, padding=1, groups=2)", (3, 4, 7, 6), (6, 2, 3, 3), 6),
    ("nnq.Conv2d(4, 6, 3, padding=1, padding_mode='reflect')", (3, 4, 7, 6), (6, 4, 3, 3), 6),
    ("nni.quantized.ConvReLU3d(4, 6, 2, dilation=2)", (2, 4, 5, 4, 6), (6, 4, 2, 2, 2), 6),
    ("nnd.Linear(8, 5)", (6, 8), (5, 8), 5),
    ("nni.quantized.dynamic.LinearReLU(8, 5)", (6, 8), (5, 8), 5),
]


@pytest.mark.parametrize(("program", "size", "weights", "outputs"), LAYERS)
def test_layers(monkeypatch, program, size, weights, outputs):
    engine(monkeypatch)
    draw = draws().draw
    x, w, b = draw(*size), draw(*weights) * 0.5, draw(outputs)

    def run(lib):
        layer = eval(program, names(lib))
        layer.set_weight_bias(weight(lib, w), lib.tensor(b))
        layer.scale, layer.zero_point = 0.1, 60
        return layer(lib.tensor(x) if "dynamic" in type(layer).__module__ else quantised(lib, x))

    assert_alike(outcome(lambda: run(torch)), outcome(lambda: run(xtensor)))


REAL = [
    ("ConvTranspose1d(4, 6, 3, stride=2, padding=1)", (3, 4, 9), (4, 6, 3)),
    ("ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2)", (3, 4, 7, 6), (4, 3, 3, 3)),
    ("ConvTranspose2d(4, 6, 3, stride=2, padding=1, dilation=2)", (3, 4, 7, 6), (4, 6, 3, 3)),
    ("ConvTranspose3d(4, 6, 2, stride=2)", (2, 4, 3, 4, 3), (4, 6, 2, 2, 2)),
    ("Conv2d(4, 6, 3, padding=1)", (3, 4, 7, 6), (6, 4, 3, 3)),
]


@pytest.mark.parametrize(("program", "size", "weights"), REAL)
def test_as_real_numbers(program, size, weights):
    """Convolutions give what those of the same real numbers give; PyTorch's own engines saturate in some of these."""
    draw = draws(1).draw
    x, w = draw(*size), draw(*weights) * 0.3
    q, kernel = quantised(xtensor, x), weight(xtensor, w, channels=False)
    real = eval(f"xtensor.nn.{program}")
    real.weight = xtensor.nn.Parameter(kernel.dequantize())
    expected = real(q.dequantize()).detach()
    layer = eval(f"xtensor.ao.nn.quantized.{program}")
    layer.set_weight_bias(kernel, real.bias)
    layer.scale, layer.zero_point = 0.1, 120
    found = layer(q)
    assert (found.dequantize() - expected.clamp(-12, 13.5)).abs().max().item() < 0.051
    layer = eval(f"xtensor.ao.nn.quantized.dynamic.{program}")
    layer.set_weight_bias(kernel, real.bias)
    close = (layer(q.dequantize(), reduce_range=False) - expected).abs().max().item()
    assert close < 0.2


MODULES = """nnq.LayerNorm([6], v6, v6, .05, 100)
nnq.GroupNorm(2, 4, v, v, .05, 100)
nnq.InstanceNorm2d(4, v, v, .05, 100)
nnq.Hardswish(.05, 10)
nnq.ELU(.05, 20)
nnq.LeakyReLU(.05, 20)
nnq.Sigmoid(.01, 3)
nnq.Softmax(1, .01, 3)
nnq.ReLU6()
nnq.BatchNorm2d(4)
nni.quantized.BNReLU2d(4)""".split("\n")


@pytest.mark.parametrize("program", MODULES)
def test_modules(program):
    draw = draws(2).draw
    x, v, v6, mean, var = draw(3, 4, 5, 6), draw(4), draw(6), draw(4), np.abs(draw(4)) + 0.5

    def run(lib):
        parameter = lambda values: lib.nn.Parameter(lib.tensor(values))
        layer = eval(program, names(lib) | {"v": parameter(v), "v6": parameter(v6)})
        if hasattr(layer, "running_mean") and layer.running_mean is not None:
            layer.weight, layer.bias = parameter(v), parameter(v)
            layer.running_mean, layer.running_var = lib.tensor(mean), lib.tensor(var)
            layer.scale, layer.zero_point = lib.tensor(0.05), lib.tensor(90)
        return layer(quantised(lib, x))

    assert_alike(outcome(lambda: run(torch)), outcome(lambda: run(xtensor)))


FUNCTIONS = """f.add(a, c)
f.mul(a, c)
f.add_relu(a, c)
f.cat([a, c], 1)
f.add_scalar(a, .7)
f.add_scalar(a, 100.)
f.add_scalar(a, -100.)
f.mul_scalar(a, .7)
f.mul_scalar(a, -.7)
f.mul_scalar(a, 0.)
f.matmul(a, c.transpose(2, 3))
f(a)
F.avg_pool2d(a, 2)
F.adaptive_avg_pool2d(a, 2)
F.max_pool2d(a, 2)
F.interpolate(a, scale_factor=2)
F.celu(a, .05, 10)
F.leaky_relu(a, .1)
F.leaky_relu(a, .1, scale=.05, zero_point=3)
F.hardtanh(a, -1., 1.)
F.hardswish(a, .05, 10)
F.threshold(a, .51, .1)
F.elu(a, .05, 20)
F.hardsigmoid(a)
F.clamp(a, -.5, .5)
F.conv2d(a, kernel, None, padding=1, scale=.1, zero_point=60)
F.linear(a[0, 0], table, None, .1, 60)
F.clamp(x, 0., 1.)
F.max_pool2d(a, 2, return_indices=True)
F.conv2d(a, a, None)
F.interpolate(x, 2)
ops.add(a, c, .1, 60)
ops.mul_relu(a, c, .1, 3)
ops.batch_norm2d(a, None, None, x[0, :, 0, 0], x[0, :, 0, 0], 1e-5, .1, 60)
ops.linear(a[0, 0], ops.linear_prepack(table, None), .1, 60)
ops.linear_dynamic(x[0, 0], ops.linear_prepack(table, None))
ops.linear_unpack(ops.linear_prepack(table, None))
ops.linear_prepack(a, None)
ops.linear_dynamic_fp16(x[0, 0], ops.linear_prepack_fp16(x[0, 1], None))
ops.cat_relu([a, c], 1, .1, 3)""".split("\n")


@pytest.mark.parametrize("program", FUNCTIONS)
def test_functions(monkeypatch, program):
    engine(monkeypatch)
    draw = draws(3).draw
    x, y, kernel, table = draw(3, 4, 7, 6), draw(3, 4, 7, 6), draw(6, 4, 3, 3) * 0.5, draw(5, 6) * 0.5

    def run(lib):
        f = lib.ao.nn.quantized.QFunctional()
        f.scale, f.zero_point = 0.06, 70
        given = {"f": f, "x": lib.tensor(x), "a": quantised(lib, x), "c": quantised(lib, y, 0.03, 90)}
        given |= {"kernel": weight(lib, kernel), "table": weight(lib, table)}
        return eval(program, names(lib) | given)

    assert_alike(outcome(lambda: run(torch)), outcome(lambda: run(xtensor)))


@pytest.mark.parametrize("kind", ["Embedding", "EmbeddingBag"])
def test_tables_of_rows(kind):
    rows = draws(4).draw(10, 8)

    def run(lib):
        layer = getattr(lib.nn, kind)(10, 8, **({"mode": "sum"} if kind == "EmbeddingBag" else {}))
        layer.weight = lib.nn.Parameter(lib.tensor(rows))
        layer.qconfig = lib.ao.quantization.float_qparams_weight_only_qconfig
        made = getattr(lib.ao.nn.quantized, kind).from_float(layer)
        indices = lib.tensor([1, 3, 5, 9, 0, 2])
        if kind == "Embedding":
            return made(indices), made(indices.reshape(2, 3)), made.weight().dequantize()
        each = lib.arange(6).float()
        offsets = lib.tensor([0, 2, 2, 5])
        return made(indices, offsets), made(indices.reshape(2, 3)), made(indices, offsets, each)

    assert_alike(outcome(lambda: run(torch)), outcome(lambda: run(xtensor)))


RECURRENT = [
    ("LSTM", {}, "qint8", False),
    ("LSTM", {"num_layers": 2, "bidirectional": True}, "qint8", True),
    ("LSTM", {"batch_first": True}, "float16", False),
    ("GRU", {"num_layers": 2, "bidirectional": True}, "qint8", False),
    ("LSTMCell", {}, "qint8", False),
    ("GRUCell", {}, "qint8", False),
    ("RNNCell", {"nonlinearity": "relu"}, "qint8", False),
]


@pytest.mark.parametrize(("kind", "options", "dtype", "packed"), RECURRENT)
def test_recurrent(monkeypatch, kind, options, dtype, packed):
    """Over sequences, packed ones of several lengths, and steps."""
    engine(monkeypatch)
    draw = draws(5).draw
    x = draw(*((3, 6) if "Cell" in kind else (7, 3, 6)))
    state = {
        k: draw(*v.shape) * 0.4 for k, v in getattr(torch.nn, kind)(6, 5, **options).state_dict().items()
    }

    def run(lib):
        layer = getattr(lib.nn, kind)(6, 5, **options)
        layer.load_state_dict({k: lib.tensor(v) for k, v in state.items()})
        model = lib.ao.quantization.quantize_dynamic(lib.nn.Sequential(layer), dtype=getattr(lib, dtype))
        made = model[0]
        if packed:
            pack = lib.nn.utils.rnn.pack_padded_sequence
            output, last = made(pack(lib.tensor(x), [3, 7, 4], enforce_sorted=False))
            return output.data, last
        first = made(lib.tensor(x))
        return (first, made(lib.tensor(x), first)) if "Cell" in kind else first

    assert_alike(outcome(lambda: run(torch)), outcome(lambda: run(xtensor)), 2e-3)
