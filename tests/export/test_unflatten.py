"""Exported programs as modules again."""

import io

import pytest

import xtensor
from xtensor import nn, trees
from xtensor.export import Dim, export, load, save, unflatten


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.act = nn.ReLU()

    def forward(self, x, scale=1.0):
        return self.act(self.inner(x)) * scale


class Pairs(nn.Module):
    def forward(self, pair, *, more):
        return {"p": pair[0] + more["z"], "q": (pair[1] * 2, 3)}


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", xtensor.zeros(4))

    def forward(self, x):
        self.seen = self.seen + x.sum(0)
        return x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.pairs, self.norm, self.drop, self.counting = (
            Pairs(),
            nn.BatchNorm1d(4),
            nn.Dropout(0.5),
            Counting(),
        )
        self.shift = nn.Parameter(xtensor.ones(4))

    def forward(self, x):
        for block in self.blocks:
            x = block(x, scale=2.0)
        r = self.pairs((x, x + 1), more={"z": x})
        x = self.blocks[0](r["p"] + r["q"][0]) + self.shift
        return self.drop(self.norm(self.counting(x))), r


KEPT = ("pairs", "blocks.0", "norm")


@pytest.fixture(scope="module", params=[(), KEPT], ids=["plain", "kept"])
def programs(request):
    """A program, one of a file, and one of its decomposition."""
    xtensor.manual_seed(0)
    program = export(
        Net(),
        (xtensor.randn(3, 4),),
        dynamic_shapes=({0: Dim("b", min=2)},),
        preserve_module_call_signature=request.param,
    )
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    return program, load(file), program.run_decompositions()


def test_the_modules_compute_what_the_program_does(programs):
    for program in programs:
        parts = unflatten(program)
        for rows in (3, 7):
            x = xtensor.randn(rows, 4)
            xtensor.manual_seed(1)
            expected = program.module()(x)
            xtensor.manual_seed(1)
            found = parts(x)
            assert trees.tree_structure(found) == trees.tree_structure(expected)
            for a, b in zip(trees.tree_leaves(found), trees.tree_leaves(expected), strict=True):
                assert xtensor.equal(a, b) if isinstance(a, xtensor.Tensor) else a == b
        assert parts.norm.num_batches_tracked == 2 and parts.counting.seen.abs().sum() > 0
        parts(x)[0].sum().backward()
        assert all(p.grad is not None for p in parts.parameters())
        assert all(p.grad is None for p in program.parameters())
        with pytest.raises(AssertionError, match="Guard failed"):
            parts(xtensor.ones(3, 5))


def test_modules_have_their_names_and_weights(programs):
    parts = unflatten(programs[1])
    names = {name for name, _ in parts.named_modules()}
    assert names == {name for name, _ in Net().named_modules()} | {"blocks.0@1"}
    assert {n: tuple(p.shape) for n, p in parts.named_parameters()} == {
        n: tuple(p.shape) for n, p in Net().named_parameters()
    }


def test_a_module_is_replaced_by_another():
    xtensor.manual_seed(0)
    program = export(Net(), (xtensor.randn(3, 4),), preserve_module_call_signature=KEPT)
    parts, x = unflatten(program), xtensor.randn(3, 4)

    class Zeros(nn.Module):
        def forward(self, pair, *, more):
            assert set(more) == {"z"}
            return {"p": pair[0] * 0, "q": (pair[1] * 0, 3)}

    parts.pairs = Zeros()
    assert not parts(x)[1]["p"].any()
    parts.blocks.add_module("0", Block())
    assert xtensor.equal(
        parts.blocks.get_submodule("0")(x, scale=2.0), parts.blocks.get_submodule("0")(x) * 2
    )
    assert "pairs" in parts.print_readable(print_output=False)


def test_calls_of_one_module_share_what_is_the_same():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.again = self.layer

        def forward(self, x):
            return self.again(self.layer(x))

    x = xtensor.randn(2, 4)
    net = Twice()
    parts = unflatten(export(net, (x,)))
    assert [n.target for n in parts.graph.nodes if n.op == "call_module"] == ["layer", "layer"]
    assert xtensor.equal(parts(x), net(x)) and [n for n, _ in parts.named_parameters()] == [
        "layer.weight",
        "layer.bias",
    ]
    with pytest.raises(RuntimeError, match="no call of this module"):
        parts.again(x)


def test_a_module_called_from_beside_it_and_weights_of_others():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Linear(4, 4), nn.Module()
            self.right.inner = nn.Linear(4, 4)
            object.__setattr__(self.right, "friend", self.left)
            self.right.forward = lambda x: self.right.friend(x) + self.right.inner(x) @ self.left.weight

        def forward(self, x):
            return self.right(x) * self.left(x)

    net, x = Outer(), xtensor.randn(3, 4)
    program = export(net, (x,))
    assert xtensor.equal(unflatten(program)(x), net(x))


def test_the_form_of_calls():
    program = export(Net(), (xtensor.randn(3, 4),), preserve_module_call_signature=("blocks.0",))
    calls = {call.fqn: call.signature for call in program.module_call_graph}
    assert list(calls) == [name for name, _ in Net().named_modules()]
    assert calls[""].forward_arg_names == ["x"] and calls["blocks.1"] is None
    assert [type(a).__name__ for a in calls["blocks.0"].inputs] == ["TensorArgument", "ConstantArgument"]
    assert program.call_spec.in_spec == calls[""].in_spec and program.dialect == "TRAINING"
    program.validate()
    inner = next(n for n in program.graph.nodes if n.op == "call_function")
    assert [fqn for fqn, _ in inner.meta["nn_module_stack"].values()] == ["", "blocks.0", "blocks.0.inner"]
    with pytest.raises(ValueError, match="no module 'nobody'"):
        export(Net(), (xtensor.randn(3, 4),), preserve_module_call_signature=("nobody",))
