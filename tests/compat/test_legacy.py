"""Functions and methods that repeat others under older or rarer names: they give what PyTorch's give."""

import numpy as np
import pytest

import xtensor

CALLS = {
    "view_copy": lambda t, x: t.view_copy(x, (3, 2)),
    "transpose_copy": lambda t, x: t.transpose_copy(x, 0, 1),
    "t_copy": lambda t, x: t.t_copy(x),
    "select_copy": lambda t, x: t.select_copy(x, 1, 0),
    "unsqueeze_copy": lambda t, x: t.unsqueeze_copy(x, 0),
    "permute_copy": lambda t, x: t.permute_copy(x, (1, 0)),
    "expand_copy": lambda t, x: t.expand_copy(x, (2, 2, 3)),
    "diagonal_copy": lambda t, x: t.diagonal_copy(x),
    "narrow_copy": lambda t, x: t.narrow_copy(x, 1, 1, 2),
    "split_copy": lambda t, x: t.split_copy(x, 2, 1)[1],
    "unbind_copy": lambda t, x: t.unbind_copy(x)[1],
    "unfold_copy": lambda t, x: t.unfold_copy(x, 1, 2, 1),
    "as_strided_copy": lambda t, x: t.as_strided_copy(x, (2, 2), (1, 2)),
    "unsafe_chunk": lambda t, x: t.unsafe_chunk(x, 2, 1)[0],
    "unsafe_split": lambda t, x: t.unsafe_split(x, 2, 1)[0],
    "nonzero_static": lambda t, x: t.nonzero_static(x, size=8, fill_value=-3),
    "nonzero_static short": lambda t, x: x.nonzero_static(size=2),
    "abs_": lambda t, x: t.abs_(x - 3),
    "round_": lambda t, x: t.round_(x / 3),
    "clamp_": lambda t, x: t.clamp_(x.clone(), 1, 3),
    "frobenius_norm": lambda t, x: t.linalg.vector_norm(x) if t.__name__ == "torch" else t.frobenius_norm(x),
    "nuclear_norm": lambda t, x: (
        t.linalg.matrix_norm(x, "nuc") if t.__name__ == "torch" else t.nuclear_norm(x)
    ),
    "norm_except_dim": lambda t, x: t.norm_except_dim(x, 2, 1),
    "dropout off": lambda t, x: t.dropout(x, 0.5, False),
    "dropout all": lambda t, x: t.dropout(x, 1.0, True),
    "feature_dropout all": lambda t, x: t.feature_dropout(x, 1.0, True),
    "native_dropout": lambda t, x: t.native_dropout(x, 0.5, False)[1],
    "convolution": lambda t, x: t.convolution(x[None], t.ones(4, 2, 2), None, [1], [1], [1], False, [0], 1),
    "transposed": lambda t, x: t.convolution(x[None], t.ones(2, 1, 2), None, [2], [0], [1], True, [1], 2),
    "embedding_renorm_": lambda t, x: t.embedding_renorm_(x.clone(), t.tensor([1, 1]), 2.0, 2.0),
    "unravel_index": lambda t, x: t.stack(t.unravel_index(t.tensor([[3, 5], [0, 1]]), (2, 3))),
    "apply_": lambda t, x: x.clone().apply_(lambda v: v * 2 + 1),
    "map_": lambda t, x: x.clone().map_(x + 1, lambda a, b: a * b),
    "as_subclass": lambda t, x: x.as_subclass(t.nn.Parameter) * 2,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_as_in_pytorch(torch, name):
    ours, theirs = (CALLS[name](t, t.arange(6.0).reshape(2, 3)) for t in (xtensor, torch))
    assert ours.shape == tuple(theirs.shape) and str(ours.dtype)[8:] == str(theirs.dtype)[6:]
    assert ours.flatten().tolist() == pytest.approx(theirs.flatten().tolist())


def test_copies_are_copies_and_differentiable():
    x = xtensor.ones(2, 2, requires_grad=True)
    y = xtensor.view_copy(x, (4,))
    assert y._base is None and y.data_ptr() != x.data_ptr()
    y.sum().backward()
    assert x.grad.tolist() == [[1, 1], [1, 1]]


def test_shapes_and_places(torch):
    for shapes in ([(2, 1), (3,)], [(), (1,)], [4, (2, 1)], []):
        assert tuple(xtensor.broadcast_shapes(*shapes)) == tuple(torch.broadcast_shapes(*shapes))
    with pytest.raises(RuntimeError):
        xtensor.broadcast_shapes((2,), (3,))
    assert xtensor.get_device(xtensor.ones(1)) == -1
    assert xtensor.get_device_module("cpu") is xtensor.cpu
    x = xtensor.ones(2, 3)
    assert x.dim_order() == (0, 1) and x.t().dim_order() == (1, 0) and not x.is_xpu
    assert x.grad_dtype is xtensor.float32


def test_a_file_s_values(tmp_path):
    path = tmp_path / "values"
    path.write_bytes(bytes([0, 0, 128, 63, 0, 0, 0, 64]))
    assert xtensor.from_file(str(path), size=2).tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match=r"size <8> is smaller than the required mapping size <12>"):
        xtensor.from_file(str(path), size=3)
    with pytest.raises(RuntimeError, match=r"unable to open file .* No such file or directory \(2\)"):
        xtensor.from_file(str(tmp_path / "none"), size=3)


def test_a_file_s_memory(tmp_path):
    path = tmp_path / "values"
    x = xtensor.from_file(str(path), shared=True, size=1031)
    assert path.stat().st_size == 4 * 1031 and x.tolist() == [0.0] * 1031
    x[1:3] = xtensor.tensor([2.0, 3.0])
    x[5:].add_(1)
    assert xtensor.from_file(str(path), size=7).tolist() == [0, 2, 3, 0, 0, 1, 1]
    y = xtensor.from_file(str(path), shared=True, size=1031)
    y[0] = 4
    assert x[0].item() == 4 and (x * 2)[0].item() == 8
    with pytest.raises(RuntimeError, match="at most 1048576 bytes of a file are shared"):
        xtensor.from_file(str(path), shared=True, size=2**20)


def test_elements_are_not_written_behind_autograd():
    x = xtensor.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Can't call apply_\(\) on Variable that requires grad"):
        x.apply_(lambda v: v)


def test_no_name_is_made_up():
    for name in ("no_such_", "_private_"):
        assert not hasattr(xtensor, name)


def test_older_norms_write_to_out() -> None:
    x, out = xtensor.arange(6.0).view(2, 3), xtensor.empty(())
    assert xtensor.nuclear_norm(x, out=out) is out and out.item() == pytest.approx(8.3485, abs=1e-3)
    assert xtensor.frobenius_norm(x, [0, 1], out=out) is out and out.item() == pytest.approx(55**0.5)
    with pytest.raises(RuntimeError, match=r"dims must be different. Got \(0, 0\)"):
        xtensor.nuclear_norm(x, 0)


def test_a_storage_shares_a_file(tmp_path):
    path = tmp_path / "bytes"
    storage = xtensor.UntypedStorage.from_file(path, True, 16)
    assert storage.nbytes() == path.stat().st_size == 16 and storage.filename == str(path)
    seen = xtensor.tensor([]).set_(storage, 0, (4,), (1,))
    seen.fill_(2.0)
    assert np.frombuffer(path.read_bytes(), np.float32).tolist() == [2.0] * 4
    typed = xtensor.FloatStorage.from_file(path, True, 4)
    typed[0] = 5.0
    assert np.frombuffer(path.read_bytes(), np.float32).tolist() == [5.0, 2.0, 2.0, 2.0]
