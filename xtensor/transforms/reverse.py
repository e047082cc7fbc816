"""Derivatives of functions taken backwards: `grad`, `grad_and_value`, `vjp`, `jacrev`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..engine import enable_grad, is_grad_enabled
from ..gradients import grad as gradients
from ..ops.create.creation import ones, zeros_like
from ..ops.create.ranges import eye
from ..ops.shape.joining import cat, stack
from ..tensor import Tensor
from ..trees import tree_flatten, tree_leaves, tree_structure, tree_unflatten
from .batches import vmapped
from .tracking import Tracked, chosen, depends, kept, refuse_complex, split

__all__ = ["derived", "grad", "grad_and_value", "jacrev", "tensors_only", "vjp"]


def derived(
    level: Tracked, outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Any, create_graph: bool
) -> list[Tensor]:
    """The product of `cotangents` with the Jacobian, for each input of a level; zeros where no output depends on it."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    if not pairs:
        return [zeros_like(w) for w in inputs]
    level.deriving += 1
    try:
        found = gradients(
            [o for o, _ in pairs],
            inputs,
            [c for _, c in pairs],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    finally:
        level.deriving -= 1
    return [zeros_like(w) if g is None else g for g, w in zip(found, inputs, strict=True)]


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that gives the gradient of `func`, which gives a scalar, and its value.

    >>> xtensor.func.grad_and_value(lambda x: x ** 2)(xtensor.tensor(3.))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = chosen(argnums, len(args))
        leaves, structure = tree_flatten([args[i] for i in places])
        with Tracked("grad_and_value", (args, kwargs)) as level, enable_grad():
            inputs = level.entered(leaves)
            given = list(args)
            for i, part in zip(places, tree_unflatten(inputs, structure), strict=True):
                given[i] = part
            value, aux = split(func(*given, **kwargs), has_aux, "grad_and_value(f)(*args)")
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(value)}"
                )
            if value.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{value.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            if value.is_complex():
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {value.dtype}"
                )
        with enable_grad():
            outer = level.keeps(value, aux) if has_aux else level.tracking and depends([value])[0]
            grads = derived(level, [value], inputs, [ones((), dtype=value.dtype, device=value.device)], outer)
            found = tree_unflatten(level.shown_each(grads), structure)
            (value,) = level.shown_each([value])
            aux = level.shown(aux) if has_aux else None
        result = found[0] if isinstance(argnums, int) else tuple(found)
        return (result, (value, aux)) if has_aux else (result, value)

    return wrapper


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that gives the gradient of `func`, which gives a scalar, by the arguments at `argnums`.

    >>> xtensor.func.grad(lambda x: (x ** 2).sum())(xtensor.arange(3.))
    tensor([0., 2., 4.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def tensors_only(tree: Any, name: str, some: bool = True) -> list[Tensor]:
    """The leaves of a function's result; RuntimeError where one is no tensor, or where there is none and `some` must be."""
    found = tree_leaves(tree)
    if (some and not found) or tree is None:
        raise RuntimeError(
            f"{name}: Expected f to be a function that has non-empty output (got output = {found})"
        )
    for leaf in found:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return found


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func`, and the function from gradients of its results to those of its arguments.

    >>> value, pull = xtensor.func.vjp(xtensor.sin, xtensor.zeros(2))
    >>> pull(xtensor.tensor([1., 2.]))
    (tensor([1., 2.]),)
    """
    with Tracked("vjp", primals) as level, enable_grad():
        given = level.enter(primals)
        value, aux = split(func(*given), has_aux, "vjp(f, *primals)")
        outputs = tensors_only(value, "vjp(f, *primals)")
    inputs = tree_leaves(given)
    structure = tree_structure(value)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        if tree_structure(cotangents) != structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {tree_structure(cotangents)}, primal output: {structure}"
            )
        for i, (c, o) in enumerate(zip(tree_leaves(cotangents), outputs, strict=True)):
            if c.shape != o.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {c.shape} and output[{i}] has a shape of "
                    f"{o.shape}."
                )
        track = is_grad_enabled() if create_graph is None else create_graph
        live = track and any(depends([*outputs, *tree_leaves(cotangents)]))
        found = derived(level, outputs, inputs, tree_leaves(cotangents), live)
        if live:
            found = [kept(g, alive) for g, alive in zip(found, depends(found), strict=True)]
        return tree_unflatten(found, tree_structure(given))

    with enable_grad():
        shown, aux = level.shown((value, aux))
    return (shown, pull, aux) if has_aux else (shown, pull)


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`, by its rows: one backward pass over a batch of them.

    chunk_size: how many rows are taken at once.

    >>> xtensor.func.jacrev(lambda x: x ** 2)(xtensor.tensor([1., 2.]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = chosen(argnums, len(args))
        given = list(args)
        with Tracked("jacrev", (args, kwargs)) as level, enable_grad():
            for i in places:
                given[i] = level.enter(given[i])
            value, aux = split(func(*given, **kwargs), has_aux, "vjp(f, *primals)")
            outputs = tensors_only(value, "vjp(f, *primals)")
        entered = [given[i] for i in places]
        inputs = tree_leaves(entered)
        refuse_complex(inputs, "jacrev", "inputs")
        refuse_complex(outputs, "jacrev", "outputs")
        for out in outputs:
            if not out.is_floating_point():
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{out.dtype}"
                )
        with enable_grad():
            outer = level.keeps(value, aux)
            blocks = jacobian_rows(level, outputs, inputs, outer, chunk_size)
            structure = tree_structure(entered)
            made = []
            for row in blocks:
                table = tree_unflatten(row, structure)
                made.append(table[0] if isinstance(argnums, int) else tuple(table))
            result = level.shown(tree_unflatten(made, tree_structure(value)))
            aux = level.shown(aux)
        return (result, aux) if has_aux else result

    return wrapper


def jacobian_rows(
    level: Tracked,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    create_graph: bool,
    chunk_size: int | None,
) -> list[list[Tensor]]:
    """For each output and input the Jacobian, of the output's sizes followed by the input's."""
    counts = [out.numel() for out in outputs]
    asked = [i for i, out in enumerate(outputs) if out.requires_grad and counts[i]]
    found: list[list[Tensor]] = [
        [x.new_zeros((*out.shape, *x.shape)) for x in inputs] if i not in asked else []
        for i, out in enumerate(outputs)
    ]
    if not asked:
        return found
    basis = unit_vectors([outputs[i] for i in asked])

    def pull(*cotangents: Tensor) -> tuple[Tensor, ...]:
        return tuple(derived(level, [outputs[i] for i in asked], inputs, cotangents, create_graph))

    if chunk_size == 1:  # one after the other, as PyTorch takes them: what a batch refuses is possible
        each = [pull(*[b[k] for b in basis]) for k in range(sum(counts[i] for i in asked))]
        columns = tuple([stack(list(column)) for column in zip(*each, strict=True)])
    else:
        columns = vmapped(pull, chunk_size)(*basis)
    start = 0
    for i in asked:
        found[i] = [
            column.narrow(0, start, counts[i]).reshape((*outputs[i].shape, *x.shape))
            for column, x in zip(columns, inputs, strict=True)
        ]
        start += counts[i]
    return found


def unit_vectors(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Of several tensors the unit vectors of all their elements together, along a first dimension of each."""
    counts = [t.numel() for t in tensors]
    made: list[Tensor] = []
    for i, t in enumerate(tensors):
        before, after = sum(counts[:i]), sum(counts[i + 1 :])
        unit = eye(counts[i], dtype=t.dtype, device=t.device)
        if len(tensors) > 1:
            rows = [unit.new_zeros((n, counts[i])) for n in (before, after)]
            unit = cat([rows[0], unit, rows[1]])
        made.append(unit.reshape(sum(counts), *t.shape))
    return made
