"""Models to and from JAX: modules as pure functions of their parameters, JAX's functions as differentiable operators or modules.

Single tensors are `xtensor.interop`'s; a tensor is a pytree of JAX's as it is.
"""

from .functions import JaxModule, from_jax
from .modules import to_jax

__all__ = ["JaxModule", "from_jax", "to_jax"]
