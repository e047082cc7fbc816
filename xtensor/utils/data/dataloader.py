"""DataLoader: batches of a dataset, in this process or from worker processes."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context
import os
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar, cast

from ... import checks, devices
from ...engine import record_function
from .ahead import Ahead
from .collate import default_collate, default_convert
from .dataset import Dataset, IterableDataset
from .distributed import own_share
from .fetch import DatasetKind, fetcher_for
from .pool import WorkerPool
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, random_seed
from .server import prepare
from .workers import Failure

__all__ = ["DataLoader"]

T_co = TypeVar("T_co", covariant=True)
FIXED = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))

INTERRUPTED = 0.5  # seconds for workers to end when the program cannot wait


class InfiniteSampler(Sampler[None]):
    """The sampler of a stream: there are no numbers to choose from."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """Iterates over a dataset in batches of `batch_size`, put together by `collate_fn`.

    With `num_workers`, batches are made ahead by worker processes. They are forked from a server, a process that has
    imported what they need and runs no XLA, and get `dataset`, `collate_fn` and `worker_init_fn` by cloudpickle: classes of
    a script or a notebook, lambdas and closures may be used, and a script needs no `if __name__ == "__main__":`. An epoch's
    workers start in milliseconds, and memory of large arrays and tensors is mapped by all of them; a dataset of many Python
    objects is sent anew for every epoch, unless `persistent_workers` says otherwise. Tensors arrive on the CPU.

    Differs from PyTorch: workers have a copy of the dataset as it was sent, not the whole program as it was forked, so what
    cannot be pickled (an open file, a lock) is made in the worker, by `worker_init_fn` or when it is first used; `fork` and
    `forkserver` mean the server and `spawn` a fresh interpreter for each worker, which is also what there is on macOS and
    Windows unless asked for otherwise; `pin_memory` changes nothing. With `prefetch_device`, which PyTorch lacks, batches
    come on that device, each sent there while the one before is in use.

    Raises: ValueError for options that exclude each other, and negative numbers.

    >>> rows = xtensor.utils.data.TensorDataset(xtensor.arange(3))
    >>> [batch.tolist() for (batch,) in xtensor.utils.data.DataLoader(rows, batch_size=2)]
    [[0, 1], [2]]
    """

    _fixed = False
    _iterator: Any = None

    def __init__(
        self,
        dataset: Dataset[T_co] | Sequence[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        prefetch_device: devices.DeviceLike = None,
    ) -> None:
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                "multiprocessing, otherwise set prefetch_factor to None."
            )
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        stream = isinstance(dataset, IterableDataset)
        if stream:
            for name, given, unset in (
                ("shuffle", shuffle, (False, None)),
                ("sampler", sampler, (None,)),
                ("batch_sampler", batch_sampler, (None,)),
            ):
                if not any(given is value for value in unset):
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}"
                    )
        shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
        if sampler is None:
            if stream:
                sampler = InfiniteSampler()
            elif shuffle:
                sampler = RandomSampler(cast("Sized", dataset), generator=generator)
            else:
                sampler = SequentialSampler(cast("Sized", dataset))
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset = dataset
        self._dataset_kind: int = DatasetKind.Iterable if stream else DatasetKind.Map
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.prefetch_device = None if prefetch_device is None else devices.resolve(prefetch_device)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        self.collate_fn: Any = collate_fn or (default_collate if self._auto_collation else default_convert)
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None
        self.check_worker_number_rationality()
        if num_workers:
            prepare(None if self._context is None else self._context.get_start_method())
        self._fixed = True

    def __setattr__(self, attr: str, val: Any) -> None:
        if self._fixed and attr in FIXED:
            raise ValueError(f"{attr} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(attr, val)

    @property
    def multiprocessing_context(self) -> Any:
        """How worker processes are started: a context, or None for what suits the system."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got "
                    f"num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self._context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        batches = self._batches()
        return batches if self.prefetch_device is None else Ahead(batches, self.prefetch_device)

    def _batches(self) -> Pass:
        if self.num_workers == 0:
            return Batches(self)
        if not self.persistent_workers:
            return PooledBatches(self)
        if self._iterator is None:
            self._iterator = PooledBatches(self)
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if not isinstance(self.dataset, IterableDataset):
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn where there would be more worker processes than processors."""
        if not self.num_workers:
            return
        affinity = getattr(os, "sched_getaffinity", None)
        most = len(affinity(0)) if affinity else os.cpu_count()
        if most is not None and self.num_workers <= most:
            return
        suggestion = (
            "DataLoader is not able to compute a suggested max number of worker in current system."
            if most is None
            else f"Our suggested max number of worker in current system is {most}"
            f"{'' if affinity else ' (`cpuset` is not taken into account)'}, which is smaller than what this "
            "DataLoader is going to create."
        )
        checks.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. {suggestion} Please be aware "
            "that excessive worker creation might get DataLoader running slow or even freeze, lower the worker number "
            "to avoid potential slowness/freeze if necessary.",
        )


REPLICAS = (
    "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica at "
    "each worker. Please see https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
)


class Pass:
    """One pass over a loader's batches. Programs derive classes of their own, by PyTorch's names for what it is made of."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called: int | None = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._rank, self._world_size = own_share()
        # Pinned memory is for copies to an accelerator, which XLA makes for itself.
        self._pin_memory, self._pin_memory_device = False, None
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        # Drawn without workers too, so that what is drawn next does not depend on how many there are.
        self._base_seed = random_seed(loader.generator)
        self._sampler_iter = iter(self._index_sampler)
        self._persistent_workers = loader.persistent_workers
        self._shared_seed: int | None = None
        self._num_yielded = 0

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        """Begin another pass."""
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def _next_index(self) -> Any:
        """The numbers of the next batch's samples."""
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        """The next batch."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with record_function("enumerate(DataLoader).__next__"):
            batch = self._next_data()
        self._num_yielded += 1
        announced = self._IterableDataset_len_called
        if announced is not None and self._num_yielded > announced:
            checks.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {announced}"
                f"(when accessing len(dataloader)), but {self._num_yielded} samples have been fetched. "
                + (REPLICAS if self._num_workers > 0 else ""),
            )
        return batch

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


class Batches(Pass):
    """One pass over a loader's batches, in this process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._dataset_fetcher = fetcher_for(
            self._dataset, self._auto_collation, self._collate_fn, self._drop_last, self._dataset_kind
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())


class PooledBatches(Pass):
    """One pass over a loader's batches, made by worker processes that work ahead."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self.loader = loader
        self.pool = WorkerPool(loader, self._base_seed)
        self._reset(loader, True)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        if not first_iter:
            super()._reset(loader)
        try:
            self.pool.restart(self._sampler_iter)
        except BaseException:
            self.give_up()
            raise

    def give_up(self) -> None:
        """End the workers; another pass has others."""
        self.pool.close(INTERRUPTED)
        if self.loader._iterator is self:
            self.loader._iterator = None

    def _next_data(self) -> Any:
        try:
            batch = self.pool.take()
        except StopIteration:
            if not self.loader.persistent_workers:
                self.pool.close()
            raise
        except BaseException:  # Ctrl-C, a worker that died or is late, a sampler's own error
            self.give_up()
            raise
        if isinstance(batch, Failure):
            raise batch.error()
        return batch
