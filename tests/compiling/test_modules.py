"""Compiled modules: forward as one program, backward as another, everything around them eager."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import xtensor
from xtensor import nn

F = nn.functional


def net() -> nn.Sequential:
    xtensor.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 2))


def entries(module: Any) -> list[Any]:
    return module._compiled_call_impl._xt_compiled.entries


def trained(compiled: bool) -> Any:
    model = net()
    if compiled:
        model.compile()
    opt = xtensor.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    data = np.random.default_rng(0).normal(size=(6, 5, 4)).astype("f")
    xtensor.manual_seed(1)
    losses = []
    for x in data:
        inputs = xtensor.tensor(x).requires_grad_()
        opt.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        opt.step()
        grad: Any = inputs.grad
        losses.append((loss.item(), grad.tolist()))
    model.eval()
    with xtensor.no_grad():
        out = [model(xtensor.tensor(x)).tolist() for x in data[:3]]
    return losses, [v.tolist() for v in model.state_dict().values()], out, model


def test_training_and_inference(no_tracers: Any) -> None:
    *eager, _ = trained(False)
    *fast, model = trained(True)
    for a, b in zip(eager, fast, strict=True):
        for u, v in zip(a, b, strict=True):
            for p, q in zip(
                u if isinstance(u, tuple) else (u,), v if isinstance(v, tuple) else (v,), strict=True
            ):
                np.testing.assert_allclose(q, p, rtol=2e-5, atol=2e-6)
    assert [e.program.calls for e in entries(model)] == [3, 5]
    assert entries(model)[1].program.pull is not None
    assert entries(model)[0].program.pull is None
    no_tracers()


def test_flags_hooks_and_numbers_of_a_compiled_module() -> None:
    model, other = net(), net()
    model.compile()
    x = xtensor.randn(5, 4)
    model(x)

    def same() -> None:
        xtensor.manual_seed(5)
        eager = other(x).tolist()
        xtensor.manual_seed(5)
        np.testing.assert_allclose(model(x).tolist(), eager, rtol=1e-5, atol=1e-6)

    other(x)
    same()
    for m in (model, other):
        m.eval()
    same()
    for m in (model, other):
        m.train()
        m[3].p = 0.0
    same()
    for m in (model, other):
        m[0].register_forward_hook(lambda module, inputs, output: output * 2)
    same()
    for m in (model, other):
        m[4] = nn.Identity()
    same()


def test_state_dict_copies_and_pickles_know_nothing_of_it() -> None:
    model = net()
    names = list(model.state_dict())
    model.compile()
    x = xtensor.randn(3, 4)
    model(x)
    model(x)
    assert list(model.state_dict()) == names
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other._compiled_call_impl is None
        assert other.eval()(x).tolist() == net().eval().__class__(*other)(x).tolist()


def test_two_backward_passes_and_one_too_many() -> None:
    w = nn.Parameter(xtensor.ones(3))

    @xtensor.compile
    def f(x: Any) -> Any:
        return (w * x).exp(), (w * w).sum()

    x = xtensor.arange(3.0)
    f(x)
    a, b = f(x)
    (a.sum() + b).backward(retain_graph=True)
    assert w.grad is not None
    first = w.grad.tolist()
    np.testing.assert_allclose(first, (np.exp([0, 1, 2]) * [0, 1, 2] + 2), rtol=1e-6)
    b.backward()
    np.testing.assert_allclose(w.grad.tolist(), np.array(first) + 2, rtol=1e-6)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        a.sum().backward()
    grad: Any = xtensor.autograd.grad(f(x)[1], [w])[0]
    assert grad.tolist() == [2.0, 2.0, 2.0]


def test_a_weight_written_between_forward_and_backward_is_told() -> None:
    w = nn.Parameter(xtensor.ones(3))
    f = xtensor.compile(lambda x: w * w * x)
    x = xtensor.ones(3)
    f(x)
    out = f(x).sum()
    with xtensor.no_grad():
        w.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_hooks_of_leaves_run_once_and_gradients_go_on_into_the_graph_before() -> None:
    w = nn.Parameter(xtensor.ones(3))
    seen: list[Any] = []
    w.register_hook(lambda grad: seen.append(grad.tolist()) or grad * 2)
    f = xtensor.compile(lambda x: (w * x).sum())
    leaf = xtensor.arange(3.0).requires_grad_()
    for _ in range(3):
        w.grad = leaf.grad = None
        f(leaf * 2).backward()
        assert w.grad is not None and leaf.grad is not None
        assert w.grad.tolist() == [0.0, 4.0, 8.0]
        assert leaf.grad.tolist() == [2.0, 2.0, 2.0]
    assert len(seen) == 3


def test_results_that_are_arguments_views_and_containers() -> None:
    table = xtensor.arange(6.0).reshape(2, 3)

    @xtensor.compile
    def f(x: Any, k: int) -> Any:
        return {"same": x, "row": table[1], "turned": (x * 2).t(), "k": k, "list": [x + 1, None, "text"]}

    x = xtensor.ones(2, 3)
    f(x, 4)
    found = f(x, 4)
    assert found["same"] is x and found["k"] == 4 and found["list"][1:] == [None, "text"]
    assert found["turned"].stride() == (1, 3)
    found["row"].add_(1.0)
    assert table.tolist() == [[0.0, 1.0, 2.0], [4.0, 5.0, 6.0]]
    assert f(x, 4)["row"].tolist() == [4.0, 5.0, 6.0]


def test_decorators_options_and_the_compiler_module() -> None:
    compiler = xtensor.compiler

    @xtensor.compile(fullgraph=True, dynamic=False, mode="max-autotune")
    def f(x: Any) -> Any:
        return x * 2

    assert f.__name__ == "f"
    assert f(xtensor.ones(1)).item() == f(xtensor.ones(1)).item() == 2
    assert xtensor.compile(f, disable=True) is f
    assert not compiler.is_compiling() and "inductor" in compiler.list_backends()
    flags: list[bool] = []

    @compiler.disable
    def outside(x: Any) -> Any:
        flags.append(compiler.is_compiling())
        return x + 1

    g = xtensor.compile(lambda x: outside(x) * 2)
    with pytest.warns(UserWarning, match="not to be compiled"):
        assert [g(xtensor.ones(1)).item() for _ in range(3)] == [4.0] * 3
    assert flags == [False] * 3
    h = xtensor.compile(lambda x: x * (3 if compiler.is_compiling() else 2))
    assert [h(xtensor.ones(1)).item() for _ in range(2)] == [2.0, 3.0]
    with compiler.set_stance("force_eager"):
        assert h(xtensor.ones(1)).item() == 2
    with compiler.set_stance("fail_on_recompile"), pytest.raises(RuntimeError, match="fail_on_recompile"):
        h(xtensor.ones(2))
    compiler.reset()
    assert not h._xt_compiled.entries
    with pytest.raises(RuntimeError, match="invalid"):
        compiler.set_stance("other")


def test_explain_tells_inputs_writes_guards_and_breaks() -> None:
    model = net()
    opt = xtensor.optim.Adam(model.parameters())

    @xtensor.compile
    def step(x: Any) -> Any:
        opt.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        opt.step()
        return loss.detach()

    compile_: Any = xtensor.compile
    text = str(compile_.explain(step)(xtensor.randn(3, 4)))
    assert "step: 1 program\n" in text and "1 argument," in text and "float32[3,4]" in text
    assert "21 buffers reused; 6 gradients set" in text and "1 optimizer," in text
    bad = xtensor.compile(lambda x: x.sum().item())
    with pytest.warns(UserWarning):
        found = xtensor.compiler.explain(bad)(xtensor.ones(2))
    assert found.programs == 0 and "test_modules.py" in found.breaks[0]


def test_second_derivatives_run_the_function_again() -> None:
    w = nn.Parameter(xtensor.full((3,), 2.0))
    f = xtensor.compile(lambda x: (x.sum(), (w * w * w * x).sum()))
    leaf = xtensor.ones(3, requires_grad=True)
    for _ in range(3):
        x = leaf * 1.0
        first: Any = xtensor.autograd.grad(f(x)[1], [w, leaf], create_graph=True)
        second: Any = xtensor.autograd.grad(first[0].sum() + first[1].sum(), [w, leaf])
        assert first[0].tolist() == [12.0] * 3 and first[1].tolist() == [8.0] * 3
        assert second[0].tolist() == [24.0] * 3 and second[1].tolist() == [12.0] * 3
    drops = xtensor.compile(lambda x: F.dropout(x, 0.5) * w)
    drops(leaf)
    with pytest.raises(RuntimeError, match="cannot be run again"):
        xtensor.autograd.grad(drops(leaf).sum(), [w], create_graph=True)


def test_within_other_transforms_it_is_the_function() -> None:
    f = xtensor.compile(lambda x: (x * x).sum())
    x = xtensor.arange(3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert xtensor.func.grad(f)(x).tolist() == [0.0, 2.0, 4.0]
            assert xtensor.func.vmap(f)(x.reshape(3, 1)).tolist() == [0.0, 1.0, 4.0]


def wrapped(lib: Any) -> list[Any]:
    inner = lib.nn.Sequential(lib.nn.Linear(4, 3), lib.nn.Dropout(0.0))
    outer = lib.compile(inner, backend="eager")
    outer.note = 5
    called: list[int] = []
    outer.register_forward_hook(lambda *_: called.append(1))
    outer.eval()
    found = [
        type(outer).__name__,
        outer._orig_mod is inner,
        isinstance(outer, lib.nn.Sequential),
        list(outer.state_dict()),
        list(dict(outer.named_modules())),
        inner.note,
        (inner.training, outer.training),
        tuple(outer(lib.ones(2, 4)).shape),
        called,
        type(copy.deepcopy(outer)).__name__,
        copy.deepcopy(outer)._orig_mod is inner,
        lib.compile(inner, disable=True) is inner,
    ]
    outer.load_state_dict(outer.state_dict())
    return found


def test_a_compiled_module_is_as_in_pytorch() -> None:
    assert wrapped(xtensor) == wrapped(pytest.importorskip("torch"))


def test_a_compiled_module_runs_as_a_program_and_its_original_does_not() -> None:
    inner = net()
    outer = pickle.loads(pickle.dumps(xtensor.compile(inner)))
    x = xtensor.ones(5, 4)
    outer.eval()
    results = [outer(x), outer(x), outer(x), outer._orig_mod(x)]
    assert len(outer.compiled()._xt_compiled.entries) == 1 and outer._orig_mod._compiled_call_impl is None
    assert all(r.allclose(results[-1], atol=1e-6) for r in results)


class Renamed:
    """Looks its own attributes up, as configurations do."""

    names: dict[str, str] = {"width": "size"}
    size = 3

    def __getattribute__(self, key: str) -> Any:
        if key != "names" and key in super().__getattribute__("names"):
            key = super().__getattribute__("names")[key]
        return super().__getattribute__(key)


def test_what_looks_its_attributes_up_is_looked_at_once() -> None:
    config = Renamed()
    run = xtensor.compile(lambda x: x * config.width, fullgraph=True)
    assert run(xtensor.ones(2)).tolist() == [3.0, 3.0]
    # To ask what the object is calls its `__getattribute__`, which asked again, without end.
    with pytest.raises(RuntimeError, match=r"it calls Renamed\.__getattribute__"):
        run(xtensor.ones(2))
