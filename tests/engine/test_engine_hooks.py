"""The hooks of the engine, on toy gradients."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections import OrderedDict

import pytest

from tests.toy_graph import Var, add, backward, leaf, linear, mul, scale
from tests.toy_graph import toy_rules as toy_rules
from xtensor import engine


def test_hook_order():
    log = []
    x = leaf()
    w = scale(x, 3.0)
    w.edge[0].register_hook(lambda gi, go: log.append(("post1", gi, go)))
    w.edge[0].register_prehook(lambda g: log.append("pre1"))
    w.register_hook(lambda g: log.append("tensor1"))
    w.edge[0].set_retain_hook(0, lambda g: log.append("retain"))
    w.register_hook(lambda g: log.append("tensor2"))
    w.edge[0].register_prehook(lambda g: log.append("pre2"))
    x.register_hook(lambda g: log.append("leaf tensor"))
    accumulator = x.leaf.edge()[0]
    accumulator.register_prehook(lambda g: log.append("leaf pre"))
    accumulator.register_hook(lambda gi, go: log.append(("leaf post", gi, go)))
    x.leaf.register_post_accumulate_hook(lambda v: log.append(("accumulated", v.grad)))
    backward(w)
    assert log == [
        *("tensor1", "tensor2", "retain", "pre1", "pre2"),
        ("post1", (3.0,), (1.0,)),
        *("leaf tensor", "leaf pre"),
        ("accumulated", 3.0),
        ("leaf post", (), (3.0,)),
    ]


def test_hooks_replace_gradients():
    x = leaf()
    w = scale(x, 3.0)
    w.register_hook(lambda g: g + 1)
    w.retain_grad()
    w.edge[0].register_prehook(lambda g: (g[0] * 10,))
    w.edge[0].register_hook(lambda gi, go: (gi[0] + go[0],))
    backward(w)
    assert w.grad == 2.0
    assert x.grad == 3 * 20 + 20


def test_handles_remove_by_call_by_block_and_are_harmless_after_the_owner():
    x = leaf()
    calls = []
    out = scale(x)
    for owner in (x, out):
        with owner.register_hook(lambda g: calls.append(1)):
            pass
    handles = [
        out.register_hook(lambda g: calls.append(1)),
        out.edge[0].register_hook(lambda *a: calls.append(1)),
    ]
    handles.append(x.leaf.register_post_accumulate_hook(lambda v: calls.append(1)))
    for handle in handles:
        handle.remove()
        handle.remove()
    backward(out)
    assert calls == []
    handle = out.register_hook(lambda g: None)
    del out, x
    handle.remove()


def test_a_hook_may_remove_itself_and_register_others():
    x = leaf()
    out = scale(x)
    calls = []

    def once(g):
        calls.append("once")
        handle.remove()
        out.register_hook(lambda g: calls.append("later"))

    handle = out.register_hook(once)
    backward(out, keep_graph=True)
    backward(out)
    assert calls == ["once", "later"]


def test_handles_pickle_with_their_dictionary():
    hooks = OrderedDict()
    handle = engine.RemovableHandle(hooks)
    hooks[handle.id] = "hook"
    copied_hooks, copied = pickle.loads(pickle.dumps((hooks, handle)))
    assert copied.id == handle.id
    assert engine.RemovableHandle(hooks).id > handle.id
    copied.remove()
    assert not copied_hooks and hooks
    dead = pickle.loads(pickle.dumps(copied))
    dead.remove()


@pytest.mark.parametrize(
    ("kind", "result", "error", "message"),
    [
        ("pre", 5.0, TypeError, "expected tuple, but hook returned 'float'"),
        ("pre", [5.0], TypeError, "expected tuple, but hook returned 'list'"),
        (
            "pre",
            (1.0, 2.0),
            RuntimeError,
            r"hook 'hook' has returned an incorrect number of values \(got 2, but expe",
        ),
        ("post", (), RuntimeError, r"has returned an incorrect number of values \(got 0, but expected 1\)"),
        ("second", 1.0, RuntimeError, "can't replace a None gradient with a non-None value"),
        ("accumulated", 1, TypeError, "expected Variable, but hook returned 'int'"),
    ],
)
def test_hook_errors(kind, result, error, message):
    x = leaf()
    first, second = linear((x,), (2.0,), (3.0,))

    def hook(*args):
        return result

    node = scale(first).edge[0]
    {
        "pre": node.register_prehook,
        "post": node.register_hook,
        "second": second.register_hook,
        "accumulated": x.leaf.register_post_accumulate_hook,
    }[kind](hook)
    with pytest.raises(error, match=message):
        backward(Var(0.0, (node, 0)))


def test_leaf_hooks_outlive_the_accumulator_and_node_hooks_do_not():
    x = leaf()
    calls = []
    first = x.leaf.edge()[0]
    x.register_hook(lambda g: calls.append("tensor"))
    first.register_hook(lambda *a: calls.append("node"))
    x.leaf.register_post_accumulate_hook(lambda v: calls.append("accumulated"))
    alive = weakref.ref(first)
    del first
    assert alive() is None
    backward(scale(x))
    assert calls == ["tensor", "accumulated"]


def test_hooks_registered_while_the_accumulator_lives():
    x = leaf()
    out = scale(x)
    x.register_hook(lambda g: g * 5)
    backward(out)
    assert x.grad == 10.0


def test_multi_grad_hook_all():
    a, b = leaf(2.0), leaf(3.0)
    c, d = mul(a, b), mul(a, b)
    seen = []
    handle = engine.register_multi_grad_hook(
        (a, b, c, d), lambda grads: seen.append([g is not None for g in grads])
    )
    backward(c, keep_graph=True)
    backward(c, inputs=[a], keep_graph=True)
    backward(add(c, d), keep_graph=True)
    handle.remove()
    backward(c)
    assert seen == [[True, True, True, False], [True, False, True, False], [True] * 4]


def test_multi_grad_hook_any():
    a, b = leaf(), leaf()
    out = add(scale(a), scale(b))
    seen = []
    handle = engine.register_multi_grad_hook((a, b, Var(1.0)), seen.append, mode="any")
    backward(out, keep_graph=True)
    backward(out, keep_graph=True)
    handle.remove()
    backward(out)
    assert seen == [2.0, 2.0]
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got some"):
        engine.register_multi_grad_hook((a,), seen.append, mode="some")


def test_multi_grad_hooks_keep_neither_graph_nor_gradients():
    gc.collect()
    gc.disable()
    try:
        a = leaf()
        middle = scale(a)
        out = scale(middle)
        engine.register_multi_grad_hook((a, middle), lambda grads: None)
        alive = [weakref.ref(out.edge[0]), weakref.ref(middle.edge[0]), weakref.ref(a)]
        backward(out)
        del out, middle, a
        assert [ref() for ref in alive] == [None] * 3
    finally:
        gc.enable()


def test_final_callbacks():
    x = leaf()
    out = scale(x)
    log = []

    def last():
        assert engine.is_executing()
        log.append(("last", x.grad, threading.get_ident()))
        engine.queue_callback(lambda: log.append("after last"))

    out.register_hook(lambda g: engine.queue_callback(last))
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        engine.queue_callback(last)
    assert engine.current_task_id() == -1 and not engine.is_executing()
    backward(out)
    assert log == [("last", 2.0, threading.get_ident()), "after last"]
