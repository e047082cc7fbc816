"""What programs take of PyTorch's engine from its private modules: the pass that runs, its nodes, nodes made by hand."""

from __future__ import annotations

import weakref
from typing import Any

from .. import dtypes
from ..autograd.forward_ad import _set_fwd_grad_enabled
from ..autograd.grad_mode import _force_original_view_tracking, is_multithreading_enabled
from ..autograd.gradcheck import UndefinedGrad
from ..engine import AccumulateGrad, Error, Node, modes
from ..engine.executor import execution_order, running_node
from ..engine.task import current_task_id, is_complete, local, will_execute
from ..operators.inplace import CopySlices
from ..operators.recording import recorded
from ..operators.saved import SavedTensor
from ..ops.create.ingest import as_tensor
from ..tensor import Tensor, alias, counter_of, edge_of, plain_edge, sizes_of, strides_of

__all__ = ["ENGINE"]


def twin(tensor: Tensor) -> Tensor:
    """Another tensor over the same memory, with no history."""
    return alias(tensor, tuple(sizes_of(tensor)), tuple(strides_of(tensor)), tensor.storage_offset())


class _UndefinedGrad(Node):
    """`UndefinedGrad()(tensor)`: the same values, whose gradient goes no further."""

    def __new__(cls) -> Any:
        return lambda tensor: recorded(twin(tensor), UndefinedGrad(tensor))


class _DelayedError(Node):
    """`DelayedError(message, count)(tensor)`: the same values, whose gradient cannot be taken."""

    def __new__(cls, message: str, num_inputs: int) -> Any:
        def apply(*tensors: Tensor) -> Any:
            node = Error(message, tuple([plain_edge(edge_of(t)) for t in tensors]), num_inputs)
            results = []
            for i, tensor in enumerate(tensors):
                result = twin(tensor)
                result._xt_edge = (node, i)
                results.append(result)
            return results[0] if len(results) == 1 else tuple(results)

        return apply


class WeakTensorRef:
    """Tells whether a tensor is still there."""

    def __init__(self, tensor: Tensor) -> None:
        self.reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Whether it is gone."""
        return self.reference() is None


def will_engine_execute_node(node: Any) -> bool:
    """Whether the backward pass that is running runs a node or takes its gradient."""
    if not isinstance(node, Node):
        raise RuntimeError("_will_engine_execute_node expects an grad_fn, but got " + type(node).__name__)
    if local.task is None:
        raise RuntimeError("_will_engine_execute_node should only be called during the backward pass")
    if (
        local.task.needed is not None
        and isinstance(node, AccumulateGrad)
        and node in (local.task.captures or {})
    ):
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
            "currently not supported."
        )
    return will_execute(node)


def graph_task_execution_order() -> list[Node]:
    """The nodes that the running backward pass has still to run, in their order."""
    if local.task is None:
        raise RuntimeError(
            "_current_graph_task_execution_order should only be called during the backward pass"
        )
    if is_multithreading_enabled():
        raise RuntimeError(
            "_current_graph_task_execution_order expects the current backward to be executed with multithreading "
            "disabled, e.g. by running: with torch.autograd.set_multithreading_enabled(False): ..."
        )
    return execution_order(local.task)


def unsafe_set_version_counter(tensors: Any, versions: Any) -> None:
    """Give tensors other versions; nothing that was saved for backward is looked at."""
    pairs = ((tensors, versions),) if isinstance(tensors, Tensor) else zip(tensors, versions, strict=True)
    for tensor, version in pairs:
        if version < 0:
            raise RuntimeError("Cannot set a version_counter to a value below 0: " + str(version))
        counter_of(tensor).version = version


def keep_graph() -> bool:
    """Whether the running backward pass keeps its graph; True where none runs."""
    return local.task is None or local.task.keep_graph


def calculated_shape(output: Any, grad: Any, is_grads_batched: bool) -> tuple[Any, Any]:
    """The sizes of an output, and of a gradient of it; of a batch of gradients, of one of them."""

    def sizes(tensor: Any) -> Any:
        nested = tensor.is_nested and tensor.layout is dtypes.strided
        return as_tensor([list(row.shape) for row in tensor.unbind()]) if nested else tensor.shape

    return sizes(output), sizes(grad)[1:] if is_grads_batched else sizes(grad)


def set_forward_grad_enabled(mode: bool) -> None:
    """Switch the computation of tangents on or off."""
    _set_fwd_grad_enabled(mode)


ENGINE: dict[str, Any] = {
    "autograd._calculate_shape": calculated_shape,
    "autograd._is_checkpoint_valid": is_complete,
    "autograd._force_original_view_tracking": _force_original_view_tracking,
    "_C._set_fwd_grad_enabled": set_forward_grad_enabled,
    "_C._autograd.SavedTensor": SavedTensor,
    "_C._autograd._get_current_graph_task_keep_graph": keep_graph,
    "_C._autograd._saved_tensors_hooks_is_enabled": lambda: modes.state.saved_hooks_disabled is None,
    "_C._autograd._unsafe_set_version_counter": unsafe_set_version_counter,
    "_C._functions.AccumulateGrad": AccumulateGrad,
    "_C._functions.CopySlices": CopySlices,
    "_C._functions.DelayedError": _DelayedError,
    "_C._functions.Error": Error,
    "_C._functions.UndefinedGrad": _UndefinedGrad,
    "_C._WeakTensorRef": WeakTensorRef,
    "_C._current_autograd_node": running_node,
    "_C._current_graph_task_execution_order": graph_task_execution_order,
    "_C._current_graph_task_id": current_task_id,
    "_C._will_engine_execute_node": will_engine_execute_node,
    "_C.has_lapack": True,
    "_C.is_grad_enabled": modes.is_grad_enabled,
}
