"""Pipes that are read from their beginning to their end."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from ..collate import default_collate
from ..sampler import SequentialSampler
from ..workers import get_worker_info
from .pipe import DataChunk, IterDataPipe, Shuffling, functional_datapipe

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "Filter",
    "Forker",
    "Grouper",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "UnBatcher",
    "Zipper",
]


def length_of(pipe: Any, of: Any) -> int:
    if isinstance(of, Sized):
        return len(of)
    raise TypeError(f"{type(pipe).__name__} instance doesn't have valid length")


class IterableWrapper(IterDataPipe):
    """A pipe over an iterable, copied for each pass so that the pipe can be read again."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:
                source = self.iterable
        yield from source

    def __len__(self) -> int:
        return length_of(self, self.iterable)


class _Over(IterDataPipe):
    def __init__(self, datapipe: Any) -> None:
        self.datapipe = datapipe

    def __len__(self) -> int:
        return length_of(self, self.datapipe)


@functional_datapipe("map")
class Mapper(_Over):
    """`fn` of each item, or of one column of it, put into another."""

    def __init__(
        self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None
    ) -> None:
        super().__init__(datapipe)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        self.fn, self.input_col, self.output_col = fn, input_col, output_col

    def _one(self, item: Any) -> Any:
        if self.input_col is None:
            return self.fn(item)
        columns = self.input_col if isinstance(self.input_col, (list, tuple)) else [self.input_col]
        made = self.fn(*[item[c] for c in columns])
        is_tuple = isinstance(item, tuple)
        row = list(item) if is_tuple else copy.copy(item)
        if self.output_col is None:
            row[columns[0]] = made
            for column in sorted(columns[1:], reverse=True):
                del row[column]
        elif self.output_col == -1 and isinstance(row, list):
            row.append(made)
        else:
            row[self.output_col] = made
        return tuple(row) if is_tuple else row

    def __iter__(self) -> Iterator[Any]:
        return map(self._one, self.datapipe)


@functional_datapipe("collate")
class Collator(Mapper):
    """Batches of samples as tensors."""

    def __init__(self, datapipe: Any, conversion: Any = default_collate, collate_fn: Any = None) -> None:
        super().__init__(datapipe, collate_fn or conversion)


@functional_datapipe("filter")
class Filter(_Over):
    """The items for which `filter_fn`, of them or of a column, holds."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        super().__init__(datapipe)
        self.filter_fn, self.input_col = filter_fn, input_col

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            if self.input_col is None:
                keep = self.filter_fn(item)
            elif isinstance(self.input_col, (list, tuple)):
                keep = self.filter_fn(*[item[c] for c in self.input_col])
            else:
                keep = self.filter_fn(item[self.input_col])
            if not isinstance(keep, bool):
                raise ValueError(
                    f"Boolean output is required for `filter_fn` of FilterIterDataPipe, got {type(keep)}"
                )
            if keep:
                yield item

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


@functional_datapipe("batch")
class Batcher(_Over):
    """Lists of `batch_size` items."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk
    ) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__(datapipe)
        self.batch_size, self.drop_last, self.wrapper_class = batch_size, drop_last, wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for item in self.datapipe:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        count = super().__len__()
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


@functional_datapipe("unbatch")
class UnBatcher(_Over):
    """The items of batches; `unbatch_level` says how deep, -1 all the way."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        super().__init__(datapipe)
        self.unbatch_level = unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for item in self.datapipe:
            yield from self._opened(item, self.unbatch_level)

    def _opened(self, item: Any, level: int) -> Iterator[Any]:
        if level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if level == 0 or (level == -1 and not isinstance(item, (list, DataChunk))):
            yield item
        elif isinstance(item, list):
            for part in item:
                yield from self._opened(part, level if level == -1 else level - 1)
        else:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


@functional_datapipe("shuffle")
class Shuffler(Shuffling, _Over):
    """The items in random order, through a buffer of `buffer_size` of them."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        super().__init__(datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level))
        self.buffer_size = buffer_size

    def __iter__(self) -> Iterator[Any]:
        if not self.enabled:
            yield from self.datapipe
            return
        source, buffer = self._source(), []
        for item in self.datapipe:
            if len(buffer) == self.buffer_size:
                place = source.randint(0, len(buffer) - 1)
                item, buffer[place] = buffer[place], item
                yield item
            else:
                buffer.append(item)
        source.shuffle(buffer)
        yield from buffer


@functional_datapipe("sharding_filter")
class ShardingFilter(_Over):
    """Of the items, those of this worker process of a DataLoader."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        super().__init__(source_datapipe)
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: Any = None) -> None:
        """Keep every `num_of_instances`-th item from `instance_id` on."""
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})"
            )
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def _share(self) -> tuple[int, int]:
        info = get_worker_info()
        if info is not None and self.num_of_instances == 1:
            return info.num_workers, info.id
        return self.num_of_instances, self.instance_id

    def __iter__(self) -> Iterator[Any]:
        count, index = self._share()
        for i, item in enumerate(self.datapipe):
            if i % count == index:
                yield item

    def __len__(self) -> int:
        count, index = self._share()
        whole = super().__len__()
        return whole // count + (index < whole % count)


@functional_datapipe("concat")
class Concater(IterDataPipe):
    """Several pipes, one after the other."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class Zipper(Concater):
    """Tuples of the items of several pipes, as long as all have some."""

    def __iter__(self) -> Iterator[Any]:
        return zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class Multiplexer(Concater):
    """One item of each pipe in turn, until the shortest ends."""

    def __iter__(self) -> Iterator[Any]:
        for items in zip(*self.datapipes, strict=False):
            yield from items

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes) * len(self.datapipes)


@functional_datapipe("groupby")
class Grouper(_Over):
    """Lists of items with the same key, each given out when it is full."""

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable[[Any], Any],
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        super().__init__(datapipe)
        self.group_key_fn, self.keep_key, self.group_size = group_key_fn, keep_key, group_size
        self.buffer_size, self.drop_remaining = buffer_size, drop_remaining
        self.least = guaranteed_group_size or 0

    def _made(self, key: Any, group: list[Any]) -> Any:
        chunk = DataChunk(group)
        return (key, chunk) if self.keep_key else chunk

    def __iter__(self) -> Iterator[Any]:
        groups: dict[Any, list[Any]] = {}
        held = 0
        for item in self.datapipe:
            key = self.group_key_fn(item)
            groups.setdefault(key, []).append(item)
            held += 1
            if self.group_size is not None and len(groups[key]) == self.group_size:
                held -= self.group_size
                yield self._made(key, groups.pop(key))
            elif held == self.buffer_size:
                largest = max(groups, key=lambda k: len(groups[k]))
                group = groups.pop(largest)
                held -= len(group)
                if len(group) < self.least and not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(group))
                if len(group) >= self.least:
                    yield self._made(largest, group)
        for key, group in groups.items():
            yield self._made(key, group)

    def __len__(self) -> int:
        raise TypeError(f"{type(self).__name__} instance doesn't have valid length")


class _Shared:
    """One source read by several pipes, each as far as it has come."""

    def __init__(
        self, datapipe: Any, count: int, buffer_size: int, route: Callable[[Any], Iterable[int]]
    ) -> None:
        self.datapipe, self.count, self.buffer_size, self.route = datapipe, count, buffer_size, route
        self.waiting: list[deque[Any]] = []
        self.source: Iterator[Any] | None = None
        self.pass_of = [0] * count

    def begin(self, index: int) -> None:
        self.pass_of[index] += 1
        if self.source is None or self.pass_of[index] > max(
            (p for i, p in enumerate(self.pass_of) if i != index), default=0
        ):
            self.source = iter(self.datapipe)
            self.waiting = [deque() for _ in range(self.count)]

    def next_for(self, index: int) -> Any:
        assert self.source is not None
        while not self.waiting[index]:
            item = next(self.source)
            for place in self.route(item):
                self.waiting[place].append(item)
                if self.buffer_size >= 0 and place != index and len(self.waiting[place]) > self.buffer_size:
                    raise BufferError("a pipe has read further ahead of another than buffer_size allows")
        return self.waiting[index].popleft()


class _Child(IterDataPipe):
    def __init__(self, shared: _Shared, index: int, sized: bool) -> None:
        self.shared, self.index, self.sized = shared, index, sized

    def __iter__(self) -> Iterator[Any]:
        self.shared.begin(self.index)
        while True:
            try:
                item = self.shared.next_for(self.index)
            except StopIteration:
                return
            yield item

    def __len__(self) -> int:
        return length_of(self, self.shared.datapipe if self.sized else None)


@functional_datapipe("fork")
class Forker(IterDataPipe):
    """Several pipes with the same items."""

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: Any = None) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")
        if num_instances == 1:
            return [datapipe]
        shared = _Shared(datapipe, num_instances, buffer_size, lambda item: range(num_instances))
        return [_Child(shared, i, True) for i in range(num_instances)]


@functional_datapipe("demux")
class Demultiplexer(IterDataPipe):
    """Several pipes, the items to each by what a function says of them."""

    def __new__(
        cls,
        datapipe: Any,
        num_instances: int,
        classifier_fn: Callable[[Any], int | None],
        drop_none: bool = False,
        buffer_size: int = 1000,
    ) -> Any:
        if num_instances < 1:
            raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")

        def route(item: Any) -> list[int]:
            place = classifier_fn(item)
            if place is None and drop_none:
                return []
            if place is None or not 0 <= place < num_instances:
                raise ValueError(
                    f"Output of the classification fn should be between 0 and {num_instances - 1}. {place} is returned."
                )
            return [place]

        shared = _Shared(datapipe, num_instances, buffer_size, route)
        return [_Child(shared, i, False) for i in range(num_instances)]


class Sampler(_Over):
    """The samples of a pipe in the order that a sampler gives."""

    def __init__(
        self,
        datapipe: Any,
        sampler: Any = SequentialSampler,
        sampler_args: Any = None,
        sampler_kwargs: Any = None,
    ) -> None:
        super().__init__(datapipe)
        self.sampler = sampler(datapipe, *(sampler_args or ()), **(sampler_kwargs or {}))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return length_of(self, self.sampler)
