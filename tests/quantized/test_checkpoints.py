"""Checkpoints, copies and pickles of quantised modules: PyTorch's files here, ours there."""

import copy
import io
import pickle

import pytest

from .compared import LIBRARIES, assert_alike, draws, engine, flat, names, quantised, xtensor

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, which deprecates all of this

MODULES = {
    "nnq.Linear(3, 2)": ("linear", "static"),
    "nni.quantized.ConvReLU2d(2, 4, 3)": ("conv", "static"),
    "nnq.BatchNorm2d(4)": (None, "static"),
    "nnq.Embedding(5, 4)": ("table", "static"),
    "nnd.LSTM(3, 4, 2, bidirectional=True)": ("rnn", "dynamic"),
    "nnd.GRU(3, 4)": ("rnn", "dynamic"),
    "nnd.LSTMCell(3, 4)": ("rnn", "dynamic"),
    "nnd.LSTM(3, 4, dtype=lib.float16)": ("rnn", "dynamic"),
    "nnd.Linear(3, 2)": ("linear", "dynamic"),
}


def filled(lib, program, draw):
    """A module with weights that say something."""
    module = eval(program, names(lib))
    quantum = lambda values: lib.quantize_per_tensor(lib.tensor(values), 0.02, 0, lib.qint8)
    if hasattr(module, "get_weight"):
        halves = {**module.get_weight(), **module.get_bias()}
        made = {}
        for name in sorted(halves):
            values = draw(*halves[name].shape)
            real = "bias" in name or module.__dict__.get("dtype") is lib.float16
            made[name] = lib.tensor(values) if real else quantum(values)
        if "Cell" in program:
            kinds = {"weight": module.get_weight(), "bias": module.get_bias()}
            made = {kind: {name: made[name] for name in held} for kind, held in kinds.items()}
        module.set_weight_bias(made)
    elif hasattr(module, "set_weight_bias"):
        module.set_weight_bias(quantum(draw(*module.weight().shape)), lib.tensor(draw(*module.bias().shape)))
        module.scale, module.zero_point = 0.1, 30
    elif hasattr(module, "set_weight"):
        rows = lib.tensor(draw(5, 4))
        scales, points = lib.linspace(0.01, 0.02, 5), lib.linspace(90, 120, 5)
        module.set_weight(lib.quantize_per_channel(rows, scales, points, 0, lib.quint8))
    return module


def values_of(state):
    """Everything in a checkpoint, packed parameters unpacked."""
    found = []
    for value in state.values():
        if "ScriptObject" in type(value).__name__:
            state = value.__getstate__()[0]
            parts = state[4] if len(state) == 5 else [value]
            value = [half for part in parts for half in part.unpack()]
        found += flat(value)
    return found


@pytest.mark.parametrize("program", MODULES)
def test_files_go_both_ways(monkeypatch, program):
    engine(monkeypatch)
    made = [filled(lib, program, draws(0).draw) for lib in LIBRARIES]
    states = [module.state_dict() for module in made]
    assert list(states[0]) == list(states[1])
    assert_alike(values_of(states[0]), values_of(states[1]))
    for writer, reader in ((0, 1), (1, 0), (1, 1)):
        file = io.BytesIO()
        LIBRARIES[writer].save(states[writer], file)
        file.seek(0)
        packed = "LSTM" in program or "GRU" in program
        # PyTorch refuses its own packed parameters unless the file is trusted.
        loaded = LIBRARIES[reader].load(file, weights_only=reader == 1 or not packed)
        target = eval(program, names(LIBRARIES[reader]))
        target.load_state_dict(loaded)
        assert_alike(values_of(states[0]), values_of(target.state_dict()))


@pytest.mark.parametrize("program", MODULES)
def test_copies(program):
    """Deep copies and pickles, and whole modules in files."""
    module = filled(xtensor, program, draws(1).draw)
    file = io.BytesIO()
    xtensor.save(module, file)
    file.seek(0)
    loaded = xtensor.load(file, weights_only=False)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module)), loaded):
        assert repr(other) == repr(module)
        assert_alike(values_of(module.state_dict()), values_of(other.state_dict()))


def test_a_copy_computes():
    module = filled(xtensor, "nnq.Linear(3, 2)", draws(2).draw)
    x = quantised(xtensor, draws(3).draw(2, 3))
    other = copy.deepcopy(module)
    other.set_weight_bias(module.weight().clone().fill_(0.0), None)
    assert other(x).dequantize().abs().max().item() == 0.0
    assert module(x).dequantize().abs().max().item() > 0.0


@pytest.mark.parametrize(
    "state",
    [
        ((1, 2), "__torch__.torch.classes.quantized.LinearPackedParamsBase"),
        (("quantized_dynamic", [], [], [1], [1, 2]), "__torch__.torch.classes.rnn.CellParamsBase"),
        ((), "__torch__.torch.classes.other.Thing"),
        3,
    ],
)
def test_what_is_no_state_is_refused(state):
    made = xtensor.nn.quantized.dynamic.Linear(1, 1)._packed_params._packed_params
    with pytest.raises(TypeError):
        made.__setstate__(state)


def test_versions():
    """Checkpoints of before parameters were packed."""
    layer = xtensor.nn.quantized.Linear(3, 2)
    weight, bias = layer.weight().clone().fill_(2.0), xtensor.ones(2)
    old = {"weight": weight, "bias": bias, "scale": xtensor.tensor(0.5), "zero_point": xtensor.tensor(3)}
    layer._load_from_state_dict(dict(old), "", {"version": 1}, True, [], [], [])
    parts = {"_packed_params.weight": weight, "_packed_params.bias": bias}
    layer._packed_params._load_from_state_dict(parts, "_packed_params.", {"version": 2}, True, [], [], [])
    assert layer.weight().dequantize().tolist() == [[2.0] * 3] * 2
    assert (layer.scale, layer.zero_point) == (0.5, 3)
