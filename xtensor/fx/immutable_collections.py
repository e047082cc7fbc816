"""Lists and dicts that cannot be changed: what the arguments of a node are made of."""

from __future__ import annotations

from typing import Any, NoReturn

from .. import checks, trees

__all__ = ["immutable_dict", "immutable_list"]


def refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """Say how arguments are changed instead."""
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. If you are attempting to modify the kwargs or args of "
        f"a {checks.spelled('fx.Node')} object,\ninstead create a new copy of it and assign the copy to the node:\n\n"
        "    new_args = ...  # copy and mutate args\n    node.args = new_args"
    )


class immutable_list(list[Any]):
    """A list that raises TypeError where it would be changed."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = append = clear = extend = insert = refuse
    pop = remove = reverse = sort = refuse

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (tuple(self),)


class immutable_dict(dict[Any, Any]):
    """A dict that raises TypeError where it would be changed."""

    __delitem__ = __ior__ = __setitem__ = clear = pop = popitem = setdefault = update = refuse

    def __hash__(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (tuple(self.items()),)


trees.register_pytree_node(
    immutable_list,
    lambda held: (list(held), None),
    lambda values, _: immutable_list(values),
    serialized_type_name="xtensor.fx.immutable_list",
)
trees.register_pytree_node(
    immutable_dict,
    lambda held: (list(held.values()), list(held)),
    lambda values, keys: immutable_dict(zip(keys, values, strict=True)),
    serialized_type_name="xtensor.fx.immutable_dict",
)
