"""How a graph spells what it calls: the public path of a function, a type, a name that no other node has."""

from __future__ import annotations

import builtins
import inspect
import keyword
import math
import re
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .. import checks
from ..compat import public_path
from ..devices import device
from ..operators.below.aten import OpOverload, OpOverloadPacket, packet
from ..tensor import Tensor
from ..utils import _pytree
from ..xla.cache import bounded
from . import _pytree as fx_pytree

__all__ = [
    "CUSTOM_BUILTINS",
    "CustomBuiltin",
    "Namespace",
    "as_recorded",
    "candidate_for",
    "is_method_only",
    "is_ours",
    "module_of",
    "qualified_name",
    "shown_target",
    "type_repr",
]

LIBRARY = __name__.partition(".")[0]
NAMESPACES = (
    ("nn.functional", True),
    ("", False),
    ("linalg", False),
    ("fft", False),
    ("special", False),
    ("sparse", False),
    ("signal.windows", False),
    ("nn.init", False),
    ("utils.checkpoint", False),
)
"""Where functions are looked for; True for the module whose functions PyTorch writes in Python."""
COMPILED = frozenset(
    "adaptive_avg_pool1d avg_pool1d avg_pool2d avg_pool3d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc "
    "conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity elu_ gelu hardshrink hardtanh_ leaky_relu_ linear "
    "logsigmoid native_channel_shuffle one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ rrelu_ "
    "scaled_dot_product_attention selu_ softplus softshrink threshold_".split()
)
"""Functions of `nn.functional` that PyTorch records as they were called, for they are not Python there."""
TOP_LEVEL = frozenset("sigmoid tanh".split())
"""Functions of both modules that are spelled as the top module's."""
PYTHON = frozenset("cdist norm pca_lowrank split stft svd_lowrank tensordot".split())
"""Functions of the top module that PyTorch writes in Python."""
UNKNOWN = frozenset(("cudnn_enable", "cudnn_enabled"))
"""Parameters that the top module's function has, and the one of `nn.functional` has not."""


# ---- functions by their public path --------------------------------------------------------------------------------


@bounded(1)
def functions() -> dict[int, tuple[str, bool, Any]]:
    """By identity, each public function's path below the library, whether PyTorch writes it in Python, and the function."""
    found: dict[int, tuple[str, bool, Any]] = {}
    top = vars(sys.modules[LIBRARY])
    for below, python in NAMESPACES:
        module = sys.modules.get(f"{LIBRARY}.{below}".rstrip("."))
        for name, value in vars(module).items() if module is not None else ():
            if name.startswith("__") or not isinstance(value, types.FunctionType):
                continue
            if (
                below == "nn.functional"
                and value is top.get(name)
                and (name in COMPILED or name in TOP_LEVEL)
            ):
                if name not in ("linear", "avg_pool2d", "avg_pool3d", "scaled_dot_product_attention"):
                    continue
            written = (python and name not in COMPILED) or (not below and name in PYTHON)
            known = found.get(id(value))
            if known is None or name == value.__name__ != known[0].rpartition(".")[2]:
                found[id(value)] = f"{below}.{name}".lstrip("."), written, value
    return found


def is_method_only(function: Any) -> bool:
    """Whether a function is a method of Tensor and no function that users find."""
    return (
        id(function) not in functions()
        and getattr(Tensor, getattr(function, "__name__", ""), None) is function
    )


def as_recorded(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """A call as PyTorch's tracer sees it: functions that are Python there hand on all arguments, defaults by name."""
    known = functions().get(id(function))
    if known is not None and known[0] == "einsum" and len(args) == 2 and isinstance(args[1], (list, tuple)):
        return function, (args[0], *args[1]), dict(kwargs)
    if known is None or not known[1]:
        return function, args, dict(kwargs)
    signature = inspect.signature(function)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    required: list[Any] = []
    options: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        value = bound.arguments[parameter.name]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return function, args, dict(kwargs)
        if parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            required.append(value)
        elif parameter.name not in UNKNOWN:
            options[parameter.name] = value
    if options.get("return_indices") is True and not known[0].endswith("_indices"):
        function = getattr(sys.modules[f"{LIBRARY}.nn.functional"], f"{function.__name__}_with_indices")
    return function, tuple(required), options


def is_ours(value: Any) -> bool:
    """Whether code reaches a function or class through the library itself."""
    if isinstance(value, OpOverload):
        return value.namespace != "aten" or packet(value._opname)._overloads.get(value._overloadname) is value
    if isinstance(value, OpOverloadPacket) or id(value) in functions():
        return True
    home = getattr(value, "__module__", None)
    if not isinstance(home, str) or home.partition(".")[0] not in (LIBRARY, "torch"):
        return False
    found: Any = sys.modules[LIBRARY]
    try:
        for name in qualified_name(value).split(".")[1:]:
            found = getattr(found, name)
    except AttributeError:
        return False
    return found is value


def module_of(name: str) -> str:
    """A module of the library as programs spell it."""
    head, _, rest = public_path(name).partition(".")
    return checks.spelled(rest).rstrip(".") if head in (LIBRARY, "torch") else name


def is_at_the_top(value: Any) -> bool:
    """Whether a function or class is the library's under its own name."""
    ours = str(value.__module__).partition(".")[0] in (LIBRARY, "torch")
    return ours and getattr(sys.modules[LIBRARY], value.__name__, None) is value


def qualified_name(value: Any) -> str:
    """The dotted path by which generated code names a function or class."""
    if isinstance(value, (OpOverload, OpOverloadPacket)):
        return checks.spelled(f"ops.{value}")
    if (known := functions().get(id(value))) is not None:
        return checks.spelled(known[0])
    name = value.__name__
    if getattr(builtins, name, None) is value:
        return name
    home = getattr(value, "__module__", None)
    if isinstance(home, str) and home.partition(".")[0] == LIBRARY and isinstance(value, types.FunctionType):
        if getattr(Tensor, name, None) is value:
            return checks.spelled(f"Tensor.{name}")
    if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        owner = value.__objclass__
        return f"{module_of(owner.__module__)}.{owner.__name__}.{name}"
    if name == "<lambda>":
        name = inspect.getsource(value).split("=")[0].strip()
    if not isinstance(home, str):
        raise RuntimeError(f"cannot find module for {value}")
    if is_at_the_top(value):
        return checks.spelled(name)
    return f"{module_of(home)}.{name}"


# ---- what graphs print ---------------------------------------------------------------------------------------------


def type_repr(value: Any) -> str:
    """A type or function as annotations show it."""
    if isinstance(value, type) and not isinstance(value, types.GenericAlias):
        if value.__module__ == "builtins":
            return value.__qualname__
        if is_at_the_top(value):
            return checks.spelled(value.__name__)
        return f"{module_of(value.__module__)}.{value.__qualname__}"
    if value is ...:
        return "..."
    if isinstance(value, types.FunctionType):
        return value.__name__
    if isinstance(value, str):
        return repr(value)
    return re.sub(rf"\b(?:{LIBRARY}|torch)\.((?:\w+\.)*)(\w+)", spelled_class, repr(value))


def spelled_class(match: re.Match[str]) -> str:
    """A class's name as users find it, for one that Python spells by its module."""
    found = getattr(sys.modules[LIBRARY], match[2], None)
    return checks.spelled(match[2] if isinstance(found, type) else match[1] + match[2])


def shown_target(target: Any) -> str:
    """A node's target as the graph's text shows it: `operator.add`, `xtensor.relu`, a module's path."""
    if isinstance(target, str):
        return target
    home = getattr(target, "__module__", None)
    if home == "_operator":
        return f"operator.{target.__name__}"
    if home == "builtins":
        return f"builtins.{target.__name__}"
    if home == "math":
        return f"math.{target.__name__}"
    return qualified_name(target)


def candidate_for(target: Any) -> str:
    """The name that a node of this target would like to have."""
    if callable(target):
        name = target.__name__
    else:
        name = target
        if len(name) > 4 and name.startswith("__") and name.endswith("__"):
            name = name[2:-2]
    return snake_case(name)


def snake_case(name: str) -> str:
    """`LayerNorm1d` as `layer_norm1d`, `add.Tensor` as `add.tensor`."""
    made: list[str] = []
    before_lower = False
    for letter in name:
        if before_lower and letter.isupper():
            made.append("_")
        before_lower = letter.islower()
        made.append(letter)
    return "".join(made).lower()


class CustomBuiltin(NamedTuple):
    """A name that generated code finds without more, and the statement that imports it elsewhere."""

    import_str: str
    obj: Any


CUSTOM_BUILTINS: dict[str, CustomBuiltin] = {
    "inf": CustomBuiltin("from math import inf", math.inf),
    "nan": CustomBuiltin("from math import nan", math.nan),
    "NoneType": CustomBuiltin("NoneType = type(None)", type(None)),
    "xtensor": CustomBuiltin("import xtensor", sys.modules[LIBRARY]),
    "torch": CustomBuiltin("import xtensor as torch", sys.modules[LIBRARY]),
    "device": CustomBuiltin("from xtensor import device", device),
    "fx_pytree": CustomBuiltin("import xtensor.fx._pytree as fx_pytree", fx_pytree),
    "pytree": CustomBuiltin("import xtensor.utils._pytree as pytree", _pytree),
}


class Namespace:
    """Names in use, each of one object: a new one gets a number behind it where it must."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, Any]] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = defaultdict(int)

    def create_name(self, candidate: str, obj: Any) -> str:
        """The candidate, or `candidate_1`, ... where another object has it or Python does."""
        if obj is not None and id(obj) in self._names:
            return self._names[id(obj)][0]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.match(r"(.*)_(\d+)$", candidate)
        base, number = (candidate, 0) if match is None else (match[1], int(match[2]))
        number = number or self._base_count[base]
        while candidate in self._used_names or self.is_illegal(candidate, obj):
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._names[id(obj)] = candidate, obj
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give an object a name that `create_name` has made."""
        self._names.setdefault(id(obj), (name, obj))

    def is_illegal(self, name: str, obj: Any) -> bool:
        """Whether Python, or generated code, means something else by a name."""
        if name in keyword.kwlist:
            return True
        if name in vars(builtins) and name != "_":  # which Python's prompt puts there
            return obj is not vars(builtins)[name]
        return name in CUSTOM_BUILTINS and obj is not CUSTOM_BUILTINS[name].obj

    def _rename_object(self, obj: Any, name: str) -> None:
        self._names[id(obj)] = name, obj
        self._used_names.add(name)
