"""Activation checkpointing: parts of a model whose intermediate values are computed again in the backward pass."""

from __future__ import annotations

import contextlib
import enum
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from .. import checks, devices
from ..amp.autocast_mode import (
    autocast,
    get_autocast_dtype,
    is_autocast_cache_enabled,
    is_autocast_enabled,
)
from ..autograd.function import Function
from ..engine import enable_grad, is_grad_enabled, saved_tensors_hooks
from ..engine.task import current_task_id, is_complete
from ..gradients import backward
from ..operators.below.aten import OpOverload, OpOverloadPacket
from ..operators.generator import fork_rng, get_rng_state, kept_state, put_back, set_rng_state
from ..tensor import Tensor
from ..trees import tree_map
from ._python_dispatch import TorchDispatchMode

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]


class CheckpointError(RuntimeError):
    """What was computed again is not what was computed first."""


class DefaultDeviceType:
    """The kind of device whose random state a checkpoint keeps besides the CPU's."""

    _kind = "cuda"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._kind


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing: for the first computation and for the second."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors among arguments, in lists, tuples and dicts too."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def places_of(*values: Any) -> list[devices.device]:
    """The accelerators that arguments lie on."""
    found = {t.device for t in tensors_in(values) if t.device.type not in ("cpu", "meta")}
    return sorted(found, key=str)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The accelerators of the arguments by index, and the states of their generators."""
    places = places_of(args)
    return [place.index or 0 for place in places], [get_rng_state(place) for place in places]


def set_device_states(devices: list[int], states: list[Tensor], *, device_type: str | None = None) -> None:
    """Put generators of accelerators into states that `get_device_states` gave."""
    for index, state in zip(devices, states, strict=True):
        set_rng_state(state, f"{device_type or DefaultDeviceType.get_device_type()}:{index}")


AROUND: list[Callable[[], Callable[[], AbstractContextManager[Any]] | None]] = []
"""What else holds around a first computation: each gives what makes the same hold around the second, or None."""


class _Surroundings:
    """Random states, autocast and what else held at the time of the first computation, for the second."""

    def __init__(self, args: Any, preserve_rng_state: bool) -> None:
        self.preserve = preserve_rng_state
        if preserve_rng_state:
            self.places = [devices.device("cpu"), *places_of(args)]
            self.states = [kept_state(place) for place in self.places]
        kinds = {"cpu", *(place.type for place in places_of(args))}
        self.autocast = {
            kind: (get_autocast_dtype(kind), is_autocast_enabled(kind), is_autocast_cache_enabled())
            for kind in kinds
        }
        self.more = [again for around in AROUND if (again := around()) is not None]

    @contextmanager
    def restored(self) -> Iterator[None]:
        """The same surroundings inside the block."""
        with contextlib.ExitStack() as stack:
            if self.preserve:
                stack.enter_context(fork_rng(self.places[1:]))
                for state in self.states:
                    put_back(state)
            for kind, (dtype, enabled, caching) in self.autocast.items():
                if enabled or is_autocast_enabled(kind):
                    stack.enter_context(autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=caching))
            for again in self.more:
                stack.enter_context(again())
            yield


# -- re-entrant: a Function whose backward computes the forward again and runs a backward pass of its own


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs as leaves that want gradients where the originals do."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: ", type(inputs).__name__
        )
    return tuple([x.detach()._ask_grad(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs])


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no input asks for a gradient, since then none would flow."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        checks.warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning)


class CheckpointFunction(Function):
    """The re-entrant kind of checkpoint."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(args, preserve_rng_state)
        ctx.inputs = [None if isinstance(a, Tensor) else a for a in args]
        ctx.tensor_indices = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.tensor_indices])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not is_complete():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for index, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[index] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.surroundings.restored(), enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        wanted = [
            (o, g) for o, g in zip(outputs, grads, strict=True) if isinstance(o, Tensor) and o.requires_grad
        ]
        if not wanted:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([o for o, _ in wanted], [g for _, g in wanted])
        return (None, None, *[x.grad if isinstance(x, Tensor) else None for x in detached])


# -- not re-entrant: saved tensors are placeholders, filled by computing again when the first is asked for


class _Stop(Exception):
    """Ends a second computation once everything that was asked for is there."""


class _Holder:
    """Stands for a saved tensor until it is asked for."""

    def __init__(self) -> None:
        self.values: dict[int, Any] = {}


class _Frame:
    """One checkpointed call: its placeholders in order, and how to compute it again."""

    def __init__(
        self,
        recompute: Callable[[], Any],
        early_stop: bool,
        check: Callable[[Tensor], Any] | None,
        name: str,
        debug: bool = False,
    ) -> None:
        self.debug = debug
        self.recompute = recompute
        self.early_stop = early_stop
        self.check = check
        self.name = name
        self.holders: list[weakref.ref[_Holder]] = []
        self.metadata: list[Any] = []
        self.filled: set[int] = set()
        self.complete = False

    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.metadata.append(None if self.check is None else self.check(tensor))
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        """The tensor, computed again once for each backward pass, in which it is given out once; outside, each time."""
        task = current_task_id()
        if task not in self.filled:
            self.fill(task)
            if task == -1:
                for other in self.holders:
                    held = other()
                    if held is not None and held is not holder:
                        held.values.pop(task, None)
            else:
                self.filled.add(task)
        if task not in holder.values:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you "
                "are calling ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an "
                "issue with details on your use case."
            )
        return holder.values.pop(task)

    def fill(self, task: int) -> None:
        """Compute again for a backward pass, and put what is saved on the way into the placeholders."""
        count = 0

        def keep(tensor: Tensor) -> Any:
            nonlocal count
            at = count
            count += 1
            if at >= len(self.holders):
                if (
                    not self.complete
                ):  # a gradient is taken within the first computation, of what it has saved so far
                    return tensor.detach()
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    f"forward pass.\n{self.tip()}"
                )
            now = None if self.check is None else self.check(tensor)
            if now != self.metadata[at]:
                raise CheckpointError(
                    "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                    f"during the forward pass.\ntensor at position {at}:\nsaved metadata: {self.metadata[at]}\n"
                    f"recomputed metadata: {now}{self.tip()}"
                )
            holder = self.holders[at]()
            if holder is not None:
                holder.values[task] = tensor.detach() if tensor.requires_grad else tensor
            if self.early_stop and count == len(self.holders):
                raise _Stop
            return tensor.detach()

        with contextlib.suppress(_Stop), saved_tensors_hooks(keep, lambda kept: kept), enable_grad():
            self.recompute()
        if self.complete and count != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\n"
                f"Number of tensors saved during recomputation: {count}.{self.tip()}"
            )

    def tip(self) -> str:
        if not self.debug:
            return ""
        return (
            f"\nThe checkpointed function is {self.name}.\nYou are seeing this error because you passed `debug=True` to "
            "checkpoint, or are inside of set_checkpoint_debug_enabled(True)."
        )


def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


CHECKS: dict[str, Callable[[Tensor], Any] | None] = {"default": _metadata, "none": None}


class _Debug:
    enabled: bool | None = None
    early_stop: bool | None = None


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Errors of checkpoints made in the block say which function it was, or do not; None leaves it to each one's `debug`."""
    before, _Debug.enabled = _Debug.enabled, enabled
    try:
        yield
    finally:
        _Debug.enabled = before


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Whether the second computation ends once everything needed is there, for checkpoints made inside the block."""
    before, _Debug.early_stop = _Debug.early_stop, enable
    try:
        yield
    finally:
        _Debug.early_stop = before


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args, **kwargs)`, whose intermediate values are computed again when the backward pass needs them.

    `use_reentrant=True` runs a backward pass within the backward pass, and needs an input that wants a gradient.
    """
    if use_reentrant is None:
        checks.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, "
            "calling checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but "
            "if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for "
            "more details on the differences between the two variants.",
            UserWarning,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if use_reentrant:
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    if determinism_check not in CHECKS:
        raise ValueError(f"determinism_check should be one of {list(CHECKS)}, but got {determinism_check}")
    first, second = context_fn()
    if not is_grad_enabled():
        return function(*args, **kwargs)
    surroundings = _Surroundings((args, kwargs), preserve)

    def again() -> None:
        with surroundings.restored(), second:
            function(*args, **kwargs)

    stop = early_stop if _Debug.early_stop is None else _Debug.early_stop
    told = debug if _Debug.enabled is None else _Debug.enabled
    frame = _Frame(again, stop, CHECKS[determinism_check], repr(function), told)
    with saved_tensors_hooks(frame.pack, frame.unpack), first:
        result = function(*args, **kwargs)
    frame.complete = True
    return result


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """A sequence of modules in `segments` parts, of which all but the last are checkpointed."""
    if use_reentrant is None:
        checks.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In "
            "version 2.9 we will raise an exception if use_reentrant is not passed. use_reentrant=False is recommended, "
            "but if you need to preserve the current default behavior, you can pass use_reentrant=True. Refer to docs "
            "for more details on the differences between the two variants.",
            UserWarning,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    # A Module that holds others gives them in order.
    children = getattr(functions, "children", None)
    layers = list(functions if children is None else children())

    def part(start: int, end: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for layer in layers[start : end + 1]:
                value = layer(value)
            return value

        return run

    size = len(layers) // segments
    end = -1
    for start in range(0, size * (segments - 1), size):
        end = start + size - 1
        input = checkpoint(part(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(end + 1, len(layers) - 1)(input)


class CheckpointPolicy(enum.Enum):
    """What a policy of selective checkpointing says of an operator."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


class SelectiveCheckpointContext:
    """What a policy is asked with: whether the operator runs in forward or again for backward."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


class _Cached:
    """A result that a policy keeps, with the version that it had."""

    def __init__(self, value: Any) -> None:
        self.val = value
        self.version = value._version if isinstance(value, Tensor) else None

    def get_val(self, allow_mutation: bool) -> Any:
        """The result; RuntimeError where it was written since, unless that is allowed."""
        if self.version is not None and not allow_mutation and self.val._version != self.version:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated. This is not allowed. If your "
                "use case requires this, pass allow_cache_entry_mutation=True."
            )
        return self.val


# What only tells of a tensor, or gives another one over its memory, is never kept.
_IGNORED = frozenset(
    "aten::detach aten::is_contiguous aten::is_strides_like_format aten::is_non_overlapping_and_dense aten::size "
    "aten::sym_size aten::stride aten::sym_stride aten::storage_offset aten::sym_storage_offset aten::numel "
    "aten::sym_numel aten::dim prim::layout prim::device".split()
)
_KEEPS = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class _Selective(TorchDispatchMode):
    """What both computations of a selective checkpoint do with an operator: ask the policy, which has the last word."""

    is_recompute: bool

    def __init__(self, policy_fn: Callable[..., Any], storage: dict[Any, list[Any]]) -> None:
        super().__init__()
        self.policy_fn = policy_fn
        self.storage = storage

    def keeps(self, func: Any, args: Any, kwargs: Any) -> bool:
        """Whether the policy has an operator's results kept."""
        if func.overloadpacket._qualified_op_name in _IGNORED:
            return False
        ctx = SelectiveCheckpointContext(is_recompute=self.is_recompute)
        policy = self.policy_fn(ctx, func, *args, **kwargs)
        if isinstance(policy, bool):
            policy = CheckpointPolicy.MUST_SAVE if policy else CheckpointPolicy.PREFER_RECOMPUTE
        return policy in _KEEPS


class _CachingTorchDispatchMode(_Selective):
    """The first computation: results are kept where the policy says so."""

    is_recompute = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        keeps = self.keeps(func, args, kwargs)
        out = func(*args, **kwargs)
        if keeps:
            kept = tree_map(lambda x: _Cached(x.detach() if isinstance(x, Tensor) else x), out)
            self.storage.setdefault(func, []).append(kept)
        return out


class _CachedTorchDispatchMode(_Selective):
    """The second computation: what was kept is given again, and forgotten."""

    is_recompute = True

    def __init__(
        self, policy_fn: Callable[..., Any], storage: dict[Any, list[Any]], allow_mutation: bool
    ) -> None:
        super().__init__(policy_fn, storage)
        self.allow_mutation = allow_mutation

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.keeps(func, args, kwargs):
            return func(*args, **kwargs)
        kept = self.storage.get(func)
        if kept is None:
            raise RuntimeError(f"{func} encountered during backward, but not found in storage")
        if not kept:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        return tree_map(lambda x: x.get_val(self.allow_mutation), kept.pop(0))


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The two contexts that `checkpoint(context_fn=...)` asks for.

    The first keeps the results of the operators that the policy has saved, the second gives them again instead of computing
    them. A policy is a list of operators (`torch.ops.aten.mm.default`) or a function of a `SelectiveCheckpointContext`, an
    operator and its arguments that gives a `CheckpointPolicy`.
    Differs from PyTorch: nothing waits on the CPU; the policies of that name compute again.
    """
    if not callable(policy_fn_or_list) and not isinstance(policy_fn_or_list, list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    for op in policy_fn_or_list if isinstance(policy_fn_or_list, list) else ():
        if not isinstance(op, OpOverload):
            more = (
                " Please update the OpOverloadPacket to a specific OpOverload.For example, if you have "
                "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
                if isinstance(op, OpOverloadPacket)
                else ""
            )
            raise ValueError(
                f"Expected op in `op_list` to be an OpOverload but got: {op!s} of type {type(op)}.{more}"
            )
    policy: Any = policy_fn_or_list
    if isinstance(policy_fn_or_list, list):
        chosen = frozenset(policy_fn_or_list)

        def listed(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in chosen else CheckpointPolicy.PREFER_RECOMPUTE

        policy = listed
    storage: dict[Any, list[Any]] = {}
    return (
        _CachingTorchDispatchMode(policy, storage),
        _CachedTorchDispatchMode(policy, storage, allow_cache_entry_mutation),
    )
