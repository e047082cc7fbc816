"""Who answers a call: classes and modes that define `__torch_function__`, asked before any operator runs.

Plain tensors pay nothing. A tensor of a class that overrides is seen through a view of a class of its own (`Overridden`), which
the inline paths of generated functions do not take, so that such a call comes to the slow path, where it is asked. Functions and
methods that are written in Python, and properties, are asked from the first such class, or mode, on (`arm`).
"""

from __future__ import annotations

import functools
import operator
import pathlib
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .. import checks, devices, dtypes
from ..engine.modes import DISPATCH_MODE, FUNCTION_MODE, NO_GRAD, state
from ..geometry import contiguous_strides
from ..storage import Counter
from ..tensor import Tensor, View, counter_of, make_view, tensor_over
from ..xla.cache import bounded
from ..xla.signals import from_start
from .below.aten import find, trimmed
from .below.dispatching import (
    DISABLED_DISPATCH,
    Declined,
    WrapperStorage,
    asked_about,
    dispatched,
    dispatches,
    dispatching,
    flat,
    twin,
)

__all__ = [
    "DISABLED",
    "NAMESPACES",
    "Overridden",
    "Pushed",
    "SubclassesOff",
    "answer",
    "answering_in",
    "arm",
    "armed",
    "asks",
    "by_default",
    "claimed",
    "default_answer",
    "is_foreign",
    "is_property",
    "overloaded",
    "popped",
    "takes_tensors",
    "trimmed",
]

armed: list[type] = []
"""The classes that override, and modes: empty as long as nobody does."""

NAMESPACES = ("", "nn.functional", "nn.init", "linalg", "fft", "special", "functional")
"""The modules whose functions can be overridden."""

FACTORIES = set(
    "tensor as_tensor asarray eye arange linspace logspace range empty zeros ones full rand randn randint randperm "
    "from_numpy frombuffer scalar_tensor empty_strided empty_permuted tril_indices triu_indices "
    "bartlett_window blackman_window hamming_window hann_window kaiser_window normal".split()
)
"""Functions that make tensors, of which only modes are asked."""
SPARSE = frozenset(
    "sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor".split()
)
"""And those that are made of others below autograd."""
INGESTS = frozenset("tensor as_tensor asarray from_numpy frombuffer".split())
"""Those of them that take anything, and ask no argument."""
TAKING = frozenset(("__getitem__", "__setitem__"))
"""Those that take tensors of other libraries."""
SPREAD = frozenset("empty zeros ones rand randn new_empty new_zeros new_ones".split())
"""Those whose sizes may be so many arguments."""
DRAWS = set(
    "bernoulli normal_ uniform_ bernoulli_ random_ exponential_ geometric_ log_normal_ cauchy_".split()
)
"""Draws of random numbers in the place of others, and by others."""
OF_VALUES = ("nonzero", "masked_select", "unique", "unique_consecutive")
"""Functions whose results' sizes are found out from values."""
NUMBERS: dict[str, Callable[..., Any]] = {
    "item": lambda value: value, "__bool__": bool, "__int__": int, "__float__": float, "__complex__": complex,
    "__index__": operator.index,
}  # fmt: skip
"""Methods that read the one number of a tensor, and what they make of it."""
LEAVES = FACTORIES.union(
    "detach empty_like zeros_like ones_like full_like rand_like randn_like randint_like new_empty new_zeros new_ones "
    "new_full new_tensor new_empty_strided copy_ fill_ zero_ set_ resize_ resize_as_ as_strided_ nonzero masked_select unique unique_consecutive".split(),
    DRAWS,
    NUMBERS,
)
"""Functions written in Python that classes and modes see below autograd, as operators."""
MAKERS = (
    FACTORIES.union(n for n in LEAVES if n.startswith("new_") or n.endswith("_like"))
    - INGESTS
    - {"new_tensor"}
)
"""Those of them that make a tensor of sizes."""
UNTYPED = set(
    "einsum meshgrid atleast_1d atleast_2d atleast_3d broadcast_tensors true_divide gru lstm rnn_relu rnn_tanh".split()
)
"""Functions over tensors whose annotations do not say so."""
KEPT = set(
    "__new__ __init__ __init_subclass__ __torch_function__ __subclasshook__ __class_getitem__ __getattribute__ "
    "__hash__ __del__ __dir__ __iter__ as_subclass _make_subclass _make_wrapper_subclass __torch_dispatch__ __array_ufunc__".split()
)
"""Methods of Tensor that nobody overrides this way."""
ARITHMETIC = [
    f"__{name}__"
    for name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift lt le gt ge".split()
]
"""Methods that Python calls before the other operand's. (A class with reflected ones of its own would have those called first.)"""
TENSORS = ("T", "mT", "H", "mH", "data", "real", "imag")
"""Properties whose values are tensors: of the class that they are asked of."""

F = TypeVar("F", bound=Callable[..., Any])


class _Disabled:
    """What a class has as `__torch_function__` whose tensors are plain ones to operators, as Parameter's are."""

    def __call__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        with SubclassesOff():
            made = func(*args, **(kwargs or {}))
        return made

    def __repr__(self) -> str:
        return "<built-in function _disabled_torch_function_impl>"


DISABLED = _Disabled()


# ---- who is asked --------------------------------------------------------------------------------------------------


@bounded(4096)
def asks(kind: type) -> bool:
    """Whether objects of a type say who answers a call that they are given to."""
    if kind is Tensor:
        return False
    found = getattr(kind, "__torch_function__", DISABLED)
    return found is not DISABLED and found is not None


def overloaded(values: Iterable[Any]) -> list[Any]:
    """The arguments that are asked, one of a type: from left to right, a subclass before the classes above it."""
    found: list[Any] = []
    for value in flat(values):
        kind = type(value)
        if asks(kind) and all(type(other) is not kind for other in found):
            at = [i for i, other in enumerate(found) if issubclass(kind, type(other))]
            found.insert(at[0] if at else len(found), value)
    return found


def claimed(values: Iterable[Any]) -> list[Any] | None:
    """The arguments that are asked about a call; None where neither they nor a mode are."""
    level = state.overrides_off
    if level > 1:
        return None
    if state.overrides_skip:
        state.overrides_skip = False
        return None
    found = [] if level else overloaded(values)
    return found if found or state.mode & FUNCTION_MODE else None


def answer(func: Callable[..., Any], relevant: Sequence[Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """What the innermost mode, or the first argument that has one, makes of a call; TypeError where none makes anything."""
    kinds = tuple([type(value) for value in relevant])
    refused: list[str] = []
    if state.mode & FUNCTION_MODE and state.overrides_off < 2:
        with popped() as mode:
            asked = mode.__torch_function__
            if getattr(asked, "__self__", mode) is type(mode):
                raise RuntimeError(
                    "Defining your mode's `__torch_function__` as a classmethod is not supported, please make it a plain method"
                )
            made = asked(func, kinds, args, kwargs)
        if made is not NotImplemented:
            return made
        refused.append(f"mode object {mode!r}")
    for value in relevant:
        if not isinstance(value, Tensor) and is_foreign(type(value)):
            raise TypeError(
                f"{checks.spelled(name_of(func))}: a tensor of PyTorch's was given to xtensor: convert it by xtensor.interop.torch.from_torch"
            )
        asked = value.__torch_function__
        if getattr(asked, "__self__", None) is value and asked is not DISABLED:
            checks.warn(
                "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, "
                "please define it as a classmethod.",
                DeprecationWarning,
            )
        made = asked(func, kinds, args, kwargs)
        if made is not NotImplemented:
            return made
        what = "tensor subclass" if isinstance(value, Tensor) else "object of type"
        refused.append(f"{what} {type(value)!r}")
    listed = "".join(f"\n  - {one}" for one in refused)
    raise Declined(
        f"Multiple dispatch failed for '{checks.spelled(name_of(func))}'; all __torch_function__ handlers returned "
        f"NotImplemented:\n{listed}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


def name_of(func: Any) -> str:
    """A function's name, by its class where it is a method of Tensor or the getter of a property."""
    name = getattr(func, "__name__", str(func))
    if is_property(func):
        owner = getattr(func.__self__, "fget", None)
        return f"Tensor.{getattr(owner, '__name__', 'property')}.{name}"
    return name


def answering_in(table: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    """A decorator `handles(*names)`: the function answers for operators of these names, by a table of names."""

    def handles(*names: str) -> Callable[[F], F]:
        def register(function: F) -> F:
            table.update(dict.fromkeys(names, function))
            return function

        return register

    return handles


def is_property(func: Any) -> bool:
    """Whether a function is the getter or setter of one of Tensor's properties."""
    return isinstance(func, types.MethodWrapperType) and func.__name__ in ("__get__", "__set__", "__delete__")


def default_answer(
    cls: type[Tensor], func: Callable[..., Any], types: Sequence[type], args: Any, kwargs: Any = None
) -> Any:
    """The call itself, whose results become tensors of the class: what `Tensor.__torch_function__` does."""
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    refuse_foreign(func)
    with SubclassesOff():
        made = func(*args, **(kwargs or {}))
    return made if func in nowrap() else converted(made, cls)


def is_foreign(value: Any) -> bool:
    """Whether a class or function is PyTorch's own, where PyTorch itself is loaded: else what is here is called so."""
    if str(getattr(value, "__module__", None)).partition(".")[0] != "torch":
        return False
    return getattr(getattr(sys.modules.get("torch"), "_C", None), "__file__", None) is not None


def refuse_foreign(func: Any) -> None:
    """TypeError for a function of PyTorch's own, which would ask again and again."""
    if not (isinstance(func, types.BuiltinFunctionType) or is_foreign(getattr(func, "__objclass__", func))):
        return
    raise TypeError(
        f"{func.__name__}: a function of PyTorch's own was called with a tensor of xtensor. `import torch.nn.functional as F` imports "
        "PyTorch, also after `import xtensor as torch`: take it from xtensor (`F = torch.nn.functional`), run the program by "
        "`python -m xtensor`, or convert by xtensor.interop.torch"
    )


@bounded(1)
def nowrap() -> frozenset[Any]:
    """Getters whose value is another tensor, as it is."""
    return frozenset(vars(Tensor)[name].__get__ for name in ("_base", "grad", "_grad"))


def converted(value: Any, cls: type[Tensor]) -> Any:
    """A result whose tensors are of a class; they share memory and history."""
    if cls is Tensor:
        return value
    if isinstance(value, Tensor) and not isinstance(value, cls):
        made = tensor_over(value._xt_storage, value._xt_view, value._xt_edge, cls)
        made._xt_meta = value._xt_meta
        return made
    if isinstance(value, (tuple, list)):
        kind: Any = type(value)
        parts = [converted(v, cls) for v in value]
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    return value


# ---- switched off, and modes ---------------------------------------------------------------------------------------


class Block:
    """A block in which others are asked than outside of it. Instances nest; what was asked before is again, whatever ends the block."""

    _before: list[Any]

    def planned(self, level: int, asked: tuple[Any, ...]) -> tuple[int, tuple[Any, ...], int]:
        """What `__enter__` sets, without a call: how much is left out (arguments at 1, modes too at 2), the modes asked, the flags."""
        shown = FUNCTION_MODE if asked and level < 2 else 0
        before = self.__dict__.setdefault("_before", [])
        before.append((state.overrides_off, state.function_modes, state.mode & FUNCTION_MODE))
        return level, asked, state.mode & ~FUNCTION_MODE | shown

    @from_start
    def __exit__(self, *error: object) -> None:
        try:
            self._before  # noqa: B018  # what is undone below is undone even if a signal comes first
        finally:
            state.overrides_off = self._before[-1][0]
            state.function_modes = self._before[-1][1]
            state.mode = state.mode & ~FUNCTION_MODE | self._before[-1][2]
            self._before.pop()


class SubclassesOff(Block):
    """A block in which arguments are not asked; `LEVEL` 2: and modes neither."""

    LEVEL = 1

    def __enter__(self) -> None:
        level, asked, flags = self.planned(max(self.LEVEL, state.overrides_off), state.function_modes)
        state.overrides_off, state.function_modes, state.mode = level, asked, flags


class popped(Block):
    """A block without the innermost mode, which it gives."""

    def __enter__(self) -> Any:
        mode = state.function_modes[-1]
        level, asked, flags = self.planned(state.overrides_off, state.function_modes[:-1])
        state.overrides_off, state.function_modes, state.mode = level, asked, flags
        return mode


class Pushed(Block):
    """A block in which this object is asked before all modes."""

    def __enter__(self) -> Any:
        arm(type(self))
        level, asked, flags = self.planned(state.overrides_off, (*state.function_modes, self))
        state.overrides_off, state.function_modes, state.mode = level, asked, flags
        return self


# ---- tensors of classes that override ------------------------------------------------------------------------------


class Overridden(View):
    """The view of a tensor whose class overrides: no inline path takes its values."""

    __slots__ = ()

    # Values that were read are not kept.
    cached_at = property(lambda self: -1, lambda self, value: None)  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]
    number_at = property(lambda self: -1, lambda self, value: None)  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]


_view = vars(Tensor)["_xt_view"]


def _set_view(tensor: Tensor, view: View | None) -> None:
    """Make the view of a tensor, the whole storage where it is None, one that is asked."""
    if view is None:
        storage = tensor._xt_storage
        sizes, dtype = storage.array.shape, dtypes.FROM_NUMPY[storage.array.dtype]
        view = make_view(storage, storage, dtype, sizes, contiguous_strides(sizes), 0)
    if type(view) is not Overridden:
        own = object.__new__(Overridden)
        for name in View.__slots__:
            if name not in ("cached_at", "number", "number_at"):
                setattr(own, name, getattr(view, name))
        view = own
    _view.__set__(tensor, view)


_data = vars(Tensor)["data"]


def data_below(tensor: Tensor) -> Any:
    """`data` of a class that is asked below autograd: what it makes of `detach`, unknown to autograd."""
    found = asked_about((tensor,))
    if found is None:
        return twin(tensor) if isinstance(tensor._xt_storage, WrapperStorage) else _data.fget(tensor)
    made = answered("detach", found, (tensor,), {})
    if dispatches(type(made)):
        counted_by(made, Counter(counter_of(tensor).version))
    return made


def counted_by(tensor: Tensor, counter: Any) -> None:
    """Have a tensor's versions counted there; its view is one of its own from then on."""
    view, storage = tensor._xt_view, tensor._xt_storage
    assert view is not None
    tensor._xt_view = make_view(
        storage, counter, view.dtype, view.sizes, view.strides, view.offset, view.conj, view.neg
    )


def set_data_below(tensor: Tensor, source: Any) -> None:
    """Have such a tensor hold what another of its class does."""
    if not isinstance(tensor._xt_storage, WrapperStorage) or not isinstance(source, type(tensor)):
        _data.fset(tensor, source)
        return
    tensor.__dict__.update(source.__dict__)
    tensor._xt_storage.array = source._xt_storage.array
    tensor._xt_view = source._xt_view


def init_subclass(cls: type[Tensor], **named: Any) -> None:
    """Have a class of tensors asked, unless it says `_disabled_torch_function_impl`; one that dispatches alone is asked there."""
    super(Tensor, cls).__init_subclass__(**named)
    below = dispatches(cls)
    if below and by_default(cls):
        cls.__torch_function__ = DISABLED
    if not asks(cls) and not below:
        return
    if below and cls not in dispatching:
        dispatching.append(cls)
    if below and "data" not in cls.__dict__:
        cls.data = property(data_below, set_data_below)  # pyright: ignore[reportAttributeAccessIssue]
    late = cls.__dict__.get("_xt_arms_late", False)
    if not late:
        arm(cls)
    if getattr_static(cls, "_xt_view") is _view:
        cls._xt_view = property(_view.__get__, _set_view)  # pyright: ignore[reportAttributeAccessIssue]
    if late or not (asks(cls) or below):
        return
    if below or not by_default(cls):
        for name in ARITHMETIC:
            method = vars(Tensor).get(name)
            if method is not None and getattr_static(cls, name) is method:
                setattr(cls, name, yielding(method))
    if not asks(cls):
        return
    own = not by_default(cls)
    for name, found in properties().items():
        if (own or name in TENSORS) and getattr_static(cls, name) is found:
            setattr(cls, name, asked_property(found))


@bounded(64)
def yielding(method: Callable[[Tensor, Any], Any]) -> Any:
    """An arithmetic operator that leaves it to the other operand where nobody who is asked makes anything of it."""

    @functools.wraps(method)
    def operate(self: Tensor, other: Any) -> Any:
        try:
            return method(self, other)
        except Declined:
            return NotImplemented

    return operate


def by_default(cls: type[Tensor]) -> bool:
    """Whether a class has Tensor's own `__torch_function__`."""
    return getattr(cls.__torch_function__, "__func__", None) is vars(Tensor)["__torch_function__"].__func__


def getattr_static(cls: type, name: str) -> Any:
    return next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)


@bounded(1)
def properties() -> dict[str, property]:
    """Tensor's public properties."""
    return {
        name: value
        for c in reversed(Tensor.__mro__)
        for name, value in vars(c).items()
        if isinstance(value, property) and not name.startswith("_xt_")
    }


@bounded(512)
def asked_property(plain: property) -> property:
    """A property of Tensor as a class that overrides has it."""

    def route(accessor: Any) -> Any:
        def asked(*args: Any) -> Any:
            found = claimed(args)
            return accessor(*args) if found is None else answer(accessor, found, args, {})

        return asked

    return property(
        route(plain.__get__),
        None if plain.fset is None else route(plain.__set__),
        None if plain.fdel is None else route(plain.__delete__),
        plain.__doc__,
    )


# ---- functions written in Python -----------------------------------------------------------------------------------

_routed: dict[int, Any] = {}


def arm(kind: type) -> None:
    """From now on functions and methods written in Python ask, too: each keeps its place, and gets other code."""
    if kind in armed:
        return
    library = __name__.partition(".")[0]
    tensor = f"{library}.tensor"  # where Tensor itself may be said to be of another module
    for below in NAMESPACES:
        module = sys.modules.get(f"{library}.{below}".rstrip("."))
        for name, value in list(vars(module).items()) if module is not None else []:
            if not name.startswith("_") and is_ours(value, library) and value.__module__ != tensor:
                alone = name in FACTORIES or name in SPARSE
                if alone or takes_tensors(value):
                    route(value, alone)
    for name, value in list(vars(Tensor).items()):
        if name not in KEPT and (not name.startswith("_") or name.endswith("__")) and is_ours(value, library):
            if vars(Tensor).get(value.__name__) is not value:
                value.__name__ = name  # which those who are asked tell functions by
            route(value, False)
    armed.append(kind)


def is_ours(value: Any, library: str) -> bool:
    """Whether this is a function of the library's that is written in Python: generated ones ask by themselves."""
    return (
        isinstance(value, types.FunctionType)
        and value.__module__.partition(".")[0] == library
        and "_materialize" not in value.__globals__
    )


def takes_tensors(function: Any) -> bool:
    """Whether a public function has a tensor among its parameters."""
    if hasattr(function, "operator") or function.__name__ in UNTYPED:
        return True
    annotations = getattr(function, "__wrapped__", function).__annotations__
    return any("Tensor" in str(a) for name, a in annotations.items() if name != "return")


def strangers(values: Iterable[Any]) -> list[Any]:
    """The values, and those in their lists and tuples, that are no tensors: a factory asks them of its sizes and numbers.

    With them tensors of dtypes that only store, which know how they are written to.
    """
    return [v for v in flat(values) if not isinstance(v, Tensor) or type(v.dtype) is not dtypes.dtype]


def is_apart(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether autograd has nothing to do with a call of one of the `LEAVES`."""
    if name in OF_VALUES:
        return (
            "as_tuple" not in kwargs
            and "out" not in kwargs
            and (bool(state.mode & NO_GRAD) or not args[0].requires_grad)
        )
    if name in NUMBERS:
        return args[0].numel() == 1
    if name not in ("copy_", "fill_", "zero_") or state.mode & NO_GRAD:
        return True
    return not any(isinstance(a, Tensor) and a.requires_grad for a in args)


def answered(name: str, found: list[Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """A call of one of the `LEAVES` as who is asked below autograd answers it."""
    wish = bool(kwargs.pop("requires_grad", False))
    if name in NUMBERS:
        return NUMBERS[name](dispatched(find("_local_scalar_dense", args, {}), found, args, {}))
    given = {key: value for key, value in kwargs.items() if value is not None}
    if name in MAKERS:
        args, given = as_made(name, args, given)
    made = dispatched(find(name, args, given), found, args, given)
    if name == "detach":
        if not isinstance(made, Tensor):
            raise RuntimeError(f"Unable to cast {made} to Tensor")
        if made is args[0] or made._xt_edge is not None:
            made = twin(made)
        if dispatches(type(made)):
            counted_by(made, counter_of(args[0]))
    return made.requires_grad_() if wish else made


def as_made(name: str, args: Sequence[Any], given: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call that makes a tensor as PyTorch's dispatcher has them: sizes are a list, the device is said."""
    start = 1 if name.startswith("new_") else 0
    if name in SPREAD and len(args) > start and not isinstance(args[start], (tuple, list)):
        args = (*args[:start], args[start:])
    args = tuple([list(a) if isinstance(a, tuple) else a for a in args])
    options = {"dtype": given.get("dtype"), "layout": given.get("layout")}
    if name in FACTORIES:
        options["device"] = devices.resolve(given.get("device"))
    elif "device" in given:
        options["device"] = devices.resolve(given["device"])
    options["pin_memory"] = given.get("pin_memory", False)
    named = {key: list(v) if isinstance(v, tuple) else v for key, v in given.items() if key not in options}
    return args, {**{key: value for key, value in options.items() if value is not None}, **named}


@bounded(1024)
def stand_in(free: tuple[str, ...]) -> types.CodeType:
    """Code that asks, of a function with these variables of its surroundings: who looks at its frame finds them."""
    text = (
        "def around():\n"
        + "".join(f"    {name} = None\n" for name in free)
        + "    def asking(*_xt_args, _xt_route, **_xt_kwargs):\n        return _xt_route(_xt_args, _xt_kwargs)\n"
        + "".join(f"        {name}\n" for name in free)
        + "    return asking\n"
    )
    made: dict[str, Any] = {}
    # Of this folder, and no file: a traceback has no line of it to show.
    exec(compile(text, str(pathlib.Path(__file__).with_name("<calls>")), "exec"), {}, made)
    return made["around"]().__code__


def route(function: types.FunctionType, modes_only: bool) -> None:
    """Give a function the code that asks first, about what it has as `asked` or itself. The object that users hold stays the same."""
    if id(function) in _routed:
        return
    asked, name = function.__dict__.get("asked", function), function.__name__
    plain = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    plain.__kwdefaults__ = function.__kwdefaults__
    plain.__annotations__ = function.__annotations__
    plain.__dict__.update(function.__dict__)
    plain.__doc__, plain.__qualname__, plain.__module__ = (
        function.__doc__,
        function.__qualname__,
        function.__module__,
    )

    # Functions of `nn.init` have names of draws, too, which they call.
    leaf = name in LEAVES and not (name in DRAWS and ".ops." not in function.__module__)
    # What is read of a value is told by its own name to who records whole calls.
    by_value = name in OF_VALUES or (name in NUMBERS and name != "item")

    def ask(args: Any, kwargs: dict[str, Any]) -> Any:
        if state.overrides_off < 2:
            values = (*args, *kwargs.values())
            asked_of = () if name in INGESTS else strangers(values) if modes_only else values
            if name in TAKING:
                asked_of = [v for v in flat(asked_of) if not is_foreign(type(v))]
            found = claimed(asked_of)
            if found is not None:
                return answer(asked, found, args, kwargs)
        whole = getattr(state.dispatch_modes[-1], "whole_call", None) if state.mode & DISPATCH_MODE else None
        if leaf and (whole is None or not by_value) and (dispatching or state.mode & DISPATCH_MODE):
            below = asked_about((*args, *kwargs.values()))
            if below is not None and is_apart(name, args, kwargs):
                return answered(name, below, args, kwargs)
        if whole is not None:
            return whole(asked, plain, args, kwargs)
        if modes_only and not (name in INGESTS and args and getattr(type(args[0]), "_xt_arms_late", False)):
            with SubclassesOff():
                made = plain(*args, **kwargs)
            return made
        return plain(*args, **kwargs)

    code = function.__code__
    function.__code__ = stand_in(code.co_freevars).replace(co_name=code.co_name, co_qualname=code.co_qualname)
    function.__defaults__ = None
    function.__kwdefaults__ = {"_xt_route": ask}
    function.__wrapped__ = plain  # pyright: ignore[reportFunctionMemberAccess]
    _routed[id(function)] = function


Tensor.__init_subclass__ = classmethod(init_subclass)  # pyright: ignore[reportAttributeAccessIssue]
Tensor.__torch_function__ = classmethod(default_answer)
Tensor.__torch_dispatch__ = DISABLED_DISPATCH
