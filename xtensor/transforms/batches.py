"""`vmap`: a function of samples, run once over all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..operators.generator import kept_state, put_back
from ..operators.levels.crossing import enter, leave, level_at, running
from ..ops.shape.joining import cat
from ..tensor import Tensor, array_of, wrap
from ..trees import (
    TreeSpec,
    _broadcast_to_and_flatten,
    tree_flatten,
    tree_leaves,
    tree_structure,
    tree_unflatten,
)
from ..xla.levels import OLDER_VMAP, Level, levels_of
from .viewing import view_of

__all__ = ["add_batch_dim", "maybe_remove_batch_dim", "older_vmap", "remove_batch_dim", "vmap", "vmapped"]


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that applies `func` to every element along a dimension and stacks the results.

    in_dims: the dimension of each argument, in their structure; None for what is the same for all. out_dims: where the samples
    lie in the results. randomness: whether random numbers are refused ("error"), "same" for all samples or "different".
    chunk_size: how many samples run at once. Keyword arguments are given whole. `func` runs once, over a batch: what must know
    a value (`if`, `.item()`, boolean masks) and writes of a sample to what all share are RuntimeErrors.

    >>> rows = xtensor.arange(6.).reshape(2, 3)
    >>> xtensor.vmap(xtensor.dot)(rows, rows)
    tensor([ 5., 50.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, structure = arguments_of(func, in_dims, args)
        if chunk_size is None or size <= chunk_size:
            return run(func, size, dims, leaves, structure, out_dims, randomness, kwargs)
        places = {
            t.device for t, dim in zip(leaves, dims, strict=True) if dim is not None and isinstance(t, Tensor)
        }
        states = [kept_state(place) for place in places] if randomness == "same" else []
        results = []
        for start in range(0, size, chunk_size):
            for state in states:
                put_back(state)
            count = min(chunk_size, size - start)
            part = [
                leaf if dim is None else leaf[(*[slice(None)] * dim, slice(start, start + count))]
                for leaf, dim in zip(leaves, dims, strict=True)
            ]
            results.append(run(func, count, dims, part, structure, out_dims, randomness, kwargs))
        return joined(results, out_dims, func)

    return wrapped


def vmapped(func: Callable[..., Any], chunk_size: int | None, randomness: str = "same") -> Callable[..., Any]:
    """`vmap` of a function along the first dimensions, as other transforms use it."""
    return vmap(func, 0, 0, randomness, chunk_size=chunk_size)


def older_vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """`vmap` as it was before `torch.func`: custom functions run in it as they are, on all samples at once."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        size, dims, leaves, structure = arguments_of(func, in_dims, args)
        return run(func, size, dims, leaves, structure, out_dims, "error", kwargs, OLDER_VMAP)

    return wrapped


def run(
    func: Callable[..., Any],
    size: int,
    dims: Sequence[int | None],
    leaves: Sequence[Any],
    structure: TreeSpec,
    out_dims: Any,
    randomness: str,
    kwargs: dict[str, Any],
    title: str = "vmap",
) -> Any:
    """The results of `func`, run once over `size` samples."""
    with running(title, size, randomness) as level:
        given = [within(leaf, level, dim) for leaf, dim in zip(leaves, dims, strict=True)]
        level.origins = origins = {
            id(inner._xt_storage): (inner._xt_storage, leaf, dim, inner)
            for leaf, inner, dim in zip(leaves, given, dims, strict=True)
            if dim is not None and isinstance(leaf, Tensor)
        }
        found = func(*tree_unflatten(given, structure), **kwargs)
        results, shape = tree_flatten(found, batches_itself)
        places = result_dims(func, out_dims, found, results, shape)
        title = name_of(func)
        out: list[Any] = []
        for result, place in zip(results, places, strict=True):
            if batches_itself(result):
                made = unlocked(result)._maybe_remove_batch_dim(title, level.number, size, place)
                out.append(made.lock_() if result.is_locked else made)
                continue
            if place is None:
                if isinstance(result, Tensor) and level.number in levels_of(array_of(result)):
                    raise ValueError(
                        f"vmap({title}, ...): `{title}` can not return a BatchedTensor when out_dim is None"
                    )
                out.append(result)
                continue
            if not isinstance(result, Tensor):
                raise ValueError(
                    f"vmap({title}, ...): `{title}` must only return Tensors, got type {type(result)}. Did you mean to set "
                    "out_dims= to None for output?"
                )
            limit = result.dim() + 1
            if not -limit <= place < limit:
                raise IndexError(
                    f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {place})"
                )
            out.append(result)
        for storage, leaf, dim, inner in origins.values():
            if storage.version and inner._xt_storage is storage:
                # A write to an argument is one to the tensor that the samples came from.
                leaf.copy_(leave(inner if inner._xt_view is None else wrap(storage.array), level, dim))
        for i, (result, place) in enumerate(zip(out, places, strict=True)):
            if place is not None and isinstance(result, Tensor):
                place %= result.dim() + 1
                origin = origins.get(id(result._xt_storage))
                found = None if origin is None else view_of(*origin[1:], result, place)
                if found is None:
                    found = leave(result, level, 0)
                    found = found.movedim(0, place) if place else found
                out[i] = found
    return tree_unflatten(out, shape)


# ---- collections of tensors that batch them themselves


def batches_itself(value: Any) -> bool:
    """Whether a value is a collection of tensors that batches them itself, by tensordict's protocol."""
    return hasattr(type(value), "_maybe_remove_batch_dim")


def within(leaf: Any, level: Level, dim: int | None) -> Any:
    """An argument as the function gets it."""
    if not batches_itself(leaf):
        return leaf if dim is None else enter(leaf, level, dim)
    if dim is None:
        return leaf.clone(False)
    made = unlocked(leaf)._add_batch_dim(in_dim=dim, vmap_level=level.number)
    return made.lock_() if leaf.is_locked else made


def unlocked(collection: Any) -> Any:
    """A collection that keeps nothing by a level's number, which others have later: those that are locked do."""
    return collection.clone(False) if collection.is_locked else collection


def add_batch_dim(tensor: Tensor, in_dim: int, vmap_level: int) -> Tensor:
    """What lies along a dimension as the samples of the batch of a level, by its number."""
    return enter(tensor, level_at(vmap_level), in_dim)


def remove_batch_dim(tensor: Tensor, vmap_level: int, batch_size: int, out_dim: int) -> Tensor:
    """The samples of the batch of a level along a new dimension; what is the same for all of them is repeated."""
    found = leave(tensor, level_at(vmap_level), 0)
    return found.movedim(0, out_dim) if out_dim else found


def maybe_remove_batch_dim(
    name: str, tensor: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """`remove_batch_dim` of a result of the function `name`; with `out_dim` None it is no batch, and stays as it is."""
    if out_dim is None:
        if isinstance(tensor, Tensor) and vmap_level in levels_of(array_of(tensor)):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return tensor
    if not isinstance(tensor, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(tensor)}. Did you mean to set out_dims= to None for "
            "output?"
        )
    return remove_batch_dim(tensor, vmap_level, batch_size, out_dim)


# ---- where samples lie


def name_of(func: Any) -> str:
    return getattr(func, "__name__", None) or repr(func)


def where(func: Any, in_dims: Any) -> str:
    """How messages about arguments begin."""
    return f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>)"


def arguments_of(
    func: Any, in_dims: Any, args: tuple[Any, ...]
) -> tuple[int, list[int | None], list[Any], TreeSpec]:
    """How many samples there are, where they lie in each leaf of the arguments, these, and their structure."""
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{where(func, in_dims)}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    leaves, structure = tree_flatten(args, batches_itself)
    found = _broadcast_to_and_flatten(in_dims, structure)
    if found is None:
        raise ValueError(
            f"{where(func, in_dims)}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_structure(in_dims)} but inputs has structure {structure}."
        )
    dims: list[int | None] = []
    sizes: list[int] = []
    for leaf, dim in zip(leaves, found, strict=True):
        if dim is None:
            dims.append(None)
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{where(func, in_dims)}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if not (isinstance(leaf, Tensor) or batches_itself(leaf)):
            raise ValueError(
                f"{where(func, in_dims)}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        count = leaf.dim()
        if not -count <= dim < count:
            raise ValueError(
                f"{where(func, in_dims)}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {count} so expected "
                f"in_dim to satisfy -{count} <= in_dim < {count}."
            )
        dims.append(dim % count)
        sizes.append(leaf.shape[dim])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped "
            "dimension"
        )
    return sizes[0], dims, leaves, structure


def result_dims(func: Any, out_dims: Any, found: Any, results: list[Any], structure: TreeSpec) -> list[Any]:
    """Where the samples lie in each of the results."""
    if type(out_dims) is int:
        return [out_dims] * len(results)
    title = name_of(func)
    given = tree_leaves(out_dims, is_leaf=lambda v: v is None)
    if not all(d is None or isinstance(d, int) for d in given):
        raise ValueError(
            f"vmap({title}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
            "representing where in the outputs the vmapped dimension should appear."
        )
    if isinstance(found, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    places = _broadcast_to_and_flatten(out_dims, structure)
    if places is None:
        raise ValueError(
            f"vmap({title}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
            f"out_dims has structure {tree_structure(out_dims)} but outputs has structure {structure}."
        )
    return places


def joined(results: list[Any], out_dims: Any, func: Any) -> Any:
    """The results of chunks as one."""
    flat = [tree_leaves(r, batches_itself) for r in results]
    structure = tree_structure(results[0], batches_itself)
    places = result_dims(func, out_dims, results[0], flat[0], structure)
    made = [
        parts[0] if place is None else cat(list(parts), dim=place)
        for parts, place in zip(zip(*flat, strict=True), places, strict=True)
    ]
    return tree_unflatten(made, structure)
