"""Toy gradients for the tests of the engine: floats, and nodes that multiply. Tensor and operators play no part."""

from __future__ import annotations

import contextlib
import gc
import threading

import pytest

from xtensor import engine
from xtensor.engine.graph import LeafEdge, Node

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

    __slots__ = ("_xt_device", "factors", "_xt_num_inputs", "released")

    def __init__(self, edges, factors, device=None):
        super().__init__(edges)
        self.factors = factors
        self._xt_num_inputs = len(factors)
        self._xt_device = device
        self.released = False

    def apply(self, grads):
        if self.released:
            raise RuntimeError(engine.RELEASED)
        results = []
        for column in range(len(self._xt_edges)):
            terms = [g * row[column] for g, row in zip(grads, self.factors) if g is not None]
            wanted = self._xt_num_inputs > 1 or engine.should_compute(self, column)
            results.append(sum(terms[1:], terms[0]) if terms and wanted else None)
        return tuple(results)

    def _xt_release(self):
        self.released = True


class Constant(Linear):
    """Saves nothing, so it runs again after a release."""

    __slots__ = ()

    def _xt_release(self):
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


def meet_if_possible(barrier):
    """Wait a moment for another thread to get here too; a lock that keeps it out is what the test hopes for."""
    with contextlib.suppress(threading.BrokenBarrierError):
        barrier.wait(0.1)


class Fails(Linear):
    __slots__ = ()

    def apply(self, grads):
        raise KeyError("on the worker")


def validating(validate, **rules):
    return engine.Interpreter(validate, **rules)
