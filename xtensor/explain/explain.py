"""Where does an operator come from, and what runs? `print(explain("conv2d", x, w))`.

The answer goes from the Python function through the declaration (kernel, derivative rules, variants) to the programs
that example arguments run: StableHLO, and the HLO that XLA made of it for this device.
"""

from __future__ import annotations

import difflib
import html
import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..operators.functions.deferred import source_of
from ..operators.operator import Operator
from ..tensor import Tensor
from ..xla import segments
from ..xla.segments import Known
from . import catalog
from .calls import Call, calls_in, calls_of
from .examples import example_of
from .watch import Program, watch_programs

__all__ = ["Explanation", "explain", "source"]


@dataclass(frozen=True)
class Explanation:
    """What `explain` found. Prints as text, and as a table in a notebook.

    name, kind, doc, aliases, file, line: of the operator, or of the function, method or class asked about.
    signatures: the ways to call it. rules: the derivatives, and what they save. variants: "function", "method",
    "in-place" and "out=", as they are spelled. path: the calls from what was asked about to its operators.
    programs: what the example arguments ran (none without them), each with `stablehlo`, `operations`, `hlo` and
    `custom_calls`. segments: in which segments of calls these programs have run since the process began, the commonest first.
    result: of the example call.
    """

    name: str
    kind: str
    doc: str
    file: str
    line: int
    signatures: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    rules: tuple[catalog.Rule, ...] = ()
    variants: tuple[tuple[str, str], ...] = ()
    path: tuple[Call, ...] = ()
    programs: tuple[Program, ...] = ()
    segments: tuple[Known, ...] = ()
    result: Any = field(default=None, repr=False)

    def rows(self) -> Iterator[tuple[str, str]]:
        """Label and text of everything known, in order; long texts are left to the programs' own attributes."""
        yield self.kind, f"{self.name}  ({self.file}:{self.line})"
        for signature in self.signatures:
            yield "call", signature
        if self.doc:
            yield "doc", self.doc
        if self.aliases:
            yield "aliases", ", ".join(self.aliases)
        yield from self.variants
        for rule in self.rules:
            yield f"d {rule.argument}", f"[saves {', '.join(rule.saves) or 'nothing'}]  {rule.source}"
        for call in self.path:
            yield "path", str(call)
        for program in self.programs:
            yield "program", program.title
            yield "StableHLO", program.operations_text("stablehlo")
            yield "HLO", program.operations_text("hlo")
            for target in program.custom_calls:
                yield "custom call", f"*** {target} ***"
        for segment in self.segments[:SHOWN]:
            yield "segment", str(segment)
        if len(self.segments) > SHOWN:
            yield "segments", f"{len(self.segments) - SHOWN} more in .segments"

    def __repr__(self) -> str:
        lines = []
        for label, text in self.rows():
            first, *rest = text.splitlines() or [""]
            lines.append(f"{label:>11}  {first}".rstrip())
            lines += [f"{'':>11}  {line}".rstrip() for line in rest]
        for program in self.programs:
            lines += ["", f"StableHLO of {program.title}", program.stablehlo.rstrip()]
            lines += ["", f"optimised HLO of {program.title}", shorten(program.hlo)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left;vertical-align:top'>{html.escape(label)}</th>"
            f"<td style='text-align:left'><pre style='margin:0'>{emphasised(label, text)}</pre></td></tr>"
            for label, text in self.rows()
        )
        texts = "".join(
            f"<details><summary>{what} of {html.escape(program.title)}</summary>"
            f"<pre>{html.escape(text)}</pre></details>"
            for program in self.programs
            for what, text in (("StableHLO", program.stablehlo), ("optimised HLO", program.hlo))
        )
        return f"<table>{cells}</table>{texts}"


SHOWN = 4
"""Segments of those in which a program has run that are shown."""


def emphasised(label: str, text: str) -> str:
    return f"<b>{html.escape(text)}</b>" if label == "custom call" else html.escape(text)


def shorten(text: str, limit: int = 120) -> str:
    """The first lines of a long text; the whole is in the attribute."""
    lines = text.rstrip().splitlines()
    if len(lines) <= limit:
        return "\n".join(lines)
    return "\n".join([*lines[:limit], f"... {len(lines) - limit} more lines in .programs[i].hlo"])


def explain(what: Any, *args: Any, **kwargs: Any) -> Explanation:
    """What an operator is and does: by name, or a function, a Tensor method, a module or a module's class.

    With example arguments it is called, and the programs that ran are shown. A class is explained by its `forward` on
    an example of its own: that of its class method `_example()`, which returns a module and a tuple of arguments, or
    one guessed from its constructor.

    Raises LookupError for a name that no operator has, TypeError for an object that is none of the above.
    """
    name, what = resolve(what)
    if isinstance(what, type):
        forward = forward_of(what)
        module, args = example_of(what) or (None, ())
        return explain_function(what.__name__, forward, module, args, {}, what)
    if name is None:
        return explain_function(type(what).__name__, forward_of(type(what)), what, args, kwargs)
    op = getattr(what, "operator", None)
    if op is None:
        return explain_function(name, what, None, args, kwargs)
    entry = catalog.entry_for(op)
    return explain_operator(replace(entry, name=name) if "." in name else entry, what, args, kwargs)


def resolve(what: Any) -> tuple[str | None, Any]:
    """What was asked about: a function and its name, a module's class, or a module, which has no name."""
    if isinstance(what, str):
        found = named(what)
        if found is None:
            close = difflib.get_close_matches(what.rpartition(".")[2], known_names(), 3, 0.5)
            hint = f"; there is {', '.join(close)}" if close else ""
            raise LookupError(f"no operator, method, composite or module is called {what!r}{hint}")
        return public_name(found, what), found.fget if isinstance(found, property) else found
    if isinstance(what, property):
        return property_name(what), what.fget
    if inspect.isfunction(what) or inspect.ismethod(what):
        function = getattr(what, "__func__", what)
        return method_name(function) or public_name(function, function.__name__), function
    if isinstance(what, type) or callable(getattr(type(what), "forward", None)):
        return None, what
    raise TypeError(
        f"explain() takes an operator's name, a function, a method, or a module, not {type(what).__name__}"
    )


def public_name(found: Any, asked: str) -> str:
    """The name to show: of all under which users find a function the one that they asked by, else the first."""
    places = catalog.places_of(found) if inspect.isfunction(found) else []
    last = asked.rpartition(".")[2]
    wanted = (asked, asked.partition(".")[2], last)
    return next((name for name in wanted if name in places), places[0] if places else last)


PLACES = ("nn.functional", "nn", *(name for name in catalog.NAMESPACES if name != "nn.functional"))


def named(name: str) -> Any:
    """What a name stands for in a user's program: `add`, `add_`, `Tensor.T`, `linalg.svd`, `F.relu`, `nn.Conv2d`; or None."""
    root: Any = sys.modules[__name__.partition(".")[0]]
    parts = name.split(".")
    if parts[0] in (root.__name__, "torch"):
        del parts[0]
    if parts[:1] == ["F"]:
        parts[:1] = ["nn", "functional"]
    for place in ("", *PLACES) if len(parts) == 1 else ("",):
        found = root
        for part in (*place.split("."), *parts) if place else parts:
            found = getattr(found, part, None)
        if inspect.isfunction(found) or isinstance(found, property) or hasattr(found, "forward"):
            return found
    op = catalog.declared(parts[-1])
    if op is not None and len(parts) == 1:
        return op.function
    return getattr(Tensor, parts[-1], None) or catalog.composite_named(parts[-1]) if len(parts) == 1 else None


def known_names() -> set[str]:
    """The names of operators and methods, for a reader who misspelled one."""
    spaces = [*catalog.families().values(), *catalog.namespaces().values()]
    return {
        name for space in spaces for name in [*getattr(space, "__all__", ()), *catalog.exported(space)]
    } | {name for name in vars(Tensor) if not name.startswith("_")}


def method_name(function: Any) -> str | None:
    """The name under which Tensor has a function that was written under another one."""
    if getattr(function, "operator", None) is not None:
        return None
    return next((name for name, value in vars(Tensor).items() if value is function), None)


def property_name(value: property) -> str:
    return next((name for name, found in vars(Tensor).items() if found is value), "property")


def forward_of(cls: type) -> Callable[..., Any]:
    forward = getattr(cls, "forward", None)
    if forward is None:
        raise TypeError(f"explain() of a class needs one with a `forward`; {cls.__name__} has none")
    return forward


def explain_operator(entry: catalog.Entry, function: Any, args: Any, kwargs: Any) -> Explanation:
    programs, result = watched(function, args, kwargs)
    file, line = entry.location
    path = (Call(0, f"xtensor.{entry.name}", file, line, entry.kind),)
    if isinstance(result, Tensor) and entry.kind == "view":
        path += (Call(1, f"no program: {geometry_text(result)}", file, line, "geometry"),)
    return Explanation(
        name=entry.name,
        kind=entry.kind,
        doc=entry.doc,
        file=file,
        line=line,
        signatures=tuple(str(s) for s in entry.spellings),
        aliases=entry.aliases,
        rules=entry.rules,
        variants=tuple(variants_of(entry)),
        path=path,
        programs=programs,
        segments=tuple(segments.known(p.program for p in programs)),
        result=result,
    )


def explain_function(
    name: str, function: Any, module: Any, args: Any, kwargs: Any, cls: type | None = None
) -> Explanation:
    """A composite, a method written by hand, or the `forward` of a module."""
    cls = cls or (type(module) if module is not None else None)
    programs, result = watched(function if module is None else module, args, kwargs)
    file, line = catalog.location_of(function)
    path = tuple(calls_of(programs, cls) if programs else calls_in(function, cls))
    operators = [
        op for call in path if isinstance(op := catalog.declared(call.name.rpartition(".")[2]), Operator)
    ]
    return Explanation(
        name=name,
        kind="composite" if cls is None else "module",
        doc=inspect.cleandoc(function.__doc__ or ""),
        file=file,
        line=line,
        signatures=(f"{name}{catalog.unquoted(inspect.signature(function))}",),
        rules=tuple(
            catalog.Rule(f"{op.name}.{r.argument}", r.source, r.saves)
            for op in dict.fromkeys(operators)
            for r in catalog.entry_for(op).rules
        ),
        path=path,
        programs=programs,
        segments=tuple(segments.known(p.program for p in programs)),
        result=result,
    )


def watched(function: Any, args: Any, kwargs: Any) -> tuple[tuple[Program, ...], Any]:
    if not args and not kwargs:
        return (), None
    with watch_programs() as programs:
        result = function(*args, **kwargs)
    return tuple(programs), result


def geometry_text(tensor: Tensor) -> str:
    return f"sizes {tuple(tensor.shape)}, strides {tensor.stride()}, offset {tensor.storage_offset()}"


def variants_of(entry: catalog.Entry) -> Iterator[tuple[str, str]]:
    op = entry.op
    for spelling in entry.deprecated:
        yield "deprecated", spelling
    yield "function", f"xtensor.{entry.name}"
    for place in catalog.places_of(entry.function):
        if place != entry.name and place not in entry.aliases:
            yield "also", f"xtensor.{place}"
    if op.is_method:
        yield "method", f"Tensor.{op.name}"
    if getattr(op, "inplace", None) is not None:
        yield "in-place", f"Tensor.{op.name}_"
    if entry.takes_out:
        yield "out=", f"xtensor.{entry.name}(..., out=tensor)"


def source(what: Any) -> str:
    """The Python text of an operator's function as it was generated: `print(source("add"))`, `source("add_")`."""
    function = resolve(what)[1]
    made = getattr(function, "operator", None) is not None
    return source_of(function) if made else inspect.getsource(function)
