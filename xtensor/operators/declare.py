"""The only maker of operators: a declaration in, an operator's functions and methods out.

    @pointwise(derivatives=dict(input=lambda grad, result: grad * (1 - result * result)))
    def tanh(input: Array) -> Array:
        '''The hyperbolic tangent of every element.'''
        return jnp.tanh(input)

The signature is the schema (see `schema.py`), the body is the kernel (a pure function of arrays), and `derivatives` holds
a rule per differentiable argument (see `derivatives.py`), `None` or `FROM_KERNEL`. The kind gives the variants.

    pointwise   broadcasts; function, method, in-place `_`, `out=`; the result's strides follow the operands'
    reduction   function, method, `out=`; NumPy's `axis` and `keepdims` are understood
    general     function, `out=`, and what else is asked for
    view        geometry only, nothing runs on the device (see `views.py`)
    composite   plain Python over Tensors; the gradient comes for free

`out=` takes any dtype that the result can be cast to; with `out="exact"` only the result's own, as PyTorch's does;
with `out="adopt"` any: the result is computed in the dtype of `out` unless `dtype` is given.
Of an operator with `hidden` results only the first is given to the caller, the others are there for the rules, as `result1` and on.
`views` says how those among the operands are read: in the kernel's "loop" (pointwise kernels, and what only moves elements), by a
"fold" (a reduction that reads its operand once), or "apart" (see `reading.py`).
A `boolean` result has no gradient: the rules are the in-place form's, which writes it to what may be a float.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp

from .. import dtypes
from ..lowering import transpose
from ..xla.x64 import jit
from . import codegen, dispatch
from .attach import attach
from .derivatives import Rules
from .nodes import OpNode
from .schema import Schema, read_schema
from .write import fit_result

__all__ = [
    "REGISTRY",
    "Operator",
    "composite",
    "general",
    "pointwise",
    "reduction",
]

REGISTRY: dict[str, Operator] = {}
Views = Literal["loop", "fold", "apart"]


def strong(value: Any) -> Any:
    """A kernel's result with no weak type left: tensors are never wrapped numbers."""
    if getattr(value, "weak_type", False) or not isinstance(value, jax.Array):
        value = jnp.asarray(value)
        return jax.lax.convert_element_type(value, value.dtype)
    return value


def forget_programs() -> None:
    """Drop every compiled program: something that traces depend on, such as the default dtype, has changed."""
    for op in REGISTRY.values():
        op.forget()


dtypes.on_default_dtype_change.append(forget_programs)


class Operator:
    """One declared operator: schema, kernel, rules, and the compiled programs of each."""

    def __init__(
        self,
        kind: str,
        name: str,
        schema: Schema,
        kernel: Callable[..., Any],
        derivatives: Any,
        node: str | None = None,
        returns: tuple[str, ...] | None = None,
    ) -> None:
        self.kind = kind
        self.name = name
        self.schema = schema
        self.kernel = kernel
        self.rules = Rules(schema, derivatives, kernel)
        self.runtime = schema.runtime
        self.static = schema.static
        self.indices = tuple(i for i, p in enumerate(schema.parameters) if p.runtime)
        self.static_indices = tuple(i for i, p in enumerate(schema.parameters) if not p.runtime)
        self.integral = tuple(i for i, p in enumerate(schema.static) if p.integral)
        self.single = schema.single
        title = node or "".join(part.capitalize() for part in name.strip("_").split("_"))
        self.node_class: type[OpNode] = type(f"{title}Backward0", (OpNode,), {"__slots__": (), "op": self})
        self.returns = structure(name, returns) if returns else None
        self.programs: dict[Any, Any] = {}
        self.variants: dict[Any, Any] = {}
        self.pullbacks: dict[Any, Any] = {}
        self.known: dict[Any, Any] = {}
        self.aliases: tuple[str, ...] = ()
        self.deprecated: tuple[tuple[str, ...], ...] = ()
        self.function: Any = None
        self.method: Any = None
        self.inplace: Any = None
        self.is_method = False
        self.takes_out = False
        self.exact_out = False
        self.adopts_at: int | None = None
        self.boolean = False
        self.views: Views = "loop" if kind == "pointwise" else "apart"
        self.hidden = 0
        self.doc = inspect.cleandoc(kernel.__doc__ or "")

    def forget(self) -> None:
        """Drop compiled programs: something that their traces depended on has changed."""
        self.programs.clear()
        self.variants.clear()
        self.pullbacks.clear()
        self.known.clear()

    # -- programs

    def traced(self, key: tuple[Any, ...]) -> Callable[..., Any]:
        """The kernel as a function of its runtime arguments alone; a None number means its default."""
        statics = dict(zip([p.name for p in self.static], key, strict=True))
        names = [p.name for p in self.runtime]
        defaults = [p.default if p.kind == "Number" else None for p in self.runtime]
        kernel, single = self.kernel, self.single

        def run(*values: Any) -> Any:
            arguments = {n: d if v is None else v for n, v, d in zip(names, values, defaults, strict=True)}
            out = kernel(**arguments, **statics)
            return strong(out) if single else tuple([strong(o) for o in out])

        run.__name__ = run.__qualname__ = self.name
        return run

    def program(self, key: tuple[Any, ...]) -> Any:
        """The jitted kernel for these static arguments."""
        found = self.programs.get(key)
        if found is None:
            found = self.programs[key] = jit(self.traced(key))
        return found

    def permuted(self, key: tuple[Any, ...], order: tuple[int, ...]) -> Callable[..., Any]:
        """The kernel as `traced` gives it, whose result lies in memory with its dimensions in `order`."""
        run = self.traced(key)

        def permuted(*values: Any) -> Any:
            return transpose(run(*values), order)

        permuted.__name__ = self.name
        return permuted

    def permuted_program(self, key: tuple[Any, ...], order: tuple[int, ...]) -> Any:
        """The program of `permuted`."""
        found = self.variants.get(("order", key, order))
        if found is None:
            found = self.variants["order", key, order] = jit(self.permuted(key, order))
        return found

    def inplace_program(self, key: tuple[Any, ...], donate: bool) -> Any:
        """The program whose result replaces its first argument: same shape and dtype, its buffer reused if donated."""
        found = self.variants.get(("inplace", key, donate))
        if found is None:
            run = self.traced(key)

            def replace(target: Any, *values: Any) -> Any:
                out = run(target, *values)
                return fit_result(out, target.shape, target.dtype)

            replace.__name__ = self.name + "_"
            found = jit(replace, donate_argnums=0 if donate else ())
            self.variants["inplace", key, donate] = found
        return found

    def call(self, values: tuple[Any, ...], out: Any = None) -> Any:
        """Run on arguments in the order of the schema: the complete path, with every check and mode."""
        return dispatch.run(self, values, out)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


# What `xtensor.return_types` shows.
STRUCTURES: dict[str, Any] = {}


def structure(name: str, fields: tuple[str, ...]) -> Any:
    """The named tuple that a function of several results returns: one class of a name."""
    if name in STRUCTURES:
        return STRUCTURES[name]
    made = STRUCTURES[name] = NamedTuple(name, [(field, Any) for field in fields])  # pyright: ignore[reportArgumentType, reportGeneralTypeIssues]
    made.__module__ = "xtensor.return_types"
    made.__repr__ = lambda self: (
        f"xtensor.return_types.{name}(\n" + ",\n".join(f"{f}={getattr(self, f)!r}" for f in fields) + ")"
    )
    return made


def declare(
    kind: str,
    kernel: Callable[..., Any],
    derivatives: Any,
    *,
    name: str | None = None,
    aliases: tuple[str, ...] = (),
    method: bool = True,
    function: bool = True,
    inplace: bool = False,
    out: bool | str = True,
    boolean: bool = False,
    views: Views | None = None,
    hidden: int = 0,
    node: str | None = None,
    returns: tuple[str, ...] | None = None,
    varargs: str | None = None,
    deprecated: tuple[tuple[str, ...], ...] = (),
) -> Any:
    name = name or kernel.__name__.rstrip("_")
    op = Operator(kind, name, read_schema(kernel, name), kernel, derivatives, node, returns)
    op.aliases = aliases
    op.deprecated = deprecated
    op.is_method = method
    op.takes_out = bool(out)
    op.exact_out = out == "exact"
    if out == "adopt":
        op.adopts_at = [p.name for p in op.static].index("dtype")
    op.boolean = boolean
    op.views = views or op.views
    op.hidden = hidden
    op.function = codegen.function(op, out=bool(out), varargs=varargs)
    op.method = op.function if method else None
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


def general(*, derivatives: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare any other operator on arrays."""
    return lambda kernel: declare("general", kernel, derivatives, **options)


def composite(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Declare an operator written in Python over Tensors."""
    return lambda body: codegen.composite(body, **options)
