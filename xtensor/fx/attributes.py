"""What stands under dotted paths of modules: read, copied, put there."""

from __future__ import annotations

from typing import Any

from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ..tensor import Tensor

__all__: list[str] = []


def _place(module: Module, target: str) -> tuple[Any, str]:
    """The module of an attribute's path, made where there is none, and the attribute's name."""
    *path, name = target.split(".")
    for part in path:
        found = getattr(module, part, None)
        if found is None:
            found = Module()
            setattr(module, part, found)
        module = found
    return module, name


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Give a module what stands under a path in another one."""
    *path, name = target.split(".")
    for part in path:
        source, there = getattr(from_module, part), getattr(to_module, part, None)
        if source is there:
            return
        if there is None:
            there = Module()
            setattr(to_module, part, there)
        from_module, to_module = source, there
    _assign_attr(getattr(from_module, name), to_module, name)


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Put an object under a path of a module; a tensor that is no parameter becomes a buffer."""
    holder, name = _place(to_module, target)
    if isinstance(from_obj, Tensor) and not isinstance(from_obj, Parameter):
        holder.register_buffer(name, from_obj)
    else:
        setattr(holder, name, from_obj)


def _get_attr(model: Module, attr_name: str) -> Any:
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _get_attr_via_attr_list(model: Module, attr_list: list[str]) -> Any:
    found: Any = model
    for name in attr_list:
        found = getattr(found, name)
    return found


def _has_attr(model: Module, attr_name: str) -> bool:
    *path, name = attr_name.split(".")
    found: Any = model
    for part in path:
        found = getattr(found, part, None)
        if found is None:
            return False
    return hasattr(found, name)


def _del_attr(model: Module, attr_name: str) -> None:
    holder, name = _place(model, attr_name)
    delattr(holder, name)
