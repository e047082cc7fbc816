"""What there is to know of every operator, read off its declaration: for `explain`, stubs and reference pages."""

from __future__ import annotations

import ast
import inspect
import operator
import pathlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..operators.derivatives import FROM_KERNEL
from ..operators.functions.deferred import materialized
from ..operators.operator import REGISTRY, Operator
from ..operators.schema import EMPTY
from ..operators.views import VIEWS
from ..xla.cache import bounded

__all__ = [
    "Entry",
    "Rule",
    "Spelling",
    "composite_named",
    "declared",
    "entries_in",
    "entries_of",
    "entry_for",
    "exported",
    "families",
    "location_of",
    "namespaces",
    "places_of",
    "unquoted",
]

PACKAGE = pathlib.Path(__file__).resolve().parent.parent
# The modules, beside `xtensor` itself, in which users find functions of tensors.
NAMESPACES = ("nn.functional", "linalg", "fft", "special", "signal.windows", "masked")
AXIS_NAMES = {"dim": "axis", "keepdim": "keepdims"}
TENSOR_NAMES = {
    "Array": "Tensor",
    "Operand": "Tensor | Number",
    "Number": "Number",
    "Arrays": "Sequence[Tensor]",
}


@dataclass(frozen=True)
class Rule:
    """A derivative rule: whose gradient, its source text, and what it makes the node save."""

    argument: str
    source: str
    saves: tuple[str, ...]


class Text(str):
    """An annotation that prints without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Spelling:
    """One way to call an operator: the parameters (name, annotation, default) with their kinds, and what comes back."""

    name: str
    signature: inspect.Signature

    def __str__(self) -> str:
        return f"{self.name}{unquoted(self.signature)}"


def unquoted(signature: inspect.Signature) -> inspect.Signature:
    """The signature with annotations that print as they were written."""

    def text(annotation: Any) -> Any:
        return Text(annotation) if isinstance(annotation, str) else annotation

    parameters = [
        p.replace(annotation=text(p.annotation), default=shown(p.default))
        for p in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters, return_annotation=text(signature.return_annotation))


@dataclass(frozen=True)
class Entry:
    """One operator or composite: its public name, family, kind, function and, where declared, the declaration."""

    name: str
    family: str
    kind: str
    function: Callable[..., Any]
    op: Any

    @property
    def body(self) -> Callable[..., Any]:
        """The function that a person wrote: the kernel, the geometry, or the composite itself."""
        if self.op is None:
            return inspect.unwrap(self.function)
        return self.op.kernel if isinstance(self.op, Operator) else self.op.make

    @property
    def module(self) -> str:
        """The module in which it is declared, below the package: `ops.network.convolution`."""
        return inspect.unwrap(self.body).__module__.partition(".")[2]

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.body.__doc__ or "")

    @property
    def aliases(self) -> tuple[str, ...]:
        return self.op.aliases if self.op is not None else ()

    @property
    def location(self) -> tuple[str, int]:
        """Where it is declared: the file, relative to the package's parent, and the line."""
        return location_of(self.body)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(rules_of(self.op)) if isinstance(self.op, Operator) else ()

    @property
    def takes_out(self) -> bool:
        return bool(getattr(self.op or self.function, "takes_out", False))

    @property
    def returns(self) -> tuple[str, ...] | None:
        """The names of several results, where they have names."""
        found = getattr(self.op, "returns", None)
        return None if found is None else tuple(found._fields)

    @property
    def deprecated(self) -> tuple[str, ...]:
        """The orders of positional arguments that still work, with a warning."""
        return tuple(f"{self.name}({', '.join(names)})" for names in getattr(self.op, "deprecated", ()))

    @property
    def spellings(self) -> tuple[Spelling, ...]:
        """The signatures with which it can be called, as stubs write them."""
        return tuple(spellings_of(self))


@bounded(256)
def parsed(path: str) -> tuple[str, dict[int, ast.FunctionDef]]:
    """The source of a file and its functions by the line on which they start, decorators included."""
    text = pathlib.Path(path).read_text("utf-8")
    functions = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            functions[min([node.lineno, *[d.lineno for d in node.decorator_list]])] = node
    return text, functions


def location_of(function: Callable[..., Any]) -> tuple[str, int]:
    """The file, relative to the package's parent where it lies inside, and the line of the function's own `def`."""
    code = inspect.unwrap(function).__code__
    path = pathlib.Path(code.co_filename)
    try:
        node = parsed(str(path))[1].get(code.co_firstlineno)
    except (OSError, SyntaxError):
        node = None
    line = code.co_firstlineno if node is None else node.lineno
    shown = path.relative_to(PACKAGE.parent).as_posix() if path.is_relative_to(PACKAGE) else str(path)
    return shown, line


def shown(default: Any) -> Any:
    """A default as it prints: `...` for an object that only means "not given"."""
    return Text("...") if default is ... or type(default) is object else default


# -- entries


def public_names(family: Any) -> Iterator[tuple[str, Any]]:
    for name in family.__all__:
        value = getattr(family, name)
        if inspect.isfunction(value):
            yield name, value


def about_tensors(function: Callable[..., Any]) -> bool:
    """Whether a function takes or makes tensors; settings and queries do neither."""
    return any(
        re.search(r"\b(Tensor|Any)\b", str(a)) for a in inspect.unwrap(function).__annotations__.values()
    )


def entries_of(family_name: str, family: Any) -> list[Entry]:
    """Every operator and composite that a family exports, each once, under its first name."""
    found: dict[int, Entry] = {}
    aliases: set[int] = set()
    for name, value in public_names(family):
        op = getattr(value, "operator", None)
        if op is not None and op.function is value:
            key = id(op)
            if key not in found:
                first = op.name if op.name in family.__all__ else name
                found[key] = Entry(first, family_name, op.kind, value, op)
        elif op is None and id(value) not in aliases and about_tensors(value):
            aliases.add(id(value))
            found[id(value)] = Entry(name, family_name, "composite", value, None)
    return list(found.values())


def root() -> Any:
    return sys.modules[__name__.partition(".")[0]]


def families() -> dict[str, Any]:
    """The operator families, by name: the modules of `xtensor.ops` whose functions users find in `xtensor` or in
    `xtensor.nn.functional`.
    """
    name = __name__.partition(".")[0]
    faces = [sys.modules[face] for face in (name, f"{name}.nn.functional") if face in sys.modules]
    found = {
        path.rpartition(".")[2]: module
        for path, module in sys.modules.items()
        if path.startswith(f"{name}.ops.") and getattr(module, "__all__", None)
    }
    return {
        name: module
        for name, module in sorted(found.items())
        if any(getattr(face, n, None) is getattr(module, n) for n in module.__all__ for face in faces)
    }


def namespaces() -> dict[str, Any]:
    """The public modules of functions of tensors, by their name under `xtensor`: `linalg`, `signal.windows`."""
    return {name: operator.attrgetter(name)(root()) for name in NAMESPACES}


def exported(namespace: Any) -> dict[str, Callable[..., Any]]:
    """The public functions of a namespace, by name, whatever file they are written in."""
    names = getattr(namespace, "__all__", None) or vars(namespace)
    return {n: v for n in sorted(names) if n[0] != "_" and inspect.isfunction(v := getattr(namespace, n))}


def entries_in(name: str, namespace: Any) -> list[Entry]:
    """Every function of a namespace under its full name, `linalg.inv`; in-place forms go with their operators."""
    found = []
    for function_name, value in exported(namespace).items():
        op = getattr(value, "operator", None)
        if op is None or op.function is value:
            kind = "composite" if op is None else op.kind
            found.append(Entry(f"{name}.{function_name}", name, kind, value, op))
    return found


@bounded(1)
def places() -> dict[int, list[str]]:
    """The names under which users find each function, by its identity: what `xtensor` loads when asked included."""
    found: dict[int, list[str]] = {}
    for name in dir(root()):
        if inspect.isfunction(value := getattr(root(), name)):
            found.setdefault(id(value), []).append(name)
    for name, namespace in namespaces().items():
        for function_name, value in exported(namespace).items():
            found.setdefault(id(value), []).append(f"{name}.{function_name}")
    return found


def places_of(function: Callable[..., Any]) -> list[str]:
    """The names under which users find a function: `det` and `linalg.det`; its own name comes first."""
    op = getattr(function, "operator", None)
    own = function.__name__ if op is None else op.name
    return sorted(places().get(id(function), ()), key=lambda name: name != own)


def composite_named(name: str) -> Any:
    """The composite of this name that some family exports, or None."""
    return next((getattr(f, name) for f in families().values() if name in f.__all__), None)


def entry_for(op: Any) -> Entry:
    """The entry of a declared operator or view, exported or not, under the first name that users find it by."""
    module = inspect.unwrap(op.kernel if isinstance(op, Operator) else op.make).__module__
    name = next(iter(places_of(op.function)), op.name)
    return Entry(name, module.rpartition(".")[2], op.kind, op.function, op)


def declared(name: str) -> Any:
    """The declared operator or view of this name or alias, or None."""
    found = REGISTRY.get(name) or VIEWS.get(name)
    if found is None:
        found = next((o for o in (*REGISTRY.values(), *VIEWS.values()) if name in o.aliases), None)
    return found


# -- rules


def rules_of(op: Operator) -> Iterator[Rule]:
    rules = op.rules
    texts = rule_texts(op)
    for argument in rules.differentiable:
        wanted = rules.parameters[argument]
        saves = [w for w in wanted if w in rules.saved or w.endswith("_shape")]
        if "result" in wanted and not rules.schema.single:
            saves.append("results")
        yield Rule(
            argument,
            texts.get(argument) or rule_source(rules.functions[argument]),
            tuple(dict.fromkeys(saves)),
        )


def rule_source(rule: Any) -> str:
    if rule is FROM_KERNEL:
        return "FROM_KERNEL"
    try:
        return inspect.cleandoc("\n" + inspect.getsource(rule))
    except (OSError, TypeError):
        return getattr(rule, "__name__", repr(rule))


def rule_texts(op: Operator) -> dict[str, str]:
    """The text of each rule in the declaration's `derivatives=`; what it names is shown too."""
    kernel = inspect.unwrap(op.kernel)
    try:
        text, functions = parsed(kernel.__code__.co_filename)
    except (OSError, AttributeError):
        return {}
    node = functions.get(kernel.__code__.co_firstlineno)
    given = None
    for call in node.decorator_list if node is not None else ():
        if isinstance(call, ast.Call):
            given = next((k.value for k in call.keywords if k.arg == "derivatives"), given)
    pairs: list[tuple[str, ast.expr]] = []
    if isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id == "dict":
        pairs = [(k.arg, k.value) for k in given.keywords if k.arg]
    elif isinstance(given, ast.Dict):
        pairs = [
            (str(k.value), v)
            for k, v in zip(given.keys, given.values, strict=True)
            if isinstance(k, ast.Constant)
        ]
    found = {}
    for argument, value in pairs:
        source = ast.get_source_segment(text, value) or ""
        rule = op.rules.functions.get(argument)
        if not isinstance(value, ast.Lambda) and inspect.isfunction(rule) and rule.__name__ != "<lambda>":
            source += "\n" + inspect.cleandoc("\n" + inspect.getsource(rule))
        found[argument] = source
    return found


# -- spellings


def spellings_of(entry: Entry) -> Iterator[Spelling]:
    if entry.op is None:
        yield Spelling(entry.name, inspect.signature(entry.body))
        return
    if isinstance(entry.op, Operator):
        parameters = list(operator_parameters(entry))
        returns = returned(entry)
    else:
        own = inspect.signature(entry.op.make)
        parameters = [parameter("input", "Tensor"), *list(own.parameters.values())[1:]]
        for p in list(parameters):
            if p.name in AXIS_NAMES:
                annotation = p.annotation if p.default is None else f"{p.annotation} | None"
                parameters.append(parameter(AXIS_NAMES[p.name], str(annotation), None, True))
        returns = "tuple[Tensor, ...]" if entry.op.multiple else "Tensor"
    yield Spelling(entry.name, inspect.Signature(parameters, return_annotation=returns))
    star = star_name(entry.function)
    if star in {p.name for p in parameters}:
        yield Spelling(entry.name, inspect.Signature(starred(parameters, star), return_annotation=returns))


def star_name(function: Callable[..., Any]) -> str:
    """The name of the parameter that a generated function also takes spread out: `dims` for its `*dims_`."""
    code = materialized(function).__code__
    if not code.co_flags & inspect.CO_VARARGS:
        return ""
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount].removesuffix("_")


def starred(parameters: list[inspect.Parameter], name: str) -> list[inspect.Parameter]:
    """The parameters with the sequence `name` spread out: `permute(input, *dims)`."""
    kinds = inspect.Parameter
    made = []
    seen = False
    for p in parameters:
        if p.name == name:
            made.append(kinds(p.name, kinds.VAR_POSITIONAL, annotation="int"))
            seen = True
        else:
            made.append(p.replace(kind=kinds.KEYWORD_ONLY) if seen else p)
    return made


def parameter(
    name: str, annotation: str, default: Any = EMPTY, keyword_only: bool = False
) -> inspect.Parameter:
    kinds = inspect.Parameter
    kind = kinds.KEYWORD_ONLY if keyword_only else kinds.POSITIONAL_OR_KEYWORD
    return kinds(name, kind, default=default, annotation=annotation)


def operator_parameters(entry: Entry) -> Iterator[inspect.Parameter]:
    op = entry.op
    for p in op.schema.parameters:
        names = [part.strip() for part in p.annotation.split("|")]
        yield parameter(
            p.name, " | ".join([str(TENSOR_NAMES.get(n, n)) for n in names]), p.default, p.keyword_only
        )
    for p in op.schema.parameters:
        if p.name in AXIS_NAMES:
            annotation = p.annotation if p.optional else f"{p.annotation} | None"
            yield parameter(AXIS_NAMES[p.name], annotation, None, True)
    if entry.takes_out:
        yield parameter("out", "Tensor | None" if op.single else "Sequence[Tensor] | None", None, True)


def returned(entry: Entry) -> str:
    returns = entry.op.schema.returns
    if entry.op.shown == 1:
        return "Tensor"
    if entry.op.hidden:
        return f"tuple[{', '.join(['Tensor'] * entry.op.shown)}]"
    if entry.returns is not None:
        return f"return_types.{entry.op.returns.__name__}"
    return returns.replace("Array", "Tensor")
