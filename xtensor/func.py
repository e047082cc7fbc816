"""`torch.func`: derivatives and batches of functions, as functions; modules called with other parameters."""

from .nn.stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .transforms.batches import vmap
from .transforms.forward import hessian, jacfwd, jvp, linearize
from .transforms.reverse import grad, grad_and_value, jacrev, vjp
from .transforms.unwrapping import debug_unwrap, functionalize

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
