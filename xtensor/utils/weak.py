"""Weak references by identity: dictionaries whose keys are tensors, or any objects, and go when these go."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any

from ..tensor import Tensor

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakRef",
    "WeakTensorKeyDictionary",
    "WeakTensorRefKey",
]

WeakRef = weakref.ref


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another of the same object, whatever the object's own equality.

    Example: `WeakIdRef(x) == WeakIdRef(x)` is True for a tensor `x`, without a comparison of its elements.
    """

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Callable[[Any], Any] | None = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        a, b = self(), other() if isinstance(other, weakref.ref) else None
        return a is b if a is not None and b is not None else self is other

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self()!r})"


WeakTensorRefKey = WeakIdRef


class TensorWeakRef:
    """A weak reference to a tensor: calling it gives the tensor, or None where it is gone."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary whose keys are compared by identity, and are gone with their objects.

    Example: `d = WeakIdKeyDictionary(); d[x] = 1; d[x]` is 1 as long as `x` lives.
    """

    def __init__(self, dict: Any = None, ref_type: type[WeakIdRef] = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        data = weakref.ref(self)

        def remove(reference: Any) -> None:
            left = data()
            if left is not None:
                left.data.pop(reference, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # of what cannot be referred to weakly
            return False

    def __iter__(self) -> Iterator[Any]:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def copy(self) -> Any:
        """Another dictionary with the same keys and values."""
        return type(self)(self)

    __copy__ = copy

    def keyrefs(self) -> list[WeakIdRef]:
        """The weak references to the keys."""
        return list(self.data)

    def __or__(self, other: Mapping[Any, Any]) -> Any:
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> Any:
        self.update(other)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return {id(k): v for k, v in self.items()} == {id(k): v for k, v in other.items()}

    __hash__ = None  # type: ignore[assignment]


WeakTensorKeyDictionary = WeakIdKeyDictionary
