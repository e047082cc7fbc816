"""Tangents of an operator's results, by its derivative rules.

A rule is linear in the gradient, and its transpose is the derivative itself: so forward mode has the same values at kinks as
reverse mode. Where the rule is JAX's derivative of the kernel, `jax.jvp` gives the tangents at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...xla.transformed import tangents_of_kernel
from ..derivatives import FROM_KERNEL, backward_function
from ..saved import result_index

__all__ = ["Pushforward"]


class Pushforward:
    """What `(values, tangents)` of an operator's arguments give: its results, and their tangents.

    after: a linear function of each result, all arguments and its place that it goes through, as one that is written to a tensor of a certain
    dtype does.
    """

    _xt_identity = ("op", "key", "after")

    def __init__(
        self, op: Any, key: tuple[Any, ...], after: Callable[[Any, tuple[Any, ...], int], Any] | None = None
    ) -> None:
        self.op = op
        self.key = key
        self.after = after

    def __call__(self, values: Any, along: Any) -> tuple[Any, list[Any]]:
        op = self.op
        run = op.traced(self.key)
        values, along = list(values), list(along)
        while len(along) < len(values):
            along.append(None)
        out = run(*values)
        outs = [out] if op.single else list(out)
        totals: list[Any] = [None] * len(outs)
        floating = [i for i, o in enumerate(outs) if jnp.issubdtype(o.dtype, np.inexact)]
        names = [p.name for p in op.runtime]
        given = {n: t for n, t in zip(names, along, strict=False) if has_tangent(t)}
        rules = op.rules
        wanted = [n for n in rules.differentiable if n in given]
        by_kernel = [n for n in wanted if rules.functions[n] is FROM_KERNEL]
        by_rule = [n for n in wanted if n not in by_kernel]
        if floating and by_rule:
            try:
                found = self._transposed(by_rule, values, along, outs)
            except (NotImplementedError, ValueError, TypeError, AssertionError) as error:
                if "is not implemented" in str(error):
                    raise unknown(op) from None
                by_kernel, by_rule = wanted, []
            else:
                add(totals, found)
        if floating and by_kernel:
            chosen = [t if n in by_kernel else nothing(t) for n, t in zip(names, along, strict=False)]
            if op.backwards_only:
                add(totals, self._transposed(by_kernel, values, along, outs))
            else:
                add(totals, self._by_kernel(run, values, chosen))
        totals = [
            None if t is None else jax.lax.convert_element_type(t, o.dtype)
            for t, o in zip(totals, outs, strict=True)
        ]
        if self.after is not None:
            after = self.after
            outs = [after(o, tuple(values), i) for i, o in enumerate(outs)]
            totals = [None if t is None else after(t, tuple(values), i) for i, t in enumerate(totals)]
        return (outs[0] if op.single else tuple(outs)), totals

    def _by_kernel(self, run: Any, values: list[Any], along: list[Any]) -> list[Any]:
        leaves, structure = jax.tree.flatten(values)
        flags = jax.tree.flatten(along, is_leaf=lambda v: v is None)[0]
        # None among the values is no leaf, but has a None in its place among the tangents.
        present = jax.tree.flatten(values, is_leaf=lambda v: v is None)[0]
        flat = [t for t, v in zip(flags, present, strict=True) if v is not None]
        return tangents_of_kernel(lambda *a: run(*jax.tree.unflatten(structure, a)), leaves, flat)[1]

    def _transposed(
        self, names: list[str], values: list[Any], along: list[Any], outs: list[Any]
    ) -> list[Any]:
        op = self.op
        rules = op.rules
        known = dict(zip([p.name for p in op.runtime], values, strict=True))
        tangents = dict(zip([p.name for p in op.runtime], along, strict=True))
        targets: list[Any] = []
        mask: list[bool] = []
        directions: list[Any] = []
        for name in rules.differentiable:
            value = known[name]
            if name == rules.sequence:
                tangent = tangents[name] if name in names else [None] * len(value)
                for v, t in zip(value, tangent, strict=True):
                    targets.append(v)
                    mask.append(t is not None)
                    directions.append(t)
            else:
                tangent = tangents[name] if name in names else None
                targets.append(value)
                mask.append(tangent is not None)
                directions.append(tangent)
        saved = []
        for name in rules.saved:
            at = result_index(name)
            if name == "results":
                saved.append(list(outs))
            else:
                saved.append(outs[at] if at is not None else known[name])
        shapes = []
        for name in rules.shapes:
            value = known[name]
            shapes.append(
                tuple([v.shape for v in value]) if isinstance(value, (list, tuple)) else shape(value)
            )
        statics = dict(zip([p.name for p in op.static], self.key, strict=True))
        backward = backward_function(rules, statics, tuple(mask), tuple(targets), tuple(shapes), tuple(outs))
        floating = [i for i, o in enumerate(outs) if jnp.issubdtype(o.dtype, np.inexact)]

        def pull(*grads: Any) -> list[Any]:
            full: list[Any] = [None] * len(outs)
            for i, g in zip(floating, grads, strict=True):
                full[i] = g
            found = backward(tuple(full), tuple(saved))
            wanted = [d for d, m in zip(directions, mask, strict=True) if m]
            return [(g, d) for g, d in zip(found, wanted, strict=True) if g is not None]

        reached: list[Any] = []

        def gradients(*grads: Any) -> list[Any]:
            pairs = pull(*grads)
            reached[:] = [d for _, d in pairs]
            return [g for g, _ in pairs]

        zeros = [jnp.zeros(outs[i].shape, outs[i].dtype) for i in floating]
        primals, transpose = jax.vjp(gradients, *zeros)
        # JAX's cotangents are conjugated with respect to PyTorch's.
        found = transpose(
            [
                jnp.conj(jax.lax.convert_element_type(d, p.dtype))
                for d, p in zip(reached, primals, strict=True)
            ]
        )
        result: list[Any] = [None] * len(outs)
        for i, t in zip(floating, found, strict=True):
            result[i] = jnp.conj(t) if reached else None
        return result


def shape(value: Any) -> tuple[int, ...]:
    return tuple(getattr(value, "shape", ()))


def has_tangent(tangent: Any) -> bool:
    """Whether an argument, or one of a sequence, has a tangent."""
    if isinstance(tangent, (list, tuple)):
        return any(t is not None for t in tangent)
    return tangent is not None


def nothing(tangent: Any) -> Any:
    """No tangents, in the structure of these."""
    return [None] * len(tangent) if isinstance(tangent, (list, tuple)) else None


def add(totals: list[Any], more: list[Any]) -> None:
    for i, t in enumerate(more):
        if t is not None:
            totals[i] = t if totals[i] is None else totals[i] + t


def unknown(op: Any) -> NotImplementedError:
    """What forward mode says of an operator without a derivative."""
    return NotImplementedError(
        f"Trying to use forward AD with {op.name} that does not support it because it has not been implemented yet."
    )
