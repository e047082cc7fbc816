"""View operators: geometry only. Nothing runs on the device, and the result shares the storage.

A view operator is declared by its geometry alone:

    @view
    def transpose(g: Geometry, dim0: int, dim1: int): ...

Its gradient is the adjoint of reading that geometry, one mechanism for all: the gradient is put (and, where elements
repeat, summed) where the view lies in a zero tensor of the input's sizes.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.core import Tracer

from .. import checks, dtypes, lowering
from ..engine import anomaly, modes, profiler
from ..engine.graph import Replayable, next_sequence_nr
from ..geometry import Geometry, contiguous_strides, is_non_overlapping_and_dense, numel, reshape
from ..geometry.layout import make
from ..host.numbers import numbers_at
from ..tensor import (
    CUSTOM_FUNCTION,
    DEFAULT,
    INFERENCE_VIEW,
    MULTI_OUTPUT,
    NO_GRAD_VIEW,
    Tensor,
    View,
    alias,
    array_of,
    edge_of,
    make_view,
    meta_of,
    sizes_of,
    wrap,
)
from ..xla.cache import bounded
from ..xla.symbolic import as_size
from .attach import attach
from .below.aten import find
from .below.dispatching import asked_about, dispatched, dispatching, parts
from .declare import general
from .dispatch import memory_order
from .functions.deferred import as_method, deferred
from .functions.node_names import node_of_derivative
from .functions.overloads import unfit_call
from .functions.shown import with_raises
from .operator import MANY
from .overriding import answer, armed, claimed
from .schema import MISSING, Array, Arrays, Number

__all__ = ["VIEWS", "ViewOperator", "alias_of", "known", "view"]

new = object.__new__
FROM_NUMPY = dtypes.FROM_NUMPY
state, NO_GRAD = modes.state, modes.NO_GRAD
VIEWS: dict[str, ViewOperator] = {}
KNOWN = 1024
"""Geometries that a view operator keeps."""


def known(make: Callable[..., Any]) -> Callable[..., Any]:
    """A geometry function `(sizes, strides, *arguments)` from offset 0, which keeps what it gave; without strides they are row-major."""

    def found(sizes: tuple[int, ...], strides: tuple[int, ...] | None, *args: Any) -> Any:
        return make(Geometry(sizes, contiguous_strides(sizes) if strides is None else strides, 0), *args)

    return bounded(KNOWN, typed=True)(found)


class ViewOperator:
    """A declared view: its geometry function, its node class and its public function.

    known: the geometry function that keeps what it gave; None where the arguments differ from call to call.
    """

    _xt_identity = ("name", "make")

    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        node: str | Callable[[ViewNode], str] | None = None,
        multiple: bool = False,
        separate: bool = False,
        varying: bool = False,
    ) -> None:
        self.kind = "view"
        self.name = name
        self.make = make
        self.known = None if varying else known(make)
        self.multiple = multiple
        self.pieces: ViewOperator | None = None
        if separate:
            self.pieces = ViewOperator(name, lambda g, i, *args: make(g, *args)[i], node)
        self.doc = inspect.cleandoc(make.__doc__ or "")
        self.namer = None if isinstance(node, str) else node
        title = node if isinstance(node, str) else "".join(part.capitalize() for part in name.split("_"))
        self.node_class: type[ViewNode] = type(
            f"{title}Backward0", (ViewNode,), {"__slots__": (), "op": self, "_xt_identity": ("op",)}
        )
        self.function: Any = None
        self.method: Any = None
        self.aliases: tuple[str, ...] = ()
        self.is_method = True
        self.inplace = None
        self.signatures: tuple[str, ...] = ()


class ViewNode(Replayable):
    """The node of a view operator.

    sizes, dtype: of the input. args: the operator's arguments. aval: shape and dtype of the result(s).
    result: the result's dtype, and whether its conjugate and negative bits differ from the input's.
    """

    __slots__ = ("args", "aval", "dtype", "result", "sizes")
    op: ViewOperator

    def name(self) -> str:
        namer = self.op.namer
        return type(self).__name__ if namer is None else namer(self)

    @property
    def _xt_metadata(self) -> tuple[Any, ...]:
        aval = self.aval
        return tuple(aval) if type(aval) is list else (aval,)

    @property
    def _xt_num_inputs(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return len(self.aval) if type(self.aval) is list else 1

    def __getattr__(self, name: str) -> Any:
        """What was saved, under PyTorch's names: the input's sizes, and the arguments of the call."""
        if name == "_saved_self_sym_sizes":
            return tuple(self.sizes)
        if name.startswith("_saved_"):
            names = list(inspect.signature(self.op.make).parameters)[1:]
            for parameter, value in zip(names, self.args, strict=False):
                if name[7:] == parameter:
                    return value
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def apply(self, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
        if self._xt_edges[0] is None:
            return (None,)
        recipes = relative(self.op.make, self.sizes, self.dtype, self.args, *self.result)
        return self.adjoint(grads, recipes)

    def adjoint(self, grads: tuple[Tensor | None, ...], recipes: Sequence[Any]) -> tuple[Tensor | None]:
        """The gradient of the input from those of the views: each lies there by recipe, offset and order."""
        present = [(g, r) for g, r in zip(grads, recipes, strict=True) if g is not None]
        if not present:
            return (None,)
        if len(recipes) == 1:
            ((grad, (recipe, offset, order)),) = present
            if order is not None:
                return (self.returned(grad, order),)
            if not isinstance(offset, Tracer):
                return (self.named(view_adjoint(grad, offset, recipe=recipe)),)
            op = view_adjoint.operator
            return (wrap(op.program((recipe,))(array_of(grad), offset)),)
        whole = len(present) == len(recipes) and all(
            r.dtype == r.base_dtype and not (r.conj or r.neg) for r, *_ in recipes
        )
        own = [g for g, _ in present]
        if (
            len(own) >= MANY
            and modes.state.mode & modes.NO_GRAD
            and not modes.state.mode & modes.DISPATCH_MODE
        ):
            # Views are read by a program for all of them: within one for the sum each would be compiled by itself.
            own = [g if g._xt_view is None or type(g) is not Tensor else wrap(array_of(g)) for g in own]
        found = views_adjoint(
            own,
            recipes=tuple(r for _, (r, _, _) in present),
            offsets=tuple(o for _, (_, o, _) in present),
            along=tiled(self.op.make, self.sizes, self.args) if whole else None,
        )
        return (self.named(found),)

    def returned(self, grad: Tensor, order: tuple[int, ...]) -> Tensor:
        """The adjoint of a view that has every element once: nothing runs on the device where strides allow."""
        if (
            type(grad) is not Tensor
            or modes.state.mode & (modes.DISPATCH_MODE | modes.NO_GRAD) != modes.NO_GRAD
        ):
            # As operators, by PyTorch's names where they are PyTorch's.
            inverse = INVERSES.get(self.op.name)
            if inverse is not None:
                return inverse(grad, *self.args)
            if order != tuple(range(len(order))):
                grad = grad.permute(order)
            return grad if sizes_of(grad) == self.sizes else grad.reshape(self.sizes)
        return rearranged(grad, order, self.sizes)

    def named(self, found: Tensor) -> Tensor:
        """A gradient, whose own node is called as PyTorch's."""
        edge = found._xt_edge
        if edge is not None and type(found) is Tensor and isinstance(edge[0], ADJOINT):
            edge[0].__class__ = adjoint_class(
                type(edge[0]), node_of_derivative(self.op.name, type(self).__name__)
            )
        return found

    def hint(self) -> Any:
        return self.sizes

    def pattern(self) -> Any:
        if self._xt_edges[0] is None:
            return None
        fields = self.sizes, self.dtype, self.args, self.result
        recipes = relative(self.op.make, self.sizes, self.dtype, self.args, *self.result)
        if len(recipes) > 1:
            return fields, (self.sizes, [(recipe, offset) for recipe, offset, _ in recipes]), []
        ((recipe, offset, order),) = recipes
        return fields, (self.sizes, recipe if order is None else order), [offset] if order is None else []

    def matches(self, pattern: Any, args: list[Any]) -> bool:
        fields, way, values = pattern
        if (self.sizes, self.dtype, self.args, self.result) == fields:
            args += values
            return self._xt_edges[0] is not None
        # Other arguments may lead the same way, at another offset.
        own = self.pattern()
        if own is None or own[1] != way:
            return False
        args += own[2]
        return True

    @classmethod
    def replay(cls, pattern: Any, grads: tuple[Any, ...], values: Sequence[Any]) -> tuple[Any, ...]:
        made = new(cls)
        (made.sizes, made.dtype, made.args, made.result), _, _ = pattern
        recipes = relative(cls.op.make, made.sizes, made.dtype, made.args, *made.result)
        if values:
            recipes = [(recipes[0][0], values[0], None)]
        return made.adjoint(grads, recipes)


def plain(numbers: Tensor) -> Any:
    """What a tensor as an argument says, to be kept: a number, or several."""
    found = numbers.tolist()
    return tuple(found) if type(found) is list else found


@bounded(256)
def adjoint_class(kind: type, name: str) -> type:
    """The class of an adjoint's node under a name."""
    return type(name, (kind,), {"__slots__": ()})


@bounded(4096)
def relative(
    make: Callable[..., Any],
    sizes: tuple[int, ...],
    dtype: dtypes.dtype,
    args: tuple[Any, ...],
    result: dtypes.dtype,
    conj: bool,
    neg: bool,
) -> list[Any]:
    """How each result of a view operator lies over a contiguous input of these sizes: recipe, offset, order.

    The order, where the view has every element once, lists its dimensions from the slowest in memory to the fastest.
    """
    made = make(Geometry(sizes, contiguous_strides(sizes), 0), *args)
    found = []
    for g in made if isinstance(made, list) else [made]:
        recipe = lowering.recipe_for(
            sizes, g.sizes, g.strides, g.offset, dtype.numpy, result.numpy, conj, neg
        )
        order = None
        if dtype is result and not (conj or neg) and numel(g.sizes) == numel(sizes) > 0:
            if is_non_overlapping_and_dense(g.sizes, g.strides):
                order = memory_order(g.sizes, g.strides)
        found.append((recipe, g.offset, order))
    return found


@bounded(4096)
def tiled(make: Callable[..., Any], sizes: tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, bool] | None:
    """Along which dimension several views lie one after the other over a contiguous input, and whether they are without it; None where
    they do not, or leave something out.
    """
    strides = contiguous_strides(sizes)
    views = make(Geometry(sizes, strides, 0), *args)
    for d, size in enumerate(sizes):
        start = 0
        for g in views:
            lacks = len(g.sizes) == len(sizes) - 1
            length = 1 if lacks or d >= len(g.sizes) else g.sizes[d]
            middle = () if lacks else (length,)
            way = () if lacks else strides[d : d + 1]
            same = g.sizes == (*sizes[:d], *middle, *sizes[d + 1 :])
            if not (
                same
                and g.strides == (*strides[:d], *way, *strides[d + 1 :])
                and g.offset == start * strides[d]
            ):
                break
            start += length
        else:
            if start == size and size:
                return d, len(views[0].sizes) < len(sizes)
    return None


INVERSES: dict[str, Callable[..., Tensor]] = {
    "matrix_transpose": lambda grad: grad.mT,
    "swapaxes": lambda grad, *dims: grad.swapaxes(*dims),
    "swapdims": lambda grad, *dims: grad.swapdims(*dims),
    "t": lambda grad: grad.t(),
    "transpose": lambda grad, *dims: grad.transpose(*dims),
    "unsqueeze": lambda grad, dim: grad.squeeze(dim),
}
"""Of views that others undo."""


def rearranged(grad: Tensor, order: tuple[int, ...], sizes: tuple[int, ...]) -> Tensor:
    """A gradient whose dimensions lie in an order, with the sizes that it has in this one."""
    g = geometry_of(grad)
    permuted = Geometry(tuple([g[0][d] for d in order]), tuple([g[1][d] for d in order]), g[2])
    found = permuted if permuted.sizes == sizes else reshape(permuted, sizes)
    return grad.permute(order).reshape(sizes) if found is None else alias(grad, *found)


@general(derivatives=dict(grad_output=lambda grad, offset, recipe: lowering.read(recipe, grad, offset)))
def view_adjoint(grad_output: Array, offset: Number, *, recipe: Any) -> Array:
    """The adjoint of reading a view: `grad_output` put where the view lies among zeros."""
    zeros = jnp.zeros(recipe.base_shape, recipe.base_dtype)
    return lowering.scatter_add(recipe, zeros, offset, grad_output)


@general(
    derivatives=dict(
        grad_outputs=lambda grad, recipes, offsets: [
            lowering.read(r, grad, o) for r, o in zip(recipes, offsets, strict=True)
        ]
    )
)
def views_adjoint(grad_outputs: Arrays, *, recipes: Any, offsets: Any, along: Any = None) -> Array:
    """The sum of the adjoints of several views of one tensor; along: where they make it up, as `tiled` says it."""
    if along is not None:
        dim, without = along
        return lax.concatenate([lax.expand_dims(g, (dim,)) if without else g for g in grad_outputs], dim)
    total = jnp.zeros(recipes[0].base_shape, grad_outputs[0].dtype)
    for grad, recipe, offset in zip(grad_outputs, recipes, offsets, strict=True):
        total = lowering.scatter_add(recipe, total, offset, grad)
    return total


view_adjoint.operator.sizer = lambda key: lowering.HostAdjoint(key)
ADJOINT = view_adjoint.operator.node_class, views_adjoint.operator.node_class
views_adjoint.operator.sizer = lambda key: lowering.HostAdjoint(*key[:2])


def layout_of(tensor: Tensor) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The sizes, strides and offset of a tensor, for who takes them apart at once."""
    v = tensor._xt_view
    if v is None:
        shape = tensor._xt_storage.raw.shape
        return shape, contiguous_strides(shape), 0
    return v.sizes, v.strides, v.offset


def geometry_of(tensor: Tensor) -> Geometry:
    """The sizes, strides and offset of a tensor."""
    return make(Geometry, layout_of(tensor))


def alias_of(
    op: ViewOperator,
    input: Tensor,
    made: tuple[Any, Any, int],
    args: tuple[Any, ...],
    creation: int = DEFAULT,
    dtype: dtypes.dtype | None = None,
    conj: bool | None = None,
    neg: bool | None = None,
) -> Tensor:
    """A differentiable view of `input` with the geometry `made`."""
    storage = input._xt_storage
    old = input._xt_view
    mode = state.mode
    view = new(View)
    view.sizes, view.strides, view.offset = made
    view.recipe = view.cached = None
    view.cached_at = view.number_at = -1
    if old is None:
        if storage.cover is None:
            storage.cover = weakref.ref(input)
        view.dtype = dtype or FROM_NUMPY[storage.raw.dtype]
        view.conj = conj or False
        view.neg = neg or False
        view.counter = storage
        view.base = input
        view.attr_version = storage.version
        view.creation = creation
        edge = input._xt_edge
    else:
        view.dtype = dtype or old.dtype
        view.conj = old.conj if conj is None else conj
        view.neg = old.neg if neg is None else neg
        counter = view.counter = old.counter
        view.base = input if old.base is None else old.base
        view.attr_version = counter.version
        view.creation = creation or old.creation
        edge = None if mode & NO_GRAD else edge_of(input)
    result = new(Tensor)
    result._xt_storage = storage
    result._xt_view = view
    result._xt_edge = None
    result._xt_meta = None
    if mode & NO_GRAD:
        made_in = INFERENCE_VIEW if mode & modes.INFERENCE else NO_GRAD_VIEW
        view.creation = creation if creation == CUSTOM_FUNCTION else made_in
    elif edge is not None:
        node = new(op.node_class)
        node._xt_edges = (edge if type(edge) is tuple else edge.edge(),)
        node._xt_sequence_nr = next_sequence_nr()
        node._xt_meta = None
        node.sizes = storage.raw.shape if old is None else old.sizes
        node.dtype = FROM_NUMPY[storage.raw.dtype] if old is None else old.dtype
        node.args = tuple(
            [tuple(a) if type(a) is list else plain(a) if type(a) is Tensor else a for a in args]
        )
        node.aval = ViewAval(view)
        node.result = (
            (view.dtype, view.conj, view.neg)
            if old is None
            else (view.dtype, view.conj is not old.conj, view.neg is not old.neg)
        )
        result._xt_edge = (node, 0)
        if mode & modes.ANOMALY:
            anomaly.record(node)
    meta = input._xt_meta
    if meta is not None and meta.inference:
        # Autograd knows nothing of views of inference tensors.
        view.base, view.creation, result._xt_edge = None, DEFAULT, None
        meta_of(result).inference = True
    return result


class ViewAval:
    """Shape and dtype of a view, for the gradients that its node receives; without the view's memory."""

    __slots__ = ("dtype", "shape")

    def __init__(self, view: View) -> None:
        self.shape = view.sizes
        self.dtype = view.dtype


def aliases_of(
    op: ViewOperator, input: Tensor, made: list[Geometry], args: tuple[Any, ...]
) -> tuple[Tensor, ...]:
    """The results of a view operator with several; autograd sees one node, and refuses in-place writes to them.

    Where the operator is a series of views (`pieces`), each result has a node of its own and may be written.
    """
    if op.pieces is not None:
        return tuple([alias_of(op.pieces, input, g, (i, *args)) for i, g in enumerate(made)])
    if len(made) > 1:
        first = alias_of(op, input, made[0], args, MULTI_OUTPUT)
        if first._xt_edge is None and first._xt_meta is None:
            return alike(first, made)
    results = [alias_of(op, input, g, args, MULTI_OUTPUT) for g in made]
    if results and type(results[0]._xt_edge) is tuple:
        node: Any = results[0]._xt_edge[0]
        node.aval = [ViewAval(r._xt_view) for r in results if r._xt_view is not None]
        for i, r in enumerate(results):
            r._xt_edge = (node, i)
    return tuple(results)


def alike(first: Tensor, made: list[Geometry]) -> tuple[Tensor, ...]:
    """Views that autograd does not follow, like one of them but for their geometry; what loops over numbers see knows them already."""
    storage, seen = first._xt_storage, first._xt_view
    assert seen is not None
    dtype, conj, neg, counter, base = seen.dtype, seen.conj, seen.neg, seen.counter, seen.base
    attr_version, creation = seen.attr_version, seen.creation
    writes = storage.writes
    numbers: Any = None if seen.sizes else numbers_at(storage, seen, [g.offset for g in made])
    results: list[Tensor] = []
    for g in made:
        view = new(View)
        view.sizes, view.strides, view.offset = g
        view.recipe = view.cached = None
        view.cached_at = view.number_at = -1
        view.dtype, view.conj, view.neg, view.counter, view.base = dtype, conj, neg, counter, base
        view.attr_version, view.creation = attr_version, creation
        result = new(Tensor)
        result._xt_storage, result._xt_view = storage, view
        result._xt_edge = result._xt_meta = None
        results.append(result)
    if numbers is not None:
        for result, number in zip(results, numbers, strict=True):
            known: Any = result._xt_view
            known.number, known.number_at = number, writes
    return tuple(results)


def view(
    make: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    aliases: tuple[str, ...] = (),
    node: str | Callable[[ViewNode], str] | None = None,
    varargs: str | None = None,
    multiple: bool = False,
    separate: bool = False,
    varying: bool = False,
    method: bool = True,
    signatures: tuple[str, ...] = (),
) -> Any:
    """Declare a view operator from its geometry function `(g, *arguments) -> Geometry`.

    multiple: it gives a list of them; separate: and stands for as many single views. varying: its arguments differ from call to
    call, so that geometries are not kept. signatures: what an error lists, where PyTorch has several.
    """
    if make is None:
        return functools.partial(
            view,
            name=name,
            aliases=aliases,
            node=node,
            varargs=varargs,
            multiple=multiple,
            separate=separate,
            varying=varying,
            method=method,
            signatures=signatures,
        )
    op = ViewOperator(name or make.__name__.rstrip("_"), make, node, multiple, separate, varying)
    op.doc = make.__doc__ = with_raises(op, inspect.signature(make).parameters)
    op.aliases = aliases
    op.signatures = signatures
    op.function = view_function(op, varargs)
    op.is_method = method
    op.method = as_method(op.function) if method else None
    VIEWS[op.name] = op
    attach(op)
    return op.function


def view_function(op: ViewOperator, varargs: str | None) -> Callable[..., Any]:
    """The public function, with the geometry function's own signature."""
    made = deferred(op.name, f"<xtensor view {op.name}>", lambda: view_source(op, varargs), op.make)
    made.operator = op
    return made


KEPT = {
    "int": "type({0}) is int",
    "int | None": "({0} is None or type({0}) is int)",
    "bool": "type({0}) is bool",
    "Sequence[int]": "type({0}) is tuple and ints_alone(map(type, {0}))",
    "Dims": "(type({0}) is int or type({0}) is tuple and ints_alone(map(type, {0})))",
    "int | Sequence[int]": "(type({0}) is int or type({0}) is tuple and ints_alone(map(type, {0})))",
    "Dims | None": "({0} is None or type({0}) is int or type({0}) is tuple and ints_alone(map(type, {0})))",
}
"""By annotation, what an argument is by which geometries are found again."""
PARTS = "indices_or_sections"
"""A parameter that goes by the name of what it is, too."""


def view_source(op: ViewOperator, varargs: str | None) -> tuple[str, dict[str, Any]]:
    """The text of a view operator's function, and its globals."""
    parameters = list(inspect.signature(op.make).parameters.values())[1:]
    empty = inspect.Parameter.empty
    strict = bool(op.signatures)
    names = "".join(f"{p.name}, " for p in parameters)
    header = ["input=default_input" if strict else "input"]
    lines = []
    many = "rest"
    unfit = ""
    others = False
    for p in parameters:
        if p.name == varargs:
            many = f"{p.name}_"
            header.append(f"*{many}")
            lines += [f"if {many}:", f"    {p.name} = {many}[0] if len({many}) == 1 else {many}"]
        others = (
            others or p.name == "dim"
        )  # which `axis` may stand for, so that what follows needs a default too
        optional = strict or p.default is not empty or p.name == varargs or others
        header.append(f"{p.name}=default_{p.name}" if optional else p.name)
    axis = any(p.name == "dim" for p in parameters)
    if axis:
        lines += ["if axis is not None:", "    dim = axis"]
    if strict and any(p.name == PARTS for p in parameters):
        lines += ["if unknown:"]
        lines += [
            f"    {PARTS} = unknown.pop({n!r}, {PARTS})" for n in ("sections", "indices", f"tensor_{PARTS}")
        ]
    if strict:
        header += [
            *(["*rest"] if varargs is None else []),
            *(["axis=None"] if axis else []),
            "**unknown",
        ]
    elif axis:
        header += [*(["*"] if varargs is None else []), "axis=None"]
    needed = [p.name for p in parameters if f"{p.name}=default_{p.name}" in header and p.default is empty]
    if strict or varargs is not None or needed:
        spread = "" if varargs is None else f"*(() if {many} else ({varargs},)), *{many}, "
        given = "".join(f"{p.name}, " for p in parameters if p.name != varargs)
        unfit = f"raise unfit(op, (input, {spread}{given}{'*rest, ' if varargs is None and strict else ''}), {'unknown' if strict else '{}'})"
        refused = [*(["unknown"] if strict else []), *(["rest"] if strict and varargs is None else [])]
        if refused:
            lines += [f"if {' or '.join(refused)}:", f"    {unfit}"]
    for i, p in enumerate(parameters):
        if p.annotation in ("int", "int | None"):
            plain = f"type({p.name}) is not int" + (
                "" if p.annotation == "int" else f" and {p.name} is not None"
            )
            lines += [f"if {plain}:", f"    {p.name} = whole_number(op, {i + 2}, {p.name!r}, {p.name})"]
    kept = op.known is not None and all(str(p.annotation) in KEPT for p in parameters)
    lines += [
        "if state.mode > 1 or not isinstance(input, Tensor):",
        *(
            [f"    if {' or '.join(f'{n} is MISSING' for n in ['input', *needed])}:", f"        {unfit}"]
            if strict
            else [f"    if {' or '.join(f'{n} is MISSING' for n in needed)}:", f"        {unfit}"]
            if needed and varargs is None
            else []
        ),
        f"    return slow(op, input, ({names}))",
        "_v = input._xt_view",
        "if _v is None:",
        "    _sizes, _strides, _offset = input._xt_storage.raw.shape, None, 0",
        "elif type(_v) is View:",
        "    _sizes, _strides, _offset = _v.sizes, _v.strides, _v.offset",
        "else:",
        f"    return slow(op, input, ({names}))",
    ]
    gives = "aliases_of" if op.multiple else "alias_of"
    lines.append("try:")
    if kept:
        several = [p.name for p in parameters if "tuple" in KEPT[str(p.annotation)]]
        lines += [f"    if type({n}) is list: {n} = tuple({n})" for n in several]
        # An argument of another kind may be equal to one that is known, and yet refused.
        plain = " and ".join([KEPT[str(p.annotation)].format(p.name) for p in parameters]) or "True"
        lines += [f"    if {plain}:", f"        _made = known(_sizes, _strides, {names})"]
        if op.multiple:
            lines += [
                "        if _offset:",
                "            _made = [make_geometry(Geometry, (*g[:2], g[2] + _offset)) for g in _made]",
            ]
        else:
            lines += [
                "        _sizes, _strides, _at = _made",
                "        _made = _sizes, _strides, _at + _offset",
            ]
        lines += [f"        return {gives}(op, input, _made, ({names}))"]
    lines += [
        "    if _strides is None:",
        "        _strides = contiguous_strides(_sizes)",
        f"    return {gives}(op, input, make((_sizes, _strides, _offset), {names}), ({names}))",
        "except (AttributeError, TypeError):",
    ]
    # What is missing, or too much, geometry meets as a type that it does not know.
    wrong = [f"{n} is MISSING" for n in needed]
    if varargs is not None:
        wrong.append(f"len({many}) > 1" + ("" if strict else f" and isinstance({many}[0], (tuple, list))"))
    if wrong:
        lines += [f"    if {' or '.join(wrong)}:", f"        {unfit} from None"]
    lines += [f"    misfit(op, ({names}))", "    raise"]
    text = f"def {op.name}({', '.join(header)}):\n" + "".join(f"    {line}\n" for line in lines)
    namespace = {f"default_{p.name}": MISSING if p.default is empty else p.default for p in parameters}
    namespace.update(
        __name__="xtensor.ops.made",
        MISSING=MISSING,
        Tensor=Tensor,
        View=View,
        alias_of=alias_of,
        aliases_of=aliases_of,
        contiguous_strides=contiguous_strides,
        default_input=MISSING,
        Geometry=Geometry,
        known=op.known,
        make=op.make,
        make_geometry=make,
        misfit=misfit,
        ints_alone=frozenset((int,)).issuperset,
        op=op,
        slow=slow_view,
        state=modes.state,
        unfit=unfit_view,
        whole_number=whole_number,
    )
    return text, namespace


def whole_number(op: ViewOperator, position: int, name: str, value: Any) -> Any:
    """An argument of a view that should be an int: what stands for one, as it is; TypeError for what does not."""
    if value is MISSING or isinstance(value, Tensor) or claimed((value,)) is not None:
        return value
    if checks.is_whole(value):
        return as_size(value)
    raise checks.argument_error(op.name, name, position, "int", value)


def misfit(op: ViewOperator, args: tuple[Any, ...]) -> None:
    """TypeError for the first argument that is no int, or no sequence of ints, where the view's signature has them."""
    if op.signatures:
        return
    for i, (p, value) in enumerate(zip(list(inspect.signature(op.make).parameters.values())[1:], args)):
        if value is p.default or not str(p.annotation).startswith("Sequence[int"):
            continue
        checks.check_whole_numbers(op.name, p.name, i + 2, value)


def unfit_view(op: ViewOperator, args: Sequence[Any], unknown: dict[str, Any]) -> TypeError:
    """The error of a call that fits no signature, by what was given and what is missing."""
    optional = [
        p.default
        for p in list(inspect.signature(op.make).parameters.values())[1:]
        if p.default is not p.empty
    ]
    given = [a for a in args if a is not MISSING and not any(a is d for d in optional)]
    if op.signatures:
        return unfit_call(op.name, tuple(given), unknown, op.signatures)
    names = list(inspect.signature(op.make).parameters)[1:]
    absent = [n for n, a in zip(names, args[1:], strict=False) if a is MISSING]
    if absent or len(given) < 2:
        absent = absent or names[:1]
        listed = ", ".join([f'"{name}"' for name in absent])
        return TypeError(f"{op.name}() missing {len(absent)} required positional arguments: {listed}")
    return TypeError(f"{op.name}() takes {len(names) + 1} positional arguments but {len(given)} were given")


def slow_view(op: ViewOperator, input: Any, args: tuple[Any, ...]) -> Any:
    """A view in unusual modes, or a wrong type of argument."""
    if armed or modes.state.mode & modes.FUNCTION_MODE or not isinstance(input, Tensor):
        found = claimed((input, *args))
        if found is not None:
            parameters = list(inspect.signature(op.make).parameters.values())[1:]
            while args and args[-1] is parameters[len(args) - 1].default:
                args = args[:-1]
            return answer(op.function, found, (input, *args), {})
    if not isinstance(input, Tensor):
        raise checks.argument_error(op.name, "input", 1, "Tensor", input)
    if dispatching or modes.state.mode & modes.DISPATCH_MODE:
        found = asked_about((input, *args))
        if found is not None:
            return answered(op, input, args, found)
    token = profiler.begin(op.name, [tuple(input.shape)]) if modes.state.mode & modes.PROFILING else None
    try:
        made = op.make(geometry_of(input), *args)
        return aliases_of(op, input, made, args) if op.multiple else alias_of(op, input, made, args)
    finally:
        if token is not None:
            profiler.end(token)


def answered(op: ViewOperator, input: Tensor, args: tuple[Any, ...], found: list[Any]) -> Any:
    """A view as who is asked below autograd makes it, with its place in the graph."""
    names = list(inspect.signature(op.make).parameters.values())[1:]
    given = {p.name: a for p, a in zip(names, args, strict=False) if a is not p.default}
    shown = list(args)
    while shown and shown[-1] is names[len(shown) - 1].default:
        shown.pop()
    func = find(op.name, (input, *args), given)
    made = dispatched(func, found, (input, *[list(a) if type(a) is tuple else a for a in shown]), {})
    results = parts(made, (input,))
    if all(r._xt_storage is input._xt_storage and type(r) is Tensor for r in results):
        seen = [geometry_of(r) for r in results]
        return aliases_of(op, input, seen, args) if op.multiple else alias_of(op, input, seen[0], args)
    edge = None if modes.state.mode & modes.NO_GRAD else edge_of(input)
    if edge is not None:
        node = new(op.node_class)
        node._xt_edges = (edge if type(edge) is tuple else edge.edge(),)
        node._xt_sequence_nr, node._xt_meta = next_sequence_nr(), None
        node.sizes, node.dtype = tuple(sizes_of(input)), input.dtype
        node.args = tuple([tuple(a) if type(a) is list else a for a in args])
        avals = [ViewAval(make_view(r._xt_storage, None, r.dtype, tuple(r.shape), (), 0)) for r in results]
        node.aval = avals if op.multiple else avals[0]
        node.result = (input.dtype, False, False)
        for i, r in enumerate(results):
            r._xt_edge = (node, i)
    return tuple(results) if op.multiple else results[0]


def ints(values: Any) -> tuple[int, ...]:
    """Sizes or dims given as a sequence or one int, as plain ints."""
    if type(values) is tuple:
        for v in values:
            if type(v) is not int:
                break
        else:
            return values
    if isinstance(values, int) or (isinstance(values, Tensor) and not sizes_of(values)):
        return (as_size(values),)
    return tuple([v if type(v) is int else as_size(v) for v in values])
