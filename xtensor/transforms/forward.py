"""Derivatives of functions taken forwards: `jvp`, `jacfwd`, `linearize`, and `hessian`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..engine import enable_grad
from ..engine.modes import state
from ..operators.levels.crossing import dual, primal, refuse_complex_along, refuse_nested, running, tangent
from ..ops.create.creation import zeros_like
from ..tensor import Tensor
from ..trees import tree_flatten, tree_leaves, tree_map, tree_structure, tree_unflatten
from .batches import vmapped
from .reverse import derived, jacrev, tensors_only, unit_vectors
from .tracking import Tracked, chosen, cut_off, refuse_complex, split, tensors

__all__ = ["hessian", "jacfwd", "jvp", "linearize"]

NAME = "jvp(f, primals, tangents)"


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """The value of `func` and its derivative in a direction; `strict` refuses what does not depend on the inputs.

    >>> xtensor.func.jvp(xtensor.sin, (xtensor.zeros(2),), (xtensor.tensor([1., 2.]),))
    (tensor([0., 0.]), tensor([1., 2.]))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{NAME}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    points, structure = tree_flatten(primals)
    directions, other = tree_flatten(tangents)
    if structure != other:
        raise RuntimeError(
            f"{NAME}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {structure} and "
            f"tangents with structure {other}"
        )
    if not points:
        raise RuntimeError(f"{NAME}: Expected primals to contain at least one Tensor.")
    for p, d in zip(points, directions, strict=True):
        for what, t in (("primals", p), ("tangents", d)):
            if not isinstance(t, Tensor):
                raise RuntimeError(f"{NAME}: Expected {what} to only contain Tensors, got {type(t)}")
        check_tangent(p, d)
    return pushed(func, points, directions, structure, strict, has_aux)


def check_tangent(point: Tensor, direction: Tensor) -> None:
    """Refuse what cannot be a tangent of `point`."""
    if not (point.is_floating_point() or point.is_complex()):
        raise ValueError(f"Expected primal to be floating point or complex, but got: {point.dtype}")
    if not (direction.is_floating_point() or direction.is_complex()):
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {direction.dtype}")
    refuse_complex_along(point, direction)
    if point.shape != direction.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
            f"not supported. Tensor is of size {list(point.shape)} while the given forward gradient is of size "
            f"{list(direction.shape)}."
        )


def pushed(
    func: Callable[..., Any],
    points: Sequence[Tensor],
    directions: Sequence[Tensor],
    structure: Any,
    strict: bool,
    has_aux: bool,
    others: Any = (),
) -> Any:
    """The body of `jvp`, over the leaves of its arguments; others: more arguments of the function, which it may write."""
    if any(t.name == "forward_ad.dual_level" for t in state.transforms):
        refuse_nested()
    with running("jvp") as level:
        level.given = tuple([t._xt_storage for t in tensors(others)])
        given = [dual(p, d.to(p.dtype), level) for p, d in zip(points, directions, strict=True)]
        memories = [g._xt_storage for g in given]
        value, aux = split(func(*tree_unflatten(given, structure)), has_aux, NAME)
        outputs = tensors_only(value, NAME)
        along = [tangent(o, level) for o in outputs]
        if strict and None in along:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        values = [primal(o, level) for o in outputs]
        aux = tree_map(lambda t: primal(t, level) if isinstance(t, Tensor) else t, aux)
        form = tree_structure(value)
        tangents = [zeros_like(v) if t is None else t for v, t in zip(values, along, strict=True)]
        written = [
            (p, primal(g, level))
            for p, g, memory in zip(points, given, memories, strict=True)
            if memory.version and g._xt_storage is memory
        ]
    for p, found in written:  # a write to an argument is one to the tensor that was given
        p.copy_(found)
    if level.leaves:
        values, tangents = cut_off(level, values), cut_off(level, tangents)
    results = tree_unflatten(values, form), tree_unflatten(tangents, form)
    return (*results, aux) if has_aux else results


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] | None = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`, by its columns: the function runs once, with a batch of tangents.

    randomness: of `func`, as for `vmap`.

    >>> xtensor.func.jacfwd(lambda x: x.cumsum(0))(xtensor.tensor([1., 2.]))
    tensor([[1., 0.],
            [1., 1.]])
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        wanted = tuple(range(len(args))) if argnums is None else argnums
        places = chosen(wanted, len(args))
        entered = [args[i] for i in places]
        inputs, structure = tree_flatten(entered)
        for x in inputs:
            if not isinstance(x, Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
            check_tangent(x, x)
        refuse_complex(inputs, "jacfwd", "inputs")

        def along(*directions: Tensor) -> Any:
            def of_inputs(*leaves: Tensor) -> Any:
                given = list(args)
                for i, part in zip(places, tree_unflatten(leaves, structure), strict=True):
                    given[i] = part
                return func(*given, **kwargs)

            form = tree_structure(tuple(inputs))
            found = pushed(of_inputs, inputs, directions, form, False, has_aux, (args, kwargs))
            refuse_complex(tree_leaves(found[0]), "jacfwd", "outputs")
            return (found[1], found[2]) if has_aux else found[1]

        found = vmapped(along, None, randomness)(*unit_vectors(inputs))
        table, aux = found if has_aux else (found, None)
        columns, form = tree_flatten(table)
        made = []
        for column in columns:
            sizes = tuple(column.shape)[1:]
            blocks, start = [], 0
            for x in inputs:
                block = column.narrow(0, start, x.numel()).movedim(0, -1)
                blocks.append(block.reshape((*sizes, *x.shape)))
                start += x.numel()
            parts = tree_unflatten(blocks, structure)
            made.append(parts[0] if isinstance(wanted, int) else tuple(parts))
        result = tree_unflatten(made, form)
        return (result, tree_map(lambda t: t[0], aux)) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that gives the Hessian of `func`: the Jacobian of its Jacobian, for every pair of arguments.

    >>> xtensor.func.hessian(lambda x: x[0] * x[1])(xtensor.tensor([1., 2.]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of `func`, and the function from tangents of its arguments to those of its results; `func` runs once.

    Differs from PyTorch: what `func` computes under `no_grad` counts as constant, and its arguments may not be written.

    >>> value, push = xtensor.func.linearize(xtensor.exp, xtensor.zeros(2))
    >>> push(xtensor.tensor([1., 2.]))
    tensor([1., 2.])
    """
    with Tracked("linearize", refuses_writes=False) as level, enable_grad():
        given = level.enter(primals)
        value = func(*given)
        outputs = tensors_only(value, "linearize(f, *primals)", some=False)
        inputs = tree_leaves(given)
        form = tree_structure(value)
        # v -> J^T v is linear: its own derivative, pulled back along the tangents, is J times them.
        asked = [o for o in outputs if o.requires_grad]
        duals = [level.leaf(zeros_like(o)) for o in asked]
        pulled = derived(level, asked, inputs, duals, create_graph=True)
    with enable_grad():
        shown = level.shown(value)

    def push(*tangents: Any) -> Any:
        directions, structure = tree_flatten(tangents)
        if structure != tree_structure(primals):
            raise RuntimeError(
                f"Expected the tangents {structure} to have the same argspec as the primals {tree_structure(primals)}"
            )
        for i, (x, d) in enumerate(zip(tree_leaves(primals), directions, strict=True)):
            if x.shape != d.shape:
                raise RuntimeError(
                    f"tangent:{i} with shape {d.shape} in flattened pytree doesn't match the shape {x.shape} of the "
                    "corresponding primal."
                )
            if x.dtype != d.dtype:
                raise RuntimeError(
                    f"tangent:{i} with dtype {d.dtype} in flattened pytree doesn't match the dtype {x.dtype} of the "
                    "corresponding primal."
                )
        live = level.keeps(outputs, directions)
        with enable_grad():
            products = iter(derived(level, pulled, duals, directions, live))
            found = [next(products) if o.requires_grad else zeros_like(o) for o in outputs]
            return level.shown(tree_unflatten(found, form))

    return shown, push
