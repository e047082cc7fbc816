"""PyTorch's type promotion inside a kernel's trace.

While tracing, a wrapped Python number is a weakly typed 0-d array, and any other array is a tensor; that is all the
rules need, and it costs nothing at call time.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import dtypes

__all__ = ["as_dtype", "common_dtype", "float_operands", "is_bool", "is_complex", "is_float", "is_integral"]
__all__ += ["needs_tensor", "operands", "promote"]


def category(value: Any) -> int:
    if isinstance(value, (bool, int, float, complex)) or getattr(value, "weak_type", False):
        return dtypes.WRAPPED
    return dtypes.ZERO_DIM if value.ndim == 0 else dtypes.DIM


def common_dtype(*values: Any, numbers: bool = False) -> dtypes.dtype:
    """The dtype in which PyTorch computes on these operands (arrays while tracing, or Python numbers).

    numbers: whether those after the first are numbers where they have no dimensions.
    """
    operands = []
    for i, v in enumerate(values):
        if v is None:
            continue
        kind = category(v)
        if numbers and i and kind == dtypes.ZERO_DIM:
            kind = dtypes.WRAPPED
        if isinstance(v, (bool, int, float, complex)):
            operands.append((dtypes.scalar_dtype(v), kind))
        elif kind == dtypes.WRAPPED:
            operands.append((wrapped_dtype(v.dtype), kind))
        else:
            operands.append((dtypes.FROM_NUMPY[np.dtype(v.dtype)], kind))
    return dtypes.result_type_of(operands)


def wrapped_dtype(dtype: Any) -> dtypes.dtype:
    """A wrapped number's dtype: the default float or complex, int64 or bool."""
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return dtypes.get_default_complex_dtype()
    if jnp.issubdtype(dtype, jnp.floating):
        return dtypes.get_default_dtype()
    return dtypes.FROM_NUMPY[np.dtype(dtype)]


def as_dtype(value: Any, dtype: dtypes.dtype) -> Any:
    """An operand as a strongly typed array of `dtype`; numbers lose nothing that the dtype can hold."""
    value = jnp.asarray(value)
    if value.dtype == jnp.bool_ and not dtype.is_integral and value.dtype != dtype.numpy:
        # XLA makes a product with a converted bool a selection, in which False * inf is 0 and no NaN.
        value = value.astype(jnp.int8)
    return lax.convert_element_type(value, dtype.numpy)


def promote(*values: Any, numbers: bool = False) -> list[Any]:
    """The operands in their common dtype, shapes left as they are (None stays None); numbers: as for `common_dtype`."""
    dtype = common_dtype(*values, numbers=numbers)
    return [None if v is None else as_dtype(v, dtype) for v in values]


def operands(*values: Any) -> tuple[Any, ...]:
    """The operands in the type in which PyTorch computes, then the dtype of the result (NumPy's).

    Half and bfloat16 compute in float32, so that a Python number keeps its 24 bits there.
    """
    dtype = common_dtype(*values)
    wide = dtypes.compute_type(dtype)
    return (*[None if v is None else as_dtype(v, wide) for v in values], dtype.numpy)


def float_operands(*values: Any) -> tuple[Any, ...]:
    """As `operands`, but integers and bools become the default float."""
    dtype = common_dtype(*values)
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = dtypes.get_default_dtype()
    wide = dtypes.compute_type(dtype)
    return (*[None if v is None else as_dtype(v, wide) for v in values], dtype.numpy)


def is_complex(value: Any) -> bool:
    """Whether an array, or a number while tracing, is complex."""
    return jnp.issubdtype(jnp.result_type(value), jnp.complexfloating)


def is_float(value: Any) -> bool:
    """Whether an array, or a number while tracing, is real and floating."""
    return jnp.issubdtype(jnp.result_type(value), jnp.floating)


def is_bool(value: Any) -> bool:
    """Whether an array, or a number while tracing, is boolean."""
    return jnp.result_type(value) == jnp.bool_


def is_integral(value: Any) -> bool:
    """Whether an array, or a number while tracing, is an integer (bool is none)."""
    return jnp.issubdtype(jnp.result_type(value), jnp.integer)


def needs_tensor(name: str, *values: Any) -> None:
    """TypeError where every operand is a Python number."""
    if all(category(v) == dtypes.WRAPPED for v in values):
        kinds = ", ".join(
            {"b": "bool", "i": "int", "u": "int", "c": "complex"}.get(v.dtype.kind, "float") for v in values
        )
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds}), but expected a Tensor"
        )
