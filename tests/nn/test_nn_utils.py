"""Parametrizations, weight and spectral norm, pruning, fusion and packing against PyTorch's, from the same weights."""

import copy
import pickle

import numpy as np
import pytest

import xtensor
from xtensor import nn

RNG = np.random.default_rng(0)
INPUT = RNG.normal(size=(4, 5)).astype(np.float32)


def linear(lib, inputs=5, outputs=3):
    """A linear layer of either library with the same weights."""
    module = lib.nn.Linear(inputs, outputs)
    rng = np.random.default_rng(1)
    state = {
        "weight": rng.normal(size=(outputs, inputs)).astype(np.float32),
        "bias": rng.normal(size=outputs).astype(np.float32),
    }
    module.load_state_dict({name: lib.tensor(value) for name, value in state.items()})
    return module


def symmetric(lib):
    class Symmetric(lib.nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).transpose(-1, -2)

        def right_inverse(self, x):
            return x.triu()

    module = linear(lib, 5, 5)
    lib.nn.utils.parametrize.register_parametrization(module, "weight", Symmetric())
    return module


def globally(lib):
    module = lib.nn.Sequential(linear(lib, 5, 5), linear(lib, 5, 3))
    places = [(module[0], "weight"), (module[1], "weight")]
    prune = lib.nn.utils.prune
    prune.global_unstructured(places, prune.L1Unstructured, amount=0.5)
    return module


def pruned_twice(lib):
    module = linear(lib)
    lib.nn.utils.prune.l1_unstructured(module, "weight", 0.4)
    return lib.nn.utils.prune.ln_structured(module, "weight", 1, 1, 0)


CASES = {
    "weight_norm": lambda lib: lib.nn.utils.parametrizations.weight_norm(linear(lib)),
    "spectral_norm": lambda lib: lib.nn.utils.parametrizations.spectral_norm(linear(lib)),
    "orthogonal": lambda lib: lib.nn.utils.parametrizations.orthogonal(linear(lib)),
    "orthogonal, square": lambda lib: lib.nn.utils.parametrizations.orthogonal(linear(lib, 5, 5)),
    "cayley": lambda lib: lib.nn.utils.parametrizations.orthogonal(
        linear(lib, 5, 5), orthogonal_map="cayley"
    ),
    "householder, no base": lambda lib: lib.nn.utils.parametrizations.orthogonal(
        linear(lib, 5, 7), orthogonal_map="householder", use_trivialization=False
    ),
    "symmetric": symmetric,
    "older weight_norm": lambda lib: lib.nn.utils.weight_norm(linear(lib)),
    "older spectral_norm": lambda lib: lib.nn.utils.spectral_norm(linear(lib)),
    "l1": lambda lib: lib.nn.utils.prune.l1_unstructured(linear(lib), "weight", 0.4),
    "ln": lambda lib: lib.nn.utils.prune.ln_structured(linear(lib), "weight", 2, 2, 0),
    "twice": pruned_twice,
    "global": globally,
}


@pytest.fixture
def torch(torch):
    """PyTorch with `nn.utils.prune`, which it imports only on demand."""
    pytest.importorskip("torch.nn.utils.prune")
    return torch


def same(ours, theirs, tolerance=1e-5):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_as_pytorchs(torch, name):
    theirs, ours = CASES[name](torch), CASES[name](xtensor)
    assert repr(theirs) == repr(ours)
    assert list(theirs.state_dict()) == list(ours.state_dict())
    ours.load_state_dict({k: xtensor.tensor(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    for _ in range(2):
        expected, got = theirs(torch.tensor(INPUT)), ours(xtensor.tensor(INPUT))
        same(got, expected)
    expected.square().sum().backward()
    got.square().sum().backward()
    for (name, a), (other, b) in zip(theirs.named_parameters(), ours.named_parameters(), strict=True):
        assert name == other
        same(b.grad, a.grad, 1e-4)
    for key, value in theirs.state_dict().items():
        same(ours.state_dict()[key], value, 1e-4)


def test_parametrizations_are_assigned_removed_and_copied():
    module = nn.utils.parametrizations.weight_norm(linear(xtensor))
    weight = xtensor.full((3, 5), 2.0)
    module.weight = weight
    same(module.weight, weight)
    assert type(module).__name__ == "ParametrizedLinear"
    with nn.utils.parametrize.cached():
        assert module.weight is module.weight
    same(copy.deepcopy(module)(xtensor.tensor(INPUT)), module(xtensor.tensor(INPUT)))
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        pickle.dumps(module)
    nn.utils.parametrize.remove_parametrizations(module, "weight")
    assert type(module) is nn.Linear
    assert isinstance(module.weight, nn.Parameter)
    same(module.weight, weight)


def test_pruning_is_removed():
    module = nn.utils.prune.l1_unstructured(linear(xtensor), "weight", 0.4)
    assert nn.utils.prune.is_pruned(module)
    weight = module.weight.detach().clone()
    nn.utils.prune.remove(module, "weight")
    assert not nn.utils.prune.is_pruned(module)
    assert [name for name, _ in module.named_parameters()] == ["bias", "weight"]
    same(module.weight, weight)
    with pytest.raises(ValueError, match="has to be pruned before pruning can be removed"):
        nn.utils.prune.remove(module, "weight")


@pytest.mark.parametrize("structured", [True, False])
def test_random_pruning_prunes_as_many_as_asked(structured):
    module = nn.Linear(6, 4)
    if structured:
        nn.utils.prune.random_structured(module, "weight", 1, 0)
        assert int((module.weight_mask.sum(1) == 0).sum()) == 1
    else:
        nn.utils.prune.random_unstructured(module, "weight", 0.25)
        assert int((module.weight_mask == 0).sum()) == 6


def test_fused_layers_compute_the_same():
    conv, bn = nn.Conv2d(3, 4, 3).eval(), nn.BatchNorm2d(4).eval()
    bn.running_mean.normal_()
    bn.running_var.uniform_(0.5, 1.5)
    x = xtensor.randn(2, 3, 5, 5)
    same(nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)))
    layer, norm = linear(xtensor).eval(), nn.BatchNorm1d(3).eval()
    norm.running_mean.normal_()
    fused = nn.utils.fuse_linear_bn_eval(layer, norm)
    same(fused(xtensor.tensor(INPUT)), norm(layer(xtensor.tensor(INPUT))))


def test_functional_call_and_skip_init():
    module = linear(xtensor)
    doubled = {name: value * 2 for name, value in module.state_dict().items()}
    with pytest.warns(FutureWarning, match="is deprecated"):
        got = nn.utils.stateless.functional_call(module, doubled, (xtensor.tensor(INPUT),))
    same(got, module(xtensor.tensor(INPUT)) * 2)
    made = nn.utils.skip_init(nn.Linear, 5, 4)
    assert made.weight.shape == (4, 5)
    assert made.weight.device.type == "cpu"


LENGTHS = [3, 5, 2]


@pytest.mark.parametrize("batch_first", [True, False])
def test_packed_sequences(torch, batch_first):
    made = {}
    for lib in (torch, xtensor):
        rnn = lib.nn.utils.rnn
        parts = [lib.arange(float(n * 2)).reshape(n, 2) + n for n in LENGTHS]
        padded = rnn.pad_sequence(parts, batch_first=batch_first, padding_value=-1.0)
        packed = rnn.pack_padded_sequence(padded, LENGTHS, batch_first, enforce_sorted=False)
        back, lengths = rnn.pad_packed_sequence(packed, batch_first, padding_value=7.0, total_length=6)
        unpacked = rnn.unpack_sequence(packed)
        made[lib] = [padded, *packed, back, lengths, *unpacked]
    for a, b in zip(made[torch], made[xtensor], strict=True):
        same(b, a)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_sequences_are_padded_wherever_they_are(torch, batch_first, side):
    """Values that are there are put side by side by NumPy; what has a gradient, another dtype or is an alias is not."""
    drawn = [np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32) for n in (4, 1, 7)]
    told = dict(batch_first=batch_first, padding_side=side)
    made = {}
    for lib in (torch, xtensor):
        pad = lib.nn.utils.rnn.pad_sequence
        parts = [lib.tensor(values) for values in drawn]
        leaves = [part.clone().requires_grad_() for part in parts]
        pad([leaf * 2 for leaf in leaves], **told).sum().backward()
        over = [values.copy() for values in drawn]
        first = pad([lib.from_numpy(values) for values in over], **told)
        over[0][0, 0] = 99
        made[lib] = [
            pad(parts, padding_value=-1.5, **told),
            pad([part.long() for part in parts], padding_value=-1, **told),
            pad([part.t().contiguous().t()[:, :2] for part in parts], **told),
            pad([part * 2 for part in parts], **told),
            pad([parts[0], parts[1].double(), parts[2]], **told),
            pad([part[:, 0] > 0 for part in parts], padding_value=True, **told),
            first,
            *[leaf.grad for leaf in leaves],
        ]
        with pytest.raises(RuntimeError):
            pad([parts[0], lib.zeros(2, 4)], **told)
    for a, b in zip(made[torch], made[xtensor], strict=True):
        same(b, a)


@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_packed_recurrence(torch, kind):
    """Bidirectional layers over a packed batch, with the gradients of input and weights."""
    theirs = getattr(torch.nn, kind)(2, 3, num_layers=2, bidirectional=True)
    ours = getattr(nn, kind)(2, 3, num_layers=2, bidirectional=True)
    ours.load_state_dict({k: xtensor.tensor(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    values = np.random.default_rng(2).normal(size=(5, 3, 2)).astype(np.float32)
    results = []
    for lib, module in ((torch, theirs), (xtensor, ours)):
        x = lib.tensor(values).requires_grad_()
        packed = lib.nn.utils.rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
        output, last = module(packed)
        last = last if isinstance(last, tuple) else (last,)
        (output.data.square().sum() + sum(state.sum() for state in last)).backward()
        results.append([output.data, *last, x.grad, *[p.grad for p in module.parameters()]])
    for a, b in zip(*results, strict=True):
        same(b, a, 1e-4)


def test_dropout_between_recurrent_layers():
    rnn = nn.LSTM(3, 4, num_layers=2, dropout=1.0)
    x = xtensor.randn(2, 1, 3)
    output, _ = rnn(x)
    others, _ = rnn(x + 1)  # the second layer sees zeros whatever the input
    same(output, others)
    assert not np.allclose(rnn.eval()(x)[0].detach().numpy(), output.detach().numpy())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_gradients_of_convolutions_as_functions(n):
    convolution = getattr(nn.functional, f"conv{n}d")
    x = xtensor.randn(2, 4, *[6] * n, requires_grad=True)
    weight = xtensor.randn(4, 2, *[3] * n, requires_grad=True)
    out = convolution(x, weight, None, 2, 1, 1, 2)
    seed = xtensor.randn(*out.shape)
    out.backward(seed)
    options = dict(stride=2, padding=1, groups=2)
    same(getattr(nn.grad, f"conv{n}d_input")(x.shape, weight, seed, **options), x.grad)
    same(getattr(nn.grad, f"conv{n}d_weight")(x, weight.shape, seed, **options), weight.grad)


def test_circular_modules_are_called_functionally(torch):
    def call(T):
        class Circle(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = T.nn.Linear(1, 1)
                self.layer.whole = self

            def forward(self, value):
                return self.layer(value)

        values = {"layer.whole.layer.weight": T.tensor([[2.0]]), "layer.bias": T.tensor([1.0])}
        return T.func.functional_call(Circle(), values, T.tensor([[3.0]]), tie_weights=False).item()

    assert call(xtensor) == call(torch) == 7


def test_empty_sequences_are_not_packed(torch):
    for T in (xtensor, torch):
        with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
            T.nn.utils.rnn.pack_padded_sequence(T.zeros(0, 0), [])
        with pytest.raises(RuntimeError, match="Cannot pack empty tensors"):
            T.nn.utils.rnn.pack_padded_sequence(T.zeros(0, 3), T.zeros(2, 2, dtype=T.int64))
