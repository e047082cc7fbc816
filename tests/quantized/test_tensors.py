"""Quantised tensors against PyTorch's: integers, text, views, comparisons, errors and checkpoints."""

import copy
import io
import pickle

import numpy as np
import pytest

import xtensor

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings(
    "ignore:TypedStorage is deprecated", "ignore:.*quantized", "ignore:Please use quant_min"
)

VALUES = np.array([[0.1, -1.05, 2.25, np.nan], [3.3, -0.5, 100, -np.inf]], np.float32)
PER_TENSOR = [("quint8", 0.1, 11), ("qint8", 0.5, -3), ("qint32", 0.037, 5)]


def text(value):
    """A value as text, or the error that it is, in PyTorch's names."""
    if isinstance(value, Exception):
        message = str(value).partition("This could be")[0]
        return f"{type(value).__name__}: {message}".replace("xtensor", "torch")
    if isinstance(value, (tuple, list)):
        return [text(v) for v in value]
    if isinstance(value, (torch.Tensor, xtensor.Tensor)) and value.is_quantized:
        how = value.qscheme()
        where = (
            (value.q_scale(), value.q_zero_point())
            if "per_tensor" in str(how)
            else text(
                (value.q_per_channel_scales(), value.q_per_channel_zero_points(), value.q_per_channel_axis())
            )
        )
        whole = [
            str(how),
            where,
            value.int_repr().tolist(),
            tuple(value.shape),
            tuple(value.stride()),
            str(value.dtype),
        ]
        return str(whole).replace("xtensor", "torch")
    if isinstance(value, (torch.Tensor, xtensor.Tensor)):
        return str((value.tolist(), value.dtype)).replace("xtensor", "torch")
    return str(value).replace("xtensor", "torch")


def outcome(program, lib, **names):
    """What a program gives, or raises."""
    try:
        return eval(program, {"lib": lib, "F": lib.nn.functional, **names})
    except Exception as error:
        return error


def both(program, **makers):
    """Both libraries' outcomes of a program over what the makers make of each."""
    found = []
    for lib in (torch, xtensor):
        found.append(text(outcome(program, lib, **{name: make(lib) for name, make in makers.items()})))
    return found


def of_tensor(dtype="quint8", scale=0.1, point=11, values=VALUES):
    return lambda lib: lib.quantize_per_tensor(lib.tensor(values.tolist()), scale, point, getattr(lib, dtype))


def of_channels(lib):
    scales, points = lib.tensor([0.1, 0.2]), lib.tensor([1, 2])
    return lib.quantize_per_channel(lib.tensor(VALUES[:, :3].tolist()), scales, points, 0, lib.qint8)


def dense(lib):
    return lib.tensor(VALUES[:, :3].tolist())


@pytest.mark.parametrize(("dtype", "scale", "point"), PER_TENSOR)
def test_values(dtype, scale, point):
    values = np.linspace(-20, 20, 161, dtype=np.float32)
    for program in ("q", "q.dequantize()", "q.element_size()", "q.is_quantized", "q.is_floating_point()"):
        expected, found = both(program, q=of_tensor(dtype, scale, point, values))
        assert found == expected, program


@pytest.mark.parametrize(("dtype", "scale", "point"), PER_TENSOR[:2])
def test_no_numbers_and_infinities(dtype, scale, point):
    expected, found = both("q", q=of_tensor(dtype, scale, point))
    assert found == expected


@pytest.mark.parametrize(
    "make",
    [
        of_tensor(values=VALUES[:, :3]),
        of_channels,
        of_tensor(values=np.array(1.0)),
        of_tensor(values=np.zeros(0)),
    ],
)
def test_text(make):
    # The longer name breaks lines elsewhere: PyTorch's own is asked for.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("xtensor.dtypes._Named.__repr__", lambda self: f"torch.{self.name}")
        found = repr(make(xtensor))
    assert found == repr(make(torch))


VIEWS = """q[0] q[:,1] q[0:1] q[1,1:] q.t() q.view(-1) q.view(3,2) q.reshape(6) q.permute(1,0) q.unsqueeze(0) q.clone()
q.contiguous() q.detach() q.expand(2,2,3) q.split(1) q.unbind(0) q.select(0,1) q.flatten() q.t().contiguous() q.T
q.index_select(0,lib.tensor([1])) q.flip(0) lib.stack([q,q]) lib.cat([q,q],1) q.t().is_contiguous() q.storage_offset()
q.is_contiguous() q.stride() q.data.int_repr() q.to('cpu')""".split()
PROGRAMS = """q==q q<1.0 q>q q>=x q!=1 lib.relu(q) F.relu(q) q.equal(q) q.equal(q.t()) q.max() q.min() q.sort() q.topk(1)
q.clamp(0,1) F.hardtanh(q,0.,1.) F.relu6(q) lib.sigmoid(q) lib.tanh(q) F.leaky_relu(q) q.mean() q.masked_fill(x>0,0.)
q.fill_(1.0) q.copy_(x) q.relu_() q[0,0].item() q.item() q.numpy() q.tolist() q.float() q.to(lib.int8) q.q_scale()
q.q_per_channel_axis() q.q_per_channel_scales() q.requires_grad_() q.is_signed() x.copy_(q) lib.ones_like(q)
lib.dequantize([q,q]) x.dequantize() x.int().dequantize() q.type()""".split()
MAKERS = """lib.quantize_per_tensor(x,0.1,10,lib.float32) lib.quantize_per_tensor(x,0.1,300,lib.quint8)
lib.quantize_per_tensor(x,0.1,-1,lib.quint8) lib.quantize_per_tensor(x,0.1,-129,lib.qint8)
lib.quantize_per_tensor(x.double(),0.1,3,lib.quint8) lib.quantize_per_tensor(x,lib.tensor(.1),lib.tensor(1),lib.quint8)
lib.quantize_per_tensor([x,x],lib.tensor([.1,.2]),lib.tensor([1,1]),lib.quint8)
lib.quantize_per_tensor_dynamic(x,lib.quint8,False) lib.quantize_per_tensor_dynamic(x,lib.qint8,True)
lib._choose_qparams_per_tensor(x,False) lib._choose_qparams_per_tensor(x,True)
lib._make_per_tensor_quantized_tensor(lib.tensor([1,2],dtype=lib.uint8),.1,2)
lib._make_per_tensor_quantized_tensor(lib.tensor([1,2]),.1,2)
lib._make_per_channel_quantized_tensor(lib.tensor([1,2],dtype=lib.int8),lib.tensor([.1,.2]),lib.tensor([1,2]),0)
lib._empty_affine_quantized([2,3],scale=.1,zero_point=2,dtype=lib.quint8).shape
lib.quantize_per_channel(x,lib.tensor([.1,.2,.3]),lib.tensor([1,2]),0,lib.qint8)
lib.quantize_per_channel(x,lib.tensor([.1,.2,.3]),lib.tensor([1,2,3]),0,lib.qint8)
lib.quantize_per_channel(x,lib.tensor([.1,.2,.3]),lib.tensor([1,2,3]),1,lib.qint8)
lib.quantize_per_channel(x,lib.tensor([.1,.2]),lib.tensor([1,2]),4,lib.qint8)
lib.quantize_per_channel(x,lib.tensor([.1,.2]),lib.tensor([-1,2]),0,lib.quint8)
lib.quantize_per_channel(x,lib.tensor([.1,.2]),lib.tensor([1.5,2.]),0,lib.quint8).dequantize()
lib.quantize_per_channel(x.double(),lib.tensor([.1,.2]),lib.tensor([1,2]),0,lib.quint8)""".split()


@pytest.mark.parametrize("program", VIEWS + PROGRAMS + MAKERS)
def test_as_pytorch(program):
    expected, found = both(program, q=of_tensor(values=VALUES[:, :3]), x=dense)
    assert found == expected


CHANNELS = """p p[0] p[:,0:2] p.clone() p.detach() p.view(2,3) p.view(3,2).dequantize() p.t() p.transpose(0,1) p.equal(p) p==p
p.index_select(0,lib.tensor([1])) lib.cat([p,p]) p.dequantize() p.q_scale() p.contiguous()""".split()


@pytest.mark.parametrize("program", CHANNELS)
def test_per_channel(program):
    expected, found = both(program, p=of_channels)
    assert found == expected


POOLED = """F.max_pool2d(q,2) F.avg_pool2d(q,3,2,1) F.avg_pool2d(q,3,2,1,count_include_pad=False) F.adaptive_avg_pool2d(q,1)
q.mean((2,3)) F.interpolate(q,scale_factor=2)""".split()


@pytest.mark.parametrize("program", POOLED)
def test_pooling(program):
    values = np.random.default_rng(0).random((1, 2, 5, 5), np.float32) * 10
    expected, found = both(program, q=of_tensor(point=3, values=values))
    assert found == expected


def test_views_share_memory():
    q = of_tensor(values=VALUES[:, :3])(xtensor)
    view = q.t()
    q[0] = xtensor.tensor([1.0, 2.0, 3.0])
    assert view.int_repr()[:, 0].tolist() == [21, 31, 41]
    assert view._version == q._version > 0


@pytest.mark.parametrize(
    "make",
    [of_tensor(values=VALUES[:, :3]), of_channels, lambda lib: of_tensor(values=VALUES[:, :3])(lib).t()],
)
def test_checkpoints(make):
    """Files go both ways; pickling and copying keep everything."""
    wanted = text(make(torch))
    for writer, reader in ((torch, xtensor), (xtensor, torch), (xtensor, xtensor)):
        file = io.BytesIO()
        writer.save({"q": make(writer)}, file)
        file.seek(0)
        assert text(reader.load(file, weights_only=True)["q"]) == wanted
    ours = make(xtensor)
    assert text(pickle.loads(pickle.dumps(ours))) == wanted
    other = copy.deepcopy(ours)
    assert text(other) == wanted
    assert other.data_ptr() != ours.data_ptr()
