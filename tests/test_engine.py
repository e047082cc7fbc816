"""The engine on toy gradients: floats, and nodes that multiply. Tensor and operators play no part here."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import random
import signal
import sys
import threading
import traceback
import warnings
import weakref
from collections import OrderedDict

import pytest

from xtensor import engine
from xtensor.engine import anomaly, modes, task, workers
from xtensor.engine.graph import LEAF_SEQUENCE_NR, AccumulateGrad, Error, LeafEdge, Node

SOON = 30  # seconds that a test waits for another thread before it fails


toys = engine.Interpreter()


@pytest.fixture(autouse=True)
def toy_rules():
    """An interpreter without the tensors' rules runs what is run here."""
    before = engine.executors()
    engine.install(toys)
    yield
    engine.install(*before[:-1])


class Var:
    """A toy tensor: a float with a place in the graph."""

    def __init__(self, value: float, edge=None, requires_grad: bool = False) -> None:
        self.value = value
        self.grad = None
        self.leaf = LeafEdge(self) if requires_grad and edge is None else None
        self.edge = edge
        self.requires_grad = requires_grad or edge is not None

    def _accumulate_grad(self, grad, create_graph):
        self.grad = grad if self.grad is None else self.grad + grad

    def _gradient_edge(self):
        return self.edge if self.leaf is None else self.leaf.edge()

    def input_edge(self):
        return self.edge if self.leaf is None else (self.leaf.accumulator() and self.leaf.edge())

    def register_hook(self, hook):
        if self.leaf is not None:
            return self.leaf.register_tensor_hook(hook)
        return self.edge[0].register_tensor_hook(self.edge[1], hook)

    def retain_grad(self):
        if self.leaf is None:
            self.edge[0].set_retain_hook(self.edge[1], lambda g: g is None or self._accumulate_grad(g, False))


class Linear(Node):
    """Each output is the sum of the inputs by its row of factors."""

    __slots__ = ("device", "factors", "num_inputs", "released")

    def __init__(self, edges, factors, device=None):
        super().__init__(edges)
        self.factors = factors
        self.num_inputs = len(factors)
        self.device = device
        self.released = False

    def apply(self, grads):
        if self.released:
            raise RuntimeError(engine.RELEASED)
        results = []
        for column in range(len(self.edges)):
            terms = [g * row[column] for g, row in zip(grads, self.factors) if g is not None]
            wanted = self.num_inputs > 1 or engine.should_compute(self, column)
            results.append(sum(terms[1:], terms[0]) if terms and wanted else None)
        return tuple(results)

    def release(self):
        self.released = True


class Constant(Linear):
    """Saves nothing, so it runs again after a release."""

    __slots__ = ()

    def release(self):
        pass


def linear(inputs, *factors, device=None, made=Linear):
    """Variables for one node: output i is sum(factors[i][j] * inputs[j])."""
    edges = tuple(v._gradient_edge() if v.requires_grad else None for v in inputs)
    node = made(edges, factors, device)
    values = [sum(f * v.value for f, v in zip(row, inputs)) for row in factors]
    return tuple(Var(value, (node, i)) for i, value in enumerate(values))


def scale(x, by=2.0, device=None):
    return linear((x,), (by,), device=device)[0]


def add(x, y, device=None):
    return linear((x, y), (1.0, 1.0), device=device)[0]


def mul(x, y):
    out = linear((x, y), (y.value, x.value))[0]
    out.value = x.value * y.value
    return out


def leaf(value=1.0):
    return Var(value, requires_grad=True)


def backward(*outputs, grads=None, inputs=None, keep_graph=False, create_graph=False):
    if inputs is not None:
        for v in inputs:
            v.retain_grad()
    edges = tuple(v._gradient_edge() for v in outputs)
    targets = None if inputs is None else tuple(v.input_edge() for v in inputs)
    engine.run_backward(edges, grads or (1.0,) * len(edges), keep_graph, create_graph, targets, True, True)


def grad(outputs, inputs, keep_graph=False, allow_unused=False, grads=None):
    edges = tuple(v._gradient_edge() for v in outputs)
    targets = tuple(v.input_edge() for v in inputs)
    grads = grads or (1.0,) * len(edges)
    return engine.run_backward(edges, grads, keep_graph, False, targets, allow_unused, False)


# Values


def test_diamond_accumulates_before_it_runs_the_shared_node():
    x = leaf(3.0)
    shared = scale(x)
    calls = []
    shared.edge[0].register_prehook(lambda grads: calls.append(grads))
    backward(add(scale(shared, 5.0), scale(shared, 7.0)))
    assert calls == [(12.0,)]
    assert x.grad == 24.0


def test_grads_accumulate_over_calls_and_within_one_node():
    x = leaf(3.0)
    backward(mul(x, x))
    backward(mul(x, x))
    assert x.grad == 12.0


def test_several_roots_and_a_leaf_as_root():
    x, y = leaf(), leaf()
    backward(scale(x), scale(y, 3.0), x, grads=(1.0, 10.0, 100.0))
    assert (x.grad, y.grad) == (102.0, 30.0)


def test_no_edge_where_no_gradient_is_needed():
    x = leaf()
    out = mul(Var(4.0), x)
    assert out.edge[0].edges[0] is None
    backward(out)
    assert x.grad == 4.0


def test_undefined_gradients_are_none():
    x = leaf()
    first, second = linear((x,), (2.0,), (3.0,))
    seen = []
    first.edge[0].register_prehook(lambda grads: seen.append(grads))
    second.register_hook(lambda g: seen.append(g))
    backward(first)
    assert seen == [None, (1.0, None)]
    assert x.grad == 2.0

    class Cut(Linear):
        def apply(self, grads):
            return (None,)

    y = leaf()
    backward(Var(0.0, (Cut((y._gradient_edge(),), ((1.0,),)), 0)))
    assert y.grad is None


def test_order_is_by_sequence_number_and_accumulators_run_at_once():
    x, y = leaf(), leaf()
    order = []
    a, b = scale(x), scale(y)
    c = scale(a)
    out = add(c, b)
    for name, v in (("a", a), ("b", b), ("c", c), ("out", out)):
        v.edge[0].register_prehook(lambda grads, name=name: order.append(name))
    x.register_hook(lambda g: order.append("x"))
    y.register_hook(lambda g: order.append("y"))
    backward(out)
    assert order == ["out", "c", "b", "y", "a", "x"]
    assert x.leaf.edge()[0].sequence_nr == LEAF_SEQUENCE_NR


# Captures


def test_grad_captures_and_leaves_grad_alone():
    x, y = leaf(2.0), leaf(5.0)
    assert grad([mul(x, y)], [x, y]) == (5.0, 2.0)
    assert x.grad is None and y.grad is None


def test_grad_of_an_intermediate_does_not_run_what_lies_below():
    x = leaf()
    middle = scale(x)
    middle.edge[0].register_prehook(lambda grads: pytest.fail("ran"))
    assert grad([scale(middle, 7.0)], [middle]) == (7.0,)


def test_grad_runs_tensor_hooks_before_capture_except_on_a_node_that_also_runs():
    x = leaf()
    middle = scale(x, 3.0)
    middle.register_hook(lambda g: g * 10)
    out = scale(middle)
    assert grad([out], [middle], keep_graph=True) == (20.0,)
    # PyTorch 2.13 captures the unhooked gradient here.
    assert grad([out], [middle, x], keep_graph=True) == (2.0, 60.0)


def test_grad_of_the_root_itself():
    x = leaf()
    out = scale(x)
    assert grad([out], [out, x], grads=(5.0,)) == (5.0, 10.0)


def test_unreached_inputs():
    x, never, elsewhere = leaf(), leaf(), leaf()
    other = scale(elsewhere)
    out = scale(x)
    message = "The differentiated Tensor at index 1 appears to not have been used in the graph"
    with pytest.raises(RuntimeError, match=message):
        grad([out], [x, never], keep_graph=True)
    with pytest.raises(RuntimeError, match=message):
        grad([out], [x, elsewhere], keep_graph=True)
    assert grad([out], [x, never, elsewhere, other], allow_unused=True) == (2.0, None, None, None)


def test_backward_with_inputs_accumulates_only_there():
    x, y = leaf(), leaf()
    middle = scale(x)
    backward(add(scale(middle), y), inputs=[middle])
    assert (x.grad, y.grad, middle.grad) == (None, None, 2.0)
    backward(add(scale(x), y), inputs=[y])
    assert (x.grad, y.grad) == (None, 1.0)


# Hooks


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


# Errors


def test_a_released_graph_refuses_and_a_kept_one_does_not():
    x = leaf()
    out = scale(x)
    backward(out, keep_graph=True)
    backward(out)
    assert x.grad == 4.0
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        backward(out)


def test_errors_come_with_their_traceback_and_leave_the_engine_usable():
    x = leaf()

    class Broken(Linear):
        def apply(self, grads):
            raise KeyError("the culprit")

    out = Var(0.0, (Broken((x._gradient_edge(),), ((1.0,),)), 0))
    with pytest.raises(KeyError, match="the culprit") as caught:
        backward(scale(out))
    assert caught.traceback[-1].name == "apply"
    assert not engine.is_executing() and engine.is_grad_enabled()
    backward(scale(x))
    assert x.grad == 2.0


def test_error_nodes():
    x = leaf()
    out = Var(0.0, (Error("derivative for nextafter is not implemented", (x._gradient_edge(),)), 0))
    with pytest.raises(RuntimeError, match="derivative for nextafter is not implemented"):
        backward(out)


def test_wrong_number_of_gradients():
    class Two(Linear):
        def apply(self, grads):
            return (1.0, 1.0)

    out = Var(0.0, (Two((leaf()._gradient_edge(),), ((1.0,),)), 0))
    with pytest.raises(
        RuntimeError, match="Function Two returned an invalid number of gradients - expected 1, but got 2"
    ):
        backward(out)


def validating(validate, **rules):
    return engine.Interpreter(validate, **rules)


def test_validation_fits_gradients_or_names_the_producer():
    def validate(node, slot, g):
        if g > 100:
            raise engine.InvalidGradient("got [3] but expected shape compatible with [2]")
        return round(g)

    x, y = leaf(), leaf()
    out = linear((x, y), (2.4, 3.4))[0]
    run = validating(validate).run
    run((out.edge,), (1.0,), None, True, False, True)
    assert (x.grad, y.grad) == (2, 3)
    message = "Function Linear returned an invalid gradient at index 1 - got .3. but expected shape compatible with .2."
    with pytest.raises(RuntimeError, match=message):
        run((out.edge,), (36,), None, True, False, True)
    with pytest.raises(RuntimeError, match=r"^invalid gradient at index 0 - got"):
        run((out.edge,), (200.0,), None, True, False, True)


def test_an_edge_that_appears_during_backward():
    x, y = leaf(), leaf()
    middle = scale(x)
    out = scale(middle)
    out.edge[0].register_hook(lambda gi, go: setattr(out.edge[0], "edges", (y._gradient_edge(),)))
    with pytest.raises(RuntimeError, match="dependency not found for AccumulateGrad"):
        backward(out)


# Modes


def test_create_graph_sets_the_grad_mode_of_nodes_and_hooks():
    x = leaf()
    seen = []
    out = scale(x)
    out.register_hook(lambda g: seen.append(engine.is_grad_enabled()))
    with engine.no_grad(), pytest.warns(UserWarning, match="create_graph=True will create a reference cycle"):
        backward(out, create_graph=True, keep_graph=True)
        assert not engine.is_grad_enabled()
    backward(out)
    assert seen == [True, False]


def test_grad_modes_nest_and_reuse():
    off = engine.no_grad()
    with off:
        with off, engine.enable_grad():
            assert engine.is_grad_enabled()
        assert not engine.is_grad_enabled()
        with engine.set_grad_enabled(True):
            assert engine.is_grad_enabled()
        assert not engine.is_grad_enabled()
    assert engine.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), engine.no_grad():
        raise ZeroDivisionError
    assert engine.is_grad_enabled()


def test_set_grad_enabled_acts_at_once_except_as_decorator():
    switch = engine.set_grad_enabled(False)
    assert not engine.is_grad_enabled() and "mode=False" in repr(switch)
    engine.set_grad_enabled(True)

    @engine.set_grad_enabled(False)
    def enabled():
        return engine.is_grad_enabled()

    assert (engine.is_grad_enabled(), enabled(), engine.is_grad_enabled()) == (True, False, True)
    with pytest.raises(TypeError, match=r"argument 'enabled' \(position 1\) must be bool, not int"):
        engine.set_grad_enabled(1)  # pyright: ignore[reportArgumentType]


def test_modes_decorate_with_and_without_parentheses():
    @engine.no_grad
    def bare():
        return engine.is_grad_enabled()

    @engine.no_grad()
    def called():
        """Documented."""
        return engine.is_grad_enabled()

    @engine.inference_mode
    def inference():
        return engine.is_inference_mode_enabled(), engine.is_grad_enabled()

    assert bare() is False and called() is False and called.__doc__ == "Documented."
    assert inference() == (True, False)
    with engine.no_grad():
        assert engine.enable_grad(engine.is_grad_enabled)() is True
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @engine.no_grad()
        class Made:
            def __init__(self):
                self.mode = engine.is_grad_enabled()

    assert Made().mode is False


def test_decorated_generators_hold_the_mode_only_while_they_run():
    log = []

    @engine.no_grad
    def generate():
        try:
            log.append((engine.is_grad_enabled(), (yield 1)))
            yield 2
        except KeyError:
            log.append(("caught", engine.is_grad_enabled()))
            yield 3
        finally:
            log.append(("closed", engine.is_grad_enabled()))
        return 4

    generator = generate()
    assert next(generator) == 1 and engine.is_grad_enabled()
    assert generator.send("sent") == 2 and engine.is_grad_enabled()
    assert generator.throw(KeyError()) == 3 and engine.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == 4
    assert log == [(False, "sent"), ("caught", False), ("closed", False)]
    generator = generate()
    next(generator)
    generator.close()
    assert log[-1] == ("closed", False) and engine.is_grad_enabled()


def test_inference_mode():
    with engine.inference_mode():
        assert (engine.is_grad_enabled(), engine.is_inference_mode_enabled()) == (False, True)
        assert modes.state.mode > 1
        with engine.enable_grad():
            assert (engine.is_grad_enabled(), engine.is_inference_mode_enabled()) == (True, True)
        with engine.inference_mode(False):
            assert (engine.is_grad_enabled(), engine.is_inference_mode_enabled()) == (True, False)
    with engine.no_grad(), engine.inference_mode(False):
        assert engine.is_grad_enabled()
    assert modes.state.mode == 0


def test_modes_are_per_thread():
    seen = []
    with engine.no_grad():
        thread = threading.Thread(target=lambda: seen.append(engine.is_grad_enabled()))
        thread.start()
        thread.join(SOON)
    assert seen == [True]


def test_flags_nest():
    with engine.flag(engine.AUTOCAST):
        with engine.flag(engine.AUTOCAST, False):
            assert not modes.state.mode & engine.AUTOCAST
        assert modes.state.mode & engine.AUTOCAST
    assert not modes.state.mode


def test_saved_tensors_hooks():
    def same(value):
        return value

    with engine.saved_tensors_hooks(same, repr):
        with engine.saved_tensors_hooks(str, same):
            assert modes.state.saved_hooks == [(same, repr), (str, same)]
        assert modes.state.mode & engine.SAVED_HOOKS and modes.state.saved_hooks == [(same, repr)]
        with pytest.raises(RuntimeError, match="nope"), engine.disable_saved_tensors_hooks("nope"):
            pass
    assert not modes.state.mode & engine.SAVED_HOOKS
    with engine.disable_saved_tensors_hooks("nope"):
        with engine.disable_saved_tensors_hooks("inner"):
            pass
        with pytest.raises(RuntimeError, match="nope"), engine.saved_tensors_hooks(same, same):
            pass
    with pytest.raises(TypeError, match="must be callable"), engine.saved_tensors_hooks(1, 2):  # pyright: ignore[reportArgumentType]
        pass
    assert modes.state.saved_hooks == [] and modes.state.mode == 0


# Nodes


def test_nodes_show_themselves():
    x = leaf()
    out = mul(Var(4.0), x)
    node = out.edge[0]
    assert node.name() == "Linear" and "Linear object" in repr(node)
    assert node.next_functions == ((None, 0), (x.leaf.edge()[0], 0))
    assert node.next_edges[1].function is x.leaf.accumulator() and node.next_edges[1].input_nr == 0
    assert node.meta is None
    node.metadata["note"] = 1
    assert node.metadata == {"note": 1}
    assert node(2.0) == (None, 8.0) and scale(x).edge[0](3.0) == 6.0
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        node(1.0, 2.0)
    accumulator = x.leaf.accumulator()
    assert isinstance(accumulator, AccumulateGrad) and accumulator.variable is x and accumulator.edges == ()
    assert scale(x).edge[0].sequence_nr < scale(x).edge[0].sequence_nr


def test_an_accumulator_is_shared_while_alive_and_made_anew_after():
    x = leaf()
    first = x.leaf.edge()[0]
    assert x.leaf.edge()[0] is first
    number = weakref.ref(first)
    del first
    assert number() is None and x.leaf.accumulator() is None
    assert x.leaf.edge()[0].variable is x
    edge = x.leaf
    del x
    with pytest.raises(ReferenceError):
        edge.edge()


def test_retain_hooks_can_be_moved():
    x = leaf()
    old, new = scale(x), scale(x)
    old.retain_grad()
    hook = old.edge[0].pop_retain_hook(0)
    assert (
        hook is not None and old.edge[0].pop_retain_hook(0) is None and new.edge[0].pop_retain_hook(0) is None
    )
    new.edge[0].set_retain_hook(0, hook)
    backward(new)
    assert old.grad == 1.0


# Executors


def test_executors_may_decline_and_the_choice_is_counted():
    class Plan:
        name = "plan"

        def run(self, roots, grads, inputs, keep_graph, create_graph, accumulate):
            if roots[0][0].meta is not None:
                return engine.Fallback("hooks")
            roots[0][0].edges[0][0].variable.grad = "planned"
            return ()

        def stats(self):
            return {"hits": 1}

    x = leaf()
    hooked = scale(x)
    hooked.register_hook(lambda g: None)
    plan = Plan()
    engine.install(plan, toys)
    engine.reset_stats()
    assert engine.default() is plan and engine.executors() == (plan, toys, engine.interpreter())
    backward(hooked)
    assert x.grad == 2.0
    backward(scale(x))
    assert x.grad == "planned"
    assert engine.stats() == {
        "runs": {"interpreter": 1, "plan": 1},
        "fallbacks": {"plan: hooks": 1},
        "plan": {"hits": 1},
    }


# Load


@contextlib.contextmanager
def no_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def chain(x, length):
    out = x
    for _ in range(length):
        out = scale(out, 1.0)
    return out


def test_a_chain_of_100_000_nodes_runs_and_is_destroyed_without_recursion():
    length = 100_000
    x = leaf()
    freed = []

    class Counted(Linear):
        __slots__ = ()

        def __del__(self):
            freed.append(sys._getframe(1).f_code.co_name if len(freed) < 3 else None)

    with no_collector():
        edge = x.leaf.edge()
        for _ in range(length):
            edge = (Counted((edge,), ((1.0,),)), 0)
        engine.run_backward((edge,), (1.0,), True)
        assert x.grad == 1.0
        assert engine.run_backward((edge,), (1.0,), False, False, (x.leaf.edge(),), False, False) == (1.0,)
        assert not freed
        del edge
        assert len(freed) == length
        assert x.leaf.accumulator() is None


def test_work_per_node_does_not_grow_with_the_chain():
    def count(length):
        """Python function calls made in the engine."""
        out = chain(leaf(), length)
        calls = 0

        def profile(frame, event, arg):
            nonlocal calls
            calls += event == "call"

        sys.setprofile(profile)
        try:
            backward(out)
        finally:
            sys.setprofile(None)
        return calls

    short, long = count(1_000), count(10_000)
    assert (long - short) / 9_000 <= short / 1_000


def test_saved_values_are_gone_when_backward_returns():
    class Saved:
        pass

    class Keeps(Linear):
        __slots__ = ("saved",)

        def release(self):
            self.saved = None

    x = leaf()
    node = Keeps((x._gradient_edge(),), ((1.0,),))
    node.saved = Saved()
    alive = weakref.ref(node.saved)
    with no_collector():
        engine.run_backward(((node, 0),), (1.0,))
        assert alive() is None


def test_steps_do_not_grow_with_the_collector_off():
    x = leaf()

    def step():
        out = add(scale(x), mul(x, x))
        out.register_hook(lambda g: g)
        backward(out)
        grad([mul(x, x)], [x])

    with no_collector():
        for _ in range(10):
            step()
        before = len(gc.get_objects())
        for _ in range(1_000):
            step()
        assert len(gc.get_objects()) - before < 20


def nested(depth, x, at=None):
    """A node whose run starts another backward pass, and so on `depth` deep."""

    class Nest(Linear):
        __slots__ = ()

        def apply(self, grads):
            if depth > 1:
                backward(nested(depth - 1, x, at))
            elif at is not None:
                at()
            return super().apply(grads)

    return Var(0.0, (Nest((x._gradient_edge(),), ((1.0,),)), 0))


def test_reentrant_backward_1000_deep():
    x = leaf()
    backward(nested(1_000, x))
    assert x.grad == 1_000.0
    assert len(workers._Fresh.idle) <= workers._Fresh.max_idle


def test_reentrant_errors_and_modes_cross_the_threads():
    seen = []

    def fail():
        seen.append((engine.is_grad_enabled(), bool(modes.state.mode & engine.AUTOCAST), task.local.depth))
        raise ValueError("at the bottom")

    with engine.flag(engine.AUTOCAST), pytest.raises(ValueError, match="at the bottom") as caught:
        backward(nested(300, leaf(), fail))
    assert seen == [(False, True, 300)]
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "fail" and names.count("apply") == 300
    assert task.local.depth == 0


def test_reentrant_backward_from_hooks_and_callbacks():
    x = leaf()
    out = scale(x)

    def hook(g):
        out.register_hook(lambda g: engine.queue_callback(lambda: backward(scale(x, 100.0))))
        assert grad([scale(x, 7.0)], [x]) == (7.0,)
        backward(scale(x, 10.0))

    with out.register_hook(hook):
        backward(out, keep_graph=True)
    assert x.grad == 12.0
    backward(out)
    assert x.grad == 114.0


def test_threads_that_share_leaves_lose_no_gradient():
    x = leaf()

    class Slow(float):
        def __add__(self, other):
            value = float(self)
            go.wait(0)  # lets another thread in between the read and the write
            return Slow(value + float(other))

    go = threading.Event()
    x.grad = Slow(0.0)
    start = threading.Barrier(8)
    errors = []

    def work():
        try:
            start.wait(SOON)
            for _ in range(50):
                backward(add(scale(x), scale(x, 3.0)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)
    finally:
        sys.setswitchinterval(interval)
    assert not errors
    assert float(x.grad) == 8 * 50 * 5.0


def meet_if_possible(barrier):
    """Wait a moment for another thread to get here too; a lock that keeps it out is what the test hopes for."""
    with contextlib.suppress(threading.BrokenBarrierError):
        barrier.wait(0.1)


def test_threads_get_one_accumulator(monkeypatch):
    barrier = threading.Barrier(2)

    def new(cls):
        meet_if_possible(barrier)
        return object.__new__(cls)

    monkeypatch.setattr(AccumulateGrad, "__new__", new)
    x = leaf()
    found = []
    threads = [threading.Thread(target=lambda: found.append(x.leaf.edge()[0])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert len(found) == 2 and found[0] is found[1]


# Several devices


class Meets(Linear):
    """Waits until its partner runs too: two of them finish only if they run at the same time."""

    __slots__ = ("barrier", "thread")

    def apply(self, grads):
        self.barrier.wait(SOON)
        self.thread = threading.current_thread()
        return super().apply(grads)


def meeting(device, x, barrier):
    node = Meets((x._gradient_edge(),), ((2.0,),), device)
    node.barrier = barrier
    return Var(0.0, (node, 0))


def test_independent_branches_of_two_devices_run_at_the_same_time():
    barrier = threading.Barrier(2)
    x, y = leaf(), leaf()
    a, b = meeting("cpu:0", x, barrier), meeting("cpu:1", y, barrier)
    backward(add(a, b, device="cpu:0"))
    assert (x.grad, y.grad) == (2.0, 2.0)
    assert a.edge[0].thread is threading.current_thread()
    assert b.edge[0].thread.name == "xtensor backward cpu:1"


def test_the_calling_thread_serves_home():
    run = validating(lambda node, slot, g: g, home="cpu:0").run
    barrier = threading.Barrier(2)
    a, b = meeting("cpu:0", leaf(), barrier), meeting("cpu:1", leaf(), barrier)
    run((add(a, b, device="cpu:1").edge,), (1.0,), None, False, False, True)
    assert a.edge[0].thread is threading.current_thread()


def test_one_device_needs_no_other_thread():
    names = []
    out = scale(leaf(), device="gpu:0")
    out.register_hook(lambda g: names.append(threading.current_thread()))
    backward(scale(out, device="gpu:0"))
    assert names == [threading.current_thread()]


def test_modes_and_callbacks_on_workers():
    seen = []
    x = leaf()
    out = scale(x, device="cpu:1")

    def hook(g):
        engine.queue_callback(lambda: seen.append(threading.current_thread()))
        seen.append(
            (threading.current_thread().name, engine.is_grad_enabled(), modes.state.mode & engine.AUTOCAST)
        )
        assert engine.will_execute(out.edge[0])

    out.register_hook(hook)
    with engine.flag(engine.AUTOCAST), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        backward(scale(out, device="cpu:0"), create_graph=True, keep_graph=True)
    backward(scale(out, device="cpu:0"))
    caller, worker = threading.current_thread(), "xtensor backward cpu:1"
    assert seen == [(worker, True, engine.AUTOCAST), caller, (worker, False, 0), caller]


def test_captures_and_inputs_across_devices():
    x, y = leaf(2.0), leaf(5.0)
    a, b = scale(x, 3.0, device="cpu:1"), scale(y, 4.0, device="cpu:2")
    out = add(a, b, device="cpu:0")
    assert grad([out], [x, a], keep_graph=True) == (3.0, 1.0)
    backward(out, inputs=[y])
    assert (x.grad, y.grad) == (None, 4.0)


class Fails(Linear):
    __slots__ = ()

    def apply(self, grads):
        raise KeyError("on the worker")


def test_errors_of_workers_reach_the_caller_with_their_traceback():
    x, y = leaf(), leaf()
    bad = Var(0.0, (Fails((x._gradient_edge(),), ((1.0,),), "cpu:1"), 0))
    out = add(scale(y, device="cpu:0"), bad, device="cpu:0")
    with pytest.raises(KeyError, match="on the worker") as caught:
        backward(out)
    assert caught.traceback[-1].name == "apply"
    assert not engine.is_executing()
    backward(add(scale(y, device="cpu:0"), scale(x, device="cpu:1"), device="cpu:0"))
    assert x.grad == 2.0


def test_workers_keep_nothing_alive():
    class Grad(float):
        def __mul__(self, other):
            return Grad(float(self) * other)

    out = scale(scale(leaf(), device="cpu:1"), device="cpu:0")
    alive = [weakref.ref(out.edge[0])]
    out.edge[0].register_hook(lambda gi, go: alive.append(weakref.ref(gi[0])))
    backward(out, grads=(Grad(1.0),))
    del out
    # The worker may still be on its way back to its queue.
    pause = threading.Event()
    for _ in range(SOON * 100):
        if not any(ref() for ref in alive):
            break
        pause.wait(0.01)
    assert len(alive) == 2 and not any(ref() for ref in alive)


def test_gradients_that_meet_from_several_workers_are_all_summed():
    barrier = threading.Barrier(2)

    class Slow(float):
        def __mul__(self, other):
            return Slow(float(self) * other)

        def __add__(self, other):
            meet_if_possible(barrier)
            return Slow(float(self) + float(other))

    x = leaf()
    shared = scale(x, device="cpu:0")
    branches = [scale(shared, 1.0, device=f"cpu:{i}") for i in (1, 2, 3)]
    backward(linear(branches, (1.0, 1.0, 1.0), device="cpu:0")[0], grads=(Slow(1.0),))
    assert x.grad == 6.0


def test_a_worker_that_waits_for_a_nested_pass_serves_others_and_keeps_its_own_modes():
    x = leaf()
    events = {name: threading.Event() for name in ("outer runs", "other ran")}
    log = []

    class Acts(Linear):
        __slots__ = ("act",)

        def apply(self, grads):
            self.act()
            return super().apply(grads)

    def acting(device, act):
        node = Acts((x._gradient_edge(),), ((1.0,),), device)
        node.act = act
        return Var(0.0, (node, 0))

    def outer():
        events["outer runs"].set()
        nested = acting("cpu:2", lambda: log.append(events["other ran"].wait(SOON)))
        backward(add(nested, scale(x, device="cpu:1"), device="cpu:1"))
        log.append(getattr(modes.state, "note", None))

    def other():
        log.append(getattr(modes.state, "note", None))
        events["other ran"].set()

    def first():
        modes.state.note = "first"
        backward(scale(acting("cpu:1", outer), device="cpu:0"))

    def second():
        events["outer runs"].wait(SOON)
        backward(scale(acting("cpu:1", other), device="cpu:0"))

    threads = [threading.Thread(target=run, daemon=True) for run in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert log == [None, True, "first"]


def test_reentrant_backward_across_devices():
    x = leaf()

    class Nest(Linear):
        __slots__ = ("depth",)

        def apply(self, grads):
            if self.depth:
                backward(tower(self.depth - 1))
            return super().apply(grads)

    def tower(depth):
        """Two branches, on each device one, that both go deeper: each waits for the other's worker."""
        branches = []
        for device in ("cpu:0", "cpu:1"):
            node = Nest((x._gradient_edge(),), ((1.0,),), device)
            node.depth = depth
            branches.append(Var(0.0, (node, 0)))
        return add(*branches, device="cpu:0")

    backward(tower(6))
    assert x.grad == 2.0**8 - 2


def test_backward_across_devices_from_several_threads():
    x = leaf()
    errors = []

    def work():
        try:
            for _ in range(30):
                backward(add(scale(x, device="cpu:1"), scale(x, device="cpu:2"), device="cpu:0"))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert not errors and x.grad == 4 * 30 * 4.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_forked_child_starts_its_own_workers():
    x = leaf()

    def step():
        backward(add(scale(x, device="cpu:0"), scale(x, device="cpu:1"), device="cpu:0"))

    step()
    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            signal.alarm(SOON)
            step()
            code = 0 if x.grad == 8.0 else 1
        os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


# Anomaly mode


def culprit(x):
    out = Var(0.0, (Fails((x._gradient_edge(),), ((1.0,),)), 0))
    if modes.state.mode & engine.ANOMALY:
        anomaly.record(out.edge[0])
    return out


def detect(**options):
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        return engine.detect_anomaly(**options)


def test_anomaly_mode_shows_the_forward_traceback():
    with detect():
        assert engine.is_anomaly_enabled() and engine.is_anomaly_check_nan_enabled()
        out = scale(culprit(leaf()))
        with (
            pytest.warns(
                UserWarning, match="Error detected in Fails. Traceback of forward call that caused"
            ) as warned,
            pytest.raises(KeyError),
        ):
            backward(out)
    assert not engine.is_anomaly_enabled()
    text = str(warned[0].message)
    assert "in culprit" in text and "anomaly.py" not in text


def test_anomaly_mode_without_forward_information():
    out = culprit(leaf())
    with (
        detect(),
        pytest.warns(
            UserWarning, match="No forward pass information available. Enable detect anomaly during"
        ),
        pytest.raises(KeyError),
    ):
        backward(out)


def test_anomaly_mode_names_the_node_that_induced_another():
    x = leaf()
    made = []

    class Makes(Linear):
        def apply(self, grads):
            made.append(culprit(x))
            return super().apply(grads)

    with detect():
        node = Makes((x._gradient_edge(),), ((1.0,),))
        anomaly.record(node)
        backward(Var(0.0, (node, 0)))
        assert made[0].edge[0].metadata["parent_"] is node
        with (
            pytest.warns(
                UserWarning, match="Previous calculation was induced by Makes. Traceback of forward call that"
            ),
            pytest.raises(KeyError),
        ):
            backward(made[0])


def test_anomaly_mode_refuses_nan():
    run = engine.Interpreter(is_nan=lambda g: g != g).run
    out = linear((leaf(), leaf()), (1.0, float("nan")))[0]
    with (
        detect(),
        pytest.warns(UserWarning, match="Error detected in Linear"),
        pytest.raises(RuntimeError, match=r"Function .Linear. returned nan values in its 1th output\."),
    ):
        run((out.edge,), (1.0,), None, True, False, True)
    with detect(check_nan=False):
        run((out.edge,), (1.0,), None, True, False, True)


def test_set_detect_anomaly():
    engine.set_detect_anomaly(True, check_nan=False)
    assert engine.is_anomaly_enabled() and not engine.is_anomaly_check_nan_enabled()
    with engine.set_detect_anomaly(False):
        assert not engine.is_anomaly_enabled() and engine.is_anomaly_check_nan_enabled()
    assert engine.is_anomaly_enabled() and not engine.is_anomaly_check_nan_enabled()
    engine.set_detect_anomaly(False)
    assert modes.state.mode == 0


# Against PyTorch


class Program:
    """A random graph with random hooks, built alike of toy variables and of torch tensors."""

    def __init__(self, rng: random.Random) -> None:
        self.leaves = [float(rng.randint(2, 5)) for _ in range(3)]
        self.steps = []
        count = 3
        for _ in range(rng.randint(2, 9)):
            kind = rng.choice(["mul", "add", "scale", "two"])
            self.steps.append((kind, rng.randrange(count), rng.randrange(count), rng.randint(2, 4)))
            count += 2 if kind == "two" else 1
        kinds = ["tensor", "tensor*", "pre", "pre*", "post", "post*", "retain", "accumulated"]
        self.hooks = [(rng.choice(kinds), rng.randrange(count), n) for n in range(rng.randint(0, 8))]
        self.roots = rng.sample(range(3, count), rng.randint(1, min(2, count - 3)))
        self.mode = rng.choice(["backward", "inputs", "grad", "grad unused"])
        self.inputs = rng.sample(range(count), rng.randint(1, 3))
        self.again = rng.random() < 0.3
        self.count = count

    def run(self, toy, torch):
        make = toy if toy is not None else TorchSide(torch)
        values = [make.leaf(v) for v in self.leaves]
        for kind, i, j, k in self.steps:
            values.extend(make.op(kind, values[i], values[j], k))
        log = []
        for kind, i, number in self.hooks:
            make.hook(kind, values[i], number, log)
        roots = [values[i] for i in self.roots]
        inputs = [values[i] for i in self.inputs]
        for _ in range(1 + self.again):
            try:
                if self.mode == "backward":
                    make.backward(roots, None)
                elif self.mode == "inputs":
                    make.backward(roots, inputs)
                else:
                    log.append(("grads", make.grad(roots, inputs, self.mode == "grad unused")))
            except RuntimeError as error:
                log.append(str(error)[:60])
        log.append([make.get_grad(v) for v in values])
        return log


class ToySide:
    leaf = staticmethod(leaf)

    @staticmethod
    def op(kind, x, y, k):
        if kind == "mul":
            return (mul(x, y),)
        if kind == "scale":
            return (mul(x, Var(float(k))),)
        if kind == "add":
            return linear((x, y), (1.0, 1.0), made=Constant)
        return linear((x,), (float(k),), (k + 1.0,), made=Constant)

    @staticmethod
    def node(v):
        return v._gradient_edge()[0]

    @staticmethod
    def number(g):
        return g

    @staticmethod
    def accumulated(v, hook):
        v.leaf.register_post_accumulate_hook(hook)

    @staticmethod
    def is_leaf(v):
        return v.leaf is not None

    @staticmethod
    def get_grad(v):
        return v.grad

    @staticmethod
    def backward(roots, inputs):
        backward(*roots, inputs=inputs)

    @staticmethod
    def grad(roots, inputs, unused):
        return list(grad(roots, inputs, allow_unused=unused))

    def hook(self, kind, v, n, log):
        """Register hook `n`, which logs what it is given, and scales it where the kind ends with a star."""
        node = None if self.is_leaf(v) else self.node(v)
        number = self.number

        def scaled(gs):
            return tuple(None if g is None else g * (n + 2) for g in gs)

        def tensor(g):
            log.append((n, "tensor", number(g)))
            return g * (n + 2) if kind == "tensor*" and g is not None else None

        def pre(gs):
            log.append((n, "pre", [number(g) for g in gs]))
            return scaled(gs) if kind == "pre*" else None

        def post(gi, go):
            log.append((n, "post", [number(g) for g in gi], [number(g) for g in go]))
            return scaled(gi) if kind == "post*" else None

        if kind.startswith("tensor"):
            v.register_hook(tensor)
        elif kind == "retain":
            v.retain_grad()
        elif kind == "accumulated":
            if self.is_leaf(v):
                self.accumulated(v, lambda v: log.append((n, "accumulated", self.get_grad(v))))
        elif node is not None:
            if kind.startswith("pre"):
                node.register_prehook(pre)
            else:
                node.register_hook(post)


class TorchSide(ToySide):
    def __init__(self, torch):
        self.torch = torch

        class Two(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, k):
                ctx.set_materialize_grads(False)
                ctx.k = k
                return x * k, x * (k + 1)

            @staticmethod
            def backward(ctx, g, h):
                terms = [t * f for t, f in ((g, float(ctx.k)), (h, ctx.k + 1.0)) if t is not None]
                return sum(terms[1:], terms[0]) if terms else None, None

        self.two = Two

    def leaf(self, value):
        return self.torch.tensor(value, dtype=self.torch.float64, requires_grad=True)

    def op(self, kind, x, y, k):
        if kind == "two":
            return self.two.apply(x, k)
        return ({"mul": x * y, "add": x + y, "scale": x * k}[kind],)

    def node(self, v):
        return v.grad_fn

    def number(self, g):
        return None if g is None else g.item()

    def accumulated(self, v, hook):
        v.register_post_accumulate_grad_hook(hook)

    def is_leaf(self, v):
        return v.is_leaf

    def get_grad(self, v):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.number(v.grad)

    def backward(self, roots, inputs):
        ones = [self.torch.ones_like(r) for r in roots]
        self.torch.autograd.backward(roots, ones, inputs=inputs)

    def grad(self, roots, inputs, unused):
        ones = [self.torch.ones_like(r) for r in roots]
        return [self.number(g) for g in self.torch.autograd.grad(roots, inputs, ones, allow_unused=unused)]


def test_random_programs_agree_with_torch(torch, seed, full):
    """Gradients, every hook's calls, their order and what they see, and which programs raise."""
    rng = random.Random(seed)
    raised = 0
    for _ in range(5_000 if full else 400):
        program = Program(rng)
        ours = program.run(ToySide(), None)
        theirs = program.run(None, torch)
        assert ours == theirs, vars(program)
        raised += any(isinstance(entry, str) for entry in ours)
    assert raised
