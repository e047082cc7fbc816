"""The arguments of a call, checked and converted: what runs, and what chooses the program."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from .. import checks, devices, dtypes
from ..storage import WrapperStorage
from ..tensor import Tensor, wrap
from ..xla.number_arrays import size_as
from ..xla.symbolic import is_open
from ..xla.x64 import call
from .operator import Operator

__all__ = ["NUMBERS", "SCALARS", "is_odd", "odd", "prepare"]

NUMBERS = (int, float, complex, bool)
SCALARS = frozenset(NUMBERS)
LEAST = -(2**63)


def prepare(op: Operator, values: tuple[Any, ...]) -> tuple[list[Any], tuple[Any, ...]]:
    """The runtime arguments (Tensors, numbers, lists of Tensors, None) and the key of static ones, all checked."""
    runtime: list[Any] = []
    fixed: list[Any] = []
    for i, (parameter, value) in enumerate(zip(op.schema.parameters, values, strict=True)):
        if parameter.runtime:
            runtime.append(convert(op, i + 1, parameter, value))
        else:
            check_static(op, i + 1, parameter, value)
            fixed.append(static(value))
    key = tuple(fixed)
    if any(type(v) is int and not LEAST <= v < -LEAST for v in runtime):
        kinds = [v.dtype for v in runtime if isinstance(v, Tensor)]
        kinds += [dtypes.scalar_dtype(v) for v in runtime if type(v) in (float, complex)]
        runtime = [fitted(v, kinds) if type(v) is int else v for v in runtime]
    check_devices(op, runtime)
    return runtime, key


def check_static(op: Operator, position: int, parameter: Any, value: Any) -> None:
    """TypeError where an argument that chooses the program is no int, sequence of ints or bool though its parameter is."""
    name, annotation = parameter.name, parameter.annotation
    if isinstance(value, Tensor) and value.requires_grad:
        raise checks.argument_error(op.name, name, position, annotation.partition(" |")[0], value)
    if value is None and parameter.optional:
        return
    if parameter.boolean:
        if value is not True and value is not False:
            raise checks.argument_error(op.name, name, position, "bool", value)
    elif parameter.integral and not ("str" in annotation and isinstance(value, str)):
        if "Sequence" not in annotation and "tuple" not in annotation:
            if not checks.is_whole(value):
                raise checks.argument_error(op.name, name, position, "int", value)
        else:
            checks.check_whole_numbers(op.name, name, position, value, "None]" in annotation)


def convert(op: Operator, position: int, parameter: Any, value: Any) -> Any:
    kind = parameter.kind
    if value is None:
        if parameter.optional:
            return None
        raise wrong(op, parameter, position, value)
    if kind == "Array":
        if isinstance(value, Tensor):
            return value
        raise wrong(op, parameter, position, value)
    if kind == "Operand":
        if isinstance(value, Tensor):
            return value
        return number(op, parameter, position, value)
    if kind == "Number":
        if isinstance(value, Tensor):
            if value.numel() != 1 or value.requires_grad:
                raise wrong(op, parameter, position, value)
            value = value.item()
        value = number(op, parameter, position, value)
        default = parameter.default
        if default is None or type(default) not in SCALARS or value != default:
            return value
        # 1.0 and True are no 1: operators of integers refuse them.
        return value if type(default) is int and type(value) is not int else None
    if isinstance(value, Tensor) or not isinstance(value, (list, tuple)):
        raise wrong(op, parameter, position, value)
    for i, item in enumerate(value):
        if not isinstance(item, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument {position - 1}, but got {checks.type_name(item)}"
            )
    return list(value)


def number(op: Operator, parameter: Any, position: int, value: Any) -> Any:
    """A Python number as a runtime operand, exact to 64 bits."""
    kind = type(value)
    if kind not in SCALARS:
        if isinstance(value, np.generic) and not isinstance(value, (np.str_, np.bytes_)):
            value = value.item()
        elif isinstance(value, NUMBERS):
            kind = next(t for t in (bool, int, float, complex) if isinstance(value, t))
            value = kind(value)  # pyright: ignore[reportArgumentType]
        elif is_open(value):
            return call(size_as, value, np.int64)
        else:
            raise wrong(op, parameter, position, value)
    return value


def fitted(value: int, kinds: list[dtypes.dtype]) -> Any:
    """An int beside tensors and numbers of these dtypes: above int64 it is a uint64, which is a float to floats and wraps around to integers."""
    if LEAST <= value < -LEAST:
        return value
    if not 0 <= value < 2**64:
        raise checks.too_wide(value)
    if any(kind.is_floating_point or kind.is_complex for kind in kinds):
        return float(value)
    if dtypes.uint64 in kinds:
        return wrap(call(jnp.asarray, np.uint64(value)))
    return value - 2**64


def wrong(op: Operator, parameter: Any, position: int, value: Any) -> TypeError:
    expected = {"Array": "Tensor", "Operand": "Tensor", "Number": "Number", "Arrays": "tuple of Tensors"}
    return checks.argument_error(op.name, parameter.name, position, expected[parameter.kind], value)


def static(value: Any) -> Any:
    """A static argument as something that hashes: lists become tuples, integer-like objects ints."""
    kind = type(value)
    if isinstance(value, (list, tuple)):
        return tuple([static(v) for v in value])
    if kind in SCALARS or value is None or kind is str:
        return value
    if isinstance(value, Tensor):
        return value.item()
    if isinstance(value, np.generic):
        return value.item()
    return value


def odd(value: Any) -> bool:
    """Whether a value, or one within it, equals an int without being one: a program kept for the int would answer for it."""
    kind = type(value)
    return kind is bool or kind is float or (kind in (tuple, list) and any(odd(v) for v in value))


def is_odd(op: Operator, key: tuple[Any, ...]) -> bool:
    """Whether what should be an int or a bool among the static arguments is none, so that no program kept may answer."""
    for i in op.integral:
        value = key[i]
        if type(value) is not int and odd(value):
            return True
    return any(is_no_bool(key[i]) for i in op.booleans)


def is_no_bool(value: Any) -> bool:
    """Whether a value is none of those that a flag can be."""
    return value is not True and value is not False and value is not None


def check_devices(op: Operator, runtime: list[Any]) -> None:
    """Bring 0-d CPU tensors to the others' device; refuse any other mixture."""
    tensors = [t for v in runtime for t in (v if type(v) is list else (v,)) if isinstance(t, Tensor)]
    if len(tensors) < 2:
        return
    first = tensors[0].device
    if all(t.device is first for t in tensors):
        return
    places = {t.device for t in tensors if t.dim() or t.device.type != "cpu"}
    # Numbers only: those of a single device go to the mesh.
    places = places or {t.device for t in tensors if t.device.sharding is not None} or {first}
    place = next(iter(places)) if len(places) == 1 else devices.meeting(places)
    if place is None:
        checks.check_same_device(op.name, [t for t in tensors if t.device in places])
    if any(isinstance(t._xt_storage, WrapperStorage) for t in tensors):
        return  # whose class says what becomes of them
    for i, v in enumerate(runtime):
        if isinstance(v, Tensor) and v.device is not place:
            runtime[i] = v.to(place)
        elif type(v) is list:
            runtime[i] = [t if t.device is place else t.to(place) for t in v]
