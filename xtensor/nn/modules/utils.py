"""Arguments that stand for one value per dimension."""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

__all__ = [
    "_ntuple",
    "_pair",
    "_quadruple",
    "_reverse_repeat_tuple",
    "_single",
    "_triple",
    "consume_prefix_in_state_dict_if_present",
]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return tuple(x) if isinstance(x, collections.abc.Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """The values in reverse order, each `n` times: padding as `pad` takes it."""
    return tuple(x for x in reversed(tuple(t)) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix off the names of a state, in place: that of a model which was wrapped when it was saved.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> xtensor.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1, 'bias': 2}
    """
    entries = [(name.removeprefix(prefix), value) for name, value in state_dict.items()]
    state_dict.clear()
    state_dict.update(entries)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        bare = prefix.rstrip(".")
        renamed = {"" if name == bare else name.removeprefix(prefix): of for name, of in metadata.items()}
        metadata.clear()
        metadata.update(renamed)
