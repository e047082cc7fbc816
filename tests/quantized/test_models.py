"""Models quantised three ways, products of integers against PyTorch's, and fake quantisation's gradients."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

import xtensor
from xtensor import nn
from xtensor.ao import quantization as Q
from xtensor.nn import functional as F
from xtensor.quantized.products import Window, convolved, multiplied

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, which deprecates all of this


def quantised(lib, values, kind, *parameters):
    make = lib.quantize_per_tensor if kind == "quint8" else lib.quantize_per_channel
    return make(lib.tensor(values), *parameters, getattr(lib, kind))


def given(lib, x, w):
    channels = len(w)
    scales, points = lib.linspace(0.02, 0.03, channels), lib.zeros(channels, dtype=lib.int64)
    return quantised(lib, x, "quint8", 0.05, 60), quantised(lib, w, "qint8", scales, points, 0)


@pytest.mark.parametrize("relu", [False, True])
def test_products(relu):
    """Linear layers and convolutions as fbgemm's, to the last quantum at most."""
    engine, torch.backends.quantized.engine = torch.backends.quantized.engine, "fbgemm"
    rng = np.random.default_rng(0)
    draw = lambda *shape: rng.standard_normal(shape).astype(np.float32)
    x, w, b, image, kernel = draw(6, 8), draw(5, 8), draw(5), draw(2, 4, 6, 6), draw(6, 4, 3, 3)
    intrinsic = torch.ao.nn.intrinsic.quantized
    layer = (intrinsic.LinearReLU if relu else torch.ao.nn.quantized.Linear)(8, 5)
    conv = (intrinsic.ConvReLU2d if relu else torch.ao.nn.quantized.Conv2d)(4, 6, 3, stride=2, padding=1)
    try:
        a, weight = given(torch, x, w)
        layer.set_weight_bias(weight, torch.tensor(b))
        layer.scale, layer.zero_point = 0.08, 55
        expected = layer(a).int_repr().numpy().astype(int)
        i, k = given(torch, image, kernel)
        conv.set_weight_bias(k, torch.tensor(draw(6)))
        bias = conv.bias().detach().numpy()
        conv.scale, conv.zero_point = 0.1, 60
        convolution = conv(i).int_repr().numpy().astype(int)
    finally:
        torch.backends.quantized.engine = engine
    found = multiplied(*given(xtensor, x, w), xtensor.tensor(b), 0.08, 55, relu).int_repr().numpy()
    assert np.abs(found - expected).max() <= 1
    how = (Window((2, 2), (1, 1), (1, 1)), 0.1, 60, relu)
    found = convolved(*given(xtensor, image, kernel), xtensor.tensor(bias), *how).int_repr().numpy()
    assert np.abs(found - convolution).max() <= 1


@pytest.mark.parametrize("point", [0, 7])
def test_a_convolution_is_that_of_the_real_numbers(point):
    """Whatever zero points the weight has."""
    rng = np.random.default_rng(1)
    scales, points = xtensor.linspace(0.02, 0.03, 6), xtensor.arange(6) * point
    x = quantised(xtensor, rng.standard_normal((2, 4, 6, 6)).astype("f"), "quint8", 0.05, 60)
    w = quantised(xtensor, rng.standard_normal((6, 4, 3, 3)).astype("f"), "qint8", scales, points, 0)
    real = F.conv2d(x.dequantize(), w.dequantize(), stride=2, padding=1)
    expected = xtensor.quantize_per_tensor(real, 0.1, 60, xtensor.quint8).int_repr().numpy().astype(int)
    found = convolved(x, w, None, Window((2, 2), (1, 1), (1, 1)), 0.1, 60).int_repr().numpy()
    assert np.abs(found - expected).max() <= 1


@pytest.mark.parametrize("channels", [False, True])
def test_fake_quantisation(channels):
    found = []
    for lib in (torch, xtensor):
        x = lib.tensor([[-1.0, 0.26, 9.0, 0.25], [1.0, 2.0, -3.0, 0.5]], requires_grad=True)
        if channels:
            points = lib.tensor([10, 3], dtype=lib.int32)
            y = lib.fake_quantize_per_channel_affine(x, lib.tensor([0.1, 0.5]), points, 0, 0, 63)
        else:
            y = lib.fake_quantize_per_tensor_affine(x, 0.1, 11, 0, 63)
        name = y.grad_fn.name()
        (y * y).sum().backward()
        found.append((name, y.tolist(), x.grad.tolist()))
    assert found[0] == found[1]


OBSERVERS = [
    ("MinMaxObserver", {}),
    ("MinMaxObserver", {"reduce_range": True}),
    ("MinMaxObserver", {"dtype": "qint8", "qscheme": "per_tensor_symmetric"}),
    ("MinMaxObserver", {"qscheme": "per_tensor_symmetric"}),
    ("MovingAverageMinMaxObserver", {"averaging_constant": 0.1}),
    ("PerChannelMinMaxObserver", {"dtype": "qint8", "qscheme": "per_channel_symmetric"}),
    ("MovingAveragePerChannelMinMaxObserver", {"ch_axis": 1}),
]


@pytest.mark.parametrize(("name", "options"), OBSERVERS)
def test_observers(name, options):
    found = []
    for lib in (torch, xtensor):
        given = {key: getattr(lib, v) if isinstance(v, str) else v for key, v in options.items()}
        observer = getattr(lib.ao.quantization, name)(**given)
        for factor in (1.0, 1.5):
            observer(lib.tensor([[-0.3, 0.7, 2.0], [1.0, 4.0, -1.0]]) * factor)
        scale, point = observer.calculate_qparams()
        found.append((scale.flatten().tolist(), point.flatten().tolist()))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-6)
    assert found[1][1] == found[0][1]


class Digits(nn.Module):
    """A small convolutional network between two marks."""

    def __init__(self):
        super().__init__()
        self.quant, self.dequant = Q.QuantStub(), Q.DeQuantStub()
        self.conv, self.bn, self.relu = nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()
        self.pool, self.flatten = nn.MaxPool2d(2), nn.Flatten()
        self.fc1, self.relu1, self.fc2 = nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10)

    def forward(self, x):
        x = self.pool(self.relu(self.bn(self.conv(self.quant(x)))))
        return self.dequant(self.fc2(self.relu1(self.fc1(self.flatten(x)))))


def train(model, images, labels, epochs, rate):
    optimizer = xtensor.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        for at in range(0, len(labels) - 127, 128):
            optimizer.zero_grad()
            F.cross_entropy(model(images[at : at + 128]), labels[at : at + 128]).backward()
            optimizer.step()


def test_digits_three_ways():
    """The network of the digits keeps its accuracy within half a percent, quantised each way."""
    xtensor.manual_seed(0)
    digits = load_digits()
    images = xtensor.tensor(digits.images, dtype=xtensor.float32).div(16).unsqueeze(1)
    labels = xtensor.tensor(digits.target)
    model = Digits()
    train(model, images[:1024], labels[:1024], 30, 3e-3)
    model.eval()

    def accuracy(network):
        # Half a percent of the 773 left is three: with fewer, it would be the rounding of a CPU that tells.
        with xtensor.no_grad():
            return (network(images[1024:]).argmax(1) == labels[1024:]).float().mean().item()

    wanted = accuracy(model)
    assert wanted > 0.9
    dynamic = Q.quantize_dynamic(model, {nn.Linear})
    assert type(dynamic.fc1) is xtensor.ao.nn.quantized.dynamic.Linear
    assert accuracy(dynamic) >= wanted - 0.005

    fused = Q.fuse_modules(model, [["conv", "bn", "relu"], ["fc1", "relu1"]])
    fused.qconfig = Q.get_default_qconfig("x86")
    static = Q.quantize(fused, lambda m: m(images[:256]), ())
    assert static.fc1.weight().dtype is xtensor.qint8
    assert accuracy(static) >= wanted - 0.005

    trained = Q.fuse_modules_qat(model.train(), [["conv", "bn", "relu"], ["fc1", "relu1"]])
    trained.qconfig = Q.get_default_qat_qconfig("x86")
    trained = Q.prepare_qat(trained)
    train(trained, images[:1024], labels[:1024], 2, 3e-4)
    assert accuracy(Q.convert(trained.eval())) >= wanted - 0.005
