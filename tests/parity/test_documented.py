"""What PyTorch's documentation shows, and was found to be otherwise here."""

import warnings

import numpy as np
import pytest

import xtensor
from xtensor.nn.utils.rnn import pad_sequence, unpad_sequence


@pytest.mark.parametrize(
    ("equation", "shape"),
    [("ij->ji", (3, 4)), ("ij->ij", (3, 4)), ("ii->i", (4, 4)), ("bii->bi", (2, 3, 3)), ("iij->ji", (3, 3, 2)), ("...->...", (3,)), ("iii->i", (2, 2, 2))],
)  # fmt: skip
def test_einsum_of_one_operand_that_sums_nothing_is_a_view(torch, equation, shape):
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x, t = xtensor.tensor(values, requires_grad=True), torch.tensor(values, requires_grad=True)
    got, want = xtensor.einsum(equation, x), torch.einsum(equation, t)
    assert got._is_view() and want._is_view() and got.stride() == want.stride()
    assert got.tolist() == want.tolist()
    (got * got).sum().backward()
    (want * want).sum().backward()
    assert x.grad.tolist() == t.grad.tolist()
    base = xtensor.zeros(shape)
    xtensor.einsum(equation, base).fill_(1)
    assert base.sum().item() == got.numel()
    assert xtensor.einsum("i,i->i", xtensor.ones(3), xtensor.ones(3))._is_view() is False
    assert xtensor.einsum("ij->i", xtensor.ones(3, 4)).tolist() == [4.0] * 3


def test_asarray_of_a_tensor_stays_in_its_graph_unless_told(torch):
    def run(lib):
        y = lib.ones(3, requires_grad=True) * 2
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same = lib.asarray(y) is y, lib.asarray(y, requires_grad=True) is y
        z = lib.asarray(y, requires_grad=False)
        leaf = lib.ones(3, requires_grad=True)
        lib.asarray(leaf, requires_grad=False)
        return same, z.requires_grad, z.is_leaf, z.data_ptr() == y.data_ptr(), leaf.requires_grad

    assert run(xtensor) == run(torch)


def test_sequences_of_a_padded_tensor_are_copies():
    padded = pad_sequence([xtensor.ones(4, 3), xtensor.ones(2, 3)])
    first, second = unpad_sequence(padded, xtensor.tensor([4, 2]))
    assert (first.stride(), second.shape, second._is_view()) == ((3, 1), (2, 3), False)
    first.zero_()
    assert padded.sum().item() == 18


def test_slices_found_along_a_dimension_lie_one_after_the_other(torch):
    values = np.random.default_rng(0).integers(0, 2, (3, 4, 2))
    for dim in range(3):
        got, want = (
            xtensor.unique(xtensor.tensor(values), dim=dim),
            torch.unique(torch.tensor(values), dim=dim),
        )
        assert got.stride() == want.stride() and got.tolist() == want.tolist()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_gradients_have_the_dtype_that_was_set(torch, dtype):
    def run(lib):
        w = lib.tensor([1.0, 2.0], dtype=getattr(lib, dtype), requires_grad=True)
        w.grad_dtype = lib.float64
        (w * 3).sum().backward()
        first = str(w.grad.dtype).partition(".")[2], w.grad.tolist()
        (w * 3).sum().backward()
        with pytest.raises(
            RuntimeError, match="Cannot set grad_dtype to 'Half' because there is already a gradient"
        ):
            w.grad_dtype = lib.float16
        w.grad_dtype = None
        w.grad = lib.ones(2, dtype=lib.int32)
        return first, w.grad_dtype, w.grad.tolist()

    assert run(xtensor) == run(torch)
    with pytest.raises(RuntimeError, match="can only be set on leaf tensors"):
        (xtensor.ones(2, requires_grad=True) * 2).grad_dtype = xtensor.float16
    with pytest.raises(RuntimeError, match=r"must be a torch\.dtype or None, but got str"):
        xtensor.ones(2).grad_dtype = "float16"


def test_a_hook_after_accumulation_may_give_its_tensor_back():
    w = xtensor.zeros(3, requires_grad=True)
    w.register_post_accumulate_grad_hook(lambda p: p.detach().add_(p.grad, alpha=-0.5).data_ptr() and None)
    w.register_post_accumulate_grad_hook(lambda p: p)
    w.backward(xtensor.ones(3))
    assert w.tolist() == [-0.5] * 3


def test_small_answers(torch):
    with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
        xtensor.ones(1, 2).dim_order(ambiguity_check="no")
    told, own = xtensor.cpu.get_capabilities(), torch.cpu.get_capabilities()
    assert {k: told[k] for k in ("architecture", "avx2", "num_logical_cores")} == {
        k: own.get(k, False) for k in ("architecture", "avx2", "num_logical_cores")
    }
    assert set(told) <= set(own) or told["architecture"] != "x86_64"
    assert type(xtensor.nn.Linear(1, 1).load_state_dict({}, strict=False)).__name__ == "_IncompatibleKeys"
