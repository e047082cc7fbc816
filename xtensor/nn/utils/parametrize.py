"""Parameters that are computed from others each time they are read: functions put over a module's parameters."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from ...engine import no_grad
from ...tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]


class _Cache:
    """Computed parameters by (id of module, name), kept while any `cached` block is open."""

    depth = 0
    found: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within this block a parametrized tensor is computed once, however often it is read."""
    _Cache.depth += 1
    try:
        yield
    finally:
        _Cache.depth -= 1
        if not _Cache.depth:
            _Cache.found = {}


def register(module: Module, name: str, tensor: Tensor) -> None:
    """Register a tensor as what it is: a parameter or a buffer."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def same_kind(expected: Tensor, found: Any, what: str, labels: tuple[str, str]) -> None:
    """Refuse a parametrized value that is no tensor, or of another dtype or shape."""
    if not isinstance(found, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(found).__name__}.")
    for part in ("dtype", "shape"):
        before, after = getattr(expected, part), getattr(found, part)
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {part} of the tensor, unless {what} flag is "
                f"enabled.\n{labels[0].format(part)}: {before}\n{labels[1].format(part)}: {after}"
            )


class ParametrizationList(ModuleList):
    """The functions over one tensor, and what they start from: `original`, or `original0`, `original1`, ..."""

    original: Tensor
    unsafe: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        # Setting `original` changes it, so what is compared later is taken now.
        like = original.detach()
        new: Any = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            for part in ("dtype", "device"):
                before, after = getattr(original, part), getattr(new, part)
                if before != after:
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {part}.\n"
                        f"original.{part}: {before}\nright_inverse(original).{part}: {after}"
                    )
            if new is not original:
                original.data = new.detach()
            register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(part).__name__}."
                    )
                own = Parameter(part, original.requires_grad) if isinstance(original, Parameter) else part
                own.requires_grad_(original.requires_grad)
                register(self, f"original{i}", own)
        if not unsafe:
            labels = ("unparametrized {}", "parametrized {}")
            same_kind(like, self(), "`unsafe`", labels)

    def right_inverse(self, value: Tensor) -> None:
        """Assign: the originals become what the functions make `value` from."""
        found: Any = value
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                found = module.right_inverse(found)
            if self.is_tensor:
                if not isinstance(found, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(found).__name__}")
                if found.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {found.dtype} while `original` has dtype "
                        f"{self.original.dtype}"
                    )
                self.original.data = found.detach()
                return
            if not isinstance(found, Sequence):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got {type(found).__name__}."
                )
            if len(found) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                    f"length {len(found)}."
                )
            for i, part in enumerate(found):
                own = getattr(self, f"original{i}")
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a sequence of tensors. "
                        f"Got element {i} of type {type(part).__name__}."
                    )
                if own.dtype != part.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while `original{i}` has dtype "
                        f"{own.dtype}"
                    )
                own.data = part.detach()

    def forward(self) -> Tensor:
        first, *rest = list(self)
        if self.is_tensor:
            x = first(self.original)
        else:
            x = first(*[getattr(self, f"original{i}") for i in range(self.ntensors)])
        for module in rest:
            x = module(x)
        return x


def plain_deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    """A deep copy that does not ask for `__getstate__`, which parametrized modules refuse."""
    found = memo.get(id(self))
    if found is not None:
        return found
    replica = self.__new__(type(self))
    memo[id(self)] = replica
    replica.__dict__ = deepcopy(self.__dict__, memo)
    for slot in copyreg._slotnames(type(self)):  # pyright: ignore[reportAttributeAccessIssue]
        if hasattr(self, slot):
            setattr(replica, slot, deepcopy(getattr(self, slot), memo))
    return replica


def refuse_pickling(self: Any) -> Any:
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def give_own_class(module: Module) -> None:
    """Give a module a subclass of its class, to which properties can be added."""
    cls = type(module)
    members: dict[str, Any] = {"__getstate__": refuse_pickling}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = plain_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def give_property(module: Module, name: str) -> None:
    def read(self: Any) -> Tensor:
        parametrization = self.parametrizations[name]
        if not _Cache.depth:
            return parametrization()
        key = (id(self), name)
        found = _Cache.found.get(key)
        if found is None:
            found = _Cache.found[key] = parametrization()
        return found

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    if hasattr(module, name):
        raise AssertionError(f"Module already has an attribute named '{name}'")
    setattr(type(module), name, property(read, write))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let `module.tensor_name` be what `parametrization` computes from it; further ones follow the first.

    A method `right_inverse` of the parametrization makes assignments possible. With `unsafe` dtype and shape may change.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        known = module.parametrizations[tensor_name]
        if not unsafe:
            check_further(module, tensor_name, parametrization)
        known.append(parametrization)
        known.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        made = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            give_own_class(module)
            module.parametrizations = ModuleDict()
        give_property(module, tensor_name)
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def check_further(module: Module, name: str, parametrization: Any) -> None:
    """Refuse another parametrization that changes dtype or shape."""
    before = getattr(module, name)
    after = parametrization(before)
    labels = (f"module.{name}.{{}}", f"parametrization(module.{name}).{{}}")
    same_kind(before, after, "the `unsafe`", labels)
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for part in ("dtype", "shape"):
        if getattr(back, part) != getattr(before, part):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {part} as module.{name}, "
                f"unless the `unsafe` flag is enabled.\nmodule.{name}.{part}: {getattr(before, part)}\n"
                f"returned {part}: {getattr(back, part)}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrizations, or one of this tensor."""
    found = getattr(module, "parametrizations", None)
    if not isinstance(found, ModuleDict):
        return False
    return len(found) > 0 if tensor_name is None else tensor_name in found


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the tensor a plain one again: with its computed value, or with the original if not `leave_parametrized`."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    known = module.parametrizations[tensor_name]
    if known.is_tensor:
        original = known.original
        if leave_parametrized:
            with no_grad():
                original.data = getattr(module, tensor_name).detach()
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that a module had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Put the parametrizations of one module, and what they start from, on another."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = from_module.parametrizations[name]
        for function in source:
            register_parametrization(to_module, name, function)
        target = to_module.parametrizations[name]
        if hasattr(source, "original"):
            target.original = source.original
        else:
            for i in range(source.ntensors):
                setattr(target, f"original{i}", getattr(source, f"original{i}"))
    return to_module
