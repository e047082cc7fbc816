"""What memory holds where nothing can be written: a write gives the whole of it anew, and views of it are read again."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph import Node, TensorMeta
from .building import Builder, Untranslated, Value

__all__ = ["Memories"]


def places(meta: TensorMeta) -> np.ndarray[Any, Any]:
    """Where each element of a tensor lies in its memory."""
    if not all(isinstance(s, int) for s in (*meta.shape, *(meta.strides or ()), meta.offset)):
        raise Untranslated("a part of a tensor with open sizes is written")
    if meta.strides is None:
        return np.arange(int(np.prod(meta.shape, dtype=np.int64))).reshape(meta.shape)
    found = np.full(meta.shape, meta.offset, np.int64)
    for dim, stride in enumerate(meta.strides):
        shape = [1] * len(meta.shape)
        shape[dim] = -1
        found = found + (np.arange(meta.shape[dim]) * stride).reshape(shape)
    return found


def rows_of(whole: TensorMeta, part: TensorMeta) -> tuple[int, list[int]]:
    """How many elements a memory has, and what follows each in the model: complex ones are two numbers."""
    if whole.dtype.is_complex != part.dtype.is_complex:
        raise Untranslated("complex numbers whose parts are written as real ones")
    return int(np.prod(whole.shape, dtype=np.int64)), [2] if whole.dtype.is_complex else []


class Memory:
    """The memory of one storage: the first tensor over it, and what it holds now."""

    def __init__(self, meta: TensorMeta, whole: Value) -> None:
        self.meta = meta
        self.whole = whole
        self.version = 0

    def covers(self, meta: TensorMeta) -> bool:
        """Whether a tensor sees what the first one sees."""
        return (meta.shape, meta.strides, meta.offset) == (
            self.meta.shape,
            self.meta.strides,
            self.meta.offset,
        )

    def where(self, meta: TensorMeta) -> np.ndarray[Any, Any]:
        """The numbers of a tensor's elements among those of the first one."""
        own, wish = places(self.meta).reshape(-1), places(meta)
        numbers = np.full(max(int(own.max(initial=0)), int(wish.max(initial=0))) + 1, -1, np.int64)
        numbers[own] = np.arange(own.size)
        found = numbers[wish]
        if (found < 0).any():
            raise Untranslated("a tensor sees memory that no other one has given")
        return found


class Memories:
    """The memories of all tensors of a program."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self._memories: dict[int, Memory] = {}
        self._values: dict[Node, tuple[Value, int]] = {}

    def made(self, node: Node, value: Value) -> None:
        """Note what an operator has given."""
        meta = node.meta["val"]
        memory = self._memories.setdefault(meta.memory, Memory(meta, value))
        self._values[node] = (value, memory.version)

    def read(self, node: Node) -> Value:
        """What a tensor holds now."""
        node = node.meta.get("same", node)
        if node not in self._values:
            raise Untranslated(f"the result {node.name} has no form in ONNX")
        value, version = self._values[node]
        meta = node.meta["val"]
        memory = self._memories[meta.memory]
        if version == memory.version:
            return value
        b = self.builder
        if memory.covers(meta):
            value = memory.whole
        else:
            count, rest = rows_of(memory.meta, meta)
            flat = b.reshape(memory.whole._replace(shape=()), [count, *rest])
            value = b.op("Gather", flat, b.constant(memory.where(meta)), axis=0, shape=meta.shape)
        self._values[node] = (value, memory.version)
        return value

    def write(self, node: Node, value: Value) -> None:
        """Have a tensor hold something else, and all others over its memory what follows."""
        node = node.meta.get("same", node)
        meta = node.meta["val"]
        memory = self._memories[meta.memory]
        b = self.builder
        if memory.covers(meta):
            memory.whole = value
        else:
            count, rest = rows_of(memory.meta, meta)
            where = memory.where(meta).reshape(-1, 1)
            value = value if rest else b.expand(value, meta.shape)
            parts = b.reshape(value._replace(shape=()), [where.shape[0], *rest])
            flat = b.reshape(memory.whole._replace(shape=()), [count, *rest])
            flat = b.op("ScatterND", flat, b.constant(where), parts, shape=(count, *rest))
            memory.whole = b.reshape(flat, [*memory.meta.shape, *rest])._replace(shape=memory.meta.shape)
        memory.version += 1
        self._values[node] = (value, memory.version)
