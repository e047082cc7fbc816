"""Jagged tensors against PyTorch's: values, sizes, errors and gradients over a table of expressions."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import xtensor
from xtensor.serialization import nested_parts

# Expressions in `x` (2, j, 3), `y` with the same rows, `p` padded, `w` (5, 3), `v` (3,), `k` (2, 3, 4); the library is `L`.
SAME = """
x + 1 | 1 / (x + 9) | 2 - x | -x | x ** 2 | x * y | x + v | v + x | x + p | x + p[:, :1] | x + p[:1, :1] | x.mul(y, ).sub(y, alpha=2)
L.abs(x) | L.clamp(x, 0, 3) | x.exp() | x.sigmoid() | x.round() | x.isnan() | x > 2 | x == y | L.where(x > 1, x, y) | L.where(x > 1, x, 0.)
x.masked_fill(x > 1, 0) | L.maximum(x, y) | L.lerp(x, y, 0.5) | x.to(L.float64) | x.half() | x.long() | x.bool() | ~(x > 1) | x.clone()
L.zeros_like(x) | L.ones_like(x) | L.full_like(x, 2.) | L.nn.functional.relu(x) | L.nn.functional.gelu(x) | L.nn.functional.silu(x)
L.nn.functional.softplus(x) | L.nn.functional.leaky_relu(x) | L.nn.functional.dropout(x, 0.5, False) | x.nan_to_num()
x.sum() | x.sum(1) | x.sum(-1) | x.sum(1, keepdim=True) | x.sum((0, 1)) | x.sum((0, 1), keepdim=True) | x.sum((0, 1, 2)) | x.mean() | x.mean(1)
x.mean(-1) | x.mean((0, 1)) | x.amax(1) | x.amax(-1) | x.amin(1) | x.amax() | x.max() | x.max(1) | x.max(-1) | x.argmax(1) | x.prod(1)
(x > 0).any() | (x > 0).all(1) | x.softmax(1) | x.softmax(-1) | x.log_softmax(-1) | L.sum(x, dim=1)
L.nn.functional.layer_norm(x, (3,)) | L.nn.functional.layer_norm(x, (3,), v, v) | L.nn.functional.layer_norm(x, (x.size(1), 3))
L.nn.functional.rms_norm(x, (3,)) | L.nn.functional.linear(x, w) | x @ w.t() | L.matmul(x, k) | L.bmm(x, k) | x.transpose(1, 2) @ y
x.transpose(1, 2) | x.mT | x.permute(0, 2, 1) | x.movedim(1, 2) | x.unsqueeze(1) | x.unsqueeze(-1) | x.unsqueeze(-1).squeeze(-1) | x[0] | x[-1, 1]
x[..., 0] | x.unbind() | x.select(0, 1) | x.select(2, 1) | x.chunk(3, -1) | x.split(1, -1) | x.narrow(2, 1, 2) | x.view(2, -1, 3, 1)
x.view(2, x.size(1), 3, 1) | x.reshape(2, -1, 1, 3) | x.expand(2, x.size(1), 3) | x.flatten(-1) | x.unflatten(-1, (3, 1)) | L.cat([x, y], -1)
x.to_padded_tensor(0.) | L.nested.to_padded_tensor(x, -1., output_size=(2, 5, 3)) | x.transpose(1, 2).to_padded_tensor(2.) | x.chunk(2, 0)
x.values() | x.offsets() | x.contiguous() | x.detach() | x.transpose(1, 2).unbind() | x.unsqueeze(1).transpose(1, 2)
"""
FACTS = """
x.shape | x.size(0) | x.size(1) | x.size(-1) | x.dim() | x.numel() | x.nbytes | x.stride() | x.is_nested | x.layout | len(x) | x.ndim | x.dtype
x.device | x.lengths() | x.is_contiguous() | x.transpose(1, 2).is_contiguous() | x.is_leaf | x.size(1) == 3 | x.size(1) == x.shape[1] | 3 * x.size(1)
x.size(1) >= 2 | (x + 1).shape == x.shape | x.is_same_size(y) | x._max_seqlen | x._min_seqlen | x | x.transpose(1, 2) | x.element_size()
"""
WRONG = """
x.sum(0) | x.sum((1, 2)) | x.transpose(0, 1) | x.unsqueeze(0) | x.squeeze(1) | x.squeeze(0) | x[:, 0] | x.unbind(1) | L.cat([x, x], 0) | L.cat([x, x], 1)
x + other | x + L.ones(2, 3) | x + L.ones(4, 3) | x + L.ones(2, 5, 3) | x + L.ones(1, 4, 3) | x.reshape(6, 3) | x.reshape(2, 3, -1) | x.flatten(1, 2)
x.flatten()
x.cumsum(1) | x.sort() | x.select(1, 0) | x.narrow(1, 0, 1) | x.chunk(2, 1) | x.log_softmax(1) | x.softmax(0) | L.stack([x, x]) | bool(x) | x.T
x @ x.transpose(1, 2) | L.nn.functional.linear(x.transpose(1, 2), w) | x.item() | x.numpy() | x.tolist() | L.nested.nested_tensor([], layout=L.jagged)
L.nested.nested_tensor([L.tensor(1.)], layout=L.jagged) | L.nested.nested_tensor(3, layout=L.jagged) | L.nested.nested_tensor_from_jagged(v)
L.nested.nested_tensor([v], layout=L.sparse_coo) | L.nested.nested_tensor([v, v.double()], layout=L.jagged) | L.nested.as_nested_tensor(3)
L.nested.nested_tensor_from_jagged(v, L.tensor([0, 3]), jagged_dim=0) | L.nested.narrow(p, 0, 0, L.tensor([1]), layout=L.jagged) | x.sum(5)
L.nested.narrow(p, 1, 0, L.tensor([1, 2])) | h.to_padded_tensor(0.) | h.sum(1) | x.size(1) > 3
"""
GRADIENTS = """
x * y | x.amax(1) | x.softmax(-1) | L.nn.functional.linear(x, w) | x @ k | x * p[:, :1] | x.transpose(1, 2) @ y
L.nn.functional.layer_norm(x, (3,)) | x.to_padded_tensor(0.) | x[1]
L.cat([x, y], -1) | x.unbind()[1] | L.where(x > 1, x, y) | x.values() | x.clone().mul_(2)
"""


def cases(text: str) -> list[str]:
    return [case.strip() for line in text.strip().splitlines() for case in line.split("|") if case.strip()]


def world(L, counts=(2, 4), requires_grad=False):
    rng = np.random.default_rng(7)

    def dense(*sizes):
        return L.tensor(rng.standard_normal(sizes).astype(np.float32) * 2)

    rows = [dense(n, 3) for n in counts]
    x = L.nested.nested_tensor(rows, layout=L.jagged, requires_grad=requires_grad)
    y = L.nested.nested_tensor_from_jagged(dense(sum(counts), 3), x.offsets())
    if requires_grad:
        y = y.detach().requires_grad_()
    named = {
        "p": dense(len(counts), max(counts), 3),
        "w": dense(5, 3),
        "v": dense(3),
        "k": dense(len(counts), 3, 4),
    }
    if requires_grad:
        named = {name: value.requires_grad_() for name, value in named.items()}
    holes = L.nested.nested_tensor_from_jagged(L.ones(8, 3), L.tensor([0, 2, 5]), L.tensor([1, 2]))
    other = L.nested.nested_tensor(rows, layout=L.jagged)
    return {"L": L, "x": x, "y": y, "h": holes, "other": other, **named}


def same(ours, theirs, tolerance=1e-5):
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, tolerance)
    elif theirs.is_nested:
        assert ours.is_nested and ours.dim() == theirs.dim()
        assert [str(n).strip("j0123456789") == "" for n in ours.shape] == [
            str(n).strip("j0123456789") == "" for n in theirs.shape
        ]
        assert ("j" in str(ours.shape[-1])) == ("j" in str(theirs.shape[-1]))
        same(ours.unbind(), theirs.unbind(), tolerance)
    else:
        assert str(ours.dtype).partition(".")[2] == str(theirs.dtype).partition(".")[2]
        np.testing.assert_allclose(
            np.asarray(ours.detach().cpu().numpy(), np.float64),
            np.asarray(theirs.detach().numpy(), np.float64),
            tolerance,
            tolerance,
        )


def plain(text: str) -> str:
    """A text without the numbers of sizes, and with one library's name for both."""
    for number in range(300, -1, -1):
        text = text.replace(f"j{number}", "j")
    return text.replace("xtensor.", "torch.")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases(SAME))
def test_values(torch, case):
    same(eval(case, world(xtensor)), eval(case, world(torch)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases(FACTS))
def test_facts(torch, case):
    assert plain(repr(eval(case, world(xtensor)))) == plain(repr(eval(case, world(torch))))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases(WRONG))
def test_errors(torch, case):
    theirs, ours = world(torch), world(xtensor)
    with pytest.raises(Exception) as expected:
        eval(case, theirs)
    with pytest.raises(type(expected.value)) as found:
        eval(case, ours)
    assert plain(str(found.value))[:90] == plain(str(expected.value))[:90]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", cases(GRADIENTS))
def test_gradients(torch, case):
    worlds = []
    for library in (xtensor, torch):
        names = world(library, requires_grad=True)
        made = eval(case, names)
        made = made.values() if made.is_nested else made
        (made * made).sum().backward()
        worlds.append(names)
    for name in "xypwvk":
        ours, theirs = (names[name].grad for names in worlds)
        assert (ours is None) == (theirs is None), name
        if theirs is not None:
            same(ours, theirs, 1e-4)


def test_gradients_reach_components(torch):
    found = []
    for library in (xtensor, torch):
        parts = [library.ones(n, 2, requires_grad=True) for n in (1, 3)]
        x = library.nested.as_nested_tensor(parts, layout=library.jagged)
        (x.exp() * x.values().sum()).sum().backward()
        found.append([p.grad for p in parts])
    same(*found)


# What PyTorch 2.13 has no gradient for, or (softmax over rows' elements) a wrong one: against the same for each row, of `r`.
BY_ROWS = {
    "x.softmax(1) * x": "r.softmax(0) * r",
    "x.sum(1).exp()": "r.sum(0).exp()",
    "x.mean(1).exp()": "r.mean(0).exp()",
    "x.sum((0, 1))": "r.sum(0)",
    "x.unsqueeze(1).transpose(1, 2) * 2": "r * 2",
    "x[..., 0]": "r[..., 0]",
    "L.nn.functional.layer_norm(x, (x.size(1), 3)) * x": "L.nn.functional.layer_norm(r, tuple(r.shape)) * r",
    "x + x.to_padded_tensor(0.0)": "r + r",
    "attention(x, False)": "attention(r[None], False)",
    "attention(x, True)": "attention(r[None], True)",
}


@pytest.mark.parametrize("case", BY_ROWS)
def test_gradients_by_rows(torch, case):
    rows = [np.cos(np.arange(n * 3)).astype(np.float32).reshape(n, 3) for n in (1, 4)]
    found = []
    for library in (xtensor, torch):

        def attention(x, causal, L=library):
            q = x.unflatten(-1, (1, 3)).transpose(1, 2)
            made = L.nn.functional.scaled_dot_product_attention(q, q * 2, q + 1, is_causal=causal)
            return made.transpose(1, 2).flatten(-2)

        leaves = [library.tensor(row, requires_grad=True) for row in rows]
        names = {"L": library, "attention": attention}
        if library is xtensor:
            x = library.nested.as_nested_tensor(leaves, layout=library.jagged)
            eval(case, {**names, "x": x}).sum().backward()
        else:
            for r in leaves:
                eval(BY_ROWS[case], {**names, "r": r}).sum().backward()
        found.append([leaf.grad for leaf in leaves])
    same(*found, tolerance=1e-4)


@pytest.mark.filterwarnings("ignore")
def test_attention_of_other_rows(torch):
    found = []
    for library in (xtensor, torch):
        rng = np.random.default_rng(3)
        x, y = (
            library.nested.nested_tensor(
                [library.tensor(rng.standard_normal((n, 8)).astype(np.float32)) for n in counts],
                layout=library.jagged,
            )
            for counts in ((3, 5), (2, 7))
        )
        q, k = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in (x, y))
        attend = library.nn.functional.scaled_dot_product_attention
        if library is xtensor:
            found.append(attend(q, k, k + 1, scale=0.3).unbind())
        else:
            pairs = zip(q.unbind(), k.unbind(), strict=True)
            found.append([attend(a, b, b + 1, scale=0.3) for a, b in pairs])
    same(*found, tolerance=1e-4)


def test_modules(torch):
    found = []
    for library in (xtensor, torch):
        nn = library.nn
        model = nn.Sequential(
            nn.Embedding(7, 4), nn.Linear(4, 4), nn.LayerNorm(4), nn.GELU(), nn.Dropout(0.0)
        )
        for i, parameter in enumerate(model.parameters()):
            values = (
                np.cos(np.arange(parameter.numel()) + i).astype(np.float32).reshape(tuple(parameter.shape))
            )
            parameter.data.copy_(library.tensor(values))
        x = library.nested.nested_tensor([[1, 2, 6], [3], [0, 5]], layout=library.jagged)
        made = model(x)
        (made * made).values().sum().backward()
        found.append([made, [p.grad for p in model.parameters()]])
    same(*found, tolerance=1e-4)


def test_many_elements(torch):
    found = []
    for library in (xtensor, torch):
        x = library.arange(1500.0).reshape(500, 3)
        x = library.nested.nested_tensor_from_jagged(x, library.tensor([0, 20, 20, 321, 500]))
        found.append([x.sum(1), x.mean((0, 1)), x.softmax(1), (x * 2).to_padded_tensor(0.0)])
    same(*found)


def test_lengths_and_narrow(torch):
    found = []
    for library in (xtensor, torch):
        dense = library.arange(24.0).reshape(3, 4, 2)
        x = library.nested.narrow(
            dense, 1, library.tensor([0, 1, 2]), library.tensor([1, 2, 1]), layout=library.jagged
        )
        y = library.nested.narrow(dense, 1, 0, library.tensor([1, 2, 1]), layout=library.jagged)
        z = library.nested.masked_select(dense[..., 0], dense[..., 0] > 3)
        w = library.nested.as_nested_tensor(dense, layout=library.jagged)
        ints = [x.offsets(), x.lengths(), x.contiguous().offsets(), z.offsets(), w.offsets()]
        found.append([x, y, z, w, x + 1, x.contiguous(), x.sum(), *ints])
    same(*found)


def test_copies():
    x = world(xtensor)["x"].requires_grad_()
    for made in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert made.requires_grad and made.is_nested and made is not x
        assert np.array_equal(made.values().detach().numpy(), x.values().detach().numpy())
    assert copy.deepcopy(x).shape == x.shape


def test_writes_reach_the_values():
    x = world(xtensor)["x"]
    values = x.values()
    x.mul_(0).add_(3)
    assert values.min().item() == 3
    x.fill_(1.0)
    assert values.max().item() == 1
    x.copy_(x + 1)
    assert values.max().item() == 2
    x.zero_()
    assert values.max().item() == 0


def test_nested_gradients_add_up():
    x = world(xtensor)["x"].requires_grad_()
    for _ in range(2):
        (x * x).sum().backward()
    assert x.grad.is_nested and x.grad.shape == x.shape
    np.testing.assert_allclose(x.grad.values().numpy(), 4 * x.values().detach().numpy(), 1e-6)
    xtensor.optim.SGD([x], lr=0.0)


@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_transformer_encoder(layout):
    """Rows of a nested batch give what they give alone, with gradients to the parameters."""
    nn = xtensor.nn
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    for i, parameter in enumerate(layer.parameters()):
        values = np.cos(np.arange(parameter.numel()) + i).astype(np.float32).reshape(tuple(parameter.shape))
        parameter.data.copy_(xtensor.tensor(values))
    model = nn.TransformerEncoder(layer, 1)
    rows = [xtensor.tensor(np.sin(np.arange(n * 8.0)).astype(np.float32).reshape(n, 8)) for n in (2, 5)]
    made = model(xtensor.nested.nested_tensor(rows, layout=getattr(xtensor, layout)))
    same([*made.unbind()], [model(row[None])[0] for row in rows], 1e-4)
    xtensor.nested.to_padded_tensor(made, 0.0).cos().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    with pytest.raises(AssertionError, match="outside of its fast path"):
        layer.self_attn(made, made, made, need_weights=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_files_go_to_pytorch_and_back(torch, layout):
    def made(t):
        rows = [t.arange(6.0).reshape(2, 3), t.ones(3, 3)]
        return t.nested.nested_tensor(rows, layout=getattr(t, layout))

    for source, target in ((torch, xtensor), (xtensor, torch), (xtensor, xtensor)):
        for safe in (True, False):
            file = io.BytesIO()
            source.save({"n": made(source)}, file)
            file.seek(0)
            found = target.load(file, weights_only=safe)["n"]
            assert found.is_nested and str(found.layout).endswith(layout)
            assert [row.tolist() for row in found.unbind()] == [row.tolist() for row in made(source).unbind()]


@pytest.mark.parametrize("layout", ["jagged", "strided"])
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_optimizers_step_nested_parameters(layout, kind):
    rows = [xtensor.arange(6.0).reshape(2, 3), xtensor.ones(3, 3)]
    nested = xtensor.nested.nested_tensor(rows, layout=getattr(xtensor, layout))
    dense = xtensor.cat([row.reshape(-1) for row in rows]).requires_grad_()
    parameter = xtensor.nn.Parameter(nested)
    for p in (parameter, dense):
        step = getattr(xtensor.optim, kind)([p], lr=0.25)
        for _ in range(2):
            step.zero_grad()
            squared = p * p
            whole = xtensor.nested.to_padded_tensor(squared, 0.0) if p is parameter else squared
            whole.sum().backward()
            step.step()
    found = xtensor.cat([row.reshape(-1) for row in parameter.detach().unbind()])
    assert xtensor.allclose(found, dense.detach())
    parameter.data = xtensor.zeros_like(nested)
    assert parameter.detach().unbind()[1].tolist() == [[0.0] * 3] * 3


def test_files_whose_parts_do_not_go_together_are_refused():
    values, whole = xtensor.arange(6.0), xtensor.tensor
    with pytest.raises(TypeError, match="offsets are not in order"):
        nested_parts.jagged_of({"values": values, "offsets": whole([0, 4, 9])})
    with pytest.raises(TypeError, match="lengths are out of range"):
        nested_parts.jagged_of({"values": values, "offsets": whole([0, 4, 6]), "lengths": whole([2, 9])})
    with pytest.raises(TypeError, match="do not go together"):
        nested_parts.jagged_of({"values": values, "offsets": None})
    with pytest.raises(TypeError, match="one after the other"):
        nested_parts.strided_of(values, whole([[2], [9]]), whole([[1], [1]]), whole([0, 2]))
    with pytest.raises(TypeError, match="not contiguous"):
        nested_parts.strided_of(values, whole([[2], [4]]), whole([[1], [2]]), whole([0, 2]))
