"""DataParallel, which runs its module on one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """Holds a module as `module`, so that states have the names that saved ones have, and calls it.

    Differs from PyTorch: batches are not scattered over devices; the module runs where it is.

    Shape: input and output those of the module.

    Raises: nothing of its own.

    >>> model = nn.DataParallel(nn.Linear(4, 2))
    >>> model(xtensor.zeros(3, 4)).shape
    xtensor.Size([3, 2])
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.dim = dim
        self.module = module
        self.device_ids = [] if device_ids is None else list(device_ids)
        self.output_device = output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """`module(*inputs, **module_kwargs)`."""
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*given, **(module_kwargs or {}))
