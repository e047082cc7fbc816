"""How one batch is taken from a dataset; the same in the program and in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .collate import default_collate
from .dataset import IterableDataset

__all__ = ["DatasetKind", "Fetcher", "fetcher_for"]


class Fetcher:
    """Takes the batch that an index stands for: one number, or a list of them if samples are put together."""

    def __init__(
        self, dataset: Any, together: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        self.dataset = dataset
        self.auto_collation = together
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, index: Any) -> Any:
        """The batch; StopIteration where a stream has ended."""
        dataset = self.dataset
        if not self.auto_collation:
            return self.collate_fn(dataset[index])
        if self.collate_fn is default_collate and index:
            whole = getattr(dataset, "_collated", None)
            batch = None if whole is None else whole(index)
            if batch is not None:
                return batch
        every = getattr(dataset, "__getitems__", None)
        samples = every(index) if every else [dataset[i] for i in index]
        return self.collate_fn(samples)


class StreamFetcher(Fetcher):
    """Takes batches from a stream, as many samples as the index has places."""

    def __init__(
        self, dataset: Any, together: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> None:
        super().__init__(dataset, together, collate_fn, drop_last)
        self.dataset_iter: Iterator[Any] = iter(dataset)
        self.ended = False

    def fetch(self, index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for _ in index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(index)):
            raise StopIteration
        return self.collate_fn(samples)


class DatasetKind:
    """The kinds of datasets by number, as loaders that programs write name them."""

    Map, Iterable = 0, 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool
    ) -> Fetcher:
        """The fetcher for a kind."""
        found = Fetcher if kind == DatasetKind.Map else StreamFetcher
        return found(dataset, auto_collation, collate_fn, drop_last)


def fetcher_for(
    dataset: Any,
    together: bool,
    collate_fn: Callable[[Any], Any],
    drop_last: bool,
    kind: int | None = None,
) -> Fetcher:
    """The fetcher for a dataset of the given kind, or of that which it is."""
    if kind is None:
        kind = DatasetKind.Iterable if isinstance(dataset, IterableDataset) else DatasetKind.Map
    return DatasetKind.create_fetcher(kind, dataset, together, collate_fn, drop_last)
