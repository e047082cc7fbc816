"""Strided nested tensors against PyTorch's: values, sizes, errors, text and gradients over a table of expressions."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import xtensor
from tests.oracle import attempt

# Expressions in `s` and `t` of rows (2, 3) and (4, 3), `u` of rows (2, 3) and (2, 2), weights `w` (5, 3) and `v` (3,).
SAME = """
s + 1 | 2 * s | s + t | s - t | s * t | s / 2 | s + L.tensor(1.) | s > 1 | s.eq(1) | s.ge(2) | -s | s.abs() | s.sgn() | s.cos() | L.tanh(s) | s.sqrt()
L.nn.functional.relu(s) | L.nn.functional.gelu(s) | L.nn.functional.silu(s) | s.masked_fill(s > 1, 0) | s.logical_not() | s.half() | s.to(L.int64)
s.clone() | s.detach() | L.zeros_like(s) | L.ones_like(s) | s.sum(-1, keepdim=True) | s.softmax(-1) | s.softmax(1) | u.softmax(-1) | s.transpose(1, 2)
s.unsqueeze(1) | s.unsqueeze(-1) | s.unsqueeze(1).squeeze(1) | s.squeeze(1) | s[0] | s[1, 0] | s[..., 0] | s.unbind() | s.select(0, 1) | s.select(2, 0)
s.to_padded_tensor(0.) | u.to_padded_tensor(-1.) | L.nested.to_padded_tensor(s, 0., (2, 5, 6)) | L.bmm(s, t.transpose(1, 2)) | s.values()
L.matmul(s, t.transpose(1, 2)) | L.bmm(s, L.ones(2, 3, 2)) | L.cat([s, t], 0) | L.cat([s, t], -1) | s.view(2, -1, 3) | s.reshape(2, -1, 1, 3)
L.nn.functional.linear(s, w) | L.nn.functional.linear(s, w, w[:, 0]) | L.nn.functional.layer_norm(s, (3,), v, v) | s.chunk(3, -1) | s.mul_(2)
L.nn.functional.scaled_dot_product_attention(s.unsqueeze(1), t.unsqueeze(1), s.unsqueeze(1)) | s.relu_() | s.fill_(1.) | s.zero_() | s.add_(1)
L.nested.nested_tensor([1, 2]) | L.nested.nested_tensor([[1], [2, 3]]) | L.nested.nested_tensor([v, w[:, 0].double()]) | L.nested.as_nested_tensor(w)
L.nested.narrow(w, 0, 1, 2)
"""
FACTS = """
s.size(0) | s.size(2) | s.size(-1) | s.numel() | s.dim() | s.layout | s.is_nested | s.is_contiguous() | s.dtype | s > 1 | L.nested.nested_tensor([])
L.nested.nested_tensor([[1], [2, 3]], requires_grad=False) | L.nested.nested_tensor([v * 0], requires_grad=True) | (s > 0).is_nested | v.is_nested
"""
WRONG = """
s.shape | s.size() | s.size(1) | s.stride() | s.offsets() | s + u | s + v | s == t | s.sum() | s.sum(1) | s.sum(-1) | s.mean(-1) | s.amax(-1) | s[:, 0]
s.transpose(0, 1) | s.unsqueeze(0) | s.unbind(1) | s.to_padded_tensor(0., (2, 3, 3)) | s @ w.t() | s.view(-1, 3) | len(s) | s.numpy() | s.tolist()
L.nn.functional.layer_norm(s, (3,)) | L.exp(s) | s.sigmoid() | L.clamp(s, 0, 3) | s.log() | s ** 2 | L.where(s > 1, s, s) | s.split(1, -1)
s.narrow(1, 0, 1) | s.permute(0, 2, 1) | s.max() | s.argmax() | s.any() | s.item() | s.cumsum(1) | L.stack([s, s]) | L.nested.nested_tensor(3)
L.nested.nested_tensor([w, v]) | L.nested.as_nested_tensor(s, layout=L.jagged) | s.size(7)
"""
GRADIENTS = """
s * t | s.to_padded_tensor(0.) | L.nn.functional.linear(s, w) | s.softmax(-1) | s.transpose(1, 2).contiguous() | L.bmm(s, t.transpose(1, 2)) | s.unbind()[1]
L.nn.functional.layer_norm(s, (3,), v, v) | s[0] | s.sum(-1, keepdim=True)
"""


def cases(text):
    return [case.strip() for line in text.strip().splitlines() for case in line.split("|") if case.strip()]


def world(L, requires_grad=False):
    rng = np.random.default_rng(11)

    def dense(*sizes):
        return L.tensor(rng.random(sizes).astype(np.float32) * 3)

    made = {
        name: L.nested.nested_tensor([dense(2, 3), dense(4, 3)], requires_grad=requires_grad) for name in "st"
    }
    w, v = dense(5, 3), dense(3)
    if requires_grad:
        w, v = w.requires_grad_(), v.requires_grad_()
    return {"L": L, **made, "u": L.nested.nested_tensor([dense(2, 3), dense(2, 2)]), "w": w, "v": v}


def same(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    elif theirs.is_nested:
        assert ours.is_nested and ours.dim() == theirs.dim()
        same(ours.unbind(), theirs.unbind())
    else:
        assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]
        np.testing.assert_allclose(
            np.asarray(ours.detach().numpy(), np.float64),
            np.asarray(theirs.detach().numpy(), np.float64),
            1e-4,
            1e-5,
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases(SAME))
def test_values(torch, case):
    same(eval(case, world(xtensor)), eval(case, world(torch)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases(FACTS))
def test_facts(torch, case):
    theirs = repr(eval(case, world(torch)))
    assert repr(eval(case, world(xtensor))).replace("xtensor.", "torch.") == theirs


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases(WRONG))
def test_errors(torch, case):
    with pytest.raises(Exception) as expected:
        eval(case, world(torch))
    with pytest.raises(type(expected.value)) as found:
        eval(case, world(xtensor))
    # The operator's overload is not told in all of them.
    assert str(found.value)[:24] == str(expected.value)[:24]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases(GRADIENTS))
def test_gradients(torch, case):
    worlds = []
    for library in (xtensor, torch):
        names = world(library, True)
        made = eval(case, names)
        made = library.nested.to_padded_tensor(made, 0.0) if made.is_nested else made
        (made * made).sum().backward()
        worlds.append(names)
    for name in "stwv":
        ours, theirs = (names[name].grad for names in worlds)
        assert (ours is None) == (theirs is None), name
        if theirs is not None:
            same(ours, theirs)


@pytest.mark.filterwarnings("ignore")
def test_gradients_reach_components(torch):
    found = []
    for library in (xtensor, torch):
        parts = [library.ones(n, 2, requires_grad=True) for n in (1, 3)]
        made = library.nested.as_nested_tensor(parts) * 3
        library.nested.to_padded_tensor(made, 0.0).sum().backward()
        found.append([p.grad for p in parts])
    same(*found)


def test_copies():
    s = world(xtensor, True)["s"]
    for made in (copy.deepcopy(s), pickle.loads(pickle.dumps(s))):
        assert made.requires_grad and made.size(2) == 3
        same(made.unbind(), s.unbind())


def test_sizes_are_those_of_nested_tensors_alone(torch):
    def found(T):
        a, b = (T.nested.nested_tensor([T.ones(2, 4), T.ones(n, 4)]) for n in (3, 2))
        return (
            (a.is_same_size(a.clone()), a.is_same_size(b)),
            [attempt(lambda p=p: p[0].is_same_size(p[1])) for p in ((a, T.ones(2)), (T.ones(2), a))],
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert found(xtensor) == found(torch)
