"""Modules, parameters, buffers, containers, hooks, states; layers of every kind; initialization and reparametrization."""

from typing import Any

import xtensor
import xtensor.nn.functional as F
from xtensor import Tensor, nn
from xtensor.nn.utils import parametrizations, parametrize, rnn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.scale = nn.Parameter(xtensor.ones(width))
        self.register_buffer("mean", xtensor.zeros(width))
        self.shift = nn.Buffer(xtensor.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.linear(self.norm(x)) + self.shift
        return x + self.scale * F.gelu(hidden)


model = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), Block(64)
)
layers = nn.ModuleList([nn.Linear(2, 2), nn.Dropout(0.1)])
named = nn.ModuleDict({"a": nn.Linear(2, 2)})
loose = nn.ParameterList([nn.Parameter(xtensor.ones(2))])
keyed = nn.ParameterDict({"w": nn.Parameter(xtensor.ones(2))})
out: Tensor = model(xtensor.rand(1, 1, 8, 8))
total: int = sum(p.numel() for p in model.parameters())
for name, parameter in model.named_parameters():
    print(name, parameter.shape, parameter.requires_grad, len(loose), list(keyed.keys()))
for child in model.children():
    print(type(child).__name__, child.training)
state: dict[str, Any] = model.state_dict()
model.load_state_dict(state)
model.train().eval().to("cpu").double().float().requires_grad_(True).zero_grad()


def note(module: nn.Module, args: Any, output: Any) -> None:
    print(type(module).__name__)


model.register_forward_hook(note).remove()

# Layers that keep an image's or a sequence's form
image, line = xtensor.rand(2, 4, 4, 4), xtensor.rand(2, 4, 8)
same: list[nn.Module] = [
    nn.Identity(),
    nn.GroupNorm(2, 4),
    nn.InstanceNorm2d(4),
    nn.LocalResponseNorm(2),
    nn.RMSNorm(4),
    nn.Dropout2d(),
    nn.AlphaDropout(),
    nn.ChannelShuffle(2),
    nn.ELU(),
    nn.CELU(),
    nn.SELU(),
    nn.GELU(),
    nn.SiLU(),
    nn.Mish(),
    nn.PReLU(),
    nn.ReLU6(),
    nn.LeakyReLU(),
    nn.Sigmoid(),
    nn.Tanh(),
    nn.Softplus(),
    nn.Softsign(),
    nn.Hardtanh(),
    nn.Hardswish(),
    nn.Hardsigmoid(),
    nn.LogSigmoid(),
    nn.Softshrink(),
    nn.Hardshrink(),
    nn.Tanhshrink(),
    nn.Threshold(0.1, 0.0),
    nn.Softmax(dim=1),
    nn.Softmin(dim=1),
    nn.LogSoftmax(dim=1),
    nn.Softmax2d(),
]
for layer in same:
    assert layer(image).shape == image.shape, layer
resizing: dict[nn.Module, tuple[int, ...]] = {
    nn.AvgPool2d(2): (2, 4, 2, 2),
    nn.LPPool2d(2, 2): (2, 4, 2, 2),
    nn.AdaptiveAvgPool2d(1): (2, 4, 1, 1),
    nn.AdaptiveMaxPool2d(1): (2, 4, 1, 1),
    nn.ConvTranspose2d(4, 2, 2, stride=2): (2, 2, 8, 8),
    nn.ZeroPad2d(1): (2, 4, 6, 6),
    nn.ConstantPad2d(1, 3.0): (2, 4, 6, 6),
    nn.ReflectionPad2d(1): (2, 4, 6, 6),
    nn.ReplicationPad2d(1): (2, 4, 6, 6),
    nn.CircularPad2d(1): (2, 4, 6, 6),
    nn.PixelShuffle(2): (2, 1, 8, 8),
    nn.PixelUnshuffle(2): (2, 16, 2, 2),
    nn.Upsample(scale_factor=2): (2, 4, 8, 8),
    nn.Unfold(2, stride=2): (2, 16, 4),
    nn.GLU(dim=1): (2, 2, 4, 4),
    nn.Unflatten(1, (2, 2)): (2, 2, 2, 4, 4),
    nn.LazyConv2d(3, 1): (2, 3, 4, 4),
    nn.LazyLinear(5): (2, 4, 4, 5),
}
for layer, shape in resizing.items():
    assert layer(image).shape == shape, layer
over_lines: dict[nn.Module, tuple[int, ...]] = {
    nn.Conv1d(4, 2, 3): (2, 2, 6),
    nn.ConvTranspose1d(4, 2, 1): (2, 2, 8),
    nn.BatchNorm1d(4): (2, 4, 8),
    nn.InstanceNorm1d(4): (2, 4, 8),
    nn.MaxPool1d(2): (2, 4, 4),
    nn.AvgPool1d(2): (2, 4, 4),
    nn.AdaptiveAvgPool1d(2): (2, 4, 2),
    nn.AdaptiveMaxPool1d(2): (2, 4, 2),
    nn.ZeroPad1d(1): (2, 4, 10),
    nn.ReflectionPad1d(1): (2, 4, 10),
}
for layer, shape in over_lines.items():
    assert layer(line).shape == shape, layer
assert nn.Fold((4, 4), 2, stride=2)(nn.Unfold(2, stride=2)(image)).equal(image)
pooled, places = nn.MaxPool2d(2, return_indices=True)(image)
assert nn.MaxUnpool2d(2)(pooled, places).shape == image.shape
volume = nn.Sequential(nn.Conv3d(1, 2, 2), nn.BatchNorm3d(2), nn.AvgPool3d(2), nn.Dropout3d())
assert volume(xtensor.rand(1, 1, 3, 3, 3)).shape == (1, 2, 1, 1, 1)

# Sequences
tokens = xtensor.tensor([[1, 2, 3]])
words = nn.Embedding(10, 8)(tokens)
assert nn.EmbeddingBag(10, 8)(tokens).shape == (1, 8) and nn.Bilinear(8, 8, 2)(words, words).shape == (
    1,
    3,
    2,
)
mixed, (h, c) = nn.LSTM(8, 8, batch_first=True)(words)
rolled, _ = nn.GRU(8, 8, batch_first=True)(words)
simple, _ = nn.RNN(8, 8, batch_first=True)(words)
cell: Tensor = nn.GRUCell(8, 8)(words[:, 0]) + nn.RNNCell(8, 8)(words[:, 0])
attended, weights = nn.MultiheadAttention(8, 2, batch_first=True)(mixed, rolled, simple)
encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1)
decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 1)
assert decoder(attended, encoder(words)).shape == (1, 3, 8) and nn.LSTMCell(8, 8)(cell)[0].shape == (1, 8)
ragged = [xtensor.ones(3, 8), xtensor.ones(2, 8)]
packed: rnn.PackedSequence = rnn.pack_sequence(ragged)
padded, lengths = rnn.pad_packed_sequence(packed, batch_first=True)
assert padded.equal(rnn.pad_sequence(ragged, batch_first=True)) and lengths.tolist() == [3, 2]
assert rnn.pack_padded_sequence(padded, lengths, batch_first=True).data.shape == (5, 8)
assert len(rnn.unpack_sequence(packed)) == len(rnn.unpad_sequence(padded, lengths, batch_first=True)) == 2

# Initialization
weight = layers[0].weight
nn.init.xavier_uniform_(weight)
nn.init.xavier_normal_(weight, gain=nn.init.calculate_gain("relu"))
nn.init.kaiming_uniform_(weight, nonlinearity="relu")
nn.init.kaiming_normal_(weight)
nn.init.trunc_normal_(weight, std=0.02)
nn.init.normal_(weight)
nn.init.uniform_(weight, -1, 1)
nn.init.orthogonal_(weight)
nn.init.eye_(weight)
nn.init.sparse_(weight, 0.5)
nn.init.constant_(weight, 3)
nn.init.ones_(weight)
nn.init.dirac_(xtensor.empty(2, 2, 3))
nn.init.zeros_(named["a"].bias)

# What is done to parameters
print(nn.utils.clip_grad_norm_(model.parameters(), 1.0), h.shape, c.shape, weights.shape, total)
flat = nn.utils.parameters_to_vector(layers.parameters())
nn.utils.vector_to_parameters(flat, layers.parameters())
nn.utils.clip_grad_value_(layers.parameters(), 1.0)
assert nn.utils.get_total_norm([flat]) > 0 and nn.utils.skip_init(nn.Linear, 2, 2).weight.shape == (2, 2)
fused = nn.utils.fuse_conv_bn_eval(nn.Conv2d(4, 4, 1).eval(), nn.BatchNorm2d(4).eval())
assert fused(image).shape == image.shape


class Symmetric(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.triu() + x.triu(1).mT


square = nn.Linear(2, 2)
parametrize.register_parametrization(square, "weight", Symmetric())
with parametrize.cached():
    assert parametrize.is_parametrized(square) and square.weight.equal(square.weight.mT)
parametrize.remove_parametrizations(square, "weight")
whitened = parametrizations.orthogonal(nn.Linear(2, 2))
assert xtensor.allclose(whitened.weight @ whitened.weight.mT, xtensor.eye(2), atol=1e-5)
print(parametrizations.weight_norm(nn.Linear(2, 2)), parametrizations.spectral_norm(nn.Linear(2, 2)))
