"""`cond`: one of two functions, chosen by a tensor's value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax

from ..capture import running
from ..engine import modes
from ..ops.index.masks import where
from ..tensor import Tensor, array_of, wrap
from ..xla.levels import ground
from ..xla.x64 import call
from .staging import (
    Form,
    Staged,
    StagedBackward,
    Tensors,
    ask,
    asked_arrays,
    aval_of,
    flat,
    form_of,
    gradients,
    is_leveled,
    is_unknown,
    rewind,
    step,
    zeros,
)

__all__ = ["cond"]


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` where `pred` holds, else `false_fn(*operands)`; only the one that is chosen runs.

    pred: a bool, a number, or a tensor of one element. In a compiled or exported function, where its value is not known, both functions
    are traced, and the program runs the one that is chosen. They must then give tensors of the same shapes and dtypes in the same
    structure, may read any tensor around them (gradients reach it), and may not write any. Under `vmap` both run and each sample takes its own.

    Raises RuntimeError where `pred` has several elements, or the functions give different things.

    Differs from PyTorch: without `compile` nothing is traced, so that any code may stand in the functions.

    >>> xtensor.cond(xtensor.tensor(True), lambda x: x + 1, lambda x: x - 1, (xtensor.ones(2),))
    tensor([2., 2.])
    """
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(
            f"Expected pred to be bool or single-element tensor, but got {pred} of size {pred.numel()}"
        )
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            f"Expect operands to be a tuple of possibly nested dict/list/tuple, got {operands}"
        )
    if is_leveled(pred) or (is_unknown(pred) and modes.state.transforms):
        return selected(pred, true_fn(*operands), false_fn(*operands))
    if not is_unknown(pred):
        return (true_fn if bool(pred) else false_fn)(*operands)
    functions = [lambda: true_fn(*operands), lambda: false_fn(*operands)]
    own = [(function, ()) for function in functions]

    def run() -> Any:
        return chosen(pred, [Branch("a branch of cond", function) for function in functions])

    return step("cond", own, (pred,), {}, run)


def selected(pred: Tensor, first: Any, second: Any) -> Any:
    """Of the results of both branches those that the condition chooses, for every sample of a batch."""
    tensors, build, rest = flat(first)
    others, _, more = flat(second)
    if rest != more:
        raise RuntimeError(
            "cond: the branches give different structures, or different values that are no tensors"
        )
    return build([where(pred.reshape(()), a, b) for a, b in zip(tensors, others, strict=True)])


class Branch:
    """A function without arguments that a program may run."""

    def __init__(self, what: str, function: Callable[[], Any]) -> None:
        self.function = function
        self.staged = Staged(what)

    def values(self) -> list[Any]:
        """The values of its tensors, in the trace of the branch, and those that it asks about."""
        with modes.no_grad(), self.staged.running():
            tensors, _, _ = flat(self.function())
            return [ground(array_of(t)) for t in tensors]

    def pulled(self, flags: Sequence[bool], grads: Sequence[Any], wanted: Sequence[Any]) -> Tensors:
        """The gradients at the edges `wanted`, from those of the results that have any."""
        with self.staged.running():
            return gradients(self.function, flags, grads, wanted)


def chosen(pred: Tensor, branches: list[Branch]) -> Any:
    """What the branch gives that the condition chooses."""
    outer = running()
    forms: list[Form] = []
    for branch in branches:
        if forms:
            rewind(outer, branches[0].staged)
        forms.append(form_of(branch.staged, branch.function))
    alike(branches, forms)
    yes = array_of(pred).reshape(()).astype(bool)
    asked: list[list[Any]] = [branch.staged.asked for branch in branches]

    def run(number: int) -> Callable[[], Any]:
        def branch() -> Any:
            values = branches[number].values()
            own = asked_arrays(branches[number].staged.asked)
            return values, [own if n == number else blank(asked[n]) for n in range(len(branches))]

        return branch

    arrays, found = call(lax.cond, yes, run(0), run(1))
    for number, values in enumerate(found):
        taken = yes if number == 0 else ~yes
        pairs = zip(values[::2], values[1::2])
        ask(outer, asked[number], [(array, jnp.logical_and(taken, when)) for array, when in pairs])
    results = [wrap(a) for a in arrays]
    borders = joined(forms)
    if modes.is_grad_enabled() and borders:
        follow(pred, branches, forms, borders, results)
    return forms[0].build(results)


def blank(asked: Sequence[Any]) -> list[Any]:
    """Values in the place of those that the other branch asks about."""
    found: list[Any] = []
    for each in asked:
        array = ground(each.array)
        found += [jnp.zeros(array.shape, array.dtype), jnp.asarray(False)]
    return found


def alike(branches: list[Branch], forms: list[Form]) -> None:
    """Refuse branches whose results one program cannot give."""
    first, second = forms
    shapes = [[(tuple(t.shape), t.dtype) for t in form.tensors] for form in forms]
    if first.rest != second.rest or shapes[0] != shapes[1]:
        raise RuntimeError(
            "cond: both branches must give tensors of the same shapes and dtypes in the same structure, but got "
            f"{shapes[0]} and {shapes[1]}"
        )
    counts = [{k: d.count for k, d in branch.staged.drawn.items()} for branch in branches]
    if counts[0] != counts[1]:
        branches[0].staged.refuse("the branches of cond draw different numbers of random numbers")


def joined(forms: Sequence[Form]) -> list[Any]:
    """The edges in which the graphs of any of the functions end."""
    return list({(id(e[0]), e[1]): e for form in forms for e in form.borders}.values())


def follow(
    pred: Tensor, branches: list[Branch], forms: list[Form], borders: list[Any], results: Tensors
) -> None:
    """Give the results their place in the graph."""
    flags = [any(form.tensors[n].requires_grad for form in forms) for n in range(len(results))]
    avals = [aval_of(t) for t in results]

    def unchanged() -> None:
        for form in forms:
            if form.unchanged is not None:
                form.unchanged()

    def pull(grads: tuple[Any, ...]) -> Tensors:
        filled = [zeros(a) if g is None else g for a, g, flag in zip(avals, grads, flags) if flag]
        backward = [
            Branch("the gradient of a branch of cond", partial(branch.pulled, flags, filled, borders))
            for branch in branches
        ]
        return list(chosen(pred, backward))

    node = StagedBackward("CondBackward", borders, avals, pull, unchanged)
    for number, flag in enumerate(flags):
        if flag:
            results[number]._xt_edge = (node, number)
