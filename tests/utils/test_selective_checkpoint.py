"""Selective checkpoints: what the policy keeps is not computed again, and checkpoints that end early; judged by PyTorch."""

from __future__ import annotations

import functools
from typing import Any

from tests.oracle import Cases, attempt, leaf

case = Cases()


def aten(T: Any) -> Any:
    return T.library.ops.aten if hasattr(T.library, "ops") else T.ops.aten


def counting(T: Any) -> Any:
    """A mode that counts the operators that run below it."""

    class Counter(T.utils._python_dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    return Counter()


def checkpointed(T: Any, function: Any, x: Any, policy: Any, **options: Any) -> Any:
    u = T.utils.checkpoint
    contexts = functools.partial(u.create_selective_checkpoint_contexts, policy, **options)
    return u.checkpoint(function, x, use_reentrant=False, context_fn=contexts)


@case
def kept_results_are_not_computed_again(T):
    import importlib

    importlib.import_module(f"{T.__name__}.utils._python_dispatch")
    importlib.import_module(f"{T.__name__}.utils.checkpoint")
    x = leaf(T, 3)
    counter = counting(T)
    with counter:
        out = checkpointed(T, lambda a: a.exp().cos().cos(), x, [aten(T).exp.default])
        out.sum().backward()
    return counter.seen.count("aten.exp.default"), x.grad


@case
def a_region_runs_backward_once(T):
    out = checkpointed(T, lambda a: a.sin().cos().exp(), leaf(T, 3), [aten(T).sin.default])
    out.sum().backward(retain_graph=True)
    return attempt(lambda: out.sum().backward(retain_graph=True))


@case
def writes_to_what_is_kept(T):
    def function(a):
        return a.sin().mul_(2).cos().exp()

    refused = checkpointed(T, function, leaf(T, 3), [aten(T).sin.default])
    error = attempt(lambda: refused.sum().backward())
    allowed = checkpointed(T, function, leaf(T, 3), [aten(T).sin.default], allow_cache_entry_mutation=True)
    allowed.sum().backward()
    return error[1]


@case
def a_gradient_within_the_first_computation(T):
    def function(a):
        (g,) = T.autograd.grad(a.sin().sum(), a, create_graph=True)
        return g.cos()

    x = leaf(T, 3)
    with T.utils.checkpoint.set_checkpoint_early_stop(False):
        T.utils.checkpoint.checkpoint(function, x, use_reentrant=False).sum().backward()
    return x.grad.shape


@case
def what_needs_no_gradient_is_itself(T):
    same = []

    class Keep(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x

        @staticmethod
        def backward(ctx, g):
            same.append(ctx.saved_tensors[0] is b)
            return g, None

    b = T.tensor(1.0)
    T.utils.checkpoint.checkpoint(Keep.apply, leaf(T, 1), b, use_reentrant=False).sum().backward()
    return same


test_as_pytorch = case.test()
