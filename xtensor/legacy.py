"""Functions at the top of PyTorch's namespace that other spellings have replaced: in-place functions, type names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .tensor import Tensor

__all__ = ["INPLACE", "typename"]

# `torch.abs_(x)` is `x.abs_()`.
INPLACE = frozenset(
    """
    abs_ acos_ acosh_ addmv_ alpha_dropout_ arccos_ arccosh_ arcsin_ arcsinh_ arctan_ arctanh_ asin_ asinh_ atan_ atanh_
    as_strided_ ceil_ celu_ clamp_ clamp_max_ clamp_min_ clip_ conj_physical_ cos_ cosh_ deg2rad_ detach_ elu_ erf_ erfc_
    exp2_ exp_ expm1_ fill_ fix_ floor_ frac_ gcd_ i0_ index_put_ lcm_ ldexp_ log10_ log1p_ log2_ log_ logit_ nan_to_num_
    neg_ negative_ rad2deg_ reciprocal_ relu_ resize_as_ round_ rsqrt_ selu_ sigmoid_ sin_ sinc_ sinh_ sqrt_ square_ tan_
    tanh_ trunc_ xlogy_ zero_
    """.split()
)


def inplace(name: str) -> Callable[..., Any]:
    """The function of an in-place method: `inplace("abs_")(x)` is `x.abs_()`."""
    return getattr(Tensor, name)


def typename(obj: Any) -> str:
    """The name of a tensor's type, `xtensor.FloatTensor`, or the full name of another object's."""
    if isinstance(obj, Tensor):
        return obj.type()
    module = getattr(obj, "__module__", "") or ""
    qualname = getattr(obj, "__qualname__", None)
    if qualname is None:
        module, qualname = type(obj).__module__ or "", type(obj).__qualname__
    return qualname if module in ("", "builtins") else f"{module}.{qualname}"
