"""The engine on toy gradients: what is computed, captured, refused, and by which executor."""

from __future__ import annotations

import weakref

import pytest

from tests.toy_graph import Linear, Var, add, backward, grad, leaf, linear, mul, scale, toys, validating
from tests.toy_graph import toy_rules as toy_rules
from xtensor import engine
from xtensor.engine.graph import LEAF_SEQUENCE_NR, AccumulateGrad, Error

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
    assert out.edge[0]._xt_edges[0] is None
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
    assert x.leaf.edge()[0]._xt_sequence_nr == LEAF_SEQUENCE_NR


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
    out.edge[0].register_hook(lambda gi, go: setattr(out.edge[0], "_xt_edges", (y._gradient_edge(),)))
    with pytest.raises(RuntimeError, match="dependency not found for torch::autograd::AccumulateGrad"):
        backward(out)


# Nodes


def test_nodes_show_themselves():
    x = leaf()
    out = mul(Var(4.0), x)
    node = out.edge[0]
    assert node.name() == "Linear" and "Linear object" in repr(node)
    assert node.next_functions == ((None, 0), (x.leaf.edge()[0], 0))
    assert node.next_edges[1].function is x.leaf.accumulator() and node.next_edges[1].input_nr == 0
    assert node._xt_meta is None
    node.metadata["note"] = 1
    assert node.metadata == {"note": 1}
    assert node(2.0) == (None, 8.0) and scale(x).edge[0](3.0) == 6.0
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        node(1.0, 2.0)
    accumulator = x.leaf.accumulator()
    assert (
        isinstance(accumulator, AccumulateGrad) and accumulator.variable is x and accumulator._xt_edges == ()
    )
    assert scale(x).edge[0]._xt_sequence_nr < scale(x).edge[0]._xt_sequence_nr


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
            if roots[0][0]._xt_meta is not None:
                return engine.Fallback("hooks")
            roots[0][0]._xt_edges[0][0].variable.grad = "planned"
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
    counted = engine.stats()
    assert set(counted.pop("segments")) >= {"whole", "by call", "compiled"}
    assert counted == {
        "runs": {"interpreter": 1, "plan": 1},
        "fallbacks": {"plan: hooks": 1},
        "plan": {"hits": 1},
    }
