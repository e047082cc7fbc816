"""Modules as pure functions of arrays, for `jax.jit`, `jax.grad`, `jax.vmap` and what is built on them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..interop.pytrees import rebuilt
from ..nn.modules.module import Module
from ..nn.utils.stateless import call_with
from ..tensor import Tensor, array_of, edge_of, wrap
from ..xla.x64 import call
from .pure import TraceError, pure

__all__ = ["arrays_in", "tensors_in", "to_jax"]

Arrays = dict[str, Any]


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor: a leaf here, though a pytree to JAX."""
    return isinstance(value, Tensor)


def tensors_in(tree: Any) -> Any:
    """The tree with tensors over its arrays, those of NumPy too; numbers and all else as they are."""

    def one(value: Any) -> Any:
        if isinstance(value, jax.Array):
            return wrap(value, shared=True)
        return rebuilt(Tensor, value, False) if isinstance(value, (np.ndarray, np.generic)) else value

    return jax.tree.map(one, tree, is_leaf=is_tensor)


def arrays_in(tree: Any) -> Any:
    """The tree with the values of its tensors."""
    return jax.tree.map(lambda v: array_of(v) if is_tensor(v) else v, tree, is_leaf=is_tensor)


def seeded(seed: Any) -> Callable[[], tuple[Any, Any]] | None:
    """The seed and the first draw as operands of programs."""
    if seed is None:
        return None
    made = call(lambda: jnp.asarray(seed).astype(np.int64))
    return lambda: (made, np.int64(0))


def to_jax(module: Module | Callable[..., Any], *, buffers: bool = False) -> Any:
    """A module as `(function, parameters)`: a pure function of arrays, and its parameters by name, which share memory with the module's.

    `function(parameters, *args, seed=None, **kwargs)` takes and gives pytrees of JAX arrays, and works under `jax.jit`, `jax.grad`,
    `jax.vmap` and the like; JAX differentiates it, so that derivatives at kinks are JAX's. Buffers are constants; with
    `buffers=True` the result is `(function, parameters, buffers)`, and `function(parameters, buffers, *args)` gives its value and
    the new buffers. Random numbers are a function of `seed`, an integer, which may be traced. Modes (`train`, `eval`) are those of the
    module at the call. Of a callable that is no module only the function is given.

    Raises RuntimeError where the module writes buffers that are constants, draws without a seed, or needs values of tensors.

    >>> import jax
    >>> function, parameters = xtensor.jax.to_jax(xtensor.nn.Linear(2, 1))
    >>> gradients = jax.grad(lambda p, x: function(p, x).sum())(parameters, jax.numpy.ones((3, 2)))
    >>> gradients["weight"].tolist()
    [[3.0, 3.0]]
    """
    if not isinstance(module, Module):
        return of_function(module)
    parameters = {name: values(p) for name, p in module.named_parameters()}
    held = {name: values(b) for name, b in module.named_buffers()}

    def run(given: Arrays, state: Arrays, args: Any, kwargs: Any, seed: Any) -> tuple[Any, Arrays]:
        mine = {name: wrap(jnp_array(a), shared=True) for name, a in [*given.items(), *state.items()]}
        before = {name: (mine[name], mine[name]._xt_storage.array) for name in state}
        with pure(type(module).__name__, seeded(seed)):
            found = call_with(module, mine, tensors_in(args), tensors_in(kwargs))
            result = arrays_in(found)
            new = {name: array_of(mine[name]) for name in state}
        written = [n for n, (t, a) in before.items() if mine[n] is not t or new[n] is not a]
        if written and not buffers:
            raise TraceError(
                f"{type(module).__name__} writes its buffers {', '.join(written)}, which are constants of the function: use "
                "to_jax(module, buffers=True), or module.eval()"
            )
        return result, new

    if buffers:

        @functools.wraps(module.forward)
        def with_buffers(
            parameters: Arrays, buffers: Arrays, /, *args: Any, seed: Any = None, **kwargs: Any
        ) -> tuple[Any, Arrays]:
            return run(parameters, buffers, args, kwargs, seed)

        return with_buffers, parameters, held

    @functools.wraps(module.forward)
    def function(parameters: Arrays, /, *args: Any, seed: Any = None, **kwargs: Any) -> Any:
        return run(parameters, held, args, kwargs, seed)[0]

    return function, parameters


def of_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of tensors as a pure one of arrays."""

    @functools.wraps(function)
    def run(*args: Any, seed: Any = None, **kwargs: Any) -> Any:
        with pure(getattr(function, "__name__", type(function).__name__), seeded(seed)):
            return arrays_in(function(*tensors_in(args), **tensors_in(kwargs)))

    return run


def values(tensor: Tensor) -> Any:
    """A tensor's array, which stays as it is when the tensor is written."""
    if type(edge_of(tensor)) is tuple:
        tensor = tensor.detach()
    tensor._xt_storage.shared = True
    return array_of(tensor)


def jnp_array(value: Any) -> Any:
    """A parameter as JAX has it; of NumPy's, a copy on the current device."""
    return value if isinstance(value, jax.Array) else call(jnp.asarray, value)
