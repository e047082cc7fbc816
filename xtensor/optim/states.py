"""Optimizers' states of parameters, which tell when one of them is replaced: captured programs need not look at each at every call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ..trees import register_pytree_node

__all__ = ["State", "States", "changes", "telling"]

changes: list[object] = [object()]
"""An object that is another one after every change of any state's members; of what tensors hold it says nothing."""


def told(name: str) -> Callable[..., Any]:
    """A method of dictionaries that changes one, and tells."""
    plain = getattr(dict, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return plain(self, *args, **kwargs)
        finally:
            changes[0] = object()
            if type(self) is States:
                self.kept = None

    method.__name__, method.__doc__ = name, plain.__doc__
    return method


class State(dict[str, Any]):
    """What an optimizer keeps for one parameter. A copy, or what a file holds of it, is a plain dictionary."""

    def __setitem__(self, key: str, value: Any) -> None:
        # `state["step"] += 1` puts back the tensor that was there.
        if value is not self.get(key, self):
            super().__setitem__(key, value)
            changes[0] = object()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return dict, (), None, None, iter(self.items())


class States(defaultdict[Any, Any]):
    """The states of all parameters of an optimizer; one that is not there is made, empty."""

    # What the optimizer keeps of its last step: it goes with the states that it holds.
    kept: Any = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*(args or (State,)))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self.kept = None
        changes[0] = object()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return defaultdict, (dict,), None, None, iter(self.items())

    def __repr__(self) -> str:
        return repr(defaultdict(dict, self))


def telling(states: Any) -> Any:
    """The same states as ones that tell, where they are dictionaries of dictionaries."""
    if type(states) is not defaultdict or states.default_factory is not dict:
        return states
    return States(State, {k: State(v) if type(v) is dict else v for k, v in states.items()})


def _apart(own: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    return list(own.values()), list(own)


for kind in (State, States):
    for each in ("__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
        setattr(kind, each, told(each))
register_pytree_node(State, _apart, lambda values, keys: dict(zip(keys, values, strict=True)))
register_pytree_node(States, _apart, lambda values, keys: defaultdict(dict, zip(keys, values, strict=True)))
