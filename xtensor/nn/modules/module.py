"""Module: the base of all layers and models. It registers what is assigned to it, and calls `forward` with hooks.

Saving and loading are in `state`, hooks and calls in `calls`, the hooks of all modules and the backward hooks in `..hooks`.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ... import capture, checks, devices, dtypes
from ...compat import __future__ as conversion
from ...engine import no_grad
from ...ops.create.creation import empty_like
from ...ops.tensor.conversion import parse_to
from ...ops.tensor.swapping import swap_tensors
from ...tensor import Tensor, typename
from ..calls import Calls
from ..hooks import (
    everywhere,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ..parameter import Buffer, Parameter, adopt
from ..state import StateDict

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Self = TypeVar("Self", bound="Module")
set_plain = object.__setattr__


def indented(text: str, spaces: int) -> str:
    """`text` with every line but the first moved to the right."""
    first, *rest = text.split("\n")
    return "\n".join([first, *[" " * spaces + line if line.strip() else "" for line in rest]])


def unimplemented(self: Module, *args: Any) -> None:
    """What a call of the module computes; every subclass defines it."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def keeps_its_object(tensor: Tensor, made: Tensor) -> bool:
    """Whether what a module has may take the memory of what became of it, and stay the object that it is."""
    alike = made.is_meta == tensor.is_meta and made.layout is tensor.layout
    return alike and not conversion.get_overwrite_module_params_on_conversion()


class Module(StateDict, Calls):
    """The base class of layers and models.

    Parameters, buffers and submodules that are assigned as attributes are registered under their names; a subclass
    defines `forward`. Calling a module runs its hooks around it.

    Shape: input and output those of `forward`.

    Raises: NotImplementedError where `forward` is not written; AttributeError where a module or parameter is
    set before `super().__init__()`.

    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(xtensor.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(xtensor.ones(3))
    tensor([2., 2., 2.], grad_fn=<MulBackward0>)
    >>> list(Scale().state_dict())
    ['factor']
    """

    dump_patches = False
    _version = 1
    call_super_init = False

    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise checks.unexpected_error(f"{type(self).__name__}.__init__", next(iter(kwargs)))
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        if capture.watchers:
            capture.made(self)
        set_plain(self, "training", True)
        set_plain(self, "_parameters", {})
        set_plain(self, "_buffers", {})
        set_plain(self, "_non_persistent_buffers_set", set())
        set_plain(self, "_is_full_backward_hook", None)
        for name in _HOOK_DICTS:
            set_plain(self, name, OrderedDict())
        set_plain(self, "_modules", {})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = unimplemented

    # -- registration

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is no parameter; one that is not `persistent` stays out of `state_dict`."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' ({checks.spelled('')[:-1]} Tensor or None required)"
            )
        for hook in everywhere.buffer_registration.values():
            output = hook(self, name, tensor)
            tensor = tensor if output is None else output
        capture.moved(True, self, name, tensor)
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or keep its name with None."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    f"({checks.spelled('nn.Parameter')} or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value "
                    f"in the forward() method."
                )
            for hook in everywhere.parameter_registration.values():
                output = hook(self, name, param)
                param = param if output is None else output
        capture.moved(True, self)
        self._parameters[name] = param

    def _check_name(self, what: str, name: Any, among: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if "." in name:
            raise KeyError(f'{what} name can\'t contain "."')
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(self, name) and name not in among:
            raise KeyError(f"attribute '{name}' already exists")

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule, or keep its name with None."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        capture.moved(True, self)
        self._modules[name] = self._announced(name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Add a submodule: another name of `add_module`."""
        self.add_module(name, module)

    def _announced(self, name: str, module: Any) -> Any:
        for hook in everywhere.module_registration.values():
            output = hook(self, name, module)
            module = module if output is None else output
        return module

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        members = own.get("_parameters")
        if members is not None and name in members:
            return members[name]
        for kind in ("_modules", "_buffers"):
            members = own.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if own.get(name, self) is not value:
            capture.moved(True, self, name, value)
        params = own.get("_parameters")
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, own, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    f"({checks.spelled('nn.Parameter')} or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in own:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, own, self._parameters, self._buffers)
            self._modules[name] = self._announced(name, value)
        elif "_modules" in own and name in self._modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    f"({checks.spelled('nn.Module')} or None expected)"
                )
            self._modules[name] = self._announced(name, value)
        elif isinstance(value, Buffer) or ("_buffers" in own and name in self._buffers):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, *members: dict[str, Any]) -> None:
        for kind in members:
            kind.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' ({checks.spelled('nn.Buffer')}, "
                f"{checks.spelled('Tensor')} or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent  # pyright: ignore[reportAttributeAccessIssue]
        else:
            persistent = name not in self._non_persistent_buffers_set
        plain = type(self).register_buffer is Module.register_buffer
        if plain or "persistent" in inspect.signature(self.register_buffer).parameters:
            self.register_buffer(name, value, persistent)
        elif not persistent:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without "
                "the persistent argument is not allowed."
            )
        else:
            self.register_buffer(name, value)

    def __delattr__(self, name: str) -> None:
        capture.moved()
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        capture.moved()
        self.__dict__.update(state)
        for name in _HOOK_DICTS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # -- what it is made of

    def get_submodule(self, target: str) -> Module:
        """The submodule at a dotted path; AttributeError where there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Put a module at a dotted path; with `strict` there must be one already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _member(self, target: str) -> tuple[Module, str, Any]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name, getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path; AttributeError where there is none."""
        _, name, found = self._member(target)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path; AttributeError where there is none."""
        module, name, found = self._member(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        """Names and members of this module and, if asked, of all below it; each member once unless told otherwise."""
        seen: set[Any] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield (f"{path}.{name}" if path else name), member

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters of this module and, unless told otherwise, of those below it."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters with their full names."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers of this module and, unless told otherwise, of those below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Buffers with their full names."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def children(self) -> Iterator[Module]:
        """The modules directly below this one, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly below this one with their names, each once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """The module itself and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """The module itself and all below it with their full names; `memo` holds those already seen."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(
                    memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
                )

    def apply(self: Self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every module below this one, then on this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # -- conversion

    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the values of parameters, their gradients and buffers by what `fn` makes of them.

        Parameters stay the same objects, so that optimizers keep theirs, except between meta and real devices and
        as `torch.__future__` says.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._convert_parameter(name, param, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _replicate_for_data_parallel(self: Self) -> Self:
        """A shallow copy whose parameters are for others to set; its buffers and submodules are dicts of its own."""
        replica = self.__new__(type(self))
        own = {"_parameters": {}, "_buffers": self._buffers.copy(), "_modules": self._modules.copy()}
        replica.__dict__ = {**self.__dict__, **own, "_is_replica": True}
        return replica

    def _convert_parameter(self, name: str, param: Parameter, fn: Callable[[Tensor], Tensor]) -> None:
        with no_grad():
            made = fn(param)
        grad = param.grad
        target = param
        if conversion.get_swap_module_params_on_conversion():
            if made is not param:
                param.grad = None
                swap_tensors(param, Parameter(made, param.requires_grad))
        elif keeps_its_object(param, made):
            if made is not param:
                adopt(param, made)
        else:
            target = self._parameters[name] = Parameter(made, param.requires_grad)
        if grad is None:
            return
        with no_grad():
            made = fn(grad)
        if keeps_its_object(grad, made):
            if made is not grad:
                adopt(grad, made)
            made = grad
        else:
            made.requires_grad_(grad.requires_grad)
        if target.grad is not made:
            target.grad = made

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Move parameters and buffers to a device, and convert the floating and complex ones to a dtype.

        Takes what `Tensor.to` takes, and changes this module in place. `memory_format` orders 4-d and 5-d parameters.
        """
        dtype, place, copy, memory_format = parse_to(args, kwargs)
        if copy:
            raise RuntimeError(".to() does not accept copy argument")
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
                )
            if dtype.is_complex:
                checks.warn(
                    "Complex modules are a new feature under active development whose design may change, and some "
                    "modules might not work as expected when using complex tensors as parameters or buffers. Please "
                    "file an issue at "
                    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex "
                    "module does not work as expected.",
                )

        def convert(tensor: Tensor) -> Tensor:
            wanted = (
                dtype if dtype is not None and (tensor.is_floating_point() or tensor.is_complex()) else None
            )
            options = {"device": place, "dtype": wanted}
            if memory_format is not None and tensor.dim() in (4, 5):
                options["memory_format"] = memory_format
            try:
                return tensor.to(**options)
            except NotImplementedError as error:
                if str(error) != "Cannot copy out of meta tensor; no data!":
                    raise
                raise NotImplementedError(
                    f"{error} Please use {checks.spelled('nn.Module.to_empty()')} instead of "
                    f"{checks.spelled('nn.Module.to()')} when moving module from meta to a different device."
                ) from None

        return self._apply(convert)

    def to_empty(self: Self, *, device: devices.DeviceLike, recurse: bool = True) -> Self:
        """Move to a device without the values: they are whatever is there."""
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def cpu(self: Self) -> Self:
        """Move to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self: Self, device: Any = None) -> Self:
        """Move to a CUDA device."""
        return self._apply(lambda t: t.cuda(device))

    def tpu(self: Self, device: Any = None) -> Self:
        """Move to a TPU."""
        return self._apply(lambda t: t.tpu(device))

    def share_memory(self: Self) -> Self:
        """The module itself, with a warning: processes get copies of its tensors, whose memory they do not share."""
        checks.warn(
            "share_memory: tensors are copied between processes, and what one process writes no other sees",
        )
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Have calls of this module run as one program, and their backward as another; arguments as those of `xtensor.compile`."""
        known = ("fullgraph", "dynamic", "recompile_limit", "name")
        options = {name: kwargs[name] for name in known if name in kwargs}
        self._compiled_call_impl = (
            None if kwargs.get("disable") else capture.compiler[0](self._call_impl, **options)
        )

    def type(self: Self, dst_type: dtypes.dtype | str) -> Self:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self: Self) -> Self:
        """Convert floating parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self: Self) -> Self:
        """Convert floating parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self: Self) -> Self:
        """Convert floating parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self: Self) -> Self:
        """Convert floating parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    # -- modes

    def train(self: Self, mode: bool = True) -> Self:
        """Set the training mode (dropout, batch statistics) of this module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Set the evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Ask autograd to follow all parameters, or not to."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or fill them with zeros."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # -- text

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What `repr` says of the module itself; subclasses define it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        own = extra.split("\n") if extra else []
        below = [f"({name}): {indented(repr(module), 2)}" for name, module in self._modules.items()]
        if not own and not below:
            return f"{self._get_name()}()"
        if len(own) == 1 and not below:
            return f"{self._get_name()}({own[0]})"
        return f"{self._get_name()}(\n  " + "\n  ".join(own + below) + "\n)"

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())


_HOOK_DICTS = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
