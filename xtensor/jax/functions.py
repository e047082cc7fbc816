"""JAX's functions as operators on tensors: differentiable to every order, in both directions, and batched by JAX's own rules."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..autograd.function import Function
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..tensor import Tensor, array_of, wrap
from ..xla.x64 import call
from .modules import is_tensor, tensors_in

__all__ = ["JaxModule", "from_jax"]

Flat = Callable[..., tuple[Any, ...]]


def is_wide(array: Any) -> bool:
    """Whether an array has a type that JAX has with 64-bit types on only."""
    return jnp.dtype(array.dtype).itemsize // (2 if jnp.dtype(array.dtype).kind == "c" else 1) == 8


def is_smooth(array: Any) -> bool:
    """Whether an array has derivatives."""
    return jnp.issubdtype(array.dtype, jnp.inexact)


class Operator:
    """A function of flat arrays that gives a tuple of arrays, and the functions that follow from it, each made once."""

    def __init__(self, function: Flat, compiled: bool) -> None:
        self.function = function
        self.compiled = compiled
        self.program: Any = jax.jit(function) if compiled else function
        self._made: dict[Any, Operator] = {}

    def run(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The results; 64-bit types are on where an argument has one, else as the user's JAX is set."""
        if any(is_wide(a) for a in arrays):
            return call(self.program, *arrays)
        return self.program(*arrays)

    def _once(self, key: Any, make: Callable[[], Flat]) -> Operator:
        found = self._made.get(key)
        return self._made.setdefault(key, Operator(make(), self.compiled)) if found is None else found

    def pull(self, wanted: tuple[int, ...], outs: tuple[int, ...], count: int) -> Operator:
        """`(*arguments, *gradients of the results outs)` to the gradients of the arguments `wanted`."""

        def make() -> Flat:
            def pulled(*arrays: Any) -> tuple[Any, ...]:
                primals, grads = arrays[:count], arrays[count:]

                def chosen(*some: Any) -> list[Any]:
                    given = list(primals)
                    for at, value in zip(wanted, some, strict=True):
                        given[at] = value
                    made = self.function(*given)
                    return [made[o] for o in outs]

                _, back = jax.vjp(chosen, *[primals[w] for w in wanted])
                # Of complex values PyTorch's gradients are the conjugates of JAX's.
                return tuple([jnp.conj(g) for g in back([jnp.conj(g) for g in grads])])

            return pulled

        return self._once(("pull", wanted, outs, count), make)

    def push(self, given: tuple[int, ...], outs: tuple[int, ...], count: int) -> Operator:
        """`(*arguments, *tangents of the arguments given)` to the tangents of the results outs."""

        def make() -> Flat:
            def pushed(*arrays: Any) -> tuple[Any, ...]:
                primals, tangents = arrays[:count], arrays[count:]

                def chosen(*some: Any) -> tuple[Any, ...]:
                    values = list(primals)
                    for at, value in zip(given, some, strict=True):
                        values[at] = value
                    made = self.function(*values)
                    return tuple([made[o] for o in outs])

                return jax.jvp(chosen, tuple([primals[g] for g in given]), tuple(tangents))[1]

            return pushed

        return self._once(("push", given, outs, count), make)

    def batched(self, axes: tuple[int | None, ...]) -> Operator:
        """The function of batches, whose samples lie along these dimensions of the arguments and the first of all results."""
        return self._once(("batched", axes), lambda: jax.vmap(self.function, in_axes=axes))

    def __call__(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        return JaxFunction.apply(self, *tensors)


class JaxFunction(Function):
    """An `Operator` in the graph."""

    @staticmethod
    def forward(operator: Operator, *tensors: Tensor) -> tuple[Tensor, ...]:
        for tensor in tensors:
            tensor._xt_storage.shared = True
        return tuple([wrap(a, shared=True) for a in operator.run([array_of(t) for t in tensors])])

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        operator, *tensors = inputs
        ctx.operator, ctx.count = operator, len(output)
        ctx.smooth = tuple([i for i, t in enumerate(output) if t.is_floating_point() or t.is_complex()])
        ctx.mark_non_differentiable(*[t for i, t in enumerate(output) if i not in ctx.smooth])
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        wanted = tuple([i for i, needed in enumerate(ctx.needs_input_grad[1:]) if needed])
        pull = ctx.operator.pull(wanted, ctx.smooth, len(tensors))
        found: list[Any] = [None] * len(tensors)
        for at, grad in zip(wanted, pull(*tensors, *[grads[o] for o in ctx.smooth]), strict=True):
            found[at] = grad
        return (None, *found)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Any, ...]:
        tensors = ctx.saved_tensors
        given = tuple([i for i, t in enumerate(tangents[1:]) if t is not None])
        push = ctx.operator.push(given, ctx.smooth, len(tensors))
        made = iter(push(*tensors, *[tangents[1:][g] for g in given]))
        return tuple([next(made) if i in ctx.smooth else None for i in range(ctx.count)])

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        operator, *tensors = args
        axes = tuple(in_dims[1:])
        batched = any(axis is not None for axis in axes)
        made = (operator.batched(axes) if batched else operator)(*tensors)
        return made, (0 if batched else None,) * len(made)


class Call:
    """A JAX function with the tensors of its arguments taken apart from all else."""

    def __init__(self, function: Callable[..., Any], compiled: bool) -> None:
        self.function = function
        self.compiled = compiled
        self.operators: dict[Any, tuple[Operator, list[Any]]] = {}

    def __call__(self, args: Any, kwargs: Any) -> Any:
        leaves, structure = jax.tree.flatten(tensors_in((args, kwargs)), is_leaf=is_tensor)
        tensors = [leaf for leaf in leaves if is_tensor(leaf)]
        rest = tuple([None if is_tensor(leaf) else (type(leaf), leaf) for leaf in leaves])
        operator, told = self.operator(rest, structure)
        made = operator(*tensors)
        return jax.tree.unflatten(told[-1], made)

    def operator(self, rest: tuple[Any, ...], structure: Any) -> tuple[Operator, list[Any]]:
        """The operator for arguments of this form, and the structures of its results, the last one last."""
        key = (rest, structure)
        try:
            found = self.operators.get(key)
        except TypeError:  # an argument that cannot be hashed: a program of its own
            return self._made(rest, structure)
        if found is None:
            found = self.operators[key] = self._made(rest, structure)
        return found

    def _made(self, rest: tuple[Any, ...], structure: Any) -> tuple[Operator, list[Any]]:
        told: list[Any] = []

        def flat(*arrays: Any) -> tuple[Any, ...]:
            given = iter(arrays)
            args, kwargs = jax.tree.unflatten(structure, [next(given) if r is None else r[1] for r in rest])
            leaves, made = jax.tree.flatten(self.function(*args, **kwargs))
            told[:] = [made]
            return tuple([jnp.asarray(leaf) for leaf in leaves])

        return Operator(flat, self.compiled), told


class JaxModule(Module):
    """A JAX function `function(parameters, *args)` as a module whose parameters are the arrays of a pytree.

    Parameters are named by their paths, with `_` for dots: `{"dense": {"kernel": ...}}` gives `dense_kernel`. Arrays without derivatives are
    buffers.
    """

    def __init__(self, function: Callable[..., Any], parameters: Any, jit: bool = True) -> None:
        super().__init__()
        self.function = from_jax(function, jit=jit)
        paths, self.structure = jax.tree_util.tree_flatten_with_path(
            tensors_in(parameters), is_leaf=is_tensor
        )
        self.names: list[str] = []
        for path, leaf in paths:
            name = jax.tree_util.keystr(path, simple=True, separator="_").replace(".", "_") or "parameter"
            while name in self.names or hasattr(self, name):
                name += "_"
            self.names.append(name)
            if leaf.is_floating_point() or leaf.is_complex():
                self.register_parameter(name, Parameter(leaf.clone()))
            else:
                self.register_buffer(name, leaf)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """`function(parameters, *args, **kwargs)`."""
        own = [getattr(self, name) for name in self.names]
        return self.function(jax.tree.unflatten(self.structure, own), *args, **kwargs)


def from_jax(function: Callable[..., Any], parameters: Any = None, *, jit: bool = True) -> Any:
    """A JAX function as one of tensors, which autograd and `xtensor.func` go through; with `parameters` a Module of them.

    The function takes pytrees in which tensors (and arrays) are traced, and all else chooses the program; it gives pytrees of
    arrays. Gradients, also of gradients, tangents and batches are JAX's. `jit=False` runs it op by op, where it looks at values. 64-bit types
    are on where an argument has one, else as the user's JAX is set. With `parameters`, a pytree of arrays, the function's first
    argument is such a pytree, as flax and equinox have it: see `JaxModule`.

    >>> import jax
    >>> softplus = xtensor.jax.from_jax(jax.nn.softplus)
    >>> x = xtensor.zeros(2, requires_grad=True)
    >>> softplus(x).sum().backward()
    >>> x.grad.tolist()
    [0.5, 0.5]
    """
    if parameters is not None:
        return JaxModule(function, parameters, jit)
    made = Call(function, jit)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return made(args, kwargs)

    return run
