"""Random graphs with random hooks, on toy gradients and in PyTorch."""

from __future__ import annotations

import random
import warnings

from tests.toy_graph import Constant, Var, backward, grad, leaf, linear, mul
from tests.toy_graph import toy_rules as toy_rules


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
