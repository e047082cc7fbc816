"""The only maker of operators: a declaration in, an operator's functions and methods out.

    @pointwise(derivatives=dict(input=lambda grad, result: grad * (1 - result * result)))
    def tanh(input: Array) -> Array:
        '''The hyperbolic tangent of every element.'''
        return jnp.tanh(input)

The signature is the schema (see `schema.py`), the body is the kernel (a pure function of arrays), and `derivatives` holds
a rule per differentiable argument (see `derivatives.py`), `None` or `FROM_KERNEL`. The kind gives the variants.

    pointwise   broadcasts; function, method, in-place `_`, `out=`; the result's strides follow the operands'
    reduction   function, method, `out=`; NumPy's `axis` and `keepdims` are understood
    general     function, and what else is asked for
    view        geometry only, nothing runs on the device (see `views.py`)
    composite   plain Python over Tensors; the gradient comes for free

`out=` takes any dtype that the result can be cast to; with `out="exact"` only the result's own, as PyTorch's does (with
"exact numbers" and "exact tensors" where what may be a number or a tensor is that);
with `out="adopt"` any: the result is computed in the dtype of `out` unless `dtype` is given. "disjoint" refuses an `out` that
overlaps an operand in any way, since the kernel reads while it writes; "join" has the error class of what joins tensors.
Of an operator's results the last `hidden` ones are not given to the caller: they are there for the rules, as `result1` and on.
`views` says how those among the operands are read: in the kernel's "loop" (pointwise kernels, and what only moves elements), by a
"fold" (a reduction that reads its operand once), or "apart" (see `reading.py`).
`refuses` is given the runtime arguments (Tensors and numbers) and raises for values that PyTorch does not take; where static
arguments can be None it is only asked if they are given (see `refusals.py`).
`node` names the nodes of autograd: a title for `<title>Backward0`, a whole name, or a function of the node where PyTorch has a
name for each overload. `autocast` is a policy of `autocast.py`, or one for each of cpu and accelerator. `zero_slope`: the rules
branch on what they save, and the derivative of the gradient by it is zero, not undefined.
`exact` is what Python makes of integers, where that is what the kernel makes of those of one dtype: numbers of no dimensions on the
CPU are computed by it (see `host.numbers`).
A `boolean` result has no gradient: the rules are the in-place form's, which writes it to what may be a float.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..host.numbers import Exact
from . import calls
from .attach import attach
from .functions import codegen
from .functions.deferred import as_method
from .functions.node_names import NODES
from .functions.shown import with_raises
from .nodes import OpNode
from .operator import REGISTRY, Operator, Views
from .schema import read_schema

__all__ = [
    "composite",
    "general",
    "pointwise",
    "reduction",
]


def equip(op: Operator) -> None:
    op.node_class = type(op.title, (OpNode,), {"__slots__": (), "op": op, "_xt_identity": ("op",)})
    op.call = functools.partial(calls.run, op)


Operator.equip = equip
Operator.drawn = codegen.graph


def declare(
    kind: str,
    kernel: Callable[..., Any],
    derivatives: Any,
    *,
    name: str | None = None,
    aliases: tuple[str, ...] = (),
    method: bool = True,
    inplace: bool = False,
    out: bool | str = True,
    boolean: bool = False,
    views: Views | None = None,
    hidden: int = 0,
    refuses: Callable[..., None] | None = None,
    node: str | Callable[[OpNode], str] | None = None,
    zero_slope: bool = False,
    exact: Exact | None = None,
    autocast: str | dict[str, Any] | None = None,
    returns: tuple[str, ...] | None = None,
    varargs: str | None = None,
    deprecated: tuple[tuple[str, ...], ...] = (),
    several: bool | None = None,
    formats: int = False,
    elementwise: str | None = None,
    columns: tuple[int, ...] | Callable[..., tuple[int, ...]] = (),
    pieces: Callable[..., Any] | None = None,
    copies: bool = False,
) -> Any:
    name = name or kernel.__name__.rstrip("_")
    node = node or NODES.get(name)
    title, namer = (node, None) if isinstance(node, str) else (None, node)
    op = Operator(kind, name, read_schema(kernel, name), kernel, derivatives, title, returns)
    op.aliases = aliases
    op.deprecated = deprecated
    numbers = any(p.kind == "Operand" for p in op.runtime)
    op.several = numbers and not deprecated if several is None else several
    op.is_method = method
    op.takes_out = bool(out)
    manner = out.split() if isinstance(out, str) else ()
    op.exact_out, op.disjoint, op.joins = [word in manner for word in ("exact", "disjoint", "join")]
    op.exact_of = "numbers" if "numbers" in manner else "tensors" if "tensors" in manner else None
    if "adopt" in manner:
        op.adopts_at = [p.name for p in op.static].index("dtype")
    op.boolean = boolean
    op.views = views or op.views
    op.hidden = hidden
    op.shown = hidden and max(1, op.schema.returns.count("Array") - hidden)
    op.refuses = refuses
    op.zero_slope = zero_slope
    op.exact = exact
    op.formats = formats
    if elementwise is not None:
        op.elementwise_at = [p.name for p in op.static].index(elementwise)
    op.columns = columns
    op.alone = None if columns else op.alone
    op.copies = copies
    op.pieces = pieces
    op.namer = namer
    op.autocast = {"cpu": autocast, "accelerator": autocast} if isinstance(autocast, str) else autocast or {}
    op.doc = kernel.__doc__ = with_raises(op, op.schema.names())
    op.function = codegen.function(op, out=bool(out), varargs=varargs)
    op.method = as_method(op.function) if method else None
    if inplace:
        op.inplace = codegen.inplace(op)
    REGISTRY[name] = op
    attach(op)
    return op.function


def pointwise(
    *, derivatives: Any, inplace: bool = True, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Declare an operator that works element by element on broadcast operands."""
    return lambda kernel: declare("pointwise", kernel, derivatives, inplace=inplace, **options)


def reduction(*, derivatives: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare an operator that folds dimensions."""
    return lambda kernel: declare("reduction", kernel, derivatives, **options)


def general(
    *, derivatives: Any, method: bool = False, out: bool | str = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Declare any other operator on arrays."""
    return lambda kernel: declare("general", kernel, derivatives, method=method, out=out, **options)


def composite(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare an operator written in Python over Tensors."""
    return lambda body: codegen.composite(body, **options)
