"""`torch.func`: derivatives and batches of functions, as functions; modules called with other parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .engine import enable_grad, is_grad_enabled
from .func_levels import Level, chosen, depends, kept, refuse_complex, split
from .gradients import grad as gradients
from .nn.modules.module import Module
from .operators.generator import get_rng_state, set_rng_state
from .ops.create.creation import ones_like, zeros_like
from .ops.create.ranges import eye
from .ops.shape.joining import stack
from .tensor import Tensor
from .utils._pytree import tree_leaves, tree_map, tree_structure, tree_unflatten

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "vjp",
    "vmap",
]


def leaves(tree: Any) -> list[Any]:
    return tree_leaves(tree)


def derived(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], cotangents: Any, create_graph: bool
) -> list[Tensor]:
    """The product of `cotangents` with the Jacobian, for each input; zeros where no output depends on it."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    if not pairs:
        return [zeros_like(w) for w in inputs]
    found = gradients(
        [o for o, _ in pairs],
        inputs,
        [c for _, c in pairs],
        retain_graph=True,
        create_graph=create_graph,
        allow_unused=True,
    )
    return [zeros_like(w) if g is None else g for g, w in zip(found, inputs, strict=True)]


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that gives the gradient of `func`, which gives a scalar, and its value."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = chosen(argnums, len(args))
        given = list(args)
        with Level() as level, enable_grad():
            for i in places:
                given[i] = level.enter(given[i])
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
        entered = [given[i] for i in places]
        with enable_grad():
            outer = level.keeps(value, aux)
            grads = derived([value], leaves(entered), [ones_like(value)], outer)
            found = level.shown(tree_unflatten(grads, tree_structure(entered)))
            value, aux = level.shown((value, aux))
        result = found[0] if isinstance(argnums, int) else tuple(found)
        return (result, (value, aux)) if has_aux else (result, value)

    return wrapper


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that gives the gradient of `func`, which gives a scalar, by the arguments at `argnums`."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return wrapper


def tensors_only(tree: Any, name: str) -> list[Tensor]:
    """The leaves of a function's result; RuntimeError where one is no tensor."""
    for leaf in leaves(tree):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves(tree)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func`, and the function from gradients of its results to those of its arguments."""
    with Level() as level, enable_grad():
        given = level.enter(primals)
        value, aux = split(func(*given), has_aux, "vjp(f, *primals)")
        outputs = tensors_only(value, "vjp(f, *primals)")
    inputs = leaves(given)
    structure = tree_structure(value)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        if tree_structure(cotangents) != structure:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {tree_structure(cotangents)}, primal output: {structure}"
            )
        for i, (c, o) in enumerate(zip(leaves(cotangents), outputs, strict=True)):
            if c.shape != o.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {c.shape} and output[{i}] has a shape of "
                    f"{o.shape}."
                )
        track = is_grad_enabled() if create_graph is None else create_graph
        live = track and any(depends([*outputs, *leaves(cotangents)]))
        found = derived(outputs, inputs, leaves(cotangents), live)
        if live:
            found = [kept(g, alive) for g, alive in zip(found, depends(found), strict=True)]
        return tree_unflatten(found, tree_structure(given))

    with enable_grad():
        shown, aux = level.shown((value, aux))
    return (shown, pull, aux) if has_aux else (shown, pull)


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """The value of `func` and its derivative in a direction; `strict` refuses what does not depend on the inputs.

    Differs from PyTorch: computed by differentiating the backward pass, so that what `func` computes inside `no_grad`
    is constant.
    """
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    if tree_structure(primals) != tree_structure(tangents):
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            f"tuple of 3 tensors, tangents also must be. Got primals with structure {tree_structure(primals)} and "
            f"tangents with structure {tree_structure(tangents)}"
        )
    points, directions = leaves(primals), leaves(tangents)
    if not points:
        raise RuntimeError(f"{name}: Expected primals to contain at least one Tensor.")
    for i, (p, d) in enumerate(zip(points, directions, strict=True)):
        for what, t in (("primals", p), ("tangents", d)):
            if not isinstance(t, Tensor):
                raise RuntimeError(
                    f"{name}: Expected {what} to be a tuple of Tensors, but got {type(t)} at flattened index {i}"
                )
        refuse_integers([p], True)
        if p.shape != d.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {list(p.shape)} while the given forward gradient is of size "
                f"{list(d.shape)}."
            )
    with Level() as level, enable_grad():
        given = level.enter(primals)
        value, aux = split(func(*given), has_aux, name)
        outputs = tensors_only(value, name)
        if strict and not all(o.requires_grad for o in outputs):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )
        # v -> J^T v is linear: its own derivative, pulled back along the tangents, is J times them.
        asked = [o for o in outputs if o.requires_grad]
        duals = [level.leaf(zeros_like(o)) for o in asked]
        pulled = derived(asked, leaves(given), duals, create_graph=True)
    with enable_grad():
        outer = level.tracking and any(depends([*outputs, *leaves(aux), *directions]))
        products = iter(derived(pulled, duals, directions, outer))
        found = [next(products) if o.requires_grad else zeros_like(o) for o in outputs]
        derivative = level.shown(tree_unflatten(found, tree_structure(value)))
        value, aux = level.shown((value, aux))
    return (value, derivative, aux) if has_aux else (value, derivative)


def jacobian(name: str, func: Callable[..., Any], argnums: Any, has_aux: bool) -> Callable[..., Any]:
    """The body of `jacrev` and `jacfwd`: rows are taken backwards, one by one."""
    forward = name == "jacfwd"
    inner = "jvp(f, primals, tangents)" if forward else "vjp(f, *primals)"

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        wanted = tuple(range(len(args))) if argnums is None and forward else argnums
        places = chosen(wanted, len(args))
        given = list(args)
        with Level() as level, enable_grad():
            for i in places:
                refuse_integers(leaves(given[i]), forward)
                given[i] = level.enter(given[i])
            value, aux = split(func(*given, **kwargs), has_aux, inner)
            outputs = tensors_only(value, inner)
        entered = [given[i] for i in places]
        inputs = leaves(entered)
        refuse_complex(inputs, name, "inputs")
        refuse_complex(outputs, name, "outputs")
        for out in outputs:
            if not (forward or out.is_floating_point()):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{out.dtype}"
                )
        with enable_grad():
            outer = level.keeps(value, aux)
            structure = tree_structure(entered)
            made = []
            for out in outputs:
                blocks = rows(out, inputs, outer)
                # Forward mode would have computed in the output's dtype.
                blocks = [b.to(out.dtype) for b in blocks] if forward else blocks
                table = tree_unflatten(blocks, structure)
                made.append(table[0] if isinstance(wanted, int) else tuple(table))
            result = level.shown(tree_unflatten(made, tree_structure(value)))
            aux = level.shown(aux)
        return (result, aux) if has_aux else result

    return wrapper


def refuse_integers(values: Sequence[Any], forward: bool) -> None:
    """What forward mode says of an argument that has no derivative; backward mode says it of the leaf."""
    for value in values:
        if forward and isinstance(value, Tensor) and not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected primal to be floating point or complex, but got: {value.dtype}")


def rows(out: Tensor, inputs: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    """The Jacobian of one output by each input, of the output's sizes followed by the input's."""
    count = out.numel()
    shapes = [(*out.shape, *x.shape) for x in inputs]
    if not out.requires_grad or count == 0:
        return [x.new_zeros(shape) for x, shape in zip(inputs, shapes, strict=True)]
    basis = eye(count, dtype=out.dtype, device=out.device).reshape(count, *out.shape)
    table = [derived([out], inputs, [basis[k]], create_graph) for k in range(count)]
    return [
        stack(column).reshape(shape) for column, shape in zip(zip(*table, strict=True), shapes, strict=True)
    ]


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`.

    `chunk_size` bounds the memory of PyTorch's batches of rows; here rows are taken one by one.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    return jacobian("jacrev", func, argnums, has_aux)


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] | None = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The function that gives the Jacobian of `func`; computed backwards, as `jacrev`.

    Differs from PyTorch: `func` runs once, so random numbers in it are the same for all columns whatever `randomness`
    is, and what it computes inside `no_grad` is constant.
    """
    return jacobian("jacfwd", func, argnums, has_aux)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that gives the Hessian of `func`: the Jacobian of its Jacobian, for every pair of arguments."""
    return jacfwd(jacrev(func, argnums), argnums)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that applies `func` to every element along a dimension and stacks the results.

    Keyword arguments are given whole to every run. Differs from PyTorch: `func` runs once per element, and may therefore
    do anything, random numbers included whatever `randomness` says ("same" repeats them); it is no faster than a loop.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        dims = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
        if len(dims) != len(args):
            raise ValueError(
                f"vmap(func, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of inputs."
            )
        pairs = [spread(dim, arg) for dim, arg in zip(dims, args, strict=True)]
        sizes = [
            t.shape[d]
            for tree, places in pairs
            for t, d in zip(leaves(tree), leaves(places), strict=True)
            if d is not None
        ]
        if not sizes:
            raise ValueError("vmap: at least one input must be mapped over")
        if len(set(sizes)) > 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                f"{list(dict.fromkeys(sizes))} for the mapped dimension"
            )
        results = []
        state = get_rng_state() if randomness == "same" else None
        for i in range(sizes[0]):
            if state is not None:
                set_rng_state(state)
            selected = [
                tree_map(lambda t, d, i=i: t if d is None else t.select(d, i), tree, places)
                for tree, places in pairs
            ]
            results.append(func(*selected, **kwargs))
        outs = out_dims if isinstance(out_dims, (tuple, list)) else None
        if outs is not None and isinstance(results[0], (tuple, list)):
            return tuple([joined(d, [r[k] for r in results]) for k, d in enumerate(outs)])
        return joined(out_dims, results)

    return wrapper


def spread(dim: Any, tree: Any) -> tuple[Any, Any]:
    """A tree and the dimension of each of its leaves."""
    if isinstance(dim, dict) and isinstance(tree, dict):
        found = {key: spread(dim[key], value)[1] for key, value in tree.items()}
        return tree, found
    if isinstance(dim, (tuple, list)) and isinstance(tree, (tuple, list)):
        found = type(tree)([spread(d, t)[1] for d, t in zip(dim, tree, strict=True)])
        return tree, found
    return tree, tree_map(lambda leaf: dim if isinstance(leaf, Tensor) else None, tree)


def joined(dim: Any, results: Sequence[Any]) -> Any:
    if dim is None:
        return results[0]
    if isinstance(dim, dict):
        return {key: joined(d, [r[key] for r in results]) for key, d in dim.items()}
    return tree_map(lambda *parts: stack(parts, dim), *results)


@contextmanager
def swapped(module: Module, tensors: dict[str, Tensor]) -> Iterator[None]:
    """Other tensors in the place of parameters and buffers inside the block."""
    before: list[tuple[Any, str, Any]] = []
    try:
        for path, tensor in tensors.items():
            owner, _, name = path.rpartition(".")
            holder = module.get_submodule(owner)
            where = next((d for d in (holder._parameters, holder._buffers) if name in d), None)
            if where is None:
                raise KeyError(f"{path} is no parameter or buffer of the module")
            held: Any = where
            before.append((held, name, held[name]))
            held[name] = tensor
        yield
    finally:
        for held, name, tensor in reversed(before):
            held[name] = tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The module's result with other parameters and buffers in the place of its own, by their names.

    `tie_weights` gives a tensor that the module holds under several names the same replacement under each.
    """
    dicts = parameter_and_buffer_dicts
    given = dict(dicts) if isinstance(dicts, dict) else {k: v for d in dicts for k, v in d.items()}
    own = dict(module.named_parameters(remove_duplicate=False)) | dict(
        module.named_buffers(remove_duplicate=False)
    )
    if strict and set(given) != set(own):
        raise RuntimeError(
            f"Error(s) in loading state_dict: Missing key(s): {sorted(set(own) - set(given))}, unexpected key(s): "
            f"{sorted(set(given) - set(own))}."
        )
    if tie_weights:
        by_tensor = {id(own[name]): tensor for name, tensor in given.items() if name in own}
        given |= {n: by_tensor[id(t)] for n, t in own.items() if n not in given and id(t) in by_tensor}
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with swapped(module, given):
        return module(*positional, **(kwargs or {}))


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one kind, stacked along a new first dimension."""
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")

    def stacked(kind: str) -> dict[str, Tensor]:
        states = [dict(getattr(m, kind)()) for m in models]
        return {name: stack([s[name] for s in states]).detach() for name in states[0]}

    parameters = stacked("named_parameters")
    wanted = {name: p.requires_grad for name, p in models[0].named_parameters()}
    return {n: t.requires_grad_(wanted[n]) for n, t in parameters.items()}, stacked("named_buffers")
