"""`torch.func`: derivatives and batches of functions, as functions; modules called with other parameters."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .autograd import functional
from .engine import enable_grad
from .gradients import grad as gradients
from .nn.modules.module import Module
from .ops.shape.joining import stack
from .tensor import Tensor

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


def mapped(function: Callable[..., Any], *trees: Any) -> Any:
    """A function of the leaves at the same place of nested tuples, lists and dicts."""
    first = trees[0]
    if isinstance(first, dict):
        return {key: mapped(function, *[tree[key] for tree in trees]) for key in first}
    if isinstance(first, (list, tuple)):
        made = [mapped(function, *parts) for parts in zip(*trees, strict=True)]
        return type(first)(*made) if hasattr(first, "_fields") else type(first)(made)
    return function(*trees)


def leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    mapped(found.append, tree)
    return found


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that gives the gradient of `func`, which gives a scalar, and its value."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        given = list(args)
        with enable_grad():
            for i in places:
                # A view is part of an outer graph, if there is one, and a place of its own to ask for.
                given[i] = mapped(followed, given[i])
            found = func(*given, **kwargs)
            value, aux = found if has_aux else (found, None)
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    f"Expected f(*args) to return only tensors, got unsupported type {type(value)}"
                )
            if value.dim() != 0:
                raise RuntimeError(
                    "Expected f(*args) to return a scalar tensor, got tensor with "
                    f"{value.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            wanted = [leaf for i in places for leaf in leaves(given[i])]
            outer = any(t.requires_grad for i in places for t in leaves(args[i]))
            found = gradients([value], wanted, create_graph=True, allow_unused=True)
        grads = iter(
            [g if g is not None else w.new_zeros(w.shape) for g, w in zip(found, wanted, strict=True)]
        )
        made = [mapped(lambda leaf: kept(next(grads), outer or _nesting.depth > 0), given[i]) for i in places]
        result = made[0] if isinstance(argnums, int) else tuple(made)
        value = kept(value, outer or _nesting.depth > 0)
        return (result, (value, aux)) if has_aux else (result, value)

    def nested(*args: Any, **kwargs: Any) -> Any:
        with _nesting:
            return wrapper(*args, **kwargs)

    return functools.wraps(func)(nested)


class _Nesting:
    """How many of these functions are running inside each other: an inner one's results keep their graph."""

    depth = -1

    def __enter__(self) -> None:
        self.depth += 1

    def __exit__(self, *exc: object) -> None:
        self.depth -= 1


_nesting = _Nesting()


def followed(tensor: Tensor) -> Tensor:
    if tensor.requires_grad:
        return tensor.view(tensor.shape)
    return tensor.detach().requires_grad_()


def kept(tensor: Tensor, graph: bool) -> Tensor:
    return tensor if graph else tensor.detach()


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


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func`, and the function from gradients of its results to those of its arguments."""
    with enable_grad():
        given = [mapped(followed, p) for p in primals]
        found = func(*given)
    value, aux = found if has_aux else (found, None)
    outputs = leaves(value)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool = False) -> Any:
        wanted = leaves(given)
        grads = gradients(
            outputs,
            wanted,
            leaves(cotangents),
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
        parts = iter(
            [g if g is not None else w.new_zeros(w.shape) for g, w in zip(grads, wanted, strict=True)]
        )
        return tuple([mapped(lambda leaf: next(parts), g) for g in given])

    shown = mapped(lambda leaf: leaf.detach(), value)
    return (shown, pull, aux) if has_aux else (shown, pull)


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """The value of `func` and its derivative in a direction; `strict` refuses what does not depend on the inputs."""
    if has_aux:
        aux = func(*primals)[1]
        value, derivative = functional.jvp(
            lambda *a: func(*a)[0], tuple(primals), tuple(tangents), strict=strict
        )
        return value, derivative, aux
    return functional.jvp(func, tuple(primals), tuple(tangents), strict=strict)


def _jacobian(func: Callable[..., Any], argnums: int | tuple[int, ...], has_aux: bool) -> Callable[..., Any]:
    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        places = (argnums,) if isinstance(argnums, int) else tuple(argnums)

        def of(*chosen: Any) -> Any:
            given = list(args)
            for i, value in zip(places, chosen, strict=True):
                given[i] = value
            found = func(*given, **kwargs)
            return found[0] if has_aux else found

        found: Any = functional.jacobian(
            of, tuple([args[i] for i in places]), create_graph=_nesting.depth > 0
        )
        result = found[0] if isinstance(argnums, int) else found
        return (result, func(*args, **kwargs)[1]) if has_aux else result

    return wrapper


def jacrev(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, **options: Any
) -> Any:
    """The function that gives the Jacobian of `func`."""
    return _jacobian(func, argnums, has_aux)


def jacfwd(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False, **options: Any
) -> Any:
    """The function that gives the Jacobian of `func`; computed backwards, as `jacrev`."""
    return _jacobian(func, argnums, has_aux)


def hessian(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """The function that gives the Hessian of `func`, which gives a scalar."""

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        def of(chosen: Any) -> Any:
            return func(*args[:argnums], chosen, *args[argnums + 1 :])

        return functional.hessian(of, args[argnums])

    return wrapper


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that applies `func` to every element along a dimension and stacks the results.

    Differs from PyTorch: `func` runs once per element, and may therefore do anything; it is no faster than a loop.
    """

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        dims = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
        if len(dims) != len(args):
            raise ValueError(
                f"vmap(func, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of inputs."
            )
        pairs = [spread(dim, arg) for dim, arg in zip(dims, args, strict=True)]
        pairs += [spread(0, value) for value in kwargs.values()]
        sizes = {
            t.shape[d]
            for tree, places in pairs
            for t, d in zip(leaves(tree), leaves(places), strict=True)
            if d is not None
        }
        if not sizes:
            raise ValueError("vmap: at least one input must be mapped over")
        if len(sizes) > 1:
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sorted(sizes)}"
            )
        results = []
        for i in range(sizes.pop()):
            chosen = [
                mapped(lambda t, d, i=i: t if d is None else t.select(d, i), tree, places)
                for tree, places in pairs
            ]
            results.append(func(*chosen[: len(args)], **dict(zip(kwargs, chosen[len(args) :], strict=True))))
        outs = out_dims if isinstance(out_dims, (tuple, list)) else None
        if outs is not None and isinstance(results[0], (tuple, list)):
            return tuple([joined(d, [r[k] for r in results]) for k, d in enumerate(outs)])
        return joined(out_dims, results)

    return wrapper


def spread(dim: Any, tree: Any) -> tuple[Any, Any]:
    """A tree and the dimension of each of its leaves."""
    if isinstance(dim, (tuple, list, dict)):
        return tree, dim
    return tree, mapped(lambda leaf: dim if isinstance(leaf, Tensor) else None, tree)


def joined(dim: Any, results: Sequence[Any]) -> Any:
    if dim is None:
        return results[0]
    return mapped(lambda *parts: stack(parts, dim), *results)


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
