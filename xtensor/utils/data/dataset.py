"""Datasets: collections of samples by number, or streams of them, and how they combine."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from ... import checks
from ...ops.create.ingest import tensor as make_tensor
from ...ops.create.random import randperm
from ...tensor import Tensor
from .late import late
from .late import rows as rows_of
from .sampler import place_of

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Samples by number: a subclass defines `__getitem__` and, for most samplers, `__len__`.

    Raises: NotImplementedError where `__getitem__` is not written.

    >>> class Squares(xtensor.utils.data.Dataset):
    ...     def __getitem__(self, index):
    ...         return index**2
    >>> Squares()[3]
    9
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A stream of samples: a subclass defines `__iter__`."""

    def __add__(self, other: Dataset[T_co]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors side by side: sample `i` is row `i` of each.

    Raises: AssertionError where the first sizes differ.

    >>> xtensor.utils.data.TensorDataset(xtensor.tensor([1, 2]), xtensor.tensor([3, 4]))[0]
    (tensor(1), tensor(3))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].size(0)

    def _collated(self, indices: Sequence[int]) -> list[Tensor] | None:
        """The samples at `indices` as `default_collate` would put them together, by one lookup in each tensor."""
        if type(self).__getitem__ is not TensorDataset.__getitem__:
            return None
        if late():
            found = [rows_of(tensor, indices) for tensor in self.tensors]
            return None if any(tensor is None for tensor in found) else found  # type: ignore[return-value]
        rows = make_tensor(list(indices), device="cpu")
        return [tensor.index_select(0, rows.to(tensor.device)) for tensor in self.tensors]


class StackDataset(Dataset[Any]):
    """Datasets side by side: sample `i` is the tuple, or the dictionary, of their samples `i`."""

    def __init__(self, *args: Dataset[Any], **kwargs: Dataset[Any]) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        every: list[Any] = list(args or kwargs.values())
        self._length = len(every[0])
        if any(self._length != len(dataset) for dataset in every):
            raise ValueError("Size mismatch between datasets")
        self.datasets: Any = args or kwargs

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {k: dataset[index] for k, dataset in self.datasets.items()}
        return tuple([dataset[index] for dataset in self.datasets])

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = {k: self._column(dataset, indices) for k, dataset in self.datasets.items()}
            return [{k: column[i] for k, column in columns.items()} for i in range(len(indices))]
        return list(zip(*[self._column(dataset, indices) for dataset in self.datasets], strict=True))

    def _column(self, dataset: Any, indices: list[int]) -> list[Any]:
        if not callable(getattr(dataset, "__getitems__", None)):
            return [dataset[i] for i in indices]
        items = dataset.__getitems__(indices)
        if len(items) != len(indices):
            raise ValueError(
                f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}"
            )
        return items

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets: list[Any] = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The number of samples up to the end of each dataset."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - before]

    @property
    def cummulative_sizes(self) -> list[int]:
        """Deprecated: `cumulative_sizes`."""
        checks.warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning)
        return self.cumulative_sizes


class ChainDataset(IterableDataset[Any]):
    """Streams one after the other."""

    def __init__(self, datasets: Iterable[Dataset[Any]]) -> None:
        self.datasets = datasets

    def _checked(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[Any]:
        for dataset in self._checked():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._checked())


class Subset(Dataset[T_co]):
    """The samples of another dataset at these numbers."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        if (
            type(self).__getitem__ is not Subset.__getitem__
            and type(self).__getitems__ is Subset.__getitems__
        ):
            raise NotImplementedError(
                f"{type(self).__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and "
                "overriding __getitem__, you must also override __getitems__ to ensure DataLoader works correctly with "
                "your custom logic. A simple implementation:\n\ndef __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        every = [self.indices[i] for i in indices]
        fetch: Any = getattr(self.dataset, "__getitems__", None)
        if fetch is not None:
            return fetch(every)
        return [self.dataset[i] for i in every]

    def __len__(self) -> int:
        return len(self.indices)

    def _collated(self, indices: Sequence[int]) -> Any:
        """What the dataset's `_collated` gives for the samples that these numbers stand for."""
        inner = getattr(self.dataset, "_collated", None)
        if inner is None or type(self).__getitems__ is not Subset.__getitems__:
            return None
        return inner([self.indices[i] for i in indices])


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Any = None
) -> list[Subset[T_co]]:
    """Parts of a dataset without overlap, drawn at random: of these lengths, or fractions that add up to 1.

    Raises: ValueError where the lengths do not add up.

    >>> [len(part) for part in xtensor.utils.data.random_split(range(4), [3, 1])]
    [3, 1]
    """
    size = len(dataset)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    counts = list(lengths)
    if math.isclose(sum(counts), 1) and sum(counts) <= 1:
        for i, fraction in enumerate(counts):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        counts = [math.floor(size * fraction) for fraction in counts]
        for i in range(size - sum(counts)):
            counts[i % len(counts)] += 1
        for i, count in enumerate(counts):
            if count == 0:
                checks.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.")
    if sum(counts) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(size, generator=generator, device=place_of(generator)).tolist()
    ends = itertools.accumulate(int(count) for count in counts)
    return [Subset(dataset, order[end - int(count) : end]) for end, count in zip(ends, counts, strict=True)]
