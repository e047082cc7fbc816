"""Programs of JAX read as operators, and the table of what each primitive is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from ....dtypes import FROM_NUMPY
from ....operators.below.aten import packet
from ....operators.below.dispatching import dispatched
from ....tensor import Tensor
from ....xla.x64 import x64

__all__ = ["Rule", "asked", "evaluated", "filled", "held", "looped", "op", "rule", "scalar", "single"]

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}
"""By primitive, `rule(equation, *operands)`: tensors, or of numbers that all elements have, NumPy scalars."""
PLACED: set[str] = set()
"""The primitives whose rules take places that are known, as NumPy arrays."""
SMALL = 16
"""How many elements an array may have that is known while a program is read."""
ELEMENTWISE: set[str] = set()
"""The primitives on every element, whose rules take numbers for tensors that are filled with them."""
MOVES: set[str] = set()
"""The primitives that change sizes and places alone, whose rules leave such numbers as they are."""
LOOPS: dict[str, Callable[..., Any]] = {}
"""By primitive that holds programs, `rule(equation, operands, constant)`."""
INNER = frozenset(
    "jit pjit closed_call core_call remat2 checkpoint custom_jvp_call custom_vjp_call custom_lin".split()
)


def op(name: str, *args: Any, **kwargs: Any) -> Any:
    """The value of PyTorch's operator of that name."""
    return packet(name)(*map(plain, args), **kwargs)


def plain(value: Any) -> Any:
    """NumPy's integers as Python's, also within lists."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    return int(value) if isinstance(value, np.integer) else value


def asked(name: str, overload: str, *args: Any) -> Any:
    """The value of an operator whose function asks nobody below autograd, or does so about another one."""
    return dispatched(packet(name).overload(overload), [], tuple(map(plain, args)), {})


def rule(
    *names: str, elementwise: bool = False, moves: bool = False, placed: bool = False
) -> Callable[[Rule], Rule]:
    """A decorator that puts a rule into the table."""

    def put(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        if elementwise:
            ELEMENTWISE.update(names)
        if moves:
            MOVES.update(names)
        if placed:
            PLACED.update(names)
        return function

    return put


def looped(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that puts the rule of a primitive that holds programs into its table."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        LOOPS[name] = function
        return function

    return put


# ---- programs


def evaluated(program: Any, consts: Sequence[Any], values: Sequence[Any], constant: Any) -> list[Any]:
    """The results of a program of JAX for tensors, and numbers as NumPy scalars. constant: makes a tensor of one of its arrays."""
    known: dict[Any, Any] = {}

    def read(variable: Any) -> Any:
        return held(variable.val, constant) if isinstance(variable, Literal) else known[variable]

    for variable, value in zip(program.constvars, consts, strict=True):
        known[variable] = held(value, constant)
    known.update(zip(program.invars, values, strict=True))
    for equation in program.eqns:
        given = [read(v) for v in equation.invars]
        made = result_of(equation, given, constant)
        made = made if isinstance(made, (list, tuple)) else [made]
        for variable, value in zip(equation.outvars, made, strict=True):
            known[variable] = fitted(value, variable.aval)
    return [read(v) for v in program.outvars]


def held(value: Any, constant: Any) -> Any:
    """What a program holds: a number where all elements are one, a small array as it is, else a tensor."""
    if isinstance(value, Tensor):
        return value
    array = np.asarray(value)
    if not array.size:
        return array.dtype.type(0)
    same = array.ndim == 0 or bool((array == array.flat[0]).all())
    return array.flat[0] if same else array if is_small(array) else constant(array)


def result_of(equation: Any, given: list[Any], constant: Any) -> Any:
    """What one equation gives."""
    name, params = equation.primitive.name, equation.params
    if name in INNER:
        inner = params.get("jaxpr", params.get("call_jaxpr", params.get("fun_jaxpr")))
        return evaluated(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), given, constant)
    if name in LOOPS:
        return LOOPS[name](equation, given, constant)
    if given and not any(isinstance(value, Tensor) for value in given):
        found = folded(equation, given)
        if found is not None:
            return [held(array, constant) for array in found]
    if name not in RULES:
        raise NotImplementedError(f"make_fx: the primitive {name} within a transform is no operator")
    if name in PLACED:
        return RULES[name](equation, *given, constant)
    given = [constant(v) if isinstance(v, np.ndarray) else v for v in given]
    if name not in ELEMENTWISE | MOVES:
        given = [filled(value, v.aval, constant) for value, v in zip(given, equation.invars, strict=True)]
    return RULES[name](equation, *given)


def folded(equation: Any, given: list[Any]) -> list[Any] | None:
    """The results of a primitive of numbers and small arrays; None where they are large."""
    name, params = equation.primitive.name, equation.params
    if name in ELEMENTWISE and not any(isinstance(value, np.ndarray) for value in given):
        operands: list[Any] = given
    elif all(is_small(v.aval) for v in (*equation.invars, *equation.outvars)):
        operands = [np.broadcast_to(x, v.aval.shape) for x, v in zip(given, equation.invars, strict=True)]
    else:
        return None
    with x64(), jax.ensure_compile_time_eval():
        made: Any = equation.primitive.bind(*operands, **params)
    return list(made) if equation.primitive.multiple_results else [made]


def is_small(aval: Any) -> bool:
    """Whether an array is known while a program is read, if its elements are."""
    return all(isinstance(n, int) for n in aval.shape) and aval.size <= SMALL


def fitted(value: Any, aval: Any) -> Any:
    """A result of the dtype and sizes that the program says."""
    if not isinstance(value, Tensor):
        return value
    if value.dtype is not FROM_NUMPY[aval.dtype]:
        value = value.to(FROM_NUMPY[aval.dtype])
    return value if tuple(value.shape) == tuple(aval.shape) else value.expand(tuple(aval.shape))


def filled(value: Any, aval: Any, constant: Any = None) -> Any:
    """A tensor, for a number one that is filled with it, for an array one that holds it."""
    if isinstance(value, Tensor) or not hasattr(aval, "shape"):
        return value
    if isinstance(value, np.ndarray):
        return constant(value)
    return op("full", list(aval.shape), value.item(), dtype=FROM_NUMPY[aval.dtype])


def scalar(value: Any) -> Any:
    """A tensor as it is, a number as Python's."""
    return value if isinstance(value, Tensor) else value.item()


def single(equation: Any, value: Any) -> Any:
    """A tensor as it is, a number as a tensor without dimensions."""
    if isinstance(value, Tensor):
        return value
    return op("full", [], value.item(), dtype=FROM_NUMPY[value.dtype])
