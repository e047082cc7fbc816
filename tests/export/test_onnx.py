"""Models as ONNX files: checked, run by onnxruntime, with open sizes, and refused with the operator's line."""

import io
import json

import numpy as np
import pytest

import xtensor
from xtensor import nn

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.export import onnx_table
from tests.table import ROWS

F = nn.functional


def same(module, *args, tolerance=1e-5, **options):
    """The model, whose results by onnxruntime are the module's."""
    program = xtensor.onnx.export(module, args, **options)
    expected = onnx_table.tensors(module(*args))
    found = program(*args)
    for a, b in zip(expected, found, strict=True):
        assert a.dtype is b.dtype and a.shape == b.shape
        np.testing.assert_allclose(b.numpy(), a.detach().numpy(), tolerance, tolerance)
    return program


class Block(nn.Module):
    """A block of a residual network."""

    def __init__(self, width):
        super().__init__()
        self.one = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.two = nn.Conv2d(width, width, 3, padding="same", groups=2)

    def forward(self, x):
        return F.relu(self.two(F.relu(self.norm(self.one(x)), inplace=True)) + x)


class Decoder(nn.Module):
    """A causal transformer with a cache of keys and values."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.places = nn.Embedding(32, 8)
        self.norm = nn.LayerNorm(8)
        self.qkv = nn.Linear(8, 24)
        self.out = nn.Linear(8, 11)

    def forward(self, ids, keys, values):
        past = keys.shape[2]
        x = self.words(ids) + self.places(xtensor.arange(past, past + ids.shape[1]))
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        keys, values = xtensor.cat([keys, k], 2), xtensor.cat([values, v], 2)
        x = x + F.scaled_dot_product_attention(q, keys, values).transpose(1, 2).flatten(2)
        return self.out(F.gelu(x, approximate="tanh")), keys, values


def models(seed):
    xtensor.manual_seed(seed)
    resnet = nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=2),
        nn.MaxPool2d(2),
        Block(4),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 5),
    )
    unet = nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.GroupNorm(2, 4),
        nn.SiLU(),
        nn.ConvTranspose2d(4, 2, 2, stride=2),
        nn.Upsample(scale_factor=2),
    )
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
    )
    return {
        "resnet": (resnet, xtensor.randn(2, 3, 16, 16)),
        "unet": (unet, xtensor.randn(2, 3, 8, 8)),
        "encoder": (encoder, xtensor.randn(2, 5, 8)),
        "lstm": (nn.LSTM(4, 6, 2, bidirectional=True, batch_first=True), xtensor.randn(2, 5, 4)),
        "gru": (nn.GRU(4, 6), xtensor.randn(5, 2, 4)),
        "decoder": (
            Decoder(),
            xtensor.tensor([[1, 2, 3]]),
            xtensor.randn(1, 2, 4, 4),
            xtensor.randn(1, 2, 4, 4),
        ),
    }


@pytest.mark.parametrize("name", ["resnet", "unet", "encoder", "lstm", "gru", "decoder"])
def test_models_run_by_onnxruntime(name, seed):
    module, *args = models(seed)[name]
    same(module.eval(), *args)


def test_open_sizes(seed):
    encoder, _ = models(seed)["encoder"]
    batch, length = xtensor.export.Dim("batch", min=2), xtensor.export.Dim("length", min=2)
    program = xtensor.onnx.export(
        encoder.eval(), (xtensor.randn(2, 5, 8),), dynamic_shapes={"src": (batch, length, None)}
    )
    x = xtensor.randn(3, 9, 8)
    np.testing.assert_allclose(program(x)[0].numpy(), encoder(x).detach().numpy(), 1e-5, 1e-5)
    dims = [d.dim_param or d.dim_value for d in program.model_proto.graph.input[0].type.tensor_type.shape.dim]
    assert dims == ["batch", "length", 8]
    decoder, *args = models(seed)["decoder"]
    past = xtensor.export.Dim("past", min=2)
    program = xtensor.onnx.export(decoder, tuple(args), dynamic_shapes=(None, {2: past}, {2: past}))
    args = (args[0], xtensor.randn(1, 2, 7, 4), xtensor.randn(1, 2, 7, 4))
    for a, b in zip(program(*args), decoder(*args), strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), 1e-5, 1e-5)


def test_the_older_interface(tmp_path, seed):
    onnx = pytest.importorskip("onnx")
    module, x = models(seed)["resnet"]
    module.train()
    made = xtensor.onnx.export(
        module, x, tmp_path / "net.onnx", dynamo=False, input_names=["image"], output_names=["scores"],
        dynamic_axes={"image": {0: "n"}, "scores": {0: "n"}}, opset_version=19,
    )  # fmt: skip
    assert made is None and module.training
    model = onnx.load(tmp_path / "net.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert [v.name for v in (*model.graph.input, *model.graph.output)] == ["image", "scores"]
    assert model.opset_import[0].version == 19
    assert {i.name for i in model.graph.initializer} >= {"0.weight", "2.one.weight"}
    import onnxruntime

    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"), providers=["CPUExecutionProvider"])
    images = xtensor.randn(3, 3, 16, 16)
    (found,) = session.run(["scores"], {"image": images.numpy()})
    np.testing.assert_allclose(found, module.eval()(images).detach().numpy(), 1e-4, 1e-5)


def test_writes_and_views():
    class Writes(nn.Module):
        def forward(self, x):
            y = x + 1
            y[:, 0] = 0
            row = y[1]
            row.mul_(2)
            z = y.view(2, -1)
            z[:, 1:3] += 10
            y.t().add_(x.t())
            return y, z, row

    same(Writes(), xtensor.randn(4, 3))


def test_what_has_no_translation_is_named():
    class Odd(nn.Module):
        def forward(self, x):
            return xtensor.linalg.svdvals(x)

    with pytest.raises(xtensor.onnx.OnnxExporterError, match=r"linalg_svd.*primitive svd.*test_onnx\.py:\d+"):
        xtensor.onnx.export(Odd(), (xtensor.ones(2, 2),))

    class Bessel(nn.Module):
        def forward(self, x):
            return xtensor.special.bessel_j0(x)

    target = xtensor.library.ops.aten.special_bessel_j0.default
    table = {target: lambda b, input, **rest: b.op("Tan", input)}
    program = xtensor.onnx.export(Bessel(), (xtensor.ones(2),), custom_translation_table=table)
    np.testing.assert_allclose(program(xtensor.zeros(2))[0].numpy(), [0, 0])
    same(Bessel(), xtensor.linspace(0, 9, 8))  # through what its kernel is made of
    with pytest.raises(xtensor.onnx.OnnxExporterError, match=r"export module\.eval\(\)"):
        xtensor.onnx.export(nn.BatchNorm1d(3), (xtensor.ones(2, 3),))
    with pytest.raises(xtensor.onnx.OnnxExporterError, match="opset_version 11 is too old"):
        xtensor.onnx.export(nn.ReLU(), (xtensor.ones(2),), opset_version=11)


def test_a_saved_program_is_translated():
    pytest.importorskip("flatbuffers")
    file, x = io.BytesIO(), xtensor.randn(4, 3)
    xtensor.export.save(xtensor.export.export(nn.Linear(3, 2), (x,)), file)
    program = xtensor.export.load(io.BytesIO(file.getvalue()))
    found = xtensor.onnx.export(program)
    np.testing.assert_allclose(found(x)[0].numpy(), program.module()(x).detach().numpy(), 1e-5)


AGREE = json.loads(onnx_table.LIST.read_text("utf-8"))["agree"]


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b, w: F.scaled_dot_product_attention(a, b, w, scale=0.3),
        lambda a, b, w: F.mse_loss(a, b, weight=w),
        lambda a, b, w: F.smooth_l1_loss(a, b, reduction="sum", beta=0.5),
        lambda a, b, w: F.huber_loss(a, b, reduction="sum", delta=0.3, weight=w),
    ],
)
def test_every_argument_counts(function):
    same(onnx_table.Call(function), xtensor.randn(3, 4), xtensor.randn(3, 4), xtensor.rand(3, 4))


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.full] if i % 12 else []) for i, n in enumerate(AGREE)]
)
def test_rows_of_the_table_agree(name):
    row = next(row for row in ROWS if row.name == name)
    assert onnx_table.judge(row) == "agrees"
