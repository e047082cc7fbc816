"""The Python functions of operators, generated once per declaration from its schema.

A generated function has the operator's own signature, so nothing parses arguments at call time. It handles the common
case inline (plain Tensors and Python numbers, default modes) and leaves every other to `dispatch`. To read one:
`print(xtensor.ops.source("add"))`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..engine import modes
from ..engine.graph import next_sequence_nr
from ..geometry import contiguous_strides
from ..storage import Storage
from ..tensor import Tensor, asks_grad, edge_of, read_view, wrap
from ..xla.number_arrays import NUMBER_ARRAYS
from . import dispatch
from .deferred import deferred
from .inplace import run_inplace
from .known import run_known
from .older import call_older
from .operator import Operator
from .reading import fresh, whole
from .saved import result_index, save
from .schema import EMPTY, Parameter
from .write import write_out

__all__ = ["composite", "function", "inplace", "operator_method"]

AXIS_NAMES = {"dim": "axis", "keepdim": "keepdims"}


def contiguous_view(view: Any) -> bool:
    return view.strides == contiguous_strides(view.sizes)


def is_number(value: Any) -> bool:
    return isinstance(value, dispatch.NUMBERS) or (
        hasattr(value, "dtype") and getattr(value, "shape", None) == ()
    )


RECIPROCAL = ("__rdiv__", "__rtruediv__")


def no_tensor(dunder: str, value: Any) -> Exception:
    """The error of a dunder called by hand on what is no Tensor."""
    kind = type(value).__name__
    if dunder in RECIPROCAL:
        return AttributeError(f"'{kind}' object has no attribute 'reciprocal'")
    return TypeError(f"descriptor '{dunder}' for 'xtensor.Tensor' objects doesn't apply to a '{kind}' object")


NAMESPACE: dict[str, Any] = {
    "Storage": Storage,
    "Tensor": Tensor,
    "__name__": "xtensor.ops.made",
    "asks_grad": asks_grad,
    "call_older": call_older,
    "contiguous_view": contiguous_view,
    "dispatch": dispatch,
    "edge_of": edge_of,
    "fresh": fresh,
    "getframe": sys._getframe,
    "is_number": is_number,
    "sole_owner": Storage.sole_owner,
    "new": object.__new__,
    "next_nr": next_sequence_nr,
    "no_tensor": no_tensor,
    "odd": dispatch.odd,
    "read": read_view,
    "save": save,
    "run_known": run_known,
    "whole": whole,
    "run_inplace": run_inplace,
    "SCALARS": dispatch.SCALARS,
    "scalars": NUMBER_ARRAYS,
    "state": modes.state,
    "wrap": wrap,
}


def header(op: Operator, out: bool, varargs: str | None) -> str:
    """The parameter list, with defaults by name so that any object can be one."""
    parts: list[str] = []
    starred = False
    for p in op.schema.parameters:
        if p.keyword_only and not starred:
            parts.append("*rest" if op.deprecated else "*")
            starred = True
        if p.name == varargs:
            parts.append(f"*{p.name}_")
            starred = True
        # `cumsum(x, axis=0)`: the other name may stand for one that is required.
        given = p.required and p.name != varargs and not (op.kind == "reduction" and p.name in AXIS_NAMES)
        parts.append(p.name if given else f"{p.name}=default_{p.name}")
    extra = []
    if op.kind == "reduction":
        extra = [f"{AXIS_NAMES[p.name]}=None" for p in op.schema.parameters if p.name in AXIS_NAMES]
    if (out or extra) and not starred:
        parts.append("*")
    if out:
        parts.append("out=None")
    return ", ".join(parts + extra)


# What every generated function reads.
RESERVED = frozenset(("kind", *NAMESPACE))


def function(op: Operator, out: bool = True, varargs: str | None = None) -> Callable[..., Any]:
    """The operator's public function; also its method."""
    for p in op.schema.parameters:
        if p.name in RESERVED:
            raise TypeError(
                f"{op.name}(): no parameter can have the name '{p.name}', which the generated code uses"
            )
    return define(
        op, op.name, lambda: (header(op, out, varargs), older_lines(op, out=out) + body(op, out, varargs))
    )


def older_lines(op: Operator, *, out: bool = False, inplace: bool = False) -> list[str]:
    """The way out for a deprecated spelling, which has more positional arguments."""
    if not op.deprecated:
        return []
    given = "".join(f"{p.name}, " for p in op.schema.parameters if not p.keyword_only)
    options = ", ".join(
        f"{p.name!r}: {p.name} != default_{p.name}" for p in op.schema.parameters if p.keyword_only
    )
    call = f"call_older(op, ({given}*rest), {{{options}}}, {'out' if out else None}, {inplace})"
    return ["if rest:", f"    return {call}"]


def operator_method(op: Operator, dunder: str, reflected: bool = False) -> Callable[..., Any]:
    """The function for an arithmetic dunder: NotImplemented for operands that are none, an error where `self` is no Tensor."""
    own = "other" if reflected else "input"
    # Called by hand on a number, PyTorch's floor division and most of its reflected operators work; the others refuse.
    strict = dunder in RECIPROCAL if reflected else dunder != "__floordiv__"

    def parts() -> tuple[str, list[str]]:
        lines = ["input, other = other, input"] if reflected else []
        others = [p for p in op.schema.parameters if p.name not in ("input", "other")]
        lines += [f"{p.name} = default_{p.name}" for p in others]
        given = "input" if reflected else "other"
        check = [
            f"kind = type({given})",
            f"if kind not in SCALARS and not isinstance({given}, Tensor) and not is_number({given}):",
            "    return NotImplemented",
        ]
        if strict:
            check += [f"if not isinstance({own}, Tensor):", f"    raise no_tensor({dunder!r}, {own})"]
        return "input, other", lines + body(op, False, None, own if strict else None, check)

    return define(op, f"__{op.name}__", parts)


def define(op: Operator, name: str, parts: Callable[[], tuple[str, list[str]]]) -> Any:
    """A function of that name with the parameter list and the lines that `parts()` gives, compiled when first called."""

    def make() -> tuple[str, dict[str, Any]]:
        parameters, lines = parts()
        text = f"def {name}({parameters}):\n" + "".join(f"    {line}\n" for line in lines)
        namespace = dict(NAMESPACE)
        namespace.update(
            {f"default_{p.name}": None if p.required else p.default for p in op.schema.parameters}
        )
        namespace.update(
            op=op,
            op_run=op.call,
            programs=op.programs,
            variants=op.variants,
            NodeClass=op.node_class,
            returns=op.returns,
        )
        return text, namespace

    made = deferred(name, f"<xtensor operator {op.name}: {name}>", make, op.kernel)
    made.operator = op
    return made


# What the inline path calls its own; an operator with a parameter of that name does without the path.
LOCALS = frozenset("aval c counter flags m node previous program r r1 r2 storage t".split())


def is_inlined(op: Operator) -> bool:
    """Whether the common case of an operator is in its function."""
    return LOCALS.isdisjoint(op.schema.names())


def is_wide(op: Operator) -> bool:
    """Whether an operator takes a sequence of tensors or gives several results."""
    return not (op.single or op.hidden) or any(p.kind == "Arrays" for p in op.runtime)


def body(
    op: Operator, out: bool, varargs: str | None, own: str | None = None, check: Sequence[str] = ()
) -> list[str]:
    """The lines of the function: the common case inline (of a Tensor as the operand `own`), after a check everything else."""
    lines: list[str] = []
    if op.kind == "reduction":
        for p in op.schema.parameters:
            if p.name in AXIS_NAMES:
                other = AXIS_NAMES[p.name]
                lines += [f"if {other} is not None:", f"    {p.name} = {other}"]
    if varargs:
        lines += [
            f"if {varargs}_:",
            f"    {varargs} = {varargs}_[0] if len({varargs}_) == 1 and not isinstance({varargs}_[0], int) else {varargs}_",
        ]
    everything = "(" + "".join(f"{p.name}, " for p in op.schema.parameters) + ")"
    slow = f"return op_run({everything}{', out' if out else ''})"
    if is_inlined(op):
        lines += fast_path(op, out, own)
    lines += check
    lines += [
        f"if state.mode <= 1{' and out is None' if out else ''}:",
        f"    known = run_known(op, {everything})",
        "    if known is not None:",
        "        return known",
    ]
    return [*lines, slow]


def fast_path(op: Operator, out: bool, own: str | None) -> list[str]:
    """Plain Tensors and numbers in the default modes: read, run, wrap, record."""
    runtime = [replace(p, kind="Array", optional=False) if p.name == own else p for p in op.runtime]
    tensors = [p for p in runtime if p.kind != "Number"]
    # What is no Tensor has no `_xt_view`, which leads out of the `try`.
    lines = ["flags = state.mode", f"if flags <= 1{' and out is None' if out else ''}:"]
    inner: list[str] = ["try:"]
    deep: list[str] = []
    plain: list[str] = []
    for p in tensors:
        deep += operand_lines(p, "whole" if op.views == "fold" else "fresh")
        if op.kind == "pointwise":
            plain.append(f"(v_{p.name} is None or contiguous_view(v_{p.name}))")
    arguments = []
    for p in runtime:
        if p.kind == "Number":
            deep += number_lines(p)
        arguments.append(f"x_{p.name}")
    key = "(" + "".join(f"{p.name}, " for p in op.static) + ")"
    if plain:
        deep.append(f"if not ({' and '.join(plain)}): raise LookupError")
    deep += odd_lines(op)
    deep.append(f"program = programs[{key}]")
    deep.append(f"{results_of(op)} = program({', '.join(arguments)})")
    inner += [f"    {line}" for line in deep]
    inner += ["except Exception:", "    pass", "else:"]
    tail = wide_lines(op, key, runtime) if is_wide(op) else result_lines(op, runtime)
    inner += [f"    {line}" for line in tail]
    return lines + [f"    {line}" for line in inner]


def result_lines(op: Operator, runtime: list[Parameter]) -> list[str]:
    """One result as a Tensor, with its node."""
    lines = [
        "storage = new(Storage)",
        "storage.array = r",
        "storage.version = storage.writes = storage.address = 0",
        "storage.shared = False",
        "storage.cover = None",
        "t = new(Tensor)",
        "t._xt_storage = storage",
        "t._xt_view = t._xt_edge = t._xt_meta = None",
    ]
    if op.rules.differentiable and not op.boolean:
        lines += record_lines(op, {p.name: p for p in runtime})
    return [*lines, "return t"]


def wide_lines(op: Operator, key: str, runtime: list[Parameter]) -> list[str]:
    """Several results as Tensors, or one of a sequence, with their node."""
    lines = ["t = [wrap(r)]" if op.single else "t = [wrap(c) for c in r]"]
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
    if asked:
        values = ", ".join([f"list({p.name})" if p.kind == "Arrays" else p.name for p in runtime])
        arrays = ", ".join([f"x_{p.name}" for p in runtime])
        lines += [
            f"if flags == 0 and ({' or '.join(asked)}):",
            f"    dispatch.record(op, {key}, [{values}], [{arrays}], t)",
        ]
    if op.single or op.hidden:
        return [*lines, "return t[0]"]
    return [*lines, "return returns(*t)" if op.returns is not None else "return tuple(t)"]


def results_of(op: Operator) -> str:
    if is_wide(op):
        return "r"
    return ", ".join(["r", *[f"r{i}" for i in range(1, op.hidden + 1)]])


def odd_lines(op: Operator) -> list[str]:
    """The way out for a bool or a float where an int chooses the program, since equal keys find the int's."""
    return [
        f"if {p.name} is not None and type({p.name}) is not int and odd({p.name}): raise LookupError"
        for p in op.static
        if p.integral
    ]


def operand_lines(p: Parameter, reader: str = "read") -> list[str]:
    n = p.name
    if p.kind == "Arrays":
        return [
            f"if type({n}) is not list and type({n}) is not tuple: raise LookupError",
            f"x_{n} = tuple([t._xt_storage.array if t._xt_view is None else {reader}(t._xt_storage, t._xt_view) for t in {n}])",
        ]
    read = [
        f"v_{n} = {n}._xt_view",
        f"x_{n} = {n}._xt_storage.array if v_{n} is None else {reader}({n}._xt_storage, v_{n})",
    ]
    if p.kind == "Array" and not p.optional:
        return read
    if p.kind == "Array":
        return [f"if {n} is None:", f"    v_{n} = x_{n} = None", "else:", *[f"    {line}" for line in read]]
    # A number bound for the int64 range check, or anything unusual, takes the complete path.
    lines = [f"if type({n}) in SCALARS:", f"    v_{n} = None", f"    x_{n} = scalars[type({n}), {n}]"]
    if p.optional:
        lines += [f"elif {n} is None:", f"    v_{n} = x_{n} = None"]
    return [*lines, "else:", *[f"    {line}" for line in read]]


def number_lines(p: Parameter) -> list[str]:
    n = p.name
    if p.default is EMPTY or p.default is None:
        allowed = f"{n} is not None and " if p.default is None else ""
        take = f"scalars[type({n}), {n}]"
        return [
            f"if {allowed}type({n}) not in SCALARS: raise LookupError",
            f"x_{n} = {take if not allowed else f'None if {n} is None else {take}'}",
        ]
    return [
        f"if type({n}) not in SCALARS: raise LookupError",
        f"x_{n} = None if {n} == default_{n} else scalars[type({n}), {n}]",
    ]


def record_lines(op: Operator, kinds: dict[str, Parameter]) -> list[str]:
    """Recording inline: the edges of differentiable arguments, and what the rules need saved for those that have one."""
    rules = op.rules
    lines = ["if flags == 0:"]
    inner: list[str] = []
    for n in rules.differentiable:
        edge = f"({n}._xt_edge if v_{n} is None else edge_of({n}))"
        p = kinds[n]
        if p.kind == "Operand":
            edge = f"None if type({n}) in SCALARS{f' or {n} is None' if p.optional else ''} else {edge}"
        elif p.optional:
            edge = f"None if {n} is None else {edge}"
        inner.append(f"e_{n} = {edge}")
    any_edge = " or ".join(f"e_{n} is not None" for n in rules.differentiable)
    inner.append(f"if {any_edge}:")
    deep: list[str] = []
    for n in rules.differentiable:
        deep.append(f"if e_{n} is not None and type(e_{n}) is not tuple: e_{n} = e_{n}.edge()")
    avals = "aval" if op.single else f"(aval, {''.join(f'r{i}.aval, ' for i in range(1, op.hidden + 1))})"
    deep += [
        "aval = r.aval",
        # Only a `dtype=` argument can make an integer of what asks for a gradient.
        "if aval.dtype.kind in 'fcV':" if any(p.name == "dtype" for p in op.static) else "if True:",
        "    node = new(NodeClass)",
        "    node.edges = (" + "".join(f"e_{n}, " for n in rules.differentiable) + ")",
        "    node.targets = ("
        + "".join(f"None if e_{n} is None else x_{n}.aval, " for n in rules.differentiable)
        + ")",
        "    node.sequence_nr = next_nr()",
        "    node.meta = None",
        "    node.key = (" + "".join(f"{p.name}, " for p in op.static) + ")",
        f"    node.aval = {avals}",
    ]
    shapes = []
    for n in rules.shapes:
        p = kinds[n]
        shape = f"x_{n}.shape"
        if p.kind == "Operand":
            shape = f"(() if type({n}) in SCALARS{f' or {n} is None' if p.optional else ''} else {shape})"
        elif p.optional:
            shape = f"(() if {n} is None else {shape})"
        shapes.append(shape)
    deep.append(f"    node.shapes = ({''.join(s + ', ' for s in shapes)})")
    saved = []
    for n in rules.saved:
        saved.append(saved_expression(n, kinds, rules))
    deep.append(f"    node.saved = ({''.join(s + ', ' for s in saved)})")
    deep.append("    t._xt_edge = (node, 0)")
    inner += [f"    {line}" for line in deep]
    return lines + [f"    {line}" for line in inner]


def saved_expression(name: str, kinds: dict[str, Parameter], rules: Any) -> str:
    at = result_index(name)
    if at is not None:
        entry = f"(None, 0, r{at})" if at else "(storage, 0, r)"
    elif kinds[name].kind == "Number":
        return f"x_{name}"
    else:
        counter = f"({name}._xt_storage if v_{name} is None else v_{name}.counter)"
        entry = f"((c := {counter}), c.version, x_{name})"
        inference = f"{name}._xt_meta is not None and {name}._xt_meta.inference"
        entry = f"(save({name}, x_{name}) if {inference} else {entry})"
        p = kinds[name]
        if p.kind == "Operand":
            entry = f"(x_{name} if type({name}) in SCALARS{f' or {name} is None' if p.optional else ''} else {entry})"
        elif p.optional:
            entry = f"(None if {name} is None else {entry})"
    users = rules.needed[name]
    if set(users) >= set(rules.differentiable):
        return entry
    condition = " or ".join(f"e_{n} is not None" for n in users)
    return f"({entry} if {condition} else None)"


def inplace(op: Operator) -> Callable[..., Any]:
    """The in-place variant `name_`: the result replaces the values of the first argument."""

    def parts() -> tuple[str, list[str]]:
        lines = older_lines(op, inplace=True)
        if is_inlined(op) and not is_wide(op):
            lines += inplace_fast_path(op)
        lines.append("return run_inplace(op, (" + "".join(f"{p.name}, " for p in op.schema.parameters) + "))")
        return header(op, False, None), lines

    made = define(op, op.name + "_", parts)
    made.__doc__ = f"In-place version of `{op.name}`."
    return made


def inplace_fast_path(op: Operator) -> list[str]:
    """A whole tensor written by plain Tensors and numbers, of which none asks for a gradient."""
    target, *others = op.runtime
    t = target.name
    deep = [
        f"storage = {t}._xt_storage",
        f"m = {t}._xt_meta",
        f"if {t}._xt_view is not None or (m is not None and m.inference): raise LookupError",
        f"if flags == 0 and {t}._xt_edge is not None: raise LookupError",
        "donate = sole_owner(storage)",
    ]
    arguments = []
    for p in others:
        n = p.name
        arguments.append(f", x_{n}")
        if p.kind == "Number":
            deep += number_lines(p)
            continue
        deep += operand_lines(p, "fresh" if op.kind == "pointwise" else "read")
        plain = [
            f"if {n}._xt_storage is storage or (flags == 0 and ({n}._xt_edge if v_{n} is None else edge_of({n})) is not None):",
            "    raise LookupError",
        ]
        if p.kind == "Operand" or p.optional:
            deep += [f"if type({n}) not in SCALARS and {n} is not None:", *[f"    {line}" for line in plain]]
        else:
            deep += plain
    key = "(" + "".join(f"{p.name}, " for p in op.static) + ")"
    deep += odd_lines(op)
    deep += [
        f"program = variants['inplace', {key}, donate]",
        f"r = program(storage.array{''.join(arguments)})",
    ]
    tail = [
        "storage.array = r",
        "storage.writes += 1",
        "storage.version += 1",
        "storage.shared = False",
        "f = getframe(1)",
        f"storage.writer = (f.f_code, f.f_lineno, '{op.name}_')",
        f"return {t}",
    ]
    return [
        "flags = state.mode",
        "if flags <= 1:",
        "    try:",
        *[f"        {line}" for line in deep],
        "    except Exception:",
        "        pass",
        "    else:",
        *[f"        {line}" for line in tail],
    ]


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
        result = implementation(*args, **kwargs)
        if out is None:
            return result
        targets = [out] if isinstance(out, Tensor) else out
        sources = [result] if isinstance(result, Tensor) else result
        for target, source in zip(targets, sources, strict=True):
            inputs = [a for a in args if isinstance(a, Tensor)]
            write_out(implementation.__name__, target, source, inputs, exact, joins=joins)
        return out

    with_out.takes_out = True  # pyright: ignore[reportAttributeAccessIssue]
    return with_out
