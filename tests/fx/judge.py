"""What two libraries' tracers made of one program, in words that can be compared."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

__all__ = ["code", "described", "same_values", "words"]

# How PyTorch spells functions that it has in C, and where they are public.
SPELLED = (
    (r"\bxtensor\b", "torch"),
    (r"torch\._C\._nn\.", "torch.nn.functional."),
    (r"torch\._C\._linalg\.linalg_", "torch.linalg."),
    (r"torch\._C\._fft\.fft_", "torch.fft."),
    (r"torch\.functional\.", "torch."),
    (r" at 0x[0-9a-f]+", ""),
    (r"<built-in method (\w+) of type object>|<function (\w+)>", r"<\1\2>"),
)


def words(text: str) -> str:
    """A text with both libraries' names made one."""
    for pattern, by in SPELLED:
        text = re.sub(pattern, by, text)
    return text


def code(module: Any) -> str:
    """The code of a module."""
    return words(module.code)


def target_name(target: Any) -> str:
    if isinstance(target, str):
        return target
    name = target.__name__
    return re.sub(r"^(linalg|fft|special)_", "", "max_pool2d" if name == "fn" else name)


def described(graph: Any) -> list[tuple[Any, ...]]:
    """A graph's nodes: opcode, name, the target's name, arguments, and the names of users."""
    return [
        (
            n.op,
            n.name,
            target_name(n.target),
            words(repr(n.args)),
            words(repr(dict(n.kwargs))),
            [u.name for u in n.users],
        )
        for n in graph.nodes
    ]


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in leaves(v)]
    if isinstance(value, (list, tuple)):
        return [leaf for v in value for leaf in leaves(v)]
    return [value]


def same_values(expected: Any, got: Any) -> None:
    """AssertionError unless two results hold the same numbers and texts."""
    ours, theirs = leaves(got), leaves(expected)
    assert len(ours) == len(theirs)
    for a, b in zip(theirs, ours, strict=True):
        if hasattr(a, "detach"):
            assert tuple(a.shape) == tuple(b.shape)
            np.testing.assert_allclose(b.detach().numpy(), a.detach().numpy(), rtol=2e-5, atol=1e-6)
        elif isinstance(a, slice):
            same_values([a.start, a.stop, a.step], [b.start, b.stop, b.step])
        else:
            assert words(repr(a)) == words(repr(b))
