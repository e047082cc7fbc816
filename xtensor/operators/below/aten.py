"""Operators as objects: `torch.ops.aten.add.Tensor`, which know their name, overload and schema, and can be called.

One packet per name, one overload per form of it. A declared operator's schema is its signature; PyTorch's names of overloads
follow from which arguments are given (`FORMS`).
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ...tensor import Tensor
from ...xla.cache import bounded
from ..operator import REGISTRY

__all__ = [
    "Argument",
    "FunctionSchema",
    "OpOverload",
    "OpOverloadPacket",
    "declared",
    "find",
    "form_of",
    "known",
    "packet",
    "resolved",
    "trimmed",
]

LIBRARY = __name__.partition(".")[0]
Form = tuple[str, str]
"""An overload's name, and the argument that must be given for it: `=x` a tensor, `x` anything, nothing for the last one."""


def forms(text: str) -> tuple[Form, ...]:
    """`dim_IntList:dim default:` as pairs."""
    return tuple([(name, argument) for name, _, argument in (part.partition(":") for part in text.split())])


FORMS: dict[str, tuple[Form, ...]] = {
    **dict.fromkeys("add sub mul".split(), forms("Tensor:")),
    "div": forms("Tensor_mode:rounding_mode Tensor:"),
    **dict.fromkeys(
        "eq ne lt le gt ge remainder fmod bitwise_and bitwise_or bitwise_xor lerp masked_fill".split(),
        forms("Tensor:=1 Scalar:"),
    ),
    **dict.fromkeys("bitwise_left_shift bitwise_right_shift".split(), forms("Tensor:=1 Tensor_Scalar:")),
    **dict.fromkeys("copysign xlogy ldexp atan2".split(), forms("Tensor:=1 Scalar:")),
    "atan2": forms("default:"),
    "pow": forms("Scalar:!0 Tensor_Tensor:=1 Tensor_Scalar:"),
    "float_power": forms("Scalar:!0 Tensor_Tensor:=1 Tensor_Scalar:"),
    "rsub": forms("Tensor:=1 Scalar:"),
    **dict.fromkeys("clamp clamp_min clamp_max".split(), forms("Tensor:=1 default:")),
    **dict.fromkeys("all any mean max min squeeze median nanmedian mode_".split(), forms("dim:dim default:")),
    **dict.fromkeys("sum count_nonzero".split(), forms("dim_IntList:dim default:")),
    "prod": forms("dim_int:dim default:"),
    "index": forms("Tensor:"),
    "index_fill": forms("int_Tensor:=3 int_Scalar:"),
    "fill": forms("Tensor:=1 Scalar:"),
    "isin": forms("Tensor_Tensor:"),
    "round": forms("decimals:decimals default:"),
    "select": forms("int:"),
    "transpose": forms("int:"),
    "unbind": forms("int:"),
    "slice": forms("Tensor:"),
    "split": forms("Tensor:"),
    "scatter": forms("src:=3 value:"),
    "scatter_reduce": forms("two:"),
    "searchsorted": forms("Tensor:"),
    "where": forms("self:"),
    "std": forms("correction:"),
    "var": forms("correction:"),
    "sort": forms("stable:stable default:"),
    "softmax": forms("int:"),
    "log_softmax": forms("int:"),
    "empty": forms("memory_format:"),
    "arange": forms("start_step:2 start:1 default:"),
    "eye": forms("m:1 default:"),
    "randint": forms("low:2 default:"),
}
SCHEMA_TYPES = {
    "Array": "Tensor",
    "Operand": "Tensor",
    "Tensor": "Tensor",
    "Number": "Scalar",
    "Arrays": "Tensor[]",
    "int": "int",
    "bool": "bool",
    "float": "float",
    "str": "str",
    "dtypes.dtype": "ScalarType",
}


class AliasInfo:
    """Which memory an argument or result shares, `a`, and whether it is written."""

    def __init__(self, is_write: bool) -> None:
        self.is_write = is_write
        self.before_set = self.after_set = {"a"}


class Argument:
    """One argument, or result, of a schema."""

    def __init__(
        self,
        name: str,
        type: str,
        default: Any = None,
        kwarg_only: bool = False,
        alias: AliasInfo | None = None,
    ) -> None:
        self.name, self.type, self.default_value, self.kwarg_only = name, type, default, kwarg_only
        self.alias_info = alias
        self.is_out = name == "out"

    def has_default_value(self) -> bool:
        """Whether it may be left out."""
        return self.default_value is not None

    def __str__(self) -> str:
        mark = "" if self.alias_info is None else "(a!)" if self.alias_info.is_write else "(a)"
        kind = self.type.replace("Tensor", f"Tensor{mark}", 1)
        default = "" if self.default_value is None else f"={self.default_value}"
        return f"{kind} {self.name}{default}".rstrip()


class FunctionSchema:
    """What an operator takes and gives; its text is `aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`."""

    def __init__(
        self, name: str, overload_name: str, arguments: Sequence[Argument], returns: Sequence[Argument]
    ) -> None:
        self.name, self.overload_name = name, overload_name
        self.arguments, self.returns = list(arguments), list(returns)

    @property
    def is_mutable(self) -> bool:
        """Whether it writes one of its arguments."""
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def __str__(self) -> str:
        parts: list[str] = []
        for argument in self.arguments:
            if argument.kwarg_only and "*" not in parts:
                parts.append("*")
            parts.append(str(argument))
        given = [str(r) for r in self.returns]
        made = given[0] if len(given) == 1 else f"({', '.join(given)})"
        dotted = self.name + (f".{self.overload_name}" if self.overload_name else "")
        return f"{dotted}({', '.join(parts)}) -> {made}"

    __repr__ = __str__


class OpOverloadPacket:
    """All forms of an operator: `torch.ops.aten.add`. A call chooses the form by its arguments."""

    def __init__(self, namespace: str, name: str, run: Callable[..., Any] | None = None) -> None:
        self.namespace = namespace
        self.__name__ = self._qualified_op_name = name
        self._qualified_op_name = f"{namespace}::{name}"
        self._run = run
        self.operator: Any = None
        self._overloads: dict[str, OpOverload] = {}

    def __deepcopy__(self, memo: Any) -> OpOverloadPacket:
        return self

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self.namespace}.{self.__name__}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.overload(name)

    def overload(self, name: str) -> OpOverload:
        """The form of that name, always the same object."""
        found = self._overloads.get(name)
        return self._overloads.setdefault(name, OpOverload(self, name)) if found is None else found

    def overloads(self) -> list[str]:
        """The names of the forms."""
        base = self.__name__.rstrip("_") or self.__name__
        return [name for name, _ in FORMS.get(base, forms("default:"))]

    @property
    def function(self) -> Callable[..., Any]:
        """What a call runs."""
        found = self._run or resolved(self.__name__)
        if found is None:
            raise NotImplementedError(f"There is no operator {self._qualified_op_name} here.")
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


class OpOverload:
    """One form of an operator: `torch.ops.aten.add.Tensor`.

    of: for the operator of a derivative, the operator that it belongs to and the argument whose gradient it gives.
    """

    of: tuple[Any, str] | None = None

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self._overloadpacket = packet
        self._overloadname = overload
        self._opname = packet.__name__
        self.namespace = packet.namespace
        self.__name__ = f"{packet.__name__}.{overload}"
        self.__module__ = f"torch._ops.{packet.namespace}"
        self.__qualname__ = self.__name__
        self.tags: list[Any] = []

    def __deepcopy__(self, memo: Any) -> OpOverload:
        return self

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All forms of the operator."""
        return self._overloadpacket

    @property
    def op(self) -> Callable[..., Any]:
        """What a call runs."""
        return self._overloadpacket.function

    def name(self) -> str:
        """`aten::add.Tensor`, or `aten::relu` for the default form."""
        whole = f"{self.namespace}::{self._opname}"
        return whole if self._overloadname == "default" else f"{whole}.{self._overloadname}"

    @functools.cached_property
    def _schema(self) -> FunctionSchema:
        return schema_of(self)

    @property
    def is_view(self) -> bool:
        """Whether the result shares the first argument's memory."""
        return is_view(self._opname)

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._overloadpacket.function(*args, **kwargs)

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """NotImplemented: an operator as declared is not made of others."""
        return NotImplemented

    def __reduce__(self) -> Any:
        return restored, (self.namespace, self._opname, self._overloadname)


def restored(namespace: str, name: str, overload: str) -> OpOverload:
    """An overload by its names, as pickle finds it."""
    return packet(name, namespace).overload(overload)


known: dict[tuple[str, str], OpOverloadPacket] = {}
"""The packets that there are, by namespace and name."""


def indexed(self: Any, indices: Sequence[Any], *, dims: tuple[int, ...] | None = None) -> Any:
    """`aten.index` as PyTorch's graphs have it: a tensor or None for each dimension; `dims` are those of the tensors, where none is None."""
    if dims is not None:
        return REGISTRY["index"].function(self, indices, dims=dims)
    return self[tuple([slice(None) if i is None else i for i in indices])]


BESIDES = {
    "_unsafe_index": indexed,
    "_local_scalar_dense": lambda self: self.item(),
    "_to_copy": lambda self, **options: self.to(copy=True, **options),
    "slice": lambda self, dim=0, start=None, end=None, step=1: self[
        (slice(None),) * (dim % self.dim()) + (slice(start, end, step),)
    ],
    "lift_fresh": lambda self: self,
    "alias": lambda self: self.view(self.shape),
    "_unsafe_view": lambda self, size: self.reshape(size),
    "view": lambda self, size: self.view(size),
    "_reshape_alias": lambda self, size, stride: self.as_strided(size, stride),
    "_convolution": lambda *args: sys.modules[LIBRARY].convolution(*args[:9]),
    "sym_size": lambda self, dim: self.shape[dim],
}
"""Operators of PyTorch's dispatcher that have no function of their own here, or one that takes less."""


CHOOSING: dict[str, Callable[..., Any]] = {"index": indexed}
"""Of operators with another form where derivatives will be asked for, the functions that choose: what calls by name run."""


ALSO = {f"{name}_{how}": name for name in ("max", "min", "median", "nanmedian") for how in ("all", "dim")}
ALSO["equal_split"] = "split"
"""Operators that are a form of another one in PyTorch."""


def packet(name: str, namespace: str = "aten") -> OpOverloadPacket:
    """The one packet of a name."""
    found = known.get((namespace, name))
    return known.setdefault((namespace, name), OpOverloadPacket(namespace, name)) if found is None else found


def resolved(name: str) -> Callable[..., Any] | None:
    """The function or method of a name; None where there is none."""
    if name in CHOOSING:
        return CHOOSING[name]
    if name in BESIDES and name not in REGISTRY:
        return BESIDES[name]
    if name.startswith("native_") and getattr(REGISTRY.get(name[7:]), "hidden", 0):
        return functools.partial(whole, name)
    views = sys.modules[f"{LIBRARY}.operators.views"].VIEWS
    if name in views:
        return views[name].function
    library = sys.modules[LIBRARY]
    places = (library, library.nn.functional, Tensor, library.special, library.linalg, library.fft)
    for holder in places:
        for spelled in (name, re.sub(r"^(special|linalg|fft)_", "", name)):
            found = getattr(holder, spelled, None)
            if callable(found):
                return found
    aten = sys.modules.get(f"{library.__name__}.ops.tensor.aten")
    found = getattr(aten, name, None) or REGISTRY.get(name, _NONE).function
    if found is None and name.endswith(("_backward", "_forward")):
        importlib.import_module(f"{LIBRARY}.nn.backwards")
        found = BESIDES.get(name)
    return found


def whole(name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """All results of an operator, those included that only its derivative needs.

    By PyTorch's own arguments, which differ from what the operator is called with where autograd is past, PyTorch's function is called.
    """
    own = getattr(sys.modules[LIBRARY], name, None)
    if own is not None and len(args) > 1 and (args[1] is None or isinstance(args[1], Tensor)):
        return own(*args, **kwargs)
    op = REGISTRY[name[7:]]
    names = op.schema.names()
    given = dict(zip(names, args, strict=False), **kwargs)
    return op.call_whole(tuple([given.get(p.name, p.default) for p in op.schema.parameters]))


class _NONE:
    function = None


def form_of(name: str, values: Sequence[Any], given: dict[str, Any]) -> str:
    """The overload that these arguments choose; `given`: those that are not what they are by default, by name."""
    for overload, wish in FORMS.get(name, ()):
        if not wish:
            return overload
        if wish[0] in "=!":
            at = int(wish[1:])
            tensor = at < len(values) and isinstance(values[at], Tensor)
            if tensor is (wish[0] == "="):
                return overload
        elif wish.isdigit():
            if len(values) > int(wish):
                return overload
        elif given.get(wish) is not None:
            return overload
    return "default"


def find(name: str, values: Sequence[Any], given: dict[str, Any], variant: str = "") -> OpOverload:
    """The overload of a call: of the operator itself, its in-place form (`variant` "_") or the one with `out=` ("out")."""
    name = ALSO.get(name, name)
    overload = form_of(name, values, given)
    if variant == "out":
        return packet(name).overload("out" if overload in ("default", "Tensor") else f"{overload}_out")
    return packet(name + variant).overload(overload)


def declared(
    op: Any, values: Sequence[Any], variant: str = ""
) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any]]:
    """The overload of a call of a declared operator, one value per parameter, and its arguments as PyTorch spells them.

    Of one with results that only its derivative needs, `native_<name>`, which gives them all.
    """
    parameters = op.schema.parameters
    args, kwargs = trimmed(parameters, values)
    if REGISTRY.get(op.name) is not op:
        return pulled_back(op), args, kwargs
    if op.hidden and not variant:
        return packet("native_" + op.name).overload("default"), args, kwargs
    given = {p.name: v for p, v in zip(parameters, values, strict=True) if v is not p.default}
    places = spelling(op.name)
    if places is None:
        return pulled_back(op), args, kwargs
    if places:
        named = {p.name: a for p, a in zip(parameters, args, strict=False) if p.name in places}
        count = next((i for i, name in enumerate(named) if places[name] != i), len(named))
        args = tuple(list(named.values())[:count])
        kwargs = {**{n: named[n] for n in list(named)[count:]}, **kwargs}
    return find(op.name, values, given, variant), args, kwargs


DERIVED = {"pow": ("fixed",), "cdist": ("by_product",), "elu": ("scale", "input_scale")}
"""Arguments of operators that their functions work out from the others."""
APART = frozenset("adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d ctc_loss linalg_eig".split())
"""Operators whose functions of that name give something else: a part of it, or its mean."""


@bounded(1024)
def spelling(name: str) -> dict[str, int] | None:
    """Where the function of that name has the operator's arguments: nothing to say of the same function, None where it cannot take them."""
    op, function = REGISTRY[name], resolved(ALSO.get(name, name))
    if function is op.function or name in ALSO:
        return {}
    if function is None or name in APART:
        return None
    found = [n for n, p in inspect.signature(function).parameters.items() if p.kind is not p.VAR_POSITIONAL]
    wanted = [n for n in op.schema.names() if n not in DERIVED.get(name, ())]
    if not set(wanted) <= set(found):
        return None
    keywords = inspect.signature(function).parameters
    return {n: -1 if keywords[n].kind is inspect.Parameter.KEYWORD_ONLY else found.index(n) for n in wanted}


def trimmed(parameters: Sequence[Any], values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and keyword arguments of a call from one value per parameter, without defaults at the end."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter, value in zip(parameters, values, strict=True):
        if parameter.keyword_only:
            if value is not parameter.default:
                kwargs[parameter.name] = value
        else:
            args.append(value)
    places = [p for p in parameters if not p.keyword_only]
    while args and len(args) > 1 and args[-1] is places[len(args) - 1].default:
        args.pop()
    return tuple(args), kwargs


def pulled_back(op: Any) -> OpOverload:
    """The overload of an operator that gives a derivative: one object for each, called like its operator."""
    found = op.__dict__.get("overload")
    if found is None:
        found = OpOverloadPacket("aten", op.name, op.function or (lambda *args: op.call(args))).overload(
            "default"
        )
        found.of = op.of
        found._overloadpacket.operator = op
        op.overload = found
    return found


# ---- schemas -------------------------------------------------------------------------------------------------------


@bounded(1)
def view_names() -> frozenset[str]:
    """The names of view operators."""
    views = sys.modules[f"{LIBRARY}.operators.views"].VIEWS
    return frozenset(
        (*views, *(a for v in views.values() for a in v.aliases), "detach", "alias", "slice", "split")
    )


def is_view(name: str) -> bool:
    """Whether the operator of a name shares its argument's memory."""
    return name in view_names()


def schema_of(overload: OpOverload) -> FunctionSchema:
    """The schema of an overload, from its function's signature."""
    name = overload._opname
    op = overload._overloadpacket.operator or REGISTRY.get(name) or REGISTRY.get(name.rstrip("_"))
    inplace = name.endswith("_") and not name.endswith("__")
    written, shared = AliasInfo(True), AliasInfo(False)
    arguments: list[Argument] = []
    if op is not None:
        for p in op.schema.parameters:
            kind = spelled(p.annotation)
            if p.kind == "Operand" and "Scalar" in overload._overloadname and arguments:
                kind = "Scalar"
            arguments.append(
                Argument(selfed(p.name), kind, None if p.required else p.default, p.keyword_only)
            )
        returns = op.shown or 1 if op.single or op.hidden else max(1, op.schema.returns.count("Array"))
    else:
        function = resolved(name)
        returns = 1
        for p in inspect.signature(function).parameters.values() if function is not None else ():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                continue
            default = None if p.default is p.empty else p.default
            arguments.append(
                Argument(selfed(p.name), spelled(p.annotation), default, p.kind is p.KEYWORD_ONLY)
            )
    alias = None
    if arguments and inplace:
        alias = arguments[0].alias_info = written
    elif arguments and is_view(name):
        alias = arguments[0].alias_info = shared
    if overload._overloadname == "out" or overload._overloadname.endswith("_out"):
        alias = written
        arguments.append(Argument("out", "Tensor", None, True, written))
    results = [Argument("", "Tensor", alias=alias) for _ in range(returns)]
    shown = "" if overload._overloadname == "default" else overload._overloadname
    return FunctionSchema(f"{overload.namespace}::{name}", shown, arguments, results)


def selfed(name: str) -> str:
    return "self" if name == "input" else name


def spelled(annotation: Any) -> str:
    """A Python annotation as schemas spell types."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    parts = [part.strip() for part in text.split("|")]
    optional = "?" if "None" in parts else ""
    first = parts[0]
    if first == "int" and any("Sequence[int]" in p or "tuple[int" in p for p in parts):
        first = "Sequence[int]"
    listed = re.fullmatch(r"(?:Sequence|tuple|list)\[(\w+).*\]", first)
    if listed is not None:
        return SCHEMA_TYPES.get(listed[1], listed[1]) + "[]" + optional
    kind = SCHEMA_TYPES.get(first, "Tensor" if first == "_empty" else first)
    return kind + optional
