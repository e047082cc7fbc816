"""Loops that a program can hold: `scan`, `map`, `while_loop` and `associative_scan`.

Where values are known they are Python's loops. Within a capture or an export a loop is one of XLA's, whose size does not grow with the
number of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax

from ..capture import running
from ..engine import LeafEdge, modes
from ..gradients import gradient_edge
from ..operators.below.dispatching import without_modes
from ..ops.shape.joining import cat, stack
from ..tensor import Tensor, array_of, asks_grad, wrap
from ..trees import tree_flatten, tree_unflatten
from ..xla.levels import ground
from ..xla.x64 import call
from .staging import (
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

__all__ = ["associative_scan", "map", "scan", "while_loop"]

Body = Callable[[Tensors, Tensors], tuple[Tensors, Tensors]]


def is_traced(tensors: Sequence[Any]) -> bool:
    """Whether a loop over these becomes one of the program's."""
    if modes.state.transforms or not any(is_unknown(t) for t in tensors):
        return False
    return not any(is_leveled(t) for t in tensors)


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    *,
    dim: int = 0,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """The last state and all results of a function of a state and an element, called along a dimension.

    combine_fn: of the state and the elements at a place, the next state, of the same shapes and dtypes, and a result. Gradients go through
    it, and to tensors that it reads from around it. In a compiled or exported function the loop is one of the program.

    Returns the last state, and the results stacked along `dim`.

    Example: `scan(lambda s, x: (s + x, s * x), torch.zeros(2), xs)`.

    >>> xtensor.scan(lambda s, x: (s + x, s * x), xtensor.tensor(0), xtensor.tensor([1, 2, 3]))
    (tensor(6), tensor([0, 2, 9]))
    """
    leaves, tree = elements("scan", combine_fn, xs, dim)
    state, build, _ = flat(init)
    length = leaves[0].shape[dim]
    if is_traced([*state, *leaves]):
        told: list[Any] = []

        def body(carry: Tensors, parts: Tensors) -> tuple[Tensors, Tensors]:
            made, result = combine_fn(build(carry), tree_unflatten(parts, tree))
            new, _, _ = flat(made)
            if len(new) != len(state):
                raise RuntimeError(f"scan: the state has {len(state)} tensors, and the next one {len(new)}")
            results, rebuild, _ = flat(result)
            told[:] = [rebuild]
            return new, results

        def run() -> Any:
            over = [x.movedim(dim, 0) for x in leaves]
            last, results = Loop("scan", body, state, over, length, reverse).run()
            return build(last), told[0]([r.movedim(0, dim) for r in results])

        flat_body = of_both(body, len(state))
        example = [*state, *first_of(leaves, dim)]
        return step("scan", [(flat_body, example)], (state, leaves), {"dim": dim, "reverse": reverse}, run)
    results: list[Any] = []
    shape: Any = None
    places = range(length)
    for i in reversed(places) if reverse else places:
        init, result = combine_fn(init, tree_unflatten([x.select(dim, i) for x in leaves], tree))
        parts, shape = tree_flatten(result)
        results.append(parts)
    if reverse:
        results.reverse()
    return init, tree_unflatten([stack(parts, dim) for parts in zip(*results)], shape)


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """The results of a function for all elements of a tree of tensors along their first dimension, stacked.

    f: of the elements and `args`. Gradients go through it, and to tensors that it reads from around it. In a compiled or exported function
    the loop is one of the program, so that memory is that of one element.

    >>> xtensor.map(lambda x, y: x.sum() + y, xtensor.arange(6).view(3, 2), xtensor.tensor(1))
    tensor([ 2,  6, 10])
    """
    leaves, tree = elements("map", f, xs, 0)
    length = leaves[0].shape[0]
    if is_traced(leaves):
        told: list[Any] = []

        def body(state: Tensors, parts: Tensors) -> tuple[Tensors, Tensors]:
            results, rebuild, _ = flat(f(tree_unflatten(parts, tree), *args))
            told[:] = [rebuild]
            return state, results

        def run() -> Any:
            _, results = Loop("map", body, [], leaves, length, False).run()
            return told[0](results)

        return step("map", [(of_both(body, 0), first_of(leaves, 0))], (leaves,), {}, run)
    made = [f(tree_unflatten([x[i] for x in leaves], tree), *args) for i in range(length)]
    flats = [tree_flatten(each) for each in made]
    return tree_unflatten([stack(parts) for parts in zip(*[parts for parts, _ in flats])], flats[0][1])


def elements(name: str, function: Any, xs: Any, dim: Any) -> tuple[Tensors, Any]:
    """The tensors of a tree, all of one length along a dimension, and its structure."""
    leaves, tree = tree_flatten(xs)
    if not callable(function):
        raise ValueError("Combine_fn must be a callable, but got " + repr(function))
    if not isinstance(dim, int):
        raise ValueError("Dim must be an int, but got " + str(type(dim)))
    if not leaves or not all(isinstance(x, Tensor) for x in leaves):
        raise ValueError(f"{name}: xs leaves must be tensors, and there must be one at least")
    lengths = {x.shape[dim] for x in leaves}
    if len(lengths) > 1 or 0 in lengths:
        raise ValueError(
            f"{name}: all xs leaves must have the same length along dim, and not 0 (got {sorted(lengths)})"
        )
    return leaves, tree


def of_both(body: Body, carried: int) -> Callable[..., Any]:
    """A body as a function of the state's and the elements' tensors in one row."""
    return lambda *tensors: body(list(tensors[:carried]), list(tensors[carried:]))


def first_of(leaves: Tensors, dim: int) -> Tensors:
    """The first elements along a dimension, of which no program is written."""
    with without_modes():
        return [x.select(dim, 0) for x in leaves]


# ---- a loop of the program -----------------------------------------------------------------------------------------


class Loop:
    """`body(state, elements)` for every step, as one loop of the program.

    state, elements, results: which of them have gradients. borders: the edges in which the graph of a step ends, besides those of its arguments.
    """

    def __init__(self, what: str, body: Body, init: Tensors, xs: Tensors, length: int, reverse: bool) -> None:
        self.what = what
        self.body = body
        self.init = init
        self.xs = xs
        self.length = length
        self.reverse = reverse
        self.outer = running()
        self.elements = [asks(x) for x in xs]
        self.state = [asks(t) for t in init]
        self._look()

    def _look(self) -> None:
        """Run the body for its form, until it is known which parts of the state get gradients."""
        while True:
            self.staged = Staged(f"the body of {self.what}")
            state = [leaf(t, flag) for t, flag in zip(self.init, self.state)]
            elements = [leaf(x.select(0, 0), flag) for x, flag in zip(self.xs, self.elements)]
            self.form = form = form_of(self.staged, self.body, state, elements)
            new = form.tensors[: len(self.init)]
            found = [flag or t.requires_grad for flag, t in zip(self.state, new)]
            if found == self.state:
                break
            self.state = found
            rewind(self.outer, self.staged)
        self._check(new)
        self.results = [t.requires_grad for t in form.tensors[len(self.init) :]]
        own = {id(e[0]) for t in (*state, *elements) if (e := gradient_edge(t)) is not None}
        self.borders = [e for e in form.borders if id(e[0]) not in own]
        self.asked = list(self.staged.asked)

    def _check(self, new: Tensors) -> None:
        for before, after in zip(self.init, new):
            if tuple(before.shape) != tuple(after.shape) or before.dtype is not after.dtype:
                raise RuntimeError(
                    f"{self.what}: the next state must have the shapes and dtypes of the state, but got {tuple(after.shape)} of "
                    f"{after.dtype} for {tuple(before.shape)} of {before.dtype}"
                )

    def numbers(self) -> Any:
        """By the place of a step how many there are before it: the n-th step draws the n-th numbers, wherever it stands."""
        return jnp.arange(self.length)[::-1] if self.reverse else jnp.arange(self.length)

    def run(self) -> tuple[Tensors, Tensors]:
        """The last state and the stacked results.

        With a graph to follow, the states before each step are results, too: backward is such a loop over them, the other way, in which
        the body runs again.
        """
        tracked = modes.is_grad_enabled() and bool(self.borders or any((*self.state, *self.elements)))

        def step(carry: Any, each: Any) -> Any:
            parts, number = each
            with modes.no_grad(), self.staged.running(offset=number):
                new, results = self.body([wrap(a) for a in carry], [wrap(a) for a in parts])
                found = [ground(array_of(t)) for t in results], asked_arrays(self.staged.asked)
                return [ground(array_of(t)) for t in new], (*found, list(carry) if tracked else [])

        arrays = [ground(array_of(t)) for t in self.init]
        over = [ground(array_of(x)) for x in self.xs]
        loop = partial(lax.scan, step, reverse=self.reverse)
        last, (stacked, seen, before) = call(loop, arrays, (over, self.numbers()))
        if self.outer is not None:
            for drawn in self.staged.drawn.values():
                self.outer.skip(drawn.generator, drawn.count * (self.length - 1))
            ask(self.outer, self.asked, [taken(array, when) for array, when in zip(seen[::2], seen[1::2])])
        final, results, states = [[wrap(a) for a in part] for part in (last, stacked, before)]
        if tracked:
            self._follow(final, results, states)
        return final, results

    def _follow(self, final: Tensors, results: Tensors, states: Tensors) -> None:
        """Give the results their place in the graph."""
        outs = [*final, *results, *states]
        edges = [
            gradient_edge(t) if flag and asks_grad(t) else None
            for t, flag in zip((*self.init, *self.xs), (*self.state, *self.elements))
        ]

        def pull(grads: tuple[Any, ...]) -> Any:
            return self._pulled(outs, grads)

        node = StagedBackward(
            f"{self.what.capitalize()}Backward",
            [*edges, *self.borders],
            [aval_of(t) for t in outs],
            pull,
            self.form.unchanged,
        )
        for number, flag in enumerate((*self.state, *self.results, *self.state)):
            if flag:
                outs[number]._xt_edge = (node, number)

    def _pulled(self, outs: Tensors, grads: tuple[Any, ...]) -> list[Any]:
        """The gradients at the initial state, the elements and the borders, by a loop that goes the other way."""
        carried, read = len(self.init), len(self.xs)
        flags = (*self.state, *self.results, *self.state)
        full: list[Any] = [
            (zeros(aval_of(t)) if g is None else g) if flag else None
            for t, g, flag in zip(outs, grads, flags, strict=True)
        ]
        last: list[Any] = full[:carried]
        along = full[carried : carried + len(self.results)]
        direct = full[carried + len(self.results) :]
        states = outs[carried + len(self.results) :]
        state = [n for n, flag in enumerate(self.state) if flag]
        elements = [n for n, flag in enumerate(self.elements) if flag]
        sends = [n for n, flag in enumerate(self.results) if flag]

        def back(carry: Tensors, parts: Tensors) -> tuple[Tensors, Tensors]:
            rest = iter(parts)
            number = array_of(next(rest))
            with modes.enable_grad():
                given = [leaf(next(rest), flag, False) for flag in (*self.elements, *self.state)]
            sent = [next(rest) for _ in sends]
            own = [next(rest) for _ in state]
            here, there = given[:read], given[read:]
            wanted = [gradient_edge(t) for t in (*[there[n] for n in state], *[here[n] for n in elements])]
            # The body's results that have gradients, in order: of the state, then of the rest.
            into = [*carry[: len(state)], *sent]
            with self.staged.running(offset=number):
                found = gradients(
                    lambda: self.body(there, here),
                    [*self.state, *self.results],
                    into,
                    [*wanted, *self.borders],
                )
            new = [g + d for g, d in zip(found, own)]
            behind = found[len(wanted) :]
            return [*new, *[a + b for a, b in zip(carry[len(state) :], behind)]], found[
                len(state) : len(wanted)
            ]

        initial = [last[n] for n in state] + [zeros(e[0]._xt_metadata[e[1]]) for e in self.borders]
        over = [
            wrap(self.numbers()),
            *self.xs,
            *states,
            *[along[n] for n in sends],
            *[direct[n] for n in state],
        ]
        loop = Loop(f"the gradient of {self.what}", back, initial, over, self.length, not self.reverse)
        final, stacked = loop.run()
        found: list[Any] = [None] * (carried + read)
        for at, n in enumerate(state):
            found[n] = final[at]
        for at, n in enumerate(elements):
            found[carried + n] = stacked[at]
        return [*found, *final[len(state) :]]


def taken(values: Any, when: Any) -> tuple[Any, Any]:
    """Of the values that a loop asks about those of the steps in which they count, and whether there is one."""
    some = values[jnp.argmax(when)]
    counts = when.reshape(when.shape + (1,) * (values.ndim - 1))
    return jnp.where(counts, values, some), when.any()


def asks(tensor: Tensor) -> bool:
    """Whether a gradient of the tensor is wanted."""
    return modes.is_grad_enabled() and asks_grad(tensor)


def leaf(tensor: Tensor, flag: bool, anew: bool = True) -> Tensor:
    """The tensor's values as a leaf of its own, with gradients or without; with `anew` off itself, where it has them already."""
    if flag and not anew and asks_grad(tensor):
        return tensor
    made = tensor.detach()
    if flag:
        made._xt_edge = LeafEdge(made)
    return made


# ---- loops whose length is not known --------------------------------------------------------------------------------


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> tuple[Any, ...]:
    """Call `body_fn` on what it returned as long as `cond_fn` of that holds; the last values.

    carried_inputs: a tuple of tensors or trees of them. In a compiled or exported function the loop is one of the program: shapes and dtypes
    stay, and there are no gradients through it (use `scan`), no random numbers, and no indices to be checked in it; a compiled function
    with one of these runs eagerly.

    >>> xtensor.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (xtensor.tensor(0), xtensor.tensor(1.0)))
    (tensor(3), tensor(8.))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(
            f"Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only consists of tensor or int "
            f"leaves, but got {carried_inputs}"
        )
    values = tuple(carried_inputs)
    tensors, build, form = flat(values)
    with without_modes():
        traced = is_traced(tensors) or (tensors and is_unknown(cond_fn(*values)))
    if traced:
        functions = [
            (lambda *given: cond_fn(*build(list(given))), tensors),
            (lambda *given: body_fn(*build(list(given))), tensors),
        ]

        def run() -> Any:
            return while_traced(cond_fn, body_fn, tensors, build, form)

        return step("while_loop", functions, (tensors,), {}, run)
    while bool(cond_fn(*values)):
        made = body_fn(*values)
        values = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    return values


def while_traced(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], init: Tensors, build: Any, form: Any
) -> tuple[Any, ...]:
    """`while_loop` as a loop of the program."""
    staged = Staged("while_loop")
    if any(kept is not None for kept in form[1]):
        staged.refuse("while_loop carries what is no tensor, and its values are not known")

    def both(*carry: Tensor) -> tuple[Any, Any]:
        return cond_fn(*build(list(carry))), body_fn(*build(list(carry)))

    found = form_of(staged, both, *init)
    if found.borders and modes.is_grad_enabled():
        staged.refuse(
            "gradients go through while_loop, whose number of steps is not known: use scan, or no_grad"
        )
    if staged.drawn or staged.asked:
        staged.refuse("while_loop draws random numbers or looks at values of indices")
    held, *new = found.tensors
    if len(new) != len(init) or held.numel() != 1:
        staged.refuse("while_loop: the functions give other structures than a condition and what is carried")
    for before, after in zip(init, new):
        if tuple(before.shape) != tuple(after.shape) or before.dtype is not after.dtype:
            raise RuntimeError(
                f"while_loop: what is carried must keep its shapes and dtypes, but got {tuple(after.shape)} of {after.dtype} for "
                f"{tuple(before.shape)} of {before.dtype}"
            )

    def goes_on(arrays: Any) -> Any:
        with modes.no_grad(), staged.running():
            return ground(array_of(cond_fn(*build([wrap(a) for a in arrays])))).reshape(()).astype(bool)

    def step(arrays: Any) -> Any:
        with modes.no_grad(), staged.running():
            tensors, _, _ = flat(body_fn(*build([wrap(a) for a in arrays])))
            return [ground(array_of(t)) for t in tensors]

    made = call(lax.while_loop, goes_on, step, [ground(array_of(t)) for t in init])
    return tuple(build([wrap(a) for a in made]))


# ---- scans of associative functions ---------------------------------------------------------------------------------


def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """The results of combining all elements up to each place of a dimension, by an associative function.

    xs: a tensor or a tree of tensors of one length along `dim`; combine_fn: of two such trees, one. Halves of the elements
    are combined at a time, so that the number of calls grows with the logarithm of the length.

    Example: `associative_scan(lambda a, b: a + b, x, 0)` is `x.cumsum(0)`.
    """
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, tree = elements("associative_scan", combine_fn, xs, dim)

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        return tree_flatten(combine_fn(tree_unflatten(a, tree), tree_unflatten(b, tree)))[0]

    moved = [_turned(x.movedim(dim, 0), reverse) for x in leaves]
    found = [_turned(x, reverse).movedim(0, dim) for x in _scanned(combine, moved)]
    return tree_unflatten(found, tree)


def _turned(x: Tensor, reverse: bool) -> Tensor:
    return x.flip(0) if reverse else x


def _scanned(combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], xs: list[Tensor]) -> list[Tensor]:
    """Neighbours are combined and these scanned; what lies between follows from them."""
    length = len(xs[0])
    if length == 1:
        return xs
    even = length // 2 * 2
    pairs = combine([x[0:even:2] for x in xs], [x[1:even:2] for x in xs])
    odd = _scanned(combine, pairs)
    if length == 2:
        return [cat([x[:1], o]) for x, o in zip(xs, odd)]
    between = combine([o[: (length - 1) // 2] for o in odd], [x[2::2] for x in xs])
    made = []
    for x, o, b in zip(xs, odd, between):
        evens = cat([x[:1], b])
        joined = stack([evens[: len(o)], o], 1).flatten(0, 1)
        made.append(joined if len(evens) == len(o) else cat([joined, evens[-1:]]))
    return made
