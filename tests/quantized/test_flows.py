"""Models prepared, trained and converted as PyTorch does it: the same layers, observers, losses and results."""

import numpy as np
import pytest

from .compared import LIBRARIES, draws, engine, torch, xtensor

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, which deprecates all of this

FUSED = [["conv", "bn", "relu"], ["conv2", "bn2"], ["fc1", "r1"], ["fc2", "bn3"]]


def model_of(lib):
    nn, Q = lib.nn, lib.ao.quantization

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = Q.QuantStub(), Q.DeQuantStub()
            self.conv, self.bn, self.relu = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU()
            self.conv2, self.bn2 = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
            self.add = lib.ao.nn.quantized.FloatFunctional()
            self.act, self.sig, self.pool, self.drop = (
                nn.Hardswish(),
                nn.Sigmoid(),
                nn.MaxPool2d(2),
                nn.Dropout(0.0),
            )
            self.fc1, self.r1, self.ln = nn.Linear(16, 8), nn.ReLU(), nn.LayerNorm(8)
            self.fc2, self.bn3 = nn.Linear(8, 3), nn.BatchNorm1d(3)

        def forward(self, x):
            x = self.relu(self.bn(self.conv(self.quant(x))))
            x = self.pool(self.act(self.add.add(x, self.bn2(self.conv2(x)))))
            x = self.ln(self.drop(self.r1(self.fc1(x.flatten(1)))))
            return self.dequant(self.sig(self.bn3(self.fc2(x))))

    return Model()


def state_of(draw, like):
    """Parameters and statistics that are drawn, and fit."""
    made = {}
    for key, value in like.state_dict().items():
        if value.dtype is torch.int64:
            made[key] = np.zeros((), np.int64)
        elif "var" in key or (value.dim() == 1 and key.endswith("weight")):
            made[key] = np.abs(draw(*value.shape)) * 0.3 + 0.7
        else:
            made[key] = draw(*value.shape) * 0.4
    return made


def kinds(model):
    return [(name, type(part).__name__) for name, part in model.named_modules()]


def assert_same(path, expected, found):
    """Dicts, lists and arrays, alike to what float32 allows."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), path
        for key in expected:
            assert_same(f"{path}.{key}", expected[key], found[key])
    elif isinstance(expected, np.ndarray):
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype), path
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-4, err_msg=path)
    else:
        assert found == expected, path


def arrays(state):
    # Numbers at the border of two bins fall into either.
    return {key: np.asarray(value.tolist()) for key, value in state.items() if "histogram" not in key}


@pytest.mark.parametrize("backend", ["fbgemm", "qnnpack"])
def test_static(monkeypatch, backend):
    """Trained, observed and converted: histograms, layers, checkpoints and results."""
    engine(monkeypatch)
    draw = draws(0).draw
    state, batches = state_of(draw, model_of(torch)), [draw(8, 2, 4, 4) for _ in range(2)]
    found = []
    for lib in LIBRARIES:
        Q = lib.ao.quantization
        model = model_of(lib)
        model.load_state_dict({k: lib.tensor(v) for k, v in state.items()})
        model = Q.fuse_modules(model.eval(), FUSED)
        model.qconfig = Q.get_default_qconfig(backend)
        Q.prepare(model, inplace=True)
        for batch in batches:
            model(lib.tensor(batch))
        made = Q.convert(model)
        seen = {k: v for k, v in model.state_dict().items() if "activation_post" in k}
        scales = {k: np.asarray(float(v)) for k, v in made.state_dict().items() if k.endswith(".scale")}
        result = made(lib.tensor(batches[0])).numpy()
        found.append(
            {
                "seen": arrays(seen),
                "prepared": kinds(model),
                "converted": kinds(made),
                "keys": list(made.state_dict()),
                "scales": scales,
            }
        )
        found[-1]["result"] = result
    # A quantum of the sigmoid is 1 / 256.
    ours, theirs = found[1].pop("result"), found[0].pop("result")
    assert_same("", found[0], found[1])
    assert np.abs(ours - theirs).max() <= 2 / 256


@pytest.mark.parametrize("version", [0, 1])
def test_training(version):
    """Steps of training with rounded weights: layers, losses and everything in the checkpoint.

    A number at the border of what is rounded has a gradient or none: the draws have none there.
    """
    draw = draws(3).draw
    state, batches = state_of(draw, model_of(torch)), [draw(8, 2, 4, 4) for _ in range(2)]
    found = []
    for lib in LIBRARIES:
        Q = lib.ao.quantization
        model = model_of(lib)
        model.load_state_dict({k: lib.tensor(v) for k, v in state.items()})
        model = Q.fuse_modules_qat(model.train(), FUSED)
        model.qconfig = Q.get_default_qat_qconfig("fbgemm", version)
        Q.prepare_qat(model, inplace=True)
        optimizer, losses = lib.optim.SGD(model.parameters(), 1e-2), []
        for batch in batches:
            optimizer.zero_grad()
            loss = (model(lib.tensor(batch)) ** 2).sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.apply(Q.disable_observer)
        model.apply(lib.ao.nn.intrinsic.qat.freeze_bn_stats)
        made = Q.convert(model.eval())
        found.append(
            {
                "losses": np.asarray(losses),
                "prepared": kinds(model),
                "state": arrays(model.state_dict()),
                "converted": kinds(made),
                "keys": list(made.state_dict()),
            }
        )
    assert_same("", found[0], found[1])


def wrapped(lib, layer, call):
    Q = lib.ao.quantization

    class Wrapped(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.layer, self.dequant = Q.QuantStub(), layer, Q.DeQuantStub()

        def forward(self, x):
            return self.dequant(call(self.layer, self.quant(x)))

    return Wrapped().eval()


LAYERED = {
    "LSTM": (lambda lib: lib.nn.LSTM(3, 4, 2, bidirectional=True), lambda layer, x: layer(x)[0], (3, 2, 3)),
    "attention": (lambda lib: lib.nn.MultiheadAttention(8, 2), lambda layer, x: layer(x, x, x)[0], (3, 2, 8)),
}


@pytest.mark.parametrize("name", LAYERED)
def test_layers_of_layers(monkeypatch, name):
    """Layers of several layers are taken apart, seen, and put together of quantised ones."""
    engine(monkeypatch)
    make, call, size = LAYERED[name]
    draw = draws(2).draw
    state = {k: draw(*v.shape) * 0.5 for k, v in make(torch).state_dict().items()}
    x, found = draw(*size), []
    for lib in LIBRARIES:
        Q = lib.ao.quantization
        layer = make(lib)
        layer.load_state_dict({k: lib.tensor(v) for k, v in state.items()})
        model = wrapped(lib, layer, call)
        model.qconfig = Q.QConfig(Q.default_observer, Q.default_weight_observer)
        Q.prepare(model, inplace=True)
        model(lib.tensor(x))
        made = Q.convert(model)
        found.append(({"kinds": kinds(made), "keys": list(made.state_dict())}, made(lib.tensor(x)).numpy()))
    assert_same("", found[0][0], found[1][0])
    quantum = float(np.abs(found[0][1]).max()) / 60
    assert np.abs(found[0][1] - found[1][1]).max() <= 2 * quantum


def test_a_hook_stays():
    """Hooks of a model's own layers are those of what takes their place."""
    Q, nn = xtensor.ao.quantization, xtensor.nn
    model, calls = nn.Sequential(nn.Linear(2, 2)).eval(), []
    model[0].register_forward_hook(lambda *given: calls.append(1))
    made = Q.quantize_dynamic(model)
    made(xtensor.ones(1, 2))
    assert calls == [1]
    assert not hasattr(made[0], "qconfig")
