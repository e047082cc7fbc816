"""Argument checks with PyTorch's exception classes and wording.

Three levels: `check` and its siblings test a condition; the `..._error` functions word what a call's signature refuses;
`check_dim` and the rest know an argument's name and position, and take anything with the attributes they ask about.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from .errors import noted

# ---- conditions ----------------------------------------------------------------------------------------------------

Message = str | Callable[[], str]
"""What an error says: text, a format string (if it has arguments), or a function that is called only on failure."""


def _word(message: Message, arguments: tuple[object, ...]) -> str:
    if callable(message):
        return message()
    return message.format(*arguments) if arguments else message


def check(condition: object, message: Message, *arguments: object) -> None:
    """RuntimeError unless the condition holds."""
    if not condition:
        raise RuntimeError(_word(message, arguments))


def check_type(condition: object, message: Message, *arguments: object) -> None:
    """TypeError unless the condition holds."""
    if not condition:
        raise TypeError(_word(message, arguments))


def check_value(condition: object, message: Message, *arguments: object) -> None:
    """ValueError unless the condition holds."""
    if not condition:
        raise ValueError(_word(message, arguments))


# ---- dimensions ----------------------------------------------------------------------------------------------------


def wrap_dim(dim: int, ndim: int, *, wrap_scalar: bool = True) -> int:
    """`dim` counted from the front, where a negative one counts from the back; IndexError outside.

    A tensor without dimensions is treated as having one, unless `wrap_scalar` is False.
    """
    if 0 <= dim < ndim:
        return dim
    if -ndim <= dim < 0:
        return dim + ndim
    if ndim == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        if dim in (0, -1):
            return 0
        ndim = 1
    raise IndexError(
        f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
    )


def wrap_dims(dims: Iterable[int], ndim: int, *, wrap_scalar: bool = True) -> tuple[int, ...]:
    """Every one of `dims` through `wrap_dim`, in the order given; RuntimeError if one comes twice."""
    wrapped = tuple(wrap_dim(dim, ndim, wrap_scalar=wrap_scalar) for dim in dims)
    if len(set(wrapped)) < len(wrapped):
        twice = next(dim for i, dim in enumerate(wrapped) if dim in wrapped[:i])
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return wrapped


# ---- signatures ----------------------------------------------------------------------------------------------------

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: set for classes made at run time
_QUALIFIED = frozenset({"Generator", "Size", "device", "dtype", "finfo", "iinfo", "layout", "memory_format"})


def type_name(value: object) -> str:
    """The name of a value's type as PyTorch's argument errors print it: `str`, `numpy.ndarray`, `xtensor.dtype`."""
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    if kind.__flags__ & _HEAP_TYPE:
        qualified = module in ("xtensor", "torch") and kind.__name__ in _QUALIFIED
    else:
        module = kind.__module__
        qualified = module != "builtins"
    return f"{module}.{kind.__name__}" if qualified else kind.__name__


GENERATED, METHOD = "<xtensor ", "<xtensor method of "
"""What names of files of generated code begin with; a method's, whose errors count arguments without the tensor."""


def _is_method() -> bool:
    """Whether the generated function that an error is made for was called as a method of a tensor."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith((METHOD, GENERATED + "operator ", GENERATED + "view ")):
            return name.startswith(METHOD)
        frame = frame.f_back
    return False


def argument_error(function: str, name: str, position: int | None, expected: str, got: object) -> TypeError:
    """An argument of the wrong type; `got` is its value, and a keyword-only one has no position (they count from 1)."""
    if position is not None and position > 1 and _is_method():
        position -= 1
    place = "" if position is None else f" (position {position})"
    return TypeError(f"{function}(): argument '{name}'{place} must be {expected}, not {type_name(got)}")


def unpack_error(function: str, name: str, expected: str, index: int, got: object) -> TypeError:
    """An element of the wrong type at `index` (from 0, not 0 itself) of a sequence argument."""
    return TypeError(
        f"{function}(): argument '{name}' failed to unpack the object at pos {index + 1} with error "
        f'"type must be {expected},but got {type_name(got)}"'
    )


def is_whole(value: Any) -> bool:
    """Whether this stands for an int where PyTorch asks for one: ints of Python's and NumPy's, tensors of one, open sizes, of ragged dimensions too."""
    kind = type(value)
    if kind is int:
        return True
    if kind is bool or kind.__name__ in ("bool", "bool_"):
        return False
    return hasattr(kind, "__index__") or hasattr(kind, "_evaluate") or hasattr(kind, "_xt_is_size")


def too_wide(value: int) -> OverflowError:
    """A Python int that 64 bits do not hold, as PyTorch words it."""
    return OverflowError("int too big to convert" if value > 0 else "can't convert negative int to unsigned")


def check_bools(function: str, **flags: Any) -> None:
    """TypeError unless all of these are bools."""
    for name, value in flags.items():
        if value is not True and value is not False:
            raise argument_error(function, name, None, "bool", value)


def check_whole_numbers(function: str, name: str, position: int, value: Any, or_none: bool = False) -> None:
    """TypeError unless this is an int, or a sequence of them, and of None where that is allowed."""
    expected = "tuple of ints"
    if is_whole(value):
        return
    if isinstance(value, (str, dict)) or not hasattr(value, "__iter__"):
        raise argument_error(function, name, position, expected, value)
    for i, item in enumerate(value):
        if not (is_whole(item) or (or_none and item is None)):
            if i:
                raise unpack_error(function, name, expected, i, item)
            error = argument_error(function, name, position, expected, item)
            raise TypeError(
                f"{str(error).rpartition(', not ')[0]}, but found element of type {type_name(item)} at pos 0"
            )


def missing_error(function: str, names: Sequence[str]) -> TypeError:
    """Required arguments that were not given."""
    plural = (
        "s" if len(names) == 1 else ""
    )  # PyTorch's plural is the wrong way round; this is what people search for
    listed = ", ".join(f'"{name}"' for name in names)
    return TypeError(f"{function}() missing {len(names)} required positional argument{plural}: {listed}")


def surplus_error(function: str, least: int, most: int, given: int) -> TypeError:
    """More positional arguments than the `least` required or the `most` allowed."""
    takes = f"{most} positional argument" if least == most else f"from {least} to {most} positional argument"
    return TypeError(
        f"{function}() takes {takes}{'' if most == 1 else 's'} but {given} {'was' if given == 1 else 'were'} given"
    )


def unexpected_error(function: str, name: str) -> TypeError:
    """A keyword that the function does not have."""
    return TypeError(f"{function}() got an unexpected keyword argument '{name}'")


def repeated_error(function: str, name: str) -> TypeError:
    """An argument given by position and by keyword."""
    return TypeError(f"{function}() got multiple values for argument '{name}'")


def combination_error(
    function: str, arguments: Sequence[object], keywords: Mapping[str, object], signatures: Sequence[str]
) -> TypeError:
    """Arguments that fit none of several signatures, each given as PyTorch prints it: `Tensor input, Tensor other`."""
    if _is_method():
        arguments = arguments[1:]
        signatures = [s.removeprefix("Tensor input").removeprefix(", ") for s in signatures]
    got = ", ".join(type_name(value) for value in arguments)
    # PyTorch lists keywords from its hash map, which for a few of them is from the last to the first.
    named = ", ".join(f"{name}={type_name(value)}" for name, value in reversed(list(keywords.items())))
    if named:
        got = f"{got}, {named}" if got else f"{named}, "
    if len(signatures) == 1:
        expected = f"({signatures[0]})"
    else:
        expected = "one of:\n" + "".join(f" * ({signature})\n" for signature in signatures)
    return noted(
        TypeError(
            f"{function}() received an invalid combination of arguments - got ({got}), but expected {expected}"
        )
    )


# ---- named arguments -----------------------------------------------------------------------------------------------


class _Dtype(Protocol):
    @property
    def is_floating_point(self) -> bool: ...
    @property
    def is_complex(self) -> bool: ...
    @property
    def itemsize(self) -> int: ...
    @property
    def scalar_name(self) -> str: ...


class Argument(NamedTuple):
    """A value with the name and position (from 1; 0 for `self` and results) that errors mention."""

    value: Any
    name: str
    position: int = 0

    def __str__(self) -> str:
        return f"argument #{self.position} '{self.name}'" if self.position else f"'{self.name}'"


def _while(function: str) -> str:
    return f" (while checking arguments for {function})"


_library = "xtensor"


def spelled(name: str) -> str:
    """A public name with the library's in front, as dtypes and sizes print: `xtensor.float32`."""
    return f"{_library}.{name}"


def spell_as(library: str) -> None:
    """Print names as another library's: programs that know this one as `torch` compare `str(x.dtype)`."""
    global _library
    _library = library


def tensor_type(value: Any) -> str:
    """The name of a tensor's type by device and dtype, `xtensor.FloatTensor`, as older messages print it."""
    device = str(value.device).partition(":")[0]
    return f"{_library}.{'' if device == 'cpu' else device + '.'}{value.dtype.scalar_name}Tensor"


def check_dim(function: str, tensor: Argument, ndim: int) -> None:
    """RuntimeError unless the tensor has `ndim` dimensions."""
    got = len(tensor.value.shape)
    if got != ndim:
        raise RuntimeError(
            f"Expected {ndim}-dimensional tensor, but got {got}-dimensional tensor for {tensor}{_while(function)}"
        )


def check_dim_range(function: str, tensor: Argument, least: int, most: int) -> None:
    """RuntimeError unless the tensor has from `least` to `most` dimensions."""
    got = len(tensor.value.shape)
    if not least <= got <= most:
        raise RuntimeError(
            f"Expected {least} to {most} dimensions, but got {got}-dimensional tensor for {tensor}{_while(function)}"
        )


def check_dtypes(function: str, tensor: Argument, *allowed: _Dtype) -> None:
    """RuntimeError unless the tensor has the allowed dtype, or one of several."""
    if any(tensor.value.dtype is dtype for dtype in allowed):
        return
    names = ", ".join(dtype.scalar_name for dtype in allowed)
    kind = "scalar type" if len(allowed) == 1 else "one of the following scalar types:"
    raise RuntimeError(
        f"Expected tensor for {tensor} to have {kind} {names}; "
        f"but got {tensor_type(tensor.value)} instead{_while(function)}"
    )


def check_same_dtype(function: str, first: Argument, second: Argument) -> None:
    """RuntimeError unless two tensors have the same dtype."""
    if first.value.dtype is not second.value.dtype:
        raise RuntimeError(
            f"Expected tensor for {first} to have the same type as tensor for {second}; but type "
            f"{tensor_type(first.value)} does not equal {tensor_type(second.value)}{_while(function)}"
        )


def check_same_device(function: str, tensors: Iterable[Any], *, numbers: bool = False) -> None:
    """RuntimeError unless all are on one device; with `numbers`, CPU tensors without dimensions may join any other.

    `tensors` are tensors, or `Argument`s, whose names the message then mentions.
    """
    devices: list[Any] = []
    for tensor in tensors:
        named = isinstance(tensor, Argument)
        value = tensor.value if named else tensor
        if value.device in devices or (numbers and not value.shape and value.device.type == "cpu"):
            continue
        devices.append(value.device)
        if len(devices) == 2:
            argument = (
                f" (when checking argument for argument {tensor.name} in method {function})" if named else ""
            )
            raise noted(
                RuntimeError(
                    "Expected all tensors to be on the same device, but found at least two devices, "
                    f"{devices[0]} and {devices[1]}!{argument}"
                )
            )


def check_floating(function: str, dtype: _Dtype, *, low_precision: bool = True) -> None:
    """RuntimeError unless it is of real or complex floats (of 32 bits or more, if not `low_precision`)."""
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            f"{function}: Expected a floating point or complex tensor as input. Got {dtype.scalar_name}"
        )
    if not low_precision and dtype.itemsize < 4:
        raise RuntimeError(f"{function}: Low precision dtypes not supported. Got {dtype.scalar_name}")


def check_square(function: str, tensor: Any, name: str = "A") -> None:
    """RuntimeError unless the last two dimensions are there and equal."""
    shape = tensor.shape
    if len(shape) < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions.")
    if shape[-1] != shape[-2]:
        raise RuntimeError(
            f"{function}: {name} must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices"
        )


_told: set[str] = set()


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """A warning at the user's own line: of the first caller that is none of the package's frames."""
    warnings.warn(message, category, stacklevel=_users_level())


def warn_once(message: str) -> None:
    """A UserWarning at the user's own line, the first time in a process; always, where `set_warn_always` says so."""
    if is_news(message):
        warnings.warn(message, UserWarning, stacklevel=_users_level())


def is_news(subject: str) -> bool:
    """Whether the user has not been warned of something yet in this process, or is to be warned always."""
    if subject in _told and not Always.on:
        return False
    _told.add(subject)
    return True


class Always:
    """Whether what warns once warns always."""

    on = False


def _users_level() -> int:
    """The `stacklevel` of the user's frame, for a function whose caller warns."""
    frame: Any = sys._getframe(2)
    level = 2
    while frame.f_back is not None and _root(frame.f_globals.get("__name__", "")) in _BETWEEN:
        frame, level = frame.f_back, level + 1
    return level


def is_own(module: str) -> bool:
    """Whether a module of that name is the package's own."""
    return _root(module) == "xtensor"


def _root(module: str) -> str:
    return module.partition(".")[0]


# What may lie between a warning and the user: a kernel warns while JAX traces it, a decorator while it is called.
_BETWEEN = frozenset({"xtensor", "jax", "jaxlib", "contextlib", "functools"})


def not_implemented_for(kernel: str, dtype: _Dtype) -> NotImplementedError:
    """A kernel that has no version for a dtype."""
    return noted(NotImplementedError(f"\"{kernel}\" not implemented for '{dtype.scalar_name}'"))
