"""Modules of quantisation as text, what their checkpoints hold, and what they refuse."""

import pytest

from .compared import names, torch, xtensor

pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, which deprecates all of this

MODULES = """nnq.BatchNorm2d(4)
nnq.Conv1d(4, 6, 3)
nnq.Conv2d(4, 6, 3, padding=1, stride=2, groups=2, bias=False, dilation=2)
nnq.Conv3d(4, 6, 3)
nnq.Conv2d(4, 6, 3, padding_mode='circular')
nnq.ConvTranspose1d(4, 6, 3)
nnq.ConvTranspose2d(4, 6, 3, output_padding=1, stride=2)
nnq.ConvTranspose2d(4, 6, 3, padding_mode='reflect')
nnq.ELU(.1, 3)
nnq.Embedding(5, 4)
nnq.EmbeddingBag(5, 4)
nnq.GroupNorm(2, 4, w, w, .1, 3)
nnq.Hardswish(.1, 3)
nnq.InstanceNorm2d(4, None, None, .1, 3)
nnq.LayerNorm([4], w, w, .1, 3)
nnq.LeakyReLU(.1, 3)
nnq.Linear(4, 3, bias_=False)
nnq.ReLU6()
nnq.Sigmoid(.1, 3)
nnq.Softmax(1, .1, 3)
nnq.Dropout(.3)
nnq.PReLU(.1, 3, 4)
nnq.FloatFunctional()
nnq.FXFloatFunctional()
nnq.QFunctional()
nnq.Quantize(lib.tensor([.1]), lib.tensor([3]), lib.quint8)
nnq.Quantize(.1, 3, lib.quint8)
nnq.DeQuantize()
nnd.Linear(4, 3)
nnd.Linear(4, 3, dtype=lib.float16)
nnd.Conv2d(4, 6, 3)
nnd.ConvTranspose2d(4, 6, 3)
nnd.GRU(4, 5)
nnd.LSTM(4, 5, 2, bidirectional=True, batch_first=True, dropout=.1)
nnd.LSTM(4, 5, dropout=2)
nnd.LSTMCell(4, 5)
nnd.GRUCell(4, 5)
nnd.RNNCell(4, 5, nonlinearity='relu', bias=False)
nnd.LSTM(4, 5, dtype=lib.float16)
nni.quantized.ConvReLU2d(4, 6, 3)
nni.quantized.LinearReLU(4, 3)
nni.quantized.LinearLeakyReLU(4, 3, .1)
nni.quantized.LinearTanh(4, 3)
nni.quantized.BNReLU2d(4)
nni.quantized.ConvAdd2d(4, 6, 3)
nni.quantized.dynamic.LinearReLU(4, 3)
nnqat.Linear(4, 3, qconfig=qc)
nnqat.Linear(4, 3)
nnqat.Conv2d(4, 6, 3, qconfig=qc)
nnqat.Embedding(5, 4, qconfig=Q.default_embedding_qat_qconfig)
nni.qat.ConvBnReLU2d(4, 6, 3, qconfig=qc)
nni.qat.LinearBn1d(4, 6, qconfig=qc)
nni.qat.LinearReLU(4, 6, qconfig=qc)
nni.qat.ConvReLU2d(4, 6, 3, qconfig=qc)
nnqa.LSTM(4, 5)
nnqa.MultiheadAttention(4, 2)
nni.ConvReLU2d(lib.nn.Conv2d(1, 1, 1), lib.nn.ReLU())
nni.LinearReLU(lib.nn.Conv2d(1, 1, 1), lib.nn.ReLU())
Q.MinMaxObserver()
Q.HistogramObserver()
Q.PerChannelMinMaxObserver()
Q.FakeQuantize()
Q.default_fixed_qparams_range_0to1_fake_quant()
Q.PlaceholderObserver()
Q.NoopObserver()
Q.FixedQParamsObserver(.1, 3)
Q.QuantStub()
Q.QuantWrapper(lib.nn.Linear(2, 2))
Q.default_qconfig
Q.default_per_channel_symmetric_qnnpack_qat_qconfig
Q.default_embedding_qat_qconfig
Q.get_default_qconfig('onednn')
Q.get_default_qat_qconfig('qnnpack', 0)
Q.get_default_qconfig('x86', 1)
Q.get_default_qat_qconfig('x86', 2)
Q.get_default_qconfig('zz')
Q.MinMaxObserver(quant_min=3, quant_max=5)
Q.MinMaxObserver(quant_min=0, quant_max=500, dtype=lib.qint8)
Q.MinMaxObserver(qscheme=lib.per_channel_affine)
Q.MovingAverageMinMaxObserver(is_dynamic=True)
Q.default_weight_observer().calculate_qparams()
Q.PlaceholderObserver().calculate_qparams()
Q.QConfig(Q.MinMaxObserver(), None)
Q.qconfig_equals(Q.get_default_qat_qconfig(), Q.get_default_qat_qconfig())
Q.qconfig_equals(Q.default_qconfig, Q.default_per_channel_qconfig)
Q.QConfigMapping().set_global(Q.default_qconfig).set_module_name('a', None)
[str(v) for v in Q.get_default_qconfig_mapping('qnnpack').object_type_qconfigs.values()]
[str(v) for v in Q.get_default_qat_qconfig_mapping().to_dict()['object_type']][0]
Q.get_fuser_method((lib.nn.ReLU,))
Q.fuse_conv_bn(False, lib.nn.Conv2d(1, 1, 1), lib.nn.BatchNorm2d(1).eval())
Q.fuse_conv_bn(True, lib.nn.Conv2d(1, 2, 1), lib.nn.BatchNorm2d(1))
Q.prepare_qat(lib.nn.Linear(1, 1).eval())
Q.quantize_dynamic(lib.nn.Linear(1, 1), dtype=lib.int8)
Q.add_quant_dequant(lib.nn.Sequential(lib.nn.Linear(1, 1)))
nnq.Linear.from_float(lib.nn.Linear(2, 2))
nnq.Linear.from_float(lib.nn.ReLU())
nnq.QFunctional()(1)""".split("\n")


def kind(value):
    """What a checkpoint's value is, without its numbers."""
    if hasattr(value, "shape"):
        scheme = str(value.qscheme()) if value.is_quantized else ""
        return f"{tuple(value.shape)} {value.dtype} {scheme}"
    if isinstance(value, (tuple, list)):
        return type(value).__name__ + str([kind(v) for v in value])
    return "ScriptObject" if "ScriptObject" in repr(value) else repr(value)


def described(program, lib):
    given = names(lib) | {"w": lib.nn.Parameter(lib.ones(4))}
    given["qc"] = given["Q"].get_default_qat_qconfig("x86")
    try:
        made = eval(program, given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    found = [repr(made)]
    if isinstance(made, lib.nn.Module):
        state = made.state_dict()
        found += [
            made.training,
            [(key, kind(value)) for key, value in state.items()],
            [(key, value) for key, value in state._metadata.items()],
        ]
    return str(found)


def spelled(text):
    """A text with xtensor's names as PyTorch's."""
    text = text.replace("xtensor.compat.", "torch.").replace("xtensor.", "torch.")
    return text.replace("quantization.limits.", "quantization.observer.").replace(
        "quantization.histogram.", "quantization.observer."
    )


@pytest.mark.parametrize("program", MODULES)
def test_described_as_pytorchs(program):
    assert spelled(described(program, xtensor)) == described(program, torch)


TABLES = """get_default_static_quant_module_mappings get_default_qat_module_mappings get_default_dynamic_quant_module_mappings
get_embedding_static_quant_module_mappings get_embedding_qat_module_mappings""".split()


@pytest.mark.parametrize("table", TABLES)
def test_tables(table):
    """The same layers take the same places."""

    def listed(lib):
        found = getattr(lib.ao.quantization, table)()
        path = lambda kind: spelled(kind.__module__).partition(".modules")[0] + "." + kind.__name__
        return {(path(k).replace("ao.nn.stubs", "ao.quantization.stubs"), path(v)) for k, v in found.items()}

    seen = lambda name: name.replace("torch.ao.nn.seen", "torch.ao.nn.quantized")
    ours = {(seen(k), v) for k, v in listed(xtensor)}
    assert ours == listed(torch)
    assert {k for k in dir(torch.ao.quantization) if k.startswith("default_")} <= set(
        dir(xtensor.ao.quantization)
    )


def test_older_paths():
    """The names of before `ao` are those modules."""
    assert xtensor.nn.quantized is xtensor.ao.nn.quantized
    assert xtensor.nn.intrinsic.qat is xtensor.ao.nn.intrinsic.qat
    assert xtensor.nn.qat.Linear is xtensor.ao.nn.qat.Linear
    assert xtensor.nn.quantizable.LSTM is xtensor.ao.nn.quantizable.LSTM
    assert xtensor.quantization is xtensor.ao.quantization
