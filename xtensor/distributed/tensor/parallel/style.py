"""How modules are split over a mesh: by columns, by rows, along the sequence, and what comes in and goes out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ....nn.modules.linear import Linear
from ....nn.modules.module import Module
from ....nn.modules.sparse import Embedding
from ....tensor import Tensor
from ...device_mesh import DeviceMesh
from ..dtensor import DTensor, onto, redistribute, relocate, to_local
from ..placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]


class ParallelStyle(ABC):
    """How `parallelize_module` splits one module."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Place the module's parameters, and hook its calls."""


def local(value: Any, mesh: DeviceMesh, wanted: bool) -> Any:
    """The process's own part of a tensor, if that is wanted and there are several processes; else the tensor as it lies."""
    if wanted and isinstance(value, DTensor) and mesh.jax_mesh.is_multi_process:
        return to_local(value)
    return value


def brought(value: Any, mesh: DeviceMesh, layout: Placement | None, desired: Placement | None) -> Any:
    """A tensor that comes in `layout`, in the one that is desired."""
    if layout is None or not isinstance(value, Tensor):
        return value
    found = value if isinstance(value, DTensor) else onto(value, mesh, [layout])
    return found if desired is None else redistribute(found, mesh, [desired])


class _Split(ParallelStyle):
    """What column-wise and row-wise have in common."""

    def __init__(self, input_layouts: Any, output_layouts: Any, use_local_output: bool) -> None:
        self.input_layouts = input_layouts
        self.output_layouts = output_layouts
        self.use_local_output = use_local_output

    def _dims(self, module: Module) -> tuple[dict[str, Placement], Placement]:
        raise NotImplementedError

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        places, desired = self._dims(module)
        for name, parameter in module.named_parameters(recurse=False):
            relocate(parameter, device_mesh, [places[name]])
        layout, out, wanted = self.input_layouts, self.output_layouts, self.use_local_output

        def before(_: Module, inputs: Any) -> Any:
            return (brought(inputs[0], device_mesh, layout, desired), *inputs[1:])

        def after(_: Module, inputs: Any, output: Any) -> Any:
            return local(redistribute(output, device_mesh, [out]), device_mesh, wanted)

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module


class ColwiseParallel(_Split):
    """A Linear split over its results, or an Embedding over the features of its rows.

    Differs from PyTorch: in a single process `use_local_output` gives the whole tensor, which lies on the mesh.
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output)

    def _dims(self, module: Module) -> tuple[dict[str, Placement], Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(0), "bias": Shard(0)}, Replicate()
        if isinstance(module, Embedding):
            return {"weight": Shard(1)}, Replicate()
        raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")


class RowwiseParallel(_Split):
    """A Linear split over its inputs, or an Embedding over its rows; the terms of the results are added.

    Differs from PyTorch: in a single process `use_local_output` gives the whole tensor, which lies on the mesh.
    """

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output)

    def _dims(self, module: Module) -> tuple[dict[str, Placement], Placement]:
        if isinstance(module, Linear):
            return {"weight": Shard(1), "bias": Replicate()}, Shard(-1)
        if isinstance(module, Embedding):
            return {"weight": Shard(0)}, Replicate()
        raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")


class SequenceParallel(ParallelStyle):
    """A LayerNorm, Dropout or the like on a sequence split along a dimension; its parameters are copied."""

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_dim = sequence_dim
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        for parameter in module.parameters():
            relocate(parameter, device_mesh, [Replicate()])
        split, wanted = Shard(self.sequence_dim), self.use_local_output

        def before(_: Module, inputs: Any) -> Any:
            return (brought(inputs[0], device_mesh, split, split), *inputs[1:])

        def after(_: Module, inputs: Any, output: Any) -> Any:
            return local(output, device_mesh, wanted)

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)
        return module


def as_tuple(layouts: Any) -> tuple[Any, ...]:
    """One layout, or several."""
    return layouts if isinstance(layouts, tuple) else (layouts,)


class PrepareModuleInput(ParallelStyle):
    """The arguments of a module's calls brought from the layouts in which they come to those that are desired."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = () if input_layouts is None else as_tuple(input_layouts)
        self.desired_input_layouts = () if desired_input_layouts is None else as_tuple(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if len(self.input_layouts) != len(self.desired_input_layouts):
            raise AssertionError("input_layouts and desired_input_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def before(_: Module, inputs: Any, named: Any) -> Any:
            if self.input_layouts and len(inputs) != len(self.input_layouts):
                raise ValueError("module inputs and input_layouts should have same length!")
            pairs = zip(inputs, self.input_layouts, self.desired_input_layouts, strict=True)
            found = (
                [brought(x, device_mesh, frm, to) for x, frm, to in pairs] if self.input_layouts else inputs
            )
            others = {
                n: brought(
                    x, device_mesh, self.input_kwarg_layouts.get(n), self.desired_input_kwarg_layouts.get(n)
                )
                for n, x in named.items()
            }
            wanted = self.use_local_output
            return (
                tuple([local(x, device_mesh, wanted) for x in found]),
                {n: local(x, device_mesh, wanted) for n, x in others.items()},
            )

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """The results of a module's calls brought from the layouts in which they come to those that are desired."""

    def __init__(
        self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True
    ) -> None:
        self.output_layouts = as_tuple(output_layouts)
        self.desired_output_layouts = as_tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def after(_: Module, inputs: Any, outputs: Any) -> Any:
            found: Sequence[Any] = outputs if isinstance(outputs, tuple) else (outputs,)
            if len(found) != len(self.output_layouts):
                raise ValueError("module outputs and output_layouts should have same length!")
            made = [
                local(brought(x, device_mesh, frm, to), device_mesh, self.use_local_output)
                for x, frm, to in zip(found, self.output_layouts, self.desired_output_layouts, strict=True)
            ]
            return tuple(made) if isinstance(outputs, tuple) else made[0]

        module.register_forward_hook(after)
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """`PrepareModuleInput` and `PrepareModuleOutput` of one module."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
