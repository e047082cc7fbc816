"""What a Module saves and loads: `state_dict` and `load_state_dict`, with their hooks."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import checks
from ..compat import __future__ as conversion
from ..engine import no_grad
from ..engine.handles import HookDict, RemovableHandle, add_hook
from ..errors import noted
from ..ops.create.ingest import as_tensor
from ..ops.tensor.swapping import swap_tensors
from ..tensor import Tensor
from .hooks import WrappedHook
from .parameter import Parameter, is_lazy

__all__ = ["EXTRA_STATE", "StateDict"]

EXTRA_STATE = "_extra_state"

_Keys = namedtuple("_Keys", ["missing_keys", "unexpected_keys"])


class _IncompatibleKeys(_Keys):
    """The keys that a `load_state_dict` missed, and those it did not expect."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"
        )

    __str__ = __repr__


def swap_in(member: Any, source: Tensor, assign: bool) -> None:
    """Let a parameter or buffer become, as the object it is, what its class makes of a tensor that is loaded."""
    made = member.module_load(source, assign=assign)
    if made is source or made is member:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(member, Parameter):
        if isinstance(made, Parameter):
            made.requires_grad_(member.requires_grad)
        else:
            made = Parameter(made, requires_grad=member.requires_grad)
    swap_tensors(member, made)


class StateDict:
    """The part of a Module that saves and loads its parameters and buffers by name."""

    _version: int
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: HookDict
    _state_dict_pre_hooks: HookDict
    _load_state_dict_pre_hooks: HookDict
    _load_state_dict_post_hooks: HookDict

    def get_extra_state(self) -> Any:
        """What else belongs into `state_dict`; a module that overrides this overrides `set_extra_state` too."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml to report this bug."
        )

    # -- saving

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after saving; what it returns replaces the state."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after saving; it may change the state."""
        hook._from_public_api = True  # pyright: ignore[reportFunctionMemberAccess]
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module is saved."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """Put this module's own parameters and buffers into `destination`."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Parameters and persistent buffers by their full names, sharing memory with the module.

        They are detached unless `keep_vars`. Versions of modules go along in the attribute `_metadata`.
        """
        if args:
            checks.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
            )
            given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
            destination = given.get("destination") if destination is None else destination
            prefix = given.get("prefix", "") if prefix == "" else prefix
            keep_vars = given.get("keep_vars", False) if keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            made = hook(self, destination, prefix, metadata)
            if made is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = made
        return destination

    # -- loading

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return add_hook(self._load_state_dict_pre_hooks, WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, metadata, strict, missing, unexpected, errors)` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after the module was loaded; it may change those keys in place."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own parameters and buffers; what is wrong goes into the lists, nothing is raised."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        members: dict[str, Any] = {k: v for k, v in self._parameters.items() if v is not None}
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                members[name] = buffer
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, member in members.items():
            key = prefix + name
            if key in state_dict:
                self._load_member(name, member, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        extra = prefix + EXTRA_STATE
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    head, dot, _ = key[len(prefix) :].partition(".")
                    if head not in (self._modules if dot else members):
                        unexpected_keys.append(key)

    def _load_member(
        self, name: str, member: Tensor, key: str, source: Any, assign: bool, error_msgs: list[str]
    ) -> None:
        if not isinstance(source, (Tensor, np.ndarray)) and hasattr(source, "__dlpack__"):
            source = as_tensor(source)  # another library's: PyTorch's weights as they are
        if not isinstance(source, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected {checks.spelled("Tensor")} or Tensor-like object '
                f"from checkpoint but received {type(source)}"
            )
            return
        if not is_lazy(member):
            # Before version 0.4 PyTorch had no tensors without dimensions.
            if member.dim() == 0 and tuple(source.shape) == (1,):
                source = source[0]
            if source.shape != member.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {source.shape} from checkpoint, the shape in "
                    f"current model is {member.shape}."
                )
                return
        if member.is_meta and not source.is_meta and not assign:
            checks.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current "
                "model, which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary "
                "to their corresponding key in the module instead of copying them in place?)",
            )
        swaps = conversion.get_swap_module_params_on_conversion()
        try:
            with no_grad():
                if swaps:
                    swap_in(member, source, assign)
                    return
                if not assign:
                    member.copy_(source)
                    return
                if isinstance(member, Parameter):
                    if isinstance(source, Parameter):
                        source.requires_grad_(member.requires_grad)
                    else:
                        source = Parameter(source, requires_grad=member.requires_grad)
                setattr(self, name, source)
        except Exception as error:  # every key is tried, and all errors are told at once
            error_msgs.append(
                f'While {"swapping" if swaps else "copying"} the parameter named "{key}", whose dimensions in the model are '
                f"{member.size()} and whose "
                f"dimensions in the checkpoint are {source.size()}, an exception occurred : {error.args}."
            )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Any:
        """Copy what `state_dict` holds into the parameters and buffers of those names; returns the keys that differ.

        With `strict`, keys that differ are an error. With `assign`, the tensors themselves become the parameters.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state: Any = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata

        load(self, state, "", metadata, assign, (missing, unexpected, errors))
        if strict:
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    listed = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{what} key(s) in state_dict: {listed}. ")
        if errors:
            name, told = type(self).__name__, "\n\t".join(errors)
            raise noted(RuntimeError(f"Error(s) in loading state_dict for {name}:\n\t{told}"))
        return _IncompatibleKeys(missing, unexpected)


def load(
    module: StateDict, own: Any, prefix: str, metadata: Any, assign: bool, told: tuple[list[str], ...]
) -> None:
    """Load a module and those below it from their part of a state; what is wrong goes into the lists of `told`."""
    local = {} if metadata is None else metadata.get(prefix[:-1], {})
    if assign:
        local["assign_to_params_buffers"] = assign
    missing, unexpected, errors = told
    module._load_from_state_dict(own, prefix, local, True, missing, unexpected, errors)
    for name, child in module._modules.items():
        if child is not None:
            inner = f"{prefix}{name}."
            load(child, {k: v for k, v in own.items() if k.startswith(inner)}, inner, metadata, assign, told)
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, _IncompatibleKeys(missing, unexpected)) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                "if incompatible_keys need to be modified, it should be done inplace."
            )
