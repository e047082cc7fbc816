"""The Python functions of operators, generated once per declaration from its schema.

A generated function has the operator's own signature, so nothing parses arguments at call time. It handles the common
case inline (plain Tensors and Python numbers, default modes) and leaves every other to `calls`. The templates below are what
it looks like; `print(xtensor.ops.source("add"))` shows one filled.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any

import numpy as np

from ... import devices
from ...checks import GENERATED, METHOD
from ...engine import modes
from ...engine.graph import next_sequence_nr
from ...geometry import channels_last_order, contiguous_strides
from ...host.numbers import exactly
from ...storage import SOLE, LazyStorage, MetaArray, Storage, births, exchange
from ...tensor import Tensor, View, asks_grad, edge_of, read_view, wrap
from ...xla.number_arrays import NUMBER_ARRAYS
from ...xla.pending import Pending
from ...xla.symbolic import is_open
from ...xla.threads import others
from ..arguments import NUMBERS, SCALARS, odd
from ..calls import MISSED, folded, missed, recover, run_method
from ..dispatch import record
from ..inplace import recover_inplace, run_inplace
from ..operator import Operator
from ..reading import fresh, whole
from ..saved import result_index, save
from ..schema import EMPTY, MISSING, Parameter
from ..write import refuse_captured, write_out
from .columns import as_columns
from .deferred import deferred
from .older import call_older
from .overloads import AXES, not_a_tensor
from .shown import in_place_doc
from .template import fill
from .unknown import is_strict, unfit

__all__ = ["composite", "function", "graph", "inplace", "operator_method"]

CALL = """
def <name>(<parameters>):
    <spellings>
    flags = state.mode
    if flags <= 1<without_out>:
        try:
            <operands>
            <conditions>
            program = programs[<key>]
        except MISSED as error:
            if type(error) is not LookupError or error.args: missed(error)
        else:
            try:
                <results> = program(<arrays>)
            except Exception as error:
                return recover(op, error, <values>)
            <refusals>
            <wrapping>
    <check>
    return op_run(<values><out>)
"""
"""A function or method. spellings: other names and orders of arguments. operands: `v_x` and `x_x`, an argument's view and array."""

ONE_RESULT = """
storage = new(LazyStorage if type(r) is Pending else Storage)
storage.raw = r
storage.version = storage.address = 0
storage.writes = births.now
storage.shared = False
storage.cover = None
t = new(Tensor)
t._xt_storage = storage
t._xt_view = t._xt_edge = t._xt_meta = None
<recording>
return t
"""

RECORDING = """
if flags == 0:
    <node>
"""
NODE = """
<edges>
if (<any_edge>)<inexact>:
    <leaf_edges>
    node = new(NodeClass)
    node._xt_edges = (<all_edges>)
    node.targets = (<targets>)
    node._xt_sequence_nr = next_nr()
    node._xt_meta = None
    node.key = <key>
    node.aval = <aval>
    node.shapes = (<shapes>)
    node.saved = (<saved>)
    t._xt_edge = (node, 0)
"""
"""edges: `e_x`, where the gradient of an argument goes: None, a pair, or the leaf that knows it."""

GRAPH = """
def graph(values_, key_, arrays_, t):
    <values>= values_
    <arrays>= arrays_
    <views>
    storage = t._xt_storage
    r = storage.raw
    <node>
"""
"""The node of a call that was made elsewhere, of its result `t`; arrays_: of each argument its array, or the form of what is not saved. No parameter has a
name that ends so."""

SEVERAL_RESULTS = """
t = <tensors>
<recording>
return <given>
"""

ASKED = """
if flags == 0:
    for c in <tensors>:
        if c._xt_edge is not None or c._xt_view is not None and asks_grad(c):
            <recorded>
            break
"""
"""Of a list the first that asks for a gradient is enough."""

INPLACE = """
def <name>(<parameters>):
    <spellings>
    flags = state.mode
    if flags <= 1:
        try:
            storage = <target>._xt_storage
            m = <target>._xt_meta
            if <target>._xt_view is not None or (m is not None and m.inference): raise LookupError
            if flags == 0 and <target>._xt_edge is not None: raise LookupError
            if type(storage) is LazyStorage: raise LookupError
            donate = not (others or storage.shared or references(storage.array) != SOLE or type(storage.raw) is MetaArray)
            <operands>
            <conditions>
            program = variants['inplace', <key>, donate]
            if births.open: refuse_captured(<target>, '<name>')
        except MISSED as error:
            if type(error) is not LookupError or error.args: missed(error)
        else:
            storage.writes += 1
            storage.version += 1
            try:
                if others: exchange(storage, program, <arrays>)
                else: storage.raw, = starmap(program, ((storage.array, <arrays>),))
            except Exception as error:
                storage.version -= 1
                return recover_inplace(op, error, <values>)
            storage.writes += 1
            storage.shared = False
            f = getframe(1)
            storage.writer = (f.f_code, f.f_lasti, '<name>')
            return <target>
    <check>
    return run_inplace(op, <values>)
"""
"""A whole tensor written, which nobody's gradient follows. The program runs while its result is unpacked, which is no call, so that no
signal's handler runs before it is stored: the values are those before or those after."""

ELSEWHERE = """
def <name>(<parameters>):
    <spellings>
    <check>
    return <call>
"""
"""A function with parameters of names that the inline path needs: there is none."""

# What the inline path calls its own.
LOCALS = frozenset("aval c donate error f flags m node program r r1 r2 storage t".split())
AXIS_NAMES = {name: other for other, name in AXES.items()}
RECIPROCAL = ("__rdiv__", "__rtruediv__")


def contiguous_view(view: Any) -> bool:
    return view.strides == contiguous_strides(view.sizes)


def channels_last(view: Any) -> bool:
    return channels_last_order(view.sizes, view.strides) is not None


def in_order(storage: Storage, view: View) -> Any:
    """`fresh`, of a view that does not lie in memory in an order of its own."""
    if channels_last(view):
        raise LookupError
    return fresh(storage, view)


def is_number(value: Any) -> bool:
    if isinstance(value, NUMBERS) or is_open(value):
        return True
    shape = getattr(value, "shape", None)
    return type(shape) is tuple and not shape and hasattr(value, "dtype")


def equals_array(input: Tensor, other: Any) -> Any:
    """Where a tensor equals an array of NumPy's; NotImplemented for anything else."""
    if isinstance(other, np.ndarray) and other.dtype.kind in "biufc":
        return input.eq(wrap(devices.put(other, input.device)))  # pyright: ignore[reportAttributeAccessIssue]
    return NotImplemented


def asked_operand(dunder: str, kind: type, input: Any, other: Any) -> Any:
    """What an operator of a tensor and an object that is none gives: NotImplemented where the object's type is not asked who
    answers calls, None where it is asked as all are; or what it makes of the operator if that is something else.
    """
    if getattr(kind, "__torch_function__", None) is None:
        return NotImplemented
    made = getattr(kind, "_xt_operator", None)
    return None if made is None else made(dunder, input, other)


def no_tensor(dunder: str, value: Any) -> Exception:
    """The error of a dunder called by hand on what is no Tensor."""
    kind = type(value).__name__
    if dunder in RECIPROCAL:
        return AttributeError(f"'{kind}' object has no attribute 'reciprocal'")
    return TypeError(f"descriptor '{dunder}' for 'xtensor.Tensor' objects doesn't apply to a '{kind}' object")


NAMESPACE: dict[str, Any] = {
    "LazyStorage": LazyStorage,
    "MISSED": MISSED,
    "MISSING": MISSING,
    "Pending": Pending,
    "MetaArray": MetaArray,
    "SCALARS": SCALARS,
    "SOLE": SOLE,
    "Storage": Storage,
    "Tensor": Tensor,
    "__name__": "xtensor.ops.made",
    "as_columns": as_columns,
    "asked_operand": asked_operand,
    "asks_grad": asks_grad,
    "births": births,
    "channels_last": channels_last,
    "call_older": call_older,
    "contiguous_view": contiguous_view,
    "edge_of": edge_of,
    "equals_array": equals_array,
    "exactly": exactly,
    "exchange": exchange,
    "folded": folded,
    "fresh": fresh,
    "getframe": sys._getframe,
    "is_number": is_number,
    "missed": missed,
    "ndarray": np.ndarray,
    "new": object.__new__,
    "next_nr": next_sequence_nr,
    "no_tensor": no_tensor,
    "odd": odd,
    "others": others,
    "in_order": in_order,
    "read": read_view,
    "record": record,
    "recover": recover,
    "recover_inplace": recover_inplace,
    "references": sys.getrefcount,
    "refuse_captured": refuse_captured,
    "run_inplace": run_inplace,
    "save": save,
    "scalars": NUMBER_ARRAYS,
    "starmap": starmap,
    "unfit": unfit,
    "state": modes.state,
    "whole": whole,
    "wrap": wrap,
}
# What every generated function reads.
RESERVED = frozenset(("kind", *NAMESPACE))


# -- the kinds of functions


def function(op: Operator, out: bool = True, varargs: str | None = None) -> Callable[..., Any]:
    """The operator's public function; also its method."""
    for p in op.schema.parameters:
        if p.name in RESERVED:
            raise TypeError(
                f"{op.name}(): no parameter can have the name '{p.name}', which the generated code uses"
            )

    def lines() -> list[str]:
        spellings = surplus(op) + older(op, out=out) + axis_names(op) + spread(varargs)
        return call(op, op.name, header(op, out, varargs), spellings, out, check=missing(op, varargs=varargs))

    return define(op, op.name, lines)


def operator_method(
    op: Operator, dunder: str, reflected: bool = False, asked: str | None = None
) -> Callable[..., Any]:
    """The function for an arithmetic dunder: NotImplemented for operands that are none, an error where `self` is no Tensor.

    asked: the method that `__torch_function__` is asked about, if not the operator's function.
    """
    own, given = ("other", "input") if reflected else ("input", "other")
    # Called by hand on a number, PyTorch's floor division and most of its reflected operators work; the others refuse.
    strict = dunder in RECIPROCAL if reflected else dunder != "__floordiv__"

    def lines() -> list[str]:
        spellings = ["input, other = other, input"] if reflected else []
        others = [p for p in op.schema.parameters if p.name not in ("input", "other")]
        spellings += [f"{p.name} = default_{p.name}" for p in others]
        numbers = f" and kind not in SCALARS and not is_number({given})"
        if any(p.name == given and p.kind == "Array" for p in op.runtime):
            numbers = ""  # a matrix product takes none
        check = [
            f"kind = type({given})",
            f"if not isinstance({given}, Tensor){numbers}:",
            f"    made = asked_operand({dunder!r}, kind, input, other)",
            "    if made is not None:",
            "        return made",
        ]
        if dunder == "__eq__":  # the one comparison that PyTorch has with NumPy's arrays
            check[1:] = [
                "if kind is ndarray or not isinstance(other, Tensor) and kind not in SCALARS and not is_number(other):",
                "    made = asked_operand('__eq__', kind, input, other)",
                "    if made is not None:",
                "        return equals_array(input, other) if made is NotImplemented else made",
            ]
        if strict:
            check += [f"if not isinstance({own}, Tensor):", f"    raise no_tensor({dunder!r}, {own})"]
        name = f"__{op.name}__"
        return call(op, name, "input, other", spellings, False, own if strict else None, check)

    if asked is None:
        return define(op, f"__{op.name}__", lines)
    made = define(op, f"__{op.name}__", lines, functools.partial(run_method, op, asked, reflected))
    made.__name__ = dunder
    return made


def inplace(op: Operator, dunder: bool = False) -> Callable[..., Any]:
    """The in-place variant `name_`: the result replaces the values of the first argument.

    dunder: as Python calls it for `x += y`, which is NotImplemented for an operand that is none.
    """

    def lines() -> list[str]:
        unknown = []
        if dunder:
            given = op.schema.parameters[1].name
            unknown = [
                f"if not isinstance({given}, Tensor) and type({given}) not in SCALARS and not is_number({given}):",
                f"    made = asked_operand('{op.name}_', type({given}), input, {given})",
                "    if made is not None:",
                "        return made",
            ]
        common = dict(
            name=op.name + "_",
            parameters=header(op, False, None),
            spellings=surplus(op, True) + older(op, inplace=True) + axis_names(op),
            check=missing(op, True) + unknown,
        )
        values = tupled([p.name for p in op.schema.parameters])
        if not is_inlined(op) or is_wide(op):
            return fill(ELSEWHERE, **common, call=f"run_inplace(op, {values})")
        target, *others = op.runtime
        operands, conditions = [], []
        for p in others:
            waits = p.kind in ("Array", "Operand")
            operands += operand(
                p, "fresh" if op.kind == "pointwise" else "read", "operand" if waits else "array"
            )
            if waits:  # then this call may wait as well
                operands.append(f"if type(x_{p.name}) is Pending: raise LookupError")
            conditions += unseen(p)
        return fill(
            INPLACE,
            **common,
            target=target.name,
            operands=operands,
            conditions=conditions + odd_keys(op) + refusals(op),
            key=key_of(op),
            arrays=", ".join(f"x_{p.name}" for p in others),
            values=values,
        )

    made = define(op, op.name + "_", lines)
    made.__doc__ = in_place_doc(op)
    return made


def call(
    op: Operator,
    name: str,
    parameters: str,
    spellings: list[str],
    out: bool,
    own: str | None = None,
    check: Sequence[str] = (),
) -> list[str]:
    """The lines of a function: the common case inline (of a Tensor as the operand `own`), after a check everything else."""
    values = tupled([p.name for p in op.schema.parameters])
    common = dict(name=name, parameters=parameters, spellings=spellings, check=check)
    if not is_inlined(op):
        return fill(ELSEWHERE, **common, call=f"op_run({values}{', out' if out else ''})")
    runtime = [replace(p, kind="Array", optional=False) if p.name == own else p for p in op.runtime]
    operands, conditions = [], []
    for p in runtime:
        on_host = [f"    r = exactly(op.exact, {values})", "    if r is not None: return r"]
        first = op.exact is not None and p is runtime[0]
        fold = op.views == "fold"
        folds = [f"    r = folded(op, {values})", "    if r is not None: return r"]
        alone = fold and op.alone is not None and len(runtime) == 1 and op.schema.parameters[0].name == p.name
        # A result may lie in memory as the first arguments do, which their values do not tell.
        reader = (
            "whole" if fold else "in_order" if p.kind == "Arrays" and p in runtime[: op.formats] else "fresh"
        )
        operands += operand(p, reader, "operand", on_host if first else (), folds if alone else ())
        if (op.kind == "pointwise" or op.elementwise_at is not None) and p.kind != "Number":
            found = f"v_{p.name} is not None and not contiguous_view(v_{p.name})"
            if op.elementwise_at is not None:
                found = f"{op.static[op.elementwise_at].name} == 'none' and {found}"
            conditions += [f"if {found}: raise LookupError"]
    for p in runtime[: op.formats]:
        if p.kind != "Arrays":
            conditions.append(f"if v_{p.name} is not None and channels_last(v_{p.name}): raise LookupError")
    return fill(
        CALL,
        **common,
        without_out=" and out is None" if out else "",
        operands=operands,
        conditions=conditions + odd_keys(op),
        key=key_of(op),
        results="r" if is_wide(op) else ", ".join(["r", *[f"r{i}" for i in range(1, op.hidden + 1)]]),
        arrays=", ".join(f"x_{p.name}" for p in runtime),
        refusals=refusals(op),
        wrapping=several_results(op, runtime) if is_wide(op) else one_result(op, runtime),
        values=values,
        out=", out" if out else "",
    )


def define(
    op: Operator, name: str, lines: Callable[[], list[str]], slow: Callable[..., Any] | None = None
) -> Any:
    """The function of that name whose lines `lines()` gives, compiled when first called; `slow`: the slow way, if not the operator's."""

    def make() -> tuple[str, dict[str, Any]]:
        defaults = {f"default_{p.name}": MISSING if p.required else p.default for p in op.schema.parameters}
        namespace = dict(
            NAMESPACE,
            **defaults,
            op=op,
            op_run=slow or op.call,
            programs=op.waits,
            variants=op.variants,
            NodeClass=op.node_class,
            returns=op.returns,
            refuses=op.refuses,
        )
        return "\n".join(lines()) + "\n", namespace

    file = f"{METHOD if name == f'{op.name}_' else GENERATED}operator {op.name}: {name}>"
    made = deferred(name, file, make, op.kernel)
    made.operator = op
    return made


# -- what fills the holes


def is_inlined(op: Operator) -> bool:
    """Whether the common case of an operator is in its function."""
    return LOCALS.isdisjoint(op.schema.names())


def is_wide(op: Operator) -> bool:
    """Whether an operator takes a sequence of tensors, or gives several results, or one of its own strides."""
    several = not (op.single or op.shown == 1) or any(p.kind == "Arrays" for p in op.runtime)
    return several or bool(op.columns)


def tupled(names: Sequence[str]) -> str:
    return f"({''.join(f'{n}, ' for n in names)})"


def key_of(op: Operator) -> str:
    """The static arguments, which choose the program."""
    return tupled([p.name for p in op.static])


def header(op: Operator, out: bool, varargs: str | None) -> str:
    """The parameter list, with defaults by name so that any object can be one."""
    parts: list[str] = []
    starred = False
    for p in op.schema.parameters:
        if p.keyword_only and not starred:
            parts.append("*rest" if is_strict(op) else "*")
            starred = True
        if p.name == varargs:
            parts.append(f"*{p.name}_")
            starred = True
        given = p.required and not is_defaulted(op, p, varargs)
        parts.append(p.name if given else f"{p.name}=default_{p.name}")
    extra = [f"{other}=None" for _, other in axes(op)]
    if is_strict(op) and not starred:
        parts.append("*rest")
    elif (out or extra) and not starred:
        parts.append("*")
    if out:
        parts.append("out=None")
    return ", ".join(parts + extra + (["**unknown"] if op.several else []))


def axes(op: Operator) -> list[tuple[str, str]]:
    """NumPy's names beside PyTorch's, of an operator's arguments."""
    return [(p.name, AXIS_NAMES[p.name]) for p in op.schema.parameters if p.name in AXIS_NAMES]


def axis_names(op: Operator) -> list[str]:
    return [
        line for name, other in axes(op) for line in (f"if {other} is not None:", f"    {name} = {other}")
    ]


def surplus(op: Operator, inplace: bool = False) -> list[str]:
    """The way out for keywords that there are not, and for too many arguments."""
    if not op.several:
        return []
    values = tupled([p.name for p in op.schema.parameters])
    condition = "unknown" if op.deprecated else "unknown or rest"
    return [f"if {condition}:", f"    raise unfit(op, {values}, unknown, rest, {inplace})"]


def missing(op: Operator, inplace: bool = False, varargs: str | None = None) -> list[str]:
    """The way out for arguments that were not given, where Python does not say so; nothing inline takes what stands for them."""
    required = [p.name for p in op.schema.parameters if p.required and is_defaulted(op, p, varargs)]
    values = tupled([p.name for p in op.schema.parameters])
    condition = " or ".join(f"{name} is MISSING" for name in required)
    return [f"if {condition}:", f"    raise unfit(op, {values}, {{}}, (), {inplace})"] if required else []


def is_defaulted(op: Operator, p: Parameter, varargs: str | None) -> bool:
    """Whether a required parameter has a default in Python: `cumsum(x, axis=0)`, another name may stand for it, or for one before."""
    if is_strict(op) or p.name == varargs:
        return True
    parameters = op.schema.parameters
    return any(q.name in AXIS_NAMES for q in parameters[: parameters.index(p) + 1])


def spread(varargs: str | None) -> list[str]:
    """`permute(x, 1, 0)` for `permute(x, (1, 0))`."""
    if not varargs:
        return []
    given = f"{varargs}_"
    return [
        f"if {given}:",
        f"    {varargs} = {given}[0] if len({given}) == 1 and not isinstance({given}[0], int) else {given}",
    ]


def older(op: Operator, *, out: bool = False, inplace: bool = False) -> list[str]:
    """The way out for a deprecated spelling, which has more positional arguments."""
    if not op.deprecated:
        return []
    given = "".join(f"{p.name}, " for p in op.schema.parameters if not p.keyword_only)
    options = ", ".join(
        f"{p.name!r}: {p.name} != default_{p.name}" for p in op.schema.parameters if p.keyword_only
    )
    elsewhere = f"call_older(op, ({given}*rest), {{{options}}}, {'out' if out else None}, {inplace})"
    return ["if rest:", f"    return {elsewhere}"]


def odd_keys(op: Operator) -> list[str]:
    """The way out for a bool or a float where an int chooses the program, and for what is no bool where one does: equal keys find theirs."""
    lines = []
    for p in op.static:
        if p.integral:
            lines.append(
                f"if {p.name} is not None and type({p.name}) is not int and odd({p.name}): raise LookupError"
            )
        elif p.boolean:
            none = f" and {p.name} is not None" if p.optional else ""
            lines.append(f"if {p.name} is not True and {p.name} is not False{none}: raise LookupError")
    return lines


def refusals(op: Operator) -> list[str]:
    """What raises for values that the operator refuses; where static arguments can be None, only if they are given."""
    if op.refuses is None:
        return []
    given = [f"{p.name} is not None" for p in op.static if p.default is None]
    asked = f"refuses({', '.join([p.name for p in op.runtime])})"
    return [f"if {' and '.join(given)}: {asked}" if given else asked]


def operand(
    p: Parameter, reader: str, slot: str = "array", number_of: Sequence[str] = (), folds: Sequence[str] = ()
) -> list[str]:
    """An argument's view and array, or what it is pending as; what is no Tensor has no `_xt_view`, which leads out of the `try`.

    number_of: what is done for a view of no dimensions before it is read. folds: for any view.
    """
    n = p.name
    if p.kind == "Number":
        return number(p)
    if p.kind == "Arrays":
        return [
            f"if type({n}) is not list and type({n}) is not tuple: raise LookupError",
            f"x_{n} = tuple([t._xt_storage.{slot} if t._xt_view is None else {reader}(t._xt_storage, t._xt_view) for t in {n}])",
        ]
    read = [
        f"v_{n} = {n}._xt_view",
        *([f"if v_{n} is not None and not v_{n}.sizes:", *number_of] if number_of else ()),
        *([f"if v_{n} is not None:", *folds] if folds else ()),
        f"x_{n} = {n}._xt_storage.{slot} if v_{n} is None else {reader}({n}._xt_storage, v_{n})",
    ]
    lines: list[str] = []
    if p.kind == "Operand":
        # A number bound for the int64 range check, or anything unusual, takes the complete path.
        lines += [f"if type({n}) in SCALARS:", f"    v_{n} = None", f"    x_{n} = scalars[type({n}), {n}]"]
    if p.optional:
        lines += [f"{'elif' if lines else 'if'} {n} is None:", f"    v_{n} = x_{n} = None"]
    return [*lines, "else:", *[f"    {line}" for line in read]] if lines else read


def number(p: Parameter) -> list[str]:
    n = p.name
    take = f"scalars[type({n}), {n}]"
    if p.default is None:
        return [
            f"if {n} is not None and type({n}) not in SCALARS: raise LookupError",
            f"x_{n} = None if {n} is None else {take}",
        ]
    lines = [f"if type({n}) not in SCALARS: raise LookupError"]
    # 1.0 and True are no 1: operators of integers refuse them.
    alike = f" and type({n}) is int" if type(p.default) is int else ""
    same = f"{n} is default_{n} or {n} == default_{n}{alike}"
    return [*lines, f"x_{n} = {take if p.default is EMPTY else f'None if {same} else {take}'}"]


def unseen(p: Parameter) -> list[str]:
    """The way out for an operand that is the target's own memory, or asks for a gradient."""
    if p.kind == "Number":
        return []
    n = p.name
    lines = [
        f"if {n}._xt_storage is storage or (flags == 0 and {edge(n)} is not None):",
        "    raise LookupError",
    ]
    if p.kind == "Operand" or p.optional:
        return [f"if type({n}) not in SCALARS and {n} is not None:", *[f"    {line}" for line in lines]]
    return lines


def edge(name: str) -> str:
    return f"({name}._xt_edge if v_{name} is None else edge_of({name}))"


def absent(p: Parameter) -> str:
    """The condition under which an argument is no tensor, or nothing where it always is one."""
    n = p.name
    if p.kind == "Operand":
        return f"type({n}) in SCALARS{f' or {n} is None' if p.optional else ''}"
    return f"{n} is None" if p.optional else ""


def unless(p: Parameter, instead: str, value: str) -> str:
    """`value`, or `instead` where the argument is no tensor."""
    condition = absent(p)
    return f"({instead} if {condition} else {value})" if condition else value


def one_result(op: Operator, runtime: list[Parameter]) -> list[str]:
    """One result as a Tensor, with its node."""
    node = node_of(op, runtime, key_of(op))
    return fill(ONE_RESULT, recording=fill(RECORDING, node=node) if node else [])


def node_of(op: Operator, runtime: list[Parameter], key: str) -> list[str]:
    """The node of a call that gives one result; nothing where no gradient follows."""
    rules = op.rules
    asking = rules.differentiable if not op.boolean else ()
    if not asking:
        return []
    kinds = {p.name: p for p in runtime}
    hidden = "".join(f"r{i}.aval, " for i in range(1, op.hidden + 1))
    return fill(
        NODE,
        edges=[f"e_{n} = {unless(kinds[n], 'None', edge(n))}" for n in asking],
        any_edge=" or ".join(f"e_{n} is not None" for n in asking),
        # Only a `dtype=` argument can make an integer of what asks for a gradient.
        inexact=" and r.aval.dtype.kind in 'fcV'" if any(p.name == "dtype" for p in op.static) else "",
        leaf_edges=[
            f"if e_{n} is not None and type(e_{n}) is not tuple: e_{n} = e_{n}.edge()" for n in asking
        ],
        all_edges="".join(f"e_{n}, " for n in asking),
        targets="".join(f"None if e_{n} is None else x_{n}.aval, " for n in asking),
        key=key,
        aval="r.aval" if op.single else f"(r.aval, {hidden})",
        shapes="".join(f"{unless(kinds[n], '()', f'x_{n}.aval.shape')}, " for n in rules.shapes),
        saved="".join(f"{saved_expression(n, kinds, rules)}, " for n in rules.saved),
    )


def graph(op: Operator) -> Callable[..., Any] | None:
    """What gives a call its place in the graph that `calls.alone` makes; None where no gradient follows, or its path is none of these."""
    if op.alone is None or not is_inlined(op) or op.boolean or not op.rules.differentiable:
        return None

    def lines() -> list[str]:
        views = []
        for p in op.runtime:
            if p.kind != "Number":
                views.append(f"v_{p.name} = {unless(p, 'None', f'{p.name}._xt_view')}")
        return fill(
            GRAPH,
            values="".join(f"{p.name}, " for p in op.schema.parameters),
            arrays="".join(f"x_{p.name}, " for p in op.runtime),
            views=views,
            node=node_of(op, list(op.runtime), "key_"),
        )

    return define(op, "graph", lines)


def several_results(op: Operator, runtime: list[Parameter]) -> list[str]:
    """Several results as Tensors, or one of a sequence, with their node."""
    asked = []
    for p in runtime:
        if p.name not in op.rules.differentiable:
            continue
        if p.kind == "Arrays":
            asked.append(f"any(map(asks_grad, {p.name}))")
        elif p.kind == "Operand":
            asked.append(f"(isinstance({p.name}, Tensor) and asks_grad({p.name}))")
        else:
            asked.append(f"({f'{p.name} is not None and ' if p.optional else ''}asks_grad({p.name}))")
    recording: list[str] = []
    if asked:
        values = ", ".join([f"list({p.name})" if p.kind == "Arrays" else p.name for p in runtime])
        arrays = ", ".join([f"x_{p.name}" for p in runtime])
        one = op.single and not op.columns
        recorded = f"record(op, {key_of(op)}, [{values}], [{arrays}], {'[t]' if one else 't'})"
        lists = [p.name for p in runtime if p.kind == "Arrays"]
        if len(asked) == len(lists) == 1:
            recording = fill(ASKED, tensors=lists[0], recorded=recorded)
        else:
            recording = [f"if flags == 0 and ({' or '.join(asked)}):", f"    {recorded}"]
    if op.single and not op.columns:
        return fill(ONE_RESULT, recording=recording)
    tensors = "[wrap(c) for c in r]"
    if op.columns:
        tensors = (
            f"as_columns(op.columns_of({key_of(op)}), {'(r,)' if op.single else 'r'}, {runtime[0].name})"
        )
    several = (
        "returns(*t)" if op.returns is not None else f"tuple(t[:{op.shown}])" if op.hidden else "tuple(t)"
    )
    return fill(
        SEVERAL_RESULTS,
        tensors=tensors,
        recording=recording,
        given="t[0]" if op.single or op.shown == 1 else several,
    )


def saved_expression(name: str, kinds: dict[str, Parameter], rules: Any) -> str:
    """What a node saves under a name that its rules ask for, where the gradients that need it are asked for."""
    at = result_index(name)
    if at is not None:
        entry = f"(None, 0, r{at})" if at else "(storage, 0, r)"
    elif kinds[name].kind == "Number":
        return f"x_{name}"
    else:
        counter = f"({name}._xt_storage if v_{name} is None else v_{name}.counter)"
        inference = f"{name}._xt_meta is not None and {name}._xt_meta.inference"
        entry = f"(save({name}, x_{name}) if {inference} else ((c := {counter}), c.version, x_{name}))"
        entry = unless(kinds[name], f"x_{name}", entry)
    users = rules.needed[name]
    if set(users) >= set(rules.differentiable):
        return entry
    condition = " or ".join(f"e_{n} is not None" for n in users)
    return f"({entry} if {condition} else None)"


def composite(
    implementation: Callable[..., Any],
    *,
    name: str | None = None,
    out: bool | str = False,
) -> Callable[..., Any]:
    """A function over Tensors as an operator; with `out`, it also takes `out=`, with "exact" of its own dtype alone."""
    if not out:
        return implementation
    exact, joins = "general" if out == "exact" else None, out == "join"

    @functools.wraps(implementation)
    def with_out(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        try:
            result = implementation(*args, **kwargs)
        except AttributeError:
            error = not_a_tensor(implementation, implementation.__name__, args, kwargs)
            if error is None:
                raise
            raise error from None
        if out is None:
            return result
        targets = [out] if isinstance(out, Tensor) else out
        sources = [result] if isinstance(result, Tensor) else result
        for place, (target, source) in enumerate(zip(targets, sources, strict=True)):
            inputs = [a for a in args if isinstance(a, Tensor)]
            write_out(implementation.__name__, target, source, inputs, exact, joins=joins, place=place)
        return out

    with_out.takes_out = True  # pyright: ignore[reportAttributeAccessIssue]
    return with_out
