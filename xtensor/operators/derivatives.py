"""Derivative rules: what they need, and one function that runs them.

A rule is a pure function of arrays; the names of its parameters say what it needs, and so what is saved:

    grad, grads       the gradient of the one result, of all results (zeros where undefined, None of integers)
    undefined         which of the results' gradients are undefined
    result, results   the forward's result(s)
    result0, ...      one of several results
    <argument>        an argument of the kernel
    <argument>_shape  only its shape (a list of shapes for a sequence)

A rule may return None: the gradient is undefined, as PyTorch's is there, and nothing flows on.
Broadcasting is reduced and the dtype of the argument restored after the rule, inside the same program.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .saved import result_index
from .schema import ARRAYS, Schema

__all__ = ["FROM_KERNEL", "Rules", "backward_function", "fit", "no_derivative", "rules_of", "sum_to"]


class _FromKernel:
    _xt_identity = ()

    def __repr__(self) -> str:
        return "FROM_KERNEL"


FROM_KERNEL = _FromKernel()


def no_derivative(name: str) -> Callable[..., Any]:
    """The rule of an argument for which there is no derivative, as PyTorch names it: NotImplementedError when asked."""

    def refuse() -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return refuse


def rules_of(arguments: str, gradients: Callable[..., tuple[Any, ...]]) -> dict[str, Callable[..., Any]]:
    """The rules of several arguments, whose gradients one function computes together, in their order."""

    def rule(place: int) -> Callable[..., Any]:
        @functools.wraps(gradients)
        def one(**known: Any) -> Any:
            return gradients(**known)[place]

        found: Any = one
        found.together = gradients, place
        return found

    return {name: rule(i) for i, name in enumerate(arguments.split())}


def sum_to(grad: Any, shape: tuple[int, ...]) -> Any:
    """Undo a broadcast: the sum of `grad` over the dimensions that were expanded from `shape`."""
    if grad.shape == shape:
        return grad
    lead = grad.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        i for i in range(lead, grad.ndim) if shape[i - lead] == 1 and grad.shape[i] != 1
    )
    return jnp.sum(grad, axis=axes, keepdims=True).reshape(shape) if axes else grad.reshape(shape)


def fit(grad: Any, target: Any) -> Any:
    """A rule's value as a gradient of an argument with `target`'s shape and dtype."""
    if grad is None:
        return None
    if not jnp.issubdtype(target.dtype, jnp.complexfloating) and jnp.issubdtype(
        grad.dtype, jnp.complexfloating
    ):
        grad = jnp.real(grad)
    grad = sum_to(grad, tuple(target.shape))
    return jax.lax.convert_element_type(grad, target.dtype)


class Rules:
    """The derivative rules of one operator, and what they make a node save.

    differentiable: the arguments with a rule, in order. saved: the names to save. needed: for each saved name the
    arguments whose gradient needs it, so that nothing is kept for a gradient that nobody asked for.
    """

    _xt_identity = ("schema", "functions", "kernel")

    def __init__(self, schema: Schema, derivatives: Any, kernel: Callable[..., Any]) -> None:
        names = schema.names()
        runtime = {p.name: p for p in schema.runtime}
        if derivatives is FROM_KERNEL:
            derivatives = {n: FROM_KERNEL for n, p in runtime.items() if p.kind != "Number"}
        self.functions: dict[str, Any] = {}
        self.parameters: dict[str, tuple[str, ...]] = {}
        for name, rule in (derivatives or {}).items():
            if name not in runtime:
                raise TypeError(
                    f"{schema.name}(): a derivative for '{name}', which is no array argument of the kernel"
                )
            if rule is None:
                continue
            wanted = tuple(runtime) if rule is FROM_KERNEL else tuple(inspect.signature(rule).parameters)
            for wish in wanted:
                known = (
                    wish in ("grad", "grads", "undefined", "results")
                    or wish in names
                    or result_index(wish) is not None
                )
                if not known and not (wish.endswith("_shape") and wish[:-6] in runtime):
                    raise TypeError(
                        f"{schema.name}(): the derivative for '{name}' asks for '{wish}', which is unknown"
                    )
            self.functions[name] = rule
            self.parameters[name] = wanted
        self.differentiable = tuple(n for n in names if n in self.functions)
        saved: dict[str, list[str]] = {}
        for name in self.differentiable:
            for wish in self.parameters[name]:
                if wish in runtime or wish == "results" or result_index(wish) is not None:
                    saved.setdefault(
                        "results" if wish == "result" and not schema.single else wish, []
                    ).append(name)
        self.saved = tuple(saved)
        self.results = tuple(
            [(i, n) for i, n in enumerate(saved) if n == "results" or result_index(n) is not None]
        )
        # Whether a saved value may be None although its gradient is wanted: an argument left out, a number's default.
        self.optional = any(
            n in runtime and (runtime[n].kind == "Number" or runtime[n].optional) for n in saved
        )
        self.keeps = any(n not in runtime or runtime[n].kind != "Number" for n in saved)
        self.needed = {k: tuple(v) for k, v in saved.items()}
        self.sequence = next((n for n in self.differentiable if runtime[n].kind == ARRAYS), None)
        shapes = {
            w[:-6] for ws in self.parameters.values() for w in ws if w.endswith("_shape") and w not in names
        }
        # Shapes of arguments without a gradient of their own cannot be read off an edge.
        self.shapes = tuple(sorted(shapes))
        # The same by place among the runtime arguments, for recording; of what is saved also whose gradients need it.
        place = {n: i for i, n in enumerate(runtime)}
        self.places = tuple([place[n] for n in self.differentiable])
        self.shape_places = tuple([place[n] for n in self.shapes])
        users = {n: tuple([self.differentiable.index(u) for u in found]) for n, found in saved.items()}
        self.saved_places = tuple([(place.get(n), users[n]) for n in saved])
        self.schema = schema
        self.kernel = kernel


def backward_function(
    rules: Rules,
    statics: dict[str, Any],
    mask: tuple[bool, ...],
    targets: tuple[Any, ...],
    shapes: tuple[Any, ...],
    outputs: tuple[Any, ...],
) -> Callable[..., Any]:
    """`(grads, saved) -> gradients of the arguments in mask`, as a pure function of arrays."""
    sequence = rules.sequence
    length = len(mask) - len(rules.differentiable) + 1
    slots: dict[str, slice | int] = {}
    at = 0
    for name in rules.differentiable:
        slots[name] = slice(at, at + length) if name == sequence else at
        at += length if name == sequence else 1
    numbers = {p.name: p.default for p in rules.schema.runtime if p.kind == "Number"}
    single = rules.schema.single

    def backward(grads: tuple[Any, ...], saved: tuple[Any, ...]) -> tuple[Any, ...]:
        full = tuple(
            jnp.zeros(o.shape, o.dtype) if g is None and jnp.issubdtype(o.dtype, np.inexact) else g
            for g, o in zip(grads, outputs, strict=True)
        )
        known: dict[str, Any] = dict(statics)
        known.update(zip(rules.saved, saved, strict=True))
        for name, default in numbers.items():
            if name in known and known[name] is None:
                known[name] = default
        known["grads"] = full
        known["undefined"] = tuple([g is None for g in grads])
        known["grad"] = full[0]
        if not single and "results" in known:
            known["result"] = known["results"]
        known.update((f"{n}_shape", s) for n, s in zip(rules.shapes, shapes, strict=True))
        found: list[Any] = [None] * len(mask)
        by_kernel = [
            n
            for n in rules.differentiable
            if rules.functions[n] is FROM_KERNEL and any(_masks(mask, slots[n]))
        ]
        if by_kernel:
            for name, grad in zip(
                by_kernel, kernel_vjp(rules, known, statics, by_kernel, full, mask, slots), strict=True
            ):
                found[slots[name]] = grad
        together: dict[Any, tuple[Any, ...]] = {}
        for name in rules.differentiable:
            rule, slot = rules.functions[name], slots[name]
            if rule is FROM_KERNEL or not any(_masks(mask, slot)):
                continue
            function, place = getattr(rule, "together", (rule, None))
            if function not in together:
                together[function] = function(**{wish: known[wish] for wish in rules.parameters[name]})
            value = together[function] if place is None else together[function][place]
            if isinstance(slot, slice):
                found[slot] = list(value)
            else:
                found[slot] = value
        return tuple(fit(g, t) for g, t, m in zip(found, targets, mask, strict=True) if m)

    return backward


def _masks(mask: tuple[bool, ...], slot: slice | int) -> tuple[bool, ...]:
    return mask[slot] if isinstance(slot, slice) else (mask[slot],)


def kernel_vjp(
    rules: Rules,
    known: dict[str, Any],
    statics: dict[str, Any],
    by_kernel: list[str],
    grads: tuple[Any, ...],
    mask: tuple[bool, ...],
    slots: dict[str, slice | int],
) -> list[Any]:
    """The gradients that `jax.vjp` of the kernel gives for the arguments in `by_kernel`."""
    fixed = {p.name: known[p.name] for p in rules.schema.runtime}
    # A sequence may mix arguments with and without a gradient, integers among them.
    chosen = {
        n: [i for i, m in enumerate(mask[s]) if m] if isinstance(s := slots[n], slice) else None
        for n in by_kernel
    }

    def forward(*varying: Any) -> Any:
        arguments = dict(fixed)
        for name, value in zip(by_kernel, varying, strict=True):
            picked = chosen[name]
            if picked is None:
                arguments[name] = value
            else:
                items = list(arguments[name])
                for i, v in zip(picked, value, strict=True):
                    items[i] = v
                arguments[name] = items
        out = rules.kernel(**arguments, **statics)
        outs = (out,) if rules.schema.single else tuple(out)
        return tuple(o for o in outs if jnp.issubdtype(o.dtype, np.inexact))

    primals = [
        fixed[n] if (picked := chosen[n]) is None else [fixed[n][i] for i in picked] for n in by_kernel
    ]
    outs, pull = jax.vjp(forward, *primals)
    kept = [g for g in grads if g is not None]
    # JAX's cotangents are conjugated with respect to PyTorch's.
    conjugated = tuple(
        jnp.conj(jax.lax.convert_element_type(g, o.dtype)) for g, o in zip(kept, outs, strict=True)
    )
    result = []
    for name, pulled in zip(by_kernel, pull(conjugated), strict=True):
        picked = chosen[name]
        if picked is None:
            result.append(jnp.conj(pulled))
        else:
            items: list[Any] = [None] * len(fixed[name])
            for i, v in zip(picked, pulled, strict=True):
                items[i] = jnp.conj(v)
            result.append(items)
    return result
